// Sums, means, maxima and minima, softmax and its gradient.
#include <algorithm>

#include "tensor.hpp"

using dnnl::algorithm;

static void reduce(diopiConstTensorHandle_t out, diopiConstTensorHandle_t input, const Dims& axes, algorithm kind) {
    Tensor result(out, "out"), source(input, "input");
    requireType(result, source);
    Dims from = source.shape.empty() ? Dims{1} : source.shape, to = from, left;
    for (int64_t dim : axes) to[source.axis(dim)] = 1;
    for (int64_t axis = 0; axis < source.rank(); axis++) {
        bool isReduced = std::any_of(axes.begin(), axes.end(), [&](int64_t dim) { return source.axis(dim) == axis; });
        if (!isReduced) left.push_back(source.shape[axis]);
    }
    require(result.numel == count(left, 0, left.size()), "out has another size than expected");
    dnnl::memory elements = source.load(from);
    if (from == to) return result.store(elements);
    dnnl::memory reduced = allocate(to, result.type);
    dnnl::reduction::primitive_desc description(engine(), kind, elements.get_desc(), reduced.get_desc(), 0.0f, 0.0f);
    execute(dnnl::reduction(description), {{DNNL_ARG_SRC, elements}, {DNNL_ARG_DST, reduced}});
    result.store(reduced);
}

static Dims allAxes(diopiConstTensorHandle_t input) {
    Dims axes(Tensor(input, "input").rank());
    for (size_t i = 0; i < axes.size(); i++) axes[i] = static_cast<int64_t>(i);
    return axes;
}

static Dims axesOf(const diopiSize_t& dim, diopiConstTensorHandle_t input) {
    return dim.len == 0 ? allAxes(input) : Dims(dim.data, dim.data + dim.len);
}

diopiError_t diopiSum(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, diopiSize_t dim) {
    return guarded(__func__, [&] { reduce(out, input, axesOf(dim, input), algorithm::reduction_sum); });
}

diopiError_t diopiMean(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       diopiSize_t dim) {
    return guarded(__func__, [&] { reduce(out, input, axesOf(dim, input), algorithm::reduction_mean); });
}

diopiError_t diopiMaxAll(diopiContextHandle_t, diopiTensorHandle_t max, diopiConstTensorHandle_t input) {
    return guarded(__func__, [&] {
        require(Tensor(input, "input").numel > 0, "input has no elements");
        reduce(max, input, allAxes(input), algorithm::reduction_max);
    });
}

diopiError_t diopiMinAll(diopiContextHandle_t, diopiTensorHandle_t min, diopiConstTensorHandle_t input) {
    return guarded(__func__, [&] {
        require(Tensor(input, "input").numel > 0, "input has no elements");
        reduce(min, input, allAxes(input), algorithm::reduction_min);
    });
}

diopiError_t diopiAmax(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t self, diopiSize_t dim,
                       bool) {
    return guarded(__func__, [&] {
        require(Tensor(self, "self").numel > 0, "self has no elements");
        reduce(out, self, axesOf(dim, self), algorithm::reduction_max);
    });
}

diopiError_t diopiProd(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const int64_t* dim) {
    return guarded(__func__, [&] {
        reduce(out, input, dim == nullptr ? allAxes(input) : Dims{*dim}, algorithm::reduction_mul);
    });
}

// Returns the sizes before, along and after an axis.
static Dims aroundAxis(const Tensor& tensor, int64_t dim) {
    Dims shape = tensor.shape.empty() ? Dims{1} : tensor.shape;
    size_t axis = static_cast<size_t>(tensor.axis(dim));
    return {count(shape, 0, axis), shape[axis], count(shape, axis + 1, shape.size())};
}

static void softmax(diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim, algorithm kind) {
    Tensor result(out, "out"), source(input, "input");
    requireType(result, source);
    requireShape(result, source.shape);
    Dims dims = aroundAxis(source, dim);
    dnnl::memory from = source.load(dims), to = allocate(dims, result.type);
    dnnl::softmax_forward::primitive_desc description(engine(), dnnl::prop_kind::forward_inference, kind,
                                                      from.get_desc(), to.get_desc(), 1);
    execute(dnnl::softmax_forward(description), {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
    result.store(to);
}

diopiError_t diopiSoftmax(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim) {
    return guarded(__func__, [&] { softmax(out, input, dim, algorithm::softmax_accurate); });
}

diopiError_t diopiLogSoftmax(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                             int64_t dim) {
    return guarded(__func__, [&] { softmax(out, input, dim, algorithm::softmax_log); });
}

static void softmaxGradient(diopiTensorHandle_t grad_input, diopiConstTensorHandle_t grad_output,
                            diopiConstTensorHandle_t output, int64_t dim, algorithm kind) {
    Tensor result(grad_input, "grad_input"), gradient(grad_output, "grad_output"), forward(output, "output");
    for (const Tensor* operand : {&gradient, &forward}) {
        requireType(result, *operand);
        requireShape(result, operand->shape);
    }
    Dims dims = aroundAxis(forward, dim);
    dnnl::memory data = forward.load(dims), from = gradient.load(dims), to = allocate(dims, result.type);
    dnnl::softmax_forward::primitive_desc hint(engine(), dnnl::prop_kind::forward_training, kind, data.get_desc(),
                                               data.get_desc(), 1);
    dnnl::softmax_backward::primitive_desc description(engine(), kind, to.get_desc(), from.get_desc(), data.get_desc(),
                                                       1, hint);
    execute(dnnl::softmax_backward(description),
            {{DNNL_ARG_DST, data}, {DNNL_ARG_DIFF_DST, from}, {DNNL_ARG_DIFF_SRC, to}});
    result.store(to);
}

diopiError_t diopiSoftmaxBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                  diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output, int64_t dim) {
    return guarded(__func__, [&] {
        softmaxGradient(grad_input, grad_output, output, dim, algorithm::softmax_accurate);
    });
}

diopiError_t diopiLogSoftmaxBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                     diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output,
                                     int64_t dim) {
    return guarded(__func__, [&] { softmaxGradient(grad_input, grad_output, output, dim, algorithm::softmax_log); });
}
