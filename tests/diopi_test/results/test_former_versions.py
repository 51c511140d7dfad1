"""Logs, reports, manifests and options of earlier versions are still read."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from case_records import case_record, report_of
from click.testing import CliRunner

from diopi_impl import find_numerics
from diopi_test.baseline.codec import RecordError, from_json, to_json
from diopi_test.baseline.manifest import ListedCase
from diopi_test.cases.case import CaseClass
from diopi_test.cli import main
from diopi_test.execution.verdict import CheckResult
from diopi_test.reporting.reading import ReportError, read_report
from diopi_test.results.log import LogRecord, seal
from diopi_test.results.records import CaseRecord
from diopi_test.run.options import RunOptions

NEGATIVE = replace(
    case_record(
        "diopiAdd[negative-out-null]",
        "failed",
        "accepted",
        CheckResult(check="process_state", passed=False, message="changed"),
    ),
    class_=CaseClass.negative,
)


def in_version_1(content: Any) -> Any:
    """Return the JSON of a log or report with the names of version 1."""
    text = json.dumps(content).replace('"negative"', '"refusal"').replace('"process_state"', '"surroundings"')
    former = json.loads(text.replace('"schema_version": 3', '"schema_version": 1'))
    if isinstance(former, dict):
        former.pop("numerics", None)
    return former


def assert_has_current_names(record: CaseRecord) -> None:
    """Assert that a record has the current names of its class and its check."""
    assert (record.class_, [check.check for check in record.checks]) == (CaseClass.negative, ["process_state"])


def test_report_of_version_1_is_read_with_current_names(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    content = in_version_1(to_json(report_of([NEGATIVE])))
    assert (content["schema_version"], content["cases"][0]["class"]) == (1, "refusal")
    file.write_text(json.dumps(content), "utf-8")
    report = read_report(file)
    assert_has_current_names(report.cases[0])
    assert report.summary.classes["negative"].failed == 1
    assert "refusal" not in report.summary.classes
    assert report.exit_status == 0


def test_log_of_version_1_is_read_with_current_names(tmp_path: Path) -> None:
    file = tmp_path / "run.log.jsonl"
    header = to_json(RunOptions(vendor="small").header(""))
    records = [LogRecord("run", header), LogRecord("due", [NEGATIVE.id]), LogRecord("case", to_json(NEGATIVE))]
    former = [LogRecord(record.kind, in_version_1(record.content)) for record in records]
    file.write_bytes(b"".join(map(seal, [*former, LogRecord("end", 0.5)])))
    assert b"refusal" in file.read_bytes() and b"surroundings" in file.read_bytes()
    report = read_report(file)
    assert_has_current_names(report.cases[0])
    assert report.summary.classes["negative"].failed == 1


def test_report_of_version_2_was_evaluated_for_ieee(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    content = to_json(report_of([NEGATIVE], numerics=find_numerics("tf32"))) | {"schema_version": 2}
    del content["numerics"]
    file.write_text(json.dumps(content), "utf-8")
    assert read_report(file).numerics.declaration.is_ieee
    file.write_text(json.dumps(content | {"schema_version": 3}), "utf-8")
    with pytest.raises(ReportError, match="missing numerics"):
        read_report(file)


def test_manifest_entry_with_the_former_class_name_is_read() -> None:
    assert from_json(ListedCase, {"label": "x", "class": "refusal"}).class_ is CaseClass.negative
    assert to_json(ListedCase(label="x", class_=CaseClass.negative))["class"] == "negative"
    with pytest.raises(RecordError):
        from_json(ListedCase, {"label": "x", "class": "refusals"})


@pytest.mark.parametrize("prefix", ["", "no-"])
def test_former_class_name_selects_negative_tests_with_a_notice(prefix: str) -> None:
    words = ["run", "--list", "--function", "diopiSqrt", "--class"]
    former, current = (CliRunner().invoke(main, [*words, prefix + name]) for name in ("refusal", "negative"))
    assert (former.exit_code, former.stdout) == (0, current.stdout)
    assert ("negative-" in former.stdout) == (not prefix)
    assert "deprecated" in former.stderr and "--class negative" in former.stderr
    assert current.stderr == ""
