"""Maxima and minima that are NaN where an element is.

XLA's own are not: where there are thousands of elements it leaves a reduction to YNNPACK, which loses NaNs in some
element types. It recognises a reduction by its operation, so here it is one of comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jax import Array, lax


def larger(x: Array, y: Array) -> Array:
    """The larger one of each two numbers, NaN if one of them is."""
    return jnp.where((x > y) | (x != x), x, y)


def smaller(x: Array, y: Array) -> Array:
    """The smaller one of each two numbers, NaN if one of them is."""
    return jnp.where((x < y) | (x != x), x, y)


def greatest(x: Array, axes: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
    """The maximum along the axes, of all elements by default; ValueError if there are none."""
    return _along(jnp.max, larger, -jnp.inf, x, axes, keepdims)


def least(x: Array, axes: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
    """The minimum along the axes, of all elements by default; ValueError if there are none."""
    return _along(jnp.min, smaller, jnp.inf, x, axes, keepdims)


def _along(
    usual: Callable[..., Array],
    chosen: Callable[[Array, Array], Array],
    start: float,
    x: Array,
    axes: int | Sequence[int] | None,
    keepdims: bool,
) -> Array:
    """Floating numbers reduced by `chosen` from `start` on; all others, and none at all, as `usual` does it."""
    places = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    if not jnp.issubdtype(x.dtype, jnp.floating) or not all(x.shape[axis] for axis in places):
        return usual(x, axes, keepdims=keepdims)
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))  # where XLA computes comparisons fast
    for axis in sorted(axis % x.ndim for axis in places):  # rows are vectors, a scalar is compared one by one
        wide = jnp.expand_dims(lax.reduce(wide, jnp.array(start, wide.dtype), chosen, (axis,)), axis)
    result = wide.astype(x.dtype)
    return result if keepdims else result.squeeze(tuple(places))
