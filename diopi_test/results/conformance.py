"""Count the functions of each family that a vendor implements, and those that conform.

A family is a group of related functions, such as reductions. A function conforms if the vendor implements the function
and none of its cases that count failed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from diopi_proto.interface import prototypes
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import EXECUTED, UNSUCCESSFUL, Verdict
from diopi_test.results.records import CaseRecord, FamilyConformance


def families_of(
    cases: Iterable[CaseRecord],
    decides: Callable[[CaseClass], bool],
    counts: Callable[[CaseRecord], bool] = lambda case: True,
) -> Sequence[FamilyConformance]:
    """Return the conformance of each family with a tested function, by name.

    Args:
        cases: The records of all cases.
        decides: Returns whether the cases of a class decide conformance.
        counts: Returns whether a failed case counts; by default, every failed case does. A run may ignore minor
            failures.

    Returns:
        The families, sorted by name. Cases of the runtime belong to no family.
    """
    by_function: dict[str, list[CaseRecord]] = defaultdict(list)
    for case in cases:
        if case.function in prototypes() and decides(case.class_) and case.verdict is not Verdict.not_run:
            by_function[case.function].append(case)
    by_family: dict[str, list[str]] = defaultdict(list)
    for name in sorted(by_function):
        by_family[prototypes()[name].family].append(name)
    implemented = {
        name
        for name, cases_of_function in by_function.items()
        if any(case.verdict in EXECUTED for case in cases_of_function)
    }
    failing = {
        name
        for name, cases_of_function in by_function.items()
        if any(case.verdict in UNSUCCESSFUL and counts(case) for case in cases_of_function)
    }
    return [_family(name, by_family[name], implemented, failing) for name in sorted(by_family)]


def _family(name: str, functions: Sequence[str], implemented: set[str], failing: set[str]) -> FamilyConformance:
    """Return the conformance of a family.

    Args:
        name: the name of the family.
        functions: the tested functions of the family.
        implemented: the functions of all families of which a case was executed.
        failing: the functions of all families with a failed case that counts.

    Returns:
        The counts and the names of the functions that do not conform.
    """
    not_conforming = tuple(function for function in functions if function in implemented & failing)
    number = sum(function in implemented for function in functions)
    return FamilyConformance(
        family=name,
        functions=len(functions),
        implemented=number,
        conforming=number - len(not_conforming),
        not_implemented=tuple(function for function in functions if function not in implemented),
        not_conforming=not_conforming,
    )
