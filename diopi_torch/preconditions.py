"""Arguments that PyTorch's CPU rejects, although functions of the standard need not detect them.

The device examines these arguments before the call. If they look invalid, the CPU runs the operator and raises its
error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from diopi_torch.tensors import is_on_device, read_to_host

Precondition = Callable[[Mapping[str, Any]], bool]
"""Returns whether the CPU accepts the arguments of an operator; they are passed by name."""


def _are_between(value: Any, low: float, high: float) -> bool:
    """Return whether all elements of a tensor are numbers from `low` to `high`."""
    host = read_to_host(value) if is_on_device(value) else value
    return not host.numel() or bool(host.min() >= low and host.max() <= high)


def _classes_exist(named: Mapping[str, Any]) -> bool:
    """Return whether the targets of a loss are classes of the input, or ignored."""
    scores, target = named["self"], read_to_host(named["target"])
    counted = target[target != named["ignore_index"]]
    return scores.dim() == 0 or _are_between(counted, 0, scores.shape[min(1, scores.dim() - 1)] - 1)


def _are_weights(named: Mapping[str, Any]) -> bool:
    """Return whether the weights of categories are finite, not negative, and not all 0."""
    weights = read_to_host(named["self"])
    is_finite = _are_between(weights, 0, torch.finfo(weights.dtype).max) if weights.is_floating_point() else True
    return is_finite and (weights.dim() == 0 or bool((weights.sum(-1) > 0).all()))


def _are_probabilities(*names: str) -> Precondition:
    """Return the precondition that the elements of these arguments are from 0 to 1."""
    return lambda named: all(_are_between(named[name], 0, 1) for name in names)


def _are_deviations(named: Mapping[str, Any]) -> bool:
    """Return whether the standard deviations are not negative."""
    return _are_between(named["std"], 0, math.inf)


def _has_boolean_output(named: Mapping[str, Any]) -> bool:
    """Return whether an output argument, if there is one, can hold booleans; uint8 is a former type of booleans."""
    return "out" not in named or named["out"].dtype in (torch.bool, torch.uint8)


PRECONDITIONS: Mapping[str, Precondition] = {
    **dict.fromkeys(("all", "all.dim", "any", "any.dim"), _has_boolean_output),
    "bernoulli": _are_probabilities("self"),
    "binary_cross_entropy": _are_probabilities("self", "target"),
    "multinomial": _are_weights,
    "nll_loss2d_forward": _classes_exist,
    "nll_loss_forward": _classes_exist,
    "normal.Tensor_Tensor": _are_deviations,
    "normal.float_Tensor": _are_deviations,
}
"""The preconditions by operator; they also apply to the overloads with output arguments."""
