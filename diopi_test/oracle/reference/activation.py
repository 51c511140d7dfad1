"""Activation functions and their gradients.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Sources: D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units", 2016 (GELU); S. Elfwing et al., "Sigmoid-Weighted
Linear Units", 2017 (SiLU); A. Howard et al., "Searching for MobileNetV3", 2019 (hardswish); PyTorch for the remaining
definitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from diopi_proto.types import Dtype
from diopi_test.oracle.reference import PartlySpecified, WithTerms, overridable, reference
from diopi_test.oracle.reference.sums import relative_terms, sum_terms
from lib_rt.formats import format_of

Array = NDArray[Any]


@reference("diopiRelu")
def relu(input):
    """Return max(x, 0); a zero keeps its sign."""
    return np.where(input < 0, 0, input)  # −0 stays −0


@reference("diopiHardtanh")
def hardtanh(input, min_val, max_val):
    """Return x limited to the range from min_val to max_val."""
    if min_val > max_val:
        raise ValueError(f"min_val is {min_val}, expected at most {max_val}, which is max_val")
    return np.where(input < min_val, min_val, np.where(input > max_val, max_val, input))  # −0 stays −0 if a bound is 0


@reference("diopiHardtanhBackward")
def hardtanh_backward(grad_output, input, min_val, max_val):
    """Return 0 where x ≤ min_val or x ≥ max_val, else grad_output."""
    return np.where((input <= min_val) | (input >= max_val), 0, grad_output)


@reference("diopiHardswish")
def hardswish(input):
    """Return x · min(max(x + 3, 0), 6) / 6."""
    return input * np.minimum(np.maximum(input + 3, 0), 6) / 6


@reference("diopiHardswishBackward")
def hardswish_backward(grad_output, input):
    """Return grad_output times 0 for x ≤ −3, 1 for x ≥ 3, and x / 3 + ½ between them."""
    inside = grad_output * (input / 3 + 0.5)
    value = np.where(input <= -3, 0, np.where(input >= 3, grad_output, inside))
    # input / 3, which may be rounded, cancels ½ at −1.5, so the remaining zero has either sign
    return WithTerms(value, np.where(np.abs(input) < 3, np.abs(grad_output) / 2, 0))


@reference("diopiThreshold")
def threshold(input, threshold, value):
    """Return `value` where x ≤ threshold, else x."""
    return np.where(input <= threshold, value, input)


@reference("diopiThresholdBackward")
def threshold_backward(grad_output, input, threshold):
    """Return 0 where x ≤ threshold, else grad_output."""
    return np.where(input <= threshold, 0, grad_output)


def _tanh_argument(x: Array) -> tuple[Array, Array]:
    """Return u = √(2/π) · (x + 0.044715 · x³), the argument of tanh in the approximate GELU, and its derivative."""
    scale = np.sqrt(2 / np.pi)
    return scale * (x + 0.044715 * x**3), scale * (1 + 3 * 0.044715 * x**2)


@overridable
def tanh_weight(u: Array) -> Array:
    """Return (1 + tanh(u)) / 2, without the cancellation of 1 and tanh at negative u."""
    return np.asanyarray(special.expit(2 * u))


@reference("diopiGelu")
def gelu(input, approximate):
    """Return x · Φ(x), with Φ the normal distribution function, or with its tanh approximation."""
    weight = special.ndtr(input) if approximate == "none" else tanh_weight(_tanh_argument(input)[0])
    # 1 + erf and 1 + tanh cancel at negative x, which leaves errors of size eps · |x| / 2
    return WithTerms(input * weight, np.where((input < 0) & (weight > 0), -input / 2, 0), signed=True)


@reference("diopiGeluBackward")
def gelu_backward(grad_output, input, approximate):
    """Return grad_output · (Φ(x) + x · Φ′(x)), with the exact Φ or its tanh approximation."""
    if approximate == "none":
        weight = special.ndtr(input)
        slope = np.exp(-(input**2) / 2) / np.sqrt(2 * np.pi)
        slope_terms = slope
    else:
        u, du = _tanh_argument(input)
        weight = tanh_weight(u)
        slope = 2 * weight * tanh_weight(-u) * du  # (1 - tanh²(u)) / 2 · du
        slope_terms = np.where(slope > 0, du / 2, 0)  # 1 - t² cancels
    # the two addends cancel near x = -0.75, and 1 + erf, 1 + tanh at negative x
    terms = np.where((input < 0) & (weight > 0), 0.5, 0) + np.abs(input) * slope_terms
    return WithTerms(grad_output * (weight + input * slope), np.abs(grad_output) * terms, signed=True)


@reference("diopiLeakyRelu")
def leaky_relu(input, negative_slope):
    """Return x where x > 0, else negative_slope · x."""
    return np.where(input > 0, input, negative_slope * input)


@reference("diopiLeakyReluBackward")
def leaky_relu_backward(grad_output, input, negative_slope, input_is_result):
    """Return grad_output where x > 0, else negative_slope · grad_output."""
    if input_is_result and negative_slope < 0:
        raise ValueError(f"negative_slope is {negative_slope}, expected at least 0 where the input is the result")
    return np.where(input > 0, grad_output, negative_slope * grad_output)


@reference("diopiSigmoid")
def sigmoid(input, *, out):
    """Return 1 / (1 + e⁻ˣ); for complex x, the result is unspecified where e⁻ˣ overflows in the result's type."""
    if not np.iscomplexobj(input):
        return special.expit(input.astype(np.float64))
    result = 1 / (1 + np.exp(-input))
    computed_in = out.dtype or Dtype.complex64
    far = (input.real < -np.log(format_of(computed_in).largest)) & np.isfinite(input)  # exp(−x) overflows
    return PartlySpecified(np.where(far, 0, result), ~far) if far.any() else result


@reference("diopiSigmoidBackward")
def sigmoid_backward(grad_output, output):
    """Return grad_output · conj((1 − y) · y), where y is the result of the sigmoid."""
    return grad_output * np.conj((1 - output) * output)


@reference("diopiSilu")
def silu(input):
    """Return x · σ(x), where σ is the sigmoid."""
    return input * special.expit(input)


@reference("diopiSiluBackward")
def silu_backward(grad_output, input):
    """Return grad_output · σ(x) · (1 + x · (1 − σ(x)))."""
    s, complement = special.expit(input), special.expit(-input)
    # 1 - s cancels at positive x, and the sum 1 + x · (1 - s) near x = -1.28
    terms = np.where(complement > 0, np.abs(grad_output) * s * (1 + np.abs(input)), 0)
    return WithTerms(grad_output * s * (1 + input * complement), terms, signed=True)


def _subtract_max(input: Array, dim: int) -> Any:
    """Return x − m, where m is the largest element of the slice along `dim`."""
    return input - np.max(input, axis=dim, keepdims=True, initial=-np.inf)


@reference("diopiSoftmax")
def softmax(input, dim):
    """Return e^(x − m) / Σ e^(x − m) along `dim`, where m is the largest element of the slice."""
    e = np.exp(_subtract_max(np.atleast_1d(input), dim))
    total = np.sum(e, axis=dim, keepdims=True)
    # the terms are those of the divisor, whose relative error every weight has
    terms = e / total * relative_terms(e, dim)
    return WithTerms((e / total).reshape(input.shape), terms.reshape(input.shape))


@reference("diopiSoftmaxBackward")
def softmax_backward(grad_output, output, dim):
    """Return y · (g − Σ g · y) along `dim`, where y is the result of softmax and g is grad_output."""
    g, y = np.atleast_1d(grad_output), np.atleast_1d(output)
    total = np.sum(g * y, axis=dim, keepdims=True)
    # a dot product of the slice's length, which cancels against grad_output
    terms = np.abs(y) * sum_terms(g * y, dim, keepdims=True)
    return WithTerms((y * (g - total)).reshape(output.shape), terms.reshape(output.shape))


@reference("diopiLogSoftmax")
def log_softmax(input, dim):
    """Return x − m − ln Σ e^(x − m) along `dim`, where m is the largest element of the slice."""
    shifted = _subtract_max(np.atleast_1d(input), dim)
    e = np.exp(shifted)
    total = np.sum(e, axis=dim, keepdims=True)
    result = (shifted - np.log(total)).reshape(input.shape)
    # the error of the total, and its rounding by at least eps, change its logarithm, however small the logarithm is
    terms = np.broadcast_to(relative_terms(e, dim), shifted.shape)
    return WithTerms(result, terms.reshape(input.shape), 1.0)


@reference("diopiLogSoftmaxBackward")
def log_softmax_backward(grad_output, output, dim):
    """Return g − e^y · Σ g along `dim`, where y is the result of log-softmax and g is grad_output."""
    g, y = np.atleast_1d(grad_output), np.atleast_1d(output)
    total = np.sum(g, axis=dim, keepdims=True)
    # the sum of a slice, then a product that cancels against grad_output
    terms = np.exp(y) * (np.abs(total) + sum_terms(g, dim, keepdims=True))
    return WithTerms((g - np.exp(y) * total).reshape(output.shape), terms.reshape(output.shape))
