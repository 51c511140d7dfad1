"""Cases that are derived from a function's own cases, and differ from one of them in one respect.

In the default order, the original case runs first. The derived cases therefore reveal state that an earlier call leaves
behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from diopi_proto.parameters import Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases import resized
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import different_layout, layout_named
from diopi_test.cases.selection.callers import caller_cases
from diopi_test.cases.selection.exceptional import exceptional_cases
from diopi_test.cases.selection.misaligned import misaligned_cases
from diopi_test.cases.selection.numbers import untested_number_cases


def repeated_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the derived cases of all `CASE_MAKERS` for a function with these own `cases`."""
    for maker in CASE_MAKERS:
        yield from maker(prototype, cases)


def changed_data_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield at most one case: a copy of a smoke case, in float32 if possible.

    The copy has other data, because data depend on the label. Tensors that are updated in place have another layout.
    """
    if prototype.guarantee == "random":
        return  # two calls with equal arguments already draw different numbers
    basic = [case for case in cases if case.smoke and _has_elements(case)]
    chosen = next((case for case in basic if case.dtype is Dtype.float32), next(iter(basic), None))
    if chosen is not None:
        updated = [p.name for p in prototype.parameters if p.role is Role.inout]
        arguments = chosen.map_tensors(lambda name, spec: _change_layout(spec) if name in updated else spec)
        yield replace(chosen, label=f"{chosen.label}-again", arguments=arguments, smoke=False)


def _has_elements(case: Case) -> bool:
    """Return whether the case has tensors and all of them have elements."""
    return bool(case.shapes) and all(0 not in shape for shape in case.shapes)


def _change_layout(spec: TensorSpec) -> TensorSpec:
    """Return a tensor with another layout."""
    return replace(spec, layout=layout_named(different_layout(spec.layout.__name__, spec.shape)))


def changed_attribute_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield copies of cases with the other attributes that the function declares (`CaseFacts.attribute_changes`)."""
    for label, changes in CaseFacts.declared_for(prototype).attribute_changes.items():
        case = next(case for case in cases if case.label == label)
        for change in changes:
            arguments = {**case.arguments, **change}
            yield replace(case, label=f"{label}-other-{'-and-'.join(change)}", arguments=arguments, smoke=False)


def _further_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the cases of the functions that are declared as `CaseFacts.further_cases`."""
    for maker in CaseFacts.declared_for(prototype).further_cases:
        yield from maker(prototype, cases)


CASE_MAKERS = (
    changed_data_cases,
    _further_cases,
    changed_attribute_cases,
    untested_number_cases,
    caller_cases,
    exceptional_cases,
    misaligned_cases,
    resized.resized_cases,
)
"""Functions that yield derived cases for a prototype and a function's own cases, in the order of the derived cases."""
