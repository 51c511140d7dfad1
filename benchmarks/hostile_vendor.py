"""Measure the cost of a hostile vendor: a run with crashes and hangs, a single crash, and the memory of a long run.

    python benchmarks/hostile_vendor.py [-n 2] [--rounds 1] [--long 100000] [--vendor jax_cpu]

The vendor in C is in tests/vendors/faulty and does almost no work. Of a thousand cases of the smoke level, 1 %
crash and 0.2 % hang, with a time limit of one second. The cost of a crash is the CPU time of all processes of a run
with crashes minus that of the same run without crashes. It is measured for the vendor in C and for a vendor in Python
that wraps `--vendor`. For the memory, the same cases run repeatedly; the figures are the memory of the process that
distributes the cases and of the largest worker. The figures depend on the machine and its load. Compare only figures of
one run.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
from rich.console import Console
from rich.table import Table

from diopi_proto import headers
from diopi_test.run.collection import Collected, collect_file

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "tests" / "vendors" / "faulty").glob("*.c"))
"""The sources of the vendor in C."""

BASELINE = ROOT / "baseline_data"

FUNCTIONS = tuple(
    f"diopi{name}"
    for name in (
        *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Expm1"),
        *("Floor", "Log", "Log10", "Log1p", "Log2", "Neg", "Reciprocal", "Rsqrt", "Sigmoid", "Sin", "Sinh"),
        *("Sqrt", "Tan", "Tanh"),
    )
)
"""The operators of the vendor in C, with about a thousand cases. In each operator, one case may crash or hang."""

CRASHING, HANGING = FUNCTIONS[:-2:2][:10], FUNCTIONS[-2:]
"""The functions with a case that crashes, and the functions with a case that hangs."""

SAMPLES = 10
"""The number of times that the memory is measured in a long run."""

# The source of a vendor in Python that crashes
CRASHING_VENDOR = '''
"""A vendor that ends its process where an input holds a NaN, in the functions that the environment names."""
import os

import numpy as np

from diopi_impl import find_vendor
from lib_rt import Tensor

vendor = find_vendor(os.environ["BENCHMARK_VENDOR"])
honest = type(vendor).call


def call(self, name, context, *arguments):
    if f"{name}=" in os.environ["DIOPI_TEST_FAULT"]:
        context.stream.synchronize()
        tensors = [argument for argument in arguments[1:] if isinstance(argument, Tensor)]
        if any(x.dtype.name == "float32" and np.isnan(x.numpy()).any() for x in tensors):
            os.abort()
    return honest(self, name, context, *arguments)


type(vendor).call = call
'''


@dataclass(frozen=True)
class Usage:
    """The cost of a run.

    Attributes:
        wall: the elapsed seconds.
        cpu: the CPU seconds of all processes.
        counts: the number of cases by verdict.
    """

    wall: float
    cpu: float
    counts: Mapping[str, int]


def run(vendor: str, folder: Path, faults: str, workers: int, *options: str) -> Usage:
    """Run the suite with the faults of `DIOPI_TEST_FAULT` and return its cost.

    Args:
        vendor: the vendor.
        folder: the folder for the report and the state.
        faults: the faults.
        workers: the number of workers.
        *options: further options of `diopi-test run`.
    """
    report = folder / "report.json"
    selected = [word for function in FUNCTIONS for word in ("--function", function)]
    command = [sys.executable, "-m", "diopi_test", "run", "--vendor", vendor, "--data", str(BASELINE), *selected]
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    variables = {"DIOPI_TEST_FAULT": faults, "XDG_STATE_HOME": str(folder), "PYTHONPATH": path}
    usage_before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.run(
        [*command, "-n", str(workers), "--json", str(report), *options],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    wall, usage_after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in (0, 1):
        raise click.ClickException(process.stdout + process.stderr)
    cpu = usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime
    return Usage(wall, cpu, json.loads(report.read_text())["summary"])


def run_repeatedly(rounds: int, vendor: str, folder: Path, faults: str, workers: int, *options: str) -> Usage:
    """Run the suite `rounds` times and return the medians of the costs; `run` describes the other arguments."""
    runs = [run(vendor, folder, faults, workers, *options) for _ in range(rounds)]
    return Usage(median(usage.wall for usage in runs), median(usage.cpu for usage in runs), runs[0].counts)


def place_fault(functions: Sequence[str], fault: str) -> str:
    """Return the value of `DIOPI_TEST_FAULT` that puts the fault into each of these functions."""
    return ",".join(f"{function}={fault}" for function in functions)


def build(folder: Path) -> Path:
    """Compile the vendor in C and return the path of the library."""
    library = folder / "libdiopi_impl.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", f"-I{headers.INCLUDE_DIR}", "-o", str(library)]
    subprocess.run([*command, *map(str, SOURCES), "-pthread", "-lm"], check=True)
    return library


def descendants(process: int) -> Iterator[int]:
    """Yield the living descendants of a process."""
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from descendants(child)


def resident_megabytes(process: int) -> float:
    """Return the resident memory of a process in megabytes; 0 if it has ended."""
    with suppress(OSError):
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20
    return 0.0


def cases_of(functions: Sequence[str]) -> Iterator[tuple[Path, list[Collected]]]:
    """Yield the baseline file of each function, and its cases."""
    for function in functions:
        path = BASELINE / "smoke" / f"{function}.h5"
        yield path, list(collect_file(path))


def memory(vendor: str, cases: int, workers: int) -> Iterator[tuple[int, float, float]]:
    """Yield at intervals: the number of finished cases, the megabytes of this process and of the largest worker."""
    from diopi_test.run.isolation.executor import Executor, ScheduledCase

    batches = [[ScheduledCase(path, case) for case in labels] for path, labels in cases_of(FUNCTIONS)]
    rounds = max(1, round(cases / sum(map(len, batches)) / SAMPLES))
    reported = 0

    def count(*_: object) -> None:
        nonlocal reported
        reported += 1

    with Executor(vendor, workers) as executor:
        executor.describe()
        for _ in range(SAMPLES):
            executor.run(itertools.chain.from_iterable(itertools.repeat(batches, rounds)), count)
            yield (
                reported,
                resident_megabytes(os.getpid()),
                max(map(resident_megabytes, descendants(os.getpid())), default=0.0),
            )


@click.command(help=__doc__)
@click.option("-n", "workers", default=2)
@click.option("--rounds", default=1, help="Number of runs; the script prints their median.")
@click.option("--long", "cases", default=100_000, help="Cases of the long run; 0 for none.")
@click.option("--vendor", default="jax_cpu", help="The vendor in Python.")
def main(workers: int, rounds: int, cases: int, vendor: str) -> None:
    """Print the figures."""
    os.environ["BENCHMARK_VENDOR"] = vendor
    crashes, hangs = place_fault(CRASHING, "segfault"), place_fault(HANGING, "hang")
    table = Table("", "s", "CPU s", "cases", "crashed", "timed out")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = str(build(folder))
        (folder / "crashing_vendor.py").write_text(CRASHING_VENDOR)

        def report_usage(label: str, vendor: str, faults: str, *options: str) -> Usage:
            usage = run_repeatedly(rounds, vendor, folder, faults, workers, *options)
            counts = (str(usage.counts[key]) for key in ("total", "crashed", "timed_out"))
            table.add_row(label, f"{usage.wall:.2f}", f"{usage.cpu:.2f}", *counts)
            return usage

        honest = report_usage("C, honest", library, "", "--timeout", "1")
        hostile = report_usage("C, crashes and hangs", library, f"{crashes},{hangs}", "--timeout", "1")
        crashing = report_usage("C, crashes", library, crashes, "--timeout", "1")
        python = report_usage(f"{vendor}, honest", "crashing_vendor:vendor", "", "-k", "float32")
        python_crashing = report_usage(f"{vendor}, crashes", "crashing_vendor:vendor", crashes, "-k", "float32")
        Console().print(table)
        print(f"with crashes and hangs : honest   {hostile.wall / honest.wall:8.2f}")
        for label, reference_usage, more in (("in C", honest, crashing), (vendor, python, python_crashing)):
            cost = 1000 * (more.cpu - reference_usage.cpu) / max(more.counts["crashed"], 1)
            print(f"a crash of the vendor {label:8}    {cost:8.0f} ms of CPU, confirmed by a second one")
        if cases:
            for count, runner, device in memory(library, cases, workers):
                print(f"after {count:8} cases {runner:8.1f} MB, worker {device:8.1f} MB")


if __name__ == "__main__":
    main()
