"""Reductions along axes, and the running sum."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from diopi_impl.functional import ResultSpec
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.axes import check_axes
from diopi_impl.jax_cpu.extremes import nan_propagating_max, nan_propagating_min, ranks

Axes = tuple[int, ...] | None


def _axes(input: Array, dim: tuple[int, ...] | int | None) -> Axes:
    """Return the axes to reduce in JAX's form: None for all axes."""
    if dim is None or dim == ():
        return None
    axes = (dim,) if isinstance(dim, int) else dim
    check_axes(input, *axes)
    return axes if input.ndim else None


def _keeps_axes(input: Array, out: ResultSpec) -> bool:
    """Return whether the result that the caller allocated has the reduced axes."""
    return out.ndim == input.ndim


@vendor.implements("diopiSum")
def sum_(input, dim, *, out):
    return jnp.sum(input, _axes(input, dim), keepdims=_keeps_axes(input, out))


@vendor.implements("diopiMean")
def mean(input, dim, *, out):
    return jnp.mean(input, _axes(input, dim), keepdims=_keeps_axes(input, out))


@vendor.implements("diopiStd")
def std(input, dim, correction, *, out):
    axes = _axes(input, dim)
    centered = input - jnp.mean(input, axes, keepdims=True)
    squares = jnp.real(centered * jnp.conj(centered))
    total = jnp.sum(squares, axes, keepdims=_keeps_axes(input, out))
    n = input.size // max(total.size, 1)
    return jnp.sqrt(total / max(n - (1 if correction is None else correction), 0))


def _take_extreme(
    position: Callable[[Array, int, bool], Array], input: Array, dim: int, keepdims: bool
) -> tuple[Array, Array]:
    """Return the elements at positions along an axis, and the positions."""
    check_axes(input, dim)
    rows = jnp.atleast_1d(input)
    places = position(rows, dim, True)
    result = jnp.take_along_axis(rows, places, dim), places
    return result if keepdims and input.ndim else (result[0].squeeze(dim), result[1].squeeze(dim))


@vendor.implements("diopiMax")
def max_(input, dim, *, out):
    return _take_extreme(_argmax_with_nan, input, dim, _keeps_axes(input, out[0]))


@vendor.implements("diopiMin")
def min_(input, dim, *, out):
    return _take_extreme(_argmin_with_nan, input, dim, _keeps_axes(input, out[0]))


@vendor.implements("diopiMaxAll")
def max_all(input):
    return nan_propagating_max(input)


@vendor.implements("diopiMinAll")
def min_all(input):
    return nan_propagating_min(input)


@vendor.implements("diopiAmax")
def amax(self, dim, keepdim):
    return nan_propagating_max(self, _axes(self, dim), keepdims=keepdim)


@vendor.implements("diopiAny")
def any_(input, dim, *, out):
    return jnp.any(input != 0, _axes(input, dim), keepdims=_keeps_axes(input, out))


@vendor.implements("diopiAll")
def all_(input, dim, *, out):
    return jnp.all(input != 0, _axes(input, dim), keepdims=_keeps_axes(input, out))


@vendor.implements("diopiProd")
def prod(input, dim, *, out):
    return jnp.prod(input, _axes(input, dim), keepdims=_keeps_axes(input, out))


@vendor.implements("diopiArgmax")
def argmax(input, dim, keepdim):
    return _position(_argmax_with_nan, input, dim, keepdim)


@vendor.implements("diopiArgmin")
def argmin(input, dim, keepdim):
    return _position(_argmin_with_nan, input, dim, keepdim)


def _position(
    function: Callable[[Array, int | None, bool], Array], input: Array, dim: int | None, keepdim: bool
) -> Array:
    if dim is not None:
        check_axes(input, dim)
    return function(jnp.atleast_1d(input), dim, keepdim)


def _argmax_with_nan(x: Array, dim: int | None, keepdims: bool) -> Array:
    """Return the position of the first maximum, or of the first NaN."""
    return jnp.argmax(ranks(x), dim, keepdims=keepdims)


def _argmin_with_nan(x: Array, dim: int | None, keepdims: bool) -> Array:
    """Return the position of the first minimum, or of the first NaN."""
    order = ranks(x)
    if jnp.issubdtype(x.dtype, jnp.floating):
        order = jnp.where(jnp.isnan(x), jnp.iinfo(order.dtype).min, order)
    return jnp.argmin(order, dim, keepdims=keepdims)


@vendor.implements("diopiCumsum")
def cumsum(input, dim):
    check_axes(input, dim)
    return jnp.cumsum(jnp.atleast_1d(input), dim).reshape(input.shape)


@vendor.implements("diopiCumsumBackward")
def cumsum_backward(grad_output, dim):
    check_axes(grad_output, dim)
    rows = jnp.atleast_1d(grad_output)
    return jnp.flip(jnp.cumsum(jnp.flip(rows, dim), dim), dim).reshape(grad_output.shape)
