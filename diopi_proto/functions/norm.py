"""Normalization layers and vector norms, with their gradients.

The following holds unless a docstring says otherwise:

- var is the biased variance: the sum of the squared deviations is divided by the number of elements. Statistics are
  computed in float32 or wider.
- A NULL weight means 1 and a NULL bias means 0. weight, bias and running statistics have the dtype of input; if input
  is half precision, they may also be float32.
- `out` and `grad_input` have the shape and dtype of `input`. grad_weight and grad_bias have the shape and dtype of
  weight.
- Gradients whose handle is NULL are skipped. The other gradients are still computed.
- A parameter, statistic or gradient of another size is an error: nothing is broadcast.
- In gradients, dy is grad_output, x is input, and x̂ is (x − mean) · invstd.
- A list `dim` names the axes of a norm. An empty list means all axes, and negative axes count from the end. An axis
  that is out of range or named twice is an error.
"""

from collections.abc import Sequence
from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, same, statistic
from diopi_proto.facts import ExcludesNumbers, NormOrder, ShapeOf
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Axes,
    ConstAxis,
    Context,
    Count,
    Extents,
    In,
    Ins,
    MutableScalar,
    Out,
    Outs,
    PositiveExtent,
    Scalar,
    Sized,
    SizedInOut,
    boolean,
    const_f32,
    const_f64,
    f32,
    f64,
)
from diopi_proto.types import Dtype

UnusedEpsilon = Annotated[f32, ExcludesNumbers(("zero", "negative"), "it does not affect the results")]
"""A positive number that no result depends on."""

Order = Annotated[Scalar, NormOrder(), ExcludesNumbers(("bool",), "torch._foreach_norm rejects it")]
"""The order of a vector norm, not bool."""


def dtype_of_weight(inputs: Sequence[Dtype]) -> Dtype:
    """Return the type of the third input, the weight of gradient functions; without one, that of the first input."""
    return inputs[2] if len(inputs) > 2 else inputs[0]


def dtype_of_parameters(inputs: Sequence[Dtype]) -> Dtype:
    """Return the type of the last of the inputs: the bias, the weight or, if both are NULL, the input."""
    return inputs[-1]


RUNNING_STATISTICS = ("running_mean", "running_var")
"""The names of the running statistics."""

IGNORES_BIAS = Ignored(("bias",), "no gradient depends on it")
"""No gradient depends on `bias`."""

REPLACED_BY_MOMENTUM_1 = "a momentum of 1 replaces them"
"""The reason why old running statistics do not matter if the momentum is 1."""

AFFINE_GRADIENT_DTYPES = {"grad_input": same, "grad_weight": dtype_of_weight, "grad_bias": dtype_of_weight}
"""The rules for the element types of the gradients of a normalization layer."""


@prototype(
    dtypes=floating,
    result={"out": same, "save_mean": statistic, "save_invstd": statistic},
    ignored=[Ignored(RUNNING_STATISTICS, REPLACED_BY_MOMENTUM_1, {"training": True, "momentum": 1}, Read.value)],
    backward="diopiBatchNormBackward",
)
def diopiBatchNorm(
    ctx: Context,
    out: Out,
    save_mean: Out | None,
    save_invstd: Out | None,
    input: In,
    weight: Sized | None,
    bias: Sized | None,
    running_mean: SizedInOut | None,
    running_var: SizedInOut | None,
    training: boolean,
    momentum: f64,
    eps: f64,
):
    """Normalize every channel: (input − mean) / √(var + eps) · weight + bias.

    input is (N, C, …) of rank 2 or more, and out has the same shape. All other tensors are (C). The caller chooses the
    dtype of save_mean and save_invstd: the dtype of input or, for half precision, also float32.

    If training is true:

    - mean and var are the mean and the variance of the channel over all axes except axis 1.
    - The call writes mean to save_mean, and 1/√(var + eps) to save_invstd.
    - The call updates running statistics that the caller passes: (1 − momentum)·old + momentum·new. The new variance is
      unbiased: the sum of squares is divided by n − 1. For n = 1, the new variance is NaN.

    If training is false:

    - mean and var are running_mean and running_var. Both are required, and the call only reads them.
    - save_mean and save_invstd may be NULL or have no elements. Their contents after the call are unspecified.

    Errors: rank below 2; a parameter whose size is not C; training without any element; no running statistics if
    training is false.

    Source: torch.nn.functional.batch_norm, torch.native_batch_norm.
    """


@prototype(
    dtypes=floating,
    result=AFFINE_GRADIENT_DTYPES,
    ignored=[
        Ignored((*RUNNING_STATISTICS, "eps"), "the saved statistics are used", {"training": True}),
        Ignored(("save_mean", "save_invstd"), "the running statistics are used", {"training": False}),
    ],
)
def diopiBatchNormBackward(
    ctx: Context,
    grad_input: Out | None,
    grad_weight: Out | None,
    grad_bias: Out | None,
    grad_output: In,
    input: Sized,
    weight: Sized | None,
    running_mean: Sized | None,
    running_var: Sized | None,
    save_mean: Sized | None,
    save_invstd: Sized | None,
    training: boolean,
    eps: f64,
):
    """Compute the gradients of `diopiBatchNorm` with respect to input, weight and bias.

    Let n be the number of elements of a channel, and Σ the sum over them.

    - If training is true, mean and invstd are save_mean and save_invstd, and grad_input = weight·invstd · (dy − Σdy/n −
      x̂·Σ(dy·x̂)/n).
    - If training is false, mean = running_mean, invstd = 1/√(running_var + eps), and grad_input = weight·invstd·dy.

    In both cases grad_weight = Σ dy·x̂ and grad_bias = Σ dy, both (C).

    Source: torch.ops.aten.native_batch_norm_backward.
    """


@prototype(dtypes=floating, result=statistic)
def diopiBatchNormStats(ctx: Context, mean: Out, invstd: Out, input: In, eps: f64):
    """Compute mean and 1/√(var + eps) of every channel of one worker's batch.

    This is the first step of synchronized batch normalization, in which several workers normalize one batch together.

    - input: (N, C, …), rank 2 or more.
    - mean, invstd: (C), float32 for half-precision input.

    There are no running statistics.

    Source: torch.batch_norm_stats.
    """


@prototype(
    dtypes=floating,
    result=statistic,
    ignored=[
        Ignored(("input",), "the statistics contain all that is needed", read=Read.form),
        Ignored(RUNNING_STATISTICS, REPLACED_BY_MOMENTUM_1, {"momentum": 1}, Read.value),
    ],
)
def diopiBatchNormGatherStatsWithCounts(
    ctx: Context,
    mean: Out,
    invstd: Out,
    input: In,
    mean_all: Sized,
    invstd_all: Sized,
    running_mean: SizedInOut | None,
    running_var: SizedInOut | None,
    momentum: f32,
    eps: f32,
    counts: Sized,
):
    """Combine the statistics of W workers into those of the whole batch, and update the running statistics.

    - input: only its dtype and shape are read.
    - mean_all, invstd_all: (W, C), results of `diopiBatchNormStats`.
    - counts: (W), floating-point, the number of elements per channel of each worker.
    - mean, invstd, running_mean, running_var: (C).

    With var_k = 1/invstd_k² − eps and n = Σ counts_k, the call computes in this order:

    1. mean = Σ counts_k·mean_k / n.
    2. var = Σ counts_k·(var_k + (mean_k − mean)²) / n.
    3. invstd = 1/√(var + eps).

    If the caller passes running statistics, they become (1 − momentum)·old + momentum·new, where the new variance is
    var·n/(n − 1).

    Source: torch.batch_norm_gather_stats_with_counts.
    """


@prototype(
    dtypes=floating,
    result=statistic,
    ignored=[
        Ignored(("weight",), "the sums do not depend on it"),
        Ignored(("invstd",), "only grad_weight depends on it", {"weight_g": False}, Read.form),
        Ignored(("input", "mean"), "grad_bias depends on neither", {"input_g": False, "weight_g": False}, Read.form),
    ],
)
def diopiBatchNormBackwardReduce(
    ctx: Context,
    sum_dy: Out | None,
    sum_dy_xmu: Out | None,
    grad_weight: Out | None,
    grad_bias: Out | None,
    grad_out: In,
    input: Sized,
    mean: Sized,
    invstd: Sized,
    weight: Sized | None,
    input_g: boolean,
    weight_g: boolean,
    bias_g: boolean,
):
    """Compute the sums of one worker for the gradient of synchronized batch normalization.

    dy is grad_out and x is input, both (N, C, …). Σ is the sum over all axes except axis 1. The four results are (C),
    and float32 for half-precision input:

    - sum_dy = Σ dy and sum_dy_xmu = Σ dy·(x − mean), if input_g is true.
    - grad_weight = sum_dy_xmu·invstd, if weight_g is true.
    - grad_bias = Σ dy, if bias_g is true.

    A result is not written if its flag is false or its handle is NULL. mean, invstd and weight are (C).

    Source: torch.batch_norm_backward_reduce.
    """


@prototype(dtypes=floating, argument_dtypes={"count": (Dtype.int32,)})
def diopiBatchNormBackwardElemt(
    ctx: Context,
    grad_input: Out,
    grad_out: In,
    input: Sized,
    mean: Sized,
    invstd: Sized,
    weight: Sized | None,
    sum_dy: Sized,
    sum_dy_xmu: Sized,
    count: In,
):
    """Compute the gradient of synchronized batch normalization with respect to its input, from sums over all workers.

    grad_input = (dy − sum_dy/n − (x − mean)·invstd²·sum_dy_xmu/n) · invstd·weight. Here dy is grad_out, x is input, and
    n is the sum of count.

    - grad_out, input, grad_input: (N, C, …).
    - count: (W), int32, the number of elements per channel of each worker.
    - all other tensors: (C), float32 if grad_out and input are half precision. sum_dy and sum_dy_xmu are the results of
      `diopiBatchNormBackwardReduce`, summed over all workers.

    Source: torch.batch_norm_backward_elemt.
    """


@prototype(dtypes=floating, ignored=[Ignored(("eps",), "invstd already includes it")])
def diopiBatchNormElemt(
    ctx: Context,
    out: Out,
    input: In,
    weight: Sized | None,
    bias: Sized | None,
    mean: Sized,
    invstd: Sized,
    eps: UnusedEpsilon,
):
    """Normalize with the statistics that the caller passes: (input − mean)·invstd·weight + bias.

    - input: (N, C, …), rank 2 or more.
    - weight, bias, mean, invstd: (C). mean and invstd are float32 if input is half precision.
    - eps: has no effect, because invstd already includes it.

    Source: torch.batch_norm_elemt.
    """


@prototype(
    dtypes=floating,
    result={"out": same, "save_mean": statistic, "save_invstd": statistic},
    backward="diopiLayerNormBackward",
)
def diopiLayerNorm(
    ctx: Context,
    out: Out,
    save_mean: Out,
    save_invstd: Out,
    input: In,
    weight: Sized | None,
    bias: Sized | None,
    normalized_shape: Extents,
    eps: f64,
):
    """Normalize over the last axes: (x − mean) / √(var + eps) · weight + bias, with one mean and var per leading index.

    - normalized_shape: the sizes of the last axes, over which the call normalizes; at least one.
    - weight, bias: tensors of the shape normalized_shape.
    - save_mean, save_invstd: mean and 1/√(var + eps), in the shape of the leading axes, which may be followed by a 1
      for every normalized axis. They are float32 for half-precision input, or have any other floating-point dtype that
      the caller chooses.

    An infinite mean is unspecified, because algorithms that update the mean element by element return NaN. If there are
    no elements to normalize, the mean is 0 and 1/√(var + eps) is NaN.

    Errors: the shape of input does not end in normalized_shape; weight or bias has another shape.

    Source: torch.nn.functional.layer_norm, torch.native_layer_norm.
    """


@prototype(dtypes=floating, result=AFFINE_GRADIENT_DTYPES, ignored=[IGNORES_BIAS])
def diopiLayerNormBackward(
    ctx: Context,
    grad_input: Out | None,
    grad_weight: Out | None,
    grad_bias: Out | None,
    grad_output: In,
    input: Sized,
    weight: Sized | None,
    bias: Sized | None,
    mean: Sized,
    rstd: Sized,
    normalized_shape: Extents,
):
    """Compute the gradients of `diopiLayerNorm` from the saved statistics mean and rstd = 1/√(var + eps).

    Let g = dy·weight, and let E be the mean over the normalized axes:

    - grad_input = rstd · (g − E g − x̂·E(g·x̂)).
    - grad_weight = Σ dy·x̂ and grad_bias = Σ dy, summed over the leading axes.

    mean and rstd may be half precision; they are converted to a wider type first.

    Source: torch.ops.aten.native_layer_norm_backward.
    """


@prototype(
    dtypes=floating,
    result={"out": same, "running_mean": statistic, "running_var": statistic},
    backward="diopiLayerNormGBBackward",
)
def diopiLayerNormGB(
    ctx: Context,
    out: Out,
    running_mean: Out,
    running_var: Out,
    input: In,
    weight: Sized | None,
    bias: Sized | None,
    eps: const_f64,
    begin_norm_axis: ConstAxis,
):
    """Compute `diopiLayerNorm` over the axes from begin_norm_axis on.

    - running_mean, running_var: two results. Despite their names, they are the mean and 1/√(var + eps), in the shape of
      the axes before begin_norm_axis. They are float32 for half-precision input, or have any other floating-point dtype
      that the caller chooses.
    - weight, bias: tensors with the shape of the normalized axes.
    - begin_norm_axis: an axis of input, which may be negative.

    Infinite means, and statistics of no elements, are treated as in `diopiLayerNorm`.

    Source: as `diopiLayerNorm`.
    """


@prototype(dtypes=floating, result=AFFINE_GRADIENT_DTYPES, ignored=[IGNORES_BIAS])
def diopiLayerNormGBBackward(
    ctx: Context,
    grad_input: Out | None,
    grad_weight: Out | None,
    grad_bias: Out | None,
    grad_output: In,
    input: Sized,
    weight: Sized | None,
    bias: Sized | None,
    running_mean: Sized,
    running_std: Sized,
    begin_norm_axis: ConstAxis,
):
    """Compute the gradients of `diopiLayerNormGB`: as `diopiLayerNormBackward` over the axes from begin_norm_axis on.

    running_mean is the saved mean, and running_std is the saved 1/√(var + eps).

    Source: as `diopiLayerNormBackward`.
    """


@prototype(
    dtypes=floating,
    result={"out": same, "save_mean": dtype_of_parameters, "save_invstd": dtype_of_parameters},
    backward="diopiGroupNormBackward",
)
def diopiGroupNorm(
    ctx: Context,
    out: Out,
    save_mean: Out,
    save_invstd: Out,
    input: In,
    weight: Sized | None,
    bias: Sized | None,
    num_groups: PositiveExtent,
    eps: f64,
):
    """Normalize groups of channels, separately for every sample: (x − mean) / √(var + eps) · weight + bias.

    - input: (N, C, …), rank 2 or more. The C channels are divided into num_groups groups of equal size, each of
      consecutive channels. The mean and var of a group are computed over its channels and all axes after the channel
      axis.
    - weight, bias: (C).
    - save_mean, save_invstd: mean and 1/√(var + eps), (N, num_groups). They have the dtype of weight, or any other
      floating-point dtype that the caller chooses.

    Infinite means, and statistics of no elements, are treated as in `diopiLayerNorm`. Errors: num_groups < 1 or not a
    divisor of C; weight or bias of another size.

    Source: torch.nn.functional.group_norm, torch.native_group_norm.
    """


@prototype(dtypes=floating, result=AFFINE_GRADIENT_DTYPES)
def diopiGroupNormBackward(
    ctx: Context,
    grad_input: Out | None,
    grad_weight: Out | None,
    grad_bias: Out | None,
    grad_output: In,
    input: Sized,
    weight: Sized | None,
    mean: Sized,
    rstd: Sized,
    num_groups: PositiveExtent,
):
    """Compute the gradients of `diopiGroupNorm` from the saved statistics mean and rstd = 1/√(var + eps).

    mean and rstd are (N, num_groups). Let g = dy·weight, and let E be the mean over a group:

    - grad_input = rstd · (g − E g − x̂·E(g·x̂)).
    - grad_weight = Σ dy·x̂ and grad_bias = Σ dy, both (C), summed over all axes except 1.

    Source: torch.ops.aten.native_group_norm_backward.
    """


@prototype(dtypes=floating, backward="diopiInstanceNormBackward")
def diopiInstanceNorm(
    ctx: Context,
    output: Out,
    input: In,
    axis: ConstAxis,
    scale: Sized | None,
    bias: Sized | None,
    eps: const_f64,
):
    """Normalize over the axes from `axis` on, separately for every index of the axes before it.

    output = (x − mean) / √(var + eps) · scale + bias.

    - axis: from 1 to rank − 1, usually 2.
    - scale, bias: as many elements as the axes from 1 to axis − 1 have together, which is C if axis is 2. They are
      shared by all indices of axis 0. A NULL scale means 1 and a NULL bias means 0.
    - eps: may be zero or negative. If var + eps is negative, the result is NaN. If it is 0, the result is unspecified.

    mean and var are always computed from input; there are no running statistics. Errors: axis out of range; scale or
    bias of another size.

    Source: torch.nn.functional.instance_norm.
    """


@prototype(
    dtypes=floating,
    result={"grad_input": same, "grad_scale": dtype_of_weight, "grad_bias": dtype_of_weight},
    ignored=[IGNORES_BIAS],
)
def diopiInstanceNormBackward(
    ctx: Context,
    grad_input: Out | None,
    grad_scale: Out | None,
    grad_bias: Out | None,
    grad_output: In,
    input: Sized,
    scale: Sized | None,
    bias: Sized | None,
    axis: ConstAxis,
    eps: const_f64,
):
    """Compute the gradients of `diopiInstanceNorm`; mean and rstd = 1/√(var + eps) are recomputed from input.

    Let g = dy·scale, and let E be the mean over the axes from `axis` on:

    - grad_input = rstd · (g − E g − x̂·E(g·x̂)), where x̂ = (x − mean)·rstd.
    - grad_scale = Σ dy·x̂ and grad_bias = Σ dy, in the shape of scale, summed over axis 0 and the axes from `axis` on.

    Source: the gradient of torch.nn.functional.instance_norm.
    """


@prototype(dtypes=floating, backward="diopiNormalizeBackward")
def diopiNormalize(
    ctx: Context,
    output: Annotated[Out, ShapeOf("input")],
    input: In,
    p: Annotated[const_f32, NormOrder()],
    axis: ConstAxis,
    eps: const_f64,
):
    """Scale vectors to unit norm: input / max(‖input‖ₚ, eps), where the p-norm (`diopiNorm`) is computed along `axis`.

    axis may be negative; for a 0-d input it is 0 or −1. eps may be zero or negative; a vector of norm 0 then gives NaN.

    Source: torch.nn.functional.normalize.
    """


@prototype(dtypes=floating)
def diopiNormalizeBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: Sized,
    p: const_f32,
    axis: ConstAxis,
    eps: const_f64,
):
    """Compute the gradient of `diopiNormalize`; the norm is recomputed from input.

    Let r = ‖x‖ₚ along axis, and let Σ be the sum along axis:

    - Where r ≥ eps, the gradient is dy/r − ∂r/∂x · Σ(dy·x)/r². `diopiNormBackward` defines ∂r/∂x.
    - Where r < eps, the gradient is dy/eps.

    All tensors have the same shape.

    Source: the gradient of torch.nn.functional.normalize.
    """


@prototype(dtypes=floating, backward="diopiNormBackward")
def diopiNorm(ctx: Context, out: Out, input: In, p: Annotated[Scalar, NormOrder()], dim: Axes):
    """Compute the vector norm of order p over the axes `dim`: (Σ |input|^p)^(1/p).

    p may be any number, stored as an integer or as a floating-point number:

    - p = 0 counts the nonzero elements. A NaN counts as nonzero.
    - p = ∞ gives the largest |input|, and p = −∞ the smallest.
    - For a negative p, the result is 0 if one of the elements is 0.

    For all p except 0, the result is NaN if one of the elements is NaN. The norm of no elements is 0. For p < 0 and p =
    ∞, an axis without elements is an error.

    out has the shape of input without the axes of dim, or with size 1 in their place; the rank of out determines which.
    For a 0-d input, dim may contain the axes 0 and −1. If out has a wider dtype than input, input is converted first.

    Source: torch.norm, torch.linalg.vector_norm.
    """


@prototype(dtypes=floating)
def diopiNormBackward(ctx: Context, grad_input: Out, grad_output: In, self: Sized, norm: Sized, dim: Axes, p: Scalar):
    """Compute the gradient of `diopiNorm` with respect to its input self; `norm` is the result of `diopiNorm`.

    The gradient is grad_output · sign(self)·|self|^(p−1) / norm^(p−1), where grad_output and norm are broadcast along
    dim. It is 0 where self is 0 or norm is 0, and everywhere for p = 0. For p = ±∞, all elements whose absolute value
    equals norm share the gradient equally.

    grad_output and norm have the same shape: that of self without the axes of dim, or with size 1 in their place.

    Source: the gradient of torch.norm.
    """


@prototype(dtypes=floating)
def diopiLinalgVecNorm(
    ctx: Context, out: Out, input: In, ord: Annotated[MutableScalar, NormOrder()], dim: Axes, keepdim: boolean
):
    """Return the vector norm as `diopiNorm` does, with the order `ord`.

    If keepdim is true, the axes of dim are kept in `out` with size 1; otherwise they are removed.

    Source: torch.linalg.vector_norm.
    """


@prototype(dtypes=floating)
def diopiForeachnormScalar(ctx: Context, outs: Outs, inputs: Ins, inputSize: Count, ord: Order):
    """Compute the norm of each of inputSize tensors: outs[i] is the vector norm of all elements of inputs[i].

    The order of the norm is `ord`, which has the meaning of p in `diopiNorm` and is usually 1, 2 or ∞. outs[i] is 0-d,
    in the dtype of inputs[i] or a wider one. A tensor without elements has norm 0; for ord < 0 or ord = ∞ it is an
    error. If inputSize is 0, the call does nothing.

    Source: torch._foreach_norm.
    """
