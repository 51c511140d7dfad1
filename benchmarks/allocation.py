"""Compare the strategies for cached device memory on the allocations of networks that are trained on the device.

    pip install '.[torch]'
    python benchmarks/allocation.py [--steps 3] [--rounds 5]

Each network is trained for some steps while its allocations and releases are recorded. They are then repeated with each
strategy on memory that nobody accesses, so that the time is that of the strategy. The first repetition is not timed,
because programs reserve memory only once.

The script prints a line per network and strategy:

- how often the device reserved memory;
- the largest reserved memory, divided by the largest memory that tensors requested at the same time;
- the processor time of an allocation and its release in µs, as the least of the rounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import torch

import diopi_torch  # noqa: F401  # registers the device
from diopi_torch.backend import backend
from diopi_torch.memory import CachingAllocator
from diopi_torch.pools import STRATEGIES, MemoryBlock

sys.path.insert(0, str(Path(__file__).parent / "models"))

from network import OPTIMIZERS, Network  # in the folder above

NETWORKS = {"densenet": "vision", "resnet18": "vision", "squeezenet": "vision"}
"""The recorded networks, with their modules in `benchmarks/models`."""


class Event(NamedTuple):
    """An allocation or a release.

    Attributes:
        tensor: the number of the tensor.
        nbytes: the requested size in bytes; -1 for a release.
        stream: the number of the stream.
    """

    tensor: int
    nbytes: int
    stream: int


class CountedMemory:
    """Memory that nobody accesses: each segment starts at a multiple of 1 TiB."""

    def __init__(self) -> None:
        self.segments = 0

    def malloc(self, nbytes: int) -> int:
        """Return the next address."""
        self.segments += 1
        return self.segments * 2**40

    def free(self, address: int) -> None:
        """Do nothing."""


@contextmanager
def record_events() -> Iterator[list[Event]]:
    """Yield a list to which all allocations and releases of the device are appended."""
    allocator, events, numbers = backend().allocator, list[Event](), dict[int, int]()
    allocate, give_back = allocator.allocate, allocator.give_back

    def recorded_allocate(nbytes: int, stream: int) -> MemoryBlock:
        block = allocate(nbytes, stream)
        numbers[block.address] = len(events)
        events.append(Event(len(events), nbytes, stream))
        return block

    def recorded_release(block: MemoryBlock) -> None:
        if block.address in numbers:
            events.append(Event(numbers.pop(block.address), -1, block.stream))
        give_back(block)

    with mock.patch.multiple(allocator, allocate=recorded_allocate, give_back=recorded_release):
        yield events


def train(network: Network, steps: int) -> None:
    """Train a network on the device."""
    module = network.module.to("diopi").train()
    batch = {name: value.to("diopi") if torch.is_tensor(value) else value for name, value in network.batch.items()}
    optimizer = OPTIMIZERS[network.optimizer](module.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        network.loss(**batch).backward()
        optimizer.step()


def peak_request(events: Sequence[Event]) -> int:
    """Return the largest number of bytes that tensors requested at the same time."""
    sizes: dict[int, int] = {}
    current = peak = 0
    for event in events:
        current += event.nbytes if event.nbytes >= 0 else -sizes.pop(event.tensor)
        if event.nbytes >= 0:
            sizes[event.tensor] = event.nbytes
        peak = max(peak, current)
    return peak


def replay(events: Sequence[Event], allocator: CachingAllocator) -> float:
    """Repeat the events with an allocator, release what is left, and return the µs per allocation."""
    blocks: dict[int, MemoryBlock] = {}
    began = time.thread_time()
    for tensor, nbytes, stream in events:
        if nbytes >= 0:
            blocks[tensor] = allocator.allocate(nbytes, stream)
        else:
            allocator.give_back(blocks.pop(tensor))
    seconds = time.thread_time() - began
    for block in blocks.values():
        allocator.give_back(block)
    return 1e6 * seconds / max(sum(event.nbytes >= 0 for event in events), 1)


def main() -> None:
    """Print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3, help="number of recorded training steps")
    parser.add_argument("--rounds", type=int, default=5, help="number of repetitions of the recorded events")
    options = parser.parse_args()
    print(f"{'network':12}{'strategy':10}{'allocations':>12}{'segments':>10}{'reserved/requested':>20}{'µs':>8}")
    for name, module in NETWORKS.items():
        torch.manual_seed(0)
        network = __import__(module).NETWORKS[name]()
        with record_events() as events:
            train(network, options.steps)
        allocations, requested = sum(event.nbytes >= 0 for event in events), peak_request(events)
        for strategy, make in STRATEGIES.items():
            memory = CountedMemory()
            allocator = CachingAllocator(memory, lambda: None, make())
            replay(events, allocator)
            segments = memory.segments
            microseconds = min(replay(events, allocator) for _ in range(options.rounds))
            ratio = allocator.reserved.peak / requested
            print(f"{name:12}{strategy:10}{allocations:12,}{segments:10,}{ratio:20.2f}{microseconds:8.2f}")


if __name__ == "__main__":
    main()
