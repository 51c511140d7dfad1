"""Layouts: where the elements of a tensor lie in its storage. Tensors that lie alike share one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, final

import numpy as np

from diopi_proto import types
from diopi_proto.types import Dtype
from lib_rt import dtypes
from lib_rt.dtypes import Array
from lib_rt.library import ffi, pointer, size_pointer

_LAYOUT = ffi.typeof("struct diopirt_layout*")


@final
class Layout:
    """Everything about a tensor but its memory.

    Attributes:
        shape: number of elements along each axis.
        strides: distance in elements along each axis; empty of a sparse tensor.
        dtype: element type.
        where: whether it lies on the device or in host memory.
        storage_offset: position in its storage of the first element, in elements.
        is_sparse: whether the tensor is in compressed sparse row form.
        is_contiguous: whether the elements lie in row-major order without gaps.
        form: what tensors have in common that differ in their numbers, and where and how those lie, alone.
    """

    __slots__ = ("dtype", "form", "is_contiguous", "is_sparse", "shape", "storage_offset", "strides", "where")

    def __init__(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: Dtype,
        where: types.Device,
        storage_offset: int = 0,
        parts: Hashable = (),
    ) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.where = where
        self.storage_offset = storage_offset
        self.is_sparse = len(strides) != len(shape)
        self.is_contiguous = not self.is_sparse and all(
            stride == row_major or size == 1
            for size, stride, row_major in zip(shape, strides, contiguous(shape), strict=True)
        )
        self.form: Hashable = (shape, dtype, where, parts)


@lru_cache(maxsize=4096)
def dense(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: Dtype, where: types.Device, storage_offset: int
) -> Layout:
    """The layout of dense tensors, which is one object for all of them."""
    return Layout(shape, strides, dtype, where, storage_offset)


Placed = tuple[Layout, Any, Any]
"""A layout, a pointer to it as the C core takes it, and what has to live as long as that is used."""


@lru_cache(maxsize=4096)
def placed(
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: Dtype,
    where: types.Device,
    offset: int,
    elements: int,
) -> Placed:
    """A layout, as the C core takes it too.

    Args:
        strides: in elements; None for contiguous.
        offset: elements before the first.
        elements: size of the storage; -1 for just enough.
    """
    sizes, steps = size_pointer(shape), None if strides is None else size_pointer(strides)
    core = ffi.new(_LAYOUT, (sizes[0], ffi.NULL if steps is None else steps[0], dtype, where, offset, elements))
    layout = dense(shape, contiguous(shape) if strides is None else strides, dtype, where, offset)
    return layout, core, (sizes, steps)


@lru_cache(maxsize=4096)
def placed_alone(shape: tuple[int, ...], numpy_type: np.dtype[Any], where: types.Device) -> Placed:
    """The layout of an array whose storage is just its elements, in row-major order; TypeError if it can't have one."""
    return placed(shape, None, dtypes.from_numpy(numpy_type), where, 0, -1)


NUMBER_BYTES = 8
"""Of each number in which a framework tells layouts."""


@lru_cache(maxsize=4096)
def told_layouts(numbers: bytes) -> tuple[Layout, ...]:
    """The layouts that a framework tells: of each its axes, element type, device, offset, the sizes, the strides."""
    return tuple(_told(iter(memoryview(numbers).cast("q").tolist())))


def _told(numbers: Iterator[int]) -> Iterator[Layout]:
    for axes in numbers:
        dtype, where, offset = islice(numbers, 3)
        shape, strides = tuple(islice(numbers, axes)), tuple(islice(numbers, axes))
        yield dense(shape, strides, Dtype(dtype), types.Device(where), offset)


@lru_cache(maxsize=4096)
def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a row-major tensor, in elements; axes of size 0 count as 1."""
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(strides))


@lru_cache(maxsize=4096)
def extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Number of elements from the first to the last in memory, both counted."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def strided(memory: Any, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The elements of `dtype` at `strides`, in elements, of a buffer."""
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, memory, 0, [stride * dtype.itemsize for stride in strides])


@lru_cache(maxsize=4096)
def elements_at(place: int, layout: Layout) -> Array:
    """The elements in memory of somebody else's, from address `place` on: frameworks often give the same again."""
    shape, strides, dtype = layout.shape, layout.strides, dtypes.to_numpy(layout.dtype)
    return strided(ffi.buffer(pointer(place), extent(shape, strides) * dtype.itemsize), dtype, shape, strides)


def storage_image(array: Array, dtype: Dtype, strides: tuple[int, ...], offset: int, elements: int | None) -> Array:
    """What a poisoned storage of `elements` (None: just enough) is that holds `array` at `offset` and `strides`.

    ValueError when elements that share memory differ, or the storage is too small.
    """
    needed = offset + extent(array.shape, strides)
    if not offset and elements in (None, needed) and strides == contiguous(array.shape):
        return np.array(array, dtypes.to_numpy(dtype), order="C").reshape(-1)  # as most are, and nothing is poisoned
    contents = dtypes.poisoned(needed if elements is None else elements, dtype)
    if needed > contents.size or min(strides, default=0) < 0 or offset < 0:
        raise ValueError(
            f"an array of shape {array.shape} at strides {strides} and offset {offset} does not fit a storage of "
            f"{contents.size} elements"
        )
    view = strided(contents[offset:], contents.dtype, array.shape, strides)
    view[...] = array
    if view.tobytes() != array.tobytes():
        raise ValueError(f"elements that share memory at strides {strides} differ")
    return contents
