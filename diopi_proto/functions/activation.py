"""Activation functions and their gradients.

The following holds unless a docstring says otherwise:

- `input` may have any shape, including 0-d and empty shapes, and any strides. `out` has the shape and dtype of `input`.
- A gradient function takes `grad_output`, the gradient of a loss with respect to the forward result. It writes
  `grad_input`, the gradient of the loss with respect to the forward input. All its tensors have the same shape and
  dtype.
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
    """Compute the rectifier max(input, 0).

    A negative element gives +0. An element −0 stays −0.

    Source: torch.relu.
    """


@elementwise(dtypes=numeric, guarantee="exact", inplace="diopiHardtanhInp", backward="diopiHardtanhBackward")
def diopiHardtanh(ctx: Context, out: Out, input: In, min_val: ConvertedScalar, max_val: ConvertedScalar):
    """Clamp input to the range from min_val to max_val.

    The caller passes min_val ≤ max_val; the call need not check it. Both numbers are converted to the dtype of input
    before they are used. If one of them is 0, zeros in input keep their sign.

    Source: torch.nn.functional.hardtanh.
    """


@elementwise(dtypes=floating, guarantee="exact")
def diopiHardtanhBackward(ctx: Context, grad_input: Out, grad_output: In, input: In, min_val: Scalar, max_val: Scalar):
    """Compute the gradient of `diopiHardtanh`: grad_output where min_val < input < max_val, else 0.

    `input` is the input of the forward call. An element equal to a bound gives 0. The result for a NaN in input is
    unspecified.

    Source: torch.ops.aten.hardtanh_backward.
    """


@elementwise(dtypes=floating, inplace="diopiHardswishInp", backward="diopiHardswishBackward")
def diopiHardswish(ctx: Context, out: Out, input: In):
    """Compute input · min(max(input + 3, 0), 6) / 6.

    The result is 0 for input ≤ −3, and input for input ≥ 3. The result for −∞ is unspecified, because PyTorch computes
    −∞ · 0.

    Source: torch.nn.functional.hardswish.
    """


@elementwise(dtypes=floating)
def diopiHardswishBackward(ctx: Context, grad_input: Out, grad_output: In, input: In):
    """Compute the gradient of `diopiHardswish`: grad_output · (input / 3 + 1/2) for −3 < input < 3.

    The gradient is 0 for input ≤ −3, and grad_output for input ≥ 3. `input` is the input of the forward call. The
    result for a NaN in input is unspecified.

    Source: torch.ops.aten.hardswish_backward.
    """


@elementwise(dtypes=numeric, guarantee="exact", inplace="diopiThresholdInp", backward="diopiThresholdBackward")
def diopiThreshold(ctx: Context, out: Out, input: In, threshold: ConvertedScalar, value: ConvertedScalar):
    """Replace the elements that are not above a threshold: return `value` where input ≤ threshold, else input.

    threshold and value are converted to the dtype of input before they are used.

    Source: torch.nn.functional.threshold.
    """


@elementwise(dtypes=numeric, guarantee="exact")
def diopiThresholdBackward(ctx: Context, grad_input: Out, grad_output: In, input: In, threshold: ConvertedScalar):
    """Compute the gradient of `diopiThreshold`: 0 where input ≤ threshold, else grad_output.

    `input` is the input of the forward call. A NaN in input gives grad_output. With threshold 0, this is also the
    gradient of `diopiRelu`; `input` may then be the input or the result of that function.

    Source: torch.ops.aten.threshold_backward.
    """


@elementwise(dtypes=floating, backward="diopiGeluBackward")
def diopiGelu(ctx: Context, out: Out, input: In, approximate: Literal["none", "tanh"]):
    """Compute the Gaussian error linear unit of x = input.

    `approximate` selects the formula. Any other text is rejected.

    - "none": x · Φ(x), where Φ(x) = (1 + erf(x/√2)) / 2 is the distribution function of the standard normal
      distribution.
    - "tanh": x/2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³))).

    The result is ∞ for ∞. It is unspecified for −∞, because PyTorch computes −∞ · 0.

    Source: Hendrycks and Gimpel, "Gaussian error linear units", arXiv:1606.08415; torch.nn.functional.gelu.
    """


@elementwise(dtypes=floating)
def diopiGeluBackward(ctx: Context, grad_input: Out, grad_output: In, input: In, approximate: Literal["none", "tanh"]):
    """Compute the gradient of `diopiGelu` with respect to its input x.

    `approximate` has the value of the forward call. Any other text is rejected.

    - "none": grad_output · (Φ(x) + x · φ(x)), where Φ is as in `diopiGelu` and φ(x) = exp(−x²/2)/√(2π).
    - "tanh": grad_output · ((1 + t)/2 + x/2 · (1 − t²) · √(2/π) · (1 + 0.134145 · x²)), where t = tanh(√(2/π) · (x +
      0.044715 · x³)).

    The result for ±∞ in input is unspecified.

    Source: torch.ops.aten.gelu_backward.
    """


@elementwise(dtypes=floating, inplace="diopiLeakyReluInp", backward="diopiLeakyReluBackward")
def diopiLeakyRelu(ctx: Context, out: Out, input: In, negative_slope: Scalar):
    """Return input where input > 0, else negative_slope · input.

    negative_slope may be any number, also a negative one. A zero in input is also multiplied by it.

    Source: torch.nn.functional.leaky_relu.
    """


@elementwise(dtypes=floating)
def diopiLeakyReluBackward(
    ctx: Context, grad_input: Out, grad_output: In, input: In, negative_slope: Scalar, input_is_result: boolean
):
    """Compute the gradient of `diopiLeakyRelu`: grad_output where input > 0, otherwise negative_slope · grad_output.

    A NaN in input counts as not greater than 0. If `input_is_result` is true, `input` is the result of the forward
    function. A negative `negative_slope` is then rejected, because the sign of the result would differ from the sign of
    the forward input.

    Source: torch.ops.aten.leaky_relu_backward.
    """


@elementwise(
    dtypes=(*real, *complexes), result=promoted_to_floating, inplace="diopiSigmoidInp", backward="diopiSigmoidBackward"
)
def diopiSigmoid(ctx: Context, out: Out, input: In):
    """Compute the logistic function 1 / (1 + exp(−input)).

    The computation does not overflow for real input: the result is 0 for −∞ and 1 for ∞. Integers and bool give
    float32.

    If exp(−input) overflows for a complex input, the result is unspecified: it may be 0, or NaN as in PyTorch. This
    affects real parts below −88.7 in complex64 and below −709.8 in complex128.

    Source: torch.sigmoid.
    """


@elementwise(dtypes=(*floating, *complexes))
def diopiSigmoidBackward(ctx: Context, grad_input: Out, grad_output: In, output: In):
    """Compute the gradient of `diopiSigmoid` from its result: grad_output · conj((1 − output) · output).

    The conjugate conj matters only for complex dtypes.

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
    """Compute the gradient of `diopiSilu`: grad_output · s · (1 + input · (1 − s)), where s = 1 / (1 + exp(−input)).

    `input` is the input of the forward call. The result for ±∞ in input is unspecified.

    Source: torch.ops.aten.silu_backward.
    """


@elementwise(dtypes=floating, selectable_dtypes=floating, backward="diopiSoftmaxBackward")
def diopiSoftmax(ctx: Context, out: Out, input: In, dim: Axis):
    """Compute the softmax along axis `dim`: exp(x − m) / Σ exp(x − m).

    x is an element of input. m is the maximum, and Σ the sum, over the slice along `dim` that contains x. dim is in
    [−rank, rank); a negative dim counts from the last axis. For 0-d input, dim is 0 or −1 and the result is 1.

    Every slice of `out` sums to 1, and −∞ gives 0. A slice that contains ∞ or NaN, or only −∞, gives NaN in all its
    elements. The call first converts input to the dtype of `out`, like the argument `dtype` in PyTorch.

    Source: torch.softmax.
    """


@elementwise(dtypes=floating)
def diopiSoftmaxBackward(ctx: Context, grad_input: Out, grad_output: In, output: In, dim: Axis):
    """Compute the gradient of `diopiSoftmax` from its result y: y · (grad_output − Σ grad_output · y).

    y is `output`. Σ is the sum along axis `dim`. The caller passes the `dim` of the forward call.

    Source: torch.ops.aten._softmax_backward_data.
    """


@elementwise(dtypes=floating, selectable_dtypes=floating, backward="diopiLogSoftmaxBackward")
def diopiLogSoftmax(ctx: Context, out: Out, input: In, dim: Axis):
    """Compute the logarithm of `diopiSoftmax` along axis `dim`: (x − m) − ln Σ exp(x − m).

    x, m, Σ, `dim` and the dtype of `out` are as in `diopiSoftmax`. An element −∞ gives −∞. A slice that contains ∞ or
    NaN, or only −∞, gives NaN in all its elements.

    Source: torch.log_softmax.
    """


@elementwise(dtypes=floating)
def diopiLogSoftmaxBackward(ctx: Context, grad_input: Out, grad_output: In, output: In, dim: Axis):
    """Compute the gradient of `diopiLogSoftmax` from its result y: grad_output − exp(y) · Σ grad_output.

    y is `output`. Σ is the sum along axis `dim`. The caller passes the `dim` of the forward call.

    Source: torch.ops.aten._log_softmax_backward_data.
    """
