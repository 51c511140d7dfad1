"""Calling a C function with the values of a vendor call: how each kind of parameter is passed, and results come back.

cffi makes C arrays of Python lists and keeps them for the duration of the call, so a number by pointer is a list of
one, and an array of tensors a list of handles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from diopi_impl.base import Box
from diopi_proto import parameters as kinds
from diopi_proto import types
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Error
from lib_rt import Context, Tensor
from lib_rt.library import SizeArgument, ffi


@final
class Frame:
    """One call: its context, the memory its pointers point to, and the boxes to fill when it succeeded."""

    __slots__ = ("_kept", "_made", "context")

    def __init__(self, context: Context) -> None:
        self.context = context
        self._kept: list[Any] = []
        self._made: list[tuple[Box, Any]] = []

    def keep(self, memory: Any) -> Any:
        """`memory`, which lives as long as the call."""
        self._kept.append(memory)
        return memory

    def fill_later(self, boxes: Sequence[Box], pointer: Any) -> Any:
        """`pointer`, whose entries go into `boxes` when the call succeeded."""
        self._made.extend((box, pointer + i) for i, box in enumerate(boxes))
        return pointer

    def fill_boxes(self) -> None:
        """Put what the callee made into the boxes; a NULL handle leaves its box empty."""
        for box, pointer in self._made:
            value = pointer[0]
            if not isinstance(value, ffi.CData):
                box.value = value
            elif value != ffi.NULL:
                box.value = Tensor.from_handle(self.context, value)


Marshaller = Callable[[Frame, Any], Any]
"""From the value of a vendor call to what cffi passes."""


def _as_it_is(frame: Frame, value: Any) -> Any:
    return value


def _handle(frame: Frame, owner: Any) -> Any:
    return frame.context.accept(owner)


def _handles(frame: Frame, owners: Sequence[Any]) -> Any:
    return [ffi.NULL if owner is None else frame.context.accept(owner) for owner in owners]


def _by_pointer(frame: Frame, value: Any) -> Any:
    return [value]


def _size_by_pointer(frame: Frame, values: Sequence[int]) -> Any:
    return frame.keep(SizeArgument(values)).pointer


def _size(frame: Frame, values: Sequence[int]) -> Any:
    return _size_by_pointer(frame, values)[0]


def _scalar(frame: Frame, value: types.Scalar | types.Number) -> Any:
    scalar = value if isinstance(value, types.Scalar) else types.Scalar.of(value)
    payload = {"ival": int(scalar.value)} if scalar.is_integer else {"fval": float(scalar.value)}
    return [{"stype": scalar.dtype, **payload}]


def _text(frame: Frame, value: str) -> bytes:
    return value.encode()


def _address(frame: Frame, value: int) -> Any:
    return ffi.cast("void*", value)


def _new(element: str) -> Marshaller:
    def marshal(frame: Frame, box: Box) -> Any:
        return frame.fill_later([box], ffi.new(f"{element}[1]"))

    return marshal


def _size_in_box(frame: Frame, box: Box) -> Any:
    return frame.fill_later([box], ffi.new("int64_t[1]", [box.value]))


def _new_handles(frame: Frame, boxes: Sequence[Box]) -> Any:
    return frame.fill_later(boxes, ffi.new("diopiTensorHandle_t[]", len(boxes)))


_MARSHALLERS: dict[Any, Marshaller] = {
    **dict.fromkeys(kinds.SINGLE_TENSORS, _handle),
    **dict.fromkeys(kinds.TENSOR_ARRAYS, _handles),
    kinds.SparseIn: _handle,
    kinds.NewOut: _new("diopiTensorHandle_t"),
    kinds.NewOuts: _new_handles,
    kinds.OutF64: _new("double"),
    kinds.OutI64: _new("int64_t"),
    kinds.OutBool: _new("bool"),
    kinds.InOutSize: _size_in_box,
    kinds.Size: _size,
    kinds.Scalar: _scalar,
    kinds.Text: _text,
    kinds.Generator: _handle,
    kinds.Generators: _handles,
    kinds.Pointer: _address,
}
"""By annotation, the ones derived from it included; everything else is a number or an enum and goes as it is."""


_BY_POINTER: dict[Marshaller, Marshaller] = {_as_it_is: _by_pointer, _size: _size_by_pointer}
"""How what is usually passed by value is passed when it is optional."""


def _marshaller(parameter: Parameter) -> Marshaller:
    known = next((_MARSHALLERS[kind] for kind in parameter.annotation.__mro__ if kind in _MARSHALLERS), _as_it_is)
    return _BY_POINTER.get(known, known) if parameter.c_type.endswith("*") else known


@final
class Caller:
    """Calls `function`, which is compiled, with the parameters of `prototype`."""

    def __init__(self, prototype: Prototype, function: Any) -> None:
        self._function = function
        self._parameters = [(_marshaller(p), _absent(p)) for p in prototype.parameters[1:]]

    def __call__(self, context: Context, values: Sequence[Any]) -> Error:
        """The error code of a call with `values`, one a parameter after the context.

        Raises TypeError, ValueError or OverflowError when a value can't be what its parameter is in C.
        """
        frame = Frame(context)
        arguments = [
            absent if value is None else marshal(frame, value)
            for (marshal, absent), value in zip(self._parameters, values, strict=True)
        ]
        code = Error(self._function(context.handle, *arguments))
        if code is Error.Success:
            frame.fill_boxes()
        return code


def _absent(parameter: Parameter) -> Any:
    """What is passed for None: NULL, or for a size by value the empty one with no address."""
    return {"data": ffi.NULL, "len": 0} if parameter.c_type.endswith("diopiSize_t") else ffi.NULL
