"""The history stores each run once, rejects foreign and damaged files, and supports several writers."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from case_records import case_record
from histories import add_runs, measured_case, report_of_day

from diopi_test.execution.verdict import Verdict
from diopi_test.reporting.history.database import Addition, History, HistoryError
from diopi_test.reporting.history.entry import complete_origin
from diopi_test.reporting.history.tables import TABLES, VERSION
from diopi_test.results.records import Report


def add(path: Path, report: Report) -> Addition:
    """Add a report to the history."""
    with History.opened(path, create=True) as history:
        return history.add(report, complete_origin(report, "2026-01-01"))


def test_a_run_is_stored_with_its_functions(tmp_path: Path) -> None:
    report = report_of_day(1, [measured_case("diopiAdd[float32-row]", 0.5), case_record("diopiAdd[b]", "failed")])
    assert add(tmp_path / "history", report) is Addition.added
    with History.opened(tmp_path / "history") as history:
        ((number, entry),) = history.runs().items()
        assert (entry.title, entry.place) == ("small 1.0", "chip (driver 1.0) on board-07")
        assert history.verdicts(number) == {Verdict.passed: 1, Verdict.failed: 1}
        function = history.functions(number)["diopiAdd"]
        assert (function.cases, function.passed, function.unsuccessful) == (2, 1, 1)
        assert (function.ratio, function.ratio_case) == (0.5, "diopiAdd[float32-row]")
        assert history.runs(vendor="another") == history.runs(level="full") == {}


def test_a_run_is_added_once_and_replaced_if_it_was_resumed(tmp_path: Path) -> None:
    records = [case_record("diopiAdd[a]", "passed"), case_record("diopiAdd[b]", "passed")]
    first, resumed = report_of_day(1, records[:1]), report_of_day(1, records)
    assert [add(tmp_path / "h", report) for report in (first, first, resumed)] == ["added", "unchanged", "replaced"]
    with History.opened(tmp_path / "h") as history:
        assert {number: history.verdicts(number) for number in history.runs()} == {1: {Verdict.passed: 2}}


def test_a_report_without_origin_is_added_once(tmp_path: Path) -> None:
    report = replace(report_of_day(1, [case_record("diopiAdd[a]", "passed")]), origin=None)
    assert [add(tmp_path / "h", report) for _ in range(2)] == ["added", "unchanged"]


def test_what_the_user_states_replaces_the_origin_of_the_log() -> None:
    report = report_of_day(1, [])
    assert complete_origin(report, "", device="other chip", driver="", commit="abc") == replace(
        report.origin, device="other chip", commit="abc"
    )


def test_a_file_that_is_no_history_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(HistoryError, match=r"there is no history at .*history add creates it"), History.opened(path):
        pass
    path.write_text("not a database" * 100)
    with pytest.raises(HistoryError, match="damaged, or no SQLite database"):
        add(path, report_of_day(1, []))
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (run)")
    with pytest.raises(HistoryError, match="a database of another program; pass another file as --db"):
        add(path, report_of_day(1, []))


@pytest.mark.parametrize(("version", "remedy"), [(VERSION + 1, "newer diopi-test"), (0, "add the logs to a new file")])
def test_another_version_of_the_tables_is_refused(version: int, remedy: str, tmp_path: Path) -> None:
    add_runs(tmp_path / "h")
    with sqlite3.connect(tmp_path / "h") as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(HistoryError, match=f"has version {version} .*{remedy}"), History.opened(tmp_path / "h"):
        pass


def test_a_damaged_history_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h"
    add_runs(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    path.write_bytes(content)
    with pytest.raises(HistoryError, match="damaged"), History.opened(path) as history:
        [history.functions(number) for number in history.runs()]


def test_a_failed_addition_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h"
    add_runs(path)
    monkeypatch.setattr(History, "_insert_cases", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        add(path, report_of_day(9, [case_record("diopiAdd[a]", "passed")]))
    with History.opened(path) as history:
        assert len(history.runs()) == 4


WRITER = """
import sys
from pathlib import Path
from histories import report_of_day
from case_records import case_record
from diopi_test.reporting.history.database import History
for day in range(int(sys.argv[2]), 29, 2):
    report = report_of_day(day, [case_record(f"diopiAdd[{n}]", "passed") for n in range(50)])
    with History.opened(Path(sys.argv[1]), create=True) as history:
        history.add(report, report.origin)
"""


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "h"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(first)], stderr=subprocess.PIPE, text=True, env=environment
        )
        for first in (1, 2)
    ]
    assert [writer.communicate()[1] for writer in writers] == ["", ""]
    with History.opened(path) as history:
        assert [entry.started[8:10] for entry in history.runs().values()] == [f"{day:02}" for day in range(1, 29)]
    assert [file.name for file in path.parent.iterdir()] == ["h"]


def test_the_page_describes_every_table_and_column(tmp_path: Path) -> None:
    page = Path(__file__).parents[4].joinpath("docs", "history.md").read_text("utf-8")
    assert f"`user_version` is {VERSION}" in page
    with sqlite3.connect(tmp_path / "tables") as connection:
        connection.executescript(TABLES)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            section = page.partition(f"### `{table}`")[2].partition("###")[0]
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            assert [column for column in columns if f"`{column}`" not in section] == [], table


def test_a_copy_of_the_file_is_a_history(tmp_path: Path) -> None:
    add_runs(tmp_path / "h")
    shutil.copy(tmp_path / "h", tmp_path / "copy")
    with History.opened(tmp_path / "copy") as history:
        assert len(history.runs()) == 4
