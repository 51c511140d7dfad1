"""What calls at the sizes of models cost `jax_cpu`, beside PyTorch's kernels.

    python benchmarks/model_sizes.py [PATTERN …] [--limit 60] [--settings auto,0,1]
    python benchmarks/model_sizes.py [PATTERN …] --level large --data DIR [--sample 100 [--seed 1]]

The first measures the calls of `model_calls.py`, the second those of a level that `diopi-test gen-data` made in DIR (or
where it makes it without --data): large, or models-NAME, which have a tensor of more than 2^16 elements; all, or a
sample of them that is drawn from the seed.

For each call: the processor time of `torch_cpu`, and of `jax_cpu` with each setting of `DIOPI_JAX_OPTIMIZE` its time as
a multiple of that, and what compiling took. Processor time, as other work on the machine does not count in it; the best
of three calls. Linear algebra has one thread, as PyTorch has: several wait for one another, and that is processor time
too, hundreds of times as much as the work where the machine has other work to do. A call that takes longer than
`--limit` seconds is stopped, and shown as such. Patterns are those of file names: `Conv*Backward*`.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from math import prod
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np
from model_calls import CALLS, Call, Drawn, Result
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from diopi_impl import find_vendor
from diopi_proto.types import Error
from diopi_test.baseline.level import open_level
from diopi_test.baseline.location import folder_to_write
from diopi_test.cases.model import Case, is_huge, tensors_of
from diopi_test.cases.selection import select_cases
from diopi_test.execution.call import Call as CallOfCase
from lib_rt import Context, Tensor

REPEATS = 3
AT_MOST = 20
"""Times PyTorch's time that a call of the built-in vendor may take."""


LEAST = 2**16
"""Elements that a tensor has more than, of cases that are measured."""

Attempt = Callable[[], Error]
"""Makes a call and tells how it ended."""


@dataclass(frozen=True)
class Cost:
    """Seconds of one call, and what came before the first; or why there are none."""

    run: float = float("inf")
    compiled: float = 0.0
    problem: str = ""


class Timed:
    """A vendor, with the processor time of the latest call."""

    def __init__(self, vendor: Any) -> None:
        self._vendor = vendor
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vendor, name)

    def call(self, *arguments: Any) -> Error:
        """Make a call."""
        start = process_time()
        code: Error = self._vendor.call(*arguments)
        self.seconds = process_time() - start
        return code


@dataclass(frozen=True)
class CaseCall:
    """The call of a case of a level."""

    folder: Path
    function: str
    case: str

    @property
    def label(self) -> str:
        """As in `Call`."""
        return f"{self.function.removeprefix('diopi')}[{self.case}]"

    @contextmanager
    def attempts(self, vendor: Any, device: Any) -> Iterator[Attempt]:
        """Makes the call, with tensors made anew each time."""
        case = open_level(self.folder).open(self.function).case(self.case)

        def attempt() -> Error:
            with CallOfCase(vendor, device, case) as call:
                return call.refused()[0]

        yield attempt


@contextmanager
def attempts(call: Call, vendor: Any, device: Any) -> Iterator[Attempt]:
    """Makes a call of `model_calls.py`, with the same tensors each time."""
    with Context(device) as context:
        rng = np.random.default_rng(0)
        arguments = [prepared(context, value, rng) for value in call.arguments]
        yield lambda: vendor.call("diopi" + call.function, context, *arguments)


def prepared(context: Context, value: Any, rng: np.random.Generator) -> Any:
    """An argument as vendors take it."""
    if isinstance(value, Result):
        return Tensor.empty(context, value.shape, value.dtype)
    if isinstance(value, list):
        return [prepared(context, one, rng) for one in value]
    return Tensor.from_numpy(context, np.asarray(value.draw(rng))) if isinstance(value, Drawn) else value


def measure(vendor: Timed, device: Any, call: Call | CaseCall) -> Cost:
    """The best of `REPEATS` calls after a first one, fewer if they are long."""
    times: list[float] = []
    with attempts(call, vendor, device) if isinstance(call, Call) else call.attempts(vendor, device) as attempt:
        while len(times) <= REPEATS and sum(times[1:]) < 5:
            if attempt() is not Error.Success:
                return Cost(problem=vendor.last_error())
            times.append(vendor.seconds)
    return Cost(min(times[1:]), times[0] - min(times[1:]))


def calls_of(level: str, data: Path | None, sample: int | None, seed: int) -> list[CaseCall]:
    """The calls of a level that have a tensor of more than `LEAST` elements: all, or so many, drawn from the seed."""
    opened = open_level(data / level if data else folder_to_write(level))
    found = [
        CaseCall(opened.folder, function, case.label)
        for function in opened.functions
        for case in select_cases(function, level)
        if not is_huge(case) and elements(case) > LEAST
    ]
    return found if sample is None else random.Random(seed).sample(found, min(sample, len(found)))


def elements(case: Case) -> int:
    """Of the largest tensor that is passed."""
    shapes = [spec.shape for value in case.arguments.values() for spec in tensors_of(value)]
    return max(map(prod, shapes), default=0)


def serve(name: str, optimize: str, orders: Connection) -> None:
    """Measure the calls that come in, in a process of its own."""
    if optimize == "auto":
        os.environ.pop("DIOPI_JAX_OPTIMIZE", None)
    else:
        os.environ["DIOPI_JAX_OPTIMIZE"] = optimize
    vendor = Timed(find_vendor(name))
    with vendor.open_device() as device:
        orders.send("ready")
        while (order := orders.recv()) is not None:
            orders.send(measure(vendor, device, CALLS[order] if isinstance(order, int) else order))


class Server:
    """A process that measures; it is replaced when a call takes too long."""

    def __init__(self, name: str, optimize: str, limit: float) -> None:
        self._arguments = name, optimize
        self._limit = limit
        self._start()

    def _start(self) -> None:
        self._orders, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=serve, args=(*self._arguments, theirs))
        self._process.start()
        theirs.close()
        self._orders.recv()

    def measure(self, order: int | CaseCall) -> Cost:
        """The cost of a case's call, or of that of this number."""
        start = perf_counter()
        self._orders.send(order)
        try:
            if self._orders.poll(self._limit):
                return self._orders.recv()
            problem = f"over {perf_counter() - start:.0f} s"
        except (EOFError, ConnectionResetError):
            problem = "the process ended"
        self._process.kill()
        self._process.join()
        self._start()
        return Cost(problem=problem)

    def close(self) -> None:
        """End the process."""
        self._orders.send(None)
        self._process.join()


def multiple(torch: Cost, jax: Cost) -> float:
    """How many times as long as PyTorch; 0 where there is nothing to compare with."""
    return 0.0 if torch.problem else jax.run / torch.run


def cell(cost: Cost, torch: Cost) -> str:
    """Multiple of PyTorch's time, or seconds where it has none, and seconds of compilation."""
    run = f"{cost.run:.4f} s" if torch.problem else f"{multiple(torch, cost):.1f}×"
    return cost.problem or f"{run} + {cost.compiled:.2f} s"


@click.command(help=__doc__)
@click.argument("patterns", nargs=-1)
@click.option("--limit", default=60.0, help="Seconds a call may take, compilation included.")
@click.option("--settings", default="auto,0,1", help="Values of DIOPI_JAX_OPTIMIZE; auto: not set.")
@click.option("--level", help="Measure the calls of this level.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False, exists=True), help="Where the level lies.")
@click.option("--sample", type=click.IntRange(min=1), help="Measure so many calls of the level.")
@click.option("--seed", default=1, help="What they are drawn from.")
def main(
    patterns: tuple[str, ...],
    limit: float,
    settings: str,
    level: str | None,
    data: Path | None,
    sample: int | None,
    seed: int,
) -> None:
    """Measure and print the table, the slowest first."""
    console = Console()
    names = settings.split(",")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes that measure
    due: Sequence[Call | CaseCall] = calls_of(level, data, sample, seed) if level else CALLS
    servers = [Server("torch_cpu", "auto", limit), *(Server("jax_cpu", name, limit) for name in names)]
    rows: list[tuple[str, list[Cost]]] = []
    for number, call in enumerate(due):
        if any(fnmatch(call.label, pattern) for pattern in patterns or ("*",)):
            order = call if isinstance(call, CaseCall) else number  # what is drawn can't be sent to another process
            rows.append((call.label, [server.measure(order) for server in servers]))
            torch, *jax = rows[-1][1]
            seconds = torch.problem or f"{torch.run:.4f} s"
            console.print(call.label, seconds, *(cell(cost, torch) for cost in jax), markup=False, highlight=False)
    for server in servers:
        server.close()
    show(console, names, rows)


def show(console: Console, names: list[str], rows: list[tuple[str, list[Cost]]]) -> None:
    """The table, sorted by the multiple with the first setting, and which calls take too long."""
    table = Table("call", "torch_cpu", *(f"jax_cpu, {name}" for name in names), box=None)
    rows.sort(key=lambda row: multiple(*row[1][:2]), reverse=True)
    for label, (torch, *jax) in rows:
        cells = (cell(cost, torch) for cost in jax)
        table.add_row(escape(label), escape(torch.problem) or f"{torch.run:.4f} s", *map(escape, cells))
    console.print(table)
    compared = [(label, costs) for label, costs in rows if not costs[0].problem]
    slow = [label for label, costs in compared if multiple(*costs[:2]) > AT_MOST]
    found = f"{len(slow)} of {len(compared)} calls take more than {AT_MOST} times as long with {names[0]}"
    console.print(f"{found}; {len(rows) - len(compared)} are not PyTorch's", highlight=False)
    for label in slow:
        console.print(f"  {label}", markup=False, highlight=False)


if __name__ == "__main__":
    main()
