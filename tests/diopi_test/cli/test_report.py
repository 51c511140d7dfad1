"""`diopi-test report` and `compare` for logs and JSON reports, with the right exit status."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from case_records import case_record
from click.testing import CliRunner, Result
from reports import read_report

from diopi_test.baseline.codec import to_json
from diopi_test.cli import main
from diopi_test.results.log import LogRecord, seal
from diopi_test.results.records import CaseRecord
from diopi_test.run.options import RunOptions

PASSED, FAILED = (case_record("diopiAdd[float32-x]", verdict) for verdict in ("passed", "failed"))


def call(*words: object) -> Result:
    """Run `diopi-test` with these words and return its result."""
    return CliRunner().invoke(main, [str(word) for word in words])


def write_log(path: Path, cases: Sequence[CaseRecord], *planned: str) -> Path:
    """Write the log of a run with these cases, and with scheduled cases that did not end."""
    names = [*(case.id for case in cases), *planned]
    entries = [LogRecord("run", to_json(RunOptions(vendor="small").header(""))), LogRecord("due", names)]
    ended = [*(LogRecord("case", to_json(case)) for case in cases), LogRecord("end", 0.5)]
    path.write_bytes(b"".join(map(seal, [*entries, *ended])))
    return path


def append(path: Path, *entries: LogRecord) -> None:
    """Append records to a log."""
    with path.open("ab") as file:
        file.write(b"".join(map(seal, entries)))


def test_report_writes_every_format_from_a_log(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [FAILED])
    json_file, junit_file, markdown_file = (tmp_path / name for name in ("r.json", "r.xml", "r.md"))
    done = call("report", log, "--json", json_file, "--junit", junit_file, "--markdown", markdown_file)
    assert (done.exit_code, done.output) == (1, "")
    assert read_report(json_file)["summary"]["failed"] == 1
    assert ElementTree.parse(junit_file).getroot().get("failures") == "1"
    assert FAILED.id in markdown_file.read_text("utf-8")
    second_result = call("report", json_file, "--junit", tmp_path / "again.xml")
    assert second_result.exit_code == 1
    assert (tmp_path / "again.xml").read_bytes() == junit_file.read_bytes()


def test_report_prints_a_summary_without_an_output_file(tmp_path: Path) -> None:
    done = call("report", write_log(tmp_path / "log", [PASSED]))
    assert done.exit_code == 0
    assert "1 passed" in done.output


def test_report_writes_pages_from_logs(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [FAILED], "diopiAdd[float32-y]")  # which is still to come
    assert call("report", log, "--html", tmp_path / "r.html").exit_code == 3
    page = (tmp_path / "r.html").read_text("utf-8")
    assert page.startswith("<!doctype html>") and FAILED.label in page
    done = call("compare", write_log(tmp_path / "before", [PASSED]), log, "--html", tmp_path / "c.html")
    assert done.exit_code == 1
    assert '"change":"broken"' in (tmp_path / "c.html").read_text("utf-8")


def test_report_shows_durations_on_request(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [PASSED])
    assert "took longest" not in call("report", log).output
    assert "the cases that took longest" in call("report", log, "--durations", 3).output
    assert call("report", log, "--durations", 3, "--markdown", tmp_path / "r.md").output == ""
    assert "| `diopiAdd` | 1 | 0.50 s |" in (tmp_path / "r.md").read_text("utf-8")


def test_report_of_a_run_in_progress_is_incomplete(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [PASSED], "diopiAdd[float32-y]")
    with log.open("ab") as file:
        file.write(b'{"kind":"case","content":{"id":"dio')  # the line that is being written
    done = call("report", log)
    assert done.exit_code == 3
    assert "incomplete: 1 of 2 cases have a verdict" in done.output


def test_compare_reports_changes_between_runs(tmp_path: Path) -> None:
    before, after = (write_log(tmp_path / str(case.verdict), [case]) for case in (PASSED, FAILED))
    done = call("compare", before, after, "--json", tmp_path / "c.json", "--markdown", tmp_path / "c.md")
    assert done.exit_code == 1
    assert f"broken: {PASSED.id}: passed → failed" in done.output
    assert done.output.endswith("1 broken\n")
    assert json.loads((tmp_path / "c.json").read_text("utf-8"))["cases"][0]["change"] == "broken"
    assert (tmp_path / "c.md").read_text("utf-8").startswith("### ❌")
    assert call("compare", after, before).exit_code == 0
    assert call("compare", after, after).output == "1 alike\n"


def test_compare_counts_changes_that_it_does_not_list(tmp_path: Path) -> None:
    cases = [case_record(f"diopiAdd[float32-{number}]", "failed") for number in range(30)]
    done = call("compare", write_log(tmp_path / "a", [PASSED]), write_log(tmp_path / "b", [PASSED, *cases]))
    assert "… and 10 more" in done.output
    assert done.output.endswith("30 new, 1 alike\n")


def test_compare_does_not_list_cases_that_were_not_selected(tmp_path: Path) -> None:
    unselected = case_record("diopiSub[float32-x]", "passed")
    done = call("compare", write_log(tmp_path / "a", [PASSED, unselected]), write_log(tmp_path / "b", [PASSED]))
    assert done.output.startswith("note: the runs have different selections: 1 case only before, 0 only after")
    assert "gone: " not in done.output and done.output.endswith("1 gone, 1 alike\n")


def test_compare_marks_an_unfinished_run_as_incomplete(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [PASSED])
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))
    done = call("report", log)
    assert done.exit_code == 3
    assert "the run has not ended" in done.output


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_in_an_error_record_is_not_a_success(bit: int, tmp_path: Path) -> None:
    log, flipped = (write_log(tmp_path / name, [PASSED]) for name in ("log", "other"))
    append(log, LogRecord("error", "the vendor was ended by SIGSEGV"), LogRecord("end", 0.5))
    assert call("report", log).exit_code == 3
    content = bytearray(log.read_bytes())
    content[content.index(b"SIGSEGV")] ^= 1 << bit
    log.write_bytes(content)
    output = "the log is damaged: 1 line can't be read, the first is line 5"
    done = call("report", log)
    assert (done.exit_code, output in done.output) == (3, True)
    compared = call("compare", log, flipped)
    assert (compared.exit_code, f"note: the run before has an error: {output}" in compared.output) == (3, True)


MALFORMED = {
    "a verdict that is none": LogRecord("case", to_json(PASSED) | {"verdict": "excellent"}),
    "a case that is a number": LogRecord("case", 5),
    "due cases that are a number": LogRecord("due", 5),
    "an error that is a list": LogRecord("error", []),
    "a time that is a text": LogRecord("end", "late"),
    "a stop without a reason": LogRecord("stopped", None),
    "waivers that are a text": LogRecord("waivers", "all"),
    "a second run": LogRecord("run", {}),
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("words", [("report",), ("compare", "LOG"), ("submit", "TO"), ("run", "--resume")])
def test_a_malformed_line_causes_a_single_message(name: str, words: tuple[str, ...], tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [PASSED])
    append(log, MALFORMED[name])
    command, *more = words
    words = {"LOG": [log, log], "TO": [log, tmp_path / "archive.zip"], "--resume": ["--resume", log]}
    done = call(command, *(words[more[0]] if more else [log]))
    assert done.exit_code in (2, 3), done.output
    assert isinstance(done.exception, SystemExit)
    assert "malformed" in done.output or "more than one run" in " ".join(done.output.split())


@pytest.mark.parametrize("text", ["5", "[]", '{"kind":"case"}', '{"kind":5,"content":5}', "[" * 100_000, "{]"])
def test_a_line_that_is_not_a_record_causes_a_single_message(text: str, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [PASSED])
    content = f"{text[:-1]}}}".encode()
    with log.open("ab") as file:
        file.write(content[:-1] + f',"crc32":"{zlib.crc32(content):08x}"}}\n'.encode())
    done = call("report", log)
    assert done.exit_code == 2
    assert isinstance(done.exception, SystemExit)
    assert "although its checksum matches" in " ".join(done.output.split())


@pytest.mark.parametrize("content", ["", "{", '{"kind":"due"}', '{"schema_version": 99}', "\x00"])
@pytest.mark.parametrize("command", [["report"], ["compare"]])
def test_a_file_that_is_not_a_report_exits_2(command: list[str], content: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(content, "utf-8")
    done = call(*command, path, *([path] if command == ["compare"] else []))
    assert done.exit_code == 2
    assert "is no report of diopi-test run --json, and no log" in done.output


def test_a_log_of_another_version_is_rejected(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [PASSED])
    header = to_json(RunOptions(vendor="small").header("")) | {"schema_version": 99}
    log.write_bytes(seal(LogRecord("run", header)))
    done = call("report", log)
    assert done.exit_code == 2
    assert "expected a log with schema_version 3, found 99" in done.output
