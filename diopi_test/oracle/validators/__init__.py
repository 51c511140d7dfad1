"""The judges: what makes an answer right where ties or a free order leave several, one module a family.

A judge sees what was given and what came back, and names what is wrong with it. It has to prove the answer right by
itself: a result it judges is compared with nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from numpy.typing import NDArray

from diopi_proto.families import load_families
from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype

Array = NDArray[Any]


@final
@dataclass(frozen=True)
class Answer:
    """A call that was answered, in the reference's arithmetic: float64, complex128, int64, bool.

    Attributes:
        arguments: what was given, by name, as the reference takes it.
        results: the results by name, `.number` after it for an entry of an array; no name for one left out.
        expected: one right answer, under the same names.
        dtypes: the results' element types, likewise.
        others: calls with the same arguments that must have drawn other random numbers, by what they are.
    """

    arguments: Mapping[str, Any]
    results: Mapping[str, Array]
    expected: Mapping[str, Array]
    dtypes: Mapping[str, Dtype]
    others: Mapping[str, Answer] = field(default_factory=dict)

    @property
    def result(self) -> Array:
        """The only result of a function that has one."""
        (result,) = self.results.values()
        return result


Problems = Iterator[str]
"""What is wrong, in words that name the result."""

Validator = Callable[[Answer], Problems]
V = TypeVar("V", bound=Validator)

_validators: dict[str, Validator] = {}


def validates(*names: str) -> Callable[[V], V]:
    """Register the decorated function as the judge of these functions and of the forms derived from them."""

    def register(validator: V) -> V:
        for name in names:
            if name in _validators:
                raise ValueError(f"{name} has two judges")
            _validators[lookup(name).name] = validator
        return validator

    return register


def find_validator(prototype: Prototype) -> Validator:
    """The judge of a function or of the function it is a form of; LookupError if there is none."""
    load_families(__name__)
    validator = _validators.get(prototype.name) or _validators.get(prototype.base)
    if validator is None:
        raise LookupError(f"{prototype.name} has results that only a judge can accept, and no judge")
    return validator
