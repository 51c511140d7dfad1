"""Optimizer steps and gradient clipping; each call performs one update in place.

The parameters, gradients and state of a call have the same shape and the same dtype. Half precision is computed in
float32 and rounded when it is stored. g is the gradient and p the parameter. Only gradient clipping changes a gradient.
State that a call does not use may be NULL and is not changed.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating
from diopi_proto.facts import ExcludesNumbers
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Context,
    Count,
    In,
    InOut,
    InOuts,
    Ins,
    MutableIn,
    OutF64,
    boolean,
    f32,
    f64,
    i64,
)
from diopi_proto.types import Dtype

NOT_NEGATIVE = ExcludesNumbers(("negative",), "torch.optim rejects negative numbers")
"""A number that must be at least 0."""

BELOW_ONE = ExcludesNumbers(("negative", "whole"), "torch.optim accepts numbers from 0 up to, but not including, 1")
"""A number that must be in [0, 1)."""

NotNegative32 = Annotated[f32, NOT_NEGATIVE]
"""A `float` that is at least 0."""

NotNegative64 = Annotated[f64, NOT_NEGATIVE]
"""A `double` that is at least 0."""

Decay32 = Annotated[f32, BELOW_ONE]
"""A `float` in [0, 1)."""

Decay64 = Annotated[f64, BELOW_ONE]
"""A `double` in [0, 1)."""

MaxNorm = Annotated[f64, ExcludesNumbers(("negative",), "a norm is never negative")]
"""The largest norm of the gradients, not negative."""


@prototype(dtypes=floating)
def diopiSgd(
    ctx: Context,
    param: InOut,
    grad: MutableIn,
    buf: InOut | None,
    lr: NotNegative64,
    momentum: NotNegative64,
    dampening: f64,
    weight_decay: NotNegative64,
    nesterov: boolean,
):
    """Perform a step of gradient descent with momentum: p ← p − lr·d.

    The direction d starts as g + weight_decay·p. If momentum is not 0, the call updates buf and d:

    - buf ← momentum·buf + (1 − dampening)·d.
    - d ← d + momentum·buf if nesterov is true, otherwise d ← buf.

    A NULL buf means the first step: the initial d is used in place of the new buf, without dampening, and is not
    stored. If momentum is 0, buf is not used.

    Source: torch.optim.SGD.
    """


@prototype(dtypes=floating)
def diopiAdam(
    ctx: Context,
    param: InOut,
    grad: In,
    exp_avg: InOut,
    exp_avg_sq: InOut,
    max_exp_avg_sq: InOut | None,
    lr: NotNegative32,
    beta1: Decay32,
    beta2: Decay32,
    eps: NotNegative32,
    weight_decay: NotNegative32,
    step: i64,
    amsgrad: boolean,
):
    """Perform a step of Adam: p ← p − lr·m̂ / (√v̂ + eps).

    The call first computes, with m = exp_avg and v = exp_avg_sq:

    - g ← g + weight_decay·p, without a change of the tensor grad.
    - m ← beta1·m + (1 − beta1)·g, and v ← beta2·v + (1 − beta2)·g².
    - m̂ = m / (1 − beta1^step), and √v̂ = √v / √(1 − beta2^step).

    step is the number of this update; the first update has step 1. If amsgrad is true, max_exp_avg_sq ←
    max(max_exp_avg_sq, v), and √v̂ is computed from max_exp_avg_sq instead of v. Otherwise, max_exp_avg_sq is not used
    and may be NULL.

    Source: Kingma and Ba, "Adam", 2015; torch.optim.Adam.
    """


@prototype(dtypes=floating)
def diopiAdamW(
    ctx: Context,
    param: InOut,
    grad: In,
    exp_avg: InOut,
    exp_avg_sq: InOut,
    max_exp_avg_sq: InOut | None,
    lr: NotNegative32,
    beta1: Decay32,
    beta2: Decay32,
    eps: NotNegative32,
    weight_decay: NotNegative32,
    step: i64,
    amsgrad: boolean,
):
    """Perform the step of `diopiAdam` with decoupled weight decay.

    p is first multiplied by 1 − lr·weight_decay, and weight_decay·p is not added to g.

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019; torch.optim.AdamW.
    """


@prototype(dtypes=floating, argument_dtypes={"state_steps": (Dtype.float32, Dtype.int64)})
def diopiFusedAdamW(
    ctx: Context,
    params: InOuts,
    grads: Ins,
    exp_avgs: InOuts,
    exp_avg_sqs: InOuts,
    max_exp_avg_sqs: InOuts | None,
    state_steps: Ins,
    nums: Count,
    lr: NotNegative64,
    beta1: Decay64,
    beta2: Decay64,
    eps: NotNegative64,
    weight_decay: NotNegative64,
    amsgrad: boolean,
    maximize: boolean,
):
    """Perform the step of `diopiAdamW` for nums parameters in one call.

    Each parameter params[i] has its own gradient grads[i] and its own state. The shapes may differ from parameter to
    parameter. state_steps[i] has one element, float32 or int64: the number of this update, counted from 1. The call
    only reads it. max_exp_avg_sqs is used only if amsgrad is true. If maximize is true, g is replaced by −g, which
    maximizes the objective.

    Source: torch.optim.AdamW(fused=True).
    """


@prototype(dtypes=floating)
def diopiAdadelta(
    ctx: Context,
    param: InOut,
    grad: In,
    square_avg: InOut,
    acc_delta: InOut,
    lr: NotNegative32,
    rho: NotNegative32,
    eps: NotNegative32,
    weight_decay: NotNegative32,
):
    """Perform a step of Adadelta: p ← p − lr·Δ.

    The call computes in this order:

    1. g ← g + weight_decay·p, without a change of the tensor grad.
    2. square_avg ← rho·square_avg + (1 − rho)·g².
    3. Δ = √(acc_delta + eps) / √(square_avg + eps) · g, with the old acc_delta.
    4. acc_delta ← rho·acc_delta + (1 − rho)·Δ².

    Source: Zeiler, "ADADELTA", 2012; torch.optim.Adadelta.
    """


@prototype(dtypes=floating)
def diopiRmsprop(
    ctx: Context,
    param: InOut,
    grad: In,
    square_avg: InOut,
    grad_avg: InOut | None,
    momentum_buf: InOut | None,
    lr: NotNegative32,
    alpha: NotNegative32,
    eps: NotNegative32,
    weight_decay: NotNegative32,
    momentum: NotNegative32,
    centered: boolean,
):
    """Perform a step of RMSprop: p ← p − lr·g/s.

    The call computes in this order:

    1. g ← g + weight_decay·p, without a change of the tensor grad.
    2. square_avg ← alpha·square_avg + (1 − alpha)·g².
    3. s = √square_avg + eps. If centered is true, grad_avg ← alpha·grad_avg + (1 − alpha)·g and s = √(square_avg −
       grad_avg²) + eps instead.
    4. If momentum > 0, momentum_buf ← momentum·momentum_buf + g/s, and p ← p − lr·momentum_buf replaces the update in
       the first line.

    grad_avg may be NULL if centered is false, and momentum_buf if momentum is 0.

    Source: Hinton, "Neural Networks for Machine Learning", lecture 6, 2012; torch.optim.RMSprop.
    """


@prototype(
    dtypes=floating,
    ignored=[Ignored(("error_if_nonfinite",), "it determines how errors are reported", read=Read.value)],
)
def diopiClipGradNorm(
    ctx: Context,
    out: OutF64,
    grads: InOuts,
    num_grads: Count,
    max_norm: MaxNorm,
    norm_type: f64,
    error_if_nonfinite: boolean,
):
    """Scale num_grads gradients to a total norm of at most max_norm: g ← g · min(1, max_norm/(total + 1e−6)).

    total is the vector norm of order norm_type (see `diopiNorm`) of the norms of the individual gradients, which have
    the same order. The order ∞ gives the largest |g|, and the order 0 gives the number of gradients that have a nonzero
    element. If there is no gradient, total is 0. The call writes total to *out before it returns.

    The dtypes and shapes of the gradients may differ. If error_if_nonfinite is true and total is NaN or ±∞, the call is
    an error and does not change the gradients. If error_if_nonfinite is false, the gradients are multiplied by the NaN
    or 0 that the formula gives.

    Source: torch.nn.utils.clip_grad_norm_.
    """
