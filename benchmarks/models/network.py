"""The description of a network of the zoo: a module, its loss for one batch, and its usual optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

OPTIMIZERS: Mapping[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(torch.optim.SGD, lr=0.01, momentum=0.9, weight_decay=1e-4, foreach=False),
    "adam": partial(torch.optim.Adam, lr=1e-3, foreach=False),
    "adamw": partial(torch.optim.AdamW, lr=1e-3, foreach=False),
    "fused": partial(torch.optim.AdamW, lr=1e-3, fused=True),
    "foreach": partial(torch.optim.SGD, lr=0.01, momentum=0.9, foreach=True),
}
"""The optimizers by name. Each has a fixed learning rate, so that networks share its calls for equal shapes."""


@dataclass(frozen=True)
class Network:
    """A module, its loss for one batch, and the name of its optimizer.

    Attributes:
        module: the module, with random weights.
        loss: returns the loss of a batch, whose entries it takes by name.
        optimizer: the name of the optimizer, a key of `OPTIMIZERS`.
        batch: the batch; empty if the loss has a fixed batch.
    """

    module: nn.Module
    loss: Callable[..., Tensor]
    optimizer: str = "sgd"
    batch: Mapping[str, Any] = field(default_factory=dict)


def images(size: int, batch: int = 2, channels: int = 3) -> Tensor:
    """Return a batch of square pictures of random pixels: (batch, channels, size, size)."""
    return torch.randn(batch, channels, size, size)


def tokens(vocabulary: int, length: int = 32, batch: int = 2) -> Tensor:
    """Return a batch of sequences of `length` random tokens, numbers below `vocabulary`."""
    return torch.randint(vocabulary, (batch, length))


def classifier(module: nn.Module, batch: Tensor, classes: int, **description: Any) -> Network:
    """Return a network that classifies each input into one of `classes` classes.

    Args:
        module: returns the logits of the classes.
        batch: the inputs.
        classes: the number of classes.
        **description: further fields of `Network`.
    """
    inputs = {"batch": batch, "targets": torch.randint(classes, (len(batch),))}
    return Network(
        module, lambda batch, targets: nn.functional.cross_entropy(module(batch), targets), batch=inputs, **description
    )


def transformers_network(kind: Any, config: Any, optimizer: str = "sgd", **batch: Any) -> Network:
    """Return a network of the package `transformers`, with random weights.

    The module computes the loss itself. Its attention consists of matrix products and softmax, without a fused kernel.

    Args:
        kind: The class of the module, such as `ViTForImageClassification`.
        config: The configuration of the module.
        optimizer: The name of the optimizer.
        batch: The arguments of the module's call, such as `input_ids`.
    """
    module = kind._from_config(config, attn_implementation="eager")
    return Network(module, lambda **batch: module(**batch).loss, optimizer, batch)
