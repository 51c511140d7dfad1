"""Find arguments that PyTorch's CPU rejects but that functions of the standard may accept.

The device checks these arguments before the call. If a check fails, the CPU executes the operator, so that the program
gets PyTorch's error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from diopi_torch.tensors import is_on_device, read_to_host

Precondition = Callable[[Mapping[str, Any]], bool]
"""A function of an operator's arguments, by name, that returns whether the CPU accepts them."""


def _are_between(value: Any, low: float, high: float) -> bool:
    """Return whether every element of a tensor is a number from `low` to `high`."""
    host = read_to_host(value) if is_on_device(value) else value
    return not host.numel() or bool(host.min() >= low and host.max() <= high)


def _classes_exist(named: Mapping[str, Any]) -> bool:
    """Return whether each target of a loss is a class of the input or the ignored index."""
    scores, target = named["self"], read_to_host(named["target"])
    counted = target[target != named["ignore_index"]]
    return scores.dim() == 0 or _are_between(counted, 0, scores.shape[min(1, scores.dim() - 1)] - 1)


def _are_weights(named: Mapping[str, Any]) -> bool:
    """Return whether all weights are finite and at least 0, and each row has a positive weight."""
    weights = read_to_host(named["self"])
    is_finite = _are_between(weights, 0, torch.finfo(weights.dtype).max) if weights.is_floating_point() else True
    return is_finite and (weights.dim() == 0 or bool((weights.sum(-1) > 0).all()))


def _are_probabilities(*names: str) -> Precondition:
    """Return a precondition: all elements of these arguments are from 0 to 1."""
    return lambda named: all(_are_between(named[name], 0, 1) for name in names)


def _are_deviations(named: Mapping[str, Any]) -> bool:
    """Return whether no standard deviation is negative."""
    return _are_between(named["std"], 0, math.inf)


def _has_boolean_output(named: Mapping[str, Any]) -> bool:
    """Return whether the output argument is missing, Boolean, or uint8, which PyTorch still accepts."""
    return "out" not in named or named["out"].dtype in (torch.bool, torch.uint8)


CLASS_LOSSES = ("nll_loss2d_forward", "nll_loss_forward")
"""Losses whose targets are classes. Their precondition reads the elements of the targets only."""

PRECONDITIONS: Mapping[str, Precondition] = {
    **dict.fromkeys(("all", "all.dim", "any", "any.dim"), _has_boolean_output),
    "bernoulli": _are_probabilities("self"),
    "binary_cross_entropy": _are_probabilities("self", "target"),
    "multinomial": _are_weights,
    **dict.fromkeys(CLASS_LOSSES, _classes_exist),
    "normal.Tensor_Tensor": _are_deviations,
    "normal.float_Tensor": _are_deviations,
}
"""The preconditions by operator; they also apply to the overloads with output arguments."""
