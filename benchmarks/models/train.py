"""Make one training step of a network of the zoo, for `diopi-test trace`: forward, backward and optimizer.

    diopi-test trace benchmarks/models/train.py resnet50 --output diopi_test/traces/resnet50.json

The networks have random weights and the widths of published ones, but few layers and small batches. The first step, in
which optimizers create their state, is not traced. Weights with more than `UPDATED` elements are not updated, because
their update makes the same calls as that of smaller weights.
"""

from __future__ import annotations

import sys

import detection
import diffusion
import language
import recommendation
import segmentation
import speech
import torch
import vision
from network import OPTIMIZERS, Network

from diopi_test.traces.trace import untraced

UPDATED = 1 << 18
"""The largest number of elements of a weight tensor that is updated."""

ZOO = {
    **vision.NETWORKS,
    **language.NETWORKS,
    **speech.NETWORKS,
    **detection.NETWORKS,
    **segmentation.NETWORKS,
    **diffusion.NETWORKS,
    **recommendation.NETWORKS,
}
"""The functions that build the networks, by name."""


def step(network: Network, optimizer: torch.optim.Optimizer) -> None:
    """Make one step: forward, backward and optimizer."""
    network.module.zero_grad()
    network.loss(**network.batch).backward()
    optimizer.step()


def main(name: str) -> None:
    """Build the network called `name` and make two steps, of which the second one is traced."""
    torch.manual_seed(0)
    with untraced():
        network = ZOO[name]()
        network.module.train()
        updated = [weights for weights in network.module.parameters() if weights.numel() <= UPDATED]
        optimizer = OPTIMIZERS[network.optimizer](updated)
        step(network, optimizer)
    step(network, optimizer)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ZOO:
        sys.exit(f"usage: {sys.argv[0]} NETWORK; known are {', '.join(ZOO)}")
    main(sys.argv[1])
