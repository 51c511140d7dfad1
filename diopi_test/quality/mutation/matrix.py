"""Run the mutants of a function against its cases and record which check kills each mutant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from diopi_impl import IEEE, Numerics
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.selection import LEVELS, select_cases
from diopi_test.execution import aliased, in_flight, soak
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.arithmetic.declared_case import derive_declared_case
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.quality.mutation.algorithms import algorithm_mutants
from diopi_test.quality.mutation.aliasing import aliasing_mutants, derive_aliased_cases
from diopi_test.quality.mutation.arguments import argument_mutants
from diopi_test.quality.mutation.caching import CACHING_KINDS, caching_mutants
from diopi_test.quality.mutation.extremes import extreme_mutants
from diopi_test.quality.mutation.formula import formula_mutants
from diopi_test.quality.mutation.geometry import geometry_mutants
from diopi_test.quality.mutation.in_flight import QUEUE_KINDS, make_chains, run_queue_mutant
from diopi_test.quality.mutation.memory import memory_mutants
from diopi_test.quality.mutation.mutant import Effect, Mutant
from diopi_test.quality.mutation.nonfinite import nonfinite_mutants
from diopi_test.quality.mutation.numbers import number_mutants
from diopi_test.quality.mutation.ordering import ordering_mutants
from diopi_test.quality.mutation.precision import precision_mutants
from diopi_test.quality.mutation.randomness import randomness_mutants
from diopi_test.quality.mutation.results import result_mutants
from diopi_test.quality.mutation.size import many_element_mutants, size_mutants
from diopi_test.quality.mutation.soak import SOAK_KINDS, run_soak_mutant
from diopi_test.quality.mutation.underflow import underflow_mutants
from diopi_test.quality.mutation.vendor import MutantVendor
from diopi_test.run.run_case import run_case


class MutationTestError(Exception):
    """A case fails its own expected results, so mutation tests of the function would be meaningless."""


DERIVED = (aliased.PREFIX, in_flight.PREFIX, soak.LABEL)
"""The prefixes of the labels of derived cases. They are derived when they run, so level smoke can't select them."""


@final
@dataclass(frozen=True, kw_only=True)
class MutantResult:
    """The result of running one mutant.

    Attributes:
        mutant: the name of the mutant.
        kind: the kind of the mutant.
        parameter: the parameter that the mutant concerns, if any.
        effects: the number of cases by effect of the mutant, up to the case that killed it.
        killed_by: the label of the case that killed the mutant and the checks that failed; None if no case did.
        earlier: the label of the case whose call cached the value that the killed call used, if any.
    """

    mutant: str
    kind: str
    parameter: str | None
    effects: Mapping[Effect, int]
    killed_by: tuple[str, tuple[str, ...]] | None
    earlier: str | None = None

    @property
    def change_count(self) -> int:
        """The number of cases in which the mutant changed a result."""
        return self.effects.get(Effect.changed, 0)

    @property
    def survived(self) -> bool:
        """Whether the mutant changed a result and no case failed."""
        return self.change_count > 0 and self.killed_by is None


@final
@dataclass(frozen=True)
class MutationReport:
    """The results of all mutants of one function.

    Attributes:
        function: the name of the function.
        results: the result of every mutant.
        basic: the labels of the basic cases, which run first. These are the cases that are declared as smoke cases.
    """

    function: str
    results: list[MutantResult]
    basic: Collection[str] = ()

    @property
    def applicable(self) -> list[MutantResult]:
        """The results of the mutants that changed a result in at least one case; only these mutants count."""
        return [result for result in self.results if result.change_count]

    @property
    def survivors(self) -> list[MutantResult]:
        """The results of the mutants that survived."""
        return [result for result in self.results if result.survived]

    @property
    def smoke_selection(self) -> list[str]:
        """The labels of the cases that level smoke needs in addition to the basic cases.

        These cases kill mutants that the basic cases do not kill, or cache the value that such a mutant uses.
        """
        required = {label for t in self.results if t.killed_by for label in (t.killed_by[0], t.earlier) if label}
        return sorted(label for label in required - set(self.basic) if not label.startswith(DERIVED))

    @property
    def parameters_without_effect(self) -> dict[str, tuple[int, int]]:
        """Return the parameters for which no mutant changed a result in any case.

        Returns:
            By parameter, two numbers of cases, summed over its mutants: those for which the standard defines no result
            of the mutated arguments, and all those to which a mutant applied.
        """
        effects: dict[str, Counter[Effect]] = {}
        for result in self.results:
            if result.parameter is not None:
                effects.setdefault(result.parameter, Counter()).update(result.effects)
        return {
            name: (counts[Effect.undefined], counts[Effect.undefined] + counts[Effect.equivalent])
            for name, counts in effects.items()
            if not counts[Effect.changed]
        }

    @property
    def not_covered(self) -> list[MutantResult]:
        """Return the caching mutants of `CACHING_KINDS` that changed no result.

        A mutant that caches a parameter is left out if no other mutant of this parameter changed a result.
        """
        effective = {result.parameter for result in self.applicable}
        return [
            t
            for t in self.results
            if t.kind in CACHING_KINDS and not t.change_count and t.parameter in {None, *effective}
        ]


def count_killed(results: Iterable[MutantResult]) -> int:
    """Return how many mutants were killed."""
    return sum(result.killed_by is not None for result in results)


def count_killing_checks(results: Iterable[MutantResult]) -> Counter[str]:
    """Return how many mutants each check killed; only the check that failed first counts.

    If the call failed before any check, the message of its outcome takes the place of the check.
    """
    return Counter(result.killed_by[1][0] for result in results if result.killed_by)


MIN_KILLED_IF_DECLARED = 0.95
"""The least share of the mutants that cases must kill with the budgets of a declared arithmetic."""


def suffices(reports: Sequence[MutationReport], numerics: Numerics) -> bool:
    """Return whether the cases kill every mutant, or the required share of all mutants for a declared arithmetic."""
    applicable = sum(len(report.applicable) for report in reports)
    survivors = sum(len(report.survivors) for report in reports)
    permitted = 0.0 if numerics.is_ieee else 1 - MIN_KILLED_IF_DECLARED
    return survivors <= permitted * applicable


def format_score(reports: Sequence[MutationReport]) -> str:
    """Return a sentence with the number of killed mutants and of mutants that changed a result."""
    applicable = sum(len(report.applicable) for report in reports)
    survivors = sum(len(report.survivors) for report in reports)
    functions = f"{len(reports)} function{'' if len(reports) == 1 else 's'}"
    return f"{applicable - survivors} of {applicable} mutants in {functions} killed"


def run_mutation_tests(
    function: str, level: str = "full", numerics: Numerics = IEEE, kinds: Collection[str] = ()
) -> MutationReport:
    """Run every mutant of a function against its cases.

    At a level with generated inputs, only the mutants that depend on the size run; the small cases cover all others.
    For each mutant, the smoke cases run first, then the case that killed the previous mutant, and then the other cases.
    Among these, float32 and small cases run first, because a few small cases kill nearly all mutants. For mutants that
    depend on earlier calls, the cases run in the order of the suite.

    Args:
        function: the name of the function.
        level: the name of the level.
        numerics: the arithmetic that the vendor declares. Its results have the declared errors, and the cases have the
            budgets of the arithmetic. Mutants whose results the arithmetic permits don't run.
        kinds: the kinds of mutants that run; all if empty. Mutants that only derived cases can kill run only if this
            is empty.

    Returns:
        The result of every mutant.

    Raises:
        MutationTestError: if a case fails its own expected results.
    """
    prototype = lookup(function)
    computed = (compute_baseline_case(prototype, case) for case in select_cases(function, level) if not case.is_giant)
    cases = [derive_declared_case(case, numerics) for case in computed]
    _check_without_mutation(function, cases, numerics)
    basic = [case for case in cases if case.smoke]
    remaining = [case for case in cases if not case.smoke]
    remaining.sort(key=lambda case: (case.dtype is not Dtype.float32, _count_elements(case)))
    report = MutationReport(function, [], [case.label for case in basic])
    mutants = size_mutants(function) if LEVELS[level].is_drawn else generate_mutants(function, cases)
    for mutant in mutants:
        if mutant.is_permitted(numerics) or (kinds and (mutant.kind or mutant.name) not in kinds):
            continue
        if mutant.needs_earlier_call:
            selected = {*report.basic, *report.smoke_selection}
            report.results.append(_run_in_suite_order(mutant, cases, selected, numerics))
            continue
        report.results.append(run_mutant(mutant, [*basic, *remaining], numerics))
        _move_to_front(remaining, report.results[-1])
    if not LEVELS[level].is_drawn and not kinds:
        report.results.extend(run_derived_mutants(function, cases))
    return report


def run_derived_mutants(function: str, cases: Sequence[BaselineCase]) -> Iterator[MutantResult]:
    """Run the mutants that only derived cases can kill: mutants of aliasing, calls in flight and soak tests.

    Args:
        function: the name of the function.
        cases: its stored cases.

    Yields:
        The result of every mutant.
    """
    derived = derive_aliased_cases(function, cases)
    yield from (run_mutant(mutant, derived) for mutant in aliasing_mutants(function))
    chains = make_chains(cases)
    for kind in QUEUE_KINDS:
        effects, killed_by = run_queue_mutant(kind, chains)
        yield MutantResult(mutant=kind, kind=kind, parameter=None, effects=effects, killed_by=killed_by)
    for kind in SOAK_KINDS:
        effects, killed_by = run_soak_mutant(kind, cases)
        yield MutantResult(mutant=kind, kind=kind, parameter=None, effects=effects, killed_by=killed_by)


def _count_elements(case: BaselineCase) -> int:
    """Return the number of elements of a case's arguments and results."""
    in_arguments = sum(tensor.values.size for value in case.arguments.values() for tensor in tensors_in(value))
    return in_arguments + sum(entry.values.size for value in case.expected.values() for entry in expected_arrays(value))


def _run_in_suite_order(
    mutant: Mutant, cases: Sequence[BaselineCase], selected: Collection[str], numerics: Numerics
) -> MutantResult:
    """Run a mutant that depends on earlier calls, with the cases in the suite's order.

    The selected cases run first, so that the smoke selection stays small. If they don't kill the mutant, all cases run.

    Args:
        mutant: the mutant.
        cases: the cases of the function in the order of their file.
        selected: the labels of the cases that are in the smoke selection already.
        numerics: the arithmetic that the vendor declares.

    Returns:
        The result of the mutant.
    """
    result = run_mutant(mutant, [case for case in cases if case.label in selected], numerics)
    return result if result.killed_by else run_mutant(mutant, cases, numerics)


def _move_to_front(cases: list[BaselineCase], result: MutantResult) -> None:
    """Move the case that killed the mutant of `result`, if any, to the front: it often kills the next mutant, too."""
    label = result.killed_by[0] if result.killed_by else None
    cases.sort(key=lambda case: case.label != label)


def _check_without_mutation(function: str, cases: Sequence[BaselineCase], numerics: Numerics) -> None:
    """Raise MutationTestError if a case fails without a mutation."""
    unchanged = Mutant(name="none", corrupt_memory=lambda inputs, results: Effect.not_applicable)
    control = run_mutant(unchanged, cases, numerics)
    if control.killed_by:
        label, checks = control.killed_by
        raise MutationTestError(f"{function}[{label}] fails its own expected results: {', '.join(checks)}")


def generate_mutants(function: str, cases: Sequence[BaselineCase]) -> Iterator[Mutant]:
    """Yield all mutants of a function except those that depend on the size.

    Args:
        function: the name of the function.
        cases: its cases, whose attribute values determine some mutants.

    Yields:
        The mutants in the order in which they run.
    """
    yield from result_mutants(function)
    yield from argument_mutants(function, cases)
    yield from formula_mutants(function)
    yield from ordering_mutants(function)
    yield from precision_mutants()
    yield from algorithm_mutants(function)
    yield from underflow_mutants(function)
    yield from number_mutants(function)
    yield from randomness_mutants(function)
    yield from memory_mutants()
    yield from geometry_mutants(function)
    yield from nonfinite_mutants(function)
    yield from extreme_mutants(function)
    yield from many_element_mutants(function)
    yield from caching_mutants(function)


def run_mutant(mutant: Mutant, cases: Iterable[BaselineCase], numerics: Numerics = IEEE) -> MutantResult:
    """Run the cases that the mutant may affect until one kills it.

    Args:
        mutant: the mutant.
        cases: the cases in the order in which they run, with the budgets of the arithmetic.
        numerics: the arithmetic that the vendor declares.

    Returns:
        The result of the mutant.
    """
    vendor = MutantVendor(mutant, HostRuntime().functions(), numerics)
    effects: Counter[Effect] = Counter()
    killed_by = None
    with vendor.open_device() as device:
        for case in cases:
            failed: tuple[str, ...] = ()
            if vendor.prepare(case):
                failed = _failed_checks(run_case(vendor, device, case))
            effects[Effect.changed if failed else vendor.effect] += 1
            if failed:
                killed_by = case.label, failed
                break
    earlier = vendor.earlier if killed_by else None
    return MutantResult(
        mutant=mutant.name,
        kind=mutant.kind or mutant.name,
        parameter=mutant.parameter,
        effects=effects,
        killed_by=killed_by,
        earlier=earlier,
    )


def _failed_checks(outcome: Outcome) -> tuple[str, ...]:
    """Return the names of the failed checks; if the call failed before any check, only the message of the outcome."""
    if outcome.verdict is not Verdict.passed and not outcome.check_results:
        return (outcome.message,)
    return tuple(result.check for result in outcome.check_results if not result.passed)
