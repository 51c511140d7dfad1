"""Measure the speed of `jax_cpu` in one run: calls, operators compared with PyTorch, the device, a training step.

    pip install '.[torch]'
    python benchmarks/speed.py [--rounds N] [--threads N]

1. Calls: as `call_overhead.py`, an add of 16 elements by every way to call a vendor.
2. Operators: calls of `model_calls.py` with tensors in the vendor's memory, and the same calls in eager PyTorch.
3. The device: an add of 16 elements as an operator of PyTorch, and as the vendor's call that the operator makes.
4. Training: a step of a small transformer on the device and on the CPU.

Times are processor times, except for the short calls. The two sides take turns, and the best round of each counts, so
that other processes hardly affect the result.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from statistics import geometric_mean
from time import process_time
from typing import Any

import call_overhead
import jax
import numpy as np
import torch
from model_calls import CALLS, ModelCall, RandomTensor, Result
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn import functional

import diopi_torch
from diopi_impl import BaseVendor, find_vendor
from diopi_proto.types import Error
from lib_rt import Context, Tensor

LENGTH = 64
"""The number of tokens in a sequence of the transformer."""

WIDTH = 256
"""The width of the transformer."""

EAGER: dict[str, Callable[..., Any]] = {
    "Convolution2d[resnet-3x3]": functional.conv2d,
    "Convolution2d[resnet-1x1]": functional.conv2d,
    "Convolution2d[depthwise]": functional.conv2d,
    "Mm[odd]": torch.mm,
    "Bmm[scores]": torch.bmm,
    "Linear[ffn]": functional.linear,
    "Softmax[attention]": torch.softmax,
    "LogSoftmax[vocabulary]": torch.log_softmax,
    "LayerNorm[rows]": lambda x, w, b, shape, eps: torch.native_layer_norm(x, shape, w, b, eps),
    "GroupNorm[32]": lambda x, w, b, groups, eps: functional.group_norm(x, groups, w, b, eps),
    "MaxPool2d[stem]": functional.max_pool2d,
    "Embedding[vocabulary]": lambda table, indices, *_: functional.embedding(indices, table),
    "Sum[rows]": torch.sum,
    "Permute[heads]": lambda x, order: x.permute(order).contiguous(),
    "Add[broadcast]": lambda first, second, alpha: torch.add(first, second),
    "Gelu[ffn]": lambda x, approximate: functional.gelu(x, approximate=approximate),
}
"""The PyTorch functions that correspond to the operators. They take the arguments of the call without the results."""


def best_times(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """Return the best processor time of each call in seconds. The calls take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 1):
        for call, durations in zip(calls, times, strict=True):
            start = process_time()
            call()
            if turn:  # the first compiles
                durations.append(process_time() - start)
    return [min(durations) for durations in times]


def time_operator(vendor: BaseVendor, context: Context, call: ModelCall, rounds: int) -> list[float]:
    """Return the seconds of a call by the vendor and by PyTorch."""
    numbers = np.random.default_rng(0)
    values = [np.asarray(value.draw(numbers)) if isinstance(value, RandomTensor) else value for value in call.arguments]
    arguments = [_to_vendor_argument(context, value) for value in values]
    torch_values = [torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in values]
    eager = EAGER[call.label]

    def by_vendor() -> None:
        assert vendor.call("diopi" + call.function, context, *arguments) is Error.Success, vendor.last_error()

    return best_times(
        rounds, by_vendor, lambda: eager(*(value for value in torch_values if not isinstance(value, Result)))
    )


def _to_vendor_argument(context: Context, value: Any) -> Any:
    """Return an argument in the form that vendors take."""
    if isinstance(value, Result):
        return Tensor.empty(context, value.shape, value.dtype)
    return Tensor.from_numpy(context, value) if isinstance(value, np.ndarray) else value


def operators(rounds: int) -> Table:
    """Return a table that compares each operator with PyTorch's."""
    table = Table("ms", "jax_cpu", "eager", "speed to eager", title="operators at the sizes of models")
    vendor, speeds = find_vendor("jax_cpu"), []
    for call in (call for call in CALLS if call.label in EAGER):
        with vendor.open_device() as device, Context(device) as context:
            vendor_seconds, eager_seconds = time_operator(vendor, context, call, rounds)
        speeds.append(eager_seconds / vendor_seconds)
        table.add_row(
            call.label.replace("[", " ").rstrip("]"),
            f"{1e3 * vendor_seconds:.2f}",
            f"{1e3 * eager_seconds:.2f}",
            f"{speeds[-1]:.2f}",
        )
    table.add_row(f"geometric mean of {len(speeds)}", "", "", f"{geometric_mean(speeds):.2f}")
    return table


def device_add(rounds: int, calls: int = 20) -> Table:
    """Return a table of an add on the device, and of the vendor's call in it."""
    x = torch.ones(call_overhead.ELEMENTS, device="diopi")
    vendor = find_vendor("jax_cpu")
    with vendor.open_device() as device, Context(device) as context:
        arguments = call_overhead.tensors(context)

        def repeat(call: Callable[[], object]) -> Callable[[], None]:
            return lambda: [call() for _ in range(calls)] and None

        durations = best_times(
            100 * rounds,
            repeat(lambda: torch.add(x, x)),
            repeat(lambda: call_overhead.add(vendor, context, arguments)),
        )
    operator_call, vendor_call = (1e6 * seconds / calls for seconds in durations)
    table = Table("µs", "", title=f"an add of {call_overhead.ELEMENTS} elements on the device")
    for label, time in (
        ("operator", operator_call),
        ("the vendor's call", vendor_call),
        ("difference", operator_call - vendor_call),
    ):
        table.add_row(label, f"{time:.1f}")
    return table


class Training:
    """Training steps of a small transformer on a device."""

    def __init__(self, device: str) -> None:
        torch.manual_seed(0)
        layers = [nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, 0.0, batch_first=True) for _ in range(2)]
        self._model = nn.Sequential(nn.Embedding(1000, WIDTH), *layers, nn.Linear(WIDTH, 1000)).to(device)
        self._tokens = torch.randint(1000, (8, LENGTH + 1)).to(device)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), 1e-3)

    def step(self) -> float:
        """Make a step and return the loss before it."""
        self._optimizer.zero_grad()
        logits = self._model(self._tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), self._tokens[:, 1:].flatten())
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())


def training(rounds: int) -> Table:
    """Return a table of the times of a step on the device and on the CPU."""
    on_device, on_cpu = Training("diopi"), Training("cpu")
    for _ in range(3):  # until all programs are kept
        on_device.step()
    device, cpu = best_times(rounds, on_device.step, on_cpu.step)
    table = Table("ms", "", title="a training step of a transformer")
    table.add_row("device", f"{1e3 * device:.1f}")
    table.add_row("CPU eager", f"{1e3 * cpu:.1f}")
    table.add_row("ratio", f"{device / cpu:.2f}")
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch, and of XLA")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    os.environ["NPROC"] = str(options.threads)  # XLA reads it when JAX first computes
    jax.config.update("jax_cpu_enable_async_dispatch", options.threads > 1)
    diopi_torch.use_vendor("jax_cpu")
    console = Console()
    console.print(call_overhead.table(20))
    for table in (operators, device_add, training):
        console.print(table(options.rounds))


if __name__ == "__main__":
    main()
