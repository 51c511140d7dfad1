"""Call PyTorch directly with the cases of the smoke level, and find the demanded cases that it does not pass.

A case is demanded if its class must pass for a run to succeed (`CaseClass.is_demanded`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from diopi_impl.aten_cpu import vendor
from diopi_test.baseline.location import folder_to_read
from diopi_test.baseline.store import BaselineFile, baseline_file
from diopi_test.cases.case import CaseClass
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.run_case import run_case


def outcomes(functions: Iterable[str]) -> Iterator[tuple[BaselineCase, CaseClass, Outcome]]:
    """Yield each stored smoke case with its class and the outcome of a direct call of PyTorch; one call per case."""
    device = vendor.open_device()
    try:
        for function in functions:
            classes = {case.label: case.case_class for case in select_cases(function, "smoke")}
            for case in BaselineFile(baseline_file(folder_to_read("smoke"), function)):
                if case.label in classes:
                    yield case, classes[case.label], run_case(vendor, device, replace(case, smoke=False))
    finally:
        device.close()


def unmet_demands(functions: Iterable[str]) -> list[str]:
    """Return the demanded cases that fail, with the reasons; waived cases and missing functions are accepted."""
    passing = (Verdict.passed, Verdict.not_implemented)
    return [
        f"{case.id}: {outcome.message}"
        for case, case_class, outcome in outcomes(functions)
        if case_class.is_demanded
        and outcome.verdict not in passing
        and not any(waiver.matches(case.id) for waiver in vendor.waivers)
    ]
