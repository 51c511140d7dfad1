"""Optimizer steps and gradient clipping. PyTorch updates the tensors in place, and the functions return them.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import adadelta as adadelta_module
from torch.optim import adam as adam_module
from torch.optim import rmsprop as rmsprop_module
from torch.optim import sgd as sgd_module

from diopi_impl.torch_cpu import vendor


@vendor.implements("diopiSgd")
def sgd(param, grad, buf, lr, momentum, dampening, weight_decay, nesterov):
    """Return the parameters and the momentum buffer after a step of stochastic gradient descent."""
    sgd_module.sgd(
        [param],
        [grad],
        [buf],
        foreach=False,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=lr,
        dampening=dampening,
        nesterov=nesterov,
        maximize=False,
    )
    return param, buf


def _implement_adam(name: str, decoupled_weight_decay: bool) -> None:
    """Register a step of Adam as the function `name`.

    Decoupled weight decay reduces the parameters directly. Otherwise, weight decay is added to the gradient.
    """

    @vendor.implements(name)
    def adam(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, weight_decay, step, amsgrad):
        """Return parameters and state after a step of Adam."""
        adam_module.adam(
            [param],
            [grad],
            [exp_avg],
            [exp_avg_sq],
            [max_exp_avg_sq] if amsgrad and max_exp_avg_sq is not None else [],
            [torch.tensor(float(step - 1))],  # PyTorch increments the step itself
            foreach=False,
            decoupled_weight_decay=decoupled_weight_decay,
            amsgrad=amsgrad,
            beta1=beta1,
            beta2=beta2,
            lr=lr,
            weight_decay=weight_decay,
            eps=eps,
            maximize=False,
        )
        return param, exp_avg, exp_avg_sq, max_exp_avg_sq


_implement_adam("diopiAdam", decoupled_weight_decay=False)
_implement_adam("diopiAdamW", decoupled_weight_decay=True)


def _make_contiguous(tensors: list[Tensor]) -> list[Tensor]:
    """Return the tensors, with contiguous copies in place of those that are not contiguous."""
    return [tensor.contiguous() for tensor in tensors]


@vendor.implements("diopiFusedAdamW")
def fused_adamw(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay,
    amsgrad,
    maximize,
):
    """Return parameters and state after a step of AdamW for each tensor of a list."""
    fused: Any = torch.ops.aten._fused_adamw_
    # the kernel reads all tensors with the strides of the parameter
    params, grads, exp_avgs, exp_avg_sqs = map(_make_contiguous, (params, grads, exp_avgs, exp_avg_sqs))
    max_exp_avg_sqs = None if max_exp_avg_sqs is None else _make_contiguous(max_exp_avg_sqs)
    fused(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs if amsgrad and max_exp_avg_sqs is not None else [],
        [step.to(torch.float32).reshape(()) for step in state_steps],
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        weight_decay=weight_decay,
        eps=eps,
        amsgrad=amsgrad,
        maximize=maximize,
    )
    return params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs


@vendor.implements("diopiAdadelta")
def adadelta(param, grad, square_avg, acc_delta, lr, rho, eps, weight_decay):
    """Return parameters and state after a step of Adadelta."""
    adadelta_module.adadelta(
        [param],
        [grad],
        [square_avg],
        [acc_delta],
        [torch.tensor(0.0)],
        foreach=False,
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=False,
    )
    return param, square_avg, acc_delta


@vendor.implements("diopiRmsprop")
def rmsprop(param, grad, square_avg, grad_avg, momentum_buf, lr, alpha, eps, weight_decay, momentum, centered):
    """Return parameters and state after a step of RMSprop."""
    rmsprop_module.rmsprop(
        [param],
        [grad],
        [square_avg],
        [grad_avg] if grad_avg is not None else [],
        [momentum_buf] if momentum_buf is not None else [],
        [torch.tensor(0.0)],
        foreach=False,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
    )
    return param, square_avg, grad_avg, momentum_buf


@vendor.implements("diopiClipGradNorm")
def clip_grad_norm(grads, max_norm, norm_type, error_if_nonfinite):
    """Return the total norm, and the gradients, which are scaled to max_norm if the total norm is larger."""
    params = [torch.empty_like(grad, requires_grad=True) for grad in grads]
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad
    total = torch.nn.utils.clip_grad_norm_(params, max_norm, norm_type, error_if_nonfinite)
    return total, grads
