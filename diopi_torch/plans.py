"""Plans: how calls of an operator are done, found once for all that have one form.

The form is all that the mapping to functions looks at: element types, shapes and strides of tensors, which of them
share memory if the operator writes some, and the values of all else, but of floating point numbers in lists: an
optimizer has others of these in each step. In a plan slots stand for tensors. Where a number was read from memory it
serves one call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, MutableSequence, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import torch

from diopi_proto.aten.mapping import FunctionCall, NotMappedError, Operator, function_calls
from diopi_proto.aten.table import Row
from diopi_proto.types import Dtype, Number
from diopi_torch.backend import Backend, backend
from diopi_torch.functions import NotServedError, PlaceholderNumber, PlaceholderValue, PreparedCall, Slot, watches
from diopi_torch.layout import TORCH_DTYPES, Layout, contiguous_strides, layout_of
from diopi_torch.streams import Stream
from diopi_torch.tensors import allocate, is_ours, new, upload
from lib_rt import Generator

MAX_CACHED_PLANS = 4096
"""Plans that a device keeps, so that a training loop finds its own."""

Values = MutableSequence[Any]
"""The tensors of a call, and the generators: those of its arguments, those returned, and those made for functions."""

_STANDS, _LISTS = (Slot, PlaceholderValue), (list, tuple)

_Tensor = torch.Tensor

Make = Callable[[Values], Any]
"""Makes another of them."""


def forms_of(values: Iterable[Any], found: list[Any], of_list: bool = False) -> list[Hashable]:
    """All that decides how a call with these arguments is done; what else is in them is added to `found`.

    1, 1.0 and True, 0.0 and -0.0 are different. Of a tensor these are several, without a tuple around them, as most
    arguments are tensors.

    Args:
        of_list: whether these are the entries of a list, of which numbers are in `found`, too.
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
            forms.append(_form_of_other(value, found))
    return forms


def _form_of_other(value: Any, found: list[Any]) -> Hashable:
    """Of what is no tensor."""
    if isinstance(value, _LISTS):
        return type(value), *forms_of(value, found, of_list=True)
    if isinstance(value, torch.Generator):
        found.append(value)
        return torch.Generator
    return type(value), repr(value) if isinstance(value, float) else value


def shared(values: Sequence[Any]) -> tuple[int, ...]:
    """Of each of these tensors the number of the first in the same memory; of what is none its own."""
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
    """A function's call, and what goes with it.

    Attributes:
        call: the call.
        apart: results that are in the memory of an argument, which a function may read after it wrote; with the
            numbers of those in their place in the call.
        writes: whether an argument of the operator was written when it is done.
    """

    call: PreparedCall
    apart: Sequence[tuple[Slot, int]]
    writes: bool

    def done_apart(self, values: Values, device: Backend, stream: Stream) -> Iterable[Any]:
        """Do it; what the vendor made."""
        for result, number in self.apart:
            values[number] = new(result.shape, result.layout.torch_dtype)
        found = self.call.perform(values, device, stream)
        for result, number in self.apart:
            values[result.number].copy_(values[number])
            values[number] = None  # the next step may have its memory
        return found.values()


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """How calls of one form are done.

    Attributes:
        operator: the operator's name.
        uploads: the numbers of given tensors that have to be copied to the device.
        results: what is returned; the numbers follow those of the given.
        makes: what else is made before functions are called, in the order of its numbers, which follow these.
        steps: the calls.
        room: how many values follow these; then there are those that the vendor makes.
        returned: what the operator returns.
        instead: what is done if the vendor does not do this.
    """

    operator: str
    uploads: Sequence[int]
    results: Sequence[Layout]
    makes: Sequence[Make]
    steps: Sequence[_Step]
    room: int
    returned: Any
    instead: Plan | None = None

    def run(self, tensors: Sequence[Any], device: Backend) -> Any:
        """Do it with these tensors and generators; what the operator returns.

        NotServedError if the vendor does not do it, and nothing was written.
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
                if step.apart:
                    values.extend(step.done_apart(values, device, stream))
                else:
                    perform = step.call.perform if watches else step.call.perform_unwatched
                    if received := perform(values, device, stream):
                        values.extend(received.values())
                written |= step.writes
        except NotServedError as error:
            if written:
                raise RuntimeError(f"{self.operator} was served in part: {error}") from error
            if self.instead is None:
                raise
            return self.instead.run(tensors, device)
        returned = self.returned
        return values[returned.number] if type(returned) is Slot else _filled(returned, values)


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """Stands for a plan where none can be made; the message says why."""

    message: str

    def run(self, tensors: Sequence[Any], device: Backend) -> Any:
        """NotServedError."""
        raise NotServedError(self.message)


def cache_plan(form: Hashable, plan: Plan | Refusal) -> None:
    """Use a plan for all calls of a form."""
    plans = backend().plans
    if len(plans) >= MAX_CACHED_PLANS:
        plans.clear()
    plans[form] = plan


def _filled(value: Any, values: Sequence[Any]) -> Any:
    """What is returned, with what stands for tensors and numbers replaced."""
    if isinstance(value, _STANDS):
        return values[value.number]
    return type(value)([_filled(entry, values) for entry in value]) if isinstance(value, list | tuple) else value


@final
class Planning:
    """Finds a plan: the maker of the mapping to functions, who notes what has to be made.

    Args:
        given: the tensors and generators of a call, in the order in which `forms_of` finds them.
        memory: as `shared` has it.

    Attributes:
        lasts: whether the plan serves other calls of the form, too.
    """

    def __init__(self, tensors: Sequence[Any], memory: Sequence[int]) -> None:
        self._tensors = tensors
        self._memory = memory
        self._found = 0
        self._uploads: list[int] = []
        self._results: list[Layout] = []
        self._makes: list[Make] = []
        self._dtype: torch.dtype | None = None
        self.lasts = True

    def slots(self, value: Any) -> Any:
        """An argument with slots for what is in it; to be called in the order of `forms_of`.

        A tensor of the CPU with a single number is copied to the device, as PyTorch does; RuntimeError for any other
        that is not on the device.
        """
        if isinstance(value, list | tuple):
            return [self._number_of(entry) if isinstance(entry, float) else self.slots(entry) for entry in value]
        if not isinstance(value, torch.Tensor | torch.Generator):
            return value
        number = self._next()
        if isinstance(value, torch.Generator):
            return PlaceholderValue(number)
        layout = layout_of(tuple(value.shape), value.stride(), value.dtype)
        if is_ours(value):
            return Slot(number, layout, self._memory[number])
        if value.device.type == "cpu" and value.dim() == 0:
            self._uploads.append(number)
            return Slot(number, layout, number)
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found one of shape "
            f"{list(value.shape)} on {value.device}"
        )

    def check_written(self, slots: Sequence[Any]) -> None:
        """RuntimeError unless all of these tensors, which are written, are on the device."""
        if any(isinstance(slot, Slot) and slot.number in self._uploads for slot in slots):
            raise RuntimeError("Expected all tensors to be on the same device, but what is written is on the CPU")

    def _number_of(self, value: float) -> PlaceholderNumber:
        return PlaceholderNumber.at_position(self._next(), value)

    def _next(self) -> int:
        """The number of the next of the given."""
        self._found += 1
        return self._found - 1

    def result(self, layout: Layout) -> Slot:
        """A tensor that is returned; NotServedError if the standard does not have its element type.

        All of these are asked for before anything is made.
        """
        if layout.dtype is Dtype.unsupported:
            raise NotServedError(f"{layout.torch_dtype} is no element type of the standard")
        assert not self._makes, "results come first"
        self._results.append(layout)
        return Slot(self._number - 1, layout, self._number - 1)

    @property
    def _number(self) -> int:
        """Of the next tensor."""
        return len(self._tensors) + len(self._results) + len(self._makes)

    def make_slot(self, layout: Layout, make: Make, memory: int | None = None) -> Slot:
        """A tensor that is made for each call."""
        number = self._noted(make)
        return Slot(number, layout, number if memory is None else memory)

    def _noted(self, make: Make) -> int:
        self._makes.append(make)
        return self._number - 1

    def plan(self, operator: Operator, row: Row, results: Sequence[Any], returned: Returned) -> Plan:
        """The plan of an operator whose results are written to these tensors.

        NotServedError if the standard or the vendor lacks something for it.
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
            steps.append(_step(call, first + sum(len(step.apart) for step in steps), operator.inplace))
        room = sum(len(step.apart) for step in steps)
        received = [PlaceholderValue(first + room + n) for n in range(sum(step.call.makes for step in steps))]
        return Plan(operator.name, self._uploads, self._results, self._makes, steps, room, returned(received))

    # what the mapping asks for

    def tensor_from_numbers(self, value: Number | list[int]) -> Slot:
        tensor = torch.tensor(value, dtype=torch.int64 if isinstance(value, list) else self._dtype)
        layout = layout_of(tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if isinstance(value, PlaceholderNumber):
            return self.make_slot(
                layout, lambda values: upload(torch.tensor(values[value.number], dtype=layout.torch_dtype))
            )
        return self.make_slot(layout, lambda values: upload(tensor))

    def read_number(self, tensor: Slot) -> Number | None:
        if tensor.shape or tensor.layout.torch_dtype.is_complex:
            return None
        self.lasts = False
        return self._tensors[tensor.number].item()

    def restride(self, tensor: Slot, shape: tuple[int, ...], strides: tuple[int, ...]) -> Slot:
        layout = layout_of(shape, strides, tensor.layout.torch_dtype)
        return self.make_slot(layout, lambda values: values[tensor.number].as_strided(shape, strides), tensor.memory)

    def empty_like(self, tensor: Slot, dtype: Dtype) -> Slot:
        kind = TORCH_DTYPES[dtype]
        layout = layout_of(tensor.shape, contiguous_strides(tensor.shape), kind)
        return self.make_slot(layout, lambda values: new(tensor.shape, kind))

    def generator(self, argument: PlaceholderValue | None) -> PlaceholderValue:
        """The device's, or one seeded with the next number that the operator's draws."""
        if argument is None:
            return PlaceholderValue(self._noted(lambda values: backend().generator))
        return PlaceholderValue(self._noted(lambda values: _seeded_by(values[argument.number])))


Returned = Callable[[Sequence[PlaceholderValue]], Any]
"""From what the vendor makes to what an operator returns."""


def _seeded_by(generator: torch.Generator) -> Generator:
    return Generator(backend().device, int(torch.randint(2**63 - 1, (), generator=generator)))


def _step(call: FunctionCall, number: int, inplace: bool) -> _Step:
    """A call; results that are in the memory of its arguments get numbers from `number` on."""
    read = {slot.memory for value in call.arguments.values() for slot in _listed(value) if isinstance(slot, Slot)}
    clash = {name: slot for name, slot in call.results.items() if isinstance(slot, Slot) and slot.memory in read}
    replaced, apart = dict(call.results), []
    for place, (name, slot) in enumerate(clash.items(), number):
        layout = layout_of(slot.shape, contiguous_strides(slot.shape), slot.layout.torch_dtype)
        replaced[name] = Slot(place, layout, place)
        apart.append((slot, place))
    return _Step(PreparedCall(replace(call, results=replaced)), apart, inplace or bool(apart))


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]
