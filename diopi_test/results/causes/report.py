"""The causes of a report: groups of failed cases with severity, smallest case and diagnosis, the worst cause first."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from diopi_test.execution.verdict import UNSUCCESSFUL, Verdict
from diopi_test.results.causes.cause import Cause
from diopi_test.results.causes.diagnosis import diagnose
from diopi_test.results.causes.finding import Finding
from diopi_test.results.causes.grouping import CaseGroup, count_functions, group_cases, largest_factor, smallest
from diopi_test.results.causes.severity import severity_of_case, worst
from diopi_test.results.records import CaseRecord

Counts = Callable[[CaseRecord], bool]
"""Returns whether a failed case affects the exit status."""


def assign_causes(records: Sequence[CaseRecord]) -> tuple[list[CaseRecord], Mapping[str, CaseGroup]]:
    """Return the records of a run with severities and causes, and the groups by the ID of the cause.

    Args:
        records: the records of all cases of the run, without waivers.

    Returns:
        The records in the same order, and the groups.
    """
    groups = {group.signature.id: group for group in group_cases(records)}
    cause_of = {finding.record.id: cause for cause, group in groups.items() for finding in group.findings}
    assigned = [
        replace(
            record,
            severity=severity_of_case(record.verdict, record.checks, record.message),
            cause=cause_of[record.id],
        )
        if record.verdict in UNSUCCESSFUL
        else record
        for record in records
    ]
    return assigned, groups


def list_causes(records: Sequence[CaseRecord], groups: Mapping[str, CaseGroup], counts: Counts) -> tuple[Cause, ...]:
    """Return the causes of the cases that still fail after waivers were applied, the worst cause first.

    Args:
        records: the records of all cases of the report.
        groups: the groups of the failed cases by the ID of the cause.
        counts: whether a failed case affects the exit status.

    Returns:
        The causes, sorted by their effect on the exit status, then by severity, then by their number of functions.
    """
    left = {record.id: record for record in records if record.verdict in UNSUCCESSFUL}
    causes = []
    for group in groups.values():
        findings = [
            replace(finding, record=left[finding.record.id]) for finding in group.findings if finding.record.id in left
        ]
        if findings:
            causes.append(_cause(replace(group, findings=findings), counts))
    return tuple(sorted(causes, key=_order))


def _cause(group: CaseGroup, counts: Counts) -> Cause:
    """Return the cause of a group of failed cases, which is not empty."""
    findings = group.findings
    example = smallest(_counted_first(findings, counts))
    severity = worst(finding.record.severity for finding in findings if finding.record.severity is not None)
    assert severity is not None, "every failed case has a severity"
    diagnosis = diagnose(group)
    return Cause(
        id=group.signature.id,
        severity=severity,
        sentence=group.signature.sentence,
        counts=any(counts(finding.record) for finding in findings),
        cases=len(findings),
        functions=count_functions(findings),
        smallest_case=example.id,
        command=_command_to_reproduce(example),
        factor=largest_factor(findings),
        diagnosis=diagnosis.id if diagnosis else "",
        likely=diagnosis.likely if diagnosis else "",
        look_at=diagnosis.look_at if diagnosis else "",
    )


def _command_to_reproduce(record: CaseRecord) -> str:
    """Return a command that repeats a failure: the case, or all cases of its function if it passes on its own."""
    if record.verdict is not Verdict.flaky:
        return record.command
    return record.command.replace(shlex.join(["--case", record.id]), f"--function {record.function} -n 1")


def _counted_first(findings: Sequence[Finding], counts: Counts) -> Sequence[Finding]:
    """Return the findings of cases that affect the exit status, or all findings if there are none."""
    return [finding for finding in findings if counts(finding.record)] or findings


def _order(cause: Cause) -> tuple[bool, int, int, int, str]:
    """Return the sort key of a cause in the list of a report."""
    return not cause.counts, -cause.severity.rank, -len(cause.functions), -cause.cases, cause.id
