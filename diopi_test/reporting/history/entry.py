"""The rows that a run adds to the history, which is a database of the results of many runs.

Each dataclass in this module corresponds to a table, and its fields to the columns. A cause is a group of failed cases
that probably have the same defect.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from diopi_test.baseline.codec import to_json
from diopi_test.execution.verdict import UNSUCCESSFUL, Verdict
from diopi_test.results.causes.grouping import group_cases
from diopi_test.results.causes.provisional import provisional_cause
from diopi_test.results.causes.severity import worst
from diopi_test.results.records import CaseRecord, Report, RunOrigin
from diopi_test.waivers.rules import remove_waiver


@final
@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """A run as the history stores it; the fields are the columns of the table `runs`.

    Attributes:
        identity: a digest that distinguishes the run from others. A resumed run keeps its identity.
        content: a digest of the whole report.
        started: the time at which the run began, as ISO 8601.
        vendor, version: the name and the version of the vendor.
        library: the SHA-256 of a compiled vendor's file; empty for other vendors.
        device, driver: the name of the device and the version of its driver; empty if they are not known.
        host, processor: the name of the host and of its processor.
        revision: the revision of the vendor's sources.
        command: the command line of the run.
        workers: the number of workers; None if it is not known.
        level: the name of the level.
        baseline: the SHA-256 of the baseline.
        numerics: the name of the declared arithmetic, with the beginning of its digest unless it is IEEE 754.
        standard: the version of the standard.
        python, platform: the version of Python, and the platform.
        seconds: the duration of the run.
        incomplete: whether some cases have no verdict.
        exit_status: the exit status of the run.
    """

    identity: str
    content: str
    started: str
    vendor: str
    version: str
    library: str
    device: str
    driver: str
    host: str
    processor: str
    revision: str
    command: str
    workers: int | None
    level: str
    baseline: str
    numerics: str
    standard: str
    python: str
    platform: str
    seconds: float
    incomplete: bool
    exit_status: int

    @property
    def device_name(self) -> str:
        """Return the name of the device, or the host's processor if the device has no name."""
        return self.device or self.processor

    @property
    def place(self) -> str:
        """Return the device with its driver and host, for people."""
        device = " ".join(filter(None, (self.device_name, self.driver and f"(driver {self.driver})")))
        return " on ".join(filter(None, (device, self.host))) or "unknown device"

    @property
    def title(self) -> str:
        """Return the name and the version of the vendor."""
        return f"{self.vendor} {self.version}".strip()


@final
@dataclass(frozen=True, kw_only=True)
class FunctionEntry:
    """The results of a function in a run; the fields are columns of the table `functions`.

    Attributes:
        function: the name of the function.
        cases: the number of its cases.
        passed: the number of passed cases.
        unsuccessful: the number of failed cases of any severity whose class affects the exit status.
        ratio: the largest error of a passed case, divided by the largest error that is allowed; None if no case
            measured an error greater than 0.
        ratio_case: the ID of the case with this ratio; empty if `ratio` is None.
        seconds: the total duration of its cases.
    """

    function: str
    cases: int
    passed: int
    unsuccessful: int
    ratio: float | None
    ratio_case: str
    seconds: float


@final
@dataclass(frozen=True, kw_only=True)
class CauseEntry:
    """A cause of failures in a run; the fields are columns of the table `causes`.

    Attributes:
        cause: the ID of the cause.
        severity: the worst severity of its cases; empty if it is not known.
        sentence: a sentence that describes what its cases have in common.
        cases: the number of failed cases without a waiver.
        functions: the number of functions with such cases.
        waived: the number of failed cases that a waiver allows.
    """

    cause: str
    severity: str
    sentence: str
    cases: int
    functions: int
    waived: int = 0


def run_entry(report: Report, origin: RunOrigin) -> RunEntry:
    """Return the entry of a run.

    Args:
        report: The report of the run.
        origin: The origin of the run, as `complete_origin` returns it.

    Returns:
        The entry.
    """
    content = _digest(to_json(report))
    start = report.origin and [report.origin.started, report.origin.host, report.command, to_json(report.baseline)]
    return RunEntry(
        identity=_digest(start) if start else content,
        content=content,
        started=origin.started,
        vendor=report.vendor.name,
        version=report.vendor.version,
        library=report.vendor.digest,
        device=origin.device,
        driver=origin.driver,
        host=origin.host,
        processor=origin.processor,
        revision=origin.commit,
        command=report.command,
        workers=origin.workers or None,
        level=report.baseline.level,
        baseline=report.baseline.digest,
        numerics=report.numerics.title,
        standard=report.proto_version,
        python=report.environment.python,
        platform=report.environment.platform,
        seconds=report.summary.seconds,
        incomplete=report.summary.incomplete,
        exit_status=report.exit_status,
    )


def complete_origin(report: Report, started: str, *, device: str = "", driver: str = "", commit: str = "") -> RunOrigin:
    """Return when, where and on which device a run took place, with corrections by the user.

    Args:
        report: The report of the run.
        started: The start time as ISO 8601, which is used only if the report does not state its origin.
        device: The device; empty to keep the device in the report.
        driver: The version of the driver; empty to keep the version in the report.
        commit: The revision of the vendor's sources; empty to keep the revision in the report.

    Returns:
        The origin.
    """
    origin = report.origin or RunOrigin(started=started, host="", processor="", workers=0)
    return replace(
        origin,
        device=device or origin.device,
        driver=driver or origin.driver,
        commit=commit or origin.commit,
    )


def function_entries(report: Report) -> Sequence[FunctionEntry]:
    """Return the entries of all functions of a run, sorted by name."""
    by_function: dict[str, list[CaseRecord]] = defaultdict(list)
    for case in report.cases:
        by_function[case.function].append(case)
    return [_function_entry(name, by_function[name], report) for name in sorted(by_function)]


def _function_entry(name: str, cases: Sequence[CaseRecord], report: Report) -> FunctionEntry:
    """Return the entry of a function.

    Args:
        name: The name of the function.
        cases: The records of its cases.
        report: The report of the run, which decides which classes count.
    """
    verdicts = Counter(case.verdict for case in cases)
    passed = [case for case in cases if case.verdict is Verdict.passed and math.isfinite(case.ratio)]
    closest = max(passed, key=lambda case: case.ratio, default=None)
    has_ratio = closest is not None and closest.ratio > 0
    return FunctionEntry(
        function=name,
        cases=len(cases),
        passed=verdicts[Verdict.passed],
        unsuccessful=sum(case.verdict in UNSUCCESSFUL and report.decides(case.class_) for case in cases),
        ratio=closest.ratio if closest is not None and has_ratio else None,
        ratio_case=closest.id if closest is not None and has_ratio else "",
        seconds=round(sum(case.seconds for case in cases), 6),
    )


def cause_entries(report: Report) -> Sequence[CauseEntry]:
    """Return the entries of the causes of a run, including the causes whose cases are all waived."""
    waived: dict[str, list[CaseRecord]] = defaultdict(list)
    for case in report.cases:
        if case.verdict is Verdict.waived and case.cause:
            waived[case.cause].append(case)
    failing = [
        CauseEntry(
            cause=cause.id,
            severity=cause.severity.value,
            sentence=cause.sentence,
            cases=cause.cases,
            functions=len(cause.functions),
            waived=len(waived.pop(cause.id, ())),
        )
        for cause in report.causes
    ]
    return [*failing, *_waived_cause_entries(report, waived)]


def cause_functions(report: Report) -> Mapping[str, frozenset[str]]:
    """Return the functions with failed or waived cases of each cause of a run, by the ID of the cause."""
    functions: dict[str, set[str]] = defaultdict(set)
    for case in report.cases:
        if case.cause and (case.verdict in UNSUCCESSFUL or case.verdict is Verdict.waived):
            functions[case.cause].add(case.function)
    return {cause: frozenset(names) for cause, names in functions.items()}


def _waived_cause_entries(report: Report, waived: Mapping[str, Sequence[CaseRecord]]) -> Iterator[CauseEntry]:
    """Yield the entries of the causes whose cases are all waived.

    Args:
        report: The report of the run. Its list of causes does not contain these causes.
        waived: The records of the waived cases of each of these causes, by the ID of the cause.
    """
    groups = group_cases([remove_waiver(case) for case in report.cases]) if waived else ()
    sentences = {group.signature.id: group.signature.sentence for group in groups}
    for cause, cases in waived.items():
        severity = worst(case.severity for case in cases if case.severity is not None)
        yield CauseEntry(
            cause=cause,
            severity=severity.value if severity else "",
            sentence=sentences.get(cause) or provisional_cause(remove_waiver(cases[0])).text,
            cases=0,
            functions=0,
            waived=len(cases),
        )


def _digest(content: object) -> str:
    """Return the SHA-256 of a JSON value in hexadecimal; the order of keys has no effect."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
