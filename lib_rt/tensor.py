"""Tensors: NumPy arrays placed in guarded, poisoned memory at any strides, and read back."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from math import prod
from typing import Any, Protocol, Self, final

import numpy as np

from diopi_proto import types
from diopi_proto.types import Dtype, Error
from lib_rt import dtypes
from lib_rt.device import Device, OnDevice
from lib_rt.dtypes import Array
from lib_rt.errors import ReleasedError
from lib_rt.layout import Layout, contiguous, dense, elements_at, extent, placed, placed_alone, storage_image, strided
from lib_rt.library import (
    address,
    array_pointer,
    damage,
    elements_pointer,
    fail_guarded,
    ffi,
    lib,
    made,
    pointer,
    refused,
    size_pointer,
)
from lib_rt.owner import Owner
from lib_rt.stream import Stream

_DEVICE = types.Device.device

_POISON = ffi.NULL
"""What stands for the contents of a fresh storage that are left to the core."""

_open, _destroy = lib.diopirt_tensor_open, lib.diopirt_tensor_destroy


class TensorContext(OnDevice, Protocol):
    """What a tensor needs of the context it is made in; `lib_rt.Context` is one."""

    @property
    def api(self) -> Any:
        """The functions of `diopirt.h` that understand the context and its tensors."""

    @property
    def stream(self) -> Stream:
        """Where its work is enqueued."""

    _handle: Any
    """Its C handle; None once it was closed, and its tensors with it."""

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
        device: where that is.
        layout: everything about it but its memory.
        shape, dtype: as the layout has them.
    """

    __slots__ = (
        *("_data", "_elements", "_memory", "_owns", "_parts"),
        *("context", "device", "dtype", "layout", "shape"),
    )

    def __init__(
        self, context: TensorContext, handle: Any, layout: Layout, owns: bool, parts: tuple[Tensor, ...] = ()
    ) -> None:
        self._handle = handle
        self._owns = owns
        self._parts = parts
        self._memory: tuple[int, int] | None = None
        self._data: int | None = None
        self._elements: Array | None = None
        self.context = context
        self.device: Device = context.device
        self.layout = layout
        self.shape = layout.shape
        self.dtype = layout.dtype

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
        if dtype is None and strides is None and not offset and storage_elements is None:
            layout, core, _ = placed_alone(array.shape, array.dtype, where)
            payload = elements_pointer(array)
        else:
            dtype = _checked_dtype(array, dtype)
            steps = tuple(strides) if strides is not None else contiguous(array.shape)
            contents = storage_image(array, dtype, steps, offset, storage_elements)
            layout, core, _ = placed(array.shape, steps, dtype, where, offset, contents.size)
            payload = array_pointer(contents)
        handle = _open(context._handle or context.handle, core, payload)  # the property says why there is none
        return cls(context, handle or refused(), layout, True)

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
        steps = tuple(strides) if strides is not None else None
        elements = -1 if storage_elements is None else storage_elements
        layout, core, _ = placed(tuple(shape), steps, dtype, where, offset, elements)
        handle = _open(context._handle or context.handle, core, _POISON)
        return cls(context, handle or refused(), layout, True)

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
        layout, _, (sizes, steps) = placed(tuple(shape), tuple(strides), dtype, _DEVICE, offset, -1)
        kind, place = "diopiTensorHandle_t", pointer(memory)
        handle = made(lib.diopirt_tensor_over, kind, context.handle, sizes[0], steps[0], dtype, offset, place, nbytes)
        return cls(context, handle, layout, True)

    @classmethod
    def from_handle(cls, context: TensorContext, handle: Any) -> Tensor:
        """The tensor behind `handle`, which `context` owns: closing the result releases nothing."""
        api = context.api
        dtype = Dtype(made(api.diopiGetTensorDtype, "diopiDtype_t", handle))
        where = types.Device(made(api.diopiGetTensorDevice, "diopiDevice_t", handle))
        shape = _sizes(made(api.diopiGetTensorShape, "diopiSize_t", handle))
        if made(api.diopiIsTensorSparse, "bool", handle):
            parts = _parts(context, handle)
            return cls(context, handle, _sparse(shape, dtype, where, parts), False, parts)
        strides = _sizes(made(api.diopiGetTensorStride, "diopiSize_t", handle))
        offset = made(api.diopiGetTensorStorageOffset, "int64_t", handle)
        return cls(context, handle, dense(shape, strides, dtype, where, offset), False)

    @classmethod
    def told(cls, context: TensorContext, handle: Any, layout: Layout, data: int) -> Tensor:
        """As `from_handle`, of a dense tensor of which the framework told all; `data` is where its first element is."""
        tensor = cls(context, handle, layout, False)
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
        return cls(context, handle, _sparse(tuple(shape), values.dtype, values.where, parts), True, parts)

    @property
    def handle(self) -> Any:
        """The C handle, a cffi pointer."""
        if self._handle is None or self.context._handle is None:
            raise ReleasedError(f"the tensor of shape {self.shape} is closed, or its context is")
        return self._handle

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance in elements along each axis; empty for a sparse tensor."""
        return self.layout.strides

    @property
    def storage_offset(self) -> int:
        """Position in its storage of the first element, in elements."""
        return self.layout.storage_offset

    @property
    def where(self) -> types.Device:
        """Whether it lies on the device or in host memory."""
        return self.layout.where

    @property
    def form(self) -> Hashable:
        """What tensors have in common that differ in their numbers, and where and how those lie, alone."""
        return self.layout.form

    @property
    def is_sparse(self) -> bool:
        """Whether it is in compressed sparse row form."""
        return self.layout.is_sparse

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """Row pointers, columns and values of a sparse tensor; of a dense one CallError."""
        return self._parts or _parts(self.context, self.handle)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def element_size(self) -> int:
        """Bytes an element takes."""
        return dtypes.to_numpy(self.dtype).itemsize

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
        return self.layout.is_contiguous

    def numpy(self) -> Array:
        """A copy of the elements, after waiting for the stream."""
        span = np.empty(extent(self.shape, self.strides), dtypes.to_numpy(self.dtype))
        self.context.fetch(self, self._start, span)
        return (
            span.reshape(self.shape)
            if self.is_contiguous
            else strided(span, span.dtype, self.shape, self.strides).copy()
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
        if self._elements is None or self._handle is None or self.context._handle is None:
            self._check_addressable()
            self._elements = elements_at(self.data_ptr, self.layout)
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
        span = np.empty(extent(self.shape, self.strides), array.dtype)
        self.context.fetch(self, self._start, span)
        strided(span, span.dtype, self.shape, self.strides)[...] = array.reshape(self.shape)
        self.context.store(self, self._start, span)

    def clone(self) -> Tensor:
        """A tensor of the same geometry whose storage is a device-to-device copy of this one's."""
        handle = made(lib.diopirt_tensor_clone, "diopiTensorHandle_t", self.handle)
        return type(self)(self.context, handle, self.layout, True)

    def check_guards(self) -> None:
        """GuardError if memory just outside the storage was written; waits for the stream."""
        if code := lib.diopirt_tensor_check(self.handle, damage.cell):
            fail_guarded(code)

    def close(self) -> None:
        # one step, where others that own a handle have several: three tensors are closed for each call
        if self._handle is None:
            return
        if self._owns and self.context._handle is not None and (code := _destroy(self._handle, damage.cell)):
            if code == Error.ErrorOccurred:
                self._handle = None
            fail_guarded(code)
        self._handle = None

    def __del__(self) -> None:
        if self._handle is not None and self._owns and not sys.is_finalizing():
            self.close()

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


def _checked_dtype(array: Array, dtype: Dtype | None) -> Dtype:
    """`dtype`, or the array's own when None; TypeError unless the array is of it."""
    if dtype is None:
        return dtypes.from_numpy(array.dtype)
    if dtypes.to_numpy(dtype) != array.dtype:
        raise TypeError(f"an array of {array.dtype} for a tensor of {dtype.name}")
    return dtype


def _sizes(size: Any) -> tuple[int, ...]:
    return tuple(ffi.unpack(size.data, size.len)) if size.len else ()


def _parts(context: TensorContext, handle: Any) -> tuple[Tensor, ...]:
    """Row pointers, columns and values of the sparse tensor behind `handle`; CallError of a dense one."""
    api = context.api
    questions = (api.diopiGetTensorCrowIndices, api.diopiGetTensorColIndices, api.diopiGetTensorValues)
    handles = [made(question, "diopiConstTensorHandle_t", handle) for question in questions]
    return tuple([Tensor.from_handle(context, one) for one in handles])


def _sparse(shape: tuple[int, ...], dtype: Dtype, where: types.Device, parts: tuple[Tensor, ...]) -> Layout:
    """The layout of a sparse tensor of these parts, which has no strides."""
    return Layout(shape, (), dtype, where, parts=tuple([part.form for part in parts]))
