// Pooling over two spatial axes.
#include <utility>

#include "tensor.hpp"

using dnnl::algorithm;

// The attributes of a pooling operator along the two spatial axes.
struct Pooling {
    Dims kernel, stride, padding, dilation;
    bool isCeil;
};

// Returns the number of windows along an axis, and the padding behind the elements that they need.
static std::pair<int64_t, int64_t> countWindows(const Pooling& pooling, size_t axis, int64_t size) {
    int64_t stride = pooling.stride[axis], before = pooling.padding[axis];
    int64_t extent = pooling.dilation[axis] * (pooling.kernel[axis] - 1) + 1;
    int64_t room = size + 2 * before - extent;
    require(stride > 0 && pooling.kernel[axis] > 0 && pooling.dilation[axis] > 0, "an attribute is not positive");
    require(before >= 0 && before <= pooling.kernel[axis] / 2, "padding is larger than half of the kernel");
    require(room >= 0, "the window is larger than the input");
    int64_t windows = (room + (pooling.isCeil ? stride - 1 : 0)) / stride + 1;
    if (pooling.isCeil && (windows - 1) * stride >= size + before) windows--;  // windows begin inside the input
    return {windows, (windows - 1) * stride + extent - size - before};
}

static void pool(diopiTensorHandle_t out, diopiConstTensorHandle_t input, const Pooling& pooling, algorithm kind) {
    Tensor result(out, "out"), source(input, "input");
    requireType(result, source);
    require(source.rank() == 3 || source.rank() == 4, "input does not have 3 or 4 axes");
    Dims image = source.shape, behind(2);
    if (source.rank() == 3) image.insert(image.begin(), 1);
    Dims shape = image;
    for (size_t i = 0; i < 2; i++) std::tie(shape[i + 2], behind[i]) = countWindows(pooling, i, image[i + 2]);
    Dims expected = source.rank() == 3 ? Dims(shape.begin() + 1, shape.end()) : shape;
    requireShape(result, expected);
    dnnl::memory from = source.load(image), to = allocate(shape, result.type);
    Dims skipped = {pooling.dilation[0] - 1, pooling.dilation[1] - 1};
    dnnl::pooling_forward::primitive_desc description(engine(), dnnl::prop_kind::forward_inference, kind,
                                                      from.get_desc(), to.get_desc(), pooling.stride, pooling.kernel,
                                                      skipped, pooling.padding, behind);
    execute(dnnl::pooling_forward(description), {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
    result.store(to);
}

static Dims strideOf(const diopiSize_t& stride, const Dims& kernel) {
    return stride.len == 0 ? kernel : spatial(stride, 2, 1);
}

diopiError_t diopiMaxPool2d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation,
                            bool ceil_mode) {
    return guarded(__func__, [&] {
        Dims kernel = spatial(kernel_size, 2, 1);
        pool(out, input, {kernel, strideOf(stride, kernel), spatial(padding, 2, 0), spatial(dilation, 2, 1), ceil_mode},
             algorithm::pooling_max);
    });
}

diopiError_t diopiAvgPool2d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool ceil_mode,
                            bool count_include_pad, const int64_t* divisor_override) {
    return guarded(__func__, [&] {
        if (divisor_override != nullptr) throw Failure(diopiNoImplement, "divisor_override is not implemented");
        if (ceil_mode && count_include_pad) {
            throw Failure(diopiNoImplement, "oneDNN counts padding that only ceil_mode adds");
        }
        Dims kernel = spatial(kernel_size, 2, 1);
        pool(out, input, {kernel, strideOf(stride, kernel), spatial(padding, 2, 0), {1, 1}, ceil_mode},
             count_include_pad ? algorithm::pooling_avg_include_padding : algorithm::pooling_avg_exclude_padding);
    });
}
