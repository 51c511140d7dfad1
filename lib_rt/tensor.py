"""Tensors of a context in device or host memory, with any strides.

A new storage is *poisoned*: elements that nobody has written contain a fixed pattern, so that reading them is noticed.
It lies between two *guard zones*, which show whether an operator wrote outside the storage.
"""

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
from lib_rt.layout import (
    TensorMetadata,
    contiguous,
    contiguous_core_layout,
    core_layout,
    dense_layout,
    extent,
    storage_image,
    strided_view,
    view_memory,
)
from lib_rt.library import (
    address,
    array_pointer,
    call_for_output,
    damage_location,
    elements_pointer,
    ffi,
    lib,
    pointer,
    raise_guarded_error,
    raise_last_error,
    size_pointer,
)
from lib_rt.owner import Owner
from lib_rt.stream import Stream

_DEVICE = types.Device.device
"""The kind of memory that tensors are in by default."""

_POISON = ffi.NULL
"""Initial contents of a storage that the C core poisons."""

_open, _destroy = lib.diopirt_tensor_open, lib.diopirt_tensor_destroy
"""Functions of the C core that create and release tensors."""


class TensorContext(OnDevice, Protocol):
    """The part of `lib_rt.Context` that a tensor uses."""

    @property
    def api(self) -> Any:
        """The `diopirt.h` functions that accept the handles of the context and its tensors."""

    @property
    def stream(self) -> Stream:
        """The stream on which the context's work is enqueued."""

    _handle: Any
    """The context's C handle; None after the context and its tensors were closed."""

    def fetch(self, tensor: Tensor, start: int, span: Array) -> None:
        """Copy `span.nbytes` bytes of the tensor's storage, from byte `start`, into `span`; waits for the stream."""

    def store(self, tensor: Tensor, start: int, span: Array) -> None:
        """Copy `span` to byte `start` of the tensor's storage, in stream order."""

    def accept(self, argument: OnDevice) -> Any:
        """Return the handle of `argument` for a call in this context."""


@final
class Tensor(Owner):
    """A tensor of a context, created by a class method; `close` checks the guard zones and frees the memory.

    Attributes:
        context: The context that owns the tensor; closing it releases the tensor.
        device: The context's device.
        layout: Everything about the tensor except its memory.
        shape: Number of elements along each axis.
        dtype: Element type.
    """

    __slots__ = (
        *("_data", "_elements", "_memory", "_owns", "_parts"),
        *("context", "device", "dtype", "layout", "shape"),
    )

    def __init__(
        self, context: TensorContext, handle: Any, layout: TensorMetadata, owns: bool, parts: tuple[Tensor, ...] = ()
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
        memory_kind: types.Device = _DEVICE,
    ) -> Tensor:
        """Create a tensor with the values of an array; all other elements of the storage are poisoned.

        Args:
            context: The context that owns the tensor.
            array: Values of the tensor.
            dtype: Element type; the type of the array if None. Pass it to distinguish tfloat32 from float32.
            strides: Distance in elements along each axis; contiguous if None. Elements that share memory must be equal.
            offset: Number of elements in the storage before the first element of the tensor.
            storage_elements: Size of the storage in elements; the smallest storage that contains the tensor if None.
            memory_kind: Device or host memory.

        Returns:
            The tensor.

        Raises:
            TypeError: The array's type is not that of `dtype`, or the interface does not have it.
            ValueError: Elements that share memory differ, the storage is too small, or a stride or the offset is
                negative.
        """
        if dtype is None and strides is None and not offset and storage_elements is None:
            layout, core, _ = contiguous_core_layout(array.shape, array.dtype, memory_kind)
            payload = elements_pointer(array)
        else:
            dtype = _check_dtype(array, dtype)
            steps = tuple(strides) if strides is not None else contiguous(array.shape)
            contents = storage_image(array, dtype, steps, offset, storage_elements)
            layout, core, _ = core_layout(array.shape, steps, dtype, memory_kind, offset, contents.size)
            payload = array_pointer(contents)
        handle = _open(context._handle or context.handle, core, payload)  # the property raises ReleasedError
        return cls(context, handle or raise_last_error(), layout, True)

    @classmethod
    def empty(
        cls,
        context: TensorContext,
        shape: Sequence[int],
        dtype: Dtype,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        storage_elements: int | None = None,
        memory_kind: types.Device = _DEVICE,
    ) -> Tensor:
        """Create a tensor whose whole storage is poisoned; `from_numpy` describes the parameters after `shape`."""
        steps = tuple(strides) if strides is not None else None
        elements = -1 if storage_elements is None else storage_elements
        layout, core, _ = core_layout(tuple(shape), steps, dtype, memory_kind, offset, elements)
        handle = _open(context._handle or context.handle, core, _POISON)
        return cls(context, handle or raise_last_error(), layout, True)

    @classmethod
    def from_memory(
        cls,
        context: TensorContext,
        memory: int,
        nbytes: int,
        shape: Sequence[int],
        dtype: Dtype,
        strides: Sequence[int],
        offset: int = 0,
    ) -> Tensor:
        """Create a tensor in the caller's device memory, without poison and guard zones.

        The caller keeps the memory allocated while the tensor is open. Closing the tensor does not wait for the stream.

        Args:
            context: The context that owns the tensor.
            memory: Address of the storage.
            nbytes: Size of the storage in bytes.
            shape: Number of elements along each axis.
            dtype: Element type.
            strides: Distance in elements along each axis.
            offset: Number of elements in the storage before the first element of the tensor.

        Returns:
            The tensor.

        Raises:
            CallError: The storage is too small for the tensor.
        """
        layout, _, (sizes, steps) = core_layout(tuple(shape), tuple(strides), dtype, _DEVICE, offset, -1)
        kind, place = "diopiTensorHandle_t", pointer(memory)
        handle = call_for_output(
            lib.diopirt_tensor_over, kind, context.handle, sizes[0], steps[0], dtype, offset, place, nbytes
        )
        return cls(context, handle, layout, True)

    @classmethod
    def from_handle(cls, context: TensorContext, handle: Any) -> Tensor:
        """Return the tensor behind `handle`, which `context` owns; closing the tensor does not release it."""
        api = context.api
        dtype = Dtype(call_for_output(api.diopiGetTensorDtype, "diopiDtype_t", handle))
        memory_kind = types.Device(call_for_output(api.diopiGetTensorDevice, "diopiDevice_t", handle))
        shape = _unpack_sizes(call_for_output(api.diopiGetTensorShape, "diopiSize_t", handle))
        if call_for_output(api.diopiIsTensorSparse, "bool", handle):
            parts = _fetch_parts(context, handle)
            return cls(context, handle, _sparse_layout(shape, dtype, memory_kind, parts), False, parts)
        strides = _unpack_sizes(call_for_output(api.diopiGetTensorStride, "diopiSize_t", handle))
        offset = call_for_output(api.diopiGetTensorStorageOffset, "int64_t", handle)
        return cls(context, handle, dense_layout(shape, strides, dtype, memory_kind, offset), False)

    @classmethod
    def from_layout(cls, context: TensorContext, handle: Any, layout: TensorMetadata, data: int) -> Tensor:
        """Return the dense tensor behind `handle`, whose layout and data address the caller knows already."""
        tensor = cls(context, handle, layout, False)
        tensor._data = data
        return tensor

    @classmethod
    def sparse_csr(cls, crow: Tensor, col: Tensor, values: Tensor, shape: Sequence[int]) -> Tensor:
        """Create a sparse tensor in compressed sparse row form.

        Args:
            crow: Row pointers, of shape (rows + 1).
            col: Column indices, one per stored element.
            values: Stored elements. All three tensors must stay open while the result is open.
            shape: Rows and columns.

        Returns:
            The tensor, in the context of `crow`.
        """
        context = crow.context
        parts = (crow, col, values)
        sizes = size_pointer(tuple(shape))
        handle = call_for_output(
            lib.diopirt_tensor_sparse_csr,
            "diopiTensorHandle_t",
            context.handle,
            sizes[0],
            *(context.accept(part) for part in parts),
        )
        return cls(context, handle, _sparse_layout(tuple(shape), values.dtype, values.memory_kind, parts), True, parts)

    @property
    def handle(self) -> Any:
        """The tensor's C handle, a cffi pointer; raises ReleasedError if the tensor or its context is closed."""
        if self._handle is None or self.context._handle is None:
            raise ReleasedError(f"the tensor of shape {self.shape} or its context is closed")
        return self._handle

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance in elements along each axis; empty for a sparse tensor."""
        return self.layout.strides

    @property
    def storage_offset(self) -> int:
        """Position of the first element in the storage, in elements."""
        return self.layout.storage_offset

    @property
    def memory_kind(self) -> types.Device:
        """Whether the tensor is in device or host memory."""
        return self.layout.memory_kind

    @property
    def form(self) -> Hashable:
        """Shape, element type and memory kind as a hashable value."""
        return self.layout.form

    @property
    def is_sparse(self) -> bool:
        """Whether the tensor is in compressed sparse row form."""
        return self.layout.is_sparse

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """Row pointers, columns and values of a sparse tensor; raises `CallError` for a dense tensor."""
        return self._parts or _fetch_parts(self.context, self.handle)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def element_size(self) -> int:
        """Size of an element in bytes."""
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
            self._data = address(call_for_output(self.context.api.diopiGetTensorDataConst, "void const*", handle))
        return self._data

    @property
    def storage_nbytes(self) -> int:
        """Size of the storage in bytes."""
        return self._storage_memory()[1]

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are in row-major order without gaps."""
        return self.layout.is_contiguous

    def numpy(self) -> Array:
        """Wait for the stream and return a copy of the elements."""
        span = np.empty(extent(self.shape, self.strides), dtypes.to_numpy(self.dtype))
        self.context.fetch(self, self._start, span)
        return (
            span.reshape(self.shape)
            if self.is_contiguous
            else strided_view(span, span.dtype, self.shape, self.strides).copy()
        )

    def storage(self) -> Array:
        """Wait for the stream and return a copy of the whole storage as bytes."""
        contents = np.empty(self.storage_nbytes, np.uint8)
        self.context.fetch(self, 0, contents)
        return contents

    def view(self) -> Array:
        """Return a view of the elements without waiting for the stream; it is valid while the tensor is open.

        Raises:
            TypeError: The host can't address the tensor's memory.
        """
        if self._elements is None or self._handle is None or self.context._handle is None:
            self._check_addressable()
            self._elements = view_memory(self.data_ptr, self.layout)
        return self._elements

    def storage_view(self) -> Array:
        """Return a view of the whole storage as bytes; see `view`."""
        self._check_addressable()
        place, nbytes = self._storage_memory()
        return np.frombuffer(ffi.buffer(pointer(place), nbytes), np.uint8)

    def write(self, array: Array) -> None:
        """Overwrite the elements in stream order; memory between the elements is not changed.

        Args:
            array: New values. The shape may differ from the tensor's in axes of size 1.

        Raises:
            TypeError: The element types differ.
            ValueError: The shapes differ in more than axes of size 1.
        """
        _check_dtype(array, self.dtype)
        if [size for size in array.shape if size != 1] != [size for size in self.shape if size != 1]:
            raise ValueError(f"an array of shape {array.shape} can't be written to a tensor of shape {self.shape}")
        if self.is_contiguous:
            self.context.store(self, self._start, np.ascontiguousarray(array))
            return
        span = np.empty(extent(self.shape, self.strides), array.dtype)
        self.context.fetch(self, self._start, span)
        strided_view(span, span.dtype, self.shape, self.strides)[...] = array.reshape(self.shape)
        self.context.store(self, self._start, span)

    def clone(self) -> Tensor:
        """Return a tensor of the same layout whose storage is a device-to-device copy of the storage of this tensor."""
        handle = call_for_output(lib.diopirt_tensor_clone, "diopiTensorHandle_t", self.handle)
        return type(self)(self.context, handle, self.layout, True)

    def check_guards(self) -> None:
        """Wait for the stream and raise `GuardError` if memory just outside the storage was written."""
        if code := lib.diopirt_tensor_check(self.handle, damage_location.cell):
            raise_guarded_error(code)

    def close(self) -> None:
        """Check the guard zones and free the memory if the tensor owns it; raise the errors of `Owner.close`."""
        # A single function, because every operator call closes three tensors.
        if self._handle is None:
            return
        if self._owns and self.context._handle is not None and (code := _destroy(self._handle, damage_location.cell)):
            if code == Error.ErrorOccurred:
                self._handle = None
            raise_guarded_error(code)
        self._handle = None

    def __del__(self) -> None:
        if self._handle is not None and self._owns and not sys.is_finalizing():
            self.close()

    def __repr__(self) -> str:
        return f"Tensor({self.dtype.name}, shape {self.shape}, strides {self.strides})"

    def __enter__(self) -> Self:
        return self

    def _storage_memory(self) -> tuple[int, int]:
        """Return the address and the size in bytes of the storage, which are queried once."""
        handle = self.handle
        if self._memory is None:
            place = address(call_for_output(self.context.api.diopiGetTensorStoragePtr, "void*", handle))
            self._memory = place, int(call_for_output(self.context.api.diopiGetTensorStorageNbytes, "size_t", handle))
        return self._memory

    def _check_addressable(self) -> None:
        """Raise TypeError unless the host can address the memory of the tensor."""
        if not (self.device.host_addressable or self.memory_kind is types.Device.host):
            raise TypeError("the host can't address the device memory of the tensor, which a view requires")

    @property
    def _start(self) -> int:
        """Position of the first element in the storage, in bytes."""
        return self.storage_offset * self.element_size


def _check_dtype(array: Array, dtype: Dtype | None) -> Dtype:
    """Return `dtype`, or the array's own type if None; raise `TypeError` if the array has another type."""
    if dtype is None:
        return dtypes.from_numpy(array.dtype)
    if dtypes.to_numpy(dtype) != array.dtype:
        raise TypeError(f"the array has element type {array.dtype}, but the tensor has {dtype.name}")
    return dtype


def _unpack_sizes(size: Any) -> tuple[int, ...]:
    """Return a C size as a tuple."""
    return tuple(ffi.unpack(size.data, size.len)) if size.len else ()


def _fetch_parts(context: TensorContext, handle: Any) -> tuple[Tensor, ...]:
    """Return row pointers, columns and values of the sparse tensor behind `handle`."""
    api = context.api
    getters = (api.diopiGetTensorCrowIndices, api.diopiGetTensorColIndices, api.diopiGetTensorValues)
    handles = [call_for_output(getter, "diopiConstTensorHandle_t", handle) for getter in getters]
    return tuple([Tensor.from_handle(context, part) for part in handles])


def _sparse_layout(
    shape: tuple[int, ...], dtype: Dtype, memory_kind: types.Device, parts: tuple[Tensor, ...]
) -> TensorMetadata:
    """Return the layout of a sparse tensor, which does not have strides."""
    return TensorMetadata(shape, (), dtype, memory_kind, parts=tuple([part.form for part in parts]))
