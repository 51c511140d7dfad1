"""Whatever a vendor in Python raises or does, its case gets the right verdict and others do not suffer."""

import re
from pathlib import Path

import pytest
from hostile import Fault, run_each, run_on
from sampling import sampled

VENDOR = "unruly:vendor"

RAISED = [
    Fault("exit", "failed", "SystemExit was raised"),
    Fault("exit7", "failed", "SystemExit was raised: 7"),
    Fault("exit_text", "failed", "SystemExit was raised: no driver here"),
    Fault("interrupt", "failed", "KeyboardInterrupt was raised"),
    Fault("generator_exit", "failed", "GeneratorExit was raised"),
    Fault("stop_iteration", "failed", "StopIteration"),
    Fault("cancelled", "failed", "CancelledError"),
    Fault("skip", "failed", "Skipped was raised: not today"),
    Fault("xfail", "failed", "XFailed was raised: not today"),
    Fault("fail", "failed", "Failed was raised: not today"),
    Fault("pytest_exit", "failed", "Exit was raised: enough"),
    Fault("base", "failed", "NotEvenAnError was raised: not even an error"),
    Fault("error", "failed", "RuntimeError.*the queue is full"),
    Fault("untellable", "failed", "UntellableError"),
    Fault("surrogates", "failed", "RuntimeError.*no text"),
    Fault("long", "failed", "RuntimeError.*yyyy"),
    Fault("controls", "failed", "the end"),
    Fault("recursion", "failed", "RecursionError"),
    Fault("memory_error", "out_of_memory failed", "MemoryError"),
]

ENDS = [
    Fault("end", words=r"exit code 0\b"),
    Fault("end7", words=r"exit code 7\b"),
    Fault("kill", words="SIGKILL"),
    Fault("terminate", words="SIGTERM"),
    Fault("abort", words="SIGABRT"),
]

HANGS = [Fault(name, "timed_out", r"\b1 s") for name in ("hang", "lock", "deaf")]

LEFT = [
    Fault("fork", "failed crashed", "fork", neighbors="passed flaky"),
    Fault("child", "passed failed"),
    Fault("thread", "passed"),
    Fault("atexit", "passed"),
]

STATE = [
    Fault("chdir", "failed", "directory"),
    Fault("ignore", "passed failed"),
    Fault("errstate", "passed failed"),
    Fault("warnings", "passed failed"),
    Fault("bytes", "passed"),
    Fault("close", "passed failed"),
    Fault("stray", "crashed", "the vendor wrote to a file descriptor that was not its own"),
    Fault("stray_beginning", "crashed", "the vendor wrote to a file descriptor that was not its own"),
]

LATE = [
    Fault("alarm", "passed failed crashed flaky", neighbors="passed flaky"),
    Fault("error", "failed", neighbors="passed flaky"),
]
"""Faults that take effect while another case is running."""

GROUPS = {
    "raised": (RAISED, []),
    "ends": (ENDS, []),
    "hangs": (HANGS, ["--timeout", 1]),
    "left": (LEFT, ["--timeout", 5]),
    "state": (STATE, []),
    "late": (LATE, ["-n", 1]),
    "full": ([Fault("memory", "out_of_memory", "1024")], ["--memory", 1024]),
}


@pytest.mark.parametrize("group", sampled(GROUPS, 1, slow=1))
def test_a_fault_affects_only_the_verdict_of_its_case(group: str, tmp_path: Path) -> None:
    faults, options = GROUPS[group]
    assert run_each(VENDOR, faults, tmp_path, *options) == []


STARTS = {
    "import=exit": "SystemExit: 0",
    "import=interrupt": "KeyboardInterrupt",
    "import=generator_exit": "GeneratorExit",
    "import=skip": "Skipped: not today",
    "import=untellable": "UntellableError|no text",
    "import=end": "exit code 0|status 0",
    "import=kill": "SIGKILL|status -9",
    "device=exit": "SystemExit: 0",
    "device=interrupt": "KeyboardInterrupt",
    "device=base": "NotEvenAnError: not even an error",
    "device=end": "exit code 0",
    "device=lock": r"\d s\b",
    "import=stray": "does not start: it wrote to a file descriptor that was not its own",
    "device=stray": "does not start: it wrote to a file descriptor that was not its own",
}


@pytest.mark.parametrize("fault", sampled(STARTS, 1))
def test_a_vendor_that_does_not_start_is_reported_once(fault: str, tmp_path: Path) -> None:
    place, _, name = fault.partition("=")
    run = run_on(VENDOR, {place: name}, tmp_path, "--timeout", 1)
    output = run.output + run.errors
    assert run.left == []
    assert run.status in ((2, 3) if place == "import" else (3,))  # a module that can't be imported is no vendor
    assert len(output.splitlines()) < 40
    assert "Traceback" not in output
    assert re.search(STARTS[fault], " ".join(output.split())), output
    if run.report:
        assert (run.summary["total"], run.summary["incomplete"]) == (0, True)
