// Element-wise functions of one tensor, their gradients, and arithmetic of two tensors.
#include <cmath>
#include <limits>

#include "tensor.hpp"

using dnnl::algorithm;

static float number(const diopiScalar_t* scalar, const char* name) {
    require(scalar != nullptr, std::string(name) + " is NULL");
    bool isInteger = scalar->stype <= diopi_dtype_uint64 || scalar->stype == diopi_dtype_bool;
    return isInteger ? static_cast<float>(scalar->ival) : static_cast<float>(scalar->fval);
}

static void apply(diopiConstTensorHandle_t out, diopiConstTensorHandle_t input, algorithm kind, float alpha = 0,
                  float beta = 0) {
    Tensor result(out, "out"), source(input, "input");
    requireType(result, source);
    requireShape(result, source.shape);
    dnnl::memory from = source.load({source.numel}), to = allocate({result.numel}, result.type);
    dnnl::eltwise_forward::primitive_desc description(engine(), dnnl::prop_kind::forward_inference, kind,
                                                      from.get_desc(), to.get_desc(), alpha, beta);
    execute(dnnl::eltwise_forward(description), {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
    result.store(to);
}

#define ELEMENTWISE(NAME, ...)                                                                                       \
    diopiError_t NAME(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {               \
        return guarded(#NAME, [&] { apply(out, input, __VA_ARGS__); });                                              \
    }                                                                                                                \
    diopiError_t NAME##Inp(diopiContextHandle_t, diopiTensorHandle_t input) {                                        \
        return guarded(#NAME "Inp", [&] { apply(input, input, __VA_ARGS__); });                                      \
    }

ELEMENTWISE(diopiRelu, algorithm::eltwise_relu)
ELEMENTWISE(diopiExp, algorithm::eltwise_exp)
ELEMENTWISE(diopiLog, algorithm::eltwise_log)
ELEMENTWISE(diopiSqrt, algorithm::eltwise_sqrt)
ELEMENTWISE(diopiTanh, algorithm::eltwise_tanh)
ELEMENTWISE(diopiSigmoid, algorithm::eltwise_logistic)
ELEMENTWISE(diopiAbs, algorithm::eltwise_abs)
ELEMENTWISE(diopiSilu, algorithm::eltwise_swish, 1.0f)
ELEMENTWISE(diopiHardswish, algorithm::eltwise_hardswish, 1.0f / 6, 0.5f)

diopiError_t diopiLeakyRelu(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            const diopiScalar_t* negative_slope) {
    return guarded(__func__, [&] {
        apply(out, input, algorithm::eltwise_relu, number(negative_slope, "negative_slope"));
    });
}

diopiError_t diopiGelu(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const char* approximate) {
    return guarded(__func__, [&] {
        std::string form(approximate);
        require(form == "none" || form == "tanh", "approximate is '" + form + "', expected 'none' or 'tanh'");
        apply(out, input, form == "none" ? algorithm::eltwise_gelu_erf : algorithm::eltwise_gelu_tanh);
    });
}

// Gradients. `forward` is the input or, for algorithms that end in _use_dst_for_bwd, the result of the forward function.
static void applyGradient(diopiTensorHandle_t grad_input, diopiConstTensorHandle_t grad_output,
                          diopiConstTensorHandle_t forward, algorithm kind, bool usesResult) {
    Tensor result(grad_input, "grad_input"), gradient(grad_output, "grad_output");
    Tensor source(forward, usesResult ? "output" : "input");
    for (const Tensor* operand : {&gradient, &source}) {
        requireType(result, *operand);
        requireShape(result, operand->shape);
    }
    dnnl::memory data = source.load({source.numel}), from = gradient.load({gradient.numel});
    dnnl::memory to = allocate({result.numel}, result.type);
    dnnl::eltwise_forward::primitive_desc hint(engine(), dnnl::prop_kind::forward_training, kind, data.get_desc(),
                                               data.get_desc());
    dnnl::eltwise_backward::primitive_desc description(engine(), kind, to.get_desc(), from.get_desc(), data.get_desc(),
                                                       0.0f, 0.0f, hint);
    execute(dnnl::eltwise_backward(description), {{usesResult ? DNNL_ARG_DST : DNNL_ARG_SRC, data},
                                                  {DNNL_ARG_DIFF_DST, from},
                                                  {DNNL_ARG_DIFF_SRC, to}});
    result.store(to);
}

diopiError_t diopiThresholdBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    const diopiScalar_t* threshold) {
    return guarded(__func__, [&] {
        if (number(threshold, "threshold") != 0) throw Failure(diopiNoImplement, "only threshold 0 is implemented");
        applyGradient(grad_input, grad_output, input, algorithm::eltwise_relu, false);
    });
}

diopiError_t diopiSigmoidBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                  diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output) {
    return guarded(__func__, [&] {
        applyGradient(grad_input, grad_output, output, algorithm::eltwise_logistic_use_dst_for_bwd, true);
    });
}

diopiError_t diopiTanhBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                               diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output) {
    return guarded(__func__, [&] {
        applyGradient(grad_input, grad_output, output, algorithm::eltwise_tanh_use_dst_for_bwd, true);
    });
}

static void combine(diopiConstTensorHandle_t out, diopiConstTensorHandle_t input, diopiConstTensorHandle_t other,
                    algorithm kind) {
    Tensor result(out, "out"), left(input, "input"), right(other, "other");
    requireType(left, right);
    requireType(result, left);
    requireShape(result, broadcast(left.shape, right.shape));
    Dims line = {result.numel};
    dnnl::memory a = left.load(line, result.shape), b = right.load(line, result.shape);
    dnnl::memory to = allocate(line, result.type);
    dnnl::binary::primitive_desc description(engine(), kind, a.get_desc(), b.get_desc(), to.get_desc());
    execute(dnnl::binary(description), {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, to}});
    result.store(to);
}

static void requireAlphaIsOne(const diopiScalar_t* alpha) {
    if (number(alpha, "alpha") != 1) throw Failure(diopiNoImplement, "only alpha 1 is implemented");
}

diopiError_t diopiAdd(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, const diopiScalar_t* alpha) {
    return guarded(__func__, [&] {
        requireAlphaIsOne(alpha);
        combine(out, input, other, algorithm::binary_add);
    });
}

diopiError_t diopiSub(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, const diopiScalar_t* alpha) {
    return guarded(__func__, [&] {
        requireAlphaIsOne(alpha);
        combine(out, input, other, algorithm::binary_sub);
    });
}

diopiError_t diopiMul(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other) {
    return guarded(__func__, [&] { combine(out, input, other, algorithm::binary_mul); });
}

diopiError_t diopiDiv(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, diopiRoundMode_t rounding_mode) {
    return guarded(__func__, [&] {
        require(rounding_mode < RoundModeEND, "rounding_mode is unknown");
        if (rounding_mode != RoundModeNone) throw Failure(diopiNoImplement, "rounding is not implemented");
        combine(out, input, other, algorithm::binary_div);
    });
}

diopiError_t diopiMaximum(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          diopiConstTensorHandle_t other) {
    return guarded(__func__, [&] { combine(out, input, other, algorithm::binary_max); });
}

diopiError_t diopiMinimum(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          diopiConstTensorHandle_t other) {
    return guarded(__func__, [&] { combine(out, input, other, algorithm::binary_min); });
}
