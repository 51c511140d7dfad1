"""The kill matrix: for each function, which faults its cases can show, and which check catches them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.audit.arguments import argument_faults
from diopi_test.audit.chance import chance_faults
from diopi_test.audit.fault import Effect, Fault
from diopi_test.audit.formula import formula_faults
from diopi_test.audit.memory import memory_faults
from diopi_test.audit.ordering import ordering_faults
from diopi_test.audit.precision import precision_faults
from diopi_test.audit.results import result_faults
from diopi_test.audit.vendor import SpoiltVendor
from diopi_test.baseline import BaselineCase, make_baseline_case
from diopi_test.cases import select_cases
from diopi_test.execution import run_case
from diopi_test.verdict import Outcome, Verdict


class AuditError(Exception):
    """A function whose right results are not accepted: nothing that is said of wrong ones means anything."""


@dataclass(frozen=True)
class Trial:
    """What became of one fault.

    Attributes:
        fault, kind, parameter: name, kind and parameter of the fault.
        effects: in how many cases it had which effect, up to the case that caught it.
        caught_by: the case and the checks that caught it first; None if it survived.
    """

    fault: str
    kind: str
    parameter: str | None
    effects: Mapping[Effect, int]
    caught_by: tuple[str, tuple[str, ...]] | None

    @property
    def shown(self) -> int:
        """In how many cases it made a difference."""
        return self.effects.get(Effect.shown, 0)

    @property
    def survived(self) -> bool:
        """Whether it made a difference and no case noticed."""
        return self.shown > 0 and self.caught_by is None


@dataclass(frozen=True)
class FunctionAudit:
    """The trials of one function.

    Attributes:
        trials: what became of every fault.
        basic: the labels of the basic cases, which every fault is tried on first.
    """

    function: str
    trials: Sequence[Trial]
    basic: Collection[str] = ()

    @property
    def applicable(self) -> list[Trial]:
        """The trials of faults that made a difference: one that never does is no fault of this function."""
        return [trial for trial in self.trials if trial.shown]

    @property
    def survivors(self) -> list[Trial]:
        """The faults no case noticed."""
        return [trial for trial in self.trials if trial.survived]

    @property
    def telling(self) -> list[str]:
        """The labels of the cases that caught what the basic ones miss."""
        caught_by = {trial.caught_by[0] for trial in self.trials if trial.caught_by}
        return sorted(caught_by - set(self.basic))

    @property
    def unshown(self) -> dict[str, tuple[int, int]]:
        """The parameters no fault of which made a difference in any case.

        For each, in how many tries to mistake it for another the standard had no answer, and how many tries there were.
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

    The basic cases come first, and then those that caught a fault before: few cases catch nearly all.

    Raises AuditError when a case does not accept its own expected results.
    """
    prototype = lookup(function)
    cases = [make_baseline_case(prototype, case) for case in select_cases(function, level)]
    _check_control(function, cases)
    basic, others = [case for case in cases if case.smoke], [case for case in cases if not case.smoke]
    others.sort(key=lambda case: case.dtype is not Dtype.float32)
    trials = []
    for fault in faults_of(function, cases):
        trials.append(try_fault(fault, [*basic, *others]))
        _move_to_front(others, trials[-1])
    return FunctionAudit(function, trials, [case.label for case in basic])


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
    yield from chance_faults(function)
    yield from memory_faults()


def try_fault(fault: Fault, cases: Sequence[BaselineCase]) -> Trial:
    """Run the cases that may show a fault until one catches it."""
    vendor = SpoiltVendor(fault, HostRuntime().functions())
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
    return Trial(fault.name, fault.kind or fault.name, fault.parameter, effects, caught_by)


def _failed_checks(outcome: Outcome) -> tuple[str, ...]:
    """The checks that failed; the code of the call, if it was no success."""
    if outcome.verdict is not Verdict.passed and not outcome.findings:
        return (outcome.message,)
    return tuple(finding.check for finding in outcome.findings if not finding.passed)
