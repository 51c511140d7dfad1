"""Reductions along axes, and the cumulative sum.

The functions with the decorator `implements` take the arguments of the named prototype as JAX arrays and Python values.
`out` describes a result that the caller has allocated. Maxima and minima are NaN if an element is NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.axes import check_axes
from diopi_impl.jax_cpu.extremes import nan_propagating_max, nan_propagating_min, to_ranks
from diopi_impl.specs import ResultSpec

Axes = tuple[int, ...] | None
"""The axes that are reduced; None for all axes."""


def _reduced_axes(input: Array, dim: tuple[int, ...] | int | None) -> Axes:
    """Return the axes that `dim` names, or None for all axes; raise ValueError if an axis is invalid."""
    if dim is None or dim == ():
        return None
    axes = (dim,) if isinstance(dim, int) else dim
    check_axes(input, *axes)
    return axes if input.ndim else None


def _keeps_axes(input: Array, out: ResultSpec) -> bool:
    """Return whether the result that the caller allocated has the reduced axes, with the size 1."""
    return out.ndim == input.ndim


@vendor.implements("diopiSum")
def sum_(input, dim, *, out):
    """Return the sum along the axes."""
    return jnp.sum(input, _reduced_axes(input, dim), keepdims=_keeps_axes(input, out))


@vendor.implements("diopiMean")
def mean(input, dim, *, out):
    """Return the mean along the axes."""
    return jnp.mean(input, _reduced_axes(input, dim), keepdims=_keeps_axes(input, out))


@vendor.implements("diopiStd")
def std(input, dim, correction, *, out):
    """Return the standard deviation √(Σ |x − mean|² / (n − correction)) along the axes; a correction of None is 1."""
    axes = _reduced_axes(input, dim)
    centered = input - jnp.mean(input, axes, keepdims=True)
    squares = jnp.real(centered * jnp.conj(centered))
    total = jnp.sum(squares, axes, keepdims=_keeps_axes(input, out))
    n = input.size // max(total.size, 1)
    return jnp.sqrt(total / max(n - (1 if correction is None else correction), 0))


def _take_extreme(
    position: Callable[[Array, int, bool], Array], input: Array, dim: int, keepdims: bool
) -> tuple[Array, Array]:
    """Return the maxima or minima along an axis, and their positions.

    Args:
        position: Returns the positions along an axis: `_argmax_with_nan` or `_argmin_with_nan`.
        input: The input.
        dim: The axis.
        keepdims: Whether the results have the axis, with the size 1.
    """
    check_axes(input, dim)
    rows = jnp.atleast_1d(input)
    places = position(rows, dim, True)
    result = jnp.take_along_axis(rows, places, dim), places
    return result if keepdims and input.ndim else (result[0].squeeze(dim), result[1].squeeze(dim))


@vendor.implements("diopiMax")
def max_(input, dim, *, out):
    """Return the maxima along an axis, and the position of the first maximum; the first NaN counts as the maximum."""
    return _take_extreme(_argmax_with_nan, input, dim, _keeps_axes(input, out[0]))


@vendor.implements("diopiMin")
def min_(input, dim, *, out):
    """Return the minima along an axis, and the position of the first minimum; the first NaN counts as the minimum."""
    return _take_extreme(_argmin_with_nan, input, dim, _keeps_axes(input, out[0]))


@vendor.implements("diopiMaxAll")
def max_all(input):
    """Return the maximum of all elements, or NaN if an element is NaN."""
    return nan_propagating_max(input)


@vendor.implements("diopiMinAll")
def min_all(input):
    """Return the minimum of all elements, or NaN if an element is NaN."""
    return nan_propagating_min(input)


@vendor.implements("diopiAmax")
def amax(self, dim, keepdim):
    """Return the maximum along the axes, or NaN if an element is NaN."""
    return nan_propagating_max(self, _reduced_axes(self, dim), keepdims=keepdim)


@vendor.implements("diopiAny")
def any_(input, dim, *, out):
    """Return whether any element along the axes is not 0."""
    return jnp.any(input != 0, _reduced_axes(input, dim), keepdims=_keeps_axes(input, out))


@vendor.implements("diopiAll")
def all_(input, dim, *, out):
    """Return whether no element along the axes is 0."""
    return jnp.all(input != 0, _reduced_axes(input, dim), keepdims=_keeps_axes(input, out))


@vendor.implements("diopiProd")
def prod(input, dim, *, out):
    """Return the product along the axes."""
    return jnp.prod(input, _reduced_axes(input, dim), keepdims=_keeps_axes(input, out))


@vendor.implements("diopiArgmax")
def argmax(input, dim, keepdim):
    """Return the position of the first maximum or NaN along an axis, or in the flattened input if `dim` is None."""
    return _extreme_position(_argmax_with_nan, input, dim, keepdim)


@vendor.implements("diopiArgmin")
def argmin(input, dim, keepdim):
    """Return the position of the first minimum or NaN along an axis, or in the flattened input if `dim` is None."""
    return _extreme_position(_argmin_with_nan, input, dim, keepdim)


def _extreme_position(
    function: Callable[[Array, int | None, bool], Array], input: Array, dim: int | None, keepdim: bool
) -> Array:
    """Return the positions that `function` finds along an axis, or in the flattened input."""
    if dim is not None:
        check_axes(input, dim)
    return function(jnp.atleast_1d(input), dim, keepdim)


def _argmax_with_nan(x: Array, dim: int | None, keepdims: bool) -> Array:
    """Return the position of the first maximum, or of the first NaN."""
    return jnp.argmax(to_ranks(x), dim, keepdims=keepdims)  # NaN has the largest rank


def _argmin_with_nan(x: Array, dim: int | None, keepdims: bool) -> Array:
    """Return the position of the first minimum, or of the first NaN."""
    order = to_ranks(x)
    if jnp.issubdtype(x.dtype, jnp.floating):
        order = jnp.where(jnp.isnan(x), jnp.iinfo(order.dtype).min, order)
    return jnp.argmin(order, dim, keepdims=keepdims)


@vendor.implements("diopiCumsum")
def cumsum(input, dim):
    """Return the cumulative sums along an axis."""
    check_axes(input, dim)
    return jnp.cumsum(jnp.atleast_1d(input), dim).reshape(input.shape)


@vendor.implements("diopiCumsumBackward")
def cumsum_backward(grad_output, dim):
    """Return the cumulative sums of grad_output from the end of the axis."""
    check_axes(grad_output, dim)
    rows = jnp.atleast_1d(grad_output)
    return jnp.flip(jnp.cumsum(jnp.flip(rows, dim), dim), dim).reshape(grad_output.shape)
