"""Binary and ternary element-wise functions: arithmetic, bounds, comparison and logic, with their scalar forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype, RoundMode
from diopi_test.cases.data import convert_array
from diopi_test.oracle.reference import Exact, PartlySpecified, WithTerms, reference

Array = NDArray[Any]
Operand = Any
"""An array or, in the scalar forms, a number."""

BINARY: dict[str, Callable[..., Any]] = {
    "diopiMul": np.multiply,
    "diopiEq": np.equal,
    "diopiNe": np.not_equal,
    "diopiGe": np.greater_equal,
    "diopiGt": np.greater,
    "diopiLe": np.less_equal,
    "diopiLt": np.less,
    "diopiLogicalAnd": np.logical_and,
    "diopiLogicalOr": np.logical_or,
    "diopiBitwiseAnd": np.bitwise_and,
    "diopiBitwiseOr": np.bitwise_or,
}
"""NumPy's functions of two operands; the product of bool is the logical and."""


def _binary(function: Callable[..., Any]) -> Callable[[Array, Operand], Any]:
    def apply(input: Array, other: Operand) -> Any:
        return function(input, other)

    return apply


for _name, _function in BINARY.items():
    reference(_name)(_binary(_function))


def _have_kinds(kinds: str, *operands: Operand) -> bool:
    """Return whether all operands have one of these NumPy kinds: `b` bool, `i` integer, `f` floating, `c` complex."""
    return all(np.asarray(operand).dtype.kind in kinds for operand in operands)


@reference("diopiAdd")
def add(input, other, alpha):
    if _have_kinds("b", input, other):
        return input | (other & np.bool_(alpha))
    return input + alpha * other


@reference("diopiSub")
def sub(input, other, alpha):
    return input - alpha * other


@reference("diopiDiv")
def div(input, other, rounding_mode):
    if rounding_mode == RoundMode.none:
        return np.true_divide(input, other)
    _check_divisor(input, other)
    quotient = np.floor_divide(input, other) if rounding_mode == RoundMode.floor else _truncate_quotient(input, other)
    return Exact(quotient) if _have_kinds("i", input, other) else quotient


def _check_divisor(input: Operand, divisor: Operand) -> None:
    """Raise ValueError if an integer is divided by 0, which the standard leaves open."""
    if _have_kinds("bi", input, divisor) and not np.all(divisor):
        raise ValueError("an integer is divided by 0")


def _truncate_quotient(input: Array, divisor: Operand) -> Array:
    """Return the quotient rounded towards zero; an integer is divisible after its remainder is subtracted."""
    if _have_kinds("i", input, divisor):
        return np.floor_divide(input - np.fmod(input, divisor), divisor)
    return np.trunc(np.true_divide(input, divisor))


@reference("diopiPowTensor", "diopiPowScalar")
def power(input, exponent):
    if _have_kinds("bi", input, exponent):
        return _integer_power(np.asarray(input, np.int64), np.asarray(exponent, np.int64))
    wide = np.float64 if _have_kinds("bif", input, exponent) else np.complex128
    return np.power(np.asarray(input, wide), np.asarray(exponent, wide))


def _integer_power(input: Array, exponent: Array) -> Array:
    """Return input^exponent with wrap-around; for a negative exponent 0, or a power of ±1 by the exponent's parity."""
    power = input ** np.where(exponent < 0, exponent & 1, exponent)
    return np.where((exponent >= 0) | (np.abs(input) == 1), power, 0)


@reference("diopiAddcmul")
def addcmul(input, tensor1, tensor2, value):
    if _have_kinds("i", input, tensor1, tensor2):
        value = int(value)
    return input + value * tensor1 * tensor2


@reference("diopiAddcdiv")
def addcdiv(input, tensor1, tensor2, value):
    return input + value * tensor1 / tensor2


@reference("diopiLerpTensor")
def lerp(input, end, weight):
    near_end = np.abs(weight) >= 0.5
    result = np.where(near_end, end - (end - input) * (1 - weight), input + weight * (end - input))
    # a sum in both forms, fused or not, so zeros have no sign
    return WithTerms(result, np.zeros(result.shape))


@reference("diopiRemainderTensor", "diopiRemainder")
def remainder(input, other):
    _check_divisor(input, other)
    remainder = np.fmod(input, other)  # with the sign of input
    signed = np.where((remainder != 0) & ((remainder < 0) != (np.asarray(other) < 0)), remainder + other, remainder)
    if _have_kinds("bi", input, other):
        return signed
    overflows = np.isinf(np.true_divide(input, other)) & np.isfinite(input) & (np.asarray(other) != 0)
    return np.where(overflows, np.nan, signed)


@reference("diopiMaximum")
def maximum(input, other):
    return _open_zero_signs(np.maximum(input, other), input, other)


@reference("diopiMinimum")
def minimum(input, other):
    return _open_zero_signs(np.minimum(input, other), input, other)


def _open_zero_signs(result: Array, *operands: Array) -> Any:
    """Leave the sign of a zero open if equal elements of the operands are zeros of both signs."""
    if result.dtype.kind != "f":
        return result
    signs = [np.where(operand == 0, np.copysign(1, operand), 0) for operand in np.broadcast_arrays(*operands)]
    is_open = (result == 0) & (np.max(signs, 0) > 0) & (np.min(signs, 0) < 0)
    return PartlySpecified(result, ~is_open) if is_open.any() else result


@reference("diopiClamp")
def clamp(input, min, max):
    bounds = [bound for bound in (min, max) if bound is not None]
    raised = input if min is None else _apply_bound(input, min, np.maximum)
    result = raised if max is None else _apply_bound(raised, max, np.minimum)
    return _open_zero_signs(result, input, *bounds) if isinstance(bounds[0], np.ndarray) else result


def _apply_bound(input: Array, bound: Operand, choose: Callable[..., Array]) -> Array:
    """Return the larger or smaller element; if both are equal, the element of input with its sign of zero."""
    return np.where(input == bound, input, choose(input, bound))


@reference("diopiClampMin")
def clamp_min(input, min):
    return clamp(input, min, None)


@reference("diopiClampMax")
def clamp_max(input, max):
    return clamp(input, None, max)


@reference("diopiEqual")
def equal(input, other):
    return input.shape == other.shape and bool((input == other).all())


@reference("diopiForeachaddScalar")
def foreach_add(inputs, other):
    return [add(_promote_with(input, other), other, 1) for input in inputs]


@reference("diopiForeachmulScalar")
def foreach_mul(inputs, other):
    return [_promote_with(input, other) * other for input in inputs]


def _promote_with(input: Array, number: float) -> Array:
    """Promote an entry of an array of tensors with a number: a floating-point number makes integers float32."""
    return convert_array(input, Dtype.float32) if _have_kinds("i", input) and isinstance(number, float) else input


@reference("diopiForeachmulTensor")
def foreach_mul_by_tensor(inputs, other):
    return [input * other.reshape(()) for input in inputs]
