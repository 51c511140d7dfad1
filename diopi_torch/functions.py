"""Call functions of the standard with tensors of the device."""

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
from diopi_torch.layout import TORCH_DTYPES, TensorLayout
from diopi_torch.streams import DeviceStream
from diopi_torch.tensors import allocate_on_current_stream, is_dense
from lib_rt import Context, Tensor

UNSUPPORTED_CODES = frozenset(
    {Error.NoImplement, Error.ForceFallbackToCPU, Error.DtypeNotSupported, Error._5DNotSupported}
)
"""Error codes that mean that the vendor does not support a call, not that the call failed."""


_OUTSIDE = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
"""The dispatch state outside of operators. Vendors that call PyTorch need it: autograd, for example, is enabled."""

_outside = torch._C._ForceDispatchKeyGuard
"""Sets the dispatch state within a `with` statement: `_outside(*_OUTSIDE)`."""

_SUCCESS = Error.Success
"""The code of success; this name is found faster than the attribute of the enumeration."""

_NO_RESULTS: Mapping[str, Any] = {}
"""The results of a call for which the vendor allocates no tensors."""


class UnsupportedCallError(Exception):
    """The vendor does not support a call, and nothing was written; the message states the reason."""


class CallFailedError(RuntimeError):
    """A function of the vendor failed; the message contains the vendor's last error."""


@final
@dataclass(frozen=True, eq=False, slots=True)
class TensorSlot:
    """A placeholder for a tensor in a plan.

    Attributes:
        number: the position of the tensor among the tensors of the call.
        layout: the layout of the tensor.
        memory: the position of the first tensor of the call that uses the same memory.
    """

    number: int
    layout: TensorLayout
    memory: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements along each axis."""
        return self.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance between neighbors along each axis, in elements."""
        return self.layout.strides

    @property
    def dtype(self) -> Dtype:
        """The element type."""
        return self.layout.dtype


@final
@dataclass(frozen=True, eq=False, slots=True)
class PlaceholderValue:
    """A placeholder in a plan for a value that is not a tensor and differs between calls, such as a generator.

    Attributes:
        number: the index of the value among the values of a call.
    """

    number: int


@final
class PlaceholderNumber(float):
    """A placeholder in a plan for a number that differs between calls; its value is the number of the first call.

    Attributes:
        number: the position among the tensors and other values of the call.
    """

    __slots__ = ("number",)
    number: int

    @classmethod
    def at_position(cls, number: int, value: float) -> PlaceholderNumber:
        """Return the placeholder for this position."""
        instance = cls(value)
        instance.number = number
        return instance


@final
class WatchedOperand:
    """A tensor argument as a watch receives it: the tensor, and the layout with which the function is called."""

    __slots__ = ("dtype", "shape", "strides", "tensor")

    def __init__(self, tensor: torch.Tensor, layout: TensorLayout) -> None:
        self.tensor = tensor
        self.shape, self.strides, self.dtype = layout.shape, layout.strides, layout.dtype


PerformCall = Callable[[], Mapping[str, Any]]
"""A function that performs a call and returns the results that the vendor allocated, by name."""

Watch = Callable[[FunctionCall, PerformCall], Mapping[str, Any]]
"""A function that performs a call by calling its `PerformCall`, and can inspect the tensors before and after it."""

watches: dict[int, Watch] = {}
"""The watch of each thread whose calls are watched, by thread number."""


@contextmanager
def watch_calls(watch: Watch) -> Iterator[None]:
    """Return a context manager in which `watch` performs the function calls of this thread.

    If contexts are nested, the inner watch performs the call by calling the outer one.
    """
    thread, outer = get_ident(), watches.get(get_ident())
    watches[thread] = watch if outer is None else lambda call, do: watch(call, lambda: outer(call, do))
    try:
        yield
    finally:
        if outer is None:
            del watches[thread]
        else:
            watches[thread] = outer


@final
class PreparedCall:
    """A call of a function whose tensors are supplied later, so that it can be repeated with other tensors.

    Args:
        call: the call, with slots for tensors.
    """

    __slots__ = ("_boxes", "_call", "_constants", "_has_more", "_lists", "_scalars", "_tensors", "_values", "function")

    def __init__(self, call: FunctionCall) -> None:
        self._call = call
        self.function = call.function
        parameters = lookup(call.function).parameters[1:]
        self._constants = [_argument_value(parameter, call) for parameter in parameters]
        numbered = list(enumerate(self._constants))
        self._tensors = [
            (place, value.number, value.layout) for place, value in numbered if isinstance(value, TensorSlot)
        ]
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
    def new_result_count(self) -> int:
        """The number of results that the vendor allocates."""
        return len(self._boxes)

    def perform(self, values: Sequence[Any], device: Backend, stream: DeviceStream) -> Mapping[str, Any]:
        """Call the function on a stream, through the watch of this thread if there is a watch.

        Raises UnsupportedCallError if the vendor does not support the call, and CallFailedError if it fails.

        Args:
            values: the tensors and other values by their numbers.
            device: the device.
            stream: the stream.

        Returns:
            The results that the vendor allocated, by name.
        """
        watch = watches.get(get_ident())
        if watch is None:
            return self.perform_unwatched(values, device, stream)
        return watch(self._call_for_watch(values), lambda: self.perform_unwatched(values, device, stream))

    def perform_unwatched(self, values: Sequence[Any], device: Backend, stream: DeviceStream) -> Mapping[str, Any]:
        """Call the function like `perform`, but ignore watches; return the results by name."""
        arguments = self._constants.copy()
        stream.insert_tensors(arguments, self._tensors, values)
        if self._has_more:
            self._insert_values(arguments, values, stream.open_tensor)
        context = stream.context
        try:
            if device.vendor.calls_torch:
                code = _call_outside_operator(device.vendor, self.function, context, arguments)
            else:
                code = device.vendor.call(self.function, context, *arguments)
            if code is not _SUCCESS:
                raise make_error(device, self.function, code)
            return self._read_boxes(arguments) if self._boxes else _NO_RESULTS
        finally:
            if context.has_required:
                stream.end_context()

    def _insert_values(
        self, arguments: list[Any], values: Sequence[Any], opened: Callable[[Any, TensorLayout], Tensor]
    ) -> None:
        """Replace the lists, placeholders and boxes in the arguments for the vendor by values of this call.

        Args:
            arguments: the arguments, in which lists, placeholders and boxes are replaced.
            values: the tensors and other values of the call by their numbers.
            opened: returns the standard's tensor for a tensor of PyTorch.
        """
        for place, slots in self._lists:
            arguments[place] = [slot and opened(values[slot.number], slot.layout) for slot in slots]
        for place, number in self._values:
            arguments[place] = Scalar.from_number(values[number]) if place in self._scalars else values[number]
        for place, _ in self._boxes:
            arguments[place] = Box()

    def _read_boxes(self, arguments: Sequence[Any]) -> Mapping[str, Any]:
        """Return the results that the vendor put into boxes, by name."""
        return {name: _copy_result(arguments[place].value) for place, name in self._boxes}

    def _call_for_watch(self, values: Sequence[Any]) -> FunctionCall:
        """Return the call for a watch: with operands in place of slots and values in place of placeholders."""

        def resolve(value: Any) -> Any:
            """Return an argument with slots and placeholders, also in nested lists, replaced."""
            if isinstance(value, TensorSlot):
                return WatchedOperand(values[value.number], value.layout)
            if isinstance(value, PlaceholderValue | PlaceholderNumber):
                return values[value.number]
            return [resolve(entry) for entry in value] if isinstance(value, list) else value

        arguments, results = self._call.arguments, self._call.results
        return FunctionCall(
            self.function,
            {name: resolve(value) for name, value in arguments.items()},
            {name: resolve(value) for name, value in results.items()},
        )


def _call_outside_operator(vendor: BaseVendor, function: str, context: Context, arguments: Sequence[Any]) -> Error:
    """Return the error code of a vendor that uses PyTorch itself, called in the dispatch state outside of operators."""
    with _outside(*_OUTSIDE):
        return vendor.call(function, context, *arguments)


def make_error(device: Backend, function: str, code: Error) -> Exception:
    """Return the exception that PyTorch programs expect for an error code of a function."""
    message = f"{function} returned {code.name}: {device.vendor.last_error()}"
    return (
        UnsupportedCallError(message)
        if code in UNSUPPORTED_CODES
        else CallFailedError(f"{device.vendor.name}: {message}")
    )


def _argument_value(parameter: Parameter, call: FunctionCall) -> Any:
    """Return the value to pass for a parameter of the function; slots are returned unchanged."""
    if parameter.role is Role.count:
        return _list_length(call)
    if issubclass(parameter.annotation, kinds.NewOut) or parameter.annotation in (kinds.OutBool, kinds.OutI64):
        return Box()
    value = call.results[parameter.name] if parameter.name in call.results else call.arguments.get(parameter.name)
    if value is None or isinstance(value, TensorSlot | PlaceholderValue | PlaceholderNumber | list):
        return value
    if issubclass(parameter.annotation, kinds.Scalar):
        return Scalar.from_number(value)
    if issubclass(parameter.annotation, Reduction | RoundMode):
        return parameter.annotation[value]
    return value


def _list_length(call: FunctionCall) -> int:
    """Return the number of entries of a tensor list; all lists of a call are equally long."""
    return next(len(value) for value in (*call.arguments.values(), *call.results.values()) if isinstance(value, list))


def _copy_result(value: Any) -> Any:
    """Return a result that the vendor allocated: a copy of a tensor in memory of the device, or a number.

    Raises:
        UnsupportedCallError: the tensor has gaps between its elements.
    """
    if not isinstance(value, Tensor):
        return value
    received = allocate_on_current_stream(value.shape, TORCH_DTYPES[value.dtype], value.strides)
    if not is_dense(received):
        raise UnsupportedCallError(f"a result of shape {value.shape} has strides {value.strides}, with gaps")
    nbytes = value.numel * value.element_size
    if nbytes:
        backend().stream.native.d2d(received.data_ptr(), value.data_ptr, nbytes)
    return received
