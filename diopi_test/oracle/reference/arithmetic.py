"""Binary and ternary element-wise functions: arithmetic, bounds, comparison and logic, with their scalar forms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype, RoundMode
from diopi_test.oracle.data import convert_array
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
"""The NumPy function that computes each function of two operands; the product of bool is the logical and."""


def _make_binary_reference(function: Callable[..., Any]) -> Callable[[Array, Operand], Any]:
    """Return a reference that applies a NumPy function to `input` and `other`."""

    def apply(input: Array, other: Operand) -> Any:
        """Apply the function to both operands."""
        return function(input, other)

    return apply


for _name, _function in BINARY.items():
    reference(_name)(_make_binary_reference(_function))


def _have_kinds(kinds: str, *operands: Operand) -> bool:
    """Return whether all operands have a NumPy kind in `kinds`: `b` bool, `i` integer, `f` float, `c` complex."""
    return all(np.asanyarray(operand).dtype.kind in kinds for operand in operands)


def _to_common_kind(*operands: Operand) -> list[Operand]:
    """Return the operands; if one operand is floating-point or complex, integers are converted first.

    The products of converted integers don't wrap around and have signed zeros.
    """
    dtype = np.result_type(*operands)
    return [np.asanyarray(operand, dtype) for operand in operands] if dtype.kind in "fc" else list(operands)


@reference("diopiAdd")
def add(input, other, alpha):
    """Return input + alpha · other; for Booleans, the logical or of input and (alpha and other)."""
    if _have_kinds("b", input, other):
        return input | (other & np.bool_(alpha))
    addend, factor = _to_common_kind(input, other)
    return addend + alpha * factor


@reference("diopiSub")
def sub(input, other, alpha):
    """Return input − alpha · other."""
    minuend, factor = _to_common_kind(input, other)
    return minuend - alpha * factor


@reference("diopiDiv")
def div(input, other, rounding_mode):
    """Return input / other; `rounding_mode` selects no rounding, rounding down, or rounding toward zero."""
    if rounding_mode == RoundMode.none:
        return np.true_divide(input, other)
    _check_divisor(input, other)
    quotient = np.floor_divide(input, other) if rounding_mode == RoundMode.floor else _truncate_quotient(input, other)
    return Exact(quotient) if _have_kinds("i", input, other) else quotient


def _check_divisor(input: Operand, divisor: Operand) -> None:
    """Raise ValueError if an integer is divided by 0: the standard does not specify this result."""
    if _have_kinds("bi", input, divisor) and not np.all(divisor):
        raise ValueError("an integer is divided by 0")


def _truncate_quotient(input: Array, divisor: Operand) -> Array:
    """Return the quotient rounded toward zero; for integers, without floating-point rounding."""
    if _have_kinds("i", input, divisor):
        return np.floor_divide(input - np.fmod(input, divisor), divisor)
    return np.trunc(np.true_divide(input, divisor))


@reference("diopiPowTensor", "diopiPowScalar")
def power(input, exponent):
    """Return input ^ exponent, in int64 for two integers, else in float64 or complex128."""
    if _have_kinds("bi", input, exponent):
        return _integer_power(np.asanyarray(input, np.int64), np.asanyarray(exponent, np.int64))
    common_type = np.float64 if _have_kinds("bif", input, exponent) else np.complex128
    base, power_exponent = np.asanyarray(input, common_type), np.asanyarray(exponent, common_type)
    return (
        _power_by_tensor(base, power_exponent) if isinstance(exponent, np.ndarray) else np.power(base, power_exponent)
    )


def _power_by_tensor(base: Array, exponent: Array) -> Array:
    """Return base ^ exponent for an array of exponents; the exponent ½ gives 0 for −0 and ∞ for −∞, as in IEEE 754.

    If the exponent is a single number ½, NumPy and PyTorch compute the square root, which gives −0 and NaN instead.
    NumPy also does so for an array that repeats one element by broadcasting. The arrays are therefore copied.
    """
    shape = np.broadcast_shapes(base.shape, exponent.shape)
    bases, exponents = (np.broadcast_to(factor, shape, subok=True).flatten() for factor in (base, exponent))
    return np.power(bases, exponents).reshape(shape)


def _integer_power(input: Array, exponent: Array) -> Array:
    """Return input ^ exponent in int64, modulo 2^64; for negative exponents, the exact result truncated to 0 or ±1."""
    power = input ** np.where(exponent < 0, exponent & 1, exponent)
    return np.where((exponent >= 0) | (np.abs(input) == 1), power, 0)


@reference("diopiAddcmul")
def addcmul(input, tensor1, tensor2, value):
    """Return input + value · tensor1 · tensor2; `value` is truncated for integers."""
    if _have_kinds("i", input, tensor1, tensor2):
        value = int(value)
    addend, factor1, factor2 = _to_common_kind(input, tensor1, tensor2)
    return addend + value * factor1 * factor2


@reference("diopiAddcdiv")
def addcdiv(input, tensor1, tensor2, value):
    """Return input + value · tensor1 / tensor2."""
    return input + value * tensor1 / tensor2


@reference("diopiLerpTensor")
def lerp(input, end, weight):
    """Return input + weight · (end − input); for |weight| ≥ ½ computed as end − (1 − weight) · (end − input).

    PyTorch computes it in this way, which is more accurate near `end`.
    """
    near_end = np.abs(weight) >= 0.5
    result = np.where(near_end, end - (end - input) * (1 - weight), input + weight * (end - input))
    # both formulas are sums, so the sign of a zero is not significant
    return WithTerms(result, np.zeros(result.shape))


@reference("diopiRemainderTensor", "diopiRemainder")
def remainder(input, other):
    """Return the remainder of input / other with the sign of `other`, as Python defines it."""
    _check_divisor(input, other)
    remainder = np.fmod(input, other)  # has the sign of input
    signed = np.where((remainder != 0) & ((remainder < 0) != (np.asanyarray(other) < 0)), remainder + other, remainder)
    if _have_kinds("bi", input, other):
        return signed
    overflows = np.isinf(np.true_divide(input, other)) & np.isfinite(input) & (np.asanyarray(other) != 0)
    return np.where(overflows, np.nan, signed)


@reference("diopiMaximum")
def maximum(input, other):
    """Return the larger element, or NaN; the sign of zero is unspecified if both signs occur."""
    return _leave_zero_signs_unspecified(np.maximum(input, other), input, other)


@reference("diopiMinimum")
def minimum(input, other):
    """Return the smaller element, or NaN; the sign of zero is unspecified if both signs occur."""
    return _leave_zero_signs_unspecified(np.minimum(input, other), input, other)


def _leave_zero_signs_unspecified(result: Array, *operands: Array) -> Any:
    """Return the result, with elements unspecified that are zeros and whose operands have zeros of both signs."""
    if result.dtype.kind != "f":
        return result
    signs = [np.where(operand == 0, np.copysign(1, operand), 0) for operand in np.broadcast_arrays(*operands)]
    is_unspecified = (result == 0) & (np.max(signs, 0) > 0) & (np.min(signs, 0) < 0)
    return PartlySpecified(result, ~is_unspecified) if is_unspecified.any() else result


@reference("diopiClamp")
def clamp(input, min, max):
    """Return input limited to the range from `min` to `max`; either bound may be None."""
    bounds = [bound for bound in (min, max) if bound is not None]
    raised = input if min is None else _limit(input, min, np.maximum)
    result = raised if max is None else _limit(raised, max, np.minimum)
    return _leave_zero_signs_unspecified(result, input, *bounds) if isinstance(bounds[0], np.ndarray) else result


def _limit(input: Array, bound: Operand, choose: Callable[..., Array]) -> Array:
    """Return the larger or the smaller of input and bound, as `choose` decides; if equal, the element of input."""
    return np.where(input == bound, input, choose(input, bound))


@reference("diopiClampMin")
def clamp_min(input, min):
    """Return max(input, min)."""
    return clamp(input, min, None)


@reference("diopiClampMax")
def clamp_max(input, max):
    """Return min(input, max)."""
    return clamp(input, None, max)


@reference("diopiEqual")
def equal(input, other):
    """Return True if both tensors have the same shape and elements, else False."""
    return input.shape == other.shape and bool((input == other).all())


@reference("diopiForeachaddScalar")
def foreach_add(inputs, other):
    """Return the list of tensors, each plus a number; with a floating-point number, integers become float32."""
    return [add(_promote_with(input, other), other, 1) for input in inputs]


@reference("diopiForeachmulScalar")
def foreach_mul(inputs, other):
    """Return the list of tensors, each times a number; with a floating-point number, integers become float32."""
    return [_promote_with(input, other) * other for input in inputs]


def _promote_with(input: Array, number: float) -> Array:
    """Return `input` as float32 if it is an integer tensor and `number` is a floating-point number."""
    return convert_array(input, Dtype.float32) if _have_kinds("i", input) and isinstance(number, float) else input


@reference("diopiForeachmulTensor")
def foreach_mul_by_tensor(inputs, other):
    """Return the list of tensors, each times the only element of `other`."""
    return [input * other.reshape(()) for input in inputs]
