"""Layouts: shape, strides, element type and memory of tensors. Tensors with equal layouts share a cached object."""

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
"""The C type of a pointer to a layout."""


@final
class TensorMetadata:
    """Everything about a tensor except its memory.

    Attributes:
        shape: Number of elements along each axis.
        strides: Distance in elements along each axis; empty for a sparse tensor.
        dtype: Element type.
        memory_kind: Whether the tensor is in device or host memory.
        storage_offset: Position of the first element in the storage, in elements.
        is_sparse: Whether the tensor is in compressed sparse row form.
        is_contiguous: Whether the elements are in row-major order without gaps.
        form: Shape, element type and memory kind as a hashable value; it does not depend on strides and offset.
    """

    __slots__ = ("dtype", "form", "is_contiguous", "is_sparse", "memory_kind", "shape", "storage_offset", "strides")

    def __init__(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: Dtype,
        memory_kind: types.Device,
        storage_offset: int = 0,
        parts: Hashable = (),
    ) -> None:
        """Set the attributes; `parts` contains the forms of the parts of a sparse tensor."""
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.memory_kind = memory_kind
        self.storage_offset = storage_offset
        self.is_sparse = len(strides) != len(shape)
        self.is_contiguous = not self.is_sparse and all(
            stride == row_major or size == 1
            for size, stride, row_major in zip(shape, strides, contiguous(shape), strict=True)
        )
        self.form: Hashable = (shape, dtype, memory_kind, parts)


@lru_cache(maxsize=4096)
def dense_layout(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: Dtype, memory_kind: types.Device, storage_offset: int
) -> TensorMetadata:
    """Return the layout of a dense tensor; equal arguments return the same object."""
    return TensorMetadata(shape, strides, dtype, memory_kind, storage_offset)


CoreLayout = tuple[TensorMetadata, Any, Any]
"""A layout, a pointer to its C form, and the objects that the caller must keep alive while C uses the pointer."""


@lru_cache(maxsize=4096)
def core_layout(
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: Dtype,
    memory_kind: types.Device,
    offset: int,
    elements: int,
) -> CoreLayout:
    """Return a layout together with its C form.

    Args:
        shape: Number of elements along each axis.
        strides: Distance in elements along each axis; None for contiguous.
        dtype: Element type.
        memory_kind: Device or host memory.
        offset: Number of elements in the storage before the first element of the tensor.
        elements: Size of the storage in elements; -1 for the smallest storage that contains the tensor.

    Returns:
        The layout, a pointer to the C structure, and the objects that the pointer depends on.
    """
    sizes, steps = size_pointer(shape), None if strides is None else size_pointer(strides)
    core = ffi.new(_LAYOUT, (sizes[0], ffi.NULL if steps is None else steps[0], dtype, memory_kind, offset, elements))
    layout = dense_layout(shape, contiguous(shape) if strides is None else strides, dtype, memory_kind, offset)
    return layout, core, (sizes, steps)


@lru_cache(maxsize=4096)
def contiguous_core_layout(shape: tuple[int, ...], numpy_type: np.dtype[Any], memory_kind: types.Device) -> CoreLayout:
    """Return the layout of a contiguous array, together with its C form.

    Raises:
        TypeError: The interface does not have the array's element type.
    """
    return core_layout(shape, None, dtypes.from_numpy(numpy_type), memory_kind, 0, -1)


NUMBER_BYTES = 8
"""Size of each number in an encoded list of layouts."""


@lru_cache(maxsize=4096)
def decode_layouts(numbers: bytes) -> tuple[TensorMetadata, ...]:
    """Decode a list of layouts that an exported library received.

    Args:
        numbers: Native 64-bit integers; for each layout the rank, element type, memory kind, storage offset, sizes and
            strides.

    Returns:
        The layouts, in order.
    """
    return tuple(_iterate_layouts(iter(memoryview(numbers).cast("q").tolist())))


def _iterate_layouts(numbers: Iterator[int]) -> Iterator[TensorMetadata]:
    """Iterate over the layouts in an encoded list."""
    for axes in numbers:
        dtype, memory_kind, offset = islice(numbers, 3)
        shape, strides = tuple(islice(numbers, axes)), tuple(islice(numbers, axes))
        yield dense_layout(shape, strides, Dtype(dtype), types.Device(memory_kind), offset)


@lru_cache(maxsize=4096)
def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a row-major tensor, in elements; axes of size 0 count as size 1."""
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(strides))


@lru_cache(maxsize=4096)
def extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Return the number of elements from the first to the last element in memory, both included."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def strided_view(memory: Any, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Return a view of the buffer `memory` with this shape and these strides (in elements)."""
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, memory, 0, [stride * dtype.itemsize for stride in strides])


@lru_cache(maxsize=4096)
def view_memory(place: int, layout: TensorMetadata) -> Array:
    """Return a view of foreign memory at address `place`; cached, because frameworks reuse addresses."""
    shape, strides, dtype = layout.shape, layout.strides, dtypes.to_numpy(layout.dtype)
    return strided_view(ffi.buffer(pointer(place), extent(shape, strides) * dtype.itemsize), dtype, shape, strides)


def storage_image(array: Array, dtype: Dtype, strides: tuple[int, ...], offset: int, elements: int | None) -> Array:
    """Return the contents of a poisoned storage that contains an array.

    Args:
        array: Values of the tensor.
        dtype: Element type of the storage.
        strides: Distance in elements along each axis.
        offset: Number of elements before the first element of the array.
        elements: Size of the storage in elements; None for the smallest storage that contains the array.

    Returns:
        A one-dimensional array with the elements of the storage.

    Raises:
        ValueError: Elements that share memory differ, the storage is too small, or a stride or the offset is negative.
    """
    required_size = offset + extent(array.shape, strides)
    if not offset and elements in (None, required_size) and strides == contiguous(array.shape):
        return np.array(array, dtypes.to_numpy(dtype), order="C").reshape(-1)  # the common case: no element is poisoned
    contents = dtypes.poisoned_array(required_size if elements is None else elements, dtype)
    if required_size > contents.size or min(strides, default=0) < 0 or offset < 0:
        raise ValueError(
            f"an array of shape {array.shape} at strides {strides} and offset {offset} does not fit a storage of "
            f"{contents.size} elements"
        )
    view = strided_view(contents[offset:], contents.dtype, array.shape, strides)
    view[...] = array
    if view.tobytes() != array.tobytes():
        raise ValueError(f"strides {strides}: elements that share memory have different values")
    return contents
