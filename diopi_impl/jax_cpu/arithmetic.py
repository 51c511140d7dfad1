"""Binary and ternary element-wise functions: arithmetic, bounds, comparison and logic, with their scalar forms.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.convert import convert_to_dtype
from diopi_impl.jax_cpu.extremes import flush_subnormals
from diopi_impl.jax_cpu.jit import adapt_by_compiling, check_on_host
from diopi_impl.jax_cpu.large_results import binary_ufunc
from diopi_proto.types import RoundMode
from lib_rt.dtypes import from_numpy

Operand = Array | float
"""An operand: an array, or a number if the form of the function takes a number."""

HostArray = NDArray[Any]
"""An array of NumPy, which the implementation reads before the program runs."""

BINARY: dict[str, Callable[..., Array]] = {
    "diopiMaximum": jnp.maximum,
    "diopiMinimum": jnp.minimum,
    "diopiEq": jnp.equal,
    "diopiNe": jnp.not_equal,
    "diopiGe": jnp.greater_equal,
    "diopiGt": jnp.greater,
    "diopiLe": jnp.less_equal,
    "diopiLt": jnp.less,
    "diopiLogicalAnd": jnp.logical_and,
    "diopiLogicalOr": jnp.logical_or,
    "diopiBitwiseAnd": jnp.bitwise_and,
    "diopiBitwiseOr": jnp.bitwise_or,
}
"""The functions of two operands that a single function of jax.numpy implements."""


def _make_binary_function(function: Callable[..., Array]) -> Callable[[Array, Operand], Array]:
    """Return an implementation that applies a function of jax.numpy to `input` and `other`."""

    def apply(input: Array, other: Operand) -> Array:
        """Apply the function to both operands."""
        return function(input, other)

    return apply


for _name, _function in BINARY.items():
    vendor.implements(_name)(_make_binary_function(_function))


def _all_of_kind(kind: type, *operands: Operand) -> bool:
    """Return whether all operands are of a kind such as `jnp.bool_`, `jnp.integer` or `jnp.complexfloating`."""
    return all(jnp.issubdtype(jnp.result_type(operand), kind) for operand in operands)


def _all_integral(*operands: Operand) -> bool:
    """Return whether all operands are integers or bool."""
    return not any(_all_of_kind(jnp.inexact, operand) for operand in operands)


_barrier: Callable[[list[Array]], list[Array]] = lax.optimization_barrier
"""Returns arrays unchanged; XLA does not optimize across it."""


def _promote(*operands: Operand) -> list[Array]:
    """Return the operands in a common type and shape, behind a barrier that keeps XLA from simplifying the operation.

    XLA would multiply by the reciprocal instead of dividing by a broadcast number, and select instead of multiplying by
    a bool. Neither preserves the extremes of the range or the sign of zero.

    Args:
        operands: arrays or numbers.

    Returns:
        The operands as arrays.
    """
    dtype = jnp.result_type(*operands)
    arrays = (operand if isinstance(operand, Array) else np.asarray(operand) for operand in operands)
    return list(_barrier(jnp.broadcast_arrays(*(array.astype(dtype) for array in arrays))))


def _reject_floating(name: str, number: float, *operands: Operand) -> None:
    """Raise ValueError if `number` is a float and all operands are integers or bool; `name` is its name."""
    if isinstance(number, float) and _all_integral(*operands):
        raise ValueError(f"{name} is {number}, expected an integer for operands of integer type")


@vendor.implements("diopiMul", adapt=binary_ufunc(np.multiply))
def mul(input, other):
    """Return input · other; for Booleans, the logical and."""
    return jnp.multiply(*_promote(input, other))  # for bool, the logical and


@vendor.implements("diopiAdd", adapt=binary_ufunc(np.add, 1))
def add(input, other, alpha):
    """Return input + alpha · other; for Booleans, the logical or of input and (alpha and other)."""
    _reject_floating("alpha", alpha, input, other)
    x, y = _promote(input, other)
    return x | (y & bool(alpha)) if _all_of_kind(jnp.bool_, x) else x + alpha * y


@vendor.implements("diopiSub", adapt=binary_ufunc(np.subtract, 1))
def sub(input, other, alpha):
    """Return input − alpha · other."""
    _reject_floating("alpha", alpha, input, other)
    x, y = _promote(input, other)
    return x - alpha * y


def _floor_divide_floats(input: Array, divisor: Array) -> Array:
    """Return ⌊input / divisor⌋, computed as (input − remainder) / divisor and rounded to an integer.

    If the divisor is 0, the quotient is not rounded: it is infinite or NaN.
    """
    dtype, (input, divisor, _) = input.dtype, _scale_above_subnormals(input, divisor)
    fmod = jnp.fmod(input, divisor)
    floor = jnp.round((input - fmod) / divisor) - ((fmod != 0) & ((fmod < 0) != (divisor < 0)))
    quotient = input / divisor
    result = jnp.where(divisor == 0, quotient, jnp.where(floor == 0, jnp.copysign(floor, quotient), floor))
    return result.astype(dtype)


def _scale_above_subnormals(dividend: Array, divisor: Array) -> tuple[Array, Array, Array]:
    """Return both operands in float64, scaled so that their remainder is not subnormal, and the scale, a power of two.

    XLA flushes subnormal remainders to zero. Subnormal operands are flushed here, because XLA flushes them only
    sometimes.

    Args:
        dividend: the dividend.
        divisor: the divisor.

    Returns:
        The scaled dividend, the scaled divisor and the scale.
    """
    dividend, divisor = (flush_subnormals(operand).astype(jnp.float64) for operand in (dividend, divisor))
    scale = jnp.where((jnp.abs(divisor) < 2.0**-900) & (jnp.abs(dividend) < 2.0**900), 2.0**100, 1.0)
    return dividend * scale, divisor * scale, scale


def _floor_divide(input: Array, divisor: Array) -> Array:
    """Return the quotient rounded down, for integers or floating numbers."""
    return jnp.floor_divide(input, divisor) if _all_integral(input) else _floor_divide_floats(input, divisor)


def _trunc_divide(input: Array, divisor: Array) -> Array:
    """Return the quotient rounded toward zero, for integers or floating numbers."""
    return (input - jnp.fmod(input, divisor)) // divisor if _all_integral(input) else jnp.trunc(input / divisor)


_ROUNDED_DIVISION = {RoundMode.trunc: _trunc_divide, RoundMode.floor: _floor_divide}
"""The functions that return a rounded quotient, by the rounding mode."""


@vendor.implements("diopiDiv", adapt=binary_ufunc(np.divide, RoundMode.none))
def div(input, other, rounding_mode):
    """Return input / other, rounded down or toward zero if `rounding_mode` says so."""
    if rounding_mode == RoundMode.none:
        result_dtype = (jnp.float32,) if _all_integral(input, other) else ()
        return jnp.true_divide(*_promote(*(jnp.asarray(operand, *result_dtype) for operand in (input, other))))
    if rounding_mode not in _ROUNDED_DIVISION:
        raise ValueError(f"rounding_mode is {rounding_mode}, expected none (0), trunc (1) or floor (2)")
    dividend, divisor = _promote(input, other)
    if _all_of_kind(jnp.bool_, dividend) or _all_of_kind(jnp.complexfloating, dividend):
        raise ValueError(f"the operands are {dividend.dtype}, expected real numbers for a rounded quotient")
    return _ROUNDED_DIVISION[rounding_mode](dividend, divisor)


def _power(input: Operand, exponent: Operand) -> Array:
    """Return input to the power of exponent in the promoted type; integer results are exact modulo 2^bits."""
    if _all_integral(input, exponent):
        return _integer_power(*jnp.broadcast_arrays(_promote(input, exponent)[0], exponent))
    base, exponent = _promote(input, exponent)
    if _all_of_kind(jnp.complexfloating, base):  # exp(exponent · ln base) multiplies the error of ln by the exponent
        power = jnp.power(base.astype(jnp.complex128), exponent)
        return jnp.where((base == 0) & (exponent.real > 0), 0, power)  # where XLA returns NaN
    return jnp.power(flush_subnormals(base), exponent)


def _integer_power(base: Array, exponent: Array) -> Array:
    """Return base^exponent of integers by squaring, modulo 2^bits; for bools, x^y is x ∨ ¬y.

    Negative exponents give 0, except for the bases 1 and −1. The exponent may have a wider type than the base.
    """
    if _all_of_kind(jnp.bool_, base):
        return base | ~exponent
    exponent = exponent.astype(jnp.promote_types(exponent.dtype, jnp.int8))

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        """Square the base, and multiply the power by the square if the lowest bit of the exponent is 1."""
        power, square, bits = state
        return jnp.where(bits & 1 == 1, power * square, power), square * square, bits >> 1

    negative = exponent < 0
    start = jnp.ones_like(base), base, jnp.where(negative, exponent & 1, exponent)
    power, _, _ = lax.while_loop(lambda state: jnp.any(state[2] > 0), step, start)
    return jnp.where(~negative | (jnp.abs(base) == 1), power, 0)


def _reject_negative_exponent(input: HostArray, exponent: HostArray | float) -> None:
    """Raise ValueError for a negative integer exponent, passed as a number, of an integer input."""
    if isinstance(exponent, int) and exponent < 0 and input.dtype.kind in "iub":
        raise ValueError(f"exponent is {exponent}, expected at least 0 for an integer input")


@vendor.implements("diopiPowTensor", adapt=check_on_host(_reject_negative_exponent))
def power(input, exponent):
    """Return input ^ exponent."""
    return _power(input, exponent)


@vendor.implements("diopiPowScalar")
def power_of_number(input, exponent):
    """Return input ^ exponent, where input is a number."""
    return _power(input, exponent)


@vendor.implements("diopiAddcmul")
def addcmul(input, tensor1, tensor2, value):
    """Return input + value · tensor1 · tensor2; `value` is truncated for integers."""
    base, factor1, factor2 = _promote(input, tensor1, tensor2)
    return base + (int(value) if _all_integral(base) else value) * factor1 * factor2


@vendor.implements(
    "diopiAddcdiv", adapt=partial(adapt_by_compiling, traced=["value"])
)  # optimizers change `value` at each step
def addcdiv(input, tensor1, tensor2, value):
    """Return input + value · tensor1 / tensor2."""
    base, numerator, denominator = _promote(input, tensor1, tensor2)
    return base + value * numerator / denominator


@vendor.implements("diopiLerpTensor")
def lerp(input, end, weight):
    """Return input + weight · (end − input), computed from the end that is nearer to the result.

    The result for the weights 0 and 1 is therefore exact.
    """
    near_end = jnp.abs(jnp.asarray(weight)) >= 0.5
    return jnp.where(near_end, end - (end - input) * (1 - weight), input + weight * (end - input))


def _remainder(input: Operand, modulus: Operand) -> Array:
    """Return the remainder of input / modulus with the sign of the modulus; subnormal remainders are exact."""
    dividend, divisor = _promote(input, modulus)
    if not _all_of_kind(jnp.floating, dividend):
        return _with_divisor_sign(jnp.fmod(dividend, divisor), divisor)
    scaled, divisor, scale = _scale_above_subnormals(dividend, divisor)
    return (_with_divisor_sign(jnp.fmod(scaled, divisor), divisor) / scale).astype(dividend.dtype)


def _with_divisor_sign(fmod: Array, divisor: Array) -> Array:
    """Return `fmod`, a remainder with the sign of the dividend, as a remainder with the sign of the divisor."""
    return jnp.where((fmod != 0) & ((fmod < 0) != (divisor < 0)), fmod + divisor, fmod)


@vendor.implements("diopiRemainderTensor")
def remainder(input, other):
    """Return the remainder of input / other with the sign of `other`, as Python defines it."""
    return _remainder(input, other)


@vendor.implements("diopiRemainder")
def remainder_of_number(input, other):
    """Return the remainder of input / other with the sign of `other`; input may be a number."""
    return _remainder(input, other)


@vendor.implements("diopiClamp")
def clamp(input, min, max):
    """Return input limited to the range from `min` to `max`; either bound may be None."""
    if min is None and max is None:
        raise ValueError("min and max are both NULL, expected at least one bound")
    raised = input if min is None else clamp_min(input, min)
    return raised if max is None else clamp_max(raised, max)


@vendor.implements("diopiClampMin")
def clamp_min(input, min):
    """Return max(input, min); if only `min` is floating, it is truncated to the type of input."""
    return (
        _limit_integers(input, min, input < min)
        if _has_float_bound(input, min)
        else _limit_by_bound(input, min, jnp.maximum)
    )


@vendor.implements("diopiClampMax")
def clamp_max(input, max):
    """Return min(input, max); if only `max` is floating, it is truncated to the type of input."""
    return (
        _limit_integers(input, max, input > max)
        if _has_float_bound(input, max)
        else _limit_by_bound(input, max, jnp.minimum)
    )


def _limit_by_bound(input: Array, bound: Operand, choose: Callable[[Array, Operand], Array]) -> Array:
    """Return `choose(input, bound)`, where `choose` is the element-wise maximum or minimum.

    If the bound is a number 0, zeros of the input keep their signs.
    """
    chosen = choose(input, bound)
    is_number = getattr(bound, "weak_type", True)
    if not is_number or not jnp.issubdtype(chosen.dtype, jnp.floating):
        return chosen
    return keep_zero_signs(chosen, input, bound)


def keep_zero_signs(chosen: Array, input: Array, bound: Operand) -> Array:
    """Return `chosen` with the signs of the zeros in `input` where the bound is also zero."""
    return jnp.where((input == 0) & (bound == 0), jnp.copysign(jnp.zeros_like(chosen), input), chosen)


def _has_float_bound(input: Array, bound: Operand) -> bool:
    """Return whether the input has an integer type and the bound is a floating number."""
    return _all_integral(input) and not _all_integral(bound)


def _limit_integers(input: Array, bound: Operand, beyond: Array) -> Array:
    """Return `input` with the elements where `beyond` is true replaced by the truncated bound."""
    return jnp.where(beyond, convert_to_dtype(jnp.asarray(bound), from_numpy(input.dtype)), input)


@vendor.implements("diopiEqual")
def equal(input, other):
    """Return one Boolean: whether both tensors have the same shape and elements."""
    return jnp.array_equal(input, other)


@vendor.implements("diopiForeachaddScalar")
def foreach_add(inputs, other):
    """Return the sum of each tensor and a number."""
    return [jnp.add(*_promote(_promote_entry(input, other), other)) for input in inputs]


@vendor.implements("diopiForeachmulScalar")
def foreach_mul(inputs, other):
    """Return the product of each tensor and a number."""
    return [jnp.multiply(*_promote(_promote_entry(input, other), other)) for input in inputs]


def _promote_entry(input: Array, number: float) -> Array:
    """Return `input` as float32 if it is an integer tensor and `number` is a floating-point number."""
    return input.astype(jnp.float32) if _all_integral(input) and isinstance(number, float) else input


@vendor.implements("diopiForeachmulTensor")
def foreach_mul_by_tensor(inputs, other):
    """Return the product of each tensor and the element of `other`, a tensor of one element."""
    return [jnp.multiply(*_promote(input, other.reshape(()))) for input in inputs]
