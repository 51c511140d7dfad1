"""Integer keys that order floating numbers, and maxima and minima that propagate NaN.

XLA compares subnormal numbers as zeros. It leaves maxima of thousands of elements to YNNPACK, which drops NaNs in some
element types. Integer keys have neither problem and are compared equally fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def to_ranks(x: Array) -> Array:
    """Return integers in the order of the floating numbers `x`: zeros of both signs are equal, and NaN is the largest.

    Arrays of other types are returned unchanged.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    keys = to_keys(x)
    return keys + (keys < 0).astype(keys.dtype)  # only the key of −0 is −1


def nan_rank(ranks: Array) -> Any:
    """Return the rank that `to_ranks` gives to NaN: the largest integer of the type of the ranks."""
    return jnp.iinfo(ranks.dtype).max


def to_keys(x: Array, *, nan_first: bool = False) -> Array:
    """Return integers in the order of the floating numbers `x`, with −0 below +0.

    NaN is the largest integer, or the smallest one if `nan_first`.
    """
    bits = lax.bitcast_convert_type(x, _bits_dtype(x))
    ends = jnp.iinfo(bits.dtype)
    return jnp.where(jnp.isnan(x), ends.min if nan_first else ends.max, _flip_magnitude(bits))


def from_keys(keys: Array, dtype: Any) -> Array:
    """Return the floating numbers with these keys (`to_keys`), in a type of the same size as the keys."""
    return lax.bitcast_convert_type(_flip_magnitude(keys), dtype)


def _flip_magnitude(bits: Array) -> Array:
    """Return the bits with the magnitude inverted where the sign is negative; the function is its own inverse."""
    ends = jnp.iinfo(bits.dtype)
    return bits ^ ((bits >> (ends.bits - 1)) & ends.max)


def _bits_dtype(x: Array) -> Any:
    """Return the integer type with the size of the elements of `x`."""
    return np.dtype(f"int{8 * x.dtype.itemsize}")


def has_subnormals(x: Array) -> Array:
    """Return whether any element is subnormal, as a traced Boolean."""
    magnitude = lax.bitcast_convert_type(jnp.abs(x), _bits_dtype(x))
    least_normal = np.array(jnp.finfo(x.dtype).tiny, x.dtype).view(magnitude.dtype)
    return ((magnitude > 0) & (magnitude < least_normal)).any()


def flush_subnormals(x: Array) -> Array:
    """Return `x` with subnormal numbers replaced by zeros of the same sign; XLA itself does so only sometimes."""
    return jnp.where(x == 0, jnp.copysign(jnp.zeros_like(x), x), x)


def elementwise_maximum(x: Array, y: Array) -> Array:
    """Return the element-wise maximum, NaN where either number is NaN."""
    return jnp.where((x > y) | (x != x), x, y)


def nan_propagating_max(x: Array, axes: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
    """Return the maximum along the axes (all by default); NaN if an element is NaN."""
    return _reduce_by_keys(jnp.max, lax.max, False, x, axes, keepdims)


def nan_propagating_min(x: Array, axes: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
    """Return the minimum along the axes (all by default); NaN if an element is NaN."""
    return _reduce_by_keys(jnp.min, lax.min, True, x, axes, keepdims)


def _reduce_by_keys(
    fallback: Callable[..., Array],
    reducer: Callable[[Array, Array], Array],
    nan_first: bool,
    x: Array,
    axes: int | Sequence[int] | None,
    keepdims: bool,
) -> Array:
    """Return the maximum or minimum along the axes, NaN if an element is NaN.

    Args:
        fallback: the function of jax.numpy that reduces integers, and arrays without elements along an axis.
        reducer: the function of two integers that reduces the keys of floating numbers.
        nan_first: whether the key of NaN is the smallest integer; it must be the one that `reducer` prefers.
        x: the array.
        axes: the axes; None for all.
        keepdims: whether the result keeps the axes with the size 1.
    """
    places = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    if not jnp.issubdtype(x.dtype, jnp.floating) or not all(x.shape[axis] for axis in places):
        return fallback(x, axes, keepdims=keepdims)
    keys = to_keys(x, nan_first=nan_first)
    ends = jnp.iinfo(keys.dtype)
    start = jnp.array(ends.max if nan_first else ends.min, keys.dtype)
    for axis in sorted(axis % x.ndim for axis in places):  # XLA vectorizes the reduction of one axis only
        keys = jnp.expand_dims(lax.reduce(keys, start, reducer, (axis,)), axis)
    result = from_keys(keys, x.dtype)
    return result if keepdims else result.squeeze(tuple(places))
