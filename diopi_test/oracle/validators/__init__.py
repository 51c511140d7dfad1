"""Validators: they decide whether a result is valid if several results are, with one module per family of functions.

Several results are valid if values are equal, if the order is free, or if numbers are random. A validator gets the
arguments and the results of a call and describes each problem. The suite does not compare a validated result with the
reference element by element. A validator may use the reference's result, `CompletedCall.expected`, as one of the valid
results.
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
from diopi_test.oracle.arithmetic.elementary import DeclaredErrors

Array = NDArray[Any]


@final
@dataclass(frozen=True, kw_only=True)
class CompletedCall:
    """The arguments and results of a call, in the reference's arithmetic: float64, complex128, int64 or bool.

    Attributes:
        arguments: the arguments by name, as the reference takes them.
        results: the results by name. `.number` follows the name for an entry of an array; omitted results are absent.
        expected: a valid result, under the same names.
        dtypes: the element types of the results under the same names.
        changes: by how much a declared arithmetic may change the elements of the expected result, under the same names;
            absent for results that it does not change.
        errors: the errors of elementary functions in float32 that a declared arithmetic permits.
        sum_epsilon: the eps of the half-precision type in which a declared arithmetic accumulates sums; 0 for float32.
        redraws: calls with the same arguments that must have drawn different random numbers, by their description.
    """

    arguments: Mapping[str, Any]
    results: Mapping[str, Array]
    expected: Mapping[str, Array]
    dtypes: Mapping[str, Dtype]
    changes: Mapping[str, Array] = field(default_factory=dict)
    errors: DeclaredErrors = field(default_factory=lambda: DeclaredErrors({}))
    sum_epsilon: float = 0.0
    redraws: Mapping[str, CompletedCall] = field(default_factory=dict)

    @property
    def result(self) -> Array:
        """The only result of the call; ValueError if the call has no result or several results."""
        (result,) = self.results.values()
        return result


Problems = Iterator[str]
"""The problems of the results of a call: texts, each of which names a result and states what is wrong."""

Validator = Callable[[CompletedCall], Problems]
"""Decides whether the results of a call are valid: yields a description of each problem, and nothing if there is
none."""

V = TypeVar("V", bound=Validator)
"""The registered validator."""

_validators: dict[str, Validator] = {}
"""The registered validators by the name of the function."""


def validates(*names: str) -> Callable[[V], V]:
    """Register the decorated function as the validator of these functions and of the forms derived from them.

    Args:
        names: the names of the functions.

    Returns:
        A decorator that returns the function unchanged. It raises ValueError if a name has a validator already.
    """

    def register(validator: V) -> V:
        """Enter `validator` into the registry under each name, and return it unchanged."""
        for name in names:
            if name in _validators:
                raise ValueError(f"{name} has two validators; a function has at most one")
            _validators[lookup(name).name] = validator
        return validator

    return register


def find_validator(prototype: Prototype) -> Validator:
    """Return the validator of a function, or of the function that it is a form of.

    Args:
        prototype: the prototype of the function.

    Returns:
        The registered validator.

    Raises:
        LookupError: The function has no validator.
    """
    load_families(__name__)
    validator = _validators.get(prototype.name) or _validators.get(prototype.base)
    if validator is None:
        raise LookupError(
            f"{prototype.name} has several valid results but no validator; add one to diopi_test/oracle/validators"
        )
    return validator
