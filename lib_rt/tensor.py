"""Tensors: NumPy arrays placed in guarded, poisoned memory at any strides, and read back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Protocol, Self, final

import numpy as np

from diopi_proto import types
from diopi_proto.types import Dtype
from lib_rt import dtypes
from lib_rt.device import Device, OnDevice
from lib_rt.dtypes import Array
from lib_rt.errors import ReleasedError
from lib_rt.library import address, array_pointer, check_guarded, ffi, lib, made, pointer, size_pointer
from lib_rt.owner import Owner
from lib_rt.stream import Stream

_DEVICE = types.Device.device


class TensorContext(OnDevice, Protocol):
    """What a tensor needs of the context it is made in; `lib_rt.Context` is one."""

    @property
    def api(self) -> Any:
        """The functions of `diopirt.h` that understand the context and its tensors."""

    @property
    def stream(self) -> Stream:
        """Where its work is enqueued."""

    @property
    def closed(self) -> bool:
        """Whether it was closed, and its tensors with it."""

    def fetch(self, tensor: Tensor, start: int, span: Array) -> None:
        """Copy the tensor's storage from byte `start` on into `span`, after waiting for the stream."""

    def store(self, tensor: Tensor, start: int, span: Array) -> None:
        """Copy `span` to byte `start` of the tensor's storage, in stream order."""

    def accept(self, argument: OnDevice) -> Any:
        """The handle of `argument` for a call in this context."""


@final
class Tensor(Owner):
    """A tensor of a context. Made by the class methods; `close` checks its guards and releases its memory.

    Attributes:
        context: what it was made in; closing that releases it too.
        shape: number of elements along each axis.
        strides: distance in elements along each axis; empty for a sparse tensor.
        dtype: element type.
        storage_offset: position in its storage of the first element, in elements.
    """

    __slots__ = (
        *("_data", "_elements", "_form", "_memory", "_owns", "_parts", "_where"),
        *("context", "dtype", "shape", "storage_offset", "strides"),
    )

    def __init__(
        self,
        context: TensorContext,
        handle: Any,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: Dtype,
        storage_offset: int,
        *,
        owns: bool,
        parts: tuple[Tensor, ...] = (),
    ) -> None:
        self._handle = handle
        self._owns = owns
        self._parts = parts
        self._where: types.Device | None = None
        self._memory: tuple[int, int] | None = None
        self._data: int | None = None
        self._elements: Array | None = None
        self._form: Hashable = None
        self.context = context
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.storage_offset = storage_offset

    @classmethod
    def from_numpy(
        cls,
        context: TensorContext,
        array: Array,
        *,
        dtype: Dtype | None = None,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        storage_elements: int | None = None,
        where: types.Device = _DEVICE,
    ) -> Tensor:
        """A tensor with the values of `array`, in a fresh storage that is poisoned everywhere else.

        Args:
            dtype: distinguishes tfloat32 from float32; otherwise the array's own.
            strides: in elements, contiguous when left out. Elements that share memory must be equal.
            offset: elements before the first.
            storage_elements: size of the storage, just enough when left out.

        Raises:
            TypeError: the array is not of `dtype`, or of no element type.
            ValueError: elements that share memory differ, or the storage is too small.
        """
        dtype = _checked_dtype(array, dtype)
        if strides is None and not offset and storage_elements is None:
            contents = np.ascontiguousarray(array)
            return cls._create(context, array.shape, None, dtype, 0, -1, contents, where)
        placed = tuple(strides) if strides is not None else _contiguous(array.shape)
        contents = storage_image(array, dtype, placed, offset, storage_elements)
        return cls._create(context, array.shape, placed, dtype, offset, contents.size, contents, where)

    @classmethod
    def empty(
        cls,
        context: TensorContext,
        shape: Sequence[int],
        dtype: Dtype,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        storage_elements: int | None = None,
        where: types.Device = _DEVICE,
    ) -> Tensor:
        """A tensor of poison; `strides`, `offset` and `storage_elements` as in `from_numpy`."""
        placed = tuple(strides) if strides is not None else None
        elements = -1 if storage_elements is None else storage_elements
        return cls._create(context, tuple(shape), placed, dtype, offset, elements, None, where)

    @classmethod
    def over(
        cls,
        context: TensorContext,
        memory: int,
        nbytes: int,
        shape: Sequence[int],
        dtype: Dtype,
        strides: Sequence[int],
        offset: int = 0,
    ) -> Tensor:
        """A tensor in device memory of the caller's: the `nbytes` at address `memory`, without poison and guards.

        The memory lives at least as long as the tensor; closing that does not wait for the stream. `strides` and
        `offset` are in elements. CallError if the memory is too small.
        """
        sizes, steps = size_pointer(tuple(shape)), size_pointer(tuple(strides))
        kind, place = "diopiTensorHandle_t", pointer(memory)
        handle = made(lib.diopirt_tensor_over, kind, context.handle, sizes[0], steps[0], dtype, offset, place, nbytes)
        tensor = cls(context, handle, tuple(shape), tuple(strides), dtype, offset, owns=True)
        tensor._where = _DEVICE
        return tensor

    @classmethod
    def _create(
        cls,
        context: TensorContext,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        dtype: Dtype,
        offset: int,
        storage_elements: int,
        contents: Array | None,
        where: types.Device,
    ) -> Tensor:
        sizes, steps = size_pointer(shape), None if strides is None else size_pointer(strides)
        handle = made(
            lib.diopirt_tensor_create,
            "diopiTensorHandle_t",
            context.handle,
            sizes[0],
            ffi.NULL if steps is None else steps[0],
            dtype,
            where,
            offset,
            storage_elements,
            ffi.NULL if contents is None else array_pointer(contents),
        )
        tensor = cls(context, handle, shape, strides or _contiguous(shape), dtype, offset, owns=True)
        tensor._where = where
        return tensor

    @classmethod
    def from_handle(cls, context: TensorContext, handle: Any) -> Tensor:
        """The tensor behind `handle`, which `context` owns: closing the result releases nothing."""
        api = context.api
        dtype = Dtype(made(api.diopiGetTensorDtype, "diopiDtype_t", handle))
        shape = _sizes(made(api.diopiGetTensorShape, "diopiSize_t", handle))
        if made(api.diopiIsTensorSparse, "bool", handle):
            return cls(context, handle, shape, (), dtype, 0, owns=False)
        strides = _sizes(made(api.diopiGetTensorStride, "diopiSize_t", handle))
        offset = made(api.diopiGetTensorStorageOffset, "int64_t", handle)
        return cls(context, handle, shape, strides, dtype, offset, owns=False)

    @classmethod
    def described(cls, context: TensorContext, handle: Any, data: int, facts: tuple[int, ...]) -> Tensor:
        """As `from_handle`, of a dense tensor of which the framework has told all.

        Args:
            data: address of its first element.
            facts: element type, device, storage offset, the sizes, the strides.
        """
        dtype, where, offset, shape, strides, form = _told(facts)
        tensor = cls(context, handle, shape, strides, dtype, offset, owns=False)
        tensor._where = where
        tensor._form = form
        tensor._data = data
        return tensor

    @classmethod
    def sparse_csr(cls, crow: Tensor, col: Tensor, values: Tensor, shape: Sequence[int]) -> Tensor:
        """A sparse tensor of the given row pointers, columns and values, which live at least as long as it."""
        context = crow.context
        parts = (crow, col, values)
        sizes = size_pointer(tuple(shape))
        handle = made(
            lib.diopirt_tensor_sparse_csr,
            "diopiTensorHandle_t",
            context.handle,
            sizes[0],
            *(context.accept(part) for part in parts),
        )
        return cls(context, handle, tuple(shape), (), values.dtype, 0, owns=True, parts=parts)

    @property
    def handle(self) -> Any:
        """The C handle, a cffi pointer."""
        if self._handle is None or self.context.closed:
            raise ReleasedError(f"the tensor of shape {self.shape} is closed, or its context is")
        return self._handle

    @property
    def device(self) -> Device:
        """The device of its context."""
        return self.context.device

    @property
    def is_sparse(self) -> bool:
        """Whether it is in compressed sparse row form."""
        return len(self.strides) != len(self.shape)

    @property
    def form(self) -> Hashable:
        """What tensors have in common that differ in their numbers, and where and how those lie, alone."""
        if self._form is None:
            parts = tuple([part.form for part in self.parts]) if self.is_sparse else ()
            self._form = self.shape, self.dtype, self.where, parts
        return self._form

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """Row pointers, columns and values of a sparse tensor; of a dense one CallError."""
        if not self._parts:
            self._parts = tuple(
                Tensor.from_handle(self.context, made(question, "diopiConstTensorHandle_t", self.handle))
                for question in (
                    self.context.api.diopiGetTensorCrowIndices,
                    self.context.api.diopiGetTensorColIndices,
                    self.context.api.diopiGetTensorValues,
                )
            )
        return self._parts

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def element_size(self) -> int:
        """Bytes an element takes."""
        return dtypes.to_numpy(self.dtype).itemsize

    @property
    def where(self) -> types.Device:
        """Whether it lies on the device or in host memory."""
        handle = self.handle
        if self._where is None:
            self._where = types.Device(made(self.context.api.diopiGetTensorDevice, "diopiDevice_t", handle))
        return self._where

    @property
    def storage_ptr(self) -> int:
        """Address of the storage."""
        return self._storage_memory()[0]

    @property
    def data_ptr(self) -> int:
        """Address of the first element."""
        handle = self.handle
        if self._data is None:
            self._data = address(made(self.context.api.diopiGetTensorDataConst, "void const*", handle))
        return self._data

    @property
    def storage_nbytes(self) -> int:
        """Size of the storage in bytes."""
        return self._storage_memory()[1]

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return all(
            stride == dense or size == 1
            for size, stride, dense in zip(self.shape, self.strides, _contiguous(self.shape), strict=True)
        )

    def numpy(self) -> Array:
        """A copy of the elements, after waiting for the stream."""
        span = np.empty(_extent(self.shape, self.strides), dtypes.to_numpy(self.dtype))
        self.context.fetch(self, self._start, span)
        return (
            span.reshape(self.shape) if self.is_contiguous else _view(span, span.dtype, self.shape, self.strides).copy()
        )

    def storage(self) -> Array:
        """A copy of the whole storage as bytes, after waiting for the stream."""
        contents = np.empty(self.storage_nbytes, np.uint8)
        self.context.fetch(self, 0, contents)
        return contents

    def view(self) -> Array:
        """The elements themselves, not waiting for the stream; valid as long as the tensor is open.

        TypeError when the host can't address them.
        """
        if self._elements is None or self._handle is None or self.context.closed:
            self._check_addressable()
            self._elements = _elements_at(self.data_ptr, dtypes.to_numpy(self.dtype), self.shape, self.strides)
        return self._elements

    def storage_view(self) -> Array:
        """The bytes of the whole storage themselves, as `view` has the elements."""
        self._check_addressable()
        place, nbytes = self._storage_memory()
        return np.frombuffer(ffi.buffer(pointer(place), nbytes), np.uint8)

    def write(self, array: Array) -> None:
        """Overwrite the elements with those of `array`, in stream order; gaps between them stay as they are.

        TypeError when the dtypes differ; ValueError when the shapes do in more than axes of size 1.
        """
        _checked_dtype(array, self.dtype)
        if [size for size in array.shape if size != 1] != [size for size in self.shape if size != 1]:
            raise ValueError(f"an array of shape {array.shape} can't be written to a tensor of shape {self.shape}")
        if self.is_contiguous:
            self.context.store(self, self._start, np.ascontiguousarray(array))
            return
        span = np.empty(_extent(self.shape, self.strides), array.dtype)
        self.context.fetch(self, self._start, span)
        _view(span, span.dtype, self.shape, self.strides)[...] = array.reshape(self.shape)
        self.context.store(self, self._start, span)

    def clone(self) -> Tensor:
        """A tensor of the same geometry whose storage is a device-to-device copy of this one's."""
        handle = made(lib.diopirt_tensor_clone, "diopiTensorHandle_t", self.handle)
        return type(self)(self.context, handle, self.shape, self.strides, self.dtype, self.storage_offset, owns=True)

    def check_guards(self) -> None:
        """GuardError if memory just outside the storage was written; waits for the stream."""
        check_guarded(lib.diopirt_tensor_check, self.handle)

    def __del__(self) -> None:
        if getattr(self, "_owns", False):  # else nothing: one is made for each tensor of each call
            super().__del__()

    def __repr__(self) -> str:
        return f"Tensor({self.dtype.name}, shape {self.shape}, strides {self.strides})"

    def __enter__(self) -> Self:
        return self

    def _storage_memory(self) -> tuple[int, int]:
        """Address and bytes of the storage, which stay as long as the tensor lives and are asked for once."""
        handle = self.handle
        if self._memory is None:
            place = address(made(self.context.api.diopiGetTensorStoragePtr, "void*", handle))
            self._memory = place, int(made(self.context.api.diopiGetTensorStorageNbytes, "size_t", handle))
        return self._memory

    def _check_addressable(self) -> None:
        if not (self.device.host_addressable or self.where is types.Device.host):
            raise TypeError("a view of device memory needs a device the host can address")

    @property
    def _start(self) -> int:
        """Where in its storage the first element lies, in bytes."""
        return self.storage_offset * self.element_size

    def _release(self, handle: Any) -> None:
        if self._owns and not self.context.closed:
            check_guarded(lib.diopirt_tensor_destroy, handle)


def storage_image(array: Array, dtype: Dtype, strides: tuple[int, ...], offset: int, elements: int | None) -> Array:
    """What a poisoned storage of `elements` (None: just enough) is that holds `array` at `offset` and `strides`.

    ValueError when elements that share memory differ, or the storage is too small.
    """
    needed = offset + _extent(array.shape, strides)
    if not offset and elements in (None, needed) and strides == _contiguous(array.shape):
        return np.array(array, dtypes.to_numpy(dtype), order="C").reshape(-1)  # as most are, and nothing is poisoned
    contents = dtypes.poisoned(needed if elements is None else elements, dtype)
    if needed > contents.size or min(strides, default=0) < 0 or offset < 0:
        raise ValueError(
            f"an array of shape {array.shape} at strides {strides} and offset {offset} does not fit a storage of "
            f"{contents.size} elements"
        )
    view = _view(contents[offset:], contents.dtype, array.shape, strides)
    view[...] = array
    if view.tobytes() != array.tobytes():
        raise ValueError(f"elements that share memory at strides {strides} differ")
    return contents


def _checked_dtype(array: Array, dtype: Dtype | None) -> Dtype:
    """`dtype`, or the array's own when None; TypeError unless the array is of it."""
    if dtype is None:
        return dtypes.from_numpy(array.dtype)
    if dtypes.to_numpy(dtype) != array.dtype:
        raise TypeError(f"an array of {array.dtype} for a tensor of {dtype.name}")
    return dtype


@lru_cache(maxsize=4096)
def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a row-major tensor, in elements; axes of size 0 count as 1."""
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(strides))


@lru_cache(maxsize=4096)
def _extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Number of elements from the first to the last in memory, both counted."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def _view(memory: Any, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The elements of `dtype` at `strides`, in elements, of a buffer."""
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, memory, 0, [stride * dtype.itemsize for stride in strides])


@lru_cache(maxsize=4096)
def _elements_at(place: int, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The elements in memory of somebody else's, from address `place` on: frameworks often give the same again."""
    return _view(ffi.buffer(pointer(place), _extent(shape, strides) * dtype.itemsize), dtype, shape, strides)


@lru_cache(maxsize=4096)
def _told(
    numbers: tuple[int, ...],
) -> tuple[Dtype, types.Device, int, tuple[int, ...], tuple[int, ...], Hashable]:
    """Element type, device, storage offset, shape, strides and form, of the numbers in which a framework tells them."""
    kind, place, offset, *sizes = numbers
    axes = len(sizes) // 2
    dtype, where, shape, strides = Dtype(kind), types.Device(place), tuple(sizes[:axes]), tuple(sizes[axes:])
    return dtype, where, offset, shape, strides, (shape, dtype, where, ())


def _sizes(size: Any) -> tuple[int, ...]:
    return tuple(ffi.unpack(size.data, size.len)) if size.len else ()
