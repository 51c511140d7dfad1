"""`Case`: one call of one function, described before its data exist; `TensorSpec` describes a tensor of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, normal
from diopi_test.cases.layouts import Layout, contiguous
from lib_rt.dtypes import to_numpy

Values = Mapping[str, Any]
"""Argument values by name: arrays in float64, complex128, int64 or bool, plain numbers, text, None."""


FORMER_NAME_OF_NEGATIVE = "refusal"
"""Name of the class `negative` in baselines, logs, reports and options of earlier versions."""


class CaseClass(StrEnum):
    """What a case demands of a vendor, beyond what the function's first case does. Reports count each by itself."""

    basic = "basic"
    """Nothing beyond that."""
    types = "types"
    """Another element type than the leading one, or several."""
    layout = "layout"
    """Tensors that are not contiguous."""
    special = "special"
    """NaN, infinities, subnormal numbers or negative zeros among the data."""
    empty = "empty"
    """Tensors without elements."""
    optional = "optional"
    """Arguments or results that may be left out are."""
    callers = "callers"
    """Habits of callers: other element types, arguments the call has no use for, odd values, and the ranks, NULLs and
    empty lists that the prototype's call forms describe."""
    open = "open"
    """Calls that PyTorch refuses, or whose results it leaves open: the standard alone says what they give."""
    negative = "negative"
    """Negative tests: invalid calls, which the vendor must reject without changing anything."""

    @classmethod
    def _missing_(cls, value: object) -> CaseClass | None:
        """Return the member for a former name, which older baselines, logs and reports contain."""
        return cls.negative if value == FORMER_NAME_OF_NEGATIVE else None

    @property
    def is_demanded(self) -> bool:
        """Whether a vendor conforms only if it has these cases right; of the others, only if it is held to all."""
        return self not in (CaseClass.open, CaseClass.negative)


@dataclass(frozen=True)
class ResultOf:
    """What another function gives for the case's earlier arguments, as forward functions save for their gradients.

    Attributes:
        function, result: names of the function and of one of its results.
        renamed: the case's names for the function's arguments, where they differ.
        given: arguments of the function that are not the case's.
        unspecified: what stands where the function leaves the result open; None for what the reference has there.
    """

    function: str
    result: str = "out"
    argument_names: Mapping[str, str] = field(default_factory=dict)
    extra_arguments: Mapping[str, Any] = field(default_factory=dict)
    unspecified: float | None = 0.0


@dataclass(frozen=True)
class TensorSpec:
    """A tensor argument.

    Attributes:
        shape: its sizes.
        dtype: its element type.
        domain: where its values are drawn from, unless `compute` says how they follow from earlier arguments.
        layout: where its elements lie.
        compute: from the values of the arguments before it, in the case's order, to its own values; or whose result
            for them they are.
    """

    shape: tuple[int, ...]
    dtype: Dtype
    domain: Domain = field(default_factory=normal)
    layout: Layout = contiguous
    compute: Callable[[Values], Any] | ResultOf | None = None


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
            Other names start with `_`, and are tensors that only later arguments are computed from.
        results: overrides by result name; None where the caller leaves an optional result out.
        smoke: whether the case is one of the basic ones, which belong to the smoke level and are called more than once.
        exact: whether the data make every intermediate value exact, so that no result has a rounding error; or the
            names of the results of which that is so.
        case_class: what it demands; `basic` if that is for `diopi_test.cases.classes` to find out.
        non_discriminating: why the case must be as it is although a wrong result could pass it; empty for all other
            cases (`diopi_test.quality.non_discriminating`).
    """

    label: str
    dtype: Dtype
    arguments: Mapping[str, Any]
    results: Mapping[str, ResultOverride | None] = field(default_factory=dict)
    smoke: bool = False
    exact: bool | Collection[str] = False
    case_class: CaseClass = CaseClass.basic
    non_discriminating: str = ""

    def is_exact(self, result: str) -> bool:
        """Whether the data leave nothing to round in a result."""
        return self.exact if isinstance(self.exact, bool) else result in self.exact


CaseMaker = Callable[[Prototype], Iterable[Case]]

Reasons = Mapping[str, str]
"""Why cases do not discriminate, by a regular expression.

The expression matches the beginning of the cases' labels after the element type, up to a dash.
"""

FULL = "full"
"""The level that makers are for, if they do not say."""

_makers: dict[tuple[str, str], tuple[CaseMaker, Reasons]] = {}


def cases_for(
    *names: str, non_discriminating: Reasons | None = None, level: str = FULL
) -> Callable[[CaseMaker], CaseMaker]:
    """Register the decorated function as the maker of the cases of these functions and of the forms derived from them.

    It receives the prototype of the function or form and yields cases for its parameters. `non_discriminating`
    gives the reasons of cases that have none of their own.
    """

    def register(maker: CaseMaker) -> CaseMaker:
        for name in names:
            if (level, name) in _makers:
                raise ValueError(f"the cases of {name} are made twice")
            _makers[level, name] = maker, non_discriminating or {}
        return maker

    return register


def _none(prototype: Prototype) -> Iterable[Case]:
    return ()


def registered_cases(prototype: Prototype, level: str = FULL) -> tuple[Case, ...]:
    """The cases of a function's own maker, in order; none when nobody makes any."""
    names = (level, prototype.name), (level, prototype.base)
    maker, reasons = _makers.get(names[0]) or _makers.get(names[1]) or (_none, {})
    return tuple(_with_reason(case, reasons) for case in maker(prototype))


def check_cases(prototype: Prototype, cases: Sequence[Case]) -> None:
    """ValueError when two cases have one label, or a case's arguments are not those of the prototype."""
    labels = [case.label for case in cases]
    if repeated := sorted({label for label in labels if labels.count(label) > 1}):
        raise ValueError(f"{prototype.name}: several cases are labelled {', '.join(repeated)}")
    for case in cases:
        _check_arguments(prototype, case)


def _with_reason(case: Case, reasons: Reasons) -> Case:
    label = case.label.partition("-")[2]
    found = (reason for begin, reason in reasons.items() if re.match(f"(?:{begin})(?:-|$)", label))
    return case if case.non_discriminating else replace(case, non_discriminating=next(found, ""))


def _check_arguments(prototype: Prototype, case: Case) -> None:
    expected = [parameter.name for parameter in prototype.arguments]
    given = [name for name in case.arguments if name in expected or not name.startswith("_")]
    if sorted(given) != sorted(expected):
        raise ValueError(f"{prototype.name}[{case.label}] has arguments {given}, the prototype {expected}")


HUGE = 2**31
"""Bytes of a storage that are too many for offsets of 32 bits."""


def is_huge(case: Case) -> bool:
    """Whether a tensor of a case lies in a storage of more than `HUGE` bytes."""
    specs = (spec for name, value in case.arguments.items() if not name.startswith("_") for spec in tensor_specs(value))
    sizes = (spec.layout(spec.shape).storage_elements * to_numpy(spec.dtype).itemsize for spec in specs)
    return any(size > HUGE for size in sizes)


def tensor_specs(value: Any) -> Sequence[TensorSpec]:
    """The tensor specs in one argument: none, one, or those of a list."""
    if isinstance(value, TensorSpec):
        return [value]
    return [entry for entry in value if isinstance(entry, TensorSpec)] if isinstance(value, list) else []
