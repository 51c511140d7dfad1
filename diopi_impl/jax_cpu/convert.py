"""Element types of arrays in a traced function: how a tensor of another type would hold them, and what is converted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.conversion import convert_to_integers
from diopi_impl.functional import OutSpec, first_dtype
from diopi_proto.dtypes import category, half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from lib_rt.dtypes import from_numpy, to_numpy

HALF = tuple(to_numpy(dtype) for dtype in half)


def convert_to_dtype(array: Array, dtype: Dtype) -> Array:
    """`array` in the element type `dtype`."""
    if dtype is Dtype.bool:
        return array != 0
    if category(dtype) < 3 and jnp.iscomplexobj(array):
        array = array.real
    if category(dtype) < 2 and jnp.issubdtype(array.dtype, jnp.floating):
        integers: Array = convert_to_integers(array, to_numpy(dtype), jnp)
        return integers
    return array.astype(to_numpy(dtype))


def widen_half(array: Array) -> Array:
    """Half precision as float32, in which it is computed; everything else unchanged."""
    return array.astype(jnp.float32) if array.dtype in HALF else array


def convert_operand(array: Array, dtype: Dtype) -> Array:
    """`array` as a tensor of `dtype` would hold it, ready to be computed with."""
    if array.dtype == to_numpy(dtype):
        return array
    # else XLA takes numbers that are rounded to half precision and widened again for the numbers they were
    return widen_half(lax.optimization_barrier(convert_to_dtype(array, dtype)))


def promote_arguments(prototype: Prototype, arguments: Sequence[Any], out: Sequence[OutSpec]) -> list[Any]:
    """The arguments with those converted that the standard converts before it computes.

    `prototype` may be the base of the form that is called: what is a tensor there is a number if it has a kind
    but no width.
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
    return isinstance(value, Array) and not value.weak_type


def _example_number(number: Any) -> bool | int | float:
    """A number of the same kind as `number`, whose value may not be known while a function is traced."""
    kinds: dict[str, bool | int | float] = {"b": False, "i": 0, "f": 0.0}
    return kinds[jnp.result_type(number).kind]
