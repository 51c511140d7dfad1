"""`diopi-test waive`: a file of waivers generated from a report."""

import json
from pathlib import Path

import pytest
from case_records import case_record, report_of
from click.testing import CliRunner, Result

from diopi_test.baseline.codec import to_json
from diopi_test.cli import main
from diopi_test.waivers.rules import Waivers

FAILED = case_record("diopiAdd[float32-a]", "failed", "values: out is wrong")


def waive(*words: object) -> Result:
    """Run `diopi-test waive` and return its result."""
    return CliRunner().invoke(main, ["waive", *map(str, words)])


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Return the path of a report with a failed case."""
    path = tmp_path / "report.json"
    path.write_text(json.dumps(to_json(report_of([FAILED]))), "utf-8")
    return path


def test_waive_does_not_overwrite_a_file(report: Path, tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    done = waive(report, "--output", path)
    assert (done.exit_code, done.output) == (0, "")
    written = path.read_text("utf-8")
    assert '# pattern = "diopiAdd[float32-a]"\n# verdict = "failed"\n# reason = ""\n' in written
    assert Waivers.read([path]).entries == (), "entries without a reason are comments"
    second_result = waive(report, "--output", path)
    assert second_result.exit_code == 2
    assert "exists and may contain reasons" in second_result.output
    assert path.read_text("utf-8") == written


def test_waive_prints_waivers_without_an_output_file(report: Path) -> None:
    done = waive(report)
    assert done.exit_code == 0
    assert done.output.startswith("# Waivers for small 1.0") and done.output.endswith('reason = ""\n')


def test_waive_writes_no_file_when_every_case_passed(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(to_json(report_of([case_record("diopiAdd[a]", "passed")]))), "utf-8")
    done = waive(path, "--output", tmp_path / "waivers.toml")
    assert (done.exit_code, done.output) == (0, "no case failed: there is nothing to waive\n")
    assert not (tmp_path / "waivers.toml").exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is no report of diopi-test run --json"),
        ("[]", "expected a report with schema_version 3, found None"),
        ('{"schema_version": 99}', "expected a report with schema_version 3, found 99"),
        ('{"schema_version": 1}', "missing vendor"),
    ],
)
def test_waive_rejects_a_file_that_is_not_a_report(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text, "utf-8")
    done = waive(path)
    assert done.exit_code == 2
    assert problem in done.output


def test_waive_exits_2_for_a_missing_file(tmp_path: Path) -> None:
    assert waive(tmp_path / "missing.json").exit_code == 2
