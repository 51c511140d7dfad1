"""Core ATen operators that move elements: views, concatenation, padding, gathering and scattering.

Each function implements the ATen operator that its decorator names, for JAX arrays, with the operator's parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from diopi_engine.aten.table import operator

END = 2**63 - 1
"""The value with which PyTorch represents the end of a slice that extends to the end of the axis."""


@operator("view")
def view(x: Array, size: Sequence[Any]) -> Array:
    """Return x with the sizes `size`."""
    return x.reshape(tuple(size))


@operator("permute")
def permute(x: Array, dims: Sequence[int]) -> Array:
    """Return x with its axes in the order `dims`."""
    return jnp.transpose(x, tuple(dims))


@operator("expand")
def expand(x: Array, size: Sequence[Any], implicit: bool = False) -> Array:
    """Return x, broadcast to `size`; −1 keeps the size of an axis."""
    new_axes = len(size) - x.ndim
    shape = (
        old_length if isinstance(new_length, int) and new_length == -1 else new_length
        for new_length, old_length in zip(size[new_axes:], x.shape, strict=True)
    )
    return jnp.broadcast_to(x, (*size[:new_axes], *shape))


@operator("unsqueeze")
def unsqueeze(x: Array, dim: int) -> Array:
    """Return x with an axis of size 1 inserted at `dim`."""
    return jnp.expand_dims(x, dim)


@operator("squeeze.dim", "squeeze.dims")
def squeeze(x: Array, dims: int | Sequence[int]) -> Array:
    """Return x without the axes in `dims` that have size 1."""
    listed = [dims] if isinstance(dims, int) else dims
    return jnp.squeeze(x, tuple(dim for dim in listed if isinstance(x.shape[dim], int) and x.shape[dim] == 1))


@operator("select.int")
def select(x: Array, dim: int, index: int) -> Array:
    """Return the slice of x at position `index` of axis `dim`, without this axis."""
    return x[_index_axis(x, dim, index)]


@operator("slice.Tensor")
def slice_along(x: Array, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Array:
    """Return the elements start, start + step, … below `end` of axis `dim`; None is the beginning or the end."""
    end = None if isinstance(end, int) and end == END else end
    return x[_index_axis(x, dim, slice(start, end, step))]


def _index_axis(x: Array, dim: int, index: Any) -> tuple[Any, ...]:
    """Return an index tuple that applies `index` to the axis `dim` and selects everything on the axes before it."""
    return (*[slice(None)] * (dim % x.ndim), index)


@operator("cat")
def cat(tensors: Sequence[Array], dim: int = 0) -> Array:
    """Return the tensors joined along an axis; vectors without elements are skipped."""
    return jnp.concatenate([x for x in tensors if x.shape != (0,)], dim)


@operator("split_with_sizes")
def split(x: Array, sizes: Sequence[int], dim: int = 0) -> Sequence[Array]:
    """Return the parts of x of these sizes along an axis."""
    ends = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    return [slice_along(x, dim, end - size, end) for size, end in zip(sizes, ends, strict=True)]


@operator("repeat")
def repeat(x: Array, repeats: Sequence[Any]) -> Array:
    """Return x, tiled `repeats` times along each axis."""
    return jnp.tile(x, tuple(repeats))


@operator("flip")
def flip(x: Array, dims: Sequence[int]) -> Array:
    """Return x with the order of elements reversed along the axes `dims`."""
    return jnp.flip(x, tuple(dims))


@operator("diagonal")
def diagonal(x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """Return the diagonal of two axes, as a new last axis."""
    return jnp.diagonal(x, offset, dim1, dim2)


@operator("arange.start_step")
def arange(start: Any, end: Any, step: Any = 1, **_: Any) -> Array:
    """Return the numbers from `start` to `end`, which is excluded."""
    return jnp.arange(start, end, step)


@operator("constant_pad_nd")
def constant_pad(x: Array, pad: Sequence[int], value: float = 0) -> Array:
    """Return x, padded with a value; `pad` has the widths before and after each axis, the last axis first."""
    width = _pad_widths(x, pad)
    return lax.pad(x, jnp.asarray(value, x.dtype), [(low, high, 0) for low, high in width])


def _pad_widths(x: Array, pad: Sequence[int]) -> list[tuple[int, int]]:
    """Return the padding before and after each axis from ATen's list, which starts with the last axis."""
    pairs = [(pad[n], pad[n + 1]) for n in range(0, len(pad), 2)]
    return [*[(0, 0)] * (x.ndim - len(pairs)), *reversed(pairs)]


@operator("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(x: Array, pad: Sequence[int]) -> Array:
    """Return x, padded with its mirror image, which does not repeat the edge."""
    return jnp.pad(x, _pad_widths(x, pad), mode="reflect")


@operator("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(x: Array, pad: Sequence[int]) -> Array:
    """Return x, padded with copies of its edge."""
    return jnp.pad(x, _pad_widths(x, pad), mode="edge")


@operator("embedding")
def embedding(weight: Array, indices: Array, *_: Any) -> Array:
    """Return the rows of the weight at the indices."""
    return weight[indices]


@operator("index.Tensor")
def index(x: Array, indices: Sequence[Array | None]) -> Array:
    """Return x[indices]: the list has an index array for each axis, or None to select the whole axis.

    Raises:
        NotImplementedError: an index is a mask.
    """
    if any(index is not None and index.dtype == bool for index in indices):
        raise NotImplementedError("indexing with a mask, because the shape of the result depends on data")
    return x[tuple(slice(None) if index is None else index for index in indices)]


@operator("index_select")
def index_select(x: Array, dim: int, indices: Array) -> Array:
    """Return the slices of x at these positions along an axis."""
    return jnp.take(x, indices, dim)


@operator("index_put")
def index_put(x: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False) -> Array:
    """Return x with values written, or added if `accumulate`, at indexed elements."""
    elements = x.at[tuple(slice(None) if index is None else index for index in indices)]
    return elements.add(values) if accumulate else elements.set(values)


@operator("gather")
def gather(x: Array, dim: int, indices: Array, sparse_grad: bool = False) -> Array:
    """Return one element of x per index; `indices` are positions along the axis `dim`."""
    return x[_full_indices(x, dim, indices)]


@operator("scatter.src", "scatter.value")
def scatter(x: Array, dim: int, indices: Array, source: Any) -> Array:
    """Return x with elements of the source, or a number, written at positions along the axis `dim`."""
    part = source if jnp.ndim(source) == 0 else source[tuple(slice(0, size) for size in indices.shape)]
    return x.at[_full_indices(x, dim, indices)].set(part)


@operator("scatter_add")
def scatter_add(x: Array, dim: int, indices: Array, source: Array) -> Array:
    """Return x with elements of the source added at positions along the axis `dim`."""
    return x.at[_full_indices(x, dim, indices)].add(source[tuple(slice(0, size) for size in indices.shape)])


def _full_indices(x: Array, dim: int, indices: Array) -> tuple[Array, ...]:
    """Return index arrays for all axes from the indices along one axis."""
    grid = jnp.meshgrid(*(jnp.arange(size) for size in indices.shape), indexing="ij") if indices.ndim else []
    return tuple(indices if axis == dim % x.ndim else index for axis, index in enumerate(grid))


@operator("select_scatter")
def select_scatter(x: Array, source: Array, dim: int, index: int) -> Array:
    """Return x with the slice at a position along an axis replaced by the source."""
    return x.at[_index_axis(x, dim, index)].set(source)


@operator("slice_scatter")
def slice_scatter(x: Array, source: Array, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Array:
    """Return x with a range along an axis replaced by the source."""
    end = None if isinstance(end, int) and end == END else end
    return x.at[_index_axis(x, dim, slice(start, end, step))].set(source)


@operator("pixel_shuffle")
def pixel_shuffle(x: Array, factor: int) -> Array:
    """Return x with blocks of `factor` × `factor` channels rearranged as pixels."""
    *batch, channels, height, width = x.shape
    parts = x.reshape(prod(batch), channels // factor**2, factor, factor, height, width)
    return parts.transpose(0, 1, 4, 2, 5, 3).reshape(*batch, channels // factor**2, height * factor, width * factor)
