"""MMCV's synchronized batch normalization, and its fused activation with bias.

The normalization consists of several calls, so that a caller can combine the statistics of several devices between
them. `input` and all tensors of its shape are [N, C, S], where S stands for the flattened spatial axes. N·S ≥ 1. All
statistics, scales and shifts are float32 [C], and `norm` is float32 [N, C, S]. Sums are computed in float32, so `input`
has at most the precision of float32. A call is rejected if a rank is wrong or the numbers of channels differ.

Source: MMCV 1.x sync_bn, fused_bias_leakyrelu.
"""

from collections.abc import Sequence
from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import constant, floating, narrow, single
from diopi_proto.facts import OneOf
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, NewOut, Out, Sized, SizedInOut, f32, i64
from diopi_proto.types import Dtype

float32_result = constant(Dtype.float32)
"""The rule that a result is always float32."""


def _of_input(inputs: Sequence[Dtype]) -> Dtype:
    """Return the type of `input`: the input type that is not float32, if there is one, else float32."""
    return next((dtype for dtype in inputs if dtype is not Dtype.float32), Dtype.float32)


@prototype(dtypes=narrow, result=float32_result)
def diopiSyncBnMeanMmcv(ctx: Context, mean: Out, input: In):
    """Compute the mean of each channel over N and S: mean[c] = Σ input[:, c, :] / (N·S)."""


@prototype(dtypes=narrow, argument_dtypes={"mean": single}, result=float32_result)
def diopiSyncBnVarMmcv(ctx: Context, var: Out, input: In, mean: Sized):
    """Compute the biased variance of each channel for a known mean: var[c] = Σ (input[:, c, :] − mean[c])² / (N·S)."""


@prototype(
    dtypes=narrow,
    argument_dtypes=dict.fromkeys(("running_mean", "running_var", "mean", "var", "weight", "bias"), single),
    result={
        "running_mean": float32_result,
        "running_var": float32_result,
        "norm": float32_result,
        "std": float32_result,
        "output": _of_input,
    },
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
    """Normalize input, and update the running statistics.

    mean and var are the statistics of the channels, which the caller has combined over all devices. group_size is the
    number of these devices. Let n = N·S·group_size.

    - std = √(var + eps), and norm = (input − mean) / std.
    - output = norm·weight + bias, in the dtype of input. If weight is NULL, bias is NULL too and output is norm.
    - running_mean becomes momentum·mean + (1 − momentum)·running_mean.
    - running_var becomes momentum·var·n/(n − 1) + (1 − momentum)·running_var. If n ≤ 1, var is not multiplied by
      n/(n − 1).

    running_mean, running_var, norm and std may be NULL; then they are not written. `diopiSyncBnBackwardParamMmcv`
    computes the gradients with respect to weight and bias.
    """


@prototype(dtypes=narrow, argument_dtypes={"norm": single}, result=float32_result)
def diopiSyncBnBackwardParamMmcv(ctx: Context, grad_weight: Out, grad_bias: Out, grad_output: In, norm: Sized):
    """Compute the gradients of `diopiSyncBnOutputMmcv` with respect to weight and bias.

    For each channel, grad_weight is the sum of grad_output·norm over N and S, and grad_bias is the sum of grad_output.
    """


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
    """Compute the gradient of `diopiSyncBnOutputMmcv` with respect to input, in the dtype of grad_output.

    grad_input = weight·(grad_output − (grad_weight·norm + grad_bias) / (N·S)) / std. norm and std are results of the
    forward call. grad_weight and grad_bias are the results of `diopiSyncBnBackwardParamMmcv`, which the caller has
    averaged over the devices.
    """


_NO_EFFECT_OF_REFER = "only the slope at the forward's result depends on it"
"""The reason why `refer` does not affect some results."""

_NO_SLOPE = "the linear function has no other slope below zero"
"""The reason why `alpha` does not affect the linear function."""


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
    """Add a bias, apply a leaky ReLU or nothing, and multiply by a scale, or compute the first or second derivative.

    input and out have the same shape of rank ≥ 2. bias has one element per index of axis 1, or no elements for no bias.
    Let x = input + bias, where bias is added along axis 1. The result is the following, multiplied by `scale`:

    - act 3 (leaky ReLU), `grad` 0: x if x > 0, else alpha·x.
    - act 3, `grad` 1 (first derivative): x if refer > 0, else alpha·x, where refer is the result of the forward call
      and has input's shape.
    - act 1 (linear), `grad` 0 or 1: x.
    - act 3 or 1, `grad` 2 (second derivative): 0.

    For `grad` 0, refer is not read and may have no elements. All tensors have one dtype. Other values of act or grad
    are rejected.

    Source: T. Karras et al., StyleGAN2, CVPR 2020; MMCV 1.x fused_bias_leakyrelu.
    """
