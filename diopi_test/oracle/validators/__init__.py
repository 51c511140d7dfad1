"""Validators decide whether a result is valid if a call has several valid results; one module per family of functions.

A call has several valid results if equal values may be in any order, if the order is free, or if numbers are random. A
validator receives the arguments and the results of a call. It yields a sentence for each problem, and nothing if the
results are valid. The suite does not compare a validated result with the reference element by element. A validator may
use the reference's result, `CompletedCall.expected`, as one of the valid results.
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
    """The arguments and results of a call that a validator checks.

    Arrays have the types in which references compute: float64, complex128, int64 or bool. A *declared arithmetic* is
    the arithmetic that a vendor declares, such as TF32 products; results may differ by the errors that it permits.

    Attributes:
        arguments: the arguments by name, as the reference takes them.
        results: the vendor's results by name. The entries of an array have the names `name.0`, `name.1` and so on;
            omitted results are absent.
        expected: the reference's results, which are one of the valid answers, under the same names.
        dtypes: the element types of the results under the same names.
        changes: the largest changes of the elements of `expected` that a declared arithmetic permits, under the same
            names; results that it does not change are absent.
        errors: the errors of elementary functions in float32 that a declared arithmetic permits.
        sum_epsilon: the eps of the half-precision type in which a declared arithmetic accumulates sums; 0 for float32.
        redraws: further calls with the same arguments that must have drawn different random numbers, by their
            description, such as "another seed".
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
"""A function that yields a description of each problem of the results of a call, and nothing if they are valid."""

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
        """Return `validator` unchanged, after entering it into the registry under each name.

        Raises:
            ValueError: A name already has a validator.
        """
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
