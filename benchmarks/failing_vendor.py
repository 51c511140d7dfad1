"""Measure the cost of a vendor with about a thousand failures, relative to the same vendor without them.

    python benchmarks/failing_vendor.py [--vendor torch_cpu] [--step 3] [--limit 150] [-n 2]

Both runs execute the same smoke cases. The failing vendor wraps the honest vendor and damages the results of some
functions as the mutants of diopi_test/quality/mutation do: one defect per function. The cost is the CPU time of all
processes of a run. The output also shows the number of processes that loaded the vendor: each confirmation of a failure
needs a new process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from diopi_proto.interface import prototypes

ROOT = Path(__file__).parent.parent
BASELINE = ROOT / "baseline_data"
"""The folder of the committed baseline."""

# The source of the failing vendor
FAILING_VENDOR = '''
"""A vendor that damages the results of the functions that the environment names."""
import json
import os

import numpy as np

from diopi_impl import find_vendor
from diopi_proto.interface import lookup
from lib_rt import Tensor

vendor = find_vendor(os.environ["BENCHMARK_VENDOR"])
honest = type(vendor).call
defects = json.loads(os.environ["BENCHMARK_DEFECTS"])


def scale(values):
    values *= values.dtype.type(1.04)


def drop_nan(values):
    values[np.isnan(values)] = 0


def last_element(values):
    values[(-1,) * values.ndim] += 1


def tail(values):
    flat = values.reshape(-1)
    flat[len(flat) // 64 * 64 :] = 0


def swap(values):
    values[...] = values.reshape(-1)[::-1].reshape(values.shape)


def call(self, name, context, *arguments):
    code = honest(self, name, context, *arguments)
    if name in defects and not code:
        context.stream.synchronize()
        for parameter, value in zip(lookup(name).parameters[1:], arguments, strict=True):
            if parameter.is_result and isinstance(value, Tensor) and value.dtype.name in ("float32", "float64"):
                values = value.view()
                if values.size:
                    globals()[defects[name]](values)
    return code


type(vendor).call = call
'''

DEFECTS = ("scale", "drop_nan", "last_element", "tail", "swap")
"""The names of the functions of the failing vendor that damage results."""


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """The cost of a run.

    Attributes:
        cpu: the CPU time of all processes in seconds.
        cases: the number of cases.
        failures: the number of failed cases.
        functions: the number of functions with failed cases.
        causes: the number of causes.
        processes: the number of processes that loaded the vendor.
    """

    cpu: float
    cases: int
    failures: int
    functions: int
    causes: int
    processes: int


def run(folder: Path, words: Sequence[str], variables: Mapping[str, str]) -> RunCost:
    """Run the suite and return its cost.

    Args:
        folder: the folder for the report and the state.
        words: the options of `diopi-test run`.
        variables: variables of the environment.

    Returns:
        The cost.

    Raises:
        click.ClickException: The run did not finish.
    """
    report = folder / "report.json"
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "XDG_STATE_HOME": str(folder), "PYTHONPATH": path, **variables}
    usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "diopi_test", "run", *words, "--json", str(report)]
    process = subprocess.run(command, capture_output=True, text=True, env=environment)
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in (0, 1):
        raise click.ClickException(process.stdout + process.stderr)
    content: dict[str, Any] = json.loads(report.read_text("utf-8"))
    failed = [case for case in content["cases"] if case["verdict"] in ("failed", "crashed", "flaky")]
    return RunCost(
        cpu=usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime,
        cases=content["summary"]["total"],
        failures=len(failed),
        functions=len({case["function"] for case in failed}),
        causes=len(content.get("causes", [])),
        processes=sum(1 for _ in (folder / "starts").iterdir()) if (folder / "starts").is_dir() else 0,
    )


# The source of a vendor that lets the script count processes
COUNTING_VENDOR = '''
"""A vendor that leaves a file for each process that loads it."""
import os
from pathlib import Path

from {module} import vendor

Path(os.environ["BENCHMARK_STARTS"], str(os.getpid())).touch()
'''


def measure(folder: Path, module: str, words: Sequence[str], variables: Mapping[str, str]) -> RunCost:
    """Return the cost of a run of the suite on a vendor whose processes are counted.

    Args:
        folder: the folder for the vendors, the report and the state.
        module: the module of the vendor.
        words: the options of `diopi-test run`.
        variables: variables of the environment.
    """
    (folder / "starts").mkdir(parents=True)
    (folder / "counting.py").write_text(COUNTING_VENDOR.format(module=module))
    (folder / "failing.py").write_text(FAILING_VENDOR)
    starts = {"BENCHMARK_STARTS": str(folder / "starts")}
    return run(folder, ["--vendor", "counting:vendor", *words], {**variables, **starts})


@click.command()
@click.option("--vendor", default="torch_cpu", show_default=True, help="The honest vendor.")
@click.option("--step", default=3, show_default=True, help="Damage one in so many functions.")
@click.option("--limit", type=int, help="Run only this many functions.")
@click.option("-n", "workers", default=2, show_default=True)
def main(vendor: str, step: int, limit: int | None, workers: int) -> None:
    """Print the cost of both runs and their ratio."""
    functions = sorted(prototypes())[:limit]
    damaged = functions[::step]
    defects = {name: DEFECTS[number % len(DEFECTS)] for number, name in enumerate(damaged)}
    selected = [word for name in functions if limit for word in ("--function", name)]
    words = ["--data", str(BASELINE), "-n", str(workers), *selected]
    costs: dict[str, RunCost] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, chosen in (("honest", {}), ("failing", defects)):
            variables = {"BENCHMARK_VENDOR": vendor, "BENCHMARK_DEFECTS": json.dumps(chosen)}
            costs[name] = measure(Path(folder, name), "failing", words, variables)
            cost = costs[name]
            print(
                f"{name}: {cost.cpu:.1f} s of CPU for {cost.cases:,} cases, {cost.failures:,} failures in "
                f"{cost.functions} functions, {cost.causes} causes, {cost.processes} processes"
            )
    print(f"ratio: {costs['failing'].cpu / costs['honest'].cpu:.2f}")


if __name__ == "__main__":
    main()
