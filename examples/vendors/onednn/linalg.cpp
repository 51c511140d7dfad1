// Matrix products and convolutions. oneDNN chooses the memory formats.
#include "tensor.hpp"

static dnnl::memory::desc anyFormat(const dnnl::memory& memory) {
    return dnnl::memory::desc(memory.get_desc().get_dims(), memory.get_desc().get_data_type(),
                              dnnl::memory::format_tag::any);
}

// Multiplies matrices on the last two axes; the axes before are broadcast.
static dnnl::memory multiply(const dnnl::memory& left, const dnnl::memory& right, const Dims& shape) {
    dnnl::memory product = allocate(shape, left.get_desc().get_data_type());
    dnnl::matmul::primitive_desc description(engine(), anyFormat(left), anyFormat(right), product.get_desc());
    execute(dnnl::matmul(description), {{DNNL_ARG_SRC, convert(left, description.src_desc())},
                                        {DNNL_ARG_WEIGHTS, convert(right, description.weights_desc())},
                                        {DNNL_ARG_DST, product}});
    return product;
}

// Returns a shape with axes of size 1 before the existing ones.
static Dims withRank(const Dims& shape, size_t rank) {
    Dims extended(rank - shape.size(), 1);
    extended.insert(extended.end(), shape.begin(), shape.end());
    return extended;
}

diopiError_t diopiMatmul(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         diopiConstTensorHandle_t other) {
    return guarded(__func__, [&] {
        Tensor result(out, "out"), left(input, "input"), right(other, "other");
        requireType(left, right);
        requireType(result, left);
        require(left.rank() > 0 && right.rank() > 0, "an operand has no axes");
        Dims rows = left.shape, columns = right.shape;
        if (left.rank() == 1) rows.insert(rows.begin(), 1);
        if (right.rank() == 1) columns.push_back(1);
        require(rows.back() == columns[columns.size() - 2], "the inner sizes differ");
        Dims batch = broadcast(Dims(rows.begin(), rows.end() - 2), Dims(columns.begin(), columns.end() - 2));
        Dims shape = batch, expected = batch;
        if (left.rank() > 1) expected.push_back(rows[rows.size() - 2]);
        if (right.rank() > 1) expected.push_back(columns.back());
        shape.insert(shape.end(), {rows[rows.size() - 2], columns.back()});
        requireShape(result, expected);
        size_t rank = shape.size();
        result.store(multiply(left.load(withRank(rows, rank)), right.load(withRank(columns, rank)), shape));
    });
}

diopiError_t diopiBmm(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t mat2) {
    return guarded(__func__, [&] {
        Tensor result(out, "out"), left(input, "input"), right(mat2, "mat2");
        requireType(left, right);
        requireType(result, left);
        require(left.rank() == 3 && right.rank() == 3, "an operand does not have 3 axes");
        require(left.shape[0] == right.shape[0], "the numbers of matrices differ");
        require(left.shape[2] == right.shape[1], "the inner sizes differ");
        Dims shape = {left.shape[0], left.shape[1], right.shape[2]};
        requireShape(result, shape);
        result.store(multiply(left.load(left.shape), right.load(right.shape), shape));
    });
}

diopiError_t diopiMm(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                     diopiConstTensorHandle_t mat2) {
    return guarded(__func__, [&] {
        Tensor result(out, "out"), left(input, "input"), right(mat2, "mat2");
        requireType(left, right);
        requireType(result, left);
        require(left.rank() == 2 && right.rank() == 2, "an operand does not have 2 axes");
        require(left.shape[1] == right.shape[0], "the inner sizes differ");
        Dims shape = {left.shape[0], right.shape[1]};
        requireShape(result, shape);
        result.store(multiply(left.load(left.shape), right.load(right.shape), shape));
    });
}

diopiError_t diopiLinear(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias) {
    return guarded(__func__, [&] {
        Tensor result(out, "out"), source(input, "input"), kernel(weight, "weight");
        requireType(source, kernel);
        requireType(result, source);
        require(source.rank() > 0 && kernel.rank() == 2, "input has no axes, or weight does not have 2");
        require(source.shape.back() == kernel.shape[1], "the inner sizes differ");
        Dims expected = source.shape;
        expected.back() = kernel.shape[0];
        requireShape(result, expected);
        int64_t rows = count(source.shape, 0, source.shape.size() - 1);
        dnnl::memory from = source.load({rows, kernel.shape[1]}), weights = kernel.load(kernel.shape);
        dnnl::memory to = allocate({rows, kernel.shape[0]}, result.type);
        std::unordered_map<int, dnnl::memory> arguments = {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}};
        dnnl::memory::desc biasDescription;
        if (bias != nullptr) {
            Tensor summand(bias, "bias");
            requireType(summand, source);
            Dims columns = {kernel.shape[0]};
            require(broadcast(summand.shape, expected) == expected, "bias does not broadcast to the shape of out");
            if (summand.shape != columns) throw Failure(diopiNoImplement, "oneDNN has biases with a number per column");
            arguments[DNNL_ARG_BIAS] = summand.load(columns);
            biasDescription = arguments[DNNL_ARG_BIAS].get_desc();
        }
        dnnl::inner_product_forward::primitive_desc description(engine(), dnnl::prop_kind::forward_inference,
                                                                from.get_desc(), anyFormat(weights), biasDescription,
                                                                to.get_desc());
        arguments[DNNL_ARG_WEIGHTS] = convert(weights, description.weights_desc());
        execute(dnnl::inner_product_forward(description), arguments);
        result.store(to);
    });
}

// The attributes of a convolution along the two spatial axes.
struct Window {
    Dims stride, padding, dilation;
};

static void requireValid(const Window& window) {
    for (size_t i = 0; i < 2; i++) {
        require(window.stride[i] > 0 && window.dilation[i] > 0, "a stride or a dilation is not positive");
        require(window.padding[i] >= 0, "a padding is negative");
    }
}

static void convolve(const Tensor& result, const Tensor& source, const Tensor& kernel, diopiConstTensorHandle_t bias,
                     const Window& window, int64_t groups) {
    const Dims &image = source.shape, &filter = kernel.shape;
    Dims shape = {image[0], filter[0], 0, 0};
    for (size_t i = 0; i < 2; i++) {
        int64_t extent = window.dilation[i] * (filter[i + 2] - 1) + 1;
        int64_t padded = image[i + 2] + 2 * window.padding[i];
        require(padded >= extent, "the kernel is larger than the input");
        shape[i + 2] = (padded - extent) / window.stride[i] + 1;
    }
    requireShape(result, shape);
    dnnl::memory from = source.load(image), to = allocate(shape, result.type);
    dnnl::memory weights = kernel.load({groups, filter[0] / groups, filter[1], filter[2], filter[3]});
    dnnl::memory::desc biasDescription;
    std::unordered_map<int, dnnl::memory> arguments;
    if (bias != nullptr) {
        Tensor summand(bias, "bias");
        requireType(summand, source);
        requireShape(summand, {filter[0]});
        arguments[DNNL_ARG_BIAS] = summand.load(summand.shape);
        biasDescription = arguments[DNNL_ARG_BIAS].get_desc();
    }
    Dims skipped = {window.dilation[0] - 1, window.dilation[1] - 1};
    dnnl::convolution_forward::primitive_desc description(
        engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, anyFormat(from),
        anyFormat(weights), biasDescription, anyFormat(to), window.stride, skipped, window.padding, window.padding);
    dnnl::memory blocked(description.dst_desc(), engine());
    arguments[DNNL_ARG_SRC] = convert(from, description.src_desc());
    arguments[DNNL_ARG_WEIGHTS] = convert(weights, description.weights_desc());
    arguments[DNNL_ARG_DST] = blocked;
    execute(dnnl::convolution_forward(description), arguments);
    result.store(blocked);
}

diopiError_t diopiConvolution2d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, diopiSize_t stride,
                                diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return guarded(__func__, [&] {
        Tensor result(out, "out"), source(input, "input"), kernel(weight, "weight");
        requireType(source, kernel);
        requireType(result, source);
        if (source.rank() == 3) throw Failure(diopiNoImplement, "inputs without a batch axis are not implemented");
        require(source.rank() == 4 && kernel.rank() == 4, "input or weight does not have 4 axes");
        Window window = {spatial(stride, 2, 1), spatial(padding, 2, 0), spatial(dilation, 2, 1)};
        requireValid(window);
        require(groups > 0 && kernel.shape[0] % groups == 0, "groups does not divide the channels of out");
        require(source.shape[1] == groups * kernel.shape[1], "the numbers of channels do not match");
        convolve(result, source, kernel, bias, window, groups);
    });
}
