"""Unary element-wise functions, and the gradient of tanh.

Unless a docstring says otherwise, `input` may have any shape, including 0-d and empty shapes, and any strides. `out`
has the shape of `input`. NaN gives NaN. Floating input gives a result of the same dtype; functions that compute a real
number from integer or bool input give float32.

Source: the PyTorch function of the same name.
"""

from diopi_proto.declaration import elementwise
from diopi_proto.dtypes import (
    all_dtypes,
    boolean,
    complexes,
    component,
    floating,
    integral,
    numeric,
    promoted_to_floating,
    real,
    truth,
)
from diopi_proto.parameters import Context, In, Out


@elementwise(dtypes=(*numeric, *complexes, *boolean), result=component, guarantee="exact", inplace="diopiAbsInp")
def diopiAbs(ctx: Context, out: Out, input: In):
    """Compute the absolute value |input|.

    For complex numbers, the result is the modulus, which is real and is rounded. All other results are exact. The
    smallest signed integer stays as it is, because its dtype cannot represent the absolute value. bool values do not
    change.

    Source: torch.abs.
    """


@elementwise(dtypes=(*numeric, *complexes), guarantee="exact", inplace="diopiNegInp")
def diopiNeg(ctx: Context, out: Out, input: In):
    """Compute −input.

    A floating-point zero changes its sign. Integers wrap around: the negative of the smallest integer is the smallest
    integer.

    Source: torch.neg.
    """


@elementwise(dtypes=real, guarantee="exact")
def diopiSign(ctx: Context, out: Out, input: In):
    """Return the sign of each element: −1, 0 or 1 in the dtype of input.

    The result is 0 for zeros of either sign and for NaN.

    Source: torch.sign.
    """


@elementwise(dtypes=all_dtypes, guarantee="exact", inplace="diopiSgnInp")
def diopiSgn(ctx: Context, out: Out, input: In):
    """Compute the sign of a real input as `diopiSign` does, and input / |input| for a complex input.

    For a complex input, the quotient is rounded, and it is 0 if input is 0. |input| is the modulus. bool values do not
    change.

    Source: torch.sgn.
    """


@elementwise(dtypes=numeric, guarantee="exact", inplace="diopiFloorInp")
def diopiFloor(ctx: Context, out: Out, input: In):
    """Return the largest integer ≤ input, in the dtype of input.

    −0.0, infinities and integers are unchanged.

    Source: torch.floor.
    """


@elementwise(dtypes=numeric, guarantee="exact", inplace="diopiCeilInp")
def diopiCeil(ctx: Context, out: Out, input: In):
    """Return the smallest integer ≥ input, in the dtype of input.

    Numbers between −1 and 0 give −0.0. −0.0, infinities and integers are unchanged.

    Source: torch.ceil.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiSqrtInp")
def diopiSqrt(ctx: Context, out: Out, input: In):
    """Compute the square root √input.

    The result is NaN for negative numbers, −0 for −0, and ∞ for ∞.

    Source: torch.sqrt.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiRsqrtInp")
def diopiRsqrt(ctx: Context, out: Out, input: In):
    """Compute the reciprocal square root 1/√input.

    The result is ∞ for 0, −∞ for −0, 0 for ∞, and NaN for negative numbers.

    Source: torch.rsqrt.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiReciprocalInp")
def diopiReciprocal(ctx: Context, out: Out, input: In):
    """Compute the reciprocal 1/input.

    The result is ∞ for 0, −∞ for −0, 0 for ∞, and −0 for −∞.

    Source: torch.reciprocal.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiSinInp")
def diopiSin(ctx: Context, out: Out, input: In):
    """Compute the sine of input, an angle in radians.

    The result is NaN for ±∞.

    Source: torch.sin.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiCosInp")
def diopiCos(ctx: Context, out: Out, input: In):
    """Compute the cosine of input, an angle in radians.

    The result is NaN for ±∞.

    Source: torch.cos.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiTanInp")
def diopiTan(ctx: Context, out: Out, input: In):
    """Compute the tangent of input, an angle in radians.

    The result is NaN for ±∞.

    Source: torch.tan.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiAsinInp")
def diopiAsin(ctx: Context, out: Out, input: In):
    """Compute the arc sine in radians, in the range [−π/2, π/2].

    The result is NaN outside [−1, 1].

    Source: torch.asin.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiAcosInp")
def diopiAcos(ctx: Context, out: Out, input: In):
    """Compute the arc cosine in radians, in the range [0, π].

    The result is NaN outside [−1, 1].

    Source: torch.acos.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiAtanInp")
def diopiAtan(ctx: Context, out: Out, input: In):
    """Compute the arc tangent in radians, in the range [−π/2, π/2].

    Source: torch.atan.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiSinhInp")
def diopiSinh(ctx: Context, out: Out, input: In):
    """Compute the hyperbolic sine (exp(input) − exp(−input)) / 2.

    The result is ±∞ for ±∞ and where it overflows, and −0 for −0.

    Source: torch.sinh.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiCoshInp")
def diopiCosh(ctx: Context, out: Out, input: In):
    """Compute the hyperbolic cosine (exp(input) + exp(−input)) / 2.

    The result is ∞ for ±∞ and where it overflows.

    Source: torch.cosh.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiTanhInp", backward="diopiTanhBackward")
def diopiTanh(ctx: Context, out: Out, input: In):
    """Compute the hyperbolic tangent sinh(input) / cosh(input), without overflow.

    The result is ±1 for ±∞, and −0 for −0.

    Source: torch.tanh.
    """


@elementwise(dtypes=floating)
def diopiTanhBackward(ctx: Context, grad_input: Out, grad_output: In, output: In):
    """Compute the gradient of `diopiTanh` from its result: grad_input = grad_output · (1 − output²).

    The three tensors have the same shape and dtype.

    Source: torch.ops.aten.tanh_backward.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiAsinhInp")
def diopiAsinh(ctx: Context, out: Out, input: In):
    """Compute the inverse hyperbolic sine ln(x + √(x² + 1)), where x is input.

    The result is ±∞ for ±∞.

    Source: torch.asinh.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiAcoshInp")
def diopiAcosh(ctx: Context, out: Out, input: In):
    """Compute the inverse hyperbolic cosine ln(x + √(x² − 1)), where x is input. The result is not negative.

    The result is ∞ for ∞, and NaN below 1.

    Source: torch.acosh.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiAtanhInp")
def diopiAtanh(ctx: Context, out: Out, input: In):
    """Compute the inverse hyperbolic tangent ln((1 + x) / (1 − x)) / 2, where x is input.

    The result is ±∞ for ±1, and NaN outside [−1, 1].

    Source: torch.atanh.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiExpInp")
def diopiExp(ctx: Context, out: Out, input: In):
    """Compute the exponential function e^input.

    The result is 0 for −∞, and ∞ where it overflows.

    Source: torch.exp.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiExpm1Inp")
def diopiExpm1(ctx: Context, out: Out, input: In):
    """Compute e^input − 1 without loss of accuracy near 0.

    The result is −1 for −∞, and ∞ where it overflows.

    Source: torch.expm1.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiLogInp")
def diopiLog(ctx: Context, out: Out, input: In):
    """Compute the natural logarithm.

    The result is −∞ for ±0, ∞ for ∞, and NaN for negative numbers.

    Source: torch.log.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiLog2Inp")
def diopiLog2(ctx: Context, out: Out, input: In):
    """Compute the logarithm to base 2.

    The result is −∞ for ±0, ∞ for ∞, and NaN for negative numbers.

    Source: torch.log2.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiLog10Inp")
def diopiLog10(ctx: Context, out: Out, input: In):
    """Compute the logarithm to base 10.

    The result is −∞ for ±0, ∞ for ∞, and NaN for negative numbers.

    Source: torch.log10.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiLog1pInp")
def diopiLog1p(ctx: Context, out: Out, input: In):
    """Compute ln(1 + input) without loss of accuracy near 0.

    The result is −∞ for −1, and NaN below −1.

    Source: torch.log1p.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiErfInp")
def diopiErf(ctx: Context, out: Out, input: In):
    """Compute the error function 2/√π · ∫₀ˣ exp(−t²) dt, where x is input.

    The result is ±1 for ±∞.

    Source: torch.erf.
    """


@elementwise(dtypes=real, result=promoted_to_floating, inplace="diopiErfinvInp")
def diopiErfinv(ctx: Context, out: Out, input: In):
    """Compute the inverse of the error function: the number y with erf(y) = input (`diopiErf`).

    The result is ±∞ for ±1, and NaN outside [−1, 1].

    Source: torch.erfinv.
    """


@elementwise(dtypes=all_dtypes, result=truth)
def diopiIsNan(ctx: Context, out: Out, input: In):
    """Return true where input is NaN; a complex number is NaN if either part is NaN.

    The result is bool. It is false everywhere for integers and bool.

    Source: torch.isnan.
    """


@elementwise(dtypes=integral, inplace="diopiBitwiseNotInp")
def diopiBitwiseNot(ctx: Context, out: Out, input: In):
    """Invert every bit of an integer, or negate a bool element logically.

    Source: torch.bitwise_not.
    """


@elementwise(dtypes=all_dtypes, result=truth, inplace="diopiLogicalNotInp")
def diopiLogicalNot(ctx: Context, out: Out, input: In):
    """Return true where input is zero.

    The result is bool, and NaN counts as nonzero. The in-place form writes 0 and 1 in the dtype of input.

    Source: torch.logical_not.
    """
