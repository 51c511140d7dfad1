"""Domains of the values that the generators of the original suite draw.

A generator (`Genfunc.NAME`) is a function that draws the elements of a tensor. Each is replaced by the named domain of
this suite that has the same distribution, so the values differ from those of the original suite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from diopi_test.baseline.named_domains import DefaultDomain, DescribedDomain, FixedValues, NamedDomain
from diopi_test.original.entries import EntryError
from diopi_test.original.source import Generated

INTEGERS = (0, 10)
"""The lower bound and the exclusive upper bound of `randint` if it has no arguments."""

UNIFORM = (0, 10)
"""The bounds of `uniform` if it has no arguments."""

NORMAL = NamedDomain("normal")
"""The domain of `randn`, which the original suite also uses for tensors without a generator."""


def _uniform(parameters: Mapping[str, Any]) -> NamedDomain:
    """Return the domain of uniformly distributed values between `low` and `high`."""
    low, high = _number(parameters, "low", "0", UNIFORM[0]), _number(parameters, "high", "1", UNIFORM[1])
    return NamedDomain("between", (low, high))


_MAKERS: Mapping[str, Callable[[Mapping[str, Any]], NamedDomain]] = {
    "randn": lambda parameters: NORMAL,
    "randn_cmplx": lambda parameters: NORMAL,
    "rand": lambda parameters: NamedDomain("between", (0, 1)),
    "rand_cmplx": lambda parameters: NamedDomain("between", (0, 1)),
    "uniform": _uniform,
    "normal": lambda parameters: NamedDomain(
        "normal", (_number(parameters, "std", "1", 1.0), _number(parameters, "mean", "0", 0.0))
    ),
    "positive": lambda parameters: NamedDomain("absolute_normal"),
    "randint": lambda parameters: _integers(parameters),
    "randn_int": lambda parameters: _integers(parameters),
    "mask": lambda parameters: NamedDomain("whole", (0, 1)),
    "ones": lambda parameters: NamedDomain("constant", (1,)),
    "zeros": lambda parameters: NamedDomain("constant", (0,)),
    "empty": lambda parameters: NamedDomain("constant", (0,)),
    "full": lambda parameters: NamedDomain("constant", (_number(parameters, "fill_value", "0", 0.0),)),
}
"""For each generator, a function that returns the domain of its values, given its parameters."""

SYMMETRIC = ("sym_mat",)
"""The generators of symmetric positive definite matrices."""


def domain_of(generated: Generated, shape: Any) -> NamedDomain | None:
    """Return the domain of a generator for a tensor of this shape; None if the generator is not known."""
    if generated.name in SYMMETRIC and isinstance(shape, list | tuple) and shape and type(shape[-1]) is int:
        return NamedDomain("positive_definite", (max(shape[-1], 1),))
    maker = _MAKERS.get(generated.name)
    return None if maker is None else maker(generated.parameters)


def default_domain(function: str, parameter: str) -> DescribedDomain:
    """Return the domain of the argument in the function's shipped cases, or `NORMAL` if they compute the argument."""
    try:
        return DefaultDomain(function, parameter)
    except ValueError:
        return NORMAL


def specify_values(values: Any) -> tuple[tuple[int, ...], FixedValues]:
    """Return the shape of specified values, and the domain that consists of these values.

    Args:
        values: Nested lists of numbers.

    Returns:
        The shape and the domain.

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


def _integers(parameters: Mapping[str, Any]) -> NamedDomain:
    """Return the domain of integers from `low` to below `high`; as in NumPy and PyTorch, a single number is `high`.

    Raises:
        EntryError: The range is empty.
    """
    low, high = (_number(parameters, name, place, None) for name, place in (("low", "0"), ("high", "1")))
    if high is None:
        low, high = (0, low) if low is not None else INTEGERS
    first = int(low or 0)
    if int(high) <= first:
        raise EntryError(f"gen_fn: randint draws from an empty range, {first} to {int(high)}")
    return NamedDomain("whole", (first, int(high) - 1))


def _number(parameters: Mapping[str, Any], name: str, place: str, default: Any) -> Any:
    """Return a parameter of a generator, which may be passed by name or by position.

    Args:
        parameters: The parameters of the generator.
        name: The name of the parameter.
        place: Its position as text, such as "0".
        default: The value if it is missing.

    Returns:
        The number, or the default value.

    Raises:
        EntryError: The value is not a number.
    """
    value = parameters.get(name, parameters.get(place, default))
    if value is not None and not isinstance(value, bool | int | float):
        raise EntryError(f"gen_fn: {name}: expected a number, found {value!r}")
    return value
