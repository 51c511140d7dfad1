"""A run without a verdict for every case is reported as incomplete, whether a signal, a vendor or a worker ended it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from baselines import make_level
from reports import read_report
from sampling import sampled

from diopi_impl import VendorError
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.results.log import LogWriter
from diopi_test.run.collection import Collected
from diopi_test.run.isolation import executor
from diopi_test.run.limits import Limits
from diopi_test.run.options import RunOptions
from diopi_test.run.recorder import LogContent

STUB_VENDOR = "diopi_test.quality.stub_vendor:vendor"

HELPERS = Path(__file__).parents[2] / "helpers"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a baseline: the level smoke with the cases of one function."""
    folder = tmp_path_factory.mktemp("baseline")
    make_level(folder / "smoke", "diopiSqrt")
    return folder


def begin_run(data: Path, vendor: str, tmp_path: Path, *more: str, **environment: str) -> subprocess.Popen[str]:
    """Start `diopi-test run` in a separate session that reacts to SIGINT even if this process ignores it."""
    previous_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    path = os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "diopi_test", "run", "--data", str(data), "--vendor", vendor, "-n", "2"]
    try:
        return subprocess.Popen(
            [*command, "--json", str(tmp_path / "report.json"), *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": path, "LEAVING_FOLDER": str(tmp_path)}
            | environment,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def finish_run(process: subprocess.Popen[str], tmp_path: Path) -> tuple[int, str, dict[str, Any]]:
    """Wait until a run ends; return its exit status, its output and the summary of its report."""
    output, errors = process.communicate(timeout=120)
    report = tmp_path / "report.json"
    assert report.exists(), output + errors
    assert "Traceback" not in errors
    return process.returncode, output, read_report(report)["summary"]


def wait_for_vendor(tmp_path: Path) -> None:
    """Wait until a process of the vendor reports that it runs."""
    deadline = time.monotonic() + 60
    while not list(vendor_processes(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.05)


def wait_for_verdict(tmp_path: Path) -> None:
    """Wait until the log of the run contains the verdict of a case that passed."""
    deadline = time.monotonic() + 60
    while not any("passed" in log.read_text("utf-8") for log in tmp_path.rglob("*.log.jsonl")):
        assert time.monotonic() < deadline, "no case has passed within 60 seconds"
        time.sleep(0.05)


def vendor_processes(tmp_path: Path) -> Iterator[int]:
    """Yield the IDs of the processes that the vendor recorded."""
    return (int(path.name) for path in tmp_path.iterdir() if path.name.isdigit())


def is_alive(process: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


_INTERRUPTIONS = [
    (signal.SIGINT, "all"),
    (signal.SIGTERM, "all"),
    (signal.SIGTERM, "one"),
    (signal.SIGHUP, "all"),
    (signal.SIGHUP, "one"),
]


@pytest.mark.parametrize(("number", "receiver"), sampled(_INTERRUPTIONS, 1))
def test_an_interrupted_run_reports_its_progress(data: Path, tmp_path: Path, number: int, receiver: str) -> None:
    process = begin_run(data, "leaving:slowly", tmp_path, "-k", "float")
    wait_for_verdict(tmp_path)
    (os.killpg if receiver == "all" else os.kill)(process.pid, number)
    status, output, summary = finish_run(process, tmp_path)
    assert status == 3
    assert summary["incomplete"]
    assert summary["reason"] == f"interrupted by {signal.Signals(number).name}"
    assert 0 < summary["passed"] == summary["total"] < summary["collected"]
    assert summary["not_run"] == summary["collected"] - summary["total"]
    assert len(summary["first_not_run"]) == 5
    assert f"incomplete: {summary['total']} of {summary['collected']} cases have a verdict" in output
    assert not [process for process in vendor_processes(tmp_path) if is_alive(process)]


@pytest.mark.parametrize("number", sampled([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], 1))
def test_an_interruption_before_the_first_case_is_reported(data: Path, tmp_path: Path, number: signal.Signals) -> None:
    process = begin_run(data, "leaving:slowly", tmp_path, LEAVING_WHERE="first", LEAVING_WAY="hang")
    wait_for_vendor(tmp_path)
    process.send_signal(number)
    status, output, summary = finish_run(process, tmp_path)
    assert (status, summary["total"], summary["incomplete"]) == (3, 0, True)
    assert summary["not_run"] == summary["collected"] > 20
    assert f"interrupted by {number.name}" in output


def test_a_vendor_that_exits_on_import_does_not_start(data: Path, tmp_path: Path) -> None:
    """Only one way to exit is tested here; `test_faults_python.py` tests the others."""
    process = begin_run(data, "leaving:slowly", tmp_path, LEAVING_WHERE="first", LEAVING_WAY="interrupt")
    status, output, summary = finish_run(process, tmp_path)
    assert (status, summary["total"], summary["incomplete"]) == (3, 0, True)
    assert "vendor leaving:slowly" in summary["reason"]
    assert summary["reason"] in output


@pytest.mark.parametrize("way", sampled(["exit", "interrupt", "end"], 1))
def test_a_vendor_that_starts_only_once_ends_the_run(data: Path, tmp_path: Path, way: str) -> None:
    process = begin_run(data, "leaving:slowly", tmp_path, LEAVING_WHERE="later", LEAVING_WAY=way)
    status, output, summary = finish_run(process, tmp_path)
    assert (status, summary["incomplete"]) == (3, True)
    assert "vendor leaving:slowly" in summary["reason"]
    assert f"incomplete: {summary['total']} of {summary['collected']} cases" in output


def test_a_vendor_that_does_not_load_in_time_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {"WHERE": "first", "WAY": "hang", "FOLDER": str(tmp_path)}.items():
        monkeypatch.setenv(f"LEAVING_{name}", value)
    monkeypatch.setattr(executor, "LOADING_SECONDS", 1.0)
    monkeypatch.setattr(executor, "BUSY_START_SECONDS", 2.0)  # it may be busy importing for all of the first second
    with (
        executor.Executor("leaving:slowly", 1, Limits()) as running,
        pytest.raises(VendorError, match=r"(?s)leaving:slowly .*load in [12] s.*hang"),
    ):
        running.describe()
    assert not [process for process in vendor_processes(tmp_path) if is_alive(process)]


def test_a_vendor_that_never_works_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "PROBING_SECONDS", 1.0)
    result = pytest.raises(VendorError, match=r"(?s)opening_never .*1 s.*hang")
    with executor.Executor("leaving:opening_never", 1, Limits()) as running, result:
        running.describe()


def test_a_working_vendor_has_more_time_for_its_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "PROBING_SECONDS", 1.0)
    with executor.Executor("leaving:opening_busily", 1, Limits()) as running:
        assert running.describe().name == "busily"


def test_workers_that_do_not_start_end_the_run(data: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nif any('fork_server_main' in word for word in sys.orig_argv): os._exit(7)"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    status, output, summary = finish_run(begin_run(data, STUB_VENDOR, tmp_path, PYTHONPATH=path), tmp_path)
    assert (status, summary["total"], summary["incomplete"]) == (3, 0, True)
    assert "the fork server has ended" in output


def content_of(folder: Path, collected: list[Collected], **verdicts: Verdict) -> LogContent:
    """Return the content of a log in which only some cases have verdicts."""
    recorder = RunOptions(vendor="any").recorder(LogWriter(folder / "log"))
    recorder.begin("")
    recorder.schedule([case.id for case in collected])
    for case in collected:
        if case.label in verdicts:
            recorder.case(case.record(Outcome(verdict=verdicts[case.label]), 0.5))
    recorder.end(0.5)
    return recorder.content()


CASES = [
    Collected(function="diopiSqrt", label="a", dtype="float32"),
    Collected(function="diopiSqrt", label="b", dtype="int8", case_class=CaseClass.callers),
    Collected(function="diopiSqrt", label="c", case_class=CaseClass.negative, base="a"),
]


def test_a_case_without_verdict_is_not_run(tmp_path: Path) -> None:
    report = content_of(tmp_path, CASES, a=Verdict.passed, c=Verdict.failed).report()
    summary = report.summary
    assert (summary.first_not_run, report.exit_status) == (("diopiSqrt[b]",), 3)
    assert (summary.total, summary.collected, summary.not_run, summary.incomplete) == (2, 3, 1, True)
    assert "no verdict" in summary.reason


def test_an_abandoned_case_is_not_run(tmp_path: Path) -> None:
    report = content_of(tmp_path, CASES, a=Verdict.crashed, b=Verdict.not_run, c=Verdict.passed).report()
    summary = report.summary
    assert (summary.total, summary.crashed, summary.not_run, summary.incomplete) == (2, 1, 1, True)
    assert (summary.first_not_run, report.exit_status) == (("diopiSqrt[b]",), 3)


def test_each_class_is_counted(tmp_path: Path) -> None:
    report = content_of(tmp_path, CASES, a=Verdict.passed, b=Verdict.passed, c=Verdict.failed).report()
    summary = report.summary
    assert (summary.first_not_run, summary.incomplete, summary.reason) == ((), False, "")
    result = {name: (counts.total, counts.passed, counts.failed) for name, counts in summary.classes.items()}
    assert {name: counts for name, counts in result.items() if any(counts)} == {
        "basic": (1, 1, 0),
        "callers": (1, 1, 0),
        "negative": (1, 0, 1),
    }
    assert list(result) == list(CaseClass.__members__)


@pytest.mark.parametrize("lost", [Verdict.failed, Verdict.crashed, Verdict.timed_out, Verdict.out_of_memory])
def test_negative_cases_count_only_in_strict_runs(tmp_path: Path, lost: Verdict) -> None:
    report = content_of(tmp_path, CASES, a=Verdict.passed, b=Verdict.passed, c=lost).report()
    assert (report.strict, report.exit_status) == (False, 0)
    assert replace(report, strict=True).exit_status == 1


def test_abandoned_negative_cases_make_only_strict_runs_incomplete(tmp_path: Path) -> None:
    content = content_of(tmp_path, CASES, a=Verdict.passed, b=Verdict.passed, c=Verdict.not_run)
    report = content.report()
    assert (report.summary.not_run, report.summary.incomplete, report.exit_status) == (1, False, 0)
    content.header = replace(content.header, strict=True)
    assert (content.report().summary.incomplete, content.report().exit_status) == (True, 3)


@pytest.mark.parametrize("strict", [False, True])
def test_required_cases_always_count(tmp_path: Path, strict: bool) -> None:
    report = content_of(tmp_path, CASES, a=Verdict.passed, b=Verdict.failed, c=Verdict.passed).report()
    assert replace(report, strict=strict).exit_status == 1


def test_the_log_records_whether_the_run_is_strict(tmp_path: Path) -> None:
    recorder = RunOptions(vendor="small", strict=True).recorder(LogWriter(tmp_path / "log"))
    recorder.begin("")
    assert recorder.content().report().strict


def test_a_case_with_two_records_counts_once(tmp_path: Path) -> None:
    repeated_cases = [*CASES, Collected(function="diopiSqrt", label="a", dtype="float32")]
    summary = (
        content_of(tmp_path, repeated_cases, a=Verdict.passed, b=Verdict.crashed, c=Verdict.passed).report().summary
    )
    assert (summary.total, summary.crashed, summary.passed) == (3, 1, 2)
