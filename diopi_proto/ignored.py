"""`Ignored`: arguments that do not affect the results of a function, in all calls or for some attribute values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from diopi_proto.types import Scalar


class Read(StrEnum):
    """The part of an ignored argument that a call still reads."""

    nothing = "nothing"
    """Nothing: the argument may be NULL, out of range, or have any element type and shape."""
    form = "form"
    """The shape or the element type or both; the elements are not read."""
    value = "value"
    """The value: it must be valid, but all valid values lead to the same results or to equally valid ones."""


@dataclass(frozen=True)
class Ignored:
    """Arguments whose values do not affect any result.

    Attributes:
        arguments: the names of the ignored arguments.
        reason: the reason, as a clause for the docstring.
        conditions: the calls in which the arguments are ignored, by the name of another argument: its value, a tuple
            of values, or a predicate whose name completes the sentence "`x` is …". For a tensor, the condition is
            about its element type. Without conditions the arguments are ignored in all calls.
        read: the part of the arguments that the call still reads.
    """

    arguments: tuple[str, ...]
    reason: str
    conditions: Mapping[str, Any] = field(default_factory=dict)
    read: Read = Read.nothing

    def covers(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call with these arguments meets the conditions; a tensor is any object with a `dtype`."""
        return all(_matches(values, _condition_value(arguments[name])) for name, values in self.conditions.items())

    def sentence(self, tensors: Sequence[str]) -> str:
        """Return the sentence for the docstring, which may be empty; `tensors` names the tensor arguments."""
        if self.read is Read.value:
            return ""
        calls = " and ".join(_condition(name, values) for name, values in self.conditions.items())
        names = _join_names(self.arguments)
        if self.read is Read.form:
            elements = f"Where {calls}, the elements" if calls else "The elements"
            return f"{elements} of {names} are not read, only shape and dtype: {self.reason}."
        subject = f"Where {calls}, {names}" if calls else names
        verb = "is" if len(self.arguments) == 1 else "are"
        null = ", including NULL" if set(self.arguments) & set(tensors) else ""
        return f"{subject} {verb} not read and may be anything{null}: {self.reason}."


def negative(value: Any) -> bool:
    """Return whether `value` is a number less than 0; NULL is not."""
    return value is not None and bool(value < 0)


def _matches(values: Any, value: Any) -> bool:
    """Return whether an argument has one of the values of a condition or satisfies its predicate."""
    return bool(values(value)) if callable(values) else value in _choices(values)


def _choices(values: Any) -> tuple[Any, ...]:
    """Return the value or the values of a condition as a tuple."""
    return values if isinstance(values, tuple) else (values,)


def _condition_value(value: Any) -> Any:
    """Return the property of an argument that conditions compare: a number's value or a tensor's element type."""
    return value.value if isinstance(value, Scalar) else getattr(value, "dtype", value)


def _condition(name: str, values: Any) -> str:
    """Return a condition on the argument `name` in words, as in "`p` is 0 or 1"."""
    if callable(values):
        return f"`{name}` is {values.__name__}"
    return f"`{name}` is " + " or ".join(_format_value(value) for value in _choices(values))


def _format_value(value: Any) -> str:
    """Return an attribute's value as text: text in quotes, truth values in lower case, enumerators by name."""
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(getattr(value, "name", value))


def _join_names(names: Sequence[str]) -> str:
    """Return names in the form "`a`, `b` and `c`"."""
    quoted = [f"`{name}`" for name in names]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
