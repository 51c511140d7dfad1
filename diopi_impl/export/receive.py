"""Receiving a call from C: how each kind of parameter becomes the value a vendor takes, and results are handed back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cache
from typing import Any, final

from diopi_impl.base import BaseVendor, Box
from diopi_proto import parameters as kinds
from diopi_proto import types
from diopi_proto.facts import CountsEntries
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Error
from lib_rt import Tensor
from lib_rt.borrowed import BorrowedContext, BorrowedDevice, BorrowedGenerator
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
        self._readers = [_reader(prototype, parameter) for parameter in prototype.parameters[1:]]
        self._boxed = [n for n, p in enumerate(prototype.parameters[1:]) if issubclass(p.annotation, kinds.BOXED)]
        self._tensors = [
            (n, p.is_tensor_array and p.annotation is not kinds.SparseIn)
            for n, p in enumerate(prototype.parameters[1:])
            if (p.is_tensor or p.is_tensor_array) and not issubclass(p.annotation, kinds.BOXED)
        ]
        self._counter = next((n for n, p in enumerate(prototype.parameters[1:]) if _counts(p)), None)

    def __call__(self, ctx: Any, *arguments: Any) -> int:
        """The error code of a call with what C passed; results are written only if it is success."""
        try:
            return self._call(ctx, arguments)
        except BaseException as error:  # nothing can be raised through C
            self._fail(f"{self._prototype.name}: {error or type(error).__name__}")
            return Error.ErrorOccurred

    def _call(self, ctx: Any, arguments: Sequence[Any]) -> int:
        count = arguments[self._counter] if self._counter is not None else 0
        context, tensors = self._device.borrow(ctx, self._handles(arguments, count))
        call = _Call(context, iter(tensors), count)
        values = [read(call, given) for read, given in zip(self._readers, arguments, strict=True)]
        code = self._vendor.call(self._prototype.name, context, *values)
        if code is not Error.Success:
            self._fail(self._vendor.last_error())
            return code
        for n in self._boxed:
            if values[n] is not None:
                _hand_back(values[n], arguments[n])
        return code

    def _handles(self, arguments: Sequence[Any], count: int) -> list[Any]:
        """Of all tensors that a call gives, in the order of its parameters."""
        handles = []
        for n, is_array in self._tensors:
            given = arguments[n]
            if given and is_array:
                handles += [given[i] for i in range(count) if given[i]]
            elif given:
                handles.append(given)
        return handles


def _counts(parameter: Parameter) -> bool:
    """Whether it is the number of entries in the arrays of the call."""
    return parameter.role is Role.count or parameter.fact(CountsEntries) is not None


def _hand_back(given: Box | list[Box], pointer: Any) -> None:
    """Write what is in a box, or a list of boxes, to where C expects it."""
    for i, box in enumerate(given if isinstance(given, list) else [given]):
        if box.value is not None:
            pointer[i] = box.value.handle if isinstance(box.value, Tensor) else box.value


@final
class _Call:
    """A call that is being read: its context, its tensors in the order of its parameters, the length of its arrays."""

    __slots__ = ("context", "count", "tensors")

    def __init__(self, context: BorrowedContext, tensors: Iterator[Tensor], count: int) -> None:
        self.context = context
        self.tensors = tensors
        self.count = count


Reader = Callable[[_Call, Any], Any]
"""From the call and what C passed to the value the vendor takes."""


def _tensor(call: _Call, handle: Any) -> Tensor:
    return next(call.tensors)


def _tensors(call: _Call, handles: Any) -> list[Tensor | None]:
    return [next(call.tensors) if handles[i] else None for i in range(call.count)]


def _generator(call: _Call, handle: Any) -> BorrowedGenerator:
    assert isinstance(call.context.device, BorrowedDevice)
    return BorrowedGenerator(call.context.device, handle)


def _generators(call: _Call, handles: Any) -> list[BorrowedGenerator | None]:
    return [_generator(call, handles[i]) if handles[i] else None for i in range(call.count)]


def _size(call: _Call, size: Any) -> tuple[int, ...]:
    return tuple(size.data[0 : size.len]) if size.len else ()


def _scalar(call: _Call, pointer: Any) -> types.Scalar:
    dtype, member = _scalar_type(pointer.stype)
    return types.Scalar(dtype, getattr(pointer, member))


@cache
def _scalar_type(number: int) -> tuple[Dtype, str]:
    """The element type of a scalar, and the member of `diopiScalar_t` with its value."""
    dtype = Dtype(number)
    return dtype, "ival" if types.Scalar(dtype, 0).is_integer else "fval"


def _text(call: _Call, characters: Any) -> str:
    return text(characters)


def _address(call: _Call, pointer: Any) -> int:
    return address(pointer)


def _box(call: _Call, pointer: Any) -> Box:
    return Box()


def _filled_box(call: _Call, pointer: Any) -> Box:
    return Box(pointer[0])


def _as_it_is(call: _Call, value: Any) -> Any:
    return value


def _pointed_to(call: _Call, pointer: Any) -> Any:
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
    read = next((_READERS[kind] for kind in parameter.annotation.__mro__ if kind in _READERS), _as_it_is)
    if read is _as_it_is and parameter.c_type.endswith("*"):
        read = _pointed_to
    return _unless_null(read) if ffi.typeof(parameter.c_type).kind == "pointer" else read


def _unless_null(read: Reader) -> Reader:
    return lambda call, pointer: read(call, pointer) if pointer else None


def _boxes(number: int) -> Reader:
    return lambda call, pointer: [Box() for _ in range(number)]
