"""Receiving a call from C: how each kind of parameter becomes the value a vendor takes, and results are handed back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from struct import pack, unpack
from typing import Any, final

from diopi_impl.base import BaseVendor, Box
from diopi_impl.export.source import count_position
from diopi_proto import parameters as kinds
from diopi_proto import types
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Error
from lib_rt import Tensor
from lib_rt.borrowed import BorrowedContext, BorrowedDevice, BorrowedGenerator
from lib_rt.layout import NUMBER_BYTES, Layout, decode_layouts
from lib_rt.library import address, ffi, text


@final
class Receiver:
    """What the C function of `prototype` calls.

    Args:
        vendor: whose function it is.
        device: what the contexts live on.
        fail: takes the reason of a failure.
    """

    def __init__(
        self, prototype: Prototype, vendor: BaseVendor, device: BorrowedDevice, fail: Callable[[str], object]
    ) -> None:
        self._prototype = prototype
        self._vendor = vendor
        self._device = device
        self._fail = fail
        self._readers = [(_reader(prototype, p), _may_be_null(p)) for p in prototype.parameters[1:]]
        self._boxed = [n for n, p in enumerate(prototype.parameters[1:]) if issubclass(p.annotation, kinds.BOXED)]
        self._count_position = count_position(prototype)

    def __call__(self, ctx: Any, *arguments: Any) -> int:
        """The error code of a call with what C passed; results are written only if it is success."""
        try:
            return self._call(ctx, arguments)
        except BaseException as error:  # nothing can be raised through C
            self._fail(f"{self._prototype.name}: {error or type(error).__name__}")
            return Error.ErrorOccurred

    def _call(self, ctx: Any, arguments: Sequence[Any]) -> int:
        call = self._begin(ctx, arguments)
        values: list[Any] = []
        for (read, may_be_null), argument in zip(self._readers, arguments):  # noqa: B905  # the last argument describes the call
            values.append(None if may_be_null and not argument else read(call, argument))
        code = self._vendor.call(self._prototype.name, call.context, *values)
        if code is not Error.Success:
            self._fail(self._vendor.last_error())
            return code
        for n in self._boxed:
            if values[n] is not None:
                _write_boxes(values[n], arguments[n])
        return code

    def _begin(self, ctx: Any, arguments: Sequence[Any]) -> _IncomingCall:
        """A call of which nothing was read but what was told of it, the last of its arguments."""
        count, description = 0 if self._count_position is None else arguments[self._count_position], arguments[-1]
        tensors = description.tensors
        if tensors < 0:
            return _IncomingCall(BorrowedContext(self._device, ctx), None, count)
        stream, *places = ffi.unpack(description.addresses, 1 + tensors)
        layouts = decode_layouts(ffi.buffer(description.layouts, description.length * NUMBER_BYTES)[:])
        return _IncomingCall(BorrowedContext(self._device, ctx, stream), zip(layouts, places, strict=True), count)


def _write_boxes(boxes: Box | list[Box], pointer: Any) -> None:
    """Write what is in a box, or a list of boxes, to where C expects it."""
    for i, box in enumerate(boxes if isinstance(boxes, list) else [boxes]):
        if box.value is not None:
            pointer[i] = box.value.handle if isinstance(box.value, Tensor) else box.value


@final
class _IncomingCall:
    """A call that is being read: its context, what was told of its tensors in their order, the length of its arrays."""

    __slots__ = ("context", "count", "layouts")

    def __init__(self, context: BorrowedContext, layouts: Iterator[tuple[Layout, int]] | None, count: int) -> None:
        self.context = context
        self.layouts = layouts
        self.count = count


Reader = Callable[[_IncomingCall, Any], Any]
"""From the call and what C passed, no NULL, to the value the vendor takes."""


def _tensor(call: _IncomingCall, handle: Any) -> Tensor:
    if call.layouts is None:
        return Tensor.from_handle(call.context, handle)
    return Tensor.from_layout(call.context, handle, *next(call.layouts))


def _tensors(call: _IncomingCall, handles: Any) -> list[Tensor | None]:
    return [_tensor(call, handles[i]) if handles[i] else None for i in range(call.count)]


def _generator(call: _IncomingCall, handle: Any) -> BorrowedGenerator:
    assert isinstance(call.context.device, BorrowedDevice)
    return BorrowedGenerator(call.context.device, handle)


def _generators(call: _IncomingCall, handles: Any) -> list[BorrowedGenerator | None]:
    return [_generator(call, handles[i]) if handles[i] else None for i in range(call.count)]


def _size(call: _IncomingCall, size: Any) -> tuple[int, ...]:
    return tuple(size.data[0 : size.len]) if size.len else ()


def _scalar(call: _IncomingCall, pointer: Any) -> types.Scalar:
    return _scalar_from_bits(pointer.stype, pointer.ival)


@lru_cache(maxsize=4096)
def _scalar_from_bits(stype: int, bits: int) -> types.Scalar:
    """The scalar of this element type whose value, whatever it is, has the bits of this integer."""
    scalar = types.Scalar(Dtype(stype), bits)
    return scalar if scalar.is_integer else types.Scalar(scalar.dtype, *unpack("d", pack("q", bits)))


def _text(call: _IncomingCall, characters: Any) -> str:
    return text(characters)


def _address(call: _IncomingCall, pointer: Any) -> int:
    return address(pointer)


def _box(call: _IncomingCall, pointer: Any) -> Box:
    return Box()


def _filled_box(call: _IncomingCall, pointer: Any) -> Box:
    return Box(pointer[0])


def _pass_through(call: _IncomingCall, value: Any) -> Any:
    return value


def _dereference(call: _IncomingCall, pointer: Any) -> Any:
    return pointer[0]


def _enum(kind: type[IntEnum]) -> Reader:
    known = {member.value: member for member in kind}
    return lambda call, value: known.get(value, value)


_READERS: dict[Any, Reader] = {
    **dict.fromkeys(kinds.SINGLE_TENSORS, _tensor),
    **dict.fromkeys(kinds.TENSOR_ARRAYS, _tensors),
    kinds.SparseIn: _tensor,
    **dict.fromkeys((kinds.NewOut, *kinds.OUT_VALUES), _box),
    kinds.InOutSize: _filled_box,
    kinds.Generator: _generator,
    kinds.Generators: _generators,
    kinds.Size: _size,
    kinds.Scalar: _scalar,
    kinds.Text: _text,
    kinds.Pointer: _address,
    **{kind: _enum(kind) for kind in (types.MemoryFormat, types.Reduction, types.RoundMode)},
}
"""By annotation, the ones derived from it included; everything else is a number, passed as it is or by pointer."""


def _reader(prototype: Prototype, parameter: Parameter) -> Reader:
    if parameter.annotation is kinds.NewOuts:
        return _boxes(len(prototype.result))  # type: ignore[arg-type]  # a rule by entry, which `NewOuts` demands
    read = next((_READERS[kind] for kind in parameter.annotation.__mro__ if kind in _READERS), _pass_through)
    if read is _pass_through and parameter.c_type.endswith("*"):
        read = _dereference
    return read


def _may_be_null(parameter: Parameter) -> bool:
    """Whether NULL can be passed for it, which no reader is given. Of bare addresses it is one like all others."""
    return parameter.annotation is not kinds.Pointer and bool(ffi.typeof(parameter.c_type).kind == "pointer")


def _boxes(number: int) -> Reader:
    return lambda call, pointer: [Box() for _ in range(number)]
