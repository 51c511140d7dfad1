// Pooling over one to three spatial axes.
#include <utility>

#include "tensor.hpp"

using dnnl::algorithm;

// The attributes of a pooling operator along the spatial axes.
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
    size_t axes = pooling.kernel.size();
    bool hasBatch = source.shape.size() == axes + 2;
    require(hasBatch || source.shape.size() == axes + 1, "input has another number of axes than expected");
    Dims image = source.shape, behind(axes), skipped(axes);
    if (!hasBatch) image.insert(image.begin(), 1);
    Dims shape = image;
    for (size_t i = 0; i < axes; i++) {
        std::tie(shape[i + 2], behind[i]) = countWindows(pooling, i, image[i + 2]);
        skipped[i] = pooling.dilation[i] - 1;
    }
    requireShape(result, hasBatch ? shape : Dims(shape.begin() + 1, shape.end()));
    dnnl::memory from = source.load(image), to = allocate(shape, result.type);
    dnnl::pooling_forward::primitive_desc description(engine(), dnnl::prop_kind::forward_inference, kind,
                                                      from.get_desc(), to.get_desc(), pooling.stride, pooling.kernel,
                                                      skipped, pooling.padding, behind);
    execute(dnnl::pooling_forward(description), {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
    result.store(to);
}

static Pooling attributesOf(size_t axes, const diopiSize_t& kernel_size, const diopiSize_t& stride,
                            const diopiSize_t& padding, const Dims& dilation, bool ceil_mode) {
    Dims kernel = spatial(kernel_size, axes, 1);
    Dims step = stride.len == 0 ? kernel : spatial(stride, axes, 1);
    return {kernel, step, spatial(padding, axes, 0), dilation, ceil_mode};
}

static algorithm averageOf(bool ceil_mode, bool count_include_pad, const int64_t* divisor_override) {
    if (divisor_override != nullptr) throw Failure(diopiNoImplement, "divisor_override is not implemented");
    if (ceil_mode && count_include_pad) {
        throw Failure(diopiNoImplement, "oneDNN counts padding that only ceil_mode adds");
    }
    return count_include_pad ? algorithm::pooling_avg_include_padding : algorithm::pooling_avg_exclude_padding;
}

#define MAX_POOL(NAME, AXES)                                                                                         \
    diopiError_t NAME(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,                 \
                      diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation,        \
                      bool ceil_mode) {                                                                              \
        return guarded(#NAME, [&] {                                                                                  \
            Dims distance = spatial(dilation, AXES, 1);                                                              \
            pool(out, input, attributesOf(AXES, kernel_size, stride, padding, distance, ceil_mode),                  \
                 algorithm::pooling_max);                                                                            \
        });                                                                                                          \
    }

MAX_POOL(diopiMaxPool1d, 1)
MAX_POOL(diopiMaxPool2d, 2)
MAX_POOL(diopiMaxPool3d, 3)

static void averagePool(diopiTensorHandle_t out, diopiConstTensorHandle_t input, size_t axes, diopiSize_t kernel_size,
                        diopiSize_t stride, diopiSize_t padding, bool ceil_mode, algorithm kind) {
    pool(out, input, attributesOf(axes, kernel_size, stride, padding, Dims(axes, 1), ceil_mode), kind);
}

diopiError_t diopiAvgPool1d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool ceil_mode,
                            bool count_include_pad) {
    return guarded(__func__, [&] {
        averagePool(out, input, 1, kernel_size, stride, padding, ceil_mode,
                    averageOf(ceil_mode, count_include_pad, nullptr));
    });
}

#define AVERAGE_POOL(NAME, AXES)                                                                                     \
    diopiError_t NAME(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,                 \
                      diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool ceil_mode,              \
                      bool count_include_pad, const int64_t* divisor_override) {                                     \
        return guarded(#NAME, [&] {                                                                                  \
            averagePool(out, input, AXES, kernel_size, stride, padding, ceil_mode,                                   \
                        averageOf(ceil_mode, count_include_pad, divisor_override));                                  \
        });                                                                                                          \
    }

AVERAGE_POOL(diopiAvgPool2d, 2)
AVERAGE_POOL(diopiAvgPool3d, 3)
