"""From where the values of a tensor are drawn that an original generator would have made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, between, choice, normal, whole
from diopi_test.original.entries import EntryError
from diopi_test.original.source import Generated

INTEGERS = (0, 10)
"""Between which numbers `randint` draws if it is not told."""

_MAKERS: Mapping[str, Callable[[Mapping[str, Any]], Domain]] = {
    "randn": lambda given: normal(),
    "randn_cmplx": lambda given: normal(),
    "rand": lambda given: between(0, 1),
    "rand_cmplx": lambda given: between(0, 1),
    "uniform": lambda given: between(_number(given, "low", "0", 0.0), _number(given, "high", "1", 1.0)),
    "normal": lambda given: normal(_number(given, "std", "1", 1.0), _number(given, "mean", "0", 0.0)),
    "positive": lambda given: between(0.01, 3),
    "randint": lambda given: _integers(given),
    "randn_int": lambda given: _integers(given),
    "mask": lambda given: whole(0, 1),
    "ones": lambda given: choice([1]),
    "zeros": lambda given: choice([0]),
    "empty": lambda given: choice([0]),
    "full": lambda given: choice([_number(given, "fill_value", "0", 0.0)]),
}
"""By the name of a generator, from its parameters to a domain."""


def domain_of(generated: Generated) -> Domain | None:
    """The domain of a generator; None of one that is not known."""
    maker = _MAKERS.get(generated.name)
    return None if maker is None else maker(generated.parameters)


def given(values: Any) -> tuple[tuple[int, ...], Domain]:
    """The shape of values that are given, and a domain that gives them; EntryError if they are no array of numbers."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise EntryError(f"value: expected an array, found {values!r}") from error
    if array.dtype.kind not in "biufc":
        raise EntryError(f"value: expected numbers, found {values!r}")

    def these(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return array.reshape(-1)

    return array.shape, these


def _integers(given: Mapping[str, Any]) -> Domain:
    """As NumPy and PyTorch draw: without the greatest; one number alone is that."""
    low, high = (_number(given, name, place, None) for name, place in (("low", "0"), ("high", "1")))
    if high is None:
        low, high = (0, low) if low is not None else INTEGERS
    first = int(low or 0)
    if int(high) <= first:
        raise EntryError(f"gen_fn: randint draws from an empty range, {first} to {int(high)}")
    return whole(first, int(high) - 1)


def _number(given: Mapping[str, Any], name: str, place: str, usual: Any) -> Any:
    value = given.get(name, given.get(place, usual))
    if value is not None and not isinstance(value, bool | int | float):
        raise EntryError(f"gen_fn: {name}: expected a number, found {value!r}")
    return value
