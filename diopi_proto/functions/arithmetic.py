"""Binary and ternary element-wise functions: arithmetic, bounds, comparison and logic, with their scalar forms.

The following holds unless a docstring says otherwise:

- Tensor inputs may have any shape, including 0-d and empty shapes. They broadcast against each other: axes are aligned
  at the last one, and an axis of size 1 repeats. `out` has the broadcast shape; in in-place forms `input` must have it.
- Inputs may differ in dtype. The call first converts them to their common type, which is the type of the result.
  Integers wrap around.
- The categories of types are bool < integer < floating < complex. If a `diopiScalar_t` has a higher category than the
  tensors, it determines the common type: an integer gives int64, and a floating-point number gives float32. Otherwise,
  only the tensors determine the common type. complex64 tensors stay complex64.
- If the common type is an integer type, the number is converted to it and wraps around; −1 becomes 255 in uint8.
  There are two exceptions: an exponent, and a number in a division with RoundModeNone, keep their values.
- If the common type is floating, the number keeps its precision. Only comparisons convert it to the common type.
- The result is unspecified for bounds, exponents and factors that an integer type can't represent (PyTorch rejects
  them).
- Factors (`alpha`, `value`) do not affect the types.
- Half precision is computed in float32. NaN in any operand gives NaN.
- A NULL scalar and shapes that do not broadcast are rejected.

Source: the PyTorch function of the same name.
"""

from typing import Annotated

from diopi_proto.declaration import arithmetic, elementwise, prototype
from diopi_proto.dtypes import (
    all_dtypes,
    boolean,
    complexes,
    floating,
    integral,
    numeric,
    promoted,
    promoted_to_floating,
    real,
    truth,
)
from diopi_proto.facts import ExcludesNumbers, Exponent
from diopi_proto.parameters import Context, Count, Factor, In, Ins, Out, OutBool, Outs, Scalar, const_In
from diopi_proto.types import RoundMode

AddFactor = Annotated[
    Factor,
    ExcludesNumbers(("float",), "torch.add rejects it for integers", (0, 1)),
    ExcludesNumbers(("bool",), "torch.add accepts it only for bool", (1, 2, 3)),
]
"""The factor `alpha`: floating only for floating or complex results, bool only for bool results."""

NO_BOOL = ExcludesNumbers(("bool",), "torch.sub rejects bool")
"""A number that must not be bool."""

NO_TWO_BOOLS = ExcludesNumbers(("bool",), "torch.remainder rejects two bools", (0,))
"""A number that must not be bool if the tensor is bool."""

NO_FLOAT = ExcludesNumbers(("fraction", "float"), "bitwise functions reject floating-point numbers")
"""A number that must be an integer or bool."""


@arithmetic(
    dtypes=all_dtypes,
    result=promoted,
    inplace="diopiAddInp",
    scalar="diopiAddScalar",
    inplace_scalar="diopiAddInpScalar",
)
def diopiAdd(ctx: Context, out: Out, input: In, other: In, alpha: AddFactor):
    """Compute input + alpha · other.

    For two bool tensors, the result is the logical or of input and (alpha and other). A floating-point alpha is
    rejected unless the dtype of the result is floating or complex.

    Source: torch.add.
    """


@arithmetic(
    dtypes=all_dtypes,
    result=promoted,
    inplace="diopiSubInp",
    scalar="diopiSubScalar",
    inplace_scalar="diopiSubInpScalar",
)
def diopiSub(ctx: Context, out: Out, input: In, other: Annotated[In, NO_BOOL], alpha: Annotated[AddFactor, NO_BOOL]):
    """Compute input − alpha · other.

    A floating-point alpha is rejected unless the dtype of the result is floating or complex. A bool operand counts as 0
    or 1 if the other operand is not bool. For two bool operands, the result is unspecified, because PyTorch rejects
    them.

    Source: torch.sub.
    """


@arithmetic(
    dtypes=all_dtypes,
    result=promoted,
    inplace="diopiMulInp",
    scalar="diopiMulScalar",
    inplace_scalar="diopiMulInpScalar",
)
def diopiMul(ctx: Context, out: Out, input: In, other: In):
    """Compute the product input · other.

    The product of two bool operands is the logical and, of dtype bool.

    Source: torch.mul.
    """


@arithmetic(
    dtypes=all_dtypes,
    result=promoted_to_floating,
    inplace="diopiDivInp",
    scalar="diopiDivScalar",
    inplace_scalar="diopiDivInpScalar",
)
def diopiDiv(ctx: Context, out: Out, input: In, other: In, rounding_mode: RoundMode):
    """Compute the quotient input / other, rounded as `rounding_mode` says.

    - RoundModeNone: the quotient is not rounded to an integer.
    - RoundModeTrunc: the quotient is rounded towards zero.
    - RoundModeFloor: the result is the largest integer ≤ the exact quotient, even if the floating-point quotient would
      round up to the next integer. A negative finite number divided by +inf gives −1, and ±inf divided by a finite
      number gives NaN.

    Any other value, such as RoundModeEND, is rejected. RoundModeTrunc and RoundModeFloor accept neither bool nor
    complex operands.

    Two integer operands give float32 in every mode. (For the modes trunc and floor, torch.div returns integers
    instead.) RoundModeTrunc and RoundModeFloor divide them as integers and convert the quotient. For the divisor 0, the
    result of these two modes is unspecified.

    For floating-point operands in every mode, a nonzero number divided by 0 gives ±inf, and 0/0 gives NaN.

    Source: torch.div.
    """


@arithmetic(
    dtypes=(*numeric, *complexes, *boolean),
    argument_dtypes={"exponent": all_dtypes},
    result=promoted,
    inplace="diopiPowInpTensor",
    scalar="diopiPow",
    inplace_scalar="diopiPowInp",
)
def diopiPowTensor(ctx: Context, out: Out, input: In, exponent: Annotated[In, Exponent()]):
    """Raise input to the power `exponent`.

    For floating-point operands:

    - x⁰ = 1 and 1^y = 1, even if the other operand is NaN.
    - 0 raised to a negative power is inf; −0 raised to a negative odd integer is −inf.
    - A negative finite base gives NaN if the exponent is finite and not an integer.

    For integer and bool operands:

    - Integers raised to integers wrap around.
    - An integer base raised to a negative integer in a tensor gives 0, with three exceptions. The base 1 gives 1, and
      the base −1 gives ±1. The result for the base 0 is unspecified.
    - If the negative integer exponent is a number instead of a tensor, the call is rejected. A floating-point number
      such as −2.0 is accepted for an integer base and gives a floating-point result.
    - A bool operand counts as 0 or 1. The power of two bool operands is bool.

    Source: torch.pow.
    """


@arithmetic(dtypes=all_dtypes, result=promoted)
def diopiPowScalar(ctx: Context, out: Out, input: Scalar, exponent: In):
    """Raise the number `input` to the power of each element of the tensor `exponent`.

    `out` has the shape of `exponent`. Special cases are as for an exponent in a tensor in `diopiPowTensor`.

    Source: torch.pow.
    """


@arithmetic(dtypes=(*numeric, *complexes), result=promoted, inplace="diopiAddcmulInp")
def diopiAddcmul(ctx: Context, out: Out, input: In, tensor1: In, tensor2: In, value: Factor):
    """Compute input + value · tensor1 · tensor2.

    For integer tensors, the fraction of a floating-point `value` is dropped.

    Source: torch.addcmul.
    """


@arithmetic(dtypes=(*floating, *complexes), result=promoted, inplace="diopiAddcdivInp")
def diopiAddcdiv(ctx: Context, out: Out, input: In, tensor1: In, tensor2: In, value: Factor):
    """Compute input + value · tensor1 / tensor2.

    Integer and bool tensors are rejected.

    Source: torch.addcdiv.
    """


@elementwise(dtypes=(*floating, *complexes), scalar="diopiLerpScalar", scalar_arguments=["weight"])
def diopiLerpTensor(ctx: Context, out: Out, input: In, end: In, weight: In):
    """Interpolate linearly: compute input + weight · (end − input).

    Where |weight| ≥ 0.5, the result is computed as end − (end − input) · (1 − weight). For finite operands, weight 0
    therefore gives exactly input, and weight 1 gives exactly end. An infinite end − input times 0 gives NaN. Weights
    outside [0, 1] extrapolate. All tensors have the same dtype.

    Source: torch.lerp.
    """


@arithmetic(dtypes=real, result=promoted, scalar="diopiRemainderScalar")
def diopiRemainderTensor(ctx: Context, out: Out, input: In, other: Annotated[In, NO_TWO_BOOLS]):
    """Compute the remainder input − other · ⌊input / other⌋, which has the sign of the divisor `other`.

    Floating types:

    - The result is NaN if the divisor is 0 or the input is ±inf.
    - If the divisor is ±inf, a finite input that is 0 or has the divisor's sign is returned unchanged. Any other finite
      input gives the divisor.
    - A remainder of exactly 0 has the sign of the input.
    - If the quotient overflows, the result is unspecified, because PyTorch's vector kernels return NaN.

    Integer and bool types: if the divisor is 0, the result is unspecified. A bool operand counts as 0 or 1 if the other
    operand is not bool. For two bool operands the result is unspecified, because PyTorch rejects them.

    Source: torch.remainder.
    """


@arithmetic(dtypes=real, result=promoted)
def diopiRemainder(ctx: Context, out: Out, input: Annotated[Scalar, NO_TWO_BOOLS], other: In):
    """Compute the remainder of the number `input` divided by each element of the tensor `other`.

    `out` has the shape of `other`. The remainder is computed as in `diopiRemainderTensor`.

    Source: torch.remainder.
    """


@arithmetic(
    dtypes=numeric,
    result=promoted,
    truncates_numbers=True,
    guarantee="exact",
    inplace="diopiClampInp",
    scalar="diopiClampScalar",
    inplace_scalar="diopiClampInpScalar",
)
def diopiClamp(ctx: Context, out: Out, input: In, min: In | None, max: In | None):
    """Clamp input to the range from min to max: compute min(max(input, min), max) for each element.

    Where min > max, the result is max. If `min` or `max` is NULL, there is no bound on that side. If both are NULL, the
    call is rejected. A NaN bound gives NaN.

    Zeros: if a bound is the number 0 (in the scalar forms), zeros in input keep their sign. If two tensors contain
    zeros of different signs at the same position, the result is either of them.

    Integers: if the bounds of an integer tensor are floating-point numbers and `out` has an integer dtype, the fraction
    of the result is dropped. PyTorch rejects such an `out`.

    Source: torch.clamp.
    """


@arithmetic(
    dtypes=real,
    result=promoted,
    truncates_numbers=True,
    guarantee="exact",
    inplace="diopiClampMinInp",
    scalar="diopiClampMinScalar",
    inplace_scalar="diopiClampMinInpScalar",
)
def diopiClampMin(ctx: Context, out: Out, input: In, min: In):
    """Return the larger one of input and min.

    A NaN bound gives NaN. Zeros, and results with an integer dtype, are treated as in `diopiClamp`.

    Source: torch.clamp_min.
    """


@arithmetic(
    dtypes=real,
    result=promoted,
    truncates_numbers=True,
    guarantee="exact",
    inplace="diopiClampMaxInp",
    scalar="diopiClampMaxScalar",
    inplace_scalar="diopiClampMaxInpScalar",
)
def diopiClampMax(ctx: Context, out: Out, input: In, max: In):
    """Return the smaller one of input and max.

    A NaN bound gives NaN. Zeros, and results with an integer dtype, are treated as in `diopiClamp`.

    Source: torch.clamp_max.
    """


@arithmetic(dtypes=real, result=promoted, guarantee="exact")
def diopiMaximum(ctx: Context, out: Out, input: In, other: In):
    """Return the larger of input and other.

    If both elements are zeros of different signs, the result is either of them.

    Source: torch.maximum.
    """


@arithmetic(dtypes=real, result=promoted, guarantee="exact")
def diopiMinimum(ctx: Context, out: Out, input: In, other: In):
    """Return the smaller of input and other.

    If both elements are zeros of different signs, the result is either of them.

    Source: torch.minimum.
    """


@arithmetic(
    dtypes=all_dtypes, result=truth, inplace="diopiEqInp", scalar="diopiEqScalar", inplace_scalar="diopiEqInpScalar"
)
def diopiEq(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is true where input = other.

    The comparison uses the common type of the operands, and the result is bool. NaN is not equal to anything, not even
    to NaN, and 0 is equal to −0. The in-place forms write 0 and 1 in the dtype of input.

    Source: torch.eq.
    """


@arithmetic(
    dtypes=all_dtypes, result=truth, inplace="diopiNeInp", scalar="diopiNeScalar", inplace_scalar="diopiNeInpScalar"
)
def diopiNe(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is true where input ≠ other, or where one of them is NaN.

    The comparison uses the common type of the operands, and the result is bool. The in-place forms write 0 and 1 in the
    dtype of input.

    Source: torch.ne.
    """


@arithmetic(dtypes=real, result=truth, inplace="diopiGeInp", scalar="diopiGeScalar", inplace_scalar="diopiGeInpScalar")
def diopiGe(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is true where input ≥ other, and false where one of them is NaN.

    The comparison uses the common type of the operands, and the result is bool. The in-place forms write 0 and 1 in the
    dtype of input.

    Source: torch.ge.
    """


@arithmetic(dtypes=real, result=truth, inplace="diopiGtInp", scalar="diopiGtScalar", inplace_scalar="diopiGtInpScalar")
def diopiGt(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is true where input > other, and false where one of them is NaN.

    The comparison uses the common type of the operands, and the result is bool. The in-place forms write 0 and 1 in the
    dtype of input.

    Source: torch.gt.
    """


@arithmetic(dtypes=real, result=truth, inplace="diopiLeInp", scalar="diopiLeScalar", inplace_scalar="diopiLeInpScalar")
def diopiLe(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is true where input ≤ other, and false where one of them is NaN.

    The comparison uses the common type of the operands, and the result is bool. The in-place forms write 0 and 1 in the
    dtype of input.

    Source: torch.le.
    """


@arithmetic(dtypes=real, result=truth, inplace="diopiLtInp", scalar="diopiLtScalar", inplace_scalar="diopiLtInpScalar")
def diopiLt(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is true where input < other, and false where one of them is NaN.

    The comparison uses the common type of the operands, and the result is bool. The in-place forms write 0 and 1 in the
    dtype of input.

    Source: torch.lt.
    """


@arithmetic(dtypes=all_dtypes, result=truth)
def diopiEqual(ctx: Context, out: OutBool, input: In, other: In):
    """Return in `*out` whether input and other have the same shape and equal elements.

    `*out` is a bool in host memory, which is valid when the call returns. The tensors are not broadcast: different
    shapes give false, and are not an error. Elements are compared as in `diopiEq`, so a NaN in either tensor gives
    false. Two empty tensors of the same shape are equal.

    Source: torch.equal.
    """


@arithmetic(dtypes=all_dtypes, result=truth, inplace="diopiLogicalAndInp")
def diopiLogicalAnd(ctx: Context, out: Out, input: In, other: In):
    """Return true where input and other are both nonzero.

    The result is bool. NaN counts as nonzero. The in-place form writes 0 and 1 in the dtype of input.

    Source: torch.logical_and.
    """


@arithmetic(dtypes=all_dtypes, result=truth, inplace="diopiLogicalOrInp")
def diopiLogicalOr(ctx: Context, out: Out, input: In, other: In):
    """Return true where input or other is nonzero.

    The result is bool. NaN counts as nonzero. The in-place form writes 0 and 1 in the dtype of input.

    Source: torch.logical_or.
    """


@arithmetic(
    dtypes=integral,
    result=promoted,
    inplace="diopiBitwiseAndInp",
    scalar="diopiBitwiseAndScalar",
    inplace_scalar="diopiBitwiseAndInpScalar",
)
def diopiBitwiseAnd(ctx: Context, out: Out, input: In, other: Annotated[In, NO_FLOAT]):
    """Compute the bitwise and of two integers in two's complement, or the logical and of two bool elements.

    A floating-point number as `other` is rejected.

    Source: torch.bitwise_and.
    """


@arithmetic(
    dtypes=integral,
    result=promoted,
    inplace="diopiBitwiseOrInp",
    scalar="diopiBitwiseOrScalar",
    inplace_scalar="diopiBitwiseOrInpScalar",
)
def diopiBitwiseOr(ctx: Context, out: Out, input: In, other: Annotated[In, NO_FLOAT]):
    """Compute the bitwise or of two integers in two's complement, or the logical or of two bool elements.

    A floating-point number as `other` is rejected.

    Source: torch.bitwise_or.
    """


@prototype(dtypes=all_dtypes, inplace="diopiForeachaddInpScalar")
def diopiForeachaddScalar(ctx: Context, outs: Outs, inputs: Ins, inputSize: Count, other: Scalar):
    """Compute outs[i] = inputs[i] + other for every i < inputSize.

    The tensors in inputs may differ in shape and dtype, and none of them is NULL. outs[i] has the shape and the dtype
    of inputs[i]. The sum is computed as in `diopiAddScalar`, and then converted. If inputSize is 0, the call does
    nothing.

    Source: torch._foreach_add.
    """


@prototype(dtypes=all_dtypes, inplace="diopiForeachmulInpScalar")
def diopiForeachmulScalar(ctx: Context, outs: Outs, inputs: Ins, inputSize: Count, other: Scalar):
    """Compute outs[i] = inputs[i] · other for every i < inputSize.

    The tensors in inputs may differ in shape and dtype, and none of them is NULL. outs[i] has the shape and the dtype
    of inputs[i]. The product is computed as in `diopiMulScalar`, and then converted. If inputSize is 0, the call does
    nothing.

    Source: torch._foreach_mul.
    """


@prototype(dtypes=all_dtypes, inplace="diopiForeachmulInpTensor")
def diopiForeachmulTensor(ctx: Context, outs: Outs, inputs: Ins, inputSize: Count, other: const_In):
    """Compute outs[i] = inputs[i] · other for every i < inputSize, where `other` is a tensor with one element.

    `other` has shape () or (1). The tensors in inputs may differ in shape and dtype, and none of them is NULL. outs[i]
    has the shape and the dtype of inputs[i]. The product is computed as in `diopiMul`, and then converted. If inputSize
    is 0, the call does nothing.

    Source: torch._foreach_mul.
    """
