"""Train networks for ten steps on the device: the difference from the CPU, the fallbacks, and the time of a step.

    pip install '.[models]'
    python benchmarks/torch_training.py [--vendor my_vendor] [--model resnet18 ...] [--steps 10] [--perturbed 2]

The networks are those of `benchmarks/models`, without dropout, which would draw other numbers on each device. The same
steps run on the CPU in float64, in float32, and in float32 with a batch and weights that are changed by an ulp. The
unit of a tensor is the largest difference of these float32 runs from float64, but at least an ulp of the tensor's
largest element. The budget is K units, with the K of the suite.

The script prints a line per network: the last loss, the largest error / budget of a loss and of a parameter (up to 1 is
within the budget), the share of operators that fell back, and the time of a step as a multiple of the CPU's. The
fallbacks follow. The exit status is 1 if an error exceeds its budget or more than a tenth of the operators fell back.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

import diopi_torch
from diopi_test.oracle.budget import K
from diopi_torch.backend import backend

sys.path.insert(0, str(Path(__file__).parent / "models"))

from network import OPTIMIZERS, Network  # in the folder above

MODELS = {
    "resnet18": "vision",
    "mobilenet_v2": "vision",
    "vit": "vision",
    "ddpm": "diffusion",
    "bert": "language",
    "gpt2": "language",
    "llama": "language",
    "t5": "language",
    "whisper": "speech",
}
"""The networks, and the modules that contain them."""

PERTURBED_RUNS = 2
"""The default number of float32 runs with numbers that are moved by an ulp."""

SHARE = 0.1
"""The largest accepted share of a step's operators that fall back."""


@dataclass(frozen=True)
class Run:
    """The result of some steps.

    Attributes:
        values: the loss of each step, and the parameters and buffers at the end, by name, in float64 on the CPU.
        seconds: the duration of each step.
    """

    values: Mapping[str, Tensor]
    seconds: Sequence[float]


class Trainer:
    """A network that is trained several times from the same weights."""

    def __init__(self, network: Network, steps: int) -> None:
        self._network, self._steps = network, steps
        self._start = {name: value.clone() for name, value in network.module.state_dict().items()}

    def run(self, device: str = "cpu", dtype: torch.dtype = torch.float32, ulps: torch.Generator | None = None) -> Run:
        """Return the results of training the network on a device.

        Args:
            device: the device.
            dtype: the element type of floating-point tensors.
            ulps: if it is a generator, it moves each number by −1, 0 or 1 ulp before; None moves nothing.
        """

        def prepare(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            moved = value if ulps is None else _move_by_ulps(value, ulps)
            return moved.to(device, dtype if value.is_floating_point() else None)

        module = self._network.module.to(device, dtype)
        module.load_state_dict({name: prepare(value) for name, value in self._start.items()})
        batch = {name: prepare(value) for name, value in self._network.batch.items()}
        module.train()
        optimizer = OPTIMIZERS[self._network.optimizer](module.parameters())
        losses, seconds = {}, []
        for step in range(self._steps):
            begin = time.perf_counter()
            optimizer.zero_grad()
            loss = self._network.loss(**batch)
            loss.backward()
            optimizer.step()
            losses[f"loss {step + 1}"] = loss.detach().cpu().double()
            seconds.append(time.perf_counter() - begin)
        ended = {name: value.detach().cpu().double() for name, value in module.state_dict().items()}
        return Run({**losses, **ended}, seconds)


def _move_by_ulps(value: Tensor, numbers: torch.Generator) -> Tensor:
    """Return a tensor with each element moved by -1, 0 or 1 ulp."""
    if not value.is_floating_point():
        return value
    direction = torch.randint(-1, 2, value.shape, generator=numbers).to(value.dtype)
    return torch.where(direction == 0, value, torch.nextafter(value, direction * torch.inf))


def units(exact: Run, perturbed: Sequence[Run]) -> dict[str, float]:
    """Return the unit of each tensor: how much the arithmetic of float32 changes it."""
    eps = torch.finfo(torch.float32).eps
    return {
        name: max(eps * _largest(expected), *(_largest(run.values[name] - expected) for run in perturbed))
        for name, expected in exact.values.items()
    }


def _largest(value: Tensor) -> float:
    """Return the largest absolute value, or 0 for an empty tensor."""
    return float(value.abs().max()) if value.numel() else 0.0


@dataclass(frozen=True)
class Outcome:
    """The result of training a network on the device.

    Attributes:
        loss: the loss of the last step.
        error_ratios: the largest error / budget of each tensor.
        fallbacks: the number of fallbacks of each operator.
        served: the number of calls of the vendor's functions.
        ratio: the time of a step divided by the CPU's.
    """

    loss: float
    error_ratios: Mapping[str, float]
    fallbacks: Mapping[str, int]
    served: int
    ratio: float

    @property
    def share(self) -> float:
        """The share of the operators that fell back."""
        fallen_back = sum(self.fallbacks.values())
        return fallen_back / max(fallen_back + self.served, 1)

    def worst(self, of_losses: bool) -> float:
        """Return the largest error / budget of a loss, or of a parameter."""
        return max(ratio for name, ratio in self.error_ratios.items() if name.startswith("loss ") == of_losses)

    @property
    def is_good(self) -> bool:
        """Return whether all errors are within the budgets and few operators fell back."""
        return max(self.error_ratios.values()) <= 1 and self.share <= SHARE


def outcome(network: Network, steps: int, perturbed: int = PERTURBED_RUNS) -> Outcome:
    """Return the outcome of training a network on the CPU and on the device.

    Args:
        network: the network.
        steps: the number of steps.
        perturbed: the number of runs on the CPU with moved numbers.
    """
    trainer, numbers = Trainer(network, steps), torch.Generator().manual_seed(1)
    with mock.patch("torch.nn.functional.dropout", lambda input, *_, **__: input):
        exact, cpu = trainer.run(dtype=torch.float64), trainer.run()
        perturbed_runs = [cpu, *(trainer.run(ulps=numbers) for _ in range(perturbed))]
        diopi_torch.reset_fallbacks()
        with count_calls() as calls:
            on_device = trainer.run("diopi")
    unit = units(exact, perturbed_runs)
    return Outcome(
        loss=float(on_device.values[f"loss {steps}"]),
        error_ratios={
            name: _largest(on_device.values[name] - exact.values[name]) / (K * unit[name] or 1) for name in unit
        },
        fallbacks=diopi_torch.fallbacks(),
        served=sum(calls.values()),
        ratio=statistics.median(on_device.seconds[1:]) / statistics.median(cpu.seconds[1:]),
    )


@contextmanager
def count_calls() -> Iterator[Counter[str]]:
    """Yield a counter of the calls of the vendor's functions, by name."""
    vendor, calls = backend().vendor, Counter[str]()
    original: Callable[..., Any] = vendor.call

    def call(name: str, *arguments: Any) -> Any:
        calls[name] += 1
        return original(name, *arguments)

    with mock.patch.object(vendor, "call", call):
        yield calls


def build_network(name: str) -> Network:
    """Return a network with weights from a fixed seed."""
    torch.manual_seed(0)
    return __import__(MODELS[name]).NETWORKS[name]()


def main() -> int:
    """Print the results; return the exit status."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(
        "--vendor", help="a name, module:attribute, or a compiled library; default: from the environment"
    )
    arguments.add_argument("--model", nargs="+", choices=MODELS, default=list(MODELS), metavar="MODEL")
    arguments.add_argument("--steps", type=int, default=10)
    arguments.add_argument(
        "--perturbed", type=int, default=PERTURBED_RUNS, help="number of runs with numbers moved by an ulp"
    )
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    if options.vendor:
        diopi_torch.use_vendor(options.vendor)
    print(f"{'network':14}{'loss':>9}{'loss off':>10}{'off':>10}{'fell back':>11}{'of CPU time':>13}", flush=True)
    good = True
    for name in options.model:
        network_outcome = outcome(build_network(name), options.steps, options.perturbed)
        good &= network_outcome.is_good
        print(
            f"{name:14}{network_outcome.loss:9.4f}{network_outcome.worst(True):10.3f}{network_outcome.worst(False):10.3f}"
            f"{network_outcome.share:11.1%}{network_outcome.ratio:13.1f}",
            flush=True,
        )
        for operator, times in network_outcome.fallbacks.items():
            print(f"    {operator} {times}", flush=True)
        for tensor in sorted(
            (name for name, ratio in network_outcome.error_ratios.items() if ratio > 1),
            key=network_outcome.error_ratios.__getitem__,
        )[-5:]:
            print(f"    beyond: {tensor} {network_outcome.error_ratios[tensor]:.2f}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
