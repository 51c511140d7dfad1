"""What a hostile vendor costs: a run with crashes and hangs against the honest one, a crash, and memory in a long run.

    python benchmarks/hostile_vendor.py [-n 2] [--rounds 1] [--long 100000] [--vendor jax_cpu]

The vendor is that of tests/vendors/faulty, in C, with next to no work: of a thousand cases of the smoke level 1 % crash
and 0.2 % hang, where a case may take a second. A crash is priced by the CPU of all processes of a run with crashes less
that of the honest run, for that vendor and for one in Python that wraps --vendor. Memory is that of the process that
hands out the cases and of the largest worker, while the cases come again and again. Every figure is of this
machine and of what else it does; compare figures of one run only.
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
BASELINE = ROOT / "baseline_data"

FUNCTIONS = tuple(
    f"diopi{name}"
    for name in (
        *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Expm1"),
        *("Floor", "Log", "Log10", "Log1p", "Log2", "Neg", "Reciprocal", "Rsqrt", "Sigmoid", "Sin", "Sinh"),
        *("Sqrt", "Tan", "Tanh"),
    )
)
"""The operators of the vendor in C: some thousand cases, in one of which each may go wrong."""

CRASHING, HANGING = FUNCTIONS[:-2:2][:10], FUNCTIONS[-2:]
"""Where a case crashes, and where one hangs."""

SAMPLES = 10
"""Times the memory is looked at in a long run."""

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
        tensors = [one for one in arguments[1:] if isinstance(one, Tensor)]
        if any(one.dtype.name == "float32" and np.isnan(one.numpy()).any() for one in tensors):
            os.abort()
    return honest(self, name, context, *arguments)


type(vendor).call = call
'''


@dataclass(frozen=True)
class Usage:
    """Seconds by the clock and of CPU (all processes), and the counts of cases."""

    wall: float
    cpu: float
    counts: Mapping[str, int]


def run(vendor: str, folder: Path, faults: str, workers: int, *options: str) -> Usage:
    """Run the suite to its end, with what goes wrong as DIOPI_TEST_FAULT has it."""
    report = folder / "report.json"
    selected = [word for function in FUNCTIONS for word in ("--function", function)]
    command = [sys.executable, "-m", "diopi_test", "run", "--vendor", vendor, "--data", str(BASELINE), *selected]
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    variables = {"DIOPI_TEST_FAULT": faults, "XDG_STATE_HOME": str(folder), "PYTHONPATH": path}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [*command, "-n", str(workers), "--json", str(report), *options],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise click.ClickException(done.stdout + done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Usage(wall, cpu, json.loads(report.read_text())["summary"])


def of_many(rounds: int, vendor: str, folder: Path, faults: str, workers: int, *options: str) -> Usage:
    """The medians of some runs."""
    runs = [run(vendor, folder, faults, workers, *options) for _ in range(rounds)]
    return Usage(median(usage.wall for usage in runs), median(usage.cpu for usage in runs), runs[0].counts)


def place_fault(functions: Sequence[str], fault: str) -> str:
    """The fault in each of these functions."""
    return ",".join(f"{function}={fault}" for function in functions)


def build(folder: Path) -> Path:
    """The library of the vendor in C."""
    library = folder / "libdiopi_impl.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", f"-I{headers.INCLUDE_DIR}", "-o", str(library)]
    subprocess.run([*command, *map(str, SOURCES), "-pthread", "-lm"], check=True)
    return library


def family(process: int) -> Iterator[int]:
    """The living processes below a process."""
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from family(child)


def megabytes(process: int) -> float:
    """Resident memory; 0 of a process that has ended."""
    with suppress(OSError):
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20
    return 0.0


def cases_of(functions: Sequence[str]) -> Iterator[tuple[Path, list[Collected]]]:
    """The baseline file of each function, and its cases."""
    for function in functions:
        path = BASELINE / "smoke" / f"{function}.h5"
        yield path, list(collect_file(path))


def memory(vendor: str, cases: int, workers: int) -> Iterator[tuple[int, float, float]]:
    """After so many cases each: the memory of this process and of the largest below it, in megabytes."""
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
            yield reported, megabytes(os.getpid()), max(map(megabytes, family(os.getpid())), default=0.0)


@click.command(help=__doc__)
@click.option("-n", "workers", default=2)
@click.option("--rounds", default=1, help="Runs whose median is told.")
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
            usage = of_many(rounds, vendor, folder, faults, workers, *options)
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
        for label, less, more in (("in C", honest, crashing), (vendor, python, python_crashing)):
            cost = 1000 * (more.cpu - less.cpu) / max(more.counts["crashed"], 1)
            print(f"a crash of the vendor {label:8}    {cost:8.0f} ms of CPU, confirmed by a second one")
        if cases:
            for count, runner, device in memory(library, cases, workers):
                print(f"after {count:8} cases {runner:8.1f} MB, worker {device:8.1f} MB")


if __name__ == "__main__":
    main()
