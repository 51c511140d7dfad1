"""What must come of a network, and how near to it float32 has to be: derived, as the budgets of operators are."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from diopi_engine.conformance.models.rounding import Rounding
from diopi_engine.conformance.models.zoo import Network, outputs_of
from diopi_proto.types import Dtype
from diopi_test.baseline.records import Expected
from diopi_test.oracle.budget import unit
from diopi_test.oracle.perturbation import ROUNDS


def truth(network: Network, inputs: Sequence[Tensor]) -> list[Expected]:
    """The outputs in float64 by PyTorch, with a budget for each element.

    s of docs/budgets.md is the largest change in eight evaluations in which every number is moved, the weights and
    inputs and what each operator gives.
    """
    exact = _evaluated(network, inputs, None)
    largest = [np.zeros(one.shape) for one in exact]
    for seed in range(ROUNDS):
        moved = _evaluated(network, inputs, Rounding(np.random.default_rng(seed)))
        largest = [np.maximum(most, np.abs(a - b)) for most, a, b in zip(largest, exact, moved, strict=True)]
    return [
        Expected(one, Dtype.float32, unit=unit(one, most, 0.0, 0.0, Dtype.float32))
        for one, most in zip(exact, largest, strict=True)
    ]


def _evaluated(network: Network, inputs: Sequence[Tensor], rounding: Rounding | None) -> list[NDArray[Any]]:
    module = copy.deepcopy(network.module).double()
    given = [one.double() if one.is_floating_point() else one for one in inputs]
    with sdpa_kernel(SDPBackend.MATH):  # of operators that can be seen one by one
        if rounding is None:
            return [one.numpy() for one in outputs_of(module, given)]
        _move(module, rounding)
        given = [rounding.moved(one) for one in given]
        with rounding:
            return [one.numpy() for one in outputs_of(module, given)]


def _move(module: nn.Module, rounding: Rounding) -> None:
    with torch.no_grad():
        for weight in (*module.parameters(), *module.buffers()):
            weight.copy_(rounding.moved(weight.detach()))
