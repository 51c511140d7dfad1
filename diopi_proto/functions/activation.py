"""Activation functions and their gradients.

The following holds unless a docstring says otherwise:

- `input` may have any shape, including 0-d and empty shapes, and any strides. `out` has the shape and dtype of `input`.
- A gradient function takes `grad_output`, the gradient of a loss with respect to the forward result, and writes
  `grad_input`, the gradient with respect to the forward input. All its tensors have the same shape and dtype.
- NaN gives NaN.
- A `diopiScalar_t` may contain an integer or a floating-point number for any dtype of the tensor; NULL is rejected.

Source: the PyTorch function of the same name; gradient functions name the ATen function.
"""

from typing import Literal

from diopi_proto.declaration import elementwise
from diopi_proto.dtypes import complexes, floating, numeric, promoted_to_floating, real
from diopi_proto.parameters import Axis, Context, ConvertedScalar, In, Out, Scalar, boolean


@elementwise(dtypes=numeric, guarantee="exact", inplace="diopiReluInp")
def diopiRelu(ctx: Context, out: Out, input: In):
    """Rectifier max(input, 0): +0 for negative input, while −0 stays −0. Source: torch.relu."""


@elementwise(dtypes=numeric, guarantee="exact", inplace="diopiHardtanhInp", backward="diopiHardtanhBackward")
def diopiHardtanh(ctx: Context, out: Out, input: In, min_val: ConvertedScalar, max_val: ConvertedScalar):
    """Clamp input to the range from min_val to max_val.

    min_val ≤ max_val is required. Both numbers are converted to the dtype of input before they are used. If one of them
    is 0, zeros in input keep their sign.
    Source: torch.nn.functional.hardtanh.
    """


@elementwise(dtypes=floating, guarantee="exact")
def diopiHardtanhBackward(ctx: Context, grad_input: Out, grad_output: In, input: In, min_val: Scalar, max_val: Scalar):
    """Gradient of `diopiHardtanh` from its input: grad_output where min_val < input < max_val, else 0.

    Input equal to a bound gives 0; the result for NaN input is unspecified. Source: torch.ops.aten.hardtanh_backward.
    """


@elementwise(dtypes=floating, inplace="diopiHardswishInp", backward="diopiHardswishBackward")
def diopiHardswish(ctx: Context, out: Out, input: In):
    """Input · min(max(input + 3, 0), 6) / 6: 0 up to −3, input from 3 on; the result for −inf is unspecified.

    Source: torch.nn.functional.hardswish.
    """


@elementwise(dtypes=floating)
def diopiHardswishBackward(ctx: Context, grad_input: Out, grad_output: In, input: In):
    """Gradient of `diopiHardswish` from its input: grad_output · (input / 3 + 1/2) for −3 < input < 3.

    0 for input ≤ −3, grad_output for input ≥ 3; unspecified for NaN. Source: torch.ops.aten.hardswish_backward.
    """


@elementwise(dtypes=numeric, guarantee="exact", inplace="diopiThresholdInp", backward="diopiThresholdBackward")
def diopiThreshold(ctx: Context, out: Out, input: In, threshold: ConvertedScalar, value: ConvertedScalar):
    """`value` where input ≤ threshold, else input; both numbers are first converted to input's dtype.

    Source: torch.nn.functional.threshold.
    """


@elementwise(dtypes=numeric, guarantee="exact")
def diopiThresholdBackward(ctx: Context, grad_input: Out, grad_output: In, input: In, threshold: ConvertedScalar):
    """Gradient of `diopiThreshold` from its input: 0 where input ≤ threshold, else grad_output.

    With threshold 0, this is also the gradient of `diopiRelu`, where `input` may be its input or its result. NaN input
    gives grad_output. Source: torch.ops.aten.threshold_backward.
    """


@elementwise(dtypes=floating, backward="diopiGeluBackward")
def diopiGelu(ctx: Context, out: Out, input: In, approximate: Literal["none", "tanh"]):
    """Gaussian error linear unit x · Φ(x), Φ(x) = (1 + erf(x/√2)) / 2, for `approximate` "none".

    "tanh": x/2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³))). Other texts are rejected; the result for −inf is
    unspecified. Source: Hendrycks and Gimpel, "Gaussian error linear units", arXiv:1606.08415;
    torch.nn.functional.gelu.
    """


@elementwise(dtypes=floating)
def diopiGeluBackward(ctx: Context, grad_input: Out, grad_output: In, input: In, approximate: Literal["none", "tanh"]):
    """Gradient of `diopiGelu` from its input x: for `approximate` "none" grad_output · (Φ(x) + x · φ(x)).

    φ(x) = exp(−x²/2)/√(2π). "tanh", with u = √(2/π) · (x + 0.044715 · x³) and t = tanh(u): grad_output · ((1 + t)/2 +
    x/2 · (1 − t²) · √(2/π) · (1 + 0.134145 · x²)). Other texts are rejected; the result for ±inf is unspecified.
    Source: torch.ops.aten.gelu_backward.
    """


@elementwise(dtypes=floating, inplace="diopiLeakyReluInp", backward="diopiLeakyReluBackward")
def diopiLeakyRelu(ctx: Context, out: Out, input: In, negative_slope: Scalar):
    """Input where input > 0, else negative_slope · input. Source: torch.nn.functional.leaky_relu."""


@elementwise(dtypes=floating)
def diopiLeakyReluBackward(
    ctx: Context, grad_input: Out, grad_output: In, input: In, negative_slope: Scalar, input_is_result: boolean
):
    """Compute the gradient of `diopiLeakyRelu`: grad_output where input > 0, otherwise negative_slope · grad_output.

    A NaN in input counts as not greater than 0. If `input_is_result` is true, `input` is the result of the forward
    function. A negative `negative_slope` is then rejected, because the sign of the result would differ from the sign of
    the forward input. Source: torch.ops.aten.leaky_relu_backward.
    """


@elementwise(
    dtypes=(*real, *complexes), result=promoted_to_floating, inplace="diopiSigmoidInp", backward="diopiSigmoidBackward"
)
def diopiSigmoid(ctx: Context, out: Out, input: In):
    """Compute the logistic function 1 / (1 + exp(−input)).

    The computation does not overflow for real input: the result is 0 for −∞ and 1 for ∞. Integers and bool give
    float32. If exp(−input) overflows for a complex input, the result is unspecified: it may be 0, or NaN as in PyTorch.
    This affects real parts below −88.7 in complex64 and below −709.8 in complex128. Source: torch.sigmoid.
    """


@elementwise(dtypes=(*floating, *complexes))
def diopiSigmoidBackward(ctx: Context, grad_input: Out, grad_output: In, output: In):
    """Gradient of `diopiSigmoid` from its result: grad_output · conj((1 − output) · output).

    Source: torch.ops.aten.sigmoid_backward.
    """


@elementwise(dtypes=floating, inplace="diopiSiluInp", backward="diopiSiluBackward")
def diopiSilu(ctx: Context, out: Out, input: In):
    """Compute the sigmoid linear unit input / (1 + exp(−input)).

    The result is ∞ for ∞, and unspecified for −∞.

    Source: torch.nn.functional.silu.
    """


@elementwise(dtypes=floating)
def diopiSiluBackward(ctx: Context, grad_input: Out, grad_output: In, input: In):
    """Gradient of `diopiSilu` from its input: grad_output · s · (1 + input · (1 − s)), s = 1 / (1 + exp(−input)).

    The result for ±inf is unspecified. Source: torch.ops.aten.silu_backward.
    """


@elementwise(dtypes=floating, selectable_dtypes=floating, backward="diopiSoftmaxBackward")
def diopiSoftmax(ctx: Context, out: Out, input: In, dim: Axis):
    """Softmax along axis `dim`: exp(x − m) / Σ exp(x − m), m the largest x of the slice, the sum over the slice.

    −rank ≤ dim < rank; a negative dim counts from the last axis. For 0-d input, dim is 0 or −1 and the result is 1.
    Every slice of `out` sums to 1, and −inf gives 0. A slice that contains +inf or NaN, or only −inf, gives NaN in all
    elements. The call first converts input to the dtype of `out`, like the argument `dtype` in PyTorch. Source:
    torch.softmax.
    """


@elementwise(dtypes=floating)
def diopiSoftmaxBackward(ctx: Context, grad_input: Out, grad_output: In, output: In, dim: Axis):
    """Gradient of `diopiSoftmax` from its result y: y · (grad_output − Σ grad_output · y), the sum along `dim`.

    `dim` is the same as in the forward call. Source: torch.ops.aten._softmax_backward_data.
    """


@elementwise(dtypes=floating, selectable_dtypes=floating, backward="diopiLogSoftmaxBackward")
def diopiLogSoftmax(ctx: Context, out: Out, input: In, dim: Axis):
    """Logarithm of `diopiSoftmax`: (x − m) − ln Σ exp(x − m) along axis `dim`, m the largest x of the slice.

    `dim`, the dtype of `out` and slices without a finite maximum are as in `diopiSoftmax`; −inf gives −inf. Source:
    torch.log_softmax.
    """


@elementwise(dtypes=floating)
def diopiLogSoftmaxBackward(ctx: Context, grad_input: Out, grad_output: In, output: In, dim: Axis):
    """Gradient of `diopiLogSoftmax` from its result y: grad_output − exp(y) · Σ grad_output, the sum along `dim`.

    `dim` is the same as in the forward call. Source: torch.ops.aten._log_softmax_backward_data.
    """
