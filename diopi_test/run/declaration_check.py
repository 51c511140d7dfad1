"""The comparison of a declared arithmetic with measurements at the end of a run.

Each field of the declaration is measured in a worker, like a case: with the time limit of a case, and in a process
whose end does not affect the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from diopi_impl import BaseVendor, Numerics
from diopi_impl.numerics.digest import LABELS
from diopi_impl.numerics.validation import deviating_fields
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import CheckResult, Outcome, Verdict
from diopi_test.results.declaration_check import Contradiction, DeclarationCheck, UnmeasuredField
from diopi_test.run.case_executor import CaseExecutor
from diopi_test.run.collection import Collected
from diopi_test.run.isolation.executor import ScheduledCase
from lib_rt import Device

NUMERICS = "numerics"
"""The name that stands for a function in the tasks that measure a field of a declaration."""


_MEASURED_WITH = {"convolution_products": "float32_products"}
"""Fields that are not measured on their own: the field on the right is measured for both."""


def select_fields(declared: Numerics) -> list[str]:
    """Return the names of the fields of a declaration to measure.

    Fields that are None are omitted, because the declaration says nothing about them. Labels, such as the name, are
    omitted, because they do not describe the arithmetic. Fields that are measured together with another one are omitted
    as well.
    """
    names = [entry.name for entry in fields(Numerics) if entry.name not in {*LABELS, *_MEASURED_WITH}]
    return [name for name in names if getattr(declared, name) is not None]


def measure_field(vendor: BaseVendor, device: Device, declared: Numerics, name: str) -> Outcome:
    """Measure a field of the declared arithmetic in this process.

    Args:
        vendor: The vendor.
        device: An open device of the vendor.
        declared: The declaration.
        name: The field.

    Returns:
        An outcome with the verdict `passed`, which has one check result per contradiction. If the vendor uses
        undeclared arithmetic, the check failed. If the vendor does not use arithmetic that is declared, the check
        passed with a message. Without a contradiction, there is one passed check result without a message. If the field
        could not be measured, there is no check result.
    """
    from diopi_test.fingerprint.numerics import find_contradictions, measure_on_device

    measured = measure_on_device(vendor, device, [name])
    if name in measured.not_measured:
        return Outcome(verdict=Verdict.passed, message="the vendor lacks the functions, or their calls fail")
    results = [
        CheckResult(check=entry.field, passed=not entry.is_undeclared, message=entry.message)
        for entry in find_contradictions(measured, declared)
    ]
    return Outcome(verdict=Verdict.passed, check_results=results or [CheckResult(check=name, passed=True)])


def check_declaration(executor: CaseExecutor, declared: Numerics) -> DeclarationCheck:
    """Measure each field of a declared arithmetic in a worker, and compare the measurements with the declaration.

    Args:
        executor: The executor of the run, whose workers measure.
        declared: The declared arithmetic of the run.

    Returns:
        The comparison. A field is listed as not measured, with the reason, if its measurement ended abnormally, for
        example because the vendor crashed. If the vendor lacks the functions for a measurement, or their calls fail,
        the field is listed only if its declaration deviates from IEEE arithmetic.
    """
    names = select_fields(declared)
    outcomes: dict[str, Outcome] = {}

    def report(case: Collected, outcome: Outcome, seconds: float) -> None:
        outcomes[case.label] = outcome

    tasks = [Collected(function=NUMERICS, label=name, case_class=CaseClass.open) for name in names]
    executor.run(([ScheduledCase(Path(), task)] for task in tasks), report)
    return _combine(declared, [(name, outcomes[name]) for name in names])


def _combine(declared: Numerics, outcomes: Sequence[tuple[str, Outcome]]) -> DeclarationCheck:
    """Return the comparison from the outcome of each field.

    A field that could not be measured, although the measurement ended normally, is listed only if it deviates from IEEE
    arithmetic. Other fields declare nothing beyond the standard.
    """
    failed_checks = [result for _, outcome in outcomes for result in outcome.check_results if result.message]
    deviating = {_MEASURED_WITH.get(name, name) for name in deviating_fields(declared)}
    return DeclarationCheck(
        measured=tuple(name for name, outcome in outcomes if outcome.check_results),
        contradictions=tuple(Contradiction(entry.check, not entry.passed, entry.message) for entry in failed_checks),
        unmeasured=tuple(
            UnmeasuredField(name, outcome.message)
            for name, outcome in outcomes
            if outcome.verdict is not Verdict.passed or (not outcome.check_results and name in deviating)
        ),
    )
