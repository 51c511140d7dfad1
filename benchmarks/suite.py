"""Measure the cost of the suite: generating the baseline, the suite's time per case, and a first run with its memory.

    python benchmarks/suite.py [--level full] [--vendor jax_cpu] [-n 2] [-k EXPR]

The figures depend on the machine; compare only figures of one run.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import click


@dataclass(frozen=True)
class Usage:
    """The cost of a command.

    Attributes:
        wall: the elapsed seconds.
        cpu: the CPU seconds of all processes.
        megabytes: the memory of the largest process.
    """

    wall: float
    cpu: float
    megabytes: float


def measure(*arguments: str) -> Usage:
    """Run `diopi-test` with `arguments` and return its usage."""
    usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    process = subprocess.run([sys.executable, "-m", "diopi_test", *arguments], capture_output=True, text=True)
    wall = time.monotonic() - start
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in (0, 1):
        raise click.ClickException(process.stdout + process.stderr)
    cpu = usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime
    return Usage(wall, cpu, usage_after.ru_maxrss / 1024)


def run(vendor: str, data: Path, level: str, workers: int, select: list[str]) -> tuple[Usage, int]:
    """Run the suite; return its usage and the number of cases.

    Args:
        vendor: the vendor.
        data: the folder of the baseline.
        level: the level.
        workers: the number of workers.
        select: further options that select cases.
    """
    report = data / "report.json"
    arguments = ["--vendor", vendor, "--data", str(data), "--level", level, "-n", str(workers), "--json", str(report)]
    usage = measure("run", *arguments, *select)
    return usage, json.loads(report.read_text())["summary"]["total"]


@click.command(help=__doc__)
@click.option("--level", default="full", type=click.Choice(["smoke", "full"]))
@click.option("--vendor", default="jax_cpu")
@click.option("-n", "workers", default=2)
@click.option("-k", "expression", default=None)
def main(level: str, vendor: str, workers: int, expression: str | None) -> None:
    """Print the figures."""
    select = ["-k", expression] if expression else []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        generated = measure("gen-data", "--data", folder, "--level", level, "-n", str(workers), *select)
        size = sum(path.stat().st_size for path in data.rglob("*.h5")) / 2**20
        one_case = "diopiSin[float32-matrix]"
        start, _ = run("diopi_test.quality.stub_vendor:vendor", data, level, workers, ["-k", one_case])
        stub, cases = run("diopi_test.quality.stub_vendor:vendor", data, level, workers, select)
        cold, _ = run(vendor, data, level, workers, select)
    print(f"{cases} cases at level {level}, {workers} processes, baseline {size:.1f} MB")
    print(f"gen-data              {cases / generated.wall:8.1f} cases/s")
    print(f"suite's own cost      {1000 * (stub.cpu - start.cpu) / cases:8.2f} ms of CPU a case")
    print(f"{vendor:20}  {cases / cold.wall:8.1f} cases/s cold, {1000 * cold.cpu / cases:.1f} ms of CPU a case")
    print(f"largest process       {max(cold.megabytes, stub.megabytes):8.0f} MB resident")


if __name__ == "__main__":
    main()
