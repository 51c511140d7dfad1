"""Contexts, which every operator takes as its first argument. A context owns the tensors created in it."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any

from diopi_proto import types
from diopi_proto.types import Dtype
from lib_rt.device import Device, OnDevice
from lib_rt.dtypes import Array
from lib_rt.errors import ForeignObjectError
from lib_rt.library import (
    array_pointer,
    call_for_output,
    check,
    damage_location,
    ffi,
    lib,
    raise_guarded_error,
    raise_last_error,
    size_pointer,
)
from lib_rt.owner import Owner
from lib_rt.stream import Stream
from lib_rt.tensor import Tensor

_NULL, _COUNT, _count_required = ffi.NULL, ffi.typeof("int64_t*"), lib.diopirt_context_required
"""Objects of the C core that every call uses; global names are found faster than attributes."""

_open, _destroy, _synchronize = (
    lib.diopirt_context_open,
    lib.diopirt_context_destroy,
    lib.diopirt_context_synchronize,
)
"""Functions of the C core that create, release and wait for contexts."""

_stream_lock = RLock()
"""Protects the first access to the stream of a context, because two threads may access it at the same time."""


class Context(Owner):
    """A context on a stream, which owns the tensors created in it.

    Closing the context waits for the stream and releases every tensor. It raises `GuardError` if memory outside a
    tensor was written.

    Args:
        device: The device that the context belongs to.
        stream: The stream on which operators enqueue their work; a new one that the context owns if None.

    Raises:
        ForeignObjectError: The stream belongs to another device.
    """

    __slots__ = ("_owns_stream", "_stream", "device")

    api: Any = lib
    """The functions of `diopirt.h` that understand the context and its tensors."""

    def __init__(self, device: Device, stream: Stream | None = None) -> None:
        self._handle = None
        if stream is not None and stream.device is not device:
            raise ForeignObjectError(
                "stream: belongs to another device than the context; pass a stream of the same device"
            )
        self.device = device
        self._stream = stream
        self._owns_stream = stream is None
        if stream is None:
            self._handle = (
                _open(device._handle or device.handle) or raise_last_error()
            )  # the property raises ReleasedError
            device._add(self)
        else:
            self._handle = call_for_output(lib.diopirt_context_create, "diopiContextHandle_t", stream.handle)
            stream._add(self)

    @property
    def stream(self) -> Stream:
        """The stream on which operators called with this context enqueue their work."""
        if self._stream is None:
            with _stream_lock:
                self._stream = self._stream or self._wrap_stream()
        return self._stream

    def _wrap_stream(self) -> Stream:
        """Return an object for the stream that the C core created; a closed stream if the context is closed."""
        if self._handle is None:
            return Stream.adopt(self.device, None)
        stream = Stream.adopt(
            self.device, call_for_output(lib.diopirt_context_take_stream, "diopirt_stream_t", self._handle)
        )
        stream._add(self)
        self.device._remove(self)
        return stream

    def synchronize(self) -> None:
        """Wait until all work enqueued on the context's stream is complete."""
        if code := _synchronize(self.handle):
            check(code)

    @property
    def required(self) -> list[Tensor]:
        """Tensors that operators allocated with `diopiRequireTensor`, oldest first; the context owns them."""
        count = call_for_output(lib.diopirt_context_required, "int64_t", self.handle, ffi.NULL, 0)
        if not count:
            return []
        handles = ffi.new("diopiTensorHandle_t[]", count)
        call_for_output(lib.diopirt_context_required, "int64_t", self.handle, handles, count)
        return [Tensor.from_handle(self, handle) for handle in handles]

    @property
    def has_required(self) -> bool:
        """Whether an operator allocated a tensor with `diopiRequireTensor`."""
        count = ffi.new(_COUNT)
        if code := _count_required(self.handle, _NULL, 0, count):
            check(code)
        return bool(count[0])

    def require_tensor(
        self,
        shape: Sequence[int],
        dtype: Dtype,
        strides: Sequence[int] | None = None,
        memory_kind: types.Device = types.Device.device,
    ) -> Tensor:
        """Allocate a tensor with `diopiRequireTensor`, as an operator does.

        Args:
            shape: Number of elements along each axis.
            dtype: Element type.
            strides: Distance in elements along each axis; contiguous if None.
            memory_kind: Device or host memory.

        Returns:
            The tensor, which the context owns.
        """
        sizes, steps = size_pointer(tuple(shape)), None if strides is None else size_pointer(tuple(strides))
        result = ffi.new("diopiTensorHandle_t*")
        stride = ffi.NULL if steps is None else steps[0]
        check(self.api.diopiRequireTensor(self.handle, result, sizes[0], stride, dtype, memory_kind))
        return Tensor.from_handle(self, result[0])

    def fetch(self, tensor: Tensor, start: int, span: Array) -> None:
        """Copy `span.nbytes` bytes of the tensor's storage, from byte `start`, into `span`; waits for the stream."""
        check(lib.diopirt_tensor_read(tensor.handle, start, span.nbytes, array_pointer(span)))

    def store(self, tensor: Tensor, start: int, span: Array) -> None:
        """Copy `span` to byte `start` of the tensor's storage in stream order; the caller may modify `span` at once."""
        check(lib.diopirt_tensor_write(tensor.handle, start, span.nbytes, array_pointer(span)))

    def accept(self, argument: OnDevice) -> Any:
        """Return the handle of `argument` for a call in this context.

        Raises:
            ForeignObjectError: The argument belongs to another device.
            ReleasedError: The argument is closed.
        """
        if argument.device is self.device:
            return argument.handle
        raise ForeignObjectError(f"{argument!r} belongs to another device than the context it is used in")

    def accept_tensor(self, tensor: Tensor) -> Any:
        """Return the handle of `tensor` for a call in this context; raises like `accept`."""
        if tensor.context is self and tensor._handle is not None:
            return tensor._handle
        return self.accept(tensor)

    def close(self) -> None:
        """Release the context, the tensors created in it, and its stream if the context owns the stream."""
        try:
            Owner.close(self)
        finally:
            if self._handle is None and self._owns_stream and self._stream is not None:
                self._stream.close()

    def _release(self, handle: Any) -> None:
        """Destroy the context and its tensors; raise GuardError if memory outside a tensor was written."""
        if code := _destroy(handle, damage_location.cell):
            raise_guarded_error(code)
        (self._stream or self.device)._remove(self)
