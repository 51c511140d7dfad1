"""Optimizer steps, a call being one update in place, and gradient clipping.

Parameters, gradients and state of a call have one shape and one dtype; half precision is computed in float32 and
rounded when stored. g stands for the gradient, p for the parameter; a gradient is never changed but by clipping. State
that a call does not use may be NULL and is left alone.
"""

from diopi_proto.dtypes import floating
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
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype


@prototype(dtypes=floating)
def diopiSgd(
    ctx: Context,
    param: InOut,
    grad: MutableIn,
    buf: InOut | None,
    lr: f64,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: boolean,
):
    """Gradient descent with momentum: p ← p − lr·d, with d = g + weight_decay·p as below.

    momentum ≠ 0: buf ← momentum·buf + (1 − dampening)·d, then d ← d + momentum·buf if nesterov, else buf. buf NULL is
    the first step: d itself takes buf's place, without dampening, and is not stored. momentum 0: buf is not used.
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
    lr: f32,
    beta1: f32,
    beta2: f32,
    eps: f32,
    weight_decay: f32,
    step: i64,
    amsgrad: boolean,
):
    """Adam: g ← g + weight_decay·p, m ← beta1·m + (1 − beta1)·g, v ← beta2·v + (1 − beta2)·g², p ← p − lr·m̂/(√v̂ + eps).

    m is exp_avg, v exp_avg_sq; m̂ = m/(1 − beta1^step), √v̂ = √v / √(1 − beta2^step). step is the number of this
    update, the first being 1. amsgrad: max_exp_avg_sq ← max(max_exp_avg_sq, v) takes v's place in √v̂; otherwise it is
    not used.
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
    lr: f32,
    beta1: f32,
    beta2: f32,
    eps: f32,
    weight_decay: f32,
    step: i64,
    amsgrad: boolean,
):
    """`diopiAdam` with decoupled weight decay: p is first multiplied by 1 − lr·weight_decay, g is left as it is.

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
    lr: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
    amsgrad: boolean,
    maximize: boolean,
):
    """`diopiAdamW` for nums parameters at once, each with gradient and state of its own.

    state_steps: one element each, float32 or int64: the number of this update, from 1; only read. max_exp_avg_sqs is
    used with amsgrad only. maximize takes −g for g. Shapes may differ from parameter to parameter.
    Source: torch.optim.AdamW(fused=True).
    """


@prototype(dtypes=floating)
def diopiAdadelta(
    ctx: Context,
    param: InOut,
    grad: In,
    square_avg: InOut,
    acc_delta: InOut,
    lr: f32,
    rho: f32,
    eps: f32,
    weight_decay: f32,
):
    """Adadelta: p ← p − lr·Δ with Δ = √(acc_delta + eps) / √(square_avg + eps) · g, after g ← g + weight_decay·p.

    First square_avg ← rho·square_avg + (1 − rho)·g²; last acc_delta ← rho·acc_delta + (1 − rho)·Δ², so that Δ uses the
    former one. Source: Zeiler, "ADADELTA", 2012; torch.optim.Adadelta.
    """


@prototype(dtypes=floating)
def diopiRmsprop(
    ctx: Context,
    param: InOut,
    grad: In,
    square_avg: InOut,
    grad_avg: InOut | None,
    momentum_buf: InOut | None,
    lr: f32,
    alpha: f32,
    eps: f32,
    weight_decay: f32,
    momentum: f32,
    centered: boolean,
):
    """RMSprop: p ← p − lr·g/s with s = √square_avg + eps, after g ← g + weight_decay·p.

    square_avg ← alpha·square_avg + (1 − alpha)·g². centered: grad_avg ← alpha·grad_avg + (1 − alpha)·g and
    s = √(square_avg − grad_avg²) + eps. momentum > 0: momentum_buf ← momentum·momentum_buf + g/s and p ← p −
    lr·momentum_buf. Source: Hinton, "Neural Networks for Machine Learning", lecture 6, 2012; torch.optim.RMSprop.
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
    max_norm: f64,
    norm_type: f64,
    error_if_nonfinite: boolean,
):
    """Scales num_grads gradients to a common norm of at most max_norm: g ← g · min(1, max_norm/(total + 1e−6)).

    total is the vector norm of order norm_type (see `diopiNorm`) of the single gradients' norms of that order, written
    to *out before the call returns: ∞ gives the largest |g|, 0 the number of gradients with an element that is not 0;
    no gradient at all gives 0. Dtypes and shapes may differ. error_if_nonfinite: if total is NaN or ±∞, that is an
    error and the gradients stay as they are. Source: torch.nn.utils.clip_grad_norm_.
    """
