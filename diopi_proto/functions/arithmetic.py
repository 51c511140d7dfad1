"""Binary and ternary element-wise functions: arithmetic, bounds, comparison and logic, with their scalar forms.

The following holds unless a docstring says otherwise:

- Tensor inputs may have any shape, including 0-d and empty shapes. They broadcast against each other: axes are aligned
  at the last one, and an axis of size 1 repeats. `out` has the broadcast shape; in in-place forms `input` must have it.
- Inputs may differ in dtype. The call first converts them to their common type, which is the type of the result.
  Integers wrap around.
- A `diopiScalar_t` of a higher category (bool < integer < floating) than the tensors promotes them: an integer to
  int64, a floating-point number to float32. complex64 stays complex. Otherwise only the tensors determine the common
  type.
- If the common type is an integer type, the number is converted to it and wraps around; −1 becomes 255 in uint8.
  Exponents and the operands of a quotient that is not rounded are not converted.
- If the common type is floating, the number keeps its precision, except that comparisons convert it, too.
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
    rejected unless the dtype of the result is floating or complex. Source: torch.add.
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
    """Product input · other; for two bools the logical and. Source: torch.mul."""


@arithmetic(
    dtypes=all_dtypes,
    result=promoted_to_floating,
    inplace="diopiDivInp",
    scalar="diopiDivScalar",
    inplace_scalar="diopiDivInpScalar",
)
def diopiDiv(ctx: Context, out: Out, input: In, other: In, rounding_mode: RoundMode):
    """Quotient input / other, rounded according to `rounding_mode`.

    RoundModeNone: the true quotient. RoundModeTrunc: rounded towards zero. RoundModeFloor: the largest integer ≤ the
    true quotient, computed without rounding twice; a negative finite number over +inf gives −1. Integer operands give
    float32 in every mode. RoundModeTrunc and RoundModeFloor first divide them as integers, so the result of division by
    0 is unspecified. These two modes accept neither bool nor complex operands. Floating x/0 is ±inf in every mode, and
    0/0 is NaN. With RoundModeFloor, ±inf over a finite number is NaN. RoundModeEND is rejected. Source: torch.div.
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
    """Power input^exponent; x⁰ = 1 and 1^y = 1 even for NaN, 0 to a negative floating power is inf.

    A negative floating base gives NaN unless the exponent is an integer. Integers raised to integers wrap around. A
    negative integer exponent of an integer base gives 0 if the exponent is in a tensor. The exceptions are the bases 1
    and −1, whose powers have magnitude 1, and the base 0, whose result is unspecified. A negative integer scalar as the
    exponent of an integer base is rejected; a floating-point scalar, such as −2.0, is accepted and gives a
    floating-point result. A bool operand counts as 0 or 1; the power of two bools is bool. Source: torch.pow.
    """


@arithmetic(dtypes=all_dtypes, result=promoted)
def diopiPowScalar(ctx: Context, out: Out, input: Scalar, exponent: In):
    """Power input^exponent of a number and a tensor; special cases are as in `diopiPowTensor`.

    `out` has the shape of `exponent`. An integer base and a negative integer exponent give 0. The exceptions are the
    bases 1 and −1, whose powers have magnitude 1, and the base 0, whose result is unspecified. Source: torch.pow.
    """


@arithmetic(dtypes=(*numeric, *complexes), result=promoted, inplace="diopiAddcmulInp")
def diopiAddcmul(ctx: Context, out: Out, input: In, tensor1: In, tensor2: In, value: Factor):
    """Input + value · tensor1 · tensor2; integer tensors truncate a floating `value`. Source: torch.addcmul."""


@arithmetic(dtypes=(*floating, *complexes), result=promoted, inplace="diopiAddcdivInp")
def diopiAddcdiv(ctx: Context, out: Out, input: In, tensor1: In, tensor2: In, value: Factor):
    """Input + value · tensor1 / tensor2; integer tensors are rejected. Source: torch.addcdiv."""


@elementwise(dtypes=(*floating, *complexes), scalar="diopiLerpScalar", scalar_arguments=["weight"])
def diopiLerpTensor(ctx: Context, out: Out, input: In, end: In, weight: In):
    """Linear interpolation input + weight · (end − input).

    Where |weight| ≥ 0.5, the result is computed as end − (end − input) · (1 − weight). Therefore weight 0 gives exactly
    input and weight 1 gives exactly end. Weights outside [0, 1] extrapolate. All tensors have the same dtype. Source:
    torch.lerp.
    """


@arithmetic(dtypes=real, result=promoted, scalar="diopiRemainderScalar")
def diopiRemainderTensor(ctx: Context, out: Out, input: In, other: Annotated[In, NO_TWO_BOOLS]):
    """Remainder input − other · ⌊input / other⌋, with the sign of the divisor `other`.

    For floating types, the result is NaN if the divisor is 0 or the input is ±inf. If the divisor is ±inf, the result
    is the input if that is 0 or has the sign of the divisor. Otherwise it is the divisor. A remainder of exactly 0 has
    the sign of `input`. If the quotient overflows, the result is unspecified (PyTorch's vector kernels return NaN). The
    result of integer division by 0 is unspecified. A bool operand counts as 0 or 1 if the other operand is not bool;
    the result for two bools is unspecified (PyTorch rejects them). Source: torch.remainder.
    """


@arithmetic(dtypes=real, result=promoted)
def diopiRemainder(ctx: Context, out: Out, input: Annotated[Scalar, NO_TWO_BOOLS], other: In):
    """Remainder of a number divided by every element of a tensor, computed as in `diopiRemainderTensor`.

    `out` has the shape of the divisor `other`. Source: torch.remainder.
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
    """Clamp input to the range from min to max.

    The result is the smaller of max and the larger one of input and min. It is therefore max where min > max. If `min`
    or `max` is NULL, there is no bound on that side. If both are NULL, the call is rejected. A NaN bound gives NaN.

    Zeros: if a bound is a number 0, zeros in input keep their sign. If two tensors contain zeros of different signs at
    the same position, the result is either of them.

    Integers: if floating-point numbers bound integers and `out` has an integer dtype, the fraction of the result is
    dropped. PyTorch rejects such an `out`.

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
    """The larger of input and other; if both are zeros, the result is either zero. Source: torch.maximum."""


@arithmetic(dtypes=real, result=promoted, guarantee="exact")
def diopiMinimum(ctx: Context, out: Out, input: In, other: In):
    """The smaller of input and other; if both are zeros, the result is either zero. Source: torch.minimum."""


@arithmetic(
    dtypes=all_dtypes, result=truth, inplace="diopiEqInp", scalar="diopiEqScalar", inplace_scalar="diopiEqInpScalar"
)
def diopiEq(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is True where input = other.

    The comparison uses the common type of the operands, and the result is bool. NaN is not equal to any number, and 0
    is equal to −0. The in-place forms write 0 and 1 in the dtype of input. Source: torch.eq.
    """


@arithmetic(
    dtypes=all_dtypes, result=truth, inplace="diopiNeInp", scalar="diopiNeScalar", inplace_scalar="diopiNeInpScalar"
)
def diopiNe(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is True where input ≠ other, or where one of them is NaN.

    The comparison uses the common type of the operands, and the result is bool. The in-place forms write 0 and 1 in the
    dtype of input. Source: torch.ne.
    """


@arithmetic(dtypes=real, result=truth, inplace="diopiGeInp", scalar="diopiGeScalar", inplace_scalar="diopiGeInpScalar")
def diopiGe(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is True where input ≥ other, and False where one of them is NaN.

    The comparison uses the common type of the operands, and the result is bool. The in-place forms write 0 and 1 in the
    dtype of input. Source: torch.ge.
    """


@arithmetic(dtypes=real, result=truth, inplace="diopiGtInp", scalar="diopiGtScalar", inplace_scalar="diopiGtInpScalar")
def diopiGt(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is True where input > other, and False where one of them is NaN.

    The comparison uses the common type of the operands, and the result is bool. The in-place forms write 0 and 1 in the
    dtype of input. Source: torch.gt.
    """


@arithmetic(dtypes=real, result=truth, inplace="diopiLeInp", scalar="diopiLeScalar", inplace_scalar="diopiLeInpScalar")
def diopiLe(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is True where input ≤ other, and False where one of them is NaN.

    The comparison uses the common type of the operands, and the result is bool. The in-place forms write 0 and 1 in the
    dtype of input. Source: torch.le.
    """


@arithmetic(dtypes=real, result=truth, inplace="diopiLtInp", scalar="diopiLtScalar", inplace_scalar="diopiLtInpScalar")
def diopiLt(ctx: Context, out: Out, input: In, other: In):
    """Compare elements: the result is True where input < other, and False where one of them is NaN.

    The comparison uses the common type of the operands, and the result is bool. The in-place forms write 0 and 1 in the
    dtype of input. Source: torch.lt.
    """


@arithmetic(dtypes=all_dtypes, result=truth)
def diopiEqual(ctx: Context, out: OutBool, input: In, other: In):
    """Whether input and other have the same shape and equal elements, in `*out` when the call returns.

    There is no broadcasting: different shapes give false and are not an error. Elements are compared as in `diopiEq`,
    so a NaN anywhere gives false; two empty tensors of one shape are equal. Source: torch.equal.
    """


@arithmetic(dtypes=all_dtypes, result=truth, inplace="diopiLogicalAndInp")
def diopiLogicalAnd(ctx: Context, out: Out, input: In, other: In):
    """Whether input and other are both nonzero, as bool; NaN counts as nonzero.

    The in-place form writes 0 and 1 in input's dtype. Source: torch.logical_and.
    """


@arithmetic(dtypes=all_dtypes, result=truth, inplace="diopiLogicalOrInp")
def diopiLogicalOr(ctx: Context, out: Out, input: In, other: In):
    """Whether input or other is nonzero, as bool; NaN counts as nonzero.

    The in-place form writes 0 and 1 in input's dtype. Source: torch.logical_or.
    """


@arithmetic(
    dtypes=integral,
    result=promoted,
    inplace="diopiBitwiseAndInp",
    scalar="diopiBitwiseAndScalar",
    inplace_scalar="diopiBitwiseAndInpScalar",
)
def diopiBitwiseAnd(ctx: Context, out: Out, input: In, other: Annotated[In, NO_FLOAT]):
    """Bitwise and in two's complement; for bool the logical and. A floating scalar is rejected.

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
    """Bitwise or in two's complement; for bool the logical or. A floating scalar is rejected.

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
    """inputs[i] · other for every i < inputSize; the entries may differ in shape and dtype.

    outs[i] has the shape and dtype of inputs[i]; the product is computed as in `diopiMulScalar`, then converted. No
    entry is NULL. If inputSize is 0, the call does nothing. Source: torch._foreach_mul.
    """


@prototype(dtypes=all_dtypes, inplace="diopiForeachmulInpTensor")
def diopiForeachmulTensor(ctx: Context, outs: Outs, inputs: Ins, inputSize: Count, other: const_In):
    """inputs[i] · other for every i < inputSize, where `other` has one element (0-d or of size 1).

    outs[i] has the shape and dtype of inputs[i]; the product is computed as in `diopiMul`, then converted. No entry is
    NULL. If inputSize is 0, the call does nothing. Source: torch._foreach_mul.
    """
