"""Measure the suite's own CPU time per case in milliseconds, in total and by part.

    python benchmarks/suite_cost.py [--data DIR] [--level smoke] [--every 4] [--rounds 5] [--separate]

The vendor is compiled and computes nothing. The script writes the expected results in its place, so that all checks
pass, and subtracts the time for this. Each case runs as in a worker (`run.session.Session`) with an open, verified
file. The cost of a case is the best of the rounds. An additional round measures each part. Measuring the parts takes
time itself, so only the shares are taken from that round.

With --separate, the script also measures the evaluation of the results in another process, as a run does. The time is
then that of both processes.
"""

from __future__ import annotations

import gc
import os
import socket
import tempfile
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any, final

import click
from null_vendor import ReplayingVendor, build
from rich.console import Console
from rich.table import Table

from diopi_impl.native import NativeVendor
from diopi_test.baseline.level import open_level_of_file
from diopi_test.baseline.location import folder_to_read
from diopi_test.baseline.store import SUFFIX, BaselineFile
from diopi_test.cases.case import CaseClass
from diopi_test.execution import call, call_arguments
from diopi_test.execution.forks import watch_forks
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.quality.stub_vendor import StubVendor
from diopi_test.run import lookup, run_case
from diopi_test.run.collection import Collected, collect_file
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.ending import cpu_seconds
from diopi_test.run.isolation.exchange import Exchange, Requester, serve_requests
from diopi_test.run.isolation.process_state import ProcessState
from diopi_test.run.isolation.remote_target import RemoteTarget
from diopi_test.run.isolation.vendor_main import VendorServer
from diopi_test.run.limits import CaseOptions
from diopi_test.run.session import Session
from diopi_test.run.target import LocalTarget

REPLAY = "handing back the results (the vendor's)"
"""The title of the part that writes the expected results, which is no cost of the suite."""

PARTS: Sequence[tuple[str, object, str]] = (
    ("reading the case", BaselineFile, "case"),
    ("context and stream", call, "Context"),
    ("images of inputs", call_arguments, "storage_image"),
    ("poison of results", call_arguments, "poisoned_array"),
    ("creating tensors", call_arguments.CallArguments, "_empty_tensor"),
    ("ballast", call.Ballast, "keep_busy"),
    ("sending inputs", call.Call, "send_inputs"),
    ("passing arguments, the call", NativeVendor, "call"),
    (REPLAY, StubVendor, "call"),
    ("reading back", call.Call, "_read_storages"),
    ("guards, release", call.Call, "__exit__"),
    ("arguments and records", call.Call, "run"),
    ("arguments and records", call.Call, "run_rejected"),
    ("making a negative test", lookup, "make_negative_case"),
)
"""The measured parts: a title, and the object and the name of the function.

The time of a part that runs within another one does not count for the outer part.
"""

REMAINDER = "calls of a case, findings, verdict"
"""The title of the time that no measured part accounts for."""


@final
@dataclass(frozen=True)
class Work:
    """A case to run.

    Attributes:
        path: the file that contains the case, or the case from which it is derived.
        case: the case.
        kind: the title of the kind of case.
    """

    path: Path
    case: Collected
    kind: str

    def run(self, session: Session) -> Outcome:
        """Return the outcome of the case, which runs in a session."""
        return session.run(self.path, self.case)


class Clock:
    """CPU seconds by part. The time of a nested part is subtracted from the part around it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._nested_seconds: list[float] = []

    def wrap(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `function` and adds its time to `part`."""

        def run(*arguments: Any, **named: Any) -> Any:
            self._nested_seconds.append(0.0)
            start = process_time()
            try:
                return function(*arguments, **named)
            finally:
                seconds = process_time() - start
                self.seconds[part] += seconds - self._nested_seconds.pop()
                if self._nested_seconds:
                    self._nested_seconds[-1] += seconds

        return run


@contextmanager
def measure_parts(clock: Clock) -> Iterator[None]:
    """Return a context manager in which a clock measures every part and every check."""
    originals = [(owner, name, getattr(owner, name)) for _, owner, name in PARTS]
    lists = {name: getattr(run_case, name) for name in ("CHECKS", "CHECKS_OF_RELEASE", "COMPARISONS")}
    for part, owner, name in PARTS:
        setattr(owner, name, clock.wrap(part, getattr(owner, name)))
    for name, checks in lists.items():
        wrapped = tuple(clock.wrap(f"check {check.__module__.rpartition('.')[2]}", check) for check in checks)
        setattr(run_case, name, wrapped)
    try:
        yield
    finally:
        for owner, name, function in originals:
            setattr(owner, name, function)
        for name, checks in lists.items():
            setattr(run_case, name, checks)


class Bench:
    """A session of the replaying vendor, with measurements of cases."""

    def __init__(self, vendor: ReplayingVendor) -> None:
        self.vendor = vendor
        self.session = Session(LocalTarget(vendor, vendor.open_device()), CaseOptions())

    def list_passing(self, paths: Sequence[Path]) -> list[Work]:
        """Run the cases of these files once, and return those that pass. Some cases with random results can't pass."""
        work = []
        for path in paths:
            basic = {case.label for case in open_level_of_file(path).open(path.stem) if case.smoke}
            work += [Work(path, case, _kind(case, basic)) for case in collect_file(path)]
        return [item for item in work if item.run(self.session).verdict is Verdict.passed]

    def round(self, work: Sequence[Work]) -> float:
        """Return the CPU seconds of running `work` once, except those that the vendor takes."""
        self.vendor.seconds, self.vendor.calls = 0.0, 0
        start = process_time()
        for item in work:
            item.run(self.session)
        return process_time() - start - self.vendor.seconds

    def dissect(self, work: Sequence[Work]) -> dict[str, float]:
        """Return the CPU seconds of a round by part."""
        clock = Clock()
        with measure_parts(clock):
            clock.wrap(REMAINDER, self.round)(work)
        del clock.seconds[REPLAY]
        return clock.seconds


def _kind(case: Collected, basic: Container[str]) -> str:
    """Return the title of the kind of a case."""
    if case.case_class is CaseClass.negative:
        return "negative tests"
    return "basic cases" if case.label in basic else "other cases"


@contextmanager
def vendor_in_other_process(vendor: ReplayingVendor) -> Iterator[tuple[Session, int]]:
    """Yield a session whose vendor is in another process, and the number of that process."""
    parent_socket, child_socket = socket.socketpair()
    process = os.fork()
    if not process:
        parent_socket.close()
        target = LocalTarget(vendor, vendor.open_device())
        serve_requests(Exchange(child_socket), VendorServer(target, ProcessState(), watch_forks()).handle)
        os._exit(0)
    child_socket.close()
    with parent_socket:
        target = RemoteTarget(Requester(Exchange(parent_socket)), Description.from_vendor(vendor))
        yield Session(target, CaseOptions()), process
    os.waitpid(process, 0)


def measure_separately(vendor: ReplayingVendor, work: Sequence[Work], rounds: int) -> float:
    """Return the CPU seconds of both processes, including the vendor's seconds, while `work` runs."""
    with vendor_in_other_process(vendor) as (session, process):
        times = []
        for _ in range(rounds + 1):
            start = process_time() + cpu_seconds(process)
            for item in work:
                item.run(session)
            times.append(process_time() + cpu_seconds(process) - start)
    return min(times[1:])  # the first round opens the files


def measure_opening(paths: Sequence[Path]) -> float:
    """Return the CPU seconds of opening, reading and verifying these files."""
    start = process_time()
    for path in paths:
        file = open_level_of_file(path).open(path.stem)
        file.verify()
    return process_time() - start


def show(bench: Bench, title: str, work: Sequence[Work], rounds: int) -> None:
    """Print the total and the parts for one kind of cases."""
    gc.collect()
    best = min(bench.round(work) for _ in range(rounds))
    calls, count = bench.vendor.calls / len(work), len(work)
    print(f"{title}: {count} cases of {calls:.2f} calls each, {1000 * best / count:.3f} ms of CPU a case")
    parts = bench.dissect(work)
    total = sum(parts.values())
    table = Table("part", "share", "ms a case", box=None)
    for part, seconds in sorted(parts.items(), key=lambda item: -item[1]):
        share = seconds / total
        table.add_row(part, f"{100 * share:.1f} %", f"{1000 * share * best / count:.3f}")
    Console().print(table)


@click.command(help=__doc__)
@click.option("--data", type=click.Path(path_type=Path), default=None)
@click.option("--level", default="smoke", type=click.Choice(["smoke", "full"]))
@click.option("--every", "stride", default=4, help="Measure every N-th function.")
@click.option("--rounds", default=5)
@click.option("--separate", is_flag=True, help="Also measure the evaluation in another process.")
def main(data: Path | None, level: str, stride: int, rounds: int, separate: bool) -> None:
    """Print the figures."""
    folder = data / level if data else folder_to_read(level)
    paths = sorted(folder.glob(f"*{SUFFIX}"))[::stride]
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(ReplayingVendor(build(Path(place))))
        work = bench.list_passing(paths)
        for kind in ("basic cases", "other cases", "negative tests"):
            show(bench, kind, [item for item in work if item.kind == kind], rounds)
        best = min(bench.round(work) for _ in range(rounds))
        print(f"all {len(work)} cases: {1000 * best / len(work):.3f} ms of CPU a case")
        if separate:
            vendor_seconds = bench.vendor.seconds
            separate_seconds = measure_separately(bench.vendor, work, rounds) - vendor_seconds
            milliseconds = 1000 * separate_seconds / len(work)
            print(f"the same cases, evaluated in another process: {milliseconds:.3f} ms of CPU a case")
        opening = 1000 * measure_opening(paths) / len(work)
        print(f"opening and verifying {len(paths)} files: {opening:.3f} ms of CPU a case")


if __name__ == "__main__":
    main()
