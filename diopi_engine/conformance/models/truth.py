"""Derive the expected outputs of a network and the error budget of float32, as for the budgets of operators."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from diopi_engine.conformance.models.rounding import SimulatedRounding
from diopi_engine.conformance.models.zoo import ZooNetwork, run_module
from diopi_proto.types import Dtype
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.perturbation import ROUNDS
from diopi_test.oracle.records import Expected


def compute_expected(network: ZooNetwork, inputs: Sequence[Tensor]) -> list[Expected]:
    """Compute the outputs of a network in float64 with PyTorch, and the budget of each element.

    The term s of docs/budgets.md is the largest change in eight evaluations in which every number is perturbed:
    weights, inputs and the results of operators.

    Args:
        network: the network.
        inputs: its inputs; the first axis counts the samples.

    Returns:
        The expected outputs.
    """
    exact = _evaluate(network, inputs, None)
    largest = [np.zeros(array.shape) for array in exact]
    for seed in range(ROUNDS):
        moved = _evaluate(network, inputs, SimulatedRounding(np.random.default_rng(seed)))
        largest = [np.maximum(maximum, np.abs(a - b)) for maximum, a, b in zip(largest, exact, moved, strict=True)]
    return [
        Expected(values=array, dtype=Dtype.float32, budget=Budget.derive(array, Dtype.float32, maximum))
        for array, maximum in zip(exact, largest, strict=True)
    ]


def _evaluate(network: ZooNetwork, inputs: Sequence[Tensor], rounding: SimulatedRounding | None) -> list[NDArray[Any]]:
    """Return the outputs of the network in float64, with simulated float32 rounding unless `rounding` is None."""
    module = copy.deepcopy(network.module).double()
    precise = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs]
    with sdpa_kernel(SDPBackend.MATH):  # attention becomes separate operators, which `rounding` perturbs
        if rounding is None:
            return [output.numpy() for output in run_module(module, precise)]
        _perturb_weights(module, rounding)
        precise = [rounding.perturb(tensor) for tensor in precise]
        with rounding:
            return [output.numpy() for output in run_module(module, precise)]


def _perturb_weights(module: nn.Module, rounding: SimulatedRounding) -> None:
    """Perturb all parameters and buffers of a module in place."""
    with torch.no_grad():
        for weight in (*module.parameters(), *module.buffers()):
            weight.copy_(rounding.perturb(weight.detach()))
