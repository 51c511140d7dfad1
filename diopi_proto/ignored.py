"""`Ignored`: arguments that take no part in a function's results, in all calls or for some attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from diopi_proto.types import Scalar


class Read(StrEnum):
    """What of an argument is read although no result depends on its value."""

    nothing = "nothing"
    """It may be anything: NULL, of any element type, of any shape, out of range."""
    form = "form"
    """Its shape and element type, or one of them; what it holds is not read."""
    value = "value"
    """All of it, perhaps: it must be valid, but every valid value gives the same results, or equally right ones."""


@dataclass(frozen=True)
class Ignored:
    """Arguments whose values no result depends on.

    Attributes:
        arguments: their names.
        reason: why, as a clause for the docstring.
        where: in which calls, by the name of another argument: the value it has there, or a tuple of them, or a
            function that is true of it, whose name says what it is; for a tensor its element type. In all calls if
            there is none.
        read: what is read of them all the same.
    """

    arguments: tuple[str, ...]
    reason: str
    where: Mapping[str, Any] = field(default_factory=dict)
    read: Read = Read.nothing

    def covers(self, arguments: Mapping[str, Any]) -> bool:
        """Whether it is so in a call with these arguments, in which a tensor is anything that has a `dtype`."""
        return all(_holds(values, _deciding(arguments[name])) for name, values in self.where.items())

    def sentence(self, tensors: Sequence[str]) -> str:
        """What a vendor should know of it, empty if that is nothing; `tensors` are the function's tensor arguments."""
        if self.read is Read.value:
            return ""
        calls = " and ".join(_condition(name, values) for name, values in self.where.items())
        names = f"Where {calls}, {_listed(self.arguments)}" if calls else _listed(self.arguments)
        is_one = len(self.arguments) == 1
        if self.read is Read.form:
            return f"{names} {'gives its' if is_one else 'give their'} shape and dtype alone: {self.reason}."
        null = ", NULL too" if set(self.arguments) & set(tensors) else ""
        return f"{names} {'is' if is_one else 'are'} not read and may be anything{null}: {self.reason}."


def negative(value: Any) -> bool:
    """Whether a number is below 0; NULL is not."""
    return value is not None and bool(value < 0)


def _holds(values: Any, given: Any) -> bool:
    """Whether an argument is as `where` has it."""
    return bool(values(given)) if callable(values) else given in _choices(values)


def _choices(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _deciding(value: Any) -> Any:
    """What of an argument a condition is about."""
    return value.value if isinstance(value, Scalar) else getattr(value, "dtype", value)


def _condition(name: str, values: Any) -> str:
    if callable(values):
        return f"`{name}` is {values.__name__}"
    return f"`{name}` is " + " or ".join(_shown(value) for value in _choices(values))


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(getattr(value, "name", value))


def _listed(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
