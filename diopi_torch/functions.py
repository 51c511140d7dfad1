"""Calling functions of the standard with tensors of the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import Any, final

import torch

from diopi_impl.base import BaseVendor, Box
from diopi_proto import parameters as kinds
from diopi_proto.aten.mapping import FunctionCall
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.types import Dtype, Error, Reduction, RoundMode, Scalar
from diopi_torch.backend import Backend, backend
from diopi_torch.layout import TORCH_DTYPES, Layout
from diopi_torch.streams import Stream
from diopi_torch.tensors import is_dense, new
from lib_rt import Context, Tensor

NOT_HERE = frozenset({Error.NoImplement, Error.ForceFallbackToCPU, Error.DtypeNotSupported, Error._5DNotSupported})
"""Codes with which a vendor says that it does not do what is asked, not that something is wrong with it."""


_OUTSIDE = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
"""How PyTorch behaves outside of operators, and so for a vendor that calls it: with gradients, say."""

_outside = torch._C._ForceDispatchKeyGuard

_SUCCESS = Error.Success

_NOTHING: Mapping[str, Any] = {}


class NotServedError(Exception):
    """The vendor does not serve a call; the message says what it lacks. Nothing was written."""


@final
@dataclass(frozen=True, eq=False, slots=True)
class Slot:
    """Stands in a plan for a tensor.

    Attributes:
        number: of the tensor among those of the call.
        layout: of it.
        memory: the number of the first tensor of the call that is in the same memory.
    """

    number: int
    layout: Layout
    memory: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance in elements along each axis."""
        return self.layout.strides

    @property
    def dtype(self) -> Dtype:
        """The element type."""
        return self.layout.dtype


@final
@dataclass(frozen=True, eq=False, slots=True)
class PlaceholderValue:
    """Stands in a plan for what is no tensor, and made for each call: a generator; by its number, too."""

    number: int


@final
class PlaceholderNumber(float):
    """Stands in a plan for a number that each call has its own of; the value is that of the call it was found for.

    Attributes:
        number: its place among the tensors and other values of the call.
    """

    __slots__ = ("number",)
    number: int

    @classmethod
    def at_position(cls, number: int, value: float) -> PlaceholderNumber:
        """The one of this place."""
        instance = cls(value)
        instance.number = number
        return instance


@final
class Operand:
    """A tensor of a call as the standard sees it, for those who watch."""

    __slots__ = ("dtype", "shape", "strides", "tensor")

    def __init__(self, tensor: torch.Tensor, layout: Layout) -> None:
        self.tensor = tensor
        self.shape, self.strides, self.dtype = layout.shape, layout.strides, layout.dtype


Performed = Callable[[], Mapping[str, Any]]
"""Performs a call; the results that the vendor made, by name."""

Watch = Callable[[FunctionCall, Performed], Mapping[str, Any]]
"""Has a call performed, by what it is given for that, looking at what there is before and after it."""

watches: dict[int, Watch] = {}
"""By the number of the thread whose calls are watched."""


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Have a watch perform the calls that this thread makes meanwhile; one that watches already is within it."""
    thread, before = get_ident(), watches.get(get_ident())
    watches[thread] = watch if before is None else lambda call, do: watch(call, lambda: before(call, do))
    try:
        yield
    finally:
        if before is None:
            del watches[thread]
        else:
            watches[thread] = before


@final
class PreparedCall:
    """A call of a function whose tensors are not known yet.

    Args:
        call: it, with slots for tensors.
    """

    __slots__ = ("_boxes", "_call", "_constants", "_has_more", "_lists", "_scalars", "_tensors", "_values", "function")

    def __init__(self, call: FunctionCall) -> None:
        self._call = call
        self.function = call.function
        parameters = lookup(call.function).parameters[1:]
        self._constants = [_value(parameter, call) for parameter in parameters]
        numbered = list(enumerate(self._constants))
        self._tensors = [(place, value.number, value.layout) for place, value in numbered if isinstance(value, Slot)]
        self._values = [
            (place, value.number)
            for place, value in numbered
            if isinstance(value, PlaceholderValue | PlaceholderNumber)
        ]
        self._scalars = [place for place, p in enumerate(parameters) if issubclass(p.annotation, kinds.Scalar)]
        self._lists = [(place, value) for place, value in numbered if isinstance(value, list)]
        self._boxes = [(place, parameters[place].name) for place, value in numbered if isinstance(value, Box)]
        self._has_more = bool(self._values or self._lists or self._boxes)

    @property
    def makes(self) -> int:
        """How many results the vendor makes."""
        return len(self._boxes)

    def perform(self, values: Sequence[Any], device: Backend, stream: Stream) -> Mapping[str, Any]:
        """Call it on a stream, with tensors by their numbers; the results that the vendor made, by name.

        Raises NotServedError if the vendor does not do it, RuntimeError with its explanation if the call fails.
        """
        watch = watches.get(get_ident())
        if watch is None:
            return self.perform_unwatched(values, device, stream)
        return watch(self._with(values), lambda: self.perform_unwatched(values, device, stream))

    def perform_unwatched(self, values: Sequence[Any], device: Backend, stream: Stream) -> Mapping[str, Any]:
        """As `perform`, whoever watches."""
        arguments = self._constants.copy()
        stream.place(arguments, self._tensors, values)
        if self._has_more:
            self._add_to(arguments, values, stream.opened)
        context = stream.context
        try:
            if device.vendor.calls_torch:
                code = _call_outside(device.vendor, self.function, context, arguments)
            else:
                code = device.vendor.call(self.function, context, *arguments)
            if code is not _SUCCESS:
                raise refusal(device, self.function, code)
            return self._received(arguments) if self._boxes else _NOTHING
        finally:
            if context.has_required:
                stream.end_context()

    def _add_to(self, arguments: list[Any], values: Sequence[Any], opened: Callable[[Any, Layout], Tensor]) -> None:
        """Lists of tensors, what is none, and places for what the vendor makes."""
        for place, slots in self._lists:
            arguments[place] = [slot and opened(values[slot.number], slot.layout) for slot in slots]
        for place, number in self._values:
            arguments[place] = Scalar.from_number(values[number]) if place in self._scalars else values[number]
        for place, _ in self._boxes:
            arguments[place] = Box()

    def _received(self, arguments: Sequence[Any]) -> Mapping[str, Any]:
        return {name: _received(arguments[place].value) for place, name in self._boxes}

    def _with(self, values: Sequence[Any]) -> FunctionCall:
        """The call with these tensors."""

        def known(value: Any) -> Any:
            if isinstance(value, Slot):
                return Operand(values[value.number], value.layout)
            if isinstance(value, PlaceholderValue | PlaceholderNumber):
                return values[value.number]
            return [known(entry) for entry in value] if isinstance(value, list) else value

        arguments, results = self._call.arguments, self._call.results
        return FunctionCall(
            self.function,
            {name: known(value) for name, value in arguments.items()},
            {name: known(value) for name, value in results.items()},
        )


def _call_outside(vendor: BaseVendor, function: str, context: Context, arguments: Sequence[Any]) -> Error:
    """Call a vendor that may call PyTorch."""
    with _outside(*_OUTSIDE):
        return vendor.call(function, context, *arguments)


def refusal(device: Backend, function: str, code: Error) -> Exception:
    """What is raised for a code other than success."""
    message = f"{function} answered {code.name}: {device.vendor.last_error()}"
    return NotServedError(message) if code in NOT_HERE else RuntimeError(f"{device.vendor.name}: {message}")


def _value(parameter: Parameter, call: FunctionCall) -> Any:
    """What is passed for a parameter; slots as they are."""
    if parameter.role is Role.count:
        return _count(call)
    if issubclass(parameter.annotation, kinds.NewOut) or parameter.annotation in (kinds.OutBool, kinds.OutI64):
        return Box()
    value = call.results[parameter.name] if parameter.name in call.results else call.arguments.get(parameter.name)
    if value is None or isinstance(value, Slot | PlaceholderValue | PlaceholderNumber | list):
        return value
    if issubclass(parameter.annotation, kinds.Scalar):
        return Scalar.from_number(value)
    if issubclass(parameter.annotation, Reduction | RoundMode):
        return parameter.annotation[value]
    return value


def _count(call: FunctionCall) -> int:
    return next(len(value) for value in (*call.arguments.values(), *call.results.values()) if isinstance(value, list))


def _received(value: Any) -> Any:
    """What the vendor made: a tensor in memory of the device's own, or a number."""
    if not isinstance(value, Tensor):
        return value
    received = new(value.shape, TORCH_DTYPES[value.dtype], value.strides)
    if not is_dense(received):
        raise NotServedError(f"a result of shape {value.shape} has strides {value.strides}, with gaps")
    nbytes = value.numel * value.element_size
    if nbytes:
        backend().stream.native.d2d(received.data_ptr(), value.data_ptr, nbytes)
    return received
