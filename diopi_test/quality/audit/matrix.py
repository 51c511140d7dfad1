"""The kill matrix: for each function, which faults its cases can show, and which check catches them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline.evaluate import compute_baseline_case
from diopi_test.baseline.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.cases.model import is_huge
from diopi_test.cases.selection import LEVELS, select_cases
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.harness.run_case import run_case
from diopi_test.quality.audit.arguments import argument_faults
from diopi_test.quality.audit.chance import chance_faults
from diopi_test.quality.audit.fault import Effect, Fault
from diopi_test.quality.audit.formula import formula_faults
from diopi_test.quality.audit.kept import TOLD_APART, kept_faults
from diopi_test.quality.audit.memory import memory_faults
from diopi_test.quality.audit.numbers import number_faults
from diopi_test.quality.audit.ordering import ordering_faults
from diopi_test.quality.audit.precision import precision_faults
from diopi_test.quality.audit.results import result_faults
from diopi_test.quality.audit.size import faults_of_many, size_faults
from diopi_test.quality.audit.vendor import VendorWithFault


class AuditError(Exception):
    """The right results of a function are not accepted, so that its audit would mean nothing."""


@final
@dataclass(frozen=True)
class Trial:
    """The outcome of one fault.

    Attributes:
        fault, kind, parameter: name, kind and parameter of the fault.
        effects: in how many cases it had which effect, up to the case that caught it.
        caught_by: the case and the checks that caught it first; None if it survived.
        earlier: the case whose call left behind what the other used, if two calls are needed.
    """

    fault: str
    kind: str
    parameter: str | None
    effects: Mapping[Effect, int]
    caught_by: tuple[str, tuple[str, ...]] | None
    earlier: str | None = None

    @property
    def shown(self) -> int:
        """In how many cases it changed a result."""
        return self.effects.get(Effect.shown, 0)

    @property
    def survived(self) -> bool:
        """Whether it changed a result and no case failed."""
        return self.shown > 0 and self.caught_by is None


@final
@dataclass(frozen=True)
class FunctionAudit:
    """The trials of one function.

    Attributes:
        trials: the outcome of every fault.
        basic: the labels of the basic cases, which every fault is tried on first.
    """

    function: str
    trials: list[Trial]
    basic: Collection[str] = ()

    @property
    def applicable(self) -> list[Trial]:
        """The trials of faults that changed a result: one that never does is no fault of this function."""
        return [trial for trial in self.trials if trial.shown]

    @property
    def survivors(self) -> list[Trial]:
        """The faults that no case caught."""
        return [trial for trial in self.trials if trial.survived]

    @property
    def smoke_selection(self) -> list[str]:
        """The labels of the cases that caught what the basic ones miss, and of those they need before them."""
        needed = {label for t in self.trials if t.caught_by for label in (t.caught_by[0], t.earlier) if label}
        return sorted(needed - set(self.basic))

    @property
    def unshown(self) -> dict[str, tuple[int, int]]:
        """The parameters no fault of which changed a result in any case.

        For each: in how many trials the standard defines no result for the mistaken value, and the number of trials.
        """
        effects: dict[str, Counter[Effect]] = {}
        for trial in self.trials:
            if trial.parameter is not None:
                effects.setdefault(trial.parameter, Counter()).update(trial.effects)
        return {
            name: (counts[Effect.refused], counts[Effect.refused] + counts[Effect.same])
            for name, counts in effects.items()
            if not counts[Effect.shown]
        }

    @property
    def indistinct(self) -> list[Trial]:
        """The faults of what is kept that no two cases show, although what is kept matters."""
        matters = {trial.parameter for trial in self.applicable}
        return [t for t in self.trials if t.kind in TOLD_APART and not t.shown and t.parameter in {None, *matters}]


def caught(trials: Iterable[Trial]) -> int:
    """How many of some faults were caught."""
    return sum(trial.caught_by is not None for trial in trials)


def first_seen_by(trials: Iterable[Trial]) -> Counter[str]:
    """The checks that saw faults first, and how many each; a call that failed is seen by an error."""
    found = (trial.caught_by[1] for trial in trials if trial.caught_by)
    return Counter(checks[0] if checks else "an error" for checks in found)


def count(audits: Sequence[FunctionAudit]) -> str:
    """How many faults were caught, of those that made a difference."""
    applicable = sum(len(one.applicable) for one in audits)
    survivors = sum(len(one.survivors) for one in audits)
    return f"{applicable - survivors} of {applicable} faults in {len(audits)} functions caught"


def audit_function(function: str, level: str = "full") -> FunctionAudit:
    """Try every fault of `function` against its cases at `level`.

    At a level whose inputs are drawn, those are the faults of size: all others are for the small cases. The basic cases
    come first, then those that caught a fault before, and small ones before large ones: a few small cases catch nearly
    all. Only where the order of calls matters it is that of the suite.

    Raises AuditError when a case does not accept its own expected results.
    """
    prototype = lookup(function)
    cases = [compute_baseline_case(prototype, case) for case in select_cases(function, level) if not is_huge(case)]
    _check_control(function, cases)
    basic, others = [case for case in cases if case.smoke], [case for case in cases if not case.smoke]
    others.sort(key=lambda case: (case.dtype is not Dtype.float32, _elements(case)))
    audit = FunctionAudit(function, [], [case.label for case in basic])
    for fault in size_faults(function) if LEVELS[level].is_drawn else faults_of(function, cases):
        if fault.is_of_sequences:
            audit.trials.append(_try_in_order(fault, cases, {*audit.basic, *audit.smoke_selection}))
            continue
        audit.trials.append(try_fault(fault, [*basic, *others]))
        _move_to_front(others, audit.trials[-1])
    return audit


def _elements(case: BaselineCase) -> int:
    """How many elements its arguments and results have."""
    given = sum(tensor.values.size for value in case.arguments.values() for tensor in tensors_in(value))
    return given + sum(one.values.size for value in case.expected.values() for one in expected_arrays(value))


def _try_in_order(fault: Fault, cases: Sequence[BaselineCase], chosen: Collection[str]) -> Trial:
    """Try a fault that depends on earlier calls, in the order in which the suite makes them.

    That is the order of the cases in their file. Those that are chosen already, by their labels, are tried alone first,
    so that few cases catch nearly all here too.
    """
    trial = try_fault(fault, [case for case in cases if case.label in chosen])
    return trial if trial.caught_by else try_fault(fault, cases)


def _move_to_front(cases: list[BaselineCase], trial: Trial) -> None:
    label = trial.caught_by[0] if trial.caught_by else None
    cases.sort(key=lambda case: case.label != label)


def _check_control(function: str, cases: Sequence[BaselineCase]) -> None:
    control = try_fault(Fault("none", after=lambda inputs, results: Effect.absent), cases)
    if control.caught_by:
        label, checks = control.caught_by
        raise AuditError(f"{function}[{label}] does not accept the results it expects: {', '.join(checks)}")


def faults_of(function: str, cases: Sequence[BaselineCase]) -> Iterator[Fault]:
    """The faults that are tried on a function with these cases."""
    yield from result_faults(function)
    yield from argument_faults(function, cases)
    yield from formula_faults(function)
    yield from ordering_faults(function)
    yield from precision_faults()
    yield from number_faults(function)
    yield from chance_faults(function)
    yield from memory_faults()
    yield from faults_of_many(function)
    yield from kept_faults(function)


def try_fault(fault: Fault, cases: Sequence[BaselineCase]) -> Trial:
    """Run the cases that may show a fault until one catches it."""
    vendor = VendorWithFault(fault, HostRuntime().functions())
    effects: Counter[Effect] = Counter()
    caught_by = None
    with vendor.open_device() as device:
        for case in cases:
            failed: tuple[str, ...] = ()
            if vendor.prepare(case):
                failed = _failed_checks(run_case(vendor, device, case))
            effects[Effect.shown if failed else vendor.effect] += 1
            if failed:
                caught_by = case.label, failed
                break
    earlier = vendor.earlier if caught_by else None
    return Trial(fault.name, fault.kind or fault.name, fault.parameter, effects, caught_by, earlier)


def _failed_checks(outcome: Outcome) -> tuple[str, ...]:
    """The checks that failed; the code of the call, if it was no success."""
    if outcome.verdict is not Verdict.passed and not outcome.check_results:
        return (outcome.message,)
    return tuple(finding.check for finding in outcome.check_results if not finding.passed)
