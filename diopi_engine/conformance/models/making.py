"""`python -m diopi_engine.conformance.models.making FOLDER NETWORK …`: writes the files of networks.

Of each its engine, under its name, and its samples, under its name and `.npz`. Those of the group are linked.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from diopi_engine import Engine, compile, link
from diopi_engine.conformance.models.names import GROUP
from diopi_engine.conformance.models.stored import Samples
from diopi_engine.conformance.models.truth import truth
from diopi_engine.conformance.models.zoo import Network, build

PATCH, MAX_BATCH = 4, 16

SAMPLES = 10
"""Of each network: two whole patches, and a part of one."""


def make(folder: Path, names: Sequence[str]) -> None:
    """Write the files of these networks into a folder."""
    built = {name: build(name) for name in names}
    for name, engine in _linked({name: engine_of(name, network) for name, network in built.items()}).items():
        engine.save(folder / name)
    for name, network in built.items():
        samples_of(network, SAMPLES).save(folder / f"{name}.npz")


def engine_of(name: str, network: Network) -> Engine:
    """The engine of a network."""
    options: dict[str, Any] = {"name": name, "patch": PATCH, "max_batch": MAX_BATCH}
    return compile(network.module, network.inputs, outputs=network.outputs, platforms=["cpu"], **options)


def samples_of(network: Network, count: int) -> Samples:
    """So many samples of a network's inputs, with what must come of them."""
    inputs = network.samples(count)
    return Samples([tensor.numpy() for tensor in inputs], truth(network, inputs))


def _linked(engines: Mapping[str, Engine]) -> Mapping[str, Engine]:
    if not set(GROUP) <= set(engines):
        return engines
    return {**engines, **dict(zip(GROUP, link([engines[name] for name in GROUP], cores=len(GROUP)), strict=True))}


if __name__ == "__main__":
    torch.set_num_threads(1)  # networks of this size gain nothing by more
    make(Path(sys.argv[1]), sys.argv[2:])
