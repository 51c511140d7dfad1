"""Run one case of a function on a newly opened device of a vendor."""

from __future__ import annotations

from functools import cache

from diopi_impl import BaseVendor
from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Outcome
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.run_case import run_case


@cache
def baseline_case(function: str, label: str) -> BaselineCase:
    """Return the case of level full of `function` with this label, with its data and expected results."""
    case = next(case for case in select_cases(function, "full") if case.label == label)
    return compute_baseline_case(lookup(function), case)


def outcome_of(vendor: BaseVendor, function: str, label: str) -> Outcome:
    """Return the outcome of the case on the vendor."""
    with vendor.open_device() as device:
        return run_case(vendor, device, baseline_case(function, label))


def failed_checks(outcome: Outcome) -> list[str]:
    """Return the names of the failed checks."""
    return [finding.check for finding in outcome.check_results if not finding.passed]
