"""Loss functions and their gradients.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.autograd import gradients

aten: Any = torch.ops.aten
"""The operators of ATen."""

REDUCTIONS = ("none", "mean", "sum")
"""The names of reductions in PyTorch, indexed by the number of the reduction in the standard."""


@vendor.implements("diopiSmoothL1Loss")
def smooth_l1_loss(input, target, reduction, beta):
    """Return the reduced losses d² / (2β) where d = |input − target| < β, else d − β / 2."""
    return functional.smooth_l1_loss(input, target, reduction=REDUCTIONS[reduction], beta=beta)


@vendor.implements("diopiSmoothL1LossBackward")
def smooth_l1_loss_backward(grad_output, input, target, reduction, beta):
    """Return (input − target) / β limited to ±1, times grad_output, divided by the number of losses for the mean."""
    if beta < 0:  # PyTorch checks this only in the forward function
        raise ValueError(f"beta is {beta}, expected at least 0")
    if beta == 0:  # as torch.nn.functional does; the operator itself gives ±1 at the kink
        return gradients(lambda x: functional.l1_loss(x, target, reduction=REDUCTIONS[reduction]), grad_output, input)[
            0
        ]
    return aten.smooth_l1_loss_backward(grad_output, input, target, reduction, beta)


@vendor.implements("diopiBCELoss")
def bce_loss(input, target, weight, reduction):
    """Return the reduced losses −w · (t ln p + (1 − t) ln(1 − p)), with logarithms of at least −100."""
    return functional.binary_cross_entropy(input, target, weight, reduction=REDUCTIONS[reduction])


@vendor.implements("diopiBCELossBackward")
def bce_loss_backward(grad_output, input, target, weight, reduction):
    """Return w · (p − t) / max(p (1 − p), 1e-12) · grad_output, divided by the number of losses for the mean."""
    if target.shape != input.shape:  # PyTorch checks this only in the forward function
        raise ValueError(f"target has shape {tuple(target.shape)}, expected {tuple(input.shape)}")
    return aten.binary_cross_entropy_backward(grad_output, input, target, weight, reduction)


@vendor.implements("diopiBCEWithLogits")
def bce_with_logits(input, target, weight, pos_weight, reduction):
    """Return the reduced binary cross entropies of logits, with weights of elements and of positive targets."""
    return functional.binary_cross_entropy_with_logits(
        input, target, weight, reduction=REDUCTIONS[reduction], pos_weight=pos_weight
    )


@vendor.implements("diopiBCEWithLogitsBackward")
def bce_with_logits_backward(grad_output, input, target, weight, pos_weight, reduction):
    """Return the gradient of the logits of the binary cross entropy."""
    return gradients(lambda x: bce_with_logits(x, target, weight, pos_weight, reduction), grad_output, input)[0]


@vendor.implements("diopiSigmoidFocalLoss")
def sigmoid_focal_loss(inputs, targets, alpha, gamma, reduction):
    """Return the reduced focal losses, computed operator by operator as in torchvision."""
    p = torch.sigmoid(inputs)
    p_t = p * targets + (1 - p) * (1 - targets)
    loss = functional.binary_cross_entropy_with_logits(inputs, targets, reduction="none") * (1 - p_t) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[REDUCTIONS[reduction]]


@vendor.implements("diopiSigmoidFocalLossBackward")
def sigmoid_focal_loss_backward(grad_output, input, target, gamma, alpha, reduction):
    """Return the gradient of the logits of the focal loss."""
    return gradients(lambda x: sigmoid_focal_loss(x, target, alpha, gamma, reduction), grad_output, input)[0]


def _classes(target: Tensor) -> Tensor:
    """Return class indices as int64, the type that PyTorch supports for all shapes; return probabilities unchanged."""
    return target if target.is_floating_point() else target.long()


@vendor.implements("diopiCrossEntropyLoss")
def cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing):
    """Return the reduced cross entropies of logits with target classes or target probabilities."""
    ignore_index = -100 if ignore_index is None else ignore_index
    return aten.cross_entropy_loss(input, _classes(target), weight, reduction, ignore_index, label_smoothing)


@vendor.implements("diopiCrossEntropyLossBackward")
def cross_entropy_backward(grad_output, input, target, weight, reduction, ignore_index, label_smoothing):
    """Return the gradient of the logits: (softmax · Σ a − a) · grad_output.

    The coefficients `a` are the weights of the classes in the loss of a sample, with label smoothing. For the mean,
    they are divided by the number of samples or the sum of weights.
    """
    return gradients(
        lambda x: cross_entropy(x, target, weight, reduction, ignore_index, label_smoothing), grad_output, input
    )[0]


@vendor.implements("diopiNLLLoss")
def nll_loss(input, target, weight, reduction, ignore_index):
    """Return the reduced losses −w · input at the target class; the mean divides by the sum of weights."""
    return aten.nll_loss_nd(input, _classes(target), weight, reduction, ignore_index)


@vendor.implements("diopiNLLLossBackward")
def nll_loss_backward(grad_output, input, target, weight, reduction, ignore_index):
    """Return −w · grad_output at the target class, 0 elsewhere; the sum of weights is computed again."""
    dense = input.contiguous()  # nll_loss2d_backward does not support channels-last
    return gradients(lambda x: nll_loss(x, target, weight, reduction, ignore_index), grad_output, dense)[0]


@vendor.implements("diopiNLLLossV2")
def nll_loss_v2(input, target, weight, reduction, ignore_index):
    """Return the loss and the sum of the weights; the sum is 0 without reduction, except for a single sample."""
    flat, classes = _flatten_classes(input, _classes(target))
    out, total = aten.nll_loss_forward(flat, classes, weight, reduction, ignore_index)
    return out.reshape(target.shape if reduction == 0 else ()), total


def _flatten_classes(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return input (N·d…, C) and target (N·d…), or (C) and (): PyTorch's operators support no more axes."""
    if input.ndim == 1:
        return input, target
    return input.movedim(1, -1).reshape(target.numel(), input.shape[1]), target.flatten()


@vendor.implements("diopiNLLLossV2Backward")
def nll_loss_v2_backward(grad_output, input, target, weight, totalWeight, reduction, ignore_index):
    """Return −w · grad_output at the target class, 0 elsewhere; divided by totalWeight for the mean."""
    flat, classes = _flatten_classes(input, _classes(target))
    totalWeight = input.new_empty(()) if totalWeight is None else totalWeight
    outer = grad_output.reshape(classes.shape) if reduction == 0 else grad_output
    gradient = aten.nll_loss_backward(outer, flat, classes, weight, reduction, ignore_index, totalWeight)
    axis = min(1, input.ndim - 1)
    shape = [*input.shape[:axis], *input.shape[axis + 1 :], input.shape[axis]]
    grad_input: Tensor = gradient.reshape(shape).movedim(-1, axis)
    return grad_input


@vendor.implements("diopiCTCLoss")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """Return the reduced losses, the loss of each sample, and ln α, the forward variables (Graves et al., 2006)."""
    losses, log_alpha = aten._ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    counted = torch.where(losses == torch.inf, 0, losses) if zero_infinity else losses
    if reduction == 1:
        return (counted / target_lengths.clamp(min=1)).mean(), losses, log_alpha
    return counted.sum() if reduction else counted, losses, log_alpha


@vendor.implements("diopiCTCLossBackward")
def ctc_loss_backward(
    grad_output,
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    neg_log_likelihood,
    log_alpha,
    blank,
    reduction,
    zero_infinity,
):
    """Return the gradient of log_probs: (probability − posterior probability) · grad_output."""
    # PyTorch checks the arguments only in the forward function
    _, alpha = aten._ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    samples = log_probs.shape[1]
    if log_alpha.shape != alpha.shape or neg_log_likelihood.shape != (samples,):
        raise ValueError(f"log_alpha or neg_log_likelihood have shapes other than {alpha.shape} and ({samples},)")
    if reduction == 0 and grad_output.shape != (samples,):
        raise ValueError(f"grad_output has shape {tuple(grad_output.shape)}, expected ({samples},)")
    outer = grad_output.expand(samples)
    if reduction == 1:
        outer = outer / (samples * target_lengths.clamp(min=1)).to(outer.dtype)
    return aten._ctc_loss_backward(
        outer.contiguous(),
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        neg_log_likelihood,
        log_alpha,
        blank,
        zero_infinity,
    )
