"""`Flaw`: what is wrong with a call that is an error; `Mutation`: a way of making a valid call so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from diopi_proto.facts import Fact
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.baseline.records import BaselineCase, BaselineTensor
from lib_rt.dtypes import to_numpy


@final
@dataclass(frozen=True)
class Flaw:
    """What is wrong with a call.

    Attributes:
        text: it in words.
        arguments, expected: what is put in the place of the valid case's; the number of an array's entries by the
            name of its count.
    """

    text: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Mutation:
    """One way of making a call wrong; `negative-<parameter>-<name>` is the label of the case.

    Attributes:
        concerns: whether it can be made at a parameter.
        flaw: what it makes of a valid case there; None where it would not be an error.
    """

    name: str
    concerns: Callable[[Prototype, Parameter], bool]
    flaw: Callable[[Prototype, Parameter, BaselineCase], Flaw | None]


def having(fact: type[Fact]) -> Callable[[Prototype, Parameter], bool]:
    """Whether a kind of fact holds of a parameter."""
    return lambda prototype, parameter: parameter.fact(fact) is not None


def number_having(fact: type[Fact]) -> Callable[[Prototype, Parameter], bool]:
    """Whether a kind of fact holds of an attribute: what is a tensor in one form may be a number in another."""
    return lambda prototype, parameter: parameter.role is Role.attribute and parameter.fact(fact) is not None


def blank(shape: Sequence[int], dtype: Dtype, layout: str = "contiguous") -> BaselineTensor:
    """A tensor of zeros."""
    return BaselineTensor(np.zeros(shape, to_numpy(dtype)), dtype, layout)


def first_changed(parameter: Parameter, case: BaselineCase, number: int) -> Flaw:
    """A wrong number in the place of an attribute, or of the first in a list."""
    value = case.arguments[parameter.name]
    return value_flaw(parameter, (number, *value[1:]) if isinstance(value, tuple) else number)


def value_flaw(parameter: Parameter, value: Any) -> Flaw:
    """A wrong value of an attribute."""
    return Flaw(
        f"{parameter.c_name} is {value!r}" if isinstance(value, str) else f"{parameter.c_name} is {value}",
        {parameter.name: value},
    )
