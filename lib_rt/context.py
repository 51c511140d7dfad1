"""Contexts: what an operator is called with. A context owns the tensors made in it."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any

from diopi_proto import types
from diopi_proto.types import Dtype
from lib_rt.device import Device, OnDevice
from lib_rt.dtypes import Array
from lib_rt.errors import ForeignObjectError
from lib_rt.library import array_pointer, check, damage, fail_guarded, ffi, lib, made, refused, size_pointer
from lib_rt.owner import Owner
from lib_rt.stream import Stream
from lib_rt.tensor import Tensor

_NULL, _COUNT, _count_required = ffi.NULL, ffi.typeof("int64_t*"), lib.diopirt_context_required

_open, _destroy, _synchronize = (
    lib.diopirt_context_open,
    lib.diopirt_context_destroy,
    lib.diopirt_context_synchronize,
)

_taking = RLock()
"""Held while a context's stream is asked for the first time, as two threads may."""


class Context(Owner):
    """A context on `stream`, or on a stream of its own.

    Closing it waits for the stream and releases every tensor made in it; GuardError if memory outside one of them was
    written.
    """

    __slots__ = ("_owns_stream", "_stream", "device")

    api: Any = lib
    """The functions of `diopirt.h` that understand the context and its tensors."""

    def __init__(self, device: Device, stream: Stream | None = None) -> None:
        self._handle = None
        if stream is not None and stream.device is not device:
            raise ForeignObjectError("the stream belongs to another device than the context")
        self.device = device
        self._stream = stream
        self._owns_stream = stream is None
        if stream is None:
            self._handle = _open(device._handle or device.handle) or refused()  # the property says why there is none
            device._add(self)
        else:
            self._handle = made(lib.diopirt_context_create, "diopiContextHandle_t", stream.handle)
            stream._add(self)

    @property
    def stream(self) -> Stream:
        """Where its work is enqueued."""
        if self._stream is None:
            with _taking:
                self._stream = self._stream or self._taken()
        return self._stream

    def _taken(self) -> Stream:
        """The stream that the core made for the context; closed if the context is."""
        if self._handle is None:
            return Stream.taken(self.device, None)
        stream = Stream.taken(self.device, made(lib.diopirt_context_take_stream, "diopirt_stream_t", self._handle))
        stream._add(self)
        self.device._remove(self)
        return stream

    def synchronize(self) -> None:
        """Wait until everything enqueued on its stream is done."""
        if code := _synchronize(self.handle):
            check(code)

    @property
    def required(self) -> list[Tensor]:
        """The tensors operators required, oldest first; the context owns them."""
        count = made(lib.diopirt_context_required, "int64_t", self.handle, ffi.NULL, 0)
        if not count:
            return []
        handles = ffi.new("diopiTensorHandle_t[]", count)
        made(lib.diopirt_context_required, "int64_t", self.handle, handles, count)
        return [Tensor.from_handle(self, handle) for handle in handles]

    @property
    def has_required(self) -> bool:
        """Whether operators required tensors."""
        count = ffi.new(_COUNT)
        if code := _count_required(self.handle, _NULL, 0, count):
            check(code)
        return bool(count[0])

    def require_tensor(
        self,
        shape: Sequence[int],
        dtype: Dtype,
        strides: Sequence[int] | None = None,
        where: types.Device = types.Device.device,
    ) -> Tensor:
        """A tensor as an operator requires one, with `diopiRequireTensor`; the context owns it."""
        sizes, steps = size_pointer(tuple(shape)), None if strides is None else size_pointer(tuple(strides))
        result = ffi.new("diopiTensorHandle_t*")
        stride = ffi.NULL if steps is None else steps[0]
        check(self.api.diopiRequireTensor(self.handle, result, sizes[0], stride, dtype, where))
        return Tensor.from_handle(self, result[0])

    def fetch(self, tensor: Tensor, start: int, span: Array) -> None:
        """Copy the tensor's storage from byte `start` on into `span`, after waiting for the stream."""
        check(lib.diopirt_tensor_read(tensor.handle, start, span.nbytes, array_pointer(span)))

    def store(self, tensor: Tensor, start: int, span: Array) -> None:
        """Copy `span` to byte `start` of the tensor's storage, in stream order; `span` may be changed at once."""
        check(lib.diopirt_tensor_write(tensor.handle, start, span.nbytes, array_pointer(span)))

    def accept(self, argument: OnDevice) -> Any:
        """The handle of `argument` for a call in this context; ForeignObjectError if it belongs to another device."""
        if argument.device is self.device:
            return argument.handle
        raise ForeignObjectError(f"{argument!r} belongs to another device than the context it is used in")

    def accept_tensor(self, tensor: Tensor) -> Any:
        """As `accept`, of a tensor; one of the context's own is as open as its handle is there."""
        if tensor.context is self and tensor._handle is not None:
            return tensor._handle
        return self.accept(tensor)

    def close(self) -> None:
        """Release the context, the tensors made in it, and its stream if that is its own."""
        try:
            Owner.close(self)
        finally:
            if self._handle is None and self._owns_stream and self._stream is not None:
                self._stream.close()

    def _release(self, handle: Any) -> None:
        if code := _destroy(handle, damage.cell):
            fail_guarded(code)
        (self._stream or self.device)._remove(self)
