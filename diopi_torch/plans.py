"""Which calls of functions an operator is, found once for all its calls of one form.

The form is all that `function_calls` looks at: element types, shapes and strides of tensors, and the values of all
else. A plan is those calls with the numbers of tensors in their place. There is none where something is made for a call
or read from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from diopi_proto.aten.mapping import FunctionCall, Operator, function_calls
from diopi_proto.aten.table import Row
from diopi_torch.functions import Operand

KEPT = 4096
"""Plans kept, so that a training loop finds its own."""

_plans: dict[Hashable, Sequence[FunctionCall] | None] = {}


@dataclass(frozen=True)
class _Place:
    """Stands in a plan for a tensor of the call."""

    number: int


class _Observed:
    """A maker of what functions need, and whether anything was asked of it."""

    def __init__(self, maker: Any) -> None:
        self._maker = maker
        self.asked = False

    def __getattr__(self, name: str) -> Any:
        self.asked = True
        return getattr(self._maker, name)


def planned_calls(operator: Operator, row: Row, returned: Sequence[Any]) -> list[FunctionCall]:
    """As `function_calls`."""
    given = [*operator.named.values(), returned]
    form = row.operator, operator.name, operator.inplace, tuple(operator.named), _form(given)
    plan = _plans.get(form)
    if plan is not None:
        tensors = list(_tensors(given))
        return [_with(call, lambda one: tensors[one.number] if isinstance(one, _Place) else one) for call in plan]
    if form in _plans:
        return function_calls(operator, row, returned)
    maker = _Observed(operator.maker)
    calls = function_calls(replace(operator, maker=maker), row, returned)
    if len(_plans) >= KEPT:
        _plans.clear()
    places = {id(tensor): _Place(number) for number, tensor in enumerate(_tensors(given))}
    _plans[form] = None if maker.asked else [_with(call, lambda one: places.get(id(one), one)) for call in calls]
    return calls


def _form(value: Any) -> Hashable:
    """All that decides which calls they are: 1, 1.0 and True, 0.0 and -0.0 are different."""
    if isinstance(value, Operand):
        return Operand, value.dtype, value.shape, value.strides
    if isinstance(value, list | tuple):
        return type(value), *map(_form, value)
    if isinstance(value, torch.Generator):
        return torch.Generator  # which makes something for each call
    return type(value), repr(value) if isinstance(value, float) else value


def _tensors(values: Sequence[Any]) -> Iterator[Operand]:
    """The tensors among values and lists of them, in their order."""
    for value in values:
        if isinstance(value, Operand):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _with(call: FunctionCall, changed: Callable[[Any], Any]) -> FunctionCall:
    """A call with each tensor, or what stands for it, changed."""

    def each(value: Any) -> Any:
        return [each(entry) for entry in value] if isinstance(value, list) else changed(value)

    return FunctionCall(
        call.function,
        {name: each(value) for name, value in call.arguments.items()},
        {name: each(value) for name, value in call.results.items()},
    )
