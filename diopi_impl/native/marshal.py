"""Call C functions with the arguments of a vendor call, and read their results.

cffi converts Python lists to C arrays for the duration of the call. A pointer to a number is therefore a list of one
number, and an array of tensors is a list of handles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from diopi_impl.base import Box
from diopi_proto import parameters as kinds
from diopi_proto import types
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Error
from lib_rt import Context, Tensor
from lib_rt.library import ffi, size_argument

_SUCCESS = Error.Success
"""The code of success; this name is found faster than the attribute of the enumeration."""

Marshaller = Callable[[Context, Any], Any]
"""Returns cffi's argument for the context and an argument of a vendor call."""


def _pass_through(context: Context, value: Any) -> Any:
    """Return the value unchanged."""
    return value


def _handles(context: Context, owners: Sequence[Any]) -> Any:
    """Return the handles of tensors or generators; NULL for None."""
    return [ffi.NULL if owner is None else context.accept(owner) for owner in owners]


def _by_pointer(context: Context, value: Any) -> Any:
    """Return a number in a list, which cffi passes by pointer."""
    return [value]


def _size(context: Context, values: Sequence[int]) -> Any:
    """Return a size, passed by value."""
    return size_argument(values)


def _size_by_pointer(context: Context, values: Sequence[int]) -> Any:
    """Return a size, passed by pointer."""
    return [size_argument(values)]


def _scalar(context: Context, value: types.Scalar | types.Number) -> Any:
    """Return a scalar, passed by pointer."""
    scalar = value if isinstance(value, types.Scalar) else types.Scalar.from_number(value)
    member, kind = _PAYLOADS[scalar.dtype]
    return [{"stype": scalar.dtype, member: kind(scalar.value)}]


_PAYLOADS: dict[types.Dtype, tuple[str, type[int | float]]] = {
    dtype: ("ival", int) if types.Scalar(dtype, 0).is_integer else ("fval", float) for dtype in types.Dtype
}
"""The member of `diopiScalar_t` for the value, and the Python type of the value, by the element type of a scalar."""


def _text(context: Context, value: str) -> bytes:
    """Return a text as bytes."""
    return value.encode()


def _address(context: Context, value: int) -> Any:
    """Return an address as a C pointer."""
    return ffi.cast("void*", value)


def _make_allocator(element: str) -> Marshaller:
    """Return a marshaller that allocates a C variable for the result in a box."""
    kind = f"{element}*"

    def marshal(context: Context, box: Box) -> Any:
        """Return a pointer to a new C variable."""
        return ffi.new(kind)

    return marshal


def _size_in_box(context: Context, box: Box) -> Any:
    """Return a pointer to a new C variable with the number in the box."""
    return ffi.new("int64_t*", box.value)


def _new_handles(context: Context, boxes: Sequence[Box]) -> Any:
    """Return a new C array with a tensor handle per box."""
    return ffi.new("diopiTensorHandle_t[]", len(boxes))


_MARSHALLERS: dict[Any, Marshaller] = {
    **dict.fromkeys(kinds.SINGLE_TENSORS, Context.accept_tensor),
    **dict.fromkeys(kinds.TENSOR_ARRAYS, _handles),
    kinds.SparseIn: Context.accept_tensor,
    kinds.NewOut: _make_allocator("diopiTensorHandle_t"),
    kinds.NewOuts: _new_handles,
    kinds.OutF64: _make_allocator("double"),
    kinds.OutI64: _make_allocator("int64_t"),
    kinds.OutBool: _make_allocator("bool"),
    kinds.InOutSize: _size_in_box,
    kinds.Size: _size,
    kinds.Scalar: _scalar,
    kinds.Text: _text,
    kinds.Generator: Context.accept,
    kinds.Generators: _handles,
    kinds.Pointer: _address,
}
"""The marshallers by annotation, which include derived annotations; numbers and enums are passed unchanged."""


_BY_POINTER: dict[Marshaller, Marshaller] = {_pass_through: _by_pointer, _size: _size_by_pointer}
"""The marshallers of optional arguments, which are passed by pointer, by those of required arguments."""


def _marshaller(parameter: Parameter) -> Marshaller:
    """Return the marshaller of the arguments for a parameter."""
    known = next((_MARSHALLERS[kind] for kind in parameter.annotation.__mro__ if kind in _MARSHALLERS), _pass_through)
    return _BY_POINTER.get(known, known) if parameter.c_type.endswith("*") else known


def caller(prototype: Prototype, function: Any) -> Callable[[Context, Sequence[Any]], Error]:
    """Return a function that calls the compiled `function` with the arguments of a vendor call.

    Args:
        prototype: the standard function.
        function: its compiled implementation.

    Returns:
        A function of the context and the values of the remaining parameters, which returns the error code. It raises
        TypeError, ValueError or OverflowError if a value can't be converted to the C type of its parameter.
    """
    parameters = prototype.parameters[1:]
    marshallers = [(_marshaller(p), _null_argument(p)) for p in parameters]
    boxed = [i for i, p in enumerate(parameters) if issubclass(p.annotation, kinds.BOXED)]

    def call(context: Context, values: Sequence[Any]) -> Error:
        """Return the error code of the C function for the converted values, and store its results in the boxes.

        Raises:
            ValueError: The number of values is not the number of parameters.
        """
        if len(values) != len(marshallers):
            raise ValueError(f"the call has {len(values)} arguments, the prototype has {len(marshallers)}")
        arguments = []
        for (marshal, null_argument), value in zip(marshallers, values):  # noqa: B905  # compared above, which takes less time
            arguments.append(null_argument if value is None else marshal(context, value))
        if code := function(context.handle, *arguments):
            return Error(code)
        for i in boxed:
            if values[i] is not None:
                _fill_boxes(context, values[i], arguments[i])
        return _SUCCESS

    return call


def _fill_boxes(context: Context, boxes: Box | list[Box], pointer: Any) -> None:
    """Store the results that the callee created in a box, or a list of boxes; NULL handles leave boxes empty."""
    for i, box in enumerate(boxes if isinstance(boxes, list) else [boxes]):
        value = pointer[i]
        if not isinstance(value, ffi.CData):
            box.value = value
        elif value != ffi.NULL:
            box.value = Tensor.from_handle(context, value)


def _null_argument(parameter: Parameter) -> Any:
    """Return the C argument for None: NULL, or an empty size if the size is passed by value."""
    return {"data": ffi.NULL, "len": 0} if parameter.c_type.endswith("diopiSize_t") else ffi.NULL
