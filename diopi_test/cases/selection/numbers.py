"""Cases with other numbers as arguments, derived from a function's own cases.

Each numeric argument must be tested in each region of numbers (zero, negative, whole, fraction), and each scalar of a
PyTorch function also as each kind (bool, int, float). `number_demands` derives these demands from the prototype. If no
case of the function meets a demand, a case is derived that differs from one of the function's own cases in one number.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import groupby
from typing import Any

from diopi_proto import facts
from diopi_proto.dtypes import category
from diopi_proto.interface import header_of
from diopi_proto.parameters import Factor, Parameter, Scalar, f32, f64
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass
from diopi_test.cases.facts import CaseFacts, NumberChoice
from diopi_test.cases.selection.open_calls import reason_open

REGIONS = {"zero": 0.0, "negative": -0.625, "whole": 1.0, "fraction": 0.375}
"""By region, the default number to test if the function's own cases have no number in the region."""

KINDS = {"bool": True, "int": 2, "float": 1.75}
"""By kind of scalar, the default number to test, in the order of the categories of element types."""


@dataclass(frozen=True)
class NumberDemand:
    """The demand that a parameter of a function must be tested with a number of a region or kind.

    Attributes:
        function: The name of the function.
        name: The name of the parameter.
        property: The region, such as "negative", or the kind, such as "bool".
        dtypes: Element types under test; a case in one of them is enough.
    """

    function: str
    name: str
    property: str
    _: KW_ONLY
    dtypes: Sequence[Dtype]

    def is_met(self, cases: Iterable[Case]) -> bool:
        """Return whether one of the function's cases meets the demand."""
        return any(
            case.dtype in self.dtypes and self.property in number_properties(case.arguments[self.name])
            for case in cases
        )


def accepts_any_number(prototype: Prototype) -> bool:
    """Return whether the function is in the header `functions.h`, whose functions accept nearly any number."""
    return header_of(prototype.name) == "functions.h"


def number_demands(prototype: Prototype, *, include_excluded: bool = False) -> Iterator[NumberDemand]:
    """Yield the demands for the numeric parameters of a function; none for functions outside `functions.h`.

    Args:
        prototype: The prototype of the function.
        include_excluded: Whether to include demands for numbers that the prototype excludes.

    Yields:
        The demands.
    """
    for parameter in prototype.arguments:
        if accepts_any_number(prototype) and issubclass(parameter.annotation, f64 | f32 | Scalar):
            for number_property, dtypes in _properties_to_test(prototype, parameter):
                if include_excluded or not _is_excluded(parameter, number_property, dtypes[0]):
                    yield NumberDemand(prototype.name, parameter.name, number_property, dtypes=dtypes)


def _is_excluded(parameter: Parameter, number_property: str, dtype: Dtype) -> bool:
    """Return whether the prototype excludes such numbers for the parameter and the element type."""
    return any(
        isinstance(fact, facts.ExcludesNumbers) and number_property in fact.kinds and category(dtype) in fact.categories
        for fact in parameter.facts
    )


def _properties_to_test(prototype: Prototype, parameter: Parameter) -> Iterator[tuple[str, Sequence[Dtype]]]:
    """Yield the properties with which a parameter must be tested, each with the element types of its demand.

    The properties are the regions, and for scalars the kinds per category of element types (for factors, per element
    type). If the function overwrites a tensor, kinds of a higher category than the tensor's are left out.
    """
    positive = parameter.fact(facts.AtLeast) is not None
    yield from ((region, prototype.dtypes) for region in REGIONS if not (positive and region == "negative"))
    if issubclass(parameter.annotation, Scalar):
        is_factor = issubclass(parameter.annotation, Factor) or parameter.name in ("alpha", "beta")
        by_category = sorted(prototype.dtypes, key=category)
        groups = [(dtype,) for dtype in by_category] if is_factor else _group_by_category(by_category)
        for dtypes in groups:
            highest = category(dtypes[0]) if prototype.is_inplace and not is_factor else 3
            yield from ((kind, dtypes) for number, kind in enumerate(KINDS) if number <= highest)


def _group_by_category(dtypes: Sequence[Dtype]) -> list[tuple[Dtype, ...]]:
    """Return the element types in groups of equal category."""
    return [tuple(group) for _, group in groupby(dtypes, key=category)]


def number_properties(number: Any) -> Collection[str]:
    """Return the regions and the kind of a number, such as "whole", "negative" and "int" for −2.

    Return nothing for None, NaN and infinities.
    """
    if number is None or not math.isfinite(number):
        return ()
    part = "whole" if number == int(number) else "fraction"
    regions = [part, *(["negative"] if number < 0 else [])] if number else ["zero"]
    return [*regions, type(number).__name__]


def untested_number_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield a case for each demand that no earlier case meets: none of the function's own `cases`, and none yielded."""
    tested = list(cases)
    for demand in number_demands(prototype):
        if not demand.is_met(tested):
            suitable = (
                case
                for case in cases
                if case.dtype in demand.dtypes and _can_take_other_number(prototype, case, demand.name)
            )
            choice = _choose_number(prototype, demand)
            candidates = [_replace_number(case, choice) for case in sorted(suitable, key=_rarity)]
            defined = [case for case in candidates if not reason_open(prototype, case)]
            chosen = next(iter(defined or candidates), None)
            if chosen:
                tested.append(chosen)
                yield chosen


def _can_take_other_number(prototype: Prototype, case: Case, name: str) -> bool:
    """Return whether a case remains valid with another number for a parameter, and its results depend on the number."""
    return (
        case.arguments[name] is not None
        and prototype.has_effect(name, case.arguments)
        and case.case_class is CaseClass.basic
        and not (case.exact or case.non_discriminating)
        and all(0 not in shape for shape in case.shapes)
        and all(result is None or result.dtype is None for result in case.results.values())
    )


def _rarity(case: Case) -> tuple[bool, bool]:
    """Return a sort key: cases of common element types come first, and among them smoke cases."""
    return case.dtype not in (Dtype.float32, Dtype.int32, Dtype.complex64), not case.smoke


def _choose_number(prototype: Prototype, demand: NumberDemand) -> NumberChoice:
    """Return the number that meets a demand: the family's choice, or the default of the region or kind."""
    default = NumberChoice(demand.name, demand.property, {**REGIONS, **KINDS}[demand.property])
    choices = CaseFacts.declared_for(prototype).number_choices
    return next((c for c in choices if (c.parameter, c.property) == (demand.name, demand.property)), default)


def _replace_number(case: Case, choice: NumberChoice) -> Case:
    """Return the case with another number. A bool with tensors of other types gives it the class `callers`."""
    is_habit = choice.property == "bool" and case.dtype is not Dtype.bool
    return replace(
        case,
        label=f"{case.dtype.name}-{choice.property}-{choice.parameter}",
        arguments={**case.arguments, choice.parameter: choice.number},
        smoke=False,
        non_discriminating=choice.non_discriminating,
        case_class=CaseClass.callers if is_habit else case.case_class,
    )
