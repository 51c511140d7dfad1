"""MMCV's synchronised batch normalisation, and its activation with bias.

The normalisation comes in steps, so that a caller can combine the statistics of several devices between them. `input`
and everything of its shape is [N, C, S], the spatial axes flattened. All statistics, scales and shifts are float32 [C],
`norm` is float32 [N, C, S]; sums are in float32, so `input` isn't wider. N·S ≥ 1. A wrong rank or a number of channels
that differs is rejected. Source: MMCV 1.x sync_bn, fused_bias_leakyrelu.
"""

from collections.abc import Sequence
from typing import Annotated

from diopi_proto.dtypes import constant, floating, narrow, single
from diopi_proto.facts import OneOf
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, NewOut, Out, Sized, SizedInOut, f32, i64
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype

float32 = constant(Dtype.float32)


def _of_input(inputs: Sequence[Dtype]) -> Dtype:
    """The type of `input`: the one that isn't float32 as all statistics are, if there is one."""
    return next((dtype for dtype in inputs if dtype is not Dtype.float32), Dtype.float32)


@prototype(dtypes=narrow, result=float32)
def diopiSyncBnMeanMmcv(ctx: Context, mean: Out, input: In):
    """Mean of each channel over N and S: mean[c] = Σ input[:, c, :] / (N·S)."""


@prototype(dtypes=narrow, argument_dtypes={"mean": single}, result=float32)
def diopiSyncBnVarMmcv(ctx: Context, var: Out, input: In, mean: Sized):
    """Biased variance of each channel around a given mean: var[c] = Σ (input[:, c, :] − mean[c])² / (N·S)."""


@prototype(
    dtypes=narrow,
    argument_dtypes=dict.fromkeys(("running_mean", "running_var", "mean", "var", "weight", "bias"), single),
    result={"running_mean": float32, "running_var": float32, "norm": float32, "std": float32, "output": _of_input},
    ignored=[Ignored(("running_mean", "running_var"), "momentum 1 replaces them", {"momentum": 1}, Read.value)],
    backward="diopiSyncBnBackwardDataMmcv",
)
def diopiSyncBnOutputMmcv(
    ctx: Context,
    running_mean: SizedInOut | None,
    running_var: SizedInOut | None,
    norm: Out | None,
    std: Out | None,
    output: Out,
    input: In,
    mean: Sized,
    var: Sized,
    weight: Sized | None,
    bias: Sized | None,
    eps: f32,
    momentum: f32,
    group_size: i64,
):
    """Normalised input, and the running statistics brought up to date.

    std = √(var + eps); norm = (input − mean) / std; output = norm·weight + bias in input's dtype, norm itself where
    weight is NULL (bias comes and goes with it). running_mean becomes momentum·mean + (1 − momentum)·running_mean,
    running_var momentum·var·n/(n − 1) + (1 − momentum)·running_var with n = N·S·group_size, group_size the number of
    devices that share the statistics; for n ≤ 1 var is taken as it is. running_mean, running_var, norm and std are left
    alone where NULL. The gradients by weight and bias are `diopiSyncBnBackwardParamMmcv`.
    """


@prototype(dtypes=narrow, argument_dtypes={"norm": single}, result=float32)
def diopiSyncBnBackwardParamMmcv(ctx: Context, grad_weight: Out, grad_bias: Out, grad_output: In, norm: Sized):
    """Gradients by weight and bias: for each channel, the sums over N and S of grad_output·norm and of grad_output."""


@prototype(
    dtypes=narrow,
    argument_dtypes=dict.fromkeys(("weight", "grad_weight", "grad_bias", "norm", "std"), single),
)
def diopiSyncBnBackwardDataMmcv(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    weight: Sized,
    grad_weight: Sized,
    grad_bias: Sized,
    norm: Sized,
    std: Sized,
):
    """Gradient by input: weight·(grad_output − (grad_weight·norm + grad_bias) / (N·S)) / std, in grad_output's dtype.

    grad_weight and grad_bias are the sums `diopiSyncBnBackwardParamMmcv` gives, averaged by the caller over devices.
    """


_NO_EFFECT_OF_REFER = "only the slope at the forward's result depends on it"
_NO_SLOPE = "the linear function has no slope below zero"


@prototype(
    dtypes=floating,
    ignored=[
        Ignored(("refer",), _NO_EFFECT_OF_REFER, {"grad": 0}, Read.value),
        Ignored(("refer",), _NO_EFFECT_OF_REFER, {"act": 1}, Read.value),
        Ignored(("alpha",), _NO_SLOPE, {"act": 1}, Read.value),
        Ignored(
            ("input", "bias", "refer", "act", "alpha", "scale"), "the second derivative is 0", {"grad": 2}, Read.value
        ),
    ],
)
def diopiFusedBiasLeakyreluMmcv(
    ctx: Context,
    out: NewOut,
    input: In,
    bias: Sized,
    refer: Sized,
    act: Annotated[i64, OneOf((1, 3))],
    grad: Annotated[i64, OneOf((0, 1, 2))],
    alpha: f32,
    scale: f32,
):
    """Bias, leaky ReLU and scale in one, or its first or second derivative.

    input: any shape of rank ≥ 2, out alike. x = input + bias along axis 1; bias: [size of axis 1], or no elements for
    none. act 3, leaky ReLU: `grad` 0 gives x where x > 0, else alpha·x; `grad` 1, the gradient, gives x where refer >
    0, else alpha·x, with refer the forward's result, of input's shape; `grad` 2 gives 0. act 1, linear: `grad` 0 and 1
    give x, 2 gives 0. out is that times `scale`. For `grad` 0 refer isn't read and may have no elements. All tensors
    have one dtype.
    Rejected: other values of act or grad. Source: T. Karras et al., StyleGAN2, CVPR 2020; MMCV 1.x
    fused_bias_leakyrelu.
    """
