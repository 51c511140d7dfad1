"""`diopi-test waive --cause`: waivers for the functions with a cause."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from baselines import make_level
from case_records import case_record, report_of
from click.testing import CliRunner, Result
from commands import run_here
from failed_cases import wrong_values
from reports import read_report

from diopi_test.baseline.codec import to_json
from diopi_test.cli import main
from diopi_test.results.records import CaseRecord
from diopi_test.waivers.rules import Waivers

ENGINE = "ErrorOccurred: could not create an engine"
RECORDS = [
    case_record("diopiAdd[float32-a]", "failed", ENGINE),
    case_record("diopiAdd[float32-b]", "failed", ENGINE),
    case_record("diopiAdd[float32-c]", "passed"),
    case_record("diopiCos[float32-a]", "failed", ENGINE),
    case_record("diopiErf[float32-a]", "crashed", "the process was ended by SIGSEGV"),
    wrong_values("diopiSin[float32-a]", {"rounding": 3}),
]


def waive(*words: object) -> Result:
    """Run `diopi-test waive` and return its result."""
    return CliRunner().invoke(main, ["waive", *map(str, words)])


def write(path: Path, records: list[CaseRecord]) -> Path:
    """Write a report of these records, and return its path."""
    path.write_text(json.dumps(to_json(report_of(records))), "utf-8")
    return path


def cause_of(case_id: str) -> str:
    """Return the ID of the cause of a case."""
    return next(case.cause for case in report_of(RECORDS).cases if case.id == case_id)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Return the path of a report with failures of several causes."""
    return write(tmp_path / "report.json", RECORDS)


def test_each_function_with_the_cause_gets_a_waiver(report: Path) -> None:
    cause = cause_of("diopiAdd[float32-a]")
    done = waive(report, "--cause", cause, "--reason", 'no "engine"\n')
    assert done.exit_code == 0, done.output
    assert tomllib.loads(done.output)["waiver"] == [
        {"pattern": f"{function}[*]", "cause": cause, "case": f"{function}[float32-a]", "reason": 'no "engine"\n'}
        for function in ("diopiAdd", "diopiCos")
    ]
    assert f"# cause {cause}: the call returns an error" in done.output
    assert f"# 2 cases, the first is diopiAdd[float32-a]: {ENGINE}" in done.output


def test_a_waiver_of_a_crash_allows_the_crash(report: Path) -> None:
    done = waive(report, "--cause", cause_of("diopiErf[float32-a]"), "--reason", "tiling")
    assert tomllib.loads(done.output)["waiver"][0]["verdict"] == "crashed"


def test_waivers_are_added_to_an_existing_file_once(report: Path, tmp_path: Path) -> None:
    path, first, second = tmp_path / "waivers.toml", cause_of("diopiAdd[float32-a]"), cause_of("diopiSin[float32-a]")
    path.write_text('# mine\n[[waiver]]\npattern = "diopiExp[*]"\nreason = "table"', "utf-8")
    done = waive(report, "--cause", first, "--reason", "no engine", "-o", path)
    assert (done.exit_code, done.output) == (0, f"2 waivers for cause {first} added to {path}\n")
    second_result = waive(report, "--cause", first, "--reason", "no engine", "-o", path)
    expected = f"every function with cause {first} has a waiver: there is nothing to add\n"
    assert (second_result.exit_code, second_result.output) == (0, expected)
    assert waive(report, "--cause", second[:5], "--reason", "slow sine", "-o", path).exit_code == 0
    waivers = [entry.waiver for entry in Waivers.read([path]).entries]
    assert [(waiver.pattern, waiver.cause) for waiver in waivers] == [
        ("diopiExp[*]", ""),
        ("diopiAdd[*]", first),
        ("diopiCos[*]", first),
        ("diopiSin[*]", second),
    ]
    assert path.read_text("utf-8").startswith("# mine\n[[waiver]]\n")


@pytest.mark.parametrize("reason", ["", "  "])
def test_waivers_without_a_reason_are_comments(report: Path, tmp_path: Path, reason: str) -> None:
    path, cause = tmp_path / "waivers.toml", cause_of("diopiAdd[float32-a]")
    done = waive(report, "--cause", cause, "--reason", reason, "-o", path)
    assert done.output == f"2 drafts without a reason for cause {cause} added to {path}\n"
    assert Waivers.read([path]).entries == ()
    text = path.read_text("utf-8")
    assert (
        f'# [[waiver]]\n# pattern = "diopiAdd[*]"\n# cause = "{cause}"\n# case = "diopiAdd[float32-a]"\n# reason = '
        in text
    )
    assert "remove `# `" in text


def test_misuse_is_explained(report: Path, tmp_path: Path) -> None:
    cause = cause_of("diopiAdd[float32-a]")
    typo = ("0" if cause[0] != "0" else "1") + cause[1:]
    for words, problem in (
        (["--cause", typo, "--reason", "x"], f"Did you mean '{cause}'?"),
        (["--cause", "", "--reason", "x"], "'' is not one of"),
        (["--reason", "x"], "--reason requires --cause"),
    ):
        done = waive(report, *words)
        assert (done.exit_code, problem in done.output) == (2, True), done.output
    passed = write(tmp_path / "passed.json", [case_record("diopiAdd[float32-c]", "passed")])
    done = waive(passed, "--cause", cause, "--reason", "x")
    assert done.exit_code == 2
    assert "the report has no causes, because no case failed" in done.output
    broken = tmp_path / "broken.toml"
    broken.write_text("[[waiver]]\n", "utf-8")
    done = waive(report, "--cause", cause, "--reason", "x", "-o", broken)
    assert done.exit_code == 2
    assert "pattern is missing" in done.output
    assert broken.read_text("utf-8") == "[[waiver]]\n"


def test_an_ambiguous_start_of_an_id_is_rejected(tmp_path: Path) -> None:
    records = [case_record(f"diopiAdd[float32-{'x' * n}]", "failed", f"ErrorOccurred: {'x' * n}") for n in range(1, 40)]
    path = write(tmp_path / "report.json", records)
    causes = [case.cause for case in report_of(records).cases]
    starts = Counter(cause[0] for cause in causes)
    start = max(starts, key=lambda character: starts[character])
    done = waive(path, "--cause", start, "--reason", "x")
    assert done.exit_code == 2
    assert f"'{start}' is ambiguous" in done.output


def test_a_waived_cause_makes_a_run_pass_and_is_not_needed_when_it_is_gone(tmp_path: Path) -> None:
    data, report_file, log, path = (tmp_path / name for name in ("data", "report.json", "run.log", "waivers.toml"))
    make_level(data / "smoke", "diopiSqrt")
    words = ("run", "--data", data, "-n", 1, "--json", report_file)
    selected = ("-k", "diopiSqrt[float32")
    failed = run_here(*words, "--vendor", "faulty:failing", *selected, "--log", log)
    assert failed.returncode == 1, failed.stdout + failed.stderr
    (cause,) = read_report(report_file)["causes"]
    done = waive(log, "--cause", cause["id"], "--reason", "no engine", "-o", path)
    assert done.exit_code == 0, done.output
    waived = run_here(*words, "--vendor", "faulty:failing", "--waivers", path, "-k", "diopiSqrt[float")
    assert waived.returncode == 0, "the waiver covers more cases of the cause than the first run had" + waived.stdout
    report = read_report(report_file)
    assert (report["waivers"]["entries"][0]["state"], report["summary"]["failed"]) == ("used", 0)
    assert report["summary"]["waived"] > cause["cases"]
    crashed = run_here(*words, "--vendor", "faulty:crashing", "--waivers", path, *selected)
    assert crashed.returncode == 1, "another cause of the function is not waived"
    passed = run_here(*words, "--vendor", "diopi_test.quality.stub_vendor:vendor", "--waivers", path, *selected)
    assert passed.returncode == 0, passed.stdout
    assert read_report(report_file)["waivers"]["entries"][0]["state"] == "not_needed"
    assert "waivers that are not needed: 1 (diopiSqrt[*])" in passed.stdout
