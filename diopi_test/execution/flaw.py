"""`Flaw`: why a call is invalid. `Mutation`: a way to make a valid call invalid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from diopi_proto.facts import Fact
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.oracle.records import BaselineCase, BaselineTensor
from lib_rt.dtypes import to_numpy


@final
@dataclass(frozen=True)
class Flaw:
    """The reason why a call is invalid, with the changed arguments and results.

    Attributes:
        text: the reason in words.
        arguments, expected: the arguments and expected results that replace those of the valid case, by name. The value
            for a parameter that counts the entries of an array is the number that is passed.
    """

    text: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Mutation:
    """A way to make a call invalid by changing one parameter.

    The label of the negative test is `negative-<parameter>-<name>`, such as `negative-dim-after-the-last`.

    Attributes:
        name: the end of the label.
        concerns: returns whether the mutation can be applied to a parameter of a function.
        flaw: returns the flaw for a valid case; None if the changed call would be valid.
    """

    name: str
    concerns: Callable[[Prototype, Parameter], bool]
    flaw: Callable[[Prototype, Parameter, BaselineCase], Flaw | None]


def has_fact(fact: type[Fact]) -> Callable[[Prototype, Parameter], bool]:
    """Return a predicate that tells whether a parameter has a fact of this kind."""
    return lambda prototype, parameter: parameter.fact(fact) is not None


def has_number_fact(fact: type[Fact]) -> Callable[[Prototype, Parameter], bool]:
    """Return a predicate that tells whether a parameter has a fact of this kind and is an attribute, not a tensor."""
    return lambda prototype, parameter: parameter.role is Role.attribute and parameter.fact(fact) is not None


def make_zeros(shape: Sequence[int], dtype: Dtype, layout: str = "contiguous") -> BaselineTensor:
    """Return a tensor of zeros."""
    return BaselineTensor(np.zeros(shape, to_numpy(dtype)), dtype, layout)


def replace_first(parameter: Parameter, case: BaselineCase, number: int) -> Flaw:
    """Return the flaw of an attribute that is replaced by an invalid number; in a list, only the first entry is."""
    value = case.arguments[parameter.name]
    return replace_value(parameter, (number, *value[1:]) if isinstance(value, tuple) else number)


def replace_value(parameter: Parameter, value: Any) -> Flaw:
    """Return the flaw of an attribute that is replaced by an invalid value."""
    return Flaw(
        f"{parameter.c_name} is {value!r}" if isinstance(value, str) else f"{parameter.c_name} is {value}",
        {parameter.name: value},
    )
