"""Whatever a compiled vendor does, its case gets the right verdict and other cases do not suffer."""

import re
from itertools import product
from pathlib import Path

import pytest
from hostile import FUNCTIONS, LABEL, Fault, run_each, run_on
from sampling import sampled

ENDS = [
    Fault("segfault", words="SIGSEGV"),
    Fault("abort", words=r"(?s)SIGABRT.*the tile does not fit"),
    Fault("divide", words="SIGFPE"),
    Fault("stack", words="SIGSEGV"),
    Fault("exit0", words=r"exit code 0\b"),
    Fault("exit7", words=r"exit code 7\b"),
    Fault("end0", words=r"exit code 0\b"),
    Fault("kill", words="SIGKILL"),
    Fault("terminate", words="SIGTERM"),
    Fault("throw", words=r"(?s)SIGABRT.*std::runtime_error.*what\(\):  the queue is full"),
    Fault("throw_number", words="(?s)SIGABRT.*'int'"),
    Fault("bad_alloc", "crashed out_of_memory", "std::bad_alloc"),
    Fault("close", "crashed failed"),
    Fault("stray", "crashed", "the vendor wrote to a file descriptor that was not its own"),
    Fault("loud_abort", words="the tile does not fit"),
]

HANGS = [Fault(name, "timed_out", r"\b1 s") for name in ("hang", "loop", "stop", "deaf")]

PROCESSES = [
    Fault("fork", "failed crashed", "fork", neighbors="passed flaky"),
    Fault("child", "passed failed"),
]

STATE = [
    Fault("rounding", "failed", "rounding"),
    Fault("flush", "failed", "subnormal|rounding"),
    Fault("unmask", "failed crashed", "floating-point|SIGFPE|rounding"),
    Fault("block", "failed", "signal mask"),
    Fault("ignore", "passed failed"),
    Fault("chdir", "failed", "directory"),
]

MEMORY = [
    Fault("leak", "passed"),
    Fault("overrun", "failed", "guards: the guard of a tensor"),
]

WILD = ("flood", "leap", "late")
"""Faults that write to arbitrary memory. Cases of the function may have any verdict; all others pass or are flaky."""

FULL = [Fault("memory", "out_of_memory", "512"), Fault("memory_null", "out_of_memory", "512")]

TEXTS = [
    Fault("loud", "passed"),
    Fault("long", "failed", "yyyy"),
    Fault("bytes", "failed", "is no UTF-8, nor is"),
    Fault("controls", "failed", "the end"),
    Fault("fail", "failed", "ErrorOccurred: it is to fail here"),
    Fault("wrong", "failed", "1.5, expected nan"),
]

COMPANY = [
    Fault("fail", "failed"),
    Fault("stale", "flaky", "passed alone"),
    Fault("once", "flaky", "passed alone"),
    Fault("second", "failed"),
]
"""Faults that depend on earlier cases, for a single process. The first fault has the first function."""

GROUPS = {
    "ends": (ENDS, []),
    "hangs": (HANGS, ["--timeout", 1]),
    "processes": (PROCESSES, []),
    "state": (STATE, []),
    "memory": (MEMORY, []),
    "full": (FULL, ["--memory", 512]),
    "texts": (TEXTS, []),
    "company": (COMPANY, ["-n", 1]),
}


@pytest.mark.parametrize("group", sampled(GROUPS, 1, slow=1))
def test_a_fault_affects_only_the_verdict_of_its_case(group: str, faulty_cpp: Path, tmp_path: Path) -> None:
    faults, options = GROUPS[group]
    assert run_each(faulty_cpp, faults, tmp_path, *options) == []


@pytest.mark.parametrize("fault", sampled(WILD, 1))
def test_a_wild_write_affects_no_other_case(fault: str, faulty_cpp: Path, tmp_path: Path) -> None:
    run = run_on(faulty_cpp, {"diopiSin": fault, "diopiAbs": ""}, tmp_path)
    assert (run.left, run.summary["total"]) == ([], run.summary["collected"])
    verdicts = {case["verdict"] for case in run.cases.values()}
    assert {case["verdict"] for case in run.cases.values() if case["function"] != "diopiSin"} <= {"passed", "flaky"}
    assert run.status in ((0, 3) if verdicts == {"passed"} else (1, 3))


def test_a_vendor_without_a_fault_passes(faulty_c: Path, tmp_path: Path) -> None:
    run = run_on(faulty_c, dict.fromkeys((*FUNCTIONS, "diopiAdd"), ""), tmp_path)
    assert (run.status, run.left) == (0, [])
    assert run.summary["passed"] == run.summary["total"] == run.summary["collected"] > 4 * len(FUNCTIONS)


def test_a_hostile_text_does_not_reach_the_terminal(faulty_c: Path, tmp_path: Path) -> None:
    run = run_on(faulty_c, {"diopiTan": "controls", "diopiSin": "long", "diopiCos": "loud"}, tmp_path)
    assert run.status == 1
    assert not {"\x1b", "\x07", "\x7f"} & set(run.output + run.errors)
    assert "[bold]markup[/bold]" in run.output
    assert len(run.output) + len(run.errors) < 100_000
    assert (tmp_path / "report.json").stat().st_size < 1_000_000


@pytest.mark.parametrize(("fault", "verdict"), sampled([("segfault*", "crashed"), ("hang*", "timed_out")], 1))
def test_a_function_that_always_kills_its_process_is_abandoned(
    fault: str, verdict: str, faulty_c: Path, tmp_path: Path
) -> None:
    faults = {"diopiTan": fault, "diopiSin": "wrong"}
    run = run_on(faulty_c, faults, tmp_path, "--max-crashes", 2, "--timeout", 1, "-n", 1)
    summary, cases = run.summary, run.cases
    lost = [case for case in cases.values() if case["verdict"] == verdict]
    assert (run.status, run.left, summary["incomplete"]) == (3, [], True)
    assert [case["function"] for case in lost] == ["diopiTan"] * 2
    assert summary["not_run"] == summary["collected"] - summary["total"] > 0
    assert summary["total"] == summary["passed"] + summary["failed"] + 2
    reasons = [case["message"] for case in cases.values() if case["verdict"] == "not_run"]
    text = " ".join([summary["reason"], *reasons, *run.output.split()])
    assert re.search(r"diopiTan.{,80}\b2\b|\b2\b.{,80}diopiTan", text)
    assert cases[f"diopiSin[{LABEL}]"]["verdict"] == "failed"
    assert summary["failed"] == 1


@pytest.mark.parametrize(
    ("place", "fault"), sampled(product(["finalizeLibrary", "destructor"], ["segfault", "exit7", "hang"]), 1)
)
def test_an_error_at_exit_changes_no_verdict(place: str, fault: str, faulty_c: Path, tmp_path: Path) -> None:
    run = run_on(faulty_c, {place: fault}, tmp_path, "--timeout", 1)
    assert (run.left, run.summary["incomplete"], run.summary["passed"]) == ([], False, run.summary["collected"])


STARTS = {
    "constructor=exit0": "exit code 0",
    "constructor=abort": "(?s)SIGABRT.*the tile does not fit",
    "constructor=hang": r"\d s\b",
    "initLibrary=stray": "does not start: it wrote to a file descriptor that was not its own",
    "initLibrary=exit7": "exit code 7",
    "initLibrary=fail": "initLibrary returned 1",
    "register_malloc=fail": "NoRegisteredDeviceMemoryMallocFunction|no memory malloc function",
    "register_create=fail": "NoRegisteredStreamCreateFunction|no stream create function",
    "create=fail": "stream create function returned 1: it is to fail here",
    "synchronize=hang": r"\d s\b",
    "synchronize=segfault": "SIGSEGV",
    "malloc=fail": "could not allocate 1048576 bytes",
    "copy=wrong": "differ",
    "free=abort": "(?s)SIGABRT.*the tile does not fit",
}


@pytest.mark.parametrize("fault", sampled(STARTS, 1))
def test_a_vendor_that_does_not_start_is_reported_once(fault: str, faulty_c: Path, tmp_path: Path) -> None:
    place, _, name = fault.partition("=")
    run = run_on(faulty_c, {place: name}, tmp_path, "--timeout", 1)
    output = run.output + run.errors
    assert (run.status, run.left) == (3, [])
    report = "\n".join(line for line in output.splitlines() if not line.startswith(("vendor: ", "command: ")))
    assert report.count(str(faulty_c)) + report.count("vendor faulty") <= 2
    assert len(output.splitlines()) < 40
    assert "Traceback" not in output
    message = " ".join(output.split())  # as wide as the terminal
    assert re.search(STARTS[fault], message), output
    if run.report:
        assert (run.summary["total"], run.summary["incomplete"]) == (0, True)
