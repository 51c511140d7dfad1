"""Domains that a file can describe: by a name with numbers, by the values themselves, or by an argument of a function.

A domain is the set from which the elements of a tensor are drawn. It has the form of a function of a random generator,
the number of elements and the element type. The JSON record of a domain has the keys `name` and `numbers`
(`NamedDomain`), `values` and `type` (`FixedValues`), or `usual` (`DefaultDomain`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any, final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import leading_dtype
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.domains import Domain, choice, integer_values, normal, uniform
from diopi_test.cases.selection import select_cases


def absolute_normal(scale: float = 1.0, mean: float = 0.0) -> Domain:
    """Return a domain of the magnitudes of normally distributed numbers."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return np.abs(normal(scale, mean)(rng, count, dtype))

    return draw


def positive_definite(size: float) -> Domain:
    """Return a domain of symmetric positive definite matrices with `size` rows, one after another."""
    rows = int(size)

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        factors = normal()(rng, count, dtype).reshape(-1, rows, rows)
        matrices = factors @ np.conj(np.swapaxes(factors, -1, -2)) / rows + np.eye(rows)
        return np.asarray(matrices).reshape(-1)

    return draw


_MAKERS: Mapping[str, Callable[..., Domain]] = {
    "normal": normal,
    "absolute_normal": absolute_normal,
    "positive_definite": positive_definite,
    "between": uniform,
    "whole": lambda low, high: integer_values(int(low), int(high)),
    "constant": lambda value: choice([value]),
}
"""The functions that create domains from numbers, by the name in files.

The numbers are: of `normal` and `absolute_normal`, the standard deviation and the mean; of `positive_definite`, the
number of rows; of `between`, the bounds of a uniform distribution; of `whole`, the smallest and the largest integer; of
`constant`, the value.
"""


class DescribedDomain(ABC):
    """A domain that a file can describe."""

    @abstractmethod
    def __call__(self, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Draw `count` values of an element type with a random generator."""

    @abstractmethod
    def to_record(self) -> dict[str, Any]:
        """Return the domain as JSON data."""

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> DescribedDomain:
        """Return the domain of a JSON record; raise ValueError, TypeError or KeyError if the record is invalid."""
        if "values" in record:
            real, *imaginary = (
                np.asarray(part, np.float64 if record["type"][0] == "c" else None) for part in record["values"]
            )
            flat = real + 1j * imaginary[0] if imaginary else real
            return FixedValues(flat.astype(np.dtype(record["type"])))
        if "usual" in record:
            return DefaultDomain(*record["usual"])
        return NamedDomain(record["name"], tuple(record["numbers"]))


@final
@dataclass(frozen=True)
class NamedDomain(DescribedDomain):
    """A domain with a name.

    Attributes:
        name: The name of the domain, a key of `_MAKERS`.
        numbers: The arguments of the function that creates the domain.
    """

    name: str
    numbers: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if there is no such domain, or if it does not take these numbers."""
        try:
            self._domain  # noqa: B018 - making the domain is the check
        except (KeyError, TypeError) as error:
            reason = f"the domain {self.name}{self.numbers} is unknown"
            raise ValueError(f"{reason}, expected one of {', '.join(_MAKERS)} with its numbers") from error

    @cached_property
    def _domain(self) -> Domain:
        """Return the domain that the function of this name makes from the numbers."""
        return _MAKERS[self.name](*self.numbers)

    def __call__(self, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Draw `count` values."""
        return self._domain(rng, count, dtype)

    def to_record(self) -> dict[str, Any]:
        """Return the name and the numbers."""
        return {"name": self.name, "numbers": list(self.numbers)}


@final
@dataclass(frozen=True, eq=False)
class FixedValues(DescribedDomain):
    """A domain that returns fixed values in order. It has as many values as the tensor has elements."""

    values: NDArray[Any]

    def __call__(self, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Return all values in order, as a flat array; the arguments are ignored."""
        return self.values.reshape(-1)

    def to_record(self) -> dict[str, Any]:
        """Return the values and their element type; the imaginary parts of complex values follow the real parts."""
        flat = self.values.reshape(-1)
        parts = [flat.real.tolist(), flat.imag.tolist()] if np.iscomplexobj(flat) else [flat.tolist()]
        return {"values": parts, "type": flat.dtype.name}


@final
@dataclass(frozen=True)
class DefaultDomain(DescribedDomain):
    """The domain from which the cases of a function in the suite draw a tensor argument.

    Attributes:
        function: The name of the function.
        parameter: The name of the parameter.
    """

    function: str
    parameter: str

    def __post_init__(self) -> None:
        """Raise ValueError if no case of the function draws the argument."""
        if _default_domain(self.function, self.parameter) is None:
            raise ValueError(
                f"no case of {self.function} draws the argument {self.parameter}; describe its values instead"
            )

    def __call__(self, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Draw `count` values; if the domain has a fixed number of values, repeat them."""
        domain = _default_domain(self.function, self.parameter)
        assert domain is not None
        values = np.asarray(domain(rng, count, dtype)).reshape(-1)
        return values if values.size == count else np.resize(values, count)

    def to_record(self) -> dict[str, Any]:
        """Return the names of the function and the parameter."""
        return {"usual": [self.function, self.parameter]}


@cache
def _default_domain(function: str, parameter: str) -> Domain | None:
    """Return the domain of an argument in a function's simplest case that draws it; None if no case draws it.

    The simplest case is the smallest one of class `basic` and of the function's leading element type, if there is one.
    """
    prototype = lookup(function)
    demanded = [case for case in select_cases(function, "full") if case.case_class.is_demanded]
    leading = leading_dtype(prototype.dtypes) if prototype.dtypes else None

    def rank(case: Any) -> tuple[bool, bool, int]:
        return case.case_class != "basic", case.dtype is not leading, sum(map(prod, case.shapes))

    specs = (spec for case in sorted(demanded, key=rank) for spec in TensorSpec.all_in(case.arguments.get(parameter)))
    return next((spec.domain for spec in specs if spec.compute is None), None)
