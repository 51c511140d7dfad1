"""Plans: the steps of an operator's calls, determined once for all calls of the same form.

`diopi_torch.forms` describes the form of a call. In a plan, slots represent tensors. If a number was read from memory
to build a plan, the plan is valid for one call only.
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
from diopi_torch.functions import (
    PlaceholderNumber,
    PlaceholderValue,
    PreparedCall,
    TensorSlot,
    UnsupportedCallError,
    watches,
)
from diopi_torch.layout import TORCH_DTYPES, TensorLayout, contiguous_strides, layout_of
from diopi_torch.streams import DeviceStream
from diopi_torch.tensors import allocate, allocate_on_current_stream, is_on_device, upload
from lib_rt import Generator

MAX_CACHED_PLANS = 4096
"""Maximum number of plans that a device caches, more than a training loop needs. A full cache is emptied."""

Values = MutableSequence[Any]
"""The tensors and generators of a call: arguments, results, and those created for functions."""

_PLACEHOLDERS = (TensorSlot, PlaceholderValue)
"""The objects that represent values of a call in a plan."""

ValueFactory = Callable[[Values], Any]
"""A function that creates the next value from those before it."""


@final
@dataclass(frozen=True, slots=True)
class _PlanStep:
    """A function's call in a plan.

    Attributes:
        call: the call.
        separate_results: the results that share memory with an argument of the call, each with the number of a new
            tensor that the call writes instead. Otherwise the function might read elements that it has overwritten.
        writes_argument: whether the step changes an argument of the operator.
    """

    call: PreparedCall
    separate_results: Sequence[tuple[TensorSlot, int]]
    writes_argument: bool

    def run(self, values: Values, device: Backend, stream: DeviceStream) -> Iterable[Any]:
        """Perform the call and return the results that the vendor allocated."""
        for result, number in self.separate_results:
            values[number] = allocate_on_current_stream(result.shape, result.layout.torch_dtype)
        received = self.call.perform(values, device, stream)
        for result, number in self.separate_results:
            values[result.number].copy_(values[number])
            values[number] = None  # frees the memory for the next step
        return received.values()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps of all calls of an operator that have the same form.

    The values of a call are numbered in this order: the arguments, the results, the values from `factories`, the
    separate results, and the results that the vendor allocates.

    Attributes:
        operator: the name of the operator.
        uploads: the numbers of the arguments that must be copied to the device.
        results: the layouts of the results.
        factories: functions that create further values before the first step.
        steps: the calls.
        separate_result_count: the number of separate results of all steps.
        returned: the value that the operator returns, with placeholders.
        fallback: the plan to use if the vendor does not support this one.
    """

    operator: str
    uploads: Sequence[int]
    results: Sequence[TensorLayout]
    factories: Sequence[ValueFactory]
    steps: Sequence[_PlanStep]
    separate_result_count: int
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
            UnsupportedCallError: if the vendor does not support a call and nothing was written.
            RuntimeError: if the vendor does not support a call after arguments were written.
        """
        values, stream, written = [*tensors], device.streams.current, False
        for number in self.uploads:
            values[number] = upload(values[number])
        for layout in self.results:
            values.append(allocate(layout, device, stream.stream_id))
        for make in self.factories:
            values.append(make(values))
        if self.separate_result_count:
            values += [None] * self.separate_result_count
        try:
            for step in self.steps:
                if step.separate_results:
                    values.extend(step.run(values, device, stream))
                else:
                    perform = step.call.perform if watches else step.call.perform_unwatched
                    if received := perform(values, device, stream):
                        values.extend(received.values())
                written |= step.writes_argument
        except UnsupportedCallError as error:
            if written:
                raise RuntimeError(f"{self.operator} failed after it had written an argument: {error}") from error
            if self.fallback is None:
                raise
            return self.fallback.run(tensors, device)
        returned = self.returned
        return values[returned.number] if type(returned) is TensorSlot else _fill_placeholders(returned, values)


@final
@dataclass(frozen=True, slots=True)
class UnsupportedForm:
    """An entry in place of a plan if the vendor does not support calls of a form; the message states the reason."""

    message: str

    def run(self, tensors: Sequence[Any], device: Backend) -> Any:
        """Raise UnsupportedCallError with the reason why no plan exists."""
        raise UnsupportedCallError(self.message)


def cache_plan(form: Hashable, plan: Plan | UnsupportedForm) -> None:
    """Cache the plan for all calls of a form; drop all other plans first if there are MAX_CACHED_PLANS."""
    plans = backend().plans
    if len(plans) >= MAX_CACHED_PLANS:
        plans.clear()
    plans[form] = plan


def _fill_placeholders(value: Any, values: Sequence[Any]) -> Any:
    """Return the operator's result with placeholders for tensors and numbers replaced."""
    if isinstance(value, _PLACEHOLDERS):
        return values[value.number]
    return (
        type(value)([_fill_placeholders(entry, values) for entry in value])
        if isinstance(value, list | tuple)
        else value
    )


@final
class PlanBuilder:
    """Builds the plan for an operator's call.

    It implements the `TensorFactory` of `diopi_proto.aten.mapping`: it returns slots instead of tensors, and records
    how each call creates the tensors.

    Args:
        tensors: the tensors and generators of a call, in the order of `describe_form`.
        memory: the result of `find_shared_memory`.

    Attributes:
        is_reusable: whether the plan is valid for other calls of the form.
    """

    def __init__(self, tensors: Sequence[Any], memory: Sequence[int]) -> None:
        self._tensors = tensors
        self._memory = memory
        self._argument_count = 0
        self._uploads: list[int] = []
        self._results: list[TensorLayout] = []
        self._factories: list[ValueFactory] = []
        self._dtype: torch.dtype | None = None
        self.is_reusable = True

    def replace_by_slots(self, value: Any) -> Any:
        """Return an argument with slots in place of tensors; must be called in the order of `describe_form`.

        Args:
            value: the argument. A CPU tensor without axes will be copied to the device, as in PyTorch.

        Returns:
            The argument with slots and placeholders.

        Raises:
            RuntimeError: if a tensor with axes is not on the device.
        """
        if isinstance(value, list | tuple):
            return [
                self._placeholder_number(entry) if isinstance(entry, float) else self.replace_by_slots(entry)
                for entry in value
            ]
        if not isinstance(value, torch.Tensor | torch.Generator):
            return value
        number = self._next_argument()
        if isinstance(value, torch.Generator):
            return PlaceholderValue(number)
        layout = layout_of(tuple(value.shape), value.stride(), value.dtype)
        if is_on_device(value):
            return TensorSlot(number, layout, self._memory[number])
        if value.device.type == "cpu" and value.dim() == 0:
            self._uploads.append(number)
            return TensorSlot(number, layout, number)
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found one of shape "
            f"{list(value.shape)} on {value.device}"
        )

    def check_written(self, slots: Sequence[Any]) -> None:
        """Raise RuntimeError unless all of these tensors, which the operator writes, are on the device."""
        if any(isinstance(slot, TensorSlot) and slot.number in self._uploads for slot in slots):
            raise RuntimeError("Expected all tensors to be on the same device, but an output is on the CPU")

    def _placeholder_number(self, value: float) -> PlaceholderNumber:
        """Return the placeholder of a number that differs between calls."""
        return PlaceholderNumber.at_position(self._next_argument(), value)

    def _next_argument(self) -> int:
        """Return the number of the next argument value."""
        self._argument_count += 1
        return self._argument_count - 1

    def add_result(self, layout: TensorLayout) -> TensorSlot:
        """Add a tensor that the operator returns; must be called before other values are created.

        Args:
            layout: the layout of the tensor.

        Returns:
            The slot of the tensor.

        Raises:
            UnsupportedCallError: if the standard does not have the element type.
        """
        if layout.dtype is Dtype.unsupported:
            raise UnsupportedCallError(f"{layout.torch_dtype} is not an element type of the standard")
        assert not self._factories, "results come first"
        self._results.append(layout)
        return TensorSlot(self._next_number - 1, layout, self._next_number - 1)

    @property
    def _next_number(self) -> int:
        """The number of the next value."""
        return len(self._tensors) + len(self._results) + len(self._factories)

    def make_slot(self, layout: TensorLayout, make: ValueFactory, memory: int | None = None) -> TensorSlot:
        """Return the slot of a tensor that each call creates with `make`.

        Args:
            layout: the layout of the tensor.
            make: a function that creates the tensor from the values before it.
            memory: the position of the first value that uses the same memory; None for new memory.
        """
        number = self._add_factory(make)
        return TensorSlot(number, layout, number if memory is None else memory)

    def _add_factory(self, make: ValueFactory) -> int:
        """Record a value that each call creates with `make`; return its number."""
        self._factories.append(make)
        return self._next_number - 1

    def build(self, operator: AtenOperator, row: Row, results: Sequence[Any], returned: Returned) -> Plan:
        """Return the plan that calls the functions for an operator.

        Args:
            operator: the operator with slots in its arguments.
            row: the line that describes the operator in the table of operators.
            results: the slots of its results.
            returned: returns the operator's result. Its argument contains a placeholder for each result that the vendor
                allocates.

        Returns:
            The plan.

        Raises:
            UnsupportedCallError: if the standard or the vendor does not support the call.
        """
        self._dtype = next((slot.layout.torch_dtype for slot in results if isinstance(slot, TensorSlot)), None)
        calls = _supported_calls(operator, row, results)
        first_separate = self._next_number
        steps: list[_PlanStep] = []
        for call in calls:
            number = first_separate + sum(len(step.separate_results) for step in steps)
            steps.append(_make_step(call, number, operator.inplace))
        separate = sum(len(step.separate_results) for step in steps)
        first_new, new_results = first_separate + separate, sum(step.call.new_result_count for step in steps)
        placeholders = [PlaceholderValue(first_new + n) for n in range(new_results)]
        return Plan(
            operator=operator.name,
            uploads=self._uploads,
            results=self._results,
            factories=self._factories,
            steps=steps,
            separate_result_count=separate,
            returned=returned(placeholders),
        )

    # The methods of `TensorFactory`.

    def tensor_from_numbers(self, value: Number | list[int]) -> TensorSlot:
        """Return the slot of a tensor with these numbers: int64 for a list, else the type of the first result."""
        tensor = torch.tensor(value, dtype=torch.int64 if isinstance(value, list) else self._dtype)
        layout = layout_of(tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if isinstance(value, PlaceholderNumber):
            return self.make_slot(
                layout, lambda values: upload(torch.tensor(values[value.number], dtype=layout.torch_dtype))
            )
        return self.make_slot(layout, lambda values: upload(tensor))

    def read_number(self, tensor: TensorSlot) -> Number | None:
        """Return the number in a tensor without axes; None if the tensor has axes or is complex.

        A plan that depends on such a number is valid only for this call.
        """
        if tensor.shape or tensor.layout.torch_dtype.is_complex:
            return None
        self.is_reusable = False
        return self._tensors[tensor.number].item()

    def restride(self, tensor: TensorSlot, shape: tuple[int, ...], strides: tuple[int, ...]) -> TensorSlot:
        """Return the slot of a view with another shape and other strides."""
        layout = layout_of(shape, strides, tensor.layout.torch_dtype)
        return self.make_slot(layout, lambda values: values[tensor.number].as_strided(shape, strides), tensor.memory)

    def empty_like(self, tensor: TensorSlot, dtype: Dtype) -> TensorSlot:
        """Return the slot of a new contiguous tensor with the same shape and another element type."""
        kind = TORCH_DTYPES[dtype]
        layout = layout_of(tensor.shape, contiguous_strides(tensor.shape), kind)
        return self.make_slot(layout, lambda values: allocate_on_current_stream(tensor.shape, kind))

    def generator(self, argument: PlaceholderValue | None) -> PlaceholderValue:
        """Return the placeholder of the device's generator, or of one seeded from the operator's generator."""
        if argument is None:
            return PlaceholderValue(self._add_factory(lambda values: backend().generator))
        return PlaceholderValue(self._add_factory(lambda values: _seeded_generator(values[argument.number])))


Returned = Callable[[Sequence[PlaceholderValue]], Any]
"""Returns the operator's result; the argument contains a placeholder for each result that the vendor allocates."""


def _seeded_generator(generator: torch.Generator) -> Generator:
    """Return a generator of the device, seeded with a number drawn from PyTorch's generator."""
    return Generator(backend().device, int(torch.randint(2**63 - 1, (), generator=generator)))


def _supported_calls(operator: AtenOperator, row: Row, results: Sequence[Any]) -> Sequence[FunctionCall]:
    """Return the calls for an operator; raise UnsupportedCallError if the standard or the vendor lacks a function."""
    try:
        calls = function_calls(operator, row, results)
    except NotMappedError as error:
        raise UnsupportedCallError(str(error)) from None
    vendor = backend().vendor
    for call in calls:
        if not vendor.has(call.function):
            raise UnsupportedCallError(f"{vendor.name} has no {call.function}")
    return calls


def _make_step(call: FunctionCall, number: int, inplace: bool) -> _PlanStep:
    """Return the step for a call.

    Args:
        call: the call.
        number: the number of the first separate result.
        inplace: whether the operator writes its first argument.

    Returns:
        The step. A result that shares memory with an argument is a separate result.
    """
    read = {
        slot.memory for value in call.arguments.values() for slot in _as_sequence(value) if isinstance(slot, TensorSlot)
    }
    clash = {name: slot for name, slot in call.results.items() if isinstance(slot, TensorSlot) and slot.memory in read}
    replaced, separate_results = dict(call.results), []
    for place, (name, slot) in enumerate(clash.items(), number):
        layout = layout_of(slot.shape, contiguous_strides(slot.shape), slot.layout.torch_dtype)
        replaced[name] = TensorSlot(place, layout, place)
        separate_results.append((slot, place))
    return _PlanStep(PreparedCall(replace(call, results=replaced)), separate_results, inplace or bool(separate_results))


def _as_sequence(value: Any) -> Sequence[Any]:
    """Return a list or tuple unchanged, and any other value as a list with one element."""
    return value if isinstance(value, list | tuple) else [value]
