"""Optimizer steps, where a call is one in-place update, and gradient clipping.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Sources: D. Kingma, J. Ba, "Adam", 2014; S. Reddi et al., "On the Convergence of Adam and Beyond", 2018 (AMSGrad); I.
Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization", 2017 (AdamW); M. Zeiler, "ADADELTA", 2012; the classes
of torch.optim for the order of operations.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, WithTerms, reference
from diopi_test.oracle.reference.sums import norm_terms

Array = NDArray[Any]


def _require_state(state: Array | None) -> Array:
    """Return a state tensor that the step uses; raise AssertionError if the case omits it."""
    assert state is not None, "the case leaves out a state tensor that the step needs"
    return state


def _unchanged_state(state: Array | None) -> Exact | None:
    """Return a state tensor that the step must not change, as an exact result; None if it is omitted."""
    return None if state is None else Exact(state)


@reference("diopiSgd")
def sgd(param, grad, buf, lr, momentum, dampening, weight_decay, nesterov):
    """Return the parameters and the momentum buffer after a step of stochastic gradient descent, as torch.optim.SGD."""
    d = grad + weight_decay * param
    if momentum == 0:
        return param - lr * d, _unchanged_state(buf)
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
    step: float,
    amsgrad: bool,
) -> tuple[Array, Array, Array, Any]:
    """Return the parameters and the state after a step of Adam without weight decay.

    Args:
        param: The parameters.
        grad: Their gradient.
        exp_avg: The running mean of gradients.
        exp_avg_sq: The running mean of squared gradients.
        max_exp_avg_sq: The maximum of the running mean of squares; needed for AMSGrad only.
        lr: The learning rate.
        beta1: The decay of the mean of gradients.
        beta2: The decay of the mean of squares.
        eps: The number that is added to the divisor.
        step: The number of the step, from 1.
        amsgrad: Whether the step is AMSGrad.

    Returns:
        The new parameters, both means, and the maximum.
    """
    m = beta1 * exp_avg + (1 - beta1) * grad
    v = beta2 * exp_avg_sq + (1 - beta2) * grad**2
    largest = np.maximum(_require_state(max_exp_avg_sq), v) if amsgrad else v
    mean, deviation = m / (1 - beta1**step), np.sqrt(largest) / np.sqrt(1 - beta2**step)
    return param - lr * mean / (deviation + eps), m, v, largest if amsgrad else _unchanged_state(max_exp_avg_sq)


@reference("diopiAdam")
def adam(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, weight_decay, step, amsgrad):
    """Return parameters and state after a step of Adam, with weight decay added to the gradient."""
    grad = grad + weight_decay * param
    return _adam(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, step, amsgrad)


@reference("diopiAdamW")
def adamw(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, weight_decay, step, amsgrad):
    """Return parameters and state after a step of AdamW, with weight decay of the parameters."""
    param = param * (1 - lr * weight_decay)
    return _adam(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, step, amsgrad)


@reference("diopiFusedAdamW")
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
    steps = [
        adamw(p, -g if maximize else g, m, v, largest, lr, beta1, beta2, eps, weight_decay, float(step.item()), amsgrad)
        for p, g, m, v, largest, step in zip(
            params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs or repeat(None), state_steps, strict=False
        )
    ]
    params_, means, squares, largest_ = ([step[i] for step in steps] for i in range(4))
    return params_, means, squares, None if max_exp_avg_sqs is None else largest_


@reference("diopiAdadelta")
def adadelta(param, grad, square_avg, acc_delta, lr, rho, eps, weight_decay):
    """Return parameters and state after a step of Adadelta."""
    grad = grad + weight_decay * param
    square = rho * square_avg + (1 - rho) * grad**2
    delta = np.sqrt(acc_delta + eps) / np.sqrt(square + eps) * grad
    return param - lr * delta, square, rho * acc_delta + (1 - rho) * delta**2


@reference("diopiRmsprop")
def rmsprop(param, grad, square_avg, grad_avg, momentum_buf, lr, alpha, eps, weight_decay, momentum, centered):
    """Return parameters and state after a step of RMSprop."""
    grad = grad + weight_decay * param
    square = alpha * square_avg + (1 - alpha) * grad**2
    mean = alpha * _require_state(grad_avg) + (1 - alpha) * grad if centered else np.zeros(grad.shape)
    scaled = grad / (np.sqrt(square - mean**2) + eps)
    velocity = momentum * _require_state(momentum_buf) + scaled if momentum > 0 else scaled
    return (
        param - lr * velocity,
        square,
        mean if centered else _unchanged_state(grad_avg),
        velocity if momentum > 0 else _unchanged_state(momentum_buf),
    )


@reference("diopiClipGradNorm")
def clip_grad_norm(grads, max_norm, norm_type, error_if_nonfinite):
    """Return the norm of all gradients together, and the gradients, scaled down if this norm exceeds max_norm."""
    total = _norm(np.stack([_norm(grad.ravel(), norm_type) for grad in grads]), norm_type) if grads else np.float64(0)
    if error_if_nonfinite and not np.isfinite(total):
        raise ValueError(f"the norm of the gradients is {total}, and error_if_nonfinite is set")
    factor = np.minimum(1, max_norm / (total + 1e-6))
    sizes = np.abs(np.concatenate([np.zeros(0), *(grad.ravel() for grad in grads)]))
    error = norm_terms(sizes, norm_type, 0).item()
    return WithTerms(total, total * error), [
        Exact(grad) if factor == 1 else WithTerms(grad * factor, np.abs(grad * factor) * error) for grad in grads
    ]


def _norm(vector: Array, order: float) -> Any:
    """Return the norm of a vector, 0 if it is empty; raise ValueError if the order does not allow empty vectors."""
    if vector.size == 0 and (order < 0 or np.isinf(order)):
        raise ValueError(f"norm_type is {order}, expected a finite number of at least 0 because a gradient is empty")
    return np.linalg.norm(vector, order) if vector.size else np.float64(0)
