"""The kill matrix: for each function, which faults its cases can show, and which check catches them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_test.audit.arguments import argument_faults
from diopi_test.audit.fault import Fault
from diopi_test.audit.memory import memory_faults
from diopi_test.audit.results import result_faults
from diopi_test.audit.vendor import SpoiltVendor
from diopi_test.baseline import BaselineCase, make_baseline_case
from diopi_test.cases import select_cases
from diopi_test.execution import run_case
from diopi_test.verdict import Outcome, Verdict


@dataclass(frozen=True)
class Trial:
    """What became of one fault.

    Attributes:
        fault: its name.
        shown: in how many cases it made a difference.
        caught_by: the case and the checks that caught it first; None if it survived.
    """

    fault: str
    shown: int
    caught_by: tuple[str, tuple[str, ...]] | None

    @property
    def survived(self) -> bool:
        """Whether it made a difference and no case noticed."""
        return self.shown > 0 and self.caught_by is None

    def to_json(self) -> dict[str, Any]:
        """The trial as the report shows it."""
        case, checks = self.caught_by or (None, ())
        return {"fault": self.fault, "shown": self.shown, "case": case, "checks": list(checks)}


@dataclass(frozen=True)
class FunctionAudit:
    """The trials of one function."""

    function: str
    trials: Sequence[Trial]

    @property
    def applicable(self) -> list[Trial]:
        """The trials of faults that made a difference: one that never does is no fault of this function."""
        return [trial for trial in self.trials if trial.shown]

    @property
    def survivors(self) -> list[Trial]:
        """The faults no case noticed."""
        return [trial for trial in self.trials if trial.survived]


def audit_function(function: str, level: str = "full") -> FunctionAudit:
    """Try every fault of `function` against its cases at `level`."""
    prototype = lookup(function)
    cases = [make_baseline_case(prototype, case) for case in select_cases(function, level)]
    return FunctionAudit(function, [_try(fault, cases) for fault in _faults(function, cases)])


def _faults(function: str, cases: Sequence[BaselineCase]) -> Iterator[Fault]:
    yield from result_faults()
    yield from argument_faults(function, cases)
    yield from memory_faults()


def _try(fault: Fault, cases: Sequence[BaselineCase]) -> Trial:
    """Run the cases until one catches the fault."""
    vendor = SpoiltVendor(fault, HostRuntime().functions())
    shown = 0
    with vendor.open_device() as device:
        for case in cases:
            outcome = run_case(vendor, device, case)
            shown += vendor.shown
            if vendor.shown and outcome.verdict is Verdict.failed:
                return Trial(fault.name, shown, (case.label, _failed_checks(outcome)))
    return Trial(fault.name, shown, None)


def _failed_checks(outcome: Outcome) -> tuple[str, ...]:
    return tuple(finding.check for finding in outcome.findings if not finding.passed)
