"""Plans: the steps of an operator's calls, determined once for all calls of the same form.

The form consists of everything that the mapping to functions depends on: element types, shapes and strides of tensors,
which of them share memory if the operator writes some, and the values of other arguments. Floating-point numbers in
lists are excluded, because optimizers change them in each step. In a plan, slots represent tensors. A plan for which a
number was read from memory serves only one call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, MutableSequence, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import torch

from diopi_proto.aten.mapping import AtenOperator, FunctionCall, NotMappedError, function_calls
from diopi_proto.aten.table import Row
from diopi_proto.types import Dtype, Number
from diopi_torch.backend import Backend, backend
from diopi_torch.functions import NotServedError, PlaceholderNumber, PlaceholderValue, PreparedCall, Slot, watches
from diopi_torch.layout import TORCH_DTYPES, TensorLayout, contiguous_strides, layout_of
from diopi_torch.streams import DeviceStream
from diopi_torch.tensors import allocate, allocate_now, is_on_device, upload
from lib_rt import Generator

MAX_CACHED_PLANS = 4096
"""Maximum number of plans that a device caches; it should cover a training loop."""

Values = MutableSequence[Any]
"""The tensors and generators of a call: arguments, results, and those created for functions."""

_STANDS, _LISTS = (Slot, PlaceholderValue), (list, tuple)

_Tensor = torch.Tensor

Make = Callable[[Values], Any]
"""A function that creates the next value from those before it."""


def describe_form(values: Iterable[Any], found: list[Any], of_list: bool = False) -> list[Hashable]:
    """Return the form of a call with these arguments.

    The values 1, 1.0 and True differ, and so do 0.0 and -0.0. The entries for a tensor are not wrapped in a tuple for
    speed.

    Args:
        values: the arguments.
        found: a list to which the tensors, generators and other values outside of the form are appended.
        of_list: whether the values are entries of a list; then floating-point numbers are appended to `found`.

    Returns:
        Hashable entries that are equal for calls of the same form.
    """
    forms: list[Hashable] = []
    for value in values:
        if isinstance(value, _Tensor):
            found.append(value)
            forms += value.dtype, value.shape, value.stride(), value.is_cpu
        elif of_list and isinstance(value, float):
            found.append(value)
            forms.append(float)
        else:
            forms.append(_non_tensor_form(value, found))
    return forms


def _non_tensor_form(value: Any, found: list[Any]) -> Hashable:
    """Return the form of a value that is not a tensor."""
    if isinstance(value, _LISTS):
        return type(value), *describe_form(value, found, of_list=True)
    if isinstance(value, torch.Generator):
        found.append(value)
        return torch.Generator
    return type(value), repr(value) if isinstance(value, float) else value


def find_shared_memory(values: Sequence[Any]) -> tuple[int, ...]:
    """Return, for each tensor, the number of the first one in the same memory; for other values their own number."""
    first: dict[int, int] = {}
    return tuple(
        [
            first.setdefault(value.untyped_storage().data_ptr(), number) if isinstance(value, torch.Tensor) else number
            for number, value in enumerate(values)
        ]
    )


@final
@dataclass(frozen=True, slots=True)
class _Step:
    """A function's call in a plan.

    Attributes:
        call: the call.
        separate_results: results in the memory of an argument, which the function might read after writing, with the
            numbers of the tensors that replace them in the call.
        writes: whether an argument of the operator has been written after the step.
    """

    call: PreparedCall
    separate_results: Sequence[tuple[Slot, int]]
    writes: bool

    def run(self, values: Values, device: Backend, stream: DeviceStream) -> Iterable[Any]:
        """Perform the call and return the results that the vendor allocated."""
        for result, number in self.separate_results:
            values[number] = allocate_now(result.shape, result.layout.torch_dtype)
        found = self.call.perform(values, device, stream)
        for result, number in self.separate_results:
            values[result.number].copy_(values[number])
            values[number] = None  # the next step may have its memory
        return found.values()


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of calls of one form.

    Attributes:
        operator: the name of the operator.
        uploads: the numbers of the arguments that must be copied to the device.
        results: the layouts of the results; their numbers follow those of the arguments.
        makes: functions that create further values before the calls, in the order of their numbers, which follow.
        steps: the calls.
        room: the number of values for separate results, which follow; the values that the vendor allocates come last.
        returned: the value that the operator returns.
        fallback: the plan to use if the vendor does not support this one.
    """

    operator: str
    uploads: Sequence[int]
    results: Sequence[TensorLayout]
    makes: Sequence[Make]
    steps: Sequence[_Step]
    room: int
    returned: Any
    fallback: Plan | None = None

    def run(self, tensors: Sequence[Any], device: Backend) -> Any:
        """Run the plan and return the result of the operator.

        Args:
            tensors: the tensors, generators and numbers of the call.
            device: the device.

        Returns:
            The value that the operator returns.

        Raises:
            NotServedError: if the vendor does not support a call and nothing was written.
            RuntimeError: if the vendor does not support a call after arguments were written.
        """
        values, stream, written = [*tensors], device.streams.current, False
        for number in self.uploads:
            values[number] = upload(values[number])
        for layout in self.results:
            values.append(allocate(layout, device, stream.stream_id))
        for make in self.makes:
            values.append(make(values))
        if self.room:
            values += [None] * self.room
        try:
            for step in self.steps:
                if step.separate_results:
                    values.extend(step.run(values, device, stream))
                else:
                    perform = step.call.perform if watches else step.call.perform_unwatched
                    if received := perform(values, device, stream):
                        values.extend(received.values())
                written |= step.writes
        except NotServedError as error:
            if written:
                raise RuntimeError(f"{self.operator} was served in part: {error}") from error
            if self.fallback is None:
                raise
            return self.fallback.run(tensors, device)
        returned = self.returned
        return values[returned.number] if type(returned) is Slot else _fill_placeholders(returned, values)


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """Takes the place of a plan if there is none; the message states the reason."""

    message: str

    def run(self, tensors: Sequence[Any], device: Backend) -> Any:
        """Raise NotServedError."""
        raise NotServedError(self.message)


def cache_plan(form: Hashable, plan: Plan | Refusal) -> None:
    """Use a plan for all calls of a form."""
    plans = backend().plans
    if len(plans) >= MAX_CACHED_PLANS:
        plans.clear()
    plans[form] = plan


def _fill_placeholders(value: Any, values: Sequence[Any]) -> Any:
    """Return the operator's result with placeholders for tensors and numbers replaced."""
    if isinstance(value, _STANDS):
        return values[value.number]
    return (
        type(value)([_fill_placeholders(entry, values) for entry in value])
        if isinstance(value, list | tuple)
        else value
    )


@final
class Planning:
    """The search for a plan; it is the tensor factory of the mapping and records the values that a call must create.

    Args:
        tensors: the tensors and generators of a call, in the order of `describe_form`.
        memory: the result of `find_shared_memory`.

    Attributes:
        is_reusable: whether the plan is valid for other calls of the form.
    """

    def __init__(self, tensors: Sequence[Any], memory: Sequence[int]) -> None:
        self._tensors = tensors
        self._memory = memory
        self._found = 0
        self._uploads: list[int] = []
        self._results: list[TensorLayout] = []
        self._makes: list[Make] = []
        self._dtype: torch.dtype | None = None
        self.is_reusable = True

    def slots(self, value: Any) -> Any:
        """Return an argument with slots in place of tensors; must be called in the order of `describe_form`.

        Args:
            value: the argument. A CPU tensor with a single number is copied to the device, as in PyTorch.

        Returns:
            The argument with slots and placeholders.

        Raises:
            RuntimeError: if another tensor is not on the device.
        """
        if isinstance(value, list | tuple):
            return [self._number_of(entry) if isinstance(entry, float) else self.slots(entry) for entry in value]
        if not isinstance(value, torch.Tensor | torch.Generator):
            return value
        number = self._next()
        if isinstance(value, torch.Generator):
            return PlaceholderValue(number)
        layout = layout_of(tuple(value.shape), value.stride(), value.dtype)
        if is_on_device(value):
            return Slot(number, layout, self._memory[number])
        if value.device.type == "cpu" and value.dim() == 0:
            self._uploads.append(number)
            return Slot(number, layout, number)
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found one of shape "
            f"{list(value.shape)} on {value.device}"
        )

    def check_written(self, slots: Sequence[Any]) -> None:
        """Raise RuntimeError unless all of these tensors, which the operator writes, are on the device."""
        if any(isinstance(slot, Slot) and slot.number in self._uploads for slot in slots):
            raise RuntimeError("Expected all tensors to be on the same device, but what is written is on the CPU")

    def _number_of(self, value: float) -> PlaceholderNumber:
        return PlaceholderNumber.at_position(self._next(), value)

    def _next(self) -> int:
        """Return the number of the next argument value."""
        self._found += 1
        return self._found - 1

    def result(self, layout: TensorLayout) -> Slot:
        """Add a tensor that the operator returns; must be called before other values are created.

        Args:
            layout: the layout of the tensor.

        Returns:
            The slot of the tensor.

        Raises:
            NotServedError: if the standard does not have the element type.
        """
        if layout.dtype is Dtype.unsupported:
            raise NotServedError(f"{layout.torch_dtype} is no element type of the standard")
        assert not self._makes, "results come first"
        self._results.append(layout)
        return Slot(self._number - 1, layout, self._number - 1)

    @property
    def _number(self) -> int:
        """The number of the next tensor."""
        return len(self._tensors) + len(self._results) + len(self._makes)

    def make_slot(self, layout: TensorLayout, make: Make, memory: int | None = None) -> Slot:
        """Return the slot of a tensor that each call creates with `make`."""
        number = self._note(make)
        return Slot(number, layout, number if memory is None else memory)

    def _note(self, make: Make) -> int:
        self._makes.append(make)
        return self._number - 1

    def plan(self, operator: AtenOperator, row: Row, results: Sequence[Any], returned: Returned) -> Plan:
        """Return the plan of an operator.

        Args:
            operator: the operator with slots in its arguments.
            row: its line in the table.
            results: the slots of its results.
            returned: a function from placeholders of results that the vendor allocates to the operator's result.

        Returns:
            The plan.

        Raises:
            NotServedError: if the standard or the vendor does not support the call.
        """
        self._dtype = next((slot.layout.torch_dtype for slot in results if isinstance(slot, Slot)), None)
        try:
            calls = function_calls(operator, row, results)
        except NotMappedError as error:
            raise NotServedError(str(error)) from None
        vendor = backend().vendor
        for call in calls:
            if not vendor.has(call.function):
                raise NotServedError(f"{vendor.name} has no {call.function}")
        first = self._number
        steps: list[_Step] = []
        for call in calls:
            steps.append(_step(call, first + sum(len(step.separate_results) for step in steps), operator.inplace))
        room = sum(len(step.separate_results) for step in steps)
        received = [PlaceholderValue(first + room + n) for n in range(sum(step.call.makes for step in steps))]
        return Plan(operator.name, self._uploads, self._results, self._makes, steps, room, returned(received))

    # what the mapping asks for

    def tensor_from_numbers(self, value: Number | list[int]) -> Slot:
        """Return the slot of a tensor with these numbers."""
        tensor = torch.tensor(value, dtype=torch.int64 if isinstance(value, list) else self._dtype)
        layout = layout_of(tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if isinstance(value, PlaceholderNumber):
            return self.make_slot(
                layout, lambda values: upload(torch.tensor(values[value.number], dtype=layout.torch_dtype))
            )
        return self.make_slot(layout, lambda values: upload(tensor))

    def read_number(self, tensor: Slot) -> Number | None:
        """Return the value of a tensor with one element, which makes the plan specific to the call; otherwise None."""
        if tensor.shape or tensor.layout.torch_dtype.is_complex:
            return None
        self.is_reusable = False
        return self._tensors[tensor.number].item()

    def restride(self, tensor: Slot, shape: tuple[int, ...], strides: tuple[int, ...]) -> Slot:
        """Return the slot of a view with another shape and other strides."""
        layout = layout_of(shape, strides, tensor.layout.torch_dtype)
        return self.make_slot(layout, lambda values: values[tensor.number].as_strided(shape, strides), tensor.memory)

    def empty_like(self, tensor: Slot, dtype: Dtype) -> Slot:
        """Return the slot of a new contiguous tensor with the same shape and another element type."""
        kind = TORCH_DTYPES[dtype]
        layout = layout_of(tensor.shape, contiguous_strides(tensor.shape), kind)
        return self.make_slot(layout, lambda values: allocate_now(tensor.shape, kind))

    def generator(self, argument: PlaceholderValue | None) -> PlaceholderValue:
        """Return the placeholder of the device's generator, or of one seeded from the operator's generator."""
        if argument is None:
            return PlaceholderValue(self._note(lambda values: backend().generator))
        return PlaceholderValue(self._note(lambda values: _seeded_generator(values[argument.number])))


Returned = Callable[[Sequence[PlaceholderValue]], Any]
"""A function from the placeholders of results that the vendor allocates to the operator's result."""


def _seeded_generator(generator: torch.Generator) -> Generator:
    return Generator(backend().device, int(torch.randint(2**63 - 1, (), generator=generator)))


def _step(call: FunctionCall, number: int, inplace: bool) -> _Step:
    """Return the step for a call; results in its arguments' memory get separate tensors, numbered from `number`."""
    read = {slot.memory for value in call.arguments.values() for slot in _as_sequence(value) if isinstance(slot, Slot)}
    clash = {name: slot for name, slot in call.results.items() if isinstance(slot, Slot) and slot.memory in read}
    replaced, apart = dict(call.results), []
    for place, (name, slot) in enumerate(clash.items(), number):
        layout = layout_of(slot.shape, contiguous_strides(slot.shape), slot.layout.torch_dtype)
        replaced[name] = Slot(place, layout, place)
        apart.append((slot, place))
    return _Step(PreparedCall(replace(call, results=replaced)), apart, inplace or bool(apart))


def _as_sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]
