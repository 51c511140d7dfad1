"""Write the files of networks: `python -m diopi_engine.conformance.models.making FOLDER NETWORK …`.

For each network these are its engine, NAME, and its samples, NAME.npz. The engines of the group are linked.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from diopi_engine import Engine, compile, link
from diopi_engine.conformance.models.names import GROUP
from diopi_engine.conformance.models.stored import ReferenceSamples
from diopi_engine.conformance.models.truth import compute_expected
from diopi_engine.conformance.models.zoo import ZooNetwork, build

PATCH, MAX_BATCH = 4, 16
"""The number of samples that a core computes at once, and the largest batch."""

SAMPLES = 10
"""Number of samples of each network: two full patches and a part of one."""


def write_networks(folder: Path, names: Sequence[str]) -> None:
    """Write the engine and the samples of each named network to a folder."""
    built = {name: build(name) for name in names}
    for name, engine in _link_group({name: compile_network(name, network) for name, network in built.items()}).items():
        engine.save(folder / name)
    for name, network in built.items():
        compute_samples(network, SAMPLES).save(folder / f"{name}.npz")


def compile_network(name: str, network: ZooNetwork) -> Engine:
    """Return the engine of a network."""
    options: dict[str, Any] = {"name": name, "patch": PATCH, "max_batch": MAX_BATCH}
    return compile(network.module, network.inputs, outputs=network.outputs, platforms=["cpu"], **options)


def compute_samples(network: ZooNetwork, count: int) -> ReferenceSamples:
    """Return `count` samples of a network's inputs with their expected outputs."""
    inputs = network.draw_samples(count)
    return ReferenceSamples([tensor.numpy() for tensor in inputs], compute_expected(network, inputs))


def _link_group(engines: Mapping[str, Engine]) -> Mapping[str, Engine]:
    """Link the engines of the group if all of them are present, and return all engines by name."""
    if not set(GROUP) <= set(engines):
        return engines
    return {**engines, **dict(zip(GROUP, link([engines[name] for name in GROUP], cores=len(GROUP)), strict=True))}


if __name__ == "__main__":
    torch.set_num_threads(1)  # networks of this size gain nothing by more
    write_networks(Path(sys.argv[1]), sys.argv[2:])
