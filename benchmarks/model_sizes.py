"""Compare the time of `jax_cpu` with that of PyTorch's kernels, for calls at the sizes of models.

    python benchmarks/model_sizes.py [PATTERN …] [--limit 60] [--settings auto,0,1]
    python benchmarks/model_sizes.py [PATTERN …] --level LEVEL [--least 65536] [--sample 100 [--seed 1]]

The first command measures the calls of `model_calls.py`. The second one measures the calls of a level that have a
tensor with more than `--least` elements: level large, models, or models-NAME for one network. It measures all of them,
or a sample that the seed determines. The inputs are generated for the measurement, and no results are compared, so no
baseline is needed.

For each call, the table has the processor time of `torch_cpu`. For `jax_cpu` with each setting of `DIOPI_JAX_OPTIMIZE`,
it has the time as a multiple of `torch_cpu`, and the seconds of compilation. Processor time does not include other
processes; the best of three calls counts. A call that takes longer than `--limit` seconds is stopped and marked.
Patterns are those of file names: `Conv*Backward*`. `--log FILE` writes each call to a file when it has been measured;
calls in the file are not measured again, so you can resume an interrupted measurement.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click
import level_calls
import numpy as np
from level_calls import CaseCall
from model_calls import CALLS, ModelCall, RandomTensor, Result
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from diopi_impl import find_vendor
from diopi_proto.types import Error
from diopi_test.cases.selection import LEVELS
from diopi_test.oracle.records import BaselineCase
from lib_rt import Context, Tensor

REPEATS = 3
"""The number of times that a call is measured; the best time counts."""

AT_MOST = 20
"""The largest accepted multiple of PyTorch's time for a call of the built-in vendor."""

Attempt = Callable[[], Error]
"""A function that makes a call and returns its error code."""


@dataclass(frozen=True)
class Cost:
    """The cost of a call, or the problem that prevented the measurement.

    Attributes:
        run: the seconds of one call.
        compiled: the seconds of compilation.
        problem: the problem; empty if there is none.
    """

    run: float = 0.0
    compiled: float = 0.0
    problem: str = ""


class TimedVendor:
    """A vendor that measures the processor time of its latest call."""

    def __init__(self, vendor: Any) -> None:
        self._vendor = vendor
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vendor, name)

    def call(self, *arguments: Any) -> Error:
        """Return the error code of a call, and measure the call."""
        start = process_time()
        code: Error = self._vendor.call(*arguments)
        self.seconds = process_time() - start
        return code


@contextmanager
def prepare_call(call: ModelCall, vendor: Any, device: Any) -> Iterator[Attempt]:
    """Yield a function that makes a call of `model_calls.py`, always with the same tensors."""
    with Context(device) as context:
        rng = np.random.default_rng(0)
        arguments = [to_vendor_argument(context, value, rng) for value in call.arguments]
        yield lambda: vendor.call("diopi" + call.function, context, *arguments)


def to_vendor_argument(context: Context, value: Any, rng: np.random.Generator) -> Any:
    """Return an argument in the form that vendors take."""
    if isinstance(value, Result):
        return Tensor.empty(context, value.shape, value.dtype)
    if isinstance(value, list):
        return [to_vendor_argument(context, argument, rng) for argument in value]
    return Tensor.from_numpy(context, np.asarray(value.draw(rng))) if isinstance(value, RandomTensor) else value


CallRequest = int | BaselineCase
"""A call to measure, as it is sent to a process: an index in `CALLS`, or a case."""


def measure(vendor: TimedVendor, device: Any, request: CallRequest) -> Cost:
    """Return the cost of a call: the best of `REPEATS` calls after a first one, or of fewer if they take long."""
    times: list[float] = []
    attempt_of_call = prepare_call(CALLS[request], vendor, device) if isinstance(request, int) else None
    with attempt_of_call or level_calls.prepare_call(request, vendor, device) as attempt:
        while len(times) <= REPEATS and sum(times[1:]) < 5:
            if attempt() is not Error.Success:
                return Cost(problem=vendor.last_error())
            times.append(vendor.seconds)
    return Cost(min(times[1:]), times[0] - min(times[1:]))


def serve(name: str, optimize: str, connection: Connection) -> None:
    """Measure the calls that arrive at a separate process, until None arrives.

    Args:
        name: the name of the vendor.
        optimize: the value of `DIOPI_JAX_OPTIMIZE`, or `auto` for none.
        connection: receives the calls and sends their costs.
    """
    if optimize == "auto":
        os.environ.pop("DIOPI_JAX_OPTIMIZE", None)
    else:
        os.environ["DIOPI_JAX_OPTIMIZE"] = optimize
    vendor = TimedVendor(find_vendor(name))
    with vendor.open_device() as device:
        connection.send("ready")
        while (request := connection.recv()) is not None:
            connection.send(measure(vendor, device, request))


class Server:
    """A process that measures calls. It is replaced when a call takes too long.

    Args:
        name: the name of the vendor.
        optimize: the value of DIOPI_JAX_OPTIMIZE in the process.
        limit: the seconds after which a call takes too long.
    """

    def __init__(self, name: str, optimize: str, limit: float) -> None:
        self._arguments = name, optimize
        self._limit = limit
        self._start()

    def _start(self) -> None:
        """Start the process and wait until it has loaded the vendor."""
        self._connection, remote_end = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=serve, args=(*self._arguments, remote_end))
        self._process.start()
        remote_end.close()
        self._connection.recv()

    def measure(self, request: CallRequest) -> Cost:
        """Return the cost of a call."""
        start = perf_counter()
        self._connection.send(request)
        try:
            if self._connection.poll(self._limit):
                cost: Cost = self._connection.recv()
                return cost
            problem = f"over {perf_counter() - start:.0f} s"
        except (EOFError, ConnectionResetError):
            problem = "the process ended"
        self._process.kill()
        self._process.join()
        self._start()
        return Cost(problem=problem)

    def close(self) -> None:
        """End the process."""
        self._connection.send(None)
        self._process.join()


class Costs:
    """The costs of calls for `torch_cpu` and for `jax_cpu` with each setting, by label, optionally stored in a file."""

    def __init__(self, names: Sequence[str], path: Path | None) -> None:
        self._path = path
        self._columns = ["torch_cpu", *names]
        self.by_label: dict[str, list[Cost]] = {}
        lines = path.read_text("utf-8").splitlines(keepends=True) if path and path.exists() else []
        if path and lines and not lines[-1].endswith("\n"):  # the process was killed as it wrote
            path.write_text("".join(lines[:-1]), "utf-8")
        for line in (json.loads(line) for line in lines if line.endswith("\n")):
            if not set(self._columns) <= line.keys():
                raise click.UsageError(f"{path} has the costs of {[*line][1:]}, expected {self._columns}")
            self.by_label[line["call"]] = [Cost(**line[column]) for column in self._columns]

    def add(self, label: str, costs: list[Cost]) -> None:
        """Store the costs of a call."""
        self.by_label[label] = costs
        if self._path:
            line = {"call": label, **{column: asdict(cost) for column, cost in zip(self._columns, costs, strict=True)}}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def multiple(torch: Cost, jax: Cost) -> float:
    """Return the time of `jax_cpu` as a multiple of PyTorch's; 0 if PyTorch's time is missing."""
    return 0.0 if torch.problem else float("inf") if jax.problem else jax.run / torch.run


def cell(cost: Cost, torch: Cost) -> str:
    """Return a cell: the multiple of PyTorch's time, or seconds if that is missing, and the seconds of compilation."""
    run = f"{cost.run:.4f} s" if torch.problem else f"{multiple(torch, cost):.1f}×"
    return cost.problem or f"{run} + {cost.compiled:.2f} s"


def select_calls(
    patterns: Sequence[str], level: str | None, least: int, sample: int | None, seed: int
) -> Sequence[ModelCall | CaseCall]:
    """Return the selected calls."""
    calls: Sequence[ModelCall | CaseCall] = list(level_calls.calls_of(level, least)) if level else CALLS
    selected = [call for call in calls if any(fnmatch(call.label, pattern) for pattern in patterns or ("*",))]
    return selected if sample is None else random.Random(seed).sample(selected, min(sample, len(selected)))


@click.command(help=__doc__)
@click.argument("patterns", nargs=-1)
@click.option("--limit", default=60.0, help="Seconds a call may take, compilation included.")
@click.option("--settings", default="auto,0,1", help="Values of DIOPI_JAX_OPTIMIZE; auto: not set.")
@click.option("--level", type=click.Choice([*LEVELS]), metavar="LEVEL", help="Measure the calls of this level.")
@click.option("--least", default=2**16, help="Calls of a level need a tensor with more elements.")
@click.option("--sample", type=click.IntRange(min=1), help="Number of calls in the random sample.")
@click.option("--seed", default=1, help="The seed of the sample.")
@click.option(
    "--log", type=click.Path(path_type=Path, dir_okay=False), help="Write costs to this file, and skip calls in it."
)
def main(
    patterns: tuple[str, ...],
    limit: float,
    settings: str,
    level: str | None,
    least: int,
    sample: int | None,
    seed: int,
    log: Path | None,
) -> None:
    """Measure and print the table, the slowest first."""
    console = Console()
    names = settings.split(",")
    costs = Costs(names, log)
    selected = select_calls(patterns, level, least, sample, seed)
    servers = [Server("torch_cpu", "auto", limit), *(Server("jax_cpu", name, limit) for name in names)]
    for call in (call for call in selected if call.label not in costs.by_label):
        request = call.draw_inputs() if isinstance(call, CaseCall) else CALLS.index(call)
        torch, *jax = costs_of_call = [server.measure(request) for server in servers]
        costs.add(call.label, costs_of_call)
        seconds = torch.problem or f"{torch.run:.4f} s"
        console.print(call.label, seconds, *(cell(cost, torch) for cost in jax), markup=False, highlight=False)
    for server in servers:
        server.close()
    show(console, names, [(call.label, costs.by_label[call.label]) for call in selected])


def show(console: Console, names: list[str], rows: list[tuple[str, list[Cost]]]) -> None:
    """Print the table, sorted by the multiple with the first setting, and the calls that take too long."""
    table = Table("call", "torch_cpu", *(f"jax_cpu, {name}" for name in names), box=None)
    rows.sort(key=lambda row: multiple(*row[1][:2]), reverse=True)
    for label, (torch, *jax) in rows:
        cells = (cell(cost, torch) for cost in jax)
        table.add_row(escape(label), escape(torch.problem) or f"{torch.run:.4f} s", *map(escape, cells))
    console.print(table)
    compared = [(label, costs) for label, costs in rows if not costs[0].problem]
    slow = [label for label, costs in compared if multiple(*costs[:2]) > AT_MOST]
    summary = f"{len(slow)} of {len(compared)} calls take more than {AT_MOST} times as long with {names[0]}"
    console.print(f"{summary}; {len(rows) - len(compared)} are not PyTorch's", highlight=False)
    for label in slow:
        console.print(f"  {label}", markup=False, highlight=False)


if __name__ == "__main__":
    main()
