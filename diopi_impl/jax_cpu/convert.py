"""Conversion of element types inside traced functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.conversion import convert_to_integers
from diopi_impl.functional import first_dtype
from diopi_impl.specs import OutSpec
from diopi_proto.dtypes import category, half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from lib_rt.dtypes import from_numpy, to_numpy

HALF = tuple(to_numpy(dtype) for dtype in half)
"""The half-precision types of NumPy arrays."""


def convert_to_dtype(array: Array, dtype: Dtype) -> Array:
    """Return `array` converted to `dtype`.

    Complex numbers keep only the real part if `dtype` is an integer or a real floating type. In bool, a complex number
    is false only if both parts are 0.
    """
    if dtype is Dtype.bool:
        return array != 0
    if category(dtype) < 3 and jnp.iscomplexobj(array):
        array = array.real
    if category(dtype) < 2 and jnp.issubdtype(array.dtype, jnp.floating):
        integers: Array = convert_to_integers(array, to_numpy(dtype), jnp)
        return integers
    if dtype is Dtype.float16 and array.dtype == jnp.float64:
        array = _round_to_odd(array)
    return array.astype(to_numpy(dtype))


def _round_to_odd(array: Array) -> Array:
    """Return a float64 array as float32, where inexact numbers are rounded to the neighbor with an odd significand.

    XLA converts float64 to float16 through float32, and so rounds twice. If the first rounding is to odd, both together
    give the same result as a single rounding to nearest (Boldo and Melquiond, 2008).
    """
    single = array.astype(jnp.float32)
    nearer_to_zero = jnp.nextafter(single, jnp.zeros_like(single))
    truncated = jnp.where(jnp.abs(single) > jnp.abs(array), nearer_to_zero, single)
    is_inexact = jnp.isfinite(truncated) & (truncated != array)
    bits = lax.bitcast_convert_type(truncated, jnp.int32) | is_inexact.astype(jnp.int32)
    return lax.bitcast_convert_type(bits, jnp.float32)


def widen_half(array: Array) -> Array:
    """Return a half-precision array as float32, the type of the computation, and any other array unchanged."""
    return array.astype(jnp.float32) if array.dtype in HALF else array


def convert_operand(array: Array, dtype: Dtype) -> Array:
    """Return `array` converted to `dtype`; if this is a half-precision type, the rounded numbers are float32 again."""
    if array.dtype == to_numpy(dtype):
        return array
    # without the barrier XLA would remove the rounding to half precision
    return widen_half(lax.optimization_barrier(convert_to_dtype(array, dtype)))


def promote_arguments(prototype: Prototype, arguments: Sequence[Any], out: Sequence[OutSpec]) -> list[Any]:
    """Return the arguments after the type conversions that the standard requires before the computation.

    Args:
        prototype: the prototype of the function. If a scalar form is called, it is the prototype of the base function,
            and a weakly typed number takes the place of a tensor.
        arguments: the argument values in the order of the prototype.
        out: the result specs.

    Returns:
        The argument values in the same order.
    """
    named_arguments = {p.name: value for p, value in zip(prototype.arguments, arguments, strict=True)}
    dtypes = {name: from_numpy(value.dtype) for name, value in named_arguments.items() if _is_tensor(value)}
    numbers = {p.name: named_arguments[p.name] for p in prototype.operands if p.name not in dtypes}
    kinds = {name: None if number is None else _example_number(number) for name, number in numbers.items()}
    names, dtype = prototype.find_conversions(dtypes, {**named_arguments, **kinds}, first_dtype(out))
    return [
        convert_operand(jnp.asarray(value), dtype) if name in names else value
        for name, value in named_arguments.items()
    ]


def _is_tensor(value: Any) -> bool:
    """Return whether a value is a traced tensor; numbers are weakly typed arrays."""
    return isinstance(value, Array) and not value.weak_type


def _example_number(number: Any) -> bool | int | float:
    """Return False, 0 or 0.0, whichever has the kind of `number`. A traced number has no value."""
    kinds: dict[str, bool | int | float] = {"b": False, "i": 0, "f": 0.0}
    return kinds[jnp.result_type(number).kind]
