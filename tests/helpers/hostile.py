"""Run the suite on vendors that disturb its processes, and check that the run reports each fault and nothing else.

A *fault* is something that a vendor does in one case, for example to crash or to hang. The vendors are `unruly.py` in
Python and `tests/vendors/faulty` in C. Their faults are specified by an environment variable. The tests
`tests/diopi_test/run/test_faults_*.py` list the faults with the expected verdicts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from typing import Any

from reports import read_report

HELPERS = Path(__file__).parent
"""The folder of the vendors, which processes need on their import path."""

BASELINE = HELPERS.parent.parent / "baseline_data"
"""The folder of the baselines that the package ships."""

UNMEASURED = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
"""An environment without coverage measurement: a process that ends early damages the coverage data."""

LABEL = "float32-special"
"""The label of the case of a function in which the fault of the function occurs."""

FUNCTIONS = tuple(
    f"diopi{name}"
    for name in (
        *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Expm1"),
        *("Floor", "Log", "Log10", "Log1p", "Log2", "Neg", "Reciprocal", "Rsqrt", "Sigmoid", "Sin", "Sinh"),
        *("Sqrt", "Tan", "Tanh"),
    )
)
"""Functions of both vendors that have one input and a case `LABEL`."""


@dataclass(frozen=True)
class Fault:
    """A fault, and what the run must report.

    Attributes:
        name: the name of the fault in the vendor; it occurs in one case.
        verdicts: the accepted verdicts of that case, separated by spaces.
        words: a regular expression that the message of the case must contain.
        neighbors: the accepted verdicts of the other cases of the function.
    """

    name: str
    verdicts: str = "crashed"
    words: str = ""
    neighbors: str = "passed"


@dataclass(frozen=True)
class Run:
    """The result of a run.

    Attributes:
        status: the exit status.
        output: the standard output.
        errors: the standard error.
        report: the JSON report; None if the run wrote none.
        left: the numbers of the processes that still existed after the run.
    """

    status: int
    output: str
    errors: str
    report: dict[str, Any] | None
    left: Sequence[int]

    @property
    def cases(self) -> Mapping[str, dict[str, Any]]:
        """Return the cases of the report by ID; assert that IDs are unique."""
        assert self.report is not None, self.output + self.errors
        counts = Counter(case["id"] for case in self.report["cases"])
        assert not [case for case, times in counts.items() if times > 1]
        return {case["id"]: case for case in self.report["cases"]}

    @property
    def summary(self) -> dict[str, Any]:
        """Return the summary of the report."""
        assert self.report is not None, self.output + self.errors
        summary: dict[str, Any] = self.report["summary"]
        return summary


def command(vendor: object, functions: Iterable[str], *options: object) -> Sequence[str]:
    """Return the command line of a run with a vendor on the float32 cases of these functions."""
    selected = [word for function in functions for word in ("--function", function)]
    fixed = ("run", "--vendor", str(vendor), "--data", str(BASELINE), "-k", "float32 and not float16", *selected)
    return [sys.executable, "-m", "diopi_test", *fixed, *map(str, options)]


def environment(faults: str, folder: Path, **more: str) -> Mapping[str, str]:
    """Return the environment of a run.

    Args:
        faults: the faults by place, in the form that `unruly.py` describes.
        folder: a folder of this run only; `processes` recognizes the processes of the run by this variable.
        more: other variables.
    """
    inherited = {name: value for name, value in UNMEASURED.items() if name not in ("PYTHONUTF8", "PYTHONIOENCODING")}
    path = os.pathsep.join([str(HELPERS), inherited.get("PYTHONPATH", "")])
    settings = {"DIOPI_TEST_FAULT": faults, "DIOPI_TEST_FOLDER": str(folder), "XDG_STATE_HOME": str(folder)}
    return {**inherited, "PYTHONPATH": path, **settings, **more}


def processes(folder: Path) -> Iterator[int]:
    """Yield the numbers of the running processes that a run with this folder started."""
    marker = f"DIOPI_TEST_FOLDER={folder}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # the process has ended or belongs to another user
            if marker in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)


def left_processes(folder: Path) -> Sequence[int]:
    """Return the processes that still run two seconds after the run has finished, and kill them."""
    deadline = time.monotonic() + 2
    while (left := list(processes(folder))) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process, SIGKILL)
    return left


def run_on(vendor: object, faults: Mapping[str, str], folder: Path, *options: object) -> Run:
    """Run the suite on `vendor` with two workers and return the result.

    The output of the run goes to files, because a process that outlives the run would keep a pipe open.

    Args:
        vendor: the name or path of the vendor.
        faults: the name of the fault by place: a function, `import` or `device`. An empty name stands for no fault.
            Only the functions in it are run, or diopiTan if it has none.
        folder: an empty folder for the files of the run.
        options: other options of the command line.
    """
    functions = [place for place in faults if place.startswith("diopi")] or ["diopiTan"]
    output_files = [folder / "stdout", folder / "stderr"]
    report = folder / "report.json"
    words = command(vendor, functions, "--json", report, "-n", 2, *options)
    variables = environment(",".join(f"{place}={fault}" for place, fault in faults.items() if fault), folder)
    with open(output_files[0], "wb") as out, open(output_files[1], "wb") as err:
        status = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=variables, timeout=120)
    left = left_processes(folder)
    texts = [path.read_text("utf-8", "replace") for path in output_files]
    return Run(status.returncode, *texts, read_report(report) if report.exists() else None, left)


def places(faults: Collection[Fault]) -> Mapping[str, Fault]:
    """Return the faults by function: each fault is assigned to a function of its own."""
    assert len(faults) <= len(FUNCTIONS)
    return dict(zip(FUNCTIONS, faults, strict=False))


def run_each(vendor: object, faults: Collection[Fault], folder: Path, *options: object) -> Sequence[str]:
    """Run the suite with one fault per function; return a description of each deviation from the expected result."""
    placed = places(faults)
    run = run_on(vendor, {place: fault.name for place, fault in placed.items()}, folder, *options)
    return [
        *(line for place, fault in placed.items() for line in _deviations(run.cases, place, fault)),
        *(f"process {process} is left" for process in run.left),
        *_miscounts(run),
    ]


def _deviations(cases: Mapping[str, dict[str, Any]], function: str, fault: Fault) -> Iterator[str]:
    """Yield a description of each case of a function whose verdict or message is not what the fault must cause."""
    case = cases[f"{function}[{LABEL}]"]
    if case["verdict"] not in fault.verdicts.split():
        yield f"{fault.name}: {case['verdict']} instead of {fault.verdicts}: {case['message'][:300]!r}"
    if not re.search(fault.words, case["message"]):
        yield f"{fault.name}: no {fault.words!r} in {case['message'][:300]!r}"
    for neighbor in (entry for entry in cases.values() if entry["function"] == function and entry is not case):
        if neighbor["verdict"] not in fault.neighbors.split():
            message = neighbor["message"][:300]
            yield f"{fault.name}: its neighbor {neighbor['id']} {neighbor['verdict']}: {message!r}"


def _miscounts(run: Run) -> Iterator[str]:
    """Yield a description of each error in the totals, the exit status and the output of a run.

    Every case of these runs must have a verdict, and the output must have no traceback of the suite itself.
    """
    summary = run.summary
    verdicts = Counter(case["verdict"] for case in run.cases.values())
    if summary["incomplete"] or not summary["total"] == summary["collected"] == verdicts.total():
        yield f"incomplete: {summary['reason']!r}, {summary['total']} of {summary['collected']}"
    if counted := {name: n for name, n in verdicts.items() if summary[name] != n}:
        yield f"the summary has other numbers than {counted}"
    expected_status = 0 if set(verdicts) == {"passed"} else 1
    if run.status != expected_status:
        yield f"status {run.status} instead of {expected_status}: {run.errors[-300:]!r}"
    program_output = " ".join(f"{run.output} {run.errors}".split())
    for case in run.cases.values():  # a message may quote the stack of the vendor's process
        program_output = program_output.replace(" ".join(case["message"].split()), "")
    if "Traceback" in program_output:
        yield f"a traceback: {program_output[-1000:]!r}"
