"""Measure what the tools for finding a wrong operator add to an operator of the device, switched off and on.

    pip install '.[torch]'
    python benchmarks/torch_overhead.py [--rounds N]

The operator is an addition of four numbers. `without` is a kernel that supports neither tool; `off` is the actual
kernel; `after` is the actual kernel after a comparison has ended. The figures are medians of the calling thread's
processor time over rounds in which the kernels take turns, so that other processes affect all of them equally.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from unittest.mock import patch

import torch

import diopi_torch
from diopi_torch.functions import PreparedCall
from diopi_torch.operators import OperatorKernel

CALLS = 300
"""The number of calls in a round, except for calls that are compared."""

COMPARED_CALLS = 3
"""The number of calls in a round of calls that are compared."""


@contextmanager
def kernels_without_tools() -> Iterator[None]:
    """Return a context manager in which kernels do not support the tools."""
    with (
        patch.object(OperatorKernel, "__call__", lambda self, *args, **kwargs: self.run_with_functions(args, kwargs)),
        patch.object(PreparedCall, "perform", PreparedCall.perform_unwatched),
    ):
        yield


def seconds(call: Callable[[], object], calls: int) -> float:
    """Return the seconds of one of these calls."""
    began = time.thread_time()
    for _ in range(calls):
        call()
    torch.diopi.synchronize()
    return (time.thread_time() - began) / calls


def main() -> None:
    """Print the time of a call with each kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    rounds = parser.parse_args().rounds
    x = torch.ones(4, device="diopi")
    seconds_by_mode: dict[str, list[float]] = {"without": [], "off": [], "after": [], "compared": []}
    add = lambda: torch.add(x, x)  # noqa: E731  # one expression, called in all ways
    seconds(add, CALLS)
    for mode in ("off", "after"):
        for _ in range(rounds):
            with kernels_without_tools():
                seconds_by_mode["without"].append(seconds(add, CALLS))
            seconds_by_mode[mode].append(seconds(add, CALLS))
        with diopi_torch.autocompare("add.Tensor", quiet=True):
            add()  # the first comparison imports the modules that it needs
            seconds_by_mode["compared"].append(seconds(add, COMPARED_CALLS))
    least = median(seconds_by_mode["without"])
    for mode, times in seconds_by_mode.items():
        print(f"{mode:10}{1e6 * median(times):10.1f} µs {median(times) / least:10.3f}")


if __name__ == "__main__":
    main()
