"""What calls at the sizes of models cost `jax_cpu`, beside PyTorch's kernels.

    python benchmarks/model_sizes.py [PATTERN …] [--limit 60] [--settings auto,0,1]

For each call: the processor time of `torch_cpu`, and of `jax_cpu` with each setting of `DIOPI_JAX_OPTIMIZE` its time as
a multiple of that, and what compiling took. Processor time, as other work on the machine does not count in it; the best
of three calls. A call that takes longer than `--limit` seconds is stopped, and shown as such. Patterns are those of
file names: `Conv*Backward*`.
"""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import dataclass
from fnmatch import fnmatch
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np
from model_calls import CALLS, Call, Drawn, Result
from rich.console import Console
from rich.table import Table

from diopi_impl import find_vendor
from diopi_proto.types import Error
from lib_rt import Context, Tensor

REPEATS = 3
AT_MOST = 20
"""Times PyTorch's time that a call of the built-in vendor may take."""


@dataclass(frozen=True)
class Cost:
    """Seconds of one call, and what came before the first; or why there are none."""

    run: float = float("inf")
    compiled: float = 0.0
    problem: str = ""


def prepared(context: Context, value: Any, rng: np.random.Generator) -> Any:
    """An argument as vendors take it."""
    if isinstance(value, Result):
        return Tensor.empty(context, value.shape, value.dtype)
    if isinstance(value, list):
        return [prepared(context, one, rng) for one in value]
    return Tensor.from_numpy(context, np.asarray(value.draw(rng))) if isinstance(value, Drawn) else value


def measure(vendor: Any, device: Any, call: Call) -> Cost:
    """The best of `REPEATS` calls after a first one, fewer if they are long."""
    times: list[float] = []
    with Context(device) as context:
        rng = np.random.default_rng(0)
        arguments = [prepared(context, value, rng) for value in call.arguments]
        while len(times) <= REPEATS and sum(times[1:]) < 5:
            start = process_time()
            if vendor.call("diopi" + call.function, context, *arguments) is not Error.Success:
                return Cost(problem=vendor.last_error())
            times.append(process_time() - start)
    return Cost(min(times[1:]), times[0] - min(times[1:]))


def serve(name: str, optimize: str, orders: Connection) -> None:
    """Measure the calls whose numbers come in, in a process of its own."""
    if optimize == "auto":
        os.environ.pop("DIOPI_JAX_OPTIMIZE", None)
    else:
        os.environ["DIOPI_JAX_OPTIMIZE"] = optimize
    vendor = find_vendor(name)
    with vendor.open_device() as device:
        orders.send("ready")
        while (number := orders.recv()) is not None:
            orders.send(measure(vendor, device, CALLS[number]))


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

    def measure(self, number: int) -> Cost:
        """The cost of the call of this number."""
        start = perf_counter()
        self._orders.send(number)
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
def main(patterns: tuple[str, ...], limit: float, settings: str) -> None:
    """Measure and print the table, the slowest first."""
    console = Console()
    names = settings.split(",")
    servers = [Server("torch_cpu", "auto", limit), *(Server("jax_cpu", name, limit) for name in names)]
    rows: list[tuple[Call, list[Cost]]] = []
    for number, call in enumerate(CALLS):
        if any(fnmatch(call.label, pattern) for pattern in patterns or ("*",)):
            rows.append((call, [server.measure(number) for server in servers]))
            torch, *jax = rows[-1][1]
            seconds = torch.problem or f"{torch.run:.4f} s"
            console.print(call.label, seconds, *(cell(cost, torch) for cost in jax), markup=False, highlight=False)
    for server in servers:
        server.close()
    show(console, names, rows)


def show(console: Console, names: list[str], rows: list[tuple[Call, list[Cost]]]) -> None:
    """The table, sorted by the multiple with the first setting."""
    table = Table("call", "torch_cpu", *(f"jax_cpu, {name}" for name in names), box=None)
    rows.sort(key=lambda row: multiple(*row[1][:2]), reverse=True)
    for call, (torch, *jax) in rows:
        table.add_row(
            call.label.replace("[", "\\["), torch.problem or f"{torch.run:.4f} s", *(cell(cost, torch) for cost in jax)
        )
    console.print(table)
    slow = sum(multiple(*costs[:2]) > AT_MOST for _, costs in rows)
    console.print(f"{slow} of {len(rows)} calls take more than {AT_MOST} times as long with {names[0]}")


if __name__ == "__main__":
    main()
