"""Normalisation layers and vector norms, with their gradients.

Unless a docstring says otherwise: var is the biased variance (divided by the number of elements), statistics are
computed in float32 or wider, weight NULL means 1, bias NULL means 0, and weight, bias and running statistics have
input's dtype or, beside half-precision input, float32. `out` and `grad_input` have the shape and dtype of `input`,
grad_weight and grad_bias shape and dtype of weight. Gradients whose handle is NULL are skipped; the others are
computed all the same. A parameter, statistic or gradient of another size is an error: nothing is broadcast. In
gradients dy stands for grad_output, x for input, x̂ for (x − mean) · invstd.
The norm over a dim list: len 0 means all axes; negative axes count from the end; an axis out of range or named twice is
an error.
"""

from collections.abc import Sequence
from typing import Annotated

from diopi_proto.dtypes import floating, same, statistic
from diopi_proto.facts import NormOrder, ShapeOf
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
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype


def of_weight(inputs: Sequence[Dtype]) -> Dtype:
    """The type of the third input, in the gradients of this family the weight."""
    return inputs[2] if len(inputs) > 2 else inputs[0]


def of_affine(inputs: Sequence[Dtype]) -> Dtype:
    """The type of the last of input, weight and bias: float32 statistics go with float32 parameters."""
    return inputs[-1]


RUNNING = ("running_mean", "running_var")
NO_GRADIENT_OF_BIAS = Ignored(("bias",), "no gradient depends on it")
MOMENTUM_1 = "a momentum of 1 leaves nothing of them"

AFFINE_GRADIENTS = {"grad_input": same, "grad_weight": of_weight, "grad_bias": of_weight}


@prototype(
    dtypes=floating,
    result={"out": same, "save_mean": statistic, "save_invstd": statistic},
    ignored=[Ignored(RUNNING, MOMENTUM_1, {"training": True, "momentum": 1}, Read.value)],
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
    """Normalises every channel: (input − mean) / √(var + eps) · weight + bias.

    input: (N, C, …), rank 2 or more; every other tensor but `out`: (C). save_mean and save_invstd have input's dtype,
    for half precision float32; what the caller made them decides.
    training: mean and var of the channel over all axes but 1, written to save_mean and as 1/√(var + eps) to
    save_invstd. Running statistics that are given become (1 − momentum)·old + momentum·new, the new variance the
    unbiased one (divided by n − 1; NaN for n = 1).
    Not training: running_mean and running_var, which must be given, and are only read; save_mean and save_invstd may
    be NULL or have no elements, and what they hold afterwards is not specified.
    Errors: rank below 2, a parameter whose size is not C, training without any element, no running statistics outside
    training. Source: torch.nn.functional.batch_norm, torch.native_batch_norm.
    """


@prototype(
    dtypes=floating,
    result=AFFINE_GRADIENTS,
    ignored=[
        Ignored((*RUNNING, "eps"), "the saved statistics are used", {"training": True}),
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
    """Gradients of `diopiBatchNorm`. n is the number of elements of a channel, Σ runs over them.

    training: mean and invstd are the saved ones;
    grad_input = weight·invstd · (dy − Σdy/n − x̂·Σ(dy·x̂)/n).
    Not training: mean = running_mean and invstd = 1/√(running_var + eps);
    grad_input = weight·invstd·dy.
    Either way grad_weight = Σ dy·x̂ and grad_bias = Σ dy, both (C). Source: torch.ops.aten.native_batch_norm_backward.
    """


@prototype(dtypes=floating, result=statistic)
def diopiBatchNormStats(ctx: Context, mean: Out, invstd: Out, input: In, eps: f64):
    """Mean and 1/√(var + eps) of every channel of one worker's batch; the first step of synchronised batch norm.

    input: (N, C, …), rank 2 or more. mean, invstd: (C), float32 for half-precision input. No running statistics are
    kept. Source: torch.batch_norm_stats.
    """


@prototype(
    dtypes=floating,
    result=statistic,
    ignored=[
        Ignored(("input",), "all else is in the statistics", read=Read.form),
        Ignored(RUNNING, MOMENTUM_1, {"momentum": 1}, Read.value),
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
    """Joins the statistics of W workers into those of the whole batch, and updates the running ones.

    mean_all, invstd_all: (W, C) as `diopiBatchNormStats` makes them; counts: (W), floating, elements per channel of
    each worker; mean, invstd and the running statistics: (C).
    With var_k = 1/invstd_k² − eps and n = Σ counts_k: mean = Σ counts_k·mean_k / n,
    var = Σ counts_k·(var_k + (mean_k − mean)²) / n, invstd = 1/√(var + eps).
    Running statistics that are given become (1 − momentum)·old + momentum·new, the new variance var·n/(n − 1).
    Source: torch.batch_norm_gather_stats_with_counts.
    """


@prototype(
    dtypes=floating,
    result=statistic,
    ignored=[
        Ignored(("weight",), "the sums are those of the normalised input"),
        Ignored(("invstd",), "only grad_weight depends on it", {"weight_g": False}, Read.form),
        Ignored(("input", "mean"), "grad_bias needs neither", {"input_g": False, "weight_g": False}, Read.form),
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
    """One worker's sums for the gradient of synchronised batch norm, Σ over all axes but 1.

    sum_dy = Σ dy and sum_dy_xmu = Σ dy·(x − mean), wanted where input_g; grad_weight = sum_dy_xmu·invstd, wanted where
    weight_g; grad_bias = Σ dy, wanted where bias_g. A result is written if it is wanted and its handle is not NULL.
    dy, x: (N, C, …); everything else (C); the four results are float32 for half-precision input.
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
    """The input's gradient of synchronised batch norm, from sums over all workers.

    grad_input = (dy − sum_dy/n − (x − mean)·invstd²·sum_dy_xmu/n) · invstd·weight, n the sum of count.
    dy, x, grad_input: (N, C, …); count: (W), int32, elements per channel of each worker; everything else (C),
    float32 beside half precision. Source: torch.batch_norm_backward_elemt.
    """


@prototype(dtypes=floating, ignored=[Ignored(("eps",), "invstd already holds it")])
def diopiBatchNormElemt(
    ctx: Context,
    out: Out,
    input: In,
    weight: Sized | None,
    bias: Sized | None,
    mean: Sized,
    invstd: Sized,
    eps: f32,
):
    """Applies given statistics: (input − mean)·invstd·weight + bias.

    input: (N, C, …), rank 2 or more; weight, bias, mean, invstd: (C), the last two float32 beside half precision.
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
    """Normalises the trailing axes, separately for every index before: (x − mean) / √(var + eps) · weight + bias.

    normalized_shape: sizes of the trailing axes to normalise, at least one; weight, bias: of that shape.
    save_mean, save_invstd: mean and 1/√(var + eps), of the leading axes' shape, with or without a 1 for every
    normalised axis; float32 for half-precision input, or whatever floating dtype the caller made them. An infinite mean
    is unspecified, because algorithms that update the mean value by value return NaN. Of no values the mean is 0 and
    1/√(var + eps) NaN. Errors: input does not end in normalized_shape, weight or bias of another shape.
    Source: torch.nn.functional.layer_norm, torch.native_layer_norm.
    """


@prototype(dtypes=floating, result=AFFINE_GRADIENTS, ignored=[NO_GRADIENT_OF_BIAS])
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
    """Gradients of `diopiLayerNorm` from the statistics it saved: mean and rstd = 1/√(var + eps).

    With g = dy·weight and E the mean over the normalised axes: grad_input = rstd · (g − E g − x̂·E(g·x̂)).
    grad_weight = Σ dy·x̂ and grad_bias = Σ dy, summed over the leading axes. mean and rstd may be half precision and
    are widened first. Source: torch.ops.aten.native_layer_norm_backward.
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
    """`diopiLayerNorm` over the axes from begin_norm_axis on.

    running_mean and running_var are results with misleading names: the mean and 1/√(var + eps), in the shape of the
    axes before begin_norm_axis, float32 for half-precision input or whatever floating dtype the caller made them.
    Infinite means, and those of no values, are as `diopiLayerNorm` says.
    weight, bias: of the shape of the normalised axes. begin_norm_axis may be negative and must name an axis of input.
    Source: as `diopiLayerNorm`.
    """


@prototype(dtypes=floating, result=AFFINE_GRADIENTS, ignored=[NO_GRADIENT_OF_BIAS])
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
    """Gradients of `diopiLayerNormGB`: as `diopiLayerNormBackward` with the axes from begin_norm_axis on normalised.

    running_mean is the saved mean, running_std the saved 1/√(var + eps). Source: as `diopiLayerNormBackward`.
    """


@prototype(
    dtypes=floating,
    result={"out": same, "save_mean": of_affine, "save_invstd": of_affine},
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
    """Normalises groups of channels, separately for every sample: (x − mean) / √(var + eps) · weight + bias.

    input: (N, C, …), rank 2 or more; C consecutive channels make num_groups groups of equal size, and a group's mean
    and var run over its channels and all axes after them. weight, bias: (C). save_mean and save_invstd: mean and
    1/√(var + eps), (N, num_groups), in weight's dtype or whatever floating dtype the caller made them. Infinite means,
    and those of no values, are as `diopiLayerNorm` says.
    Errors: num_groups < 1 or not a divisor of C, weight or bias of another size.
    Source: torch.nn.functional.group_norm, torch.native_group_norm.
    """


@prototype(dtypes=floating, result=AFFINE_GRADIENTS)
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
    """Gradients of `diopiGroupNorm` from the statistics it saved: mean and rstd = 1/√(var + eps), (N, num_groups).

    With g = dy·weight and E the mean over a group: grad_input = rstd · (g − E g − x̂·E(g·x̂)).
    grad_weight = Σ dy·x̂ and grad_bias = Σ dy, (C), summed over all axes but 1.
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
    """Normalises the axes from `axis` on, separately for every index before: (x − mean) / √(var + eps) · scale + bias.

    axis: 1 … rank − 1, as a rule 2. scale, bias: as many elements as the axes 1 … axis − 1 together (C when axis is 2),
    shared by all indices of axis 0; NULL means 1 and 0. The statistics always come from input; there are no running
    ones. eps may be zero or negative: where var + eps < 0 the result is NaN, where it is 0 the standard leaves it open.
    Errors: axis out of range, scale or bias of another size. Source: torch.nn.functional.instance_norm.
    """


@prototype(
    dtypes=floating,
    result={"grad_input": same, "grad_scale": of_weight, "grad_bias": of_weight},
    ignored=[NO_GRADIENT_OF_BIAS],
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
    """Gradients of `diopiInstanceNorm`; mean and rstd = 1/√(var + eps) are computed again from input.

    With g = dy·scale and E the mean over the axes from `axis` on: grad_input = rstd · (g − E g − x̂·E(g·x̂)).
    grad_scale = Σ dy·x̂ and grad_bias = Σ dy, of scale's shape, summed over axis 0 and the axes from `axis` on.
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
    """Scales to length one: input / max(‖input‖ₚ, eps), the p-norm taken along `axis` (see `diopiNorm`).

    axis may be negative; 0-d input takes 0 and −1. eps may be zero or negative; vectors of norm 0 then give NaN.
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
    """Gradient of `diopiNormalize`, the norm computed again from input.

    With r = ‖x‖ₚ along axis: dy/r − ∂r/∂x · Σ(dy·x)/r² where r ≥ eps, Σ along axis and ∂r/∂x as in `diopiNormBackward`;
    dy/eps where r < eps. All tensors have one shape. Source: the gradient of torch.nn.functional.normalize.
    """


@prototype(dtypes=floating, backward="diopiNormBackward")
def diopiNorm(ctx: Context, out: Out, input: In, p: Annotated[Scalar, NormOrder()], dim: Axes):
    """Vector norm of order p over the axes `dim`: (Σ |input|^p)^(1/p).

    p: any number, payload integer or floating; 0 counts the elements that are not zero, ∞ takes the largest and −∞ the
    smallest |input|; with a negative p a zero gives 0. NaN gives NaN, for p = 0 counts as one.
    out: shape of input without the axes of dim, or with 1 in their place; which of the two, its rank tells. 0-d input
    takes the axes 0 and −1. If out is wider than input, input is converted first. Over no element at all the norm is 0;
    for p < 0 or p = ∞ an axis without elements is an error.
    Source: torch.norm, torch.linalg.vector_norm.
    """


@prototype(dtypes=floating)
def diopiNormBackward(ctx: Context, grad_input: Out, grad_output: In, self: Sized, norm: Sized, dim: Axes, p: Scalar):
    """Gradient of `diopiNorm` with respect to its input self, norm being its result.

    grad_output · sign(self)·|self|^(p−1) / norm^(p−1), both broadcast along dim; 0 where self is 0 or norm is 0, and
    everywhere for p = 0. For p = ±∞ the gradient is shared equally by all elements whose modulus is norm.
    grad_output and norm have the same shape: that of self without the axes of dim, or with 1 in their place when their
    rank is self's. Source: the gradient of torch.norm.
    """


@prototype(dtypes=floating)
def diopiLinalgVecNorm(
    ctx: Context, out: Out, input: In, ord: Annotated[MutableScalar, NormOrder()], dim: Axes, keepdim: boolean
):
    """Vector norm as `diopiNorm`, its order `ord`; keepdim says whether the axes of dim stay in `out` with size 1.

    Source: torch.linalg.vector_norm.
    """


@prototype(dtypes=floating)
def diopiForeachnormScalar(
    ctx: Context, outs: Outs, inputs: Ins, inputSize: Count, ord: Annotated[Scalar, NormOrder()]
):
    """Norm of each of inputSize tensors: outs[i] = vector norm of order `ord` over all elements of inputs[i].

    ord: as p in `diopiNorm`; as a rule 1, 2 or ∞. outs[i]: 0-d, of inputs[i]'s dtype or wider. A tensor without
    elements has norm 0, for ord < 0 or ∞ that is an error. Source: torch._foreach_norm.
    """
