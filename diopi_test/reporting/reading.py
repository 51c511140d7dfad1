"""Read reports of this and former versions: the JSON of `diopi-test run --json`, or the log of a run.

If the report is derived from a log, the run may still be in progress.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from diopi_test.baseline.codec import RecordError, from_json
from diopi_test.execution.verdict import UNSUCCESSFUL
from diopi_test.results.causes.report import assign_causes, list_causes
from diopi_test.results.causes.severity import Severity
from diopi_test.results.conformance import families_of
from diopi_test.results.former_versions import upgrade_report
from diopi_test.results.log import LogError
from diopi_test.results.records import READABLE_VERSIONS, SCHEMA_VERSION, Report
from diopi_test.results.trainability import model_reports
from diopi_test.run.recorder import LogContent


class ReportError(Exception):
    """A file that is neither a report nor a log, or is damaged; the message names the file and the reason."""


def read_report(path: Path) -> Report:
    """Read the report at `path`.

    Args:
        path: The path of a report in JSON, or of the log of a run, from which the report is then derived.

    Returns:
        The report.

    Raises:
        ReportError: The file can't be read, is neither of them, or has an unknown schema version.
    """
    try:
        with path.open("rb") as file:
            is_log = file.readline().startswith(b'{"kind":')
        return _read_log(path) if is_log else _read_json(path.read_text("utf-8"))
    except (OSError, ValueError, LogError) as error:
        raise ReportError(f"{path} is no report of diopi-test run --json, and no log: {error}") from error


def _read_json(text: str) -> Report:
    """Return the report in a JSON text of this or a former schema version.

    The causes of failures are added if the version did not have them.
    """
    content = json.loads(text)
    version = content.get("schema_version") if isinstance(content, dict) else None
    _check_version(version, "report")
    report = from_json(Report, upgrade_report(content))
    is_old = any(case.verdict in UNSUCCESSFUL and not case.cause for case in report.cases)
    return with_causes(report) if is_old else report


def with_causes(report: Report) -> Report:
    """Group the failed cases of a report into causes again, and update everything that depends on the severities.

    The verdicts, including `waived`, stay the same.

    Args:
        report: The report.

    Returns:
        The report with new causes, and with the new results of networks and families of functions.
    """
    cases, groups = assign_causes(report.cases)
    grouped = replace(report, cases=tuple(cases))
    models = model_reports(report.baseline.level, cases, grouped.counts)
    families = tuple(families_of(cases, grouped.decides, grouped.counts))
    causes = list_causes(cases, groups, grouped.counts)
    return replace(grouped, causes=causes, models=models, families=families if report.families else ())


def with_fail_on(report: Report, fail_on: Severity) -> Report:
    """Return the report as if the run had been started with this `--fail-on`.

    Args:
        report: The report.
        fail_on: The least severity of failures that affect the exit status.
    """
    return with_causes(replace(report, fail_on=fail_on))


def _read_log(path: Path) -> Report:
    """Return the report that follows from the log of a run."""
    content = LogContent.read(path)
    _check_version(content.header.schema_version, "log")
    return content.report()


def _check_version(version: object, kind: str) -> None:
    """Raise RecordError if files of this schema version can't be read; `kind` names the file in the message."""
    if version not in READABLE_VERSIONS:
        raise RecordError(f"expected a {kind} with schema_version {SCHEMA_VERSION}, found {version}")
