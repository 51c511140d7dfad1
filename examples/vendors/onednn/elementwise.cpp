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

diopiError_t diopiLeakyReluInp(diopiContextHandle_t context, diopiTensorHandle_t input,
                               const diopiScalar_t* negative_slope) {
    return diopiLeakyRelu(context, input, input, negative_slope);
}

diopiError_t diopiHardtanh(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                           const diopiScalar_t* min_val, const diopiScalar_t* max_val) {
    return guarded(__func__, [&] {
        apply(out, input, algorithm::eltwise_clip_v2, number(min_val, "min_val"), number(max_val, "max_val"));
    });
}

diopiError_t diopiHardtanhInp(diopiContextHandle_t context, diopiTensorHandle_t input, const diopiScalar_t* min_val,
                              const diopiScalar_t* max_val) {
    return diopiHardtanh(context, input, input, min_val, max_val);
}

static algorithm geluOf(const std::string& form) {
    require(form == "none" || form == "tanh", "approximate is '" + form + "', expected 'none' or 'tanh'");
    return form == "none" ? algorithm::eltwise_gelu_erf : algorithm::eltwise_gelu_tanh;
}

diopiError_t diopiGelu(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const char* approximate) {
    return guarded(__func__, [&] { apply(out, input, geluOf(approximate)); });
}

// Gradients. `forward` is the input or, for algorithms that end in _use_dst_for_bwd, the result of the forward function.
static void applyGradient(diopiTensorHandle_t grad_input, diopiConstTensorHandle_t grad_output,
                          diopiConstTensorHandle_t forward, algorithm kind, bool usesResult, float alpha = 0,
                          float beta = 0) {
    Tensor result(grad_input, "grad_input"), gradient(grad_output, "grad_output");
    Tensor source(forward, usesResult ? "output" : "input");
    for (const Tensor* operand : {&gradient, &source}) {
        requireType(result, *operand);
        requireShape(result, operand->shape);
    }
    dnnl::memory data = source.load({source.numel}), from = gradient.load({gradient.numel});
    dnnl::memory to = allocate({result.numel}, result.type);
    dnnl::eltwise_forward::primitive_desc hint(engine(), dnnl::prop_kind::forward_training, kind, data.get_desc(),
                                               data.get_desc(), alpha, beta);
    dnnl::eltwise_backward::primitive_desc description(engine(), kind, to.get_desc(), from.get_desc(), data.get_desc(),
                                                       alpha, beta, hint);
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

diopiError_t diopiLeakyReluBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    const diopiScalar_t* negative_slope, bool input_is_result) {
    return guarded(__func__, [&] {
        float slope = number(negative_slope, "negative_slope");
        require(!input_is_result || slope >= 0, "negative_slope is negative, so that the result has no gradient");
        algorithm kind = input_is_result ? algorithm::eltwise_relu_use_dst_for_bwd : algorithm::eltwise_relu;
        applyGradient(grad_input, grad_output, input, kind, input_is_result, slope);
    });
}

diopiError_t diopiHardtanhBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                   diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                   const diopiScalar_t* min_val, const diopiScalar_t* max_val) {
    return guarded(__func__, [&] {
        applyGradient(grad_input, grad_output, input, algorithm::eltwise_clip_v2, false, number(min_val, "min_val"),
                      number(max_val, "max_val"));
    });
}

diopiError_t diopiGeluBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                               diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                               const char* approximate) {
    return guarded(__func__, [&] { applyGradient(grad_input, grad_output, input, geluOf(approximate), false); });
}

diopiError_t diopiSiluBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                               diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input) {
    return guarded(__func__, [&] {
        applyGradient(grad_input, grad_output, input, algorithm::eltwise_swish, false, 1.0f);
    });
}

diopiError_t diopiHardswishBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input) {
    return guarded(__func__, [&] {
        applyGradient(grad_input, grad_output, input, algorithm::eltwise_hardswish, false, 1.0f / 6, 0.5f);
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

#define SUM(NAME, KIND)                                                                                              \
    diopiError_t NAME(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,                 \
                      diopiConstTensorHandle_t other, const diopiScalar_t* alpha) {                                  \
        return guarded(#NAME, [&] {                                                                                  \
            requireAlphaIsOne(alpha);                                                                                \
            combine(out, input, other, KIND);                                                                        \
        });                                                                                                          \
    }                                                                                                                \
    diopiError_t NAME##Inp(diopiContextHandle_t context, diopiTensorHandle_t input, diopiConstTensorHandle_t other,  \
                           const diopiScalar_t* alpha) {                                                             \
        return NAME(context, input, input, other, alpha);                                                            \
    }

SUM(diopiAdd, algorithm::binary_add)
SUM(diopiSub, algorithm::binary_sub)

#define BINARY(NAME, KIND)                                                                                           \
    diopiError_t NAME(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,                 \
                      diopiConstTensorHandle_t other) {                                                              \
        return guarded(#NAME, [&] { combine(out, input, other, KIND); });                                            \
    }

BINARY(diopiMul, algorithm::binary_mul)
BINARY(diopiMaximum, algorithm::binary_max)
BINARY(diopiMinimum, algorithm::binary_min)
BINARY(diopiClampMax, algorithm::binary_min)
BINARY(diopiClampMin, algorithm::binary_max)

#define BINARY_IN_PLACE(NAME)                                                                                        \
    diopiError_t NAME##Inp(diopiContextHandle_t context, diopiTensorHandle_t input, diopiConstTensorHandle_t other) { \
        return NAME(context, input, input, other);                                                                   \
    }

BINARY_IN_PLACE(diopiMul)
BINARY_IN_PLACE(diopiClampMax)
BINARY_IN_PLACE(diopiClampMin)

diopiError_t diopiDiv(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, diopiRoundMode_t rounding_mode) {
    return guarded(__func__, [&] {
        require(rounding_mode < RoundModeEND, "rounding_mode is unknown");
        if (rounding_mode != RoundModeNone) throw Failure(diopiNoImplement, "rounding is not implemented");
        combine(out, input, other, algorithm::binary_div);
    });
}

diopiError_t diopiDivInp(diopiContextHandle_t context, diopiTensorHandle_t input, diopiConstTensorHandle_t other,
                         diopiRoundMode_t rounding_mode) {
    return diopiDiv(context, input, input, other, rounding_mode);
}

static void compare(diopiConstTensorHandle_t out, diopiConstTensorHandle_t input, diopiConstTensorHandle_t other,
                    algorithm kind) {
    Tensor result(out, "out", true), left(input, "input"), right(other, "other");
    requireType(left, right);
    requireShape(result, broadcast(left.shape, right.shape));
    Dims line = {result.numel};
    dnnl::memory a = left.load(line, result.shape), b = right.load(line, result.shape), to = allocate(line, Type::u8);
    dnnl::binary::primitive_desc description(engine(), kind, a.get_desc(), b.get_desc(), to.get_desc());
    execute(dnnl::binary(description), {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, to}});
    result.store(to);
}

#define COMPARISON(NAME, KIND)                                                                                       \
    diopiError_t NAME(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,                 \
                      diopiConstTensorHandle_t other) {                                                              \
        return guarded(#NAME, [&] { compare(out, input, other, KIND); });                                            \
    }                                                                                                                \
    BINARY_IN_PLACE(NAME)

COMPARISON(diopiEq, algorithm::binary_eq)
COMPARISON(diopiNe, algorithm::binary_ne)
COMPARISON(diopiGe, algorithm::binary_ge)
COMPARISON(diopiGt, algorithm::binary_gt)
COMPARISON(diopiLe, algorithm::binary_le)
COMPARISON(diopiLt, algorithm::binary_lt)
