"""Receive calls from C: convert C parameters to the arguments of a Python vendor, and write its results back.

A *reader* converts the C arguments of a kind of parameters. `_READERS` lists all readers.
"""

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
from lib_rt.layout import NUMBER_BYTES, TensorMetadata, decode_layouts
from lib_rt.library import address, ffi, text


@final
class Receiver:
    """The Python function that the exported C function of a prototype calls.

    Args:
        prototype: the standard function.
        vendor: the vendor that implements it.
        device: the device of the framework's contexts.
        fail: receives the reason of a failure.
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
        """Call the vendor with C arguments and return its error code; write the results only on success."""
        try:
            return self._call(ctx, arguments)
        except BaseException as error:  # exceptions can't pass through C
            self._fail(f"{self._prototype.name}: {error or type(error).__name__}")
            return Error.ErrorOccurred

    def _call(self, ctx: Any, arguments: Sequence[Any]) -> int:
        """Convert the arguments, call the vendor, and write the results.

        Args:
            ctx: the handle of the caller's context.
            arguments: the C arguments after the context; the last argument describes the tensors of the call.

        Returns:
            The error code of the vendor.
        """
        call = self._read_description(ctx, arguments)
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

    def _read_description(self, ctx: Any, arguments: Sequence[Any]) -> _IncomingCall:
        """Return the call with the layouts of its tensors, read from the description, which is the last C argument."""
        count, description = 0 if self._count_position is None else arguments[self._count_position], arguments[-1]
        tensors = description.tensors
        if tensors < 0:
            return _IncomingCall(BorrowedContext(self._device, ctx), None, count)
        stream, *places = ffi.unpack(description.addresses, 1 + tensors)
        layouts = decode_layouts(ffi.buffer(description.layouts, description.length * NUMBER_BYTES)[:])
        return _IncomingCall(BorrowedContext(self._device, ctx, stream), zip(layouts, places, strict=True), count)


def _write_boxes(boxes: Box | list[Box], pointer: Any) -> None:
    """Write the value of a box, or of a list of boxes, to the memory that C expects it in."""
    for i, box in enumerate(boxes if isinstance(boxes, list) else [boxes]):
        if box.value is not None:
            pointer[i] = box.value.handle if isinstance(box.value, Tensor) else box.value


@final
class _IncomingCall:
    """A call whose arguments are being read.

    Attributes:
        context: the context of the call.
        layouts: the layouts and addresses of its tensors that are not read yet; None if the call has no description.
        count: the length of its arrays of tensors and generators.
    """

    __slots__ = ("context", "count", "layouts")

    def __init__(
        self, context: BorrowedContext, layouts: Iterator[tuple[TensorMetadata, int]] | None, count: int
    ) -> None:
        self.context = context
        self.layouts = layouts
        self.count = count


Reader = Callable[[_IncomingCall, Any], Any]
"""Returns the argument for the vendor, from the call and a C argument that is not NULL."""


def _tensor(call: _IncomingCall, handle: Any) -> Tensor:
    """Return the tensor behind a handle, with the next layout of the description if there is one."""
    if call.layouts is None:
        return Tensor.from_handle(call.context, handle)
    return Tensor.from_layout(call.context, handle, *next(call.layouts))


def _tensors(call: _IncomingCall, handles: Any) -> list[Tensor | None]:
    """Return the tensors of an array; None for a NULL entry."""
    return [_tensor(call, handles[i]) if handles[i] else None for i in range(call.count)]


def _generator(call: _IncomingCall, handle: Any) -> BorrowedGenerator:
    """Return the generator behind a handle."""
    assert isinstance(call.context.device, BorrowedDevice)
    return BorrowedGenerator(call.context.device, handle)


def _generators(call: _IncomingCall, handles: Any) -> list[BorrowedGenerator | None]:
    """Return the generators of an array; None for a NULL entry."""
    return [_generator(call, handles[i]) if handles[i] else None for i in range(call.count)]


def _size(call: _IncomingCall, size: Any) -> tuple[int, ...]:
    """Return the numbers of a C size as a tuple."""
    return tuple(size.data[0 : size.len]) if size.len else ()


def _scalar(call: _IncomingCall, pointer: Any) -> types.Scalar:
    """Return the scalar that a pointer refers to."""
    return _scalar_from_bits(pointer.stype, pointer.ival)


@lru_cache(maxsize=4096)
def _scalar_from_bits(stype: int, bits: int) -> types.Scalar:
    """Return the scalar of this element type whose 64-bit payload is this integer."""
    scalar = types.Scalar(Dtype(stype), bits)
    return scalar if scalar.is_integer else types.Scalar(scalar.dtype, *unpack("d", pack("q", bits)))


def _text(call: _IncomingCall, characters: Any) -> str:
    """Return a C string as a Python string."""
    return text(characters)


def _address(call: _IncomingCall, pointer: Any) -> int:
    """Return a pointer as a number."""
    return address(pointer)


def _box(call: _IncomingCall, pointer: Any) -> Box:
    """Return an empty box."""
    return Box()


def _filled_box(call: _IncomingCall, pointer: Any) -> Box:
    """Return a box with the number that a pointer refers to."""
    return Box(pointer[0])


def _pass_through(call: _IncomingCall, value: Any) -> Any:
    """Return the C argument `value` unchanged."""
    return value


def _dereference(call: _IncomingCall, pointer: Any) -> Any:
    """Return the number that a pointer refers to."""
    return pointer[0]


def _enum(kind: type[IntEnum]) -> Reader:
    """Return a reader of the members of an enumeration; unknown numbers are unchanged."""
    members = {member.value: member for member in kind}
    return lambda call, value: members.get(value, value)


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
"""The readers by the annotation of the parameter, or a base class of it; other arguments are numbers or pointers to
numbers."""


def _reader(prototype: Prototype, parameter: Parameter) -> Reader:
    """Return the reader of the arguments for a parameter."""
    if parameter.annotation is kinds.NewOuts:
        return _boxes(len(prototype.result))  # type: ignore[arg-type]  # a rule by entry, which `NewOuts` demands
    read = next((_READERS[kind] for kind in parameter.annotation.__mro__ if kind in _READERS), _pass_through)
    if read is _pass_through and parameter.c_type.endswith("*"):
        read = _dereference
    return read


def _may_be_null(parameter: Parameter) -> bool:
    """Return whether NULL becomes None; for a plain address, NULL is an ordinary value."""
    return parameter.annotation is not kinds.Pointer and bool(ffi.typeof(parameter.c_type).kind == "pointer")


def _boxes(number: int) -> Reader:
    """Return a reader that creates `number` empty boxes."""
    return lambda call, pointer: [Box() for _ in range(number)]
