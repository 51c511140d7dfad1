"""The parts of synchronized batch normalization (`torch.nn.SyncBatchNorm`), composed of other operators.

Each process computes the statistics of its part of the batch, and all processes gather them. PyTorch calls the parts as
operators that the CPU does not have. Channels are axis 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

Optional = torch.Tensor | None
"""A tensor that a layer may lack."""


def _along_channels(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return one value per channel in a shape that broadcasts to `like`, such as `(C, 1, 1)` for `(N, C, H, W)`."""
    return values.view(-1, *[1] * (like.dim() - 2))


def _sum_per_channel(values: torch.Tensor) -> torch.Tensor:
    """Return the sum of each channel, of shape `(C,)`."""
    axes = [axis for axis in range(values.dim()) if axis != 1]
    return values.sum(axes)


def _precise(values: torch.Tensor) -> torch.Tensor:
    """Return a tensor in the element type for statistics: float32 in place of float16 and bfloat16."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _statistics(input: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean and the inverse standard deviation of each channel; `eps` is added to the variance."""
    elements = _precise(input)
    count = input.numel() // input.shape[1]
    mean = _sum_per_channel(elements) / count
    variance = _sum_per_channel((elements - _along_channels(mean, input)).square()) / count
    return mean, (variance + eps).rsqrt()


def _gathered_statistics(
    input: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    running_mean: Optional,
    running_var: Optional,
    momentum: float,
    eps: float,
    counts: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the statistics of the whole batch, and update the running statistics.

    Args:
        input: the part of the batch of this process.
        mean: the means of all processes, a row per process.
        invstd: the inverse standard deviations, a row per process.
        running_mean: the running mean.
        running_var: the running variance.
        momentum: the weight of the batch in the running statistics.
        eps: the number that is added to variances.
        counts: the number of elements per channel of each process.

    Returns:
        The mean and the inverse standard deviation.
    """
    weights = counts.view(-1, 1).to(mean.dtype)
    total = weights.sum()
    whole_mean = (mean * weights).sum(0) / total
    squares = ((invstd.square().reciprocal() - eps + (mean - whole_mean).square()) * weights).sum(0)
    if running_mean is not None:
        running_mean.lerp_(whole_mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_((squares / (total - 1)).to(running_var.dtype), momentum)
    return whole_mean, (squares / total + eps).rsqrt()


def _normalized(
    input: torch.Tensor, weight: Optional, bias: Optional, mean: torch.Tensor, invstd: torch.Tensor, eps: float
) -> torch.Tensor:
    """Return the normalized elements, in the element type of the input.

    `mean` and `invstd`, the inverse standard deviation, have one element per channel. `invstd` already includes `eps`.
    """
    scale = invstd if weight is None else invstd * weight
    result = (_precise(input) - _along_channels(mean, input)) * _along_channels(scale, input)
    return (result if bias is None else result + _along_channels(bias, input)).to(input.dtype)


def _reduced_gradients(
    grad_out: torch.Tensor,
    input: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    weight: Optional,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[torch.Tensor, torch.Tensor, Optional, Optional]:
    """Return the sums per channel that the gradient of the input needs, and the gradients of weight and bias.

    With the gradient g of the output, the sums are Σ g and Σ g · (input - mean). `_input_gradient` calls them `sum_dy`
    and `sum_dy_xmu`. The gradients of weight and bias are None unless `weight_g` and `bias_g` request them.
    """
    gradient = _precise(grad_out)
    total = _sum_per_channel(gradient)
    product = _sum_per_channel(gradient * (_precise(input) - _along_channels(mean, input)))
    kind = total.dtype if weight is None else weight.dtype
    return total, product, (product * invstd).to(kind) if weight_g else None, total.to(kind) if bias_g else None


def _input_gradient(
    grad_out: torch.Tensor,
    input: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    weight: Optional,
    sum_dy: torch.Tensor,
    sum_dy_xmu: torch.Tensor,
    count: torch.Tensor,
) -> torch.Tensor:
    """Return the gradient of the input.

    Args:
        grad_out: The gradient of the output.
        input: The input.
        mean: The mean of each channel over all processes.
        invstd: The inverse standard deviation of each channel.
        weight: The weight of each channel; None for 1.
        sum_dy: The sum of the output's gradients per channel, over all processes.
        sum_dy_xmu: The sum of the output's gradients times the input's deviations from the mean, likewise.
        count: The number of elements per channel of each process.
    """
    total = count.sum().to(mean.dtype)
    deviations = _precise(input) - _along_channels(mean, input)
    projection = deviations * _along_channels(invstd.square() * sum_dy_xmu / total, input)
    scale = invstd if weight is None else invstd * weight
    gradient = _precise(grad_out) - _along_channels(sum_dy / total, input) - projection
    return (gradient * _along_channels(scale, input)).to(input.dtype)


SYNCHRONIZED: Mapping[str, Callable[..., Any]] = {
    "batch_norm_stats": _statistics,
    "batch_norm_gather_stats_with_counts": _gathered_statistics,
    "batch_norm_elemt": _normalized,
    "batch_norm_backward_reduce": _reduced_gradients,
    "batch_norm_backward_elemt": _input_gradient,
}
"""The kernels by operator."""
