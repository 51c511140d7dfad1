"""Sorting, selection of the largest or smallest elements, and distinct values, which are found on the host.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. With `apply_directly`, the arrays are NumPy's.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from diopi_impl.functional import apply_directly
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.extremes import has_subnormals, to_ranks
from diopi_impl.jax_cpu.positions import axis_length, check_positions, prepare_on_host
from diopi_proto.dtypes import half
from lib_rt.dtypes import to_numpy

HostArray = NDArray[Any]
"""An array of NumPy."""

_HALF = [to_numpy(dtype) for dtype in half]
"""The half-precision types of NumPy arrays."""


def _check_dim(input: Array, dim: int) -> None:
    """Raise IndexError unless the axis exists; a 0-d input counts as having one axis."""
    rank = max(input.ndim, 1)
    if not -rank <= dim < rank:
        raise IndexError(f"dim {dim} is out of range for shape {input.shape}")


def _sort(input: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    """Return sorted values and their positions, sorted stably; a 0-d array counts as a vector of one element."""
    _check_dim(input, dim)
    rows = jnp.atleast_1d(input)
    order = jnp.argsort(to_ranks(rows), dim, stable=True, descending=descending)
    return jnp.take_along_axis(rows, order, dim), order


@vendor.implements("diopiSort")
def sort(input, dim, descending):
    """Return the sorted values along an axis and their positions; equal elements keep their order."""
    return _sort(input, dim, descending)


@vendor.implements("diopiArgsort")
def argsort(input, dim, descending):
    """Return the positions that sort an axis."""
    return _sort(input, -1 if dim is None else dim, descending)[1]


@vendor.implements("diopiTopk")
def topk(input, k, dim, largest):
    """Return the k largest or smallest elements along an axis and their positions."""
    _check_dim(input, dim)
    rows = jnp.moveaxis(jnp.atleast_1d(input), dim, -1)
    if not 0 <= k <= rows.shape[-1]:
        raise ValueError(f"k is {k}, axis {dim} of shape {input.shape} has {rows.shape[-1]} elements")
    order = _top_k(rows, k, largest)
    values = jnp.take_along_axis(rows, order, -1)
    return (jnp.moveaxis(values, -1, dim), jnp.moveaxis(order, -1, dim)) if input.ndim else (values, order)


def _top_k(rows: Array, k: int, largest: bool) -> Array:
    """Return the positions of the k largest or smallest elements of each row, sorted stably; NaN is the largest.

    XLA selects float32 elements without sorting. However, XLA orders zeros and NaNs by their signs, and does not
    distinguish subnormal numbers.

    Args:
        rows: the elements, rows along the last axis.
        k: the number of elements.
        largest: whether to select the largest elements.

    Returns:
        Positions (…, k).
    """

    def sort_first(rows: Array) -> Array:
        """Return the first k positions of the sorted rows."""
        return jnp.argsort(to_ranks(rows), -1, stable=True, descending=largest)[..., :k]

    def select_first(rows: Array) -> Array:
        """Return the positions that XLA's selection finds, with zeros and NaNs made equal."""
        keys = jnp.where(rows == 0, 0, jnp.where(jnp.isnan(rows), jnp.nan, rows))
        return lax.top_k(keys if largest else -keys, k)[1].astype(jnp.int64)

    if rows.dtype != jnp.float32:
        return sort_first(rows)
    result: Array = lax.cond(has_subnormals(rows), sort_first, select_first, rows)
    return result


def _check_indices(arguments: dict[str, Any]) -> None:
    """Raise IndexError unless the indices are positions along `dim`."""
    check_positions("indices", arguments["indices"], 0, axis_length(arguments["sizes"], arguments["dim"]))


@vendor.implements("diopiSortBackward", adapt=prepare_on_host(_check_indices))
def sort_backward(grad_output, dim, indices, sizes, keepdim):
    """Return zeros of shape `sizes` with grad_output at the positions `indices` along an axis."""
    if not sizes:
        return grad_output
    if not keepdim:
        grad_output, indices = jnp.expand_dims(grad_output, dim), jnp.expand_dims(indices, dim)
    zeros = jnp.zeros(sizes, grad_output.dtype)
    return jnp.put_along_axis(zeros, indices, grad_output, dim, inplace=False)


@vendor.implements("diopiUnique", adapt=apply_directly)
def unique(input, dim, return_counts):
    """Return the distinct elements, or slices along `dim`, in order, with inverse indices and counts."""
    elements = input.astype(np.float32) if input.dtype in _HALF else input  # NumPy can't compare rows of bfloat16
    out, inverse, counts = np.unique(elements, return_inverse=True, return_counts=True, axis=dim)
    inverse = inverse.reshape(input.shape if dim is None else input.shape[dim])
    return out.astype(input.dtype), inverse, counts if return_counts else None
