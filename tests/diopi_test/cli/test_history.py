"""`diopi-test history` adds runs, lists them, and shows trends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from case_records import case_record
from click.testing import CliRunner, Result
from histories import add_runs, report_of_day

from diopi_test.baseline.codec import to_json
from diopi_test.cli import main
from diopi_test.reporting.history.database import default_path


def history(*words: str | Path) -> Result:
    """Run `diopi-test history` and return its result."""
    return CliRunner().invoke(main, ["history", *map(str, words)])


def write(path: Path, day: int) -> Path:
    """Write the report of a run on this day of the month, and return its path."""
    report = report_of_day(day, [case_record("diopiAdd[a]", "passed"), case_record("diopiAdd[b]", "failed")])
    path.write_text(json.dumps(to_json(report)))
    return path


def test_runs_are_added_listed_and_shown(tmp_path: Path) -> None:
    db = tmp_path / "h"
    reports = [write(tmp_path / f"{day}.json", day) for day in (1, 2)]
    done = history("add", *reports, "--db", db, "--device", "rack 3")
    assert (done.exit_code, done.output.count("added: ")) == (0, 2)
    listed = history("list", "--db", db)
    assert "2026-01-02 10:00" in listed.output and "rack 3 (driver 1.0) on board-07" in listed.output
    output = history("show", 2, "--db", db).output
    assert "run 2: small 1.0 on rack 3" in output and "1 passed, 1 failed" in output
    assert "(1 case)" in output  # of the cause
    assert history("list", "--db", db, "--vendor", "another").output.count("2026") == 0


def test_trends_are_shown(tmp_path: Path) -> None:
    add_runs(tmp_path / "h")
    done = history("show", "--db", tmp_path / "h", "--html", tmp_path / "page.html")
    for line in (
        "cause c2 (new on 1 of 2 devices): 0 → 0 → 0 → 7 cases",
        "less accurate: diopiAdd: 0.2 → 0.9 of its budget",
        "flaky in 2 of 4 runs: diopiSub[float32-row], last on 2026-01-04",
        "differs: diopiAdd: chip (driver 1.0) on board-07: 0.9 of the budget, 0 failed; chip B",
        "slower: diopiMul: 100.0 µs → 500.0 µs",
    ):
        assert line in done.output
    assert "<svg" in (tmp_path / "page.html").read_text("utf-8")


def test_a_cause_whose_functions_were_not_selected_is_not_run(tmp_path: Path) -> None:
    records = [case_record("diopiAdd[a]", "failed", "a message"), case_record("diopiSub[a]", "passed")]
    for day, selected in ((1, records), (2, records[1:])):
        (tmp_path / f"{day}.json").write_text(json.dumps(to_json(report_of_day(day, selected))))
        assert history("add", tmp_path / f"{day}.json", "--db", tmp_path / "h").exit_code == 0
    output = history("show", "--db", tmp_path / "h", "--html", tmp_path / "page.html", "--language", "zh").output
    assert "(not run): 1 → – cases" in output
    assert "未运行" in (tmp_path / "page.html").read_text("utf-8")


def test_errors_name_the_file_and_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIOPI_HISTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    done = history("list")
    assert done.exit_code == 3 and f"there is no history at {default_path()}" in done.output
    assert "diopi-test history add" in done.output
    add_runs(default_path())
    assert history("list").exit_code == 0
    done = history("show", 99)
    assert done.exit_code == 2 and "there is no run 99" in done.output
    assert "diopi-test history list" in done.output
    (tmp_path / "file").write_text("text")
    done = history("add", write(tmp_path / "1.json", 1), "--db", tmp_path / "file")
    assert done.exit_code == 3 and f"{tmp_path / 'file'} is damaged, or no SQLite database" in done.output
    assert "pass another --db" in done.output


def test_a_report_without_a_start_gets_the_time_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "1.json", 1)
    content = json.loads(path.read_text())
    del content["origin"]
    path.write_text(json.dumps(content))
    done = history("add", path, "--db", tmp_path / "h")
    assert "using the time of the file" in done.output
