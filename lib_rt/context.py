"""Contexts: what an operator is called with. A context owns the tensors made in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diopi_proto import types
from diopi_proto.types import Dtype
from lib_rt.device import Device, OnDevice
from lib_rt.dtypes import Array
from lib_rt.errors import ForeignObjectError
from lib_rt.library import array_pointer, check, check_guarded, ffi, lib, made, size_pointer
from lib_rt.owner import Owner
from lib_rt.stream import Stream
from lib_rt.tensor import Tensor

_NULL, _count_required = ffi.NULL, lib.diopirt_context_required


class Context(Owner):
    """A context on `stream`, or on a stream of its own.

    Closing it waits for the stream and releases every tensor made in it; GuardError if memory outside one of them was
    written.
    """

    __slots__ = ("_count", "_owns_stream", "device", "stream")

    api: Any = lib
    """The functions of `diopirt.h` that understand the context and its tensors."""

    def __init__(self, device: Device, stream: Stream | None = None) -> None:
        self._handle = None
        if stream is not None and stream.device is not device:
            raise ForeignObjectError("the stream belongs to another device than the context")
        self.device = device
        self.stream = stream or Stream(device)
        self._owns_stream = stream is None
        self._count = ffi.new("int64_t*")
        self._handle = made(lib.diopirt_context_create, "diopiContextHandle_t", self.stream.handle)
        self.stream._add(self)

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
        count = self._count
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

    def close(self) -> None:
        """Release the context, the tensors made in it, and its stream if that is its own."""
        try:
            super().close()
        finally:
            if self.closed and self._owns_stream:
                self.stream.close()

    def _release(self, handle: Any) -> None:
        check_guarded(lib.diopirt_context_destroy, handle)
        self.stream._remove(self)
