"""Domains for the values of a tensor that an original generator would have drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from diopi_test.cases.named_domains import DefaultDomain, DescribedDomain, FixedValues, NamedDomain
from diopi_test.original.entries import EntryError
from diopi_test.original.source import Generated

INTEGERS = (0, 10)
"""The bounds of `randint` if it has no arguments."""

UNIFORM = (0, 10)
"""The bounds of `uniform` if it has no arguments."""

NORMAL = NamedDomain("normal")
"""The domain of `randn`, which the original also uses where no generator is named."""


def _uniform(given: Mapping[str, Any]) -> NamedDomain:
    low, high = _number(given, "low", "0", UNIFORM[0]), _number(given, "high", "1", UNIFORM[1])
    return NamedDomain("between", (low, high))


_MAKERS: Mapping[str, Callable[[Mapping[str, Any]], NamedDomain]] = {
    "randn": lambda given: NORMAL,
    "randn_cmplx": lambda given: NORMAL,
    "rand": lambda given: NamedDomain("between", (0, 1)),
    "rand_cmplx": lambda given: NamedDomain("between", (0, 1)),
    "uniform": _uniform,
    "normal": lambda given: NamedDomain("normal", (_number(given, "std", "1", 1.0), _number(given, "mean", "0", 0.0))),
    "positive": lambda given: NamedDomain("absolute_normal"),
    "randint": lambda given: _integers(given),
    "randn_int": lambda given: _integers(given),
    "mask": lambda given: NamedDomain("whole", (0, 1)),
    "ones": lambda given: NamedDomain("constant", (1,)),
    "zeros": lambda given: NamedDomain("constant", (0,)),
    "empty": lambda given: NamedDomain("constant", (0,)),
    "full": lambda given: NamedDomain("constant", (_number(given, "fill_value", "0", 0.0),)),
}
"""By the name of a generator, from its parameters to a domain."""

SYMMETRIC = ("sym_mat",)
"""The generators of symmetric positive definite matrices."""


def domain_of(generated: Generated, shape: Any) -> NamedDomain | None:
    """Return the domain of a generator for a tensor of this shape; None if the generator is not known."""
    if generated.name in SYMMETRIC and isinstance(shape, list | tuple) and shape and type(shape[-1]) is int:
        return NamedDomain("positive_definite", (max(shape[-1], 1),))
    maker = _MAKERS.get(generated.name)
    return None if maker is None else maker(generated.parameters)


def usual_domain(function: str, parameter: str) -> DescribedDomain:
    """Return the domain of the argument in the function's own cases, or the normal one if they compute the argument."""
    try:
        return DefaultDomain(function, parameter)
    except ValueError:
        return NORMAL


def given(values: Any) -> tuple[tuple[int, ...], FixedValues]:
    """Return the shape of given values and the domain that has them.

    Raises:
        EntryError: The values are not an array of numbers.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise EntryError(f"value: expected an array, found {values!r}") from error
    if array.dtype.kind not in "biufc":
        raise EntryError(f"value: expected numbers, found {values!r}")
    return array.shape, FixedValues(array)


def _integers(given: Mapping[str, Any]) -> NamedDomain:
    """Return the domain of integers as NumPy and PyTorch draw them: without `high`; a single number is `high`."""
    low, high = (_number(given, name, place, None) for name, place in (("low", "0"), ("high", "1")))
    if high is None:
        low, high = (0, low) if low is not None else INTEGERS
    first = int(low or 0)
    if int(high) <= first:
        raise EntryError(f"gen_fn: randint draws from an empty range, {first} to {int(high)}")
    return NamedDomain("whole", (first, int(high) - 1))


def _number(given: Mapping[str, Any], name: str, place: str, usual: Any) -> Any:
    value = given.get(name, given.get(place, usual))
    if value is not None and not isinstance(value, bool | int | float):
        raise EntryError(f"gen_fn: {name}: expected a number, found {value!r}")
    return value
