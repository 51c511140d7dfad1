"""`Case`: one call of one function, described before its data exist; `TensorSpec` describes a tensor of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.domains import Domain, normal
from diopi_test.layouts import Layout, contiguous

Values = Mapping[str, Any]
"""Argument values by name: arrays in float64, complex128, int64 or bool, plain numbers, text, None."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor argument.

    Attributes:
        shape: its sizes.
        dtype: its element type.
        domain: where its values are drawn from, unless `compute` says how they follow from earlier arguments.
        layout: where its elements lie.
        compute: from the values of the arguments before it, in the case's order, to its own values.
    """

    shape: tuple[int, ...]
    dtype: Dtype
    domain: Domain = field(default_factory=normal)
    layout: Layout = contiguous
    compute: Callable[[Values], Any] | None = None


@dataclass(frozen=True)
class ResultOverride:
    """What the caller decides about a result tensor, where that is not the usual.

    Attributes:
        dtype: its element type; by default what the prototype's rule says.
        layout: where its elements lie.
        shape: its sizes, where the function leaves them to the caller; by default those of the reference's result.
    """

    dtype: Dtype | None = None
    layout: Layout = contiguous
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Case:
    """One call of one function.

    Attributes:
        label: unique within the function; starts with the dtype under test. `function[label]` is the case's id.
        dtype: the element type under test.
        arguments: a value for every argument of the prototype: `TensorSpec`, list of them, None, or an attribute.
            For a bare address a `TensorSpec` stands for that of the tensor's memory.
            Names that start with `_` are tensors that only later arguments are computed from.
        results: overrides by result name; None where the caller leaves an optional result out.
        smoke: whether the case is one of the basic ones, which belong to the smoke level and are called more than once.
        exact: whether the data make every intermediate value exact, so that the result has no rounding error.
        weak: why the case must be as it is although its results tell little (`diopi_test.distrust`).
    """

    label: str
    dtype: Dtype
    arguments: Mapping[str, Any]
    results: Mapping[str, ResultOverride | None] = field(default_factory=dict)
    smoke: bool = False
    exact: bool = False
    weak: str = ""


CaseMaker = Callable[[Prototype], Iterable[Case]]

Reasons = Mapping[str, str]
"""Why cases are weak: by a regular expression that their labels, less the element type, begin with, up to a dash."""

_makers: dict[str, tuple[CaseMaker, Reasons]] = {}


def cases_for(*names: str, weak: Reasons | None = None) -> Callable[[CaseMaker], CaseMaker]:
    """Register the decorated function as the maker of the cases of these functions and of the forms derived from them.

    It receives the prototype of the function or form and yields cases for its parameters. `weak` gives the reasons of
    cases that have none of their own.
    """

    def register(maker: CaseMaker) -> CaseMaker:
        for name in names:
            if name in _makers:
                raise ValueError(f"the cases of {name} are made twice")
            _makers[name] = maker, weak or {}
        return maker

    return register


def _none(prototype: Prototype) -> Iterable[Case]:
    return ()


@cache
def cases_of(prototype: Prototype) -> tuple[Case, ...]:
    """All cases of a function, in order; none when nobody makes any.

    Raises ValueError when two cases have one label, or a case's arguments are not those of the prototype.
    """
    maker, reasons = _makers.get(prototype.name) or _makers.get(prototype.base) or (_none, {})
    cases = tuple(_with_reason(case, reasons) for case in maker(prototype))
    labels = [case.label for case in cases]
    if repeated := sorted({label for label in labels if labels.count(label) > 1}):
        raise ValueError(f"{prototype.name}: several cases are labelled {', '.join(repeated)}")
    for case in cases:
        _check_arguments(prototype, case)
    return cases


def _with_reason(case: Case, reasons: Reasons) -> Case:
    label = case.label.partition("-")[2]
    found = (reason for begin, reason in reasons.items() if re.match(f"(?:{begin})(?:-|$)", label))
    return case if case.weak else replace(case, weak=next(found, ""))


def _check_arguments(prototype: Prototype, case: Case) -> None:
    given = [name for name in case.arguments if not name.startswith("_")]
    expected = [parameter.name for parameter in prototype.arguments]
    if sorted(given) != sorted(expected):
        raise ValueError(f"{prototype.name}[{case.label}] has arguments {given}, the prototype {expected}")


def tensors_of(value: Any) -> Sequence[TensorSpec]:
    """The tensor specs in one argument: none, one, or those of a list."""
    if isinstance(value, TensorSpec):
        return [value]
    return [entry for entry in value if isinstance(entry, TensorSpec)] if isinstance(value, list) else []
