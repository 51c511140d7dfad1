"""Optimizer steps and gradient clipping. The functions return the tensors that the standard updates in place.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. With `apply_directly`, the arrays are NumPy's.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from diopi_impl.functional import apply_directly
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.registration import implements_optimizer


@implements_optimizer("diopiSgd")
def sgd(param, grad, buf, lr, momentum, dampening, weight_decay, nesterov):
    """Return the parameters and the momentum buffer after a step of stochastic gradient descent.

    A missing buffer (None) means the first step: the gradient, to which weight decay was added, is used in place of the
    new buffer, and None is returned for the buffer.
    """
    d = grad + weight_decay * param
    if momentum == 0:
        return param - lr * d, buf
    velocity = d if buf is None else momentum * buf + (1 - dampening) * d
    d = d + momentum * velocity if nesterov else velocity
    return param - lr * d, None if buf is None else velocity


def _adam(
    param: Array,
    grad: Array,
    exp_avg: Array,
    exp_avg_sq: Array,
    max_exp_avg_sq: Array | None,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: Any,
    amsgrad: bool,
) -> tuple[Array, Array, Array, Array | None]:
    """Return parameters and state after a step of Adam without weight decay."""
    m = beta1 * exp_avg + (1 - beta1) * grad
    v = beta2 * exp_avg_sq + (1 - beta2) * grad**2
    if amsgrad:
        if max_exp_avg_sq is None:
            raise ValueError("max_exp_avg_sq is required with amsgrad, NULL was given")
        max_exp_avg_sq = jnp.maximum(max_exp_avg_sq, v)
    correction1, correction2 = 1 - beta1**step, jnp.sqrt(1 - beta2**step)  # in float64, because 1 − beta^step cancels
    variance = v if max_exp_avg_sq is None or not amsgrad else max_exp_avg_sq
    rate, scale = (jnp.asarray(value).astype(param.dtype) for value in (lr / correction1, correction2))
    return param - rate * m / (jnp.sqrt(variance) / scale + eps), m, v, max_exp_avg_sq


@implements_optimizer("diopiAdam")
def adam(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, weight_decay, step, amsgrad):
    """Return parameters and state after a step of Adam, with weight decay added to the gradient."""
    grad = grad + weight_decay * param
    return _adam(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, step, amsgrad)


@implements_optimizer("diopiAdamW")
def adamw(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, weight_decay, step, amsgrad):
    """Return parameters and state after a step of AdamW, with weight decay of the parameters."""
    param = param * (1 - lr * weight_decay)
    return _adam(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, step, amsgrad)


@implements_optimizer("diopiFusedAdamW")
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
    steps = [step.astype(jnp.float64).reshape(()) for step in state_steps]
    updates = [
        adamw(p, -g if maximize else g, m, v, largest, lr, beta1, beta2, eps, weight_decay, step, amsgrad)
        for p, g, m, v, largest, step in zip(
            params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs or repeat(None), steps, strict=False
        )
    ]
    updated, means, squares, largest_squares = ([update[i] for update in updates] for i in range(4))
    return updated, means, squares, None if max_exp_avg_sqs is None else largest_squares


@implements_optimizer("diopiAdadelta")
def adadelta(param, grad, square_avg, acc_delta, lr, rho, eps, weight_decay):
    """Return parameters and state after a step of Adadelta."""
    grad = grad + weight_decay * param
    square = rho * square_avg + (1 - rho) * grad**2
    delta = jnp.sqrt(acc_delta + eps) / jnp.sqrt(square + eps) * grad
    return param - lr * delta, square, rho * acc_delta + (1 - rho) * delta**2


@implements_optimizer("diopiRmsprop")
def rmsprop(param, grad, square_avg, grad_avg, momentum_buf, lr, alpha, eps, weight_decay, momentum, centered):
    """Return parameters and state after a step of RMSprop."""
    for name, is_required, state in (("grad_avg", centered, grad_avg), ("momentum_buf", momentum > 0, momentum_buf)):
        if is_required and state is None:
            raise ValueError(f"{name} is required with centered {centered} and momentum {momentum}, NULL was given")
    grad = grad + weight_decay * param
    square = variance = alpha * square_avg + (1 - alpha) * grad**2
    if centered and grad_avg is not None:
        grad_avg = alpha * grad_avg + (1 - alpha) * grad
        variance = square - grad_avg**2
    update = grad / (jnp.sqrt(variance) + eps)
    if momentum > 0 and momentum_buf is not None:
        update = momentum_buf = momentum * momentum_buf + update
    return param - lr * update, square, grad_avg, momentum_buf


HostArray = NDArray[Any]
"""An array of NumPy."""


@vendor.implements("diopiClipGradNorm", adapt=apply_directly)  # NumPy: the norm decides whether anything is written
def clip_grad_norm(grads, max_norm, norm_type, error_if_nonfinite):
    """Return the total norm, and the gradients, which are scaled to max_norm if the total norm is larger."""
    with np.errstate(all="ignore"):
        double_grads = [grad.astype(np.float64) for grad in grads]
        total = _norm(np.array([_norm(grad.ravel(), norm_type) for grad in double_grads]), norm_type)
        if error_if_nonfinite and not np.isfinite(total):
            raise ValueError(f"the norm of the gradients is {total}, and error_if_nonfinite is set")
        factor = np.minimum(1, max_norm / (total + 1e-6))
        return float(total), [grad * factor for grad in double_grads]


def _norm(vector: HostArray, order: float) -> Any:
    """Return the norm of a vector; 0 for an empty vector."""
    return np.linalg.norm(vector, order) if vector.size else 0.0
