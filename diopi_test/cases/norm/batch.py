"""Cases of batch norm and its gradients, on a single worker and on several workers that combine their statistics.

A template describes cases that differ only in their element type.

A domain draws the values of a tensor (`diopi_test.cases.domains`). Large cases belong to a level with the sizes of real
models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import inf, nan
from typing import Any

from diopi_proto.dtypes import floating, half
from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOf
from diopi_test.cases.domains import Domain, choice, integer_values, normal, uniform
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import channels_last, contiguous, strided, transposed
from diopi_test.cases.norm.affine import (
    NO_VARIANCE_REASONS,
    LayerSizes,
    forward_statistic,
    layer_template,
    register_layers,
    shared_arguments,
    statistic_dtype,
)
from diopi_test.cases.norm.shared_templates import (
    ALL_LAYERS_TEMPLATES,
    GRADIENTS,
    NO_AFFINE,
    NO_BIAS,
    NO_WEIGHT,
    exact_template,
    large_template,
    long_templates,
    saved_statistics,
)
from diopi_test.cases.norm.values import (
    EPS,
    FAR_FROM_ZERO,
    MOMENTUM,
    POSITIVE_INTEGERS,
    SHIFTED,
    equal_rows,
    shifted_starting_with,
    two_values,
)
from diopi_test.cases.template import CaseTemplate, tensor

F16, BF16, F32, F64 = floating
"""Short names for the floating-point types."""

RUNNING_STATISTICS = ("running_mean", "running_var")
"""The arguments for running statistics, which a call may omit."""

POSITIVE = uniform(0.5, 2)
"""A domain of numbers that a variance, or the inverse of its root, may have."""

MOMENTA = {"0": 0.0, "1": 1.0, "third": 1 / 3}
"""The values of the momentum, by label."""

FURTHER_MOMENTA = (0.01, 0.1, 0.5, 0.9, -0.25, 2.0)
"""Further values of the momentum.

PyTorch's momentum None, the mean over all batches, equals a momentum of 1, 1/2, 1/3, … in successive calls.
"""

IMAGE_BATCH_SHAPE = (5, 37, 29, 31)
"""The shape of a large batch of images, in which each channel has a sum of 4,495 numbers."""

LAST_FEATURE_MAPS = (3, 512, 7, 7)
"""The shape of the last feature maps of a typical network: many channels with few elements each."""

EPSILONS = (0.0, 1e-8, 1e-3, 1.0, -0.0625)
"""Further values of eps. PyTorch accepts zero and negative values."""

SAVED_STATISTICS = ("save_mean", "save_invstd")
"""The results of training that the gradient receives: the mean, and the inverse of the standard deviation."""


def _batch_norm_arguments(template: CaseTemplate[LayerSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of batch norm, its gradient and its statistics for the sizes of a template.

    Args:
        template: The template. The channels are on axis 1 of its shape.
        dtype: The element type under test.

    Returns:
        The arguments by name.
    """
    channels, parameter_dtype, statistics_dtype = (
        template.sizes.shape[1:2],
        template.sizes.parameter_dtype,
        statistic_dtype(dtype),
    )
    return {
        "training": True,
        "momentum": MOMENTUM,
        **shared_arguments(template, channels),
        "running_mean": tensor(*channels, dtype=parameter_dtype),
        "running_var": tensor(*channels, dtype=parameter_dtype, domain=POSITIVE),
        "save_mean": forward_statistic(template, ("diopiBatchNormStats", "mean"), channels, statistics_dtype),
        "save_invstd": forward_statistic(template, ("diopiBatchNormStats", "invstd"), channels, statistics_dtype),
    }


register_batch_norm = partial(register_layers, derive=_batch_norm_arguments)
"""Register cases of batch norm, its gradient, or its statistics: `register_layers` with `_batch_norm_arguments`."""

CHANNEL_TEMPLATES = (
    *long_templates((4, 3, 43), (2, 2, 517)),
    *ALL_LAYERS_TEMPLATES,
    layer_template("many-channels", (2, 67, 3)),
    layer_template("rank2", (9, 6)),
    layer_template("rank5", (2, 3, 2, 1, 3), dtypes=(F32, BF16)),
    layer_template("channels-last", (2, 3, 4, 5), layout=channels_last, dtypes=(F32, F16)),
)
"""Templates with various shapes and layouts, with channels along the second axis."""

STATISTICS_TEMPLATES = (
    layer_template("training", (3, 5, 2, 3), dtypes=floating).replace(smoke=True),
    *CHANNEL_TEMPLATES,
    layer_template("eps", (3, 4, 5), eps=0.5),
)
"""Templates that batch norm, its gradient and `diopiBatchNormStats` have."""

LARGE_BATCHES = (
    layer_template("images", IMAGE_BATCH_SHAPE, large=True),
    layer_template("points", (2053, 67), large=True),
    layer_template("half-wide", LAST_FEATURE_MAPS, dtypes=(F16,), large=True),
)
"""Large templates, with sums of many terms or with many channels."""

LARGE_EVALUATION = layer_template("evaluation", (70_001, 3), training=False, large=True)
"""A large template that uses the running statistics instead of the statistics of the batch."""

BATCH_NORM = (
    *STATISTICS_TEMPLATES,
    layer_template("evaluation", (4, 3, 5), training=False, dtypes=floating).replace(smoke=True),
    large_template((4, 3, 43), F32),
    layer_template("mixed-training", (3, 4, 7), parameter_dtype=F32, dtypes=half),
    layer_template("mixed-evaluation", (3, 4, 7), parameter_dtype=F32, training=False, dtypes=half),
    layer_template("rank2-evaluation", (5, 6), training=False),
    layer_template("transposed", (3, 4, 5), layout=transposed, training=False),
    NO_AFFINE,
    NO_AFFINE.replace("no-affine-evaluation", {"training": False}, dtypes=(F32,)),
    layer_template("eps-evaluation", (3, 4, 5), training=False, eps=1e-5),
    layer_template("nan-evaluation", (3, 4, 5), shifted_starting_with(nan), training=False),
    layer_template("infinity-evaluation", (3, 4, 5), shifted_starting_with(-inf), training=False),
    layer_template("empty-evaluation", (0, 3, 2), training=False),
)
"""The templates that batch norm and its gradient have, for training and evaluation."""

FORWARD_ONLY_TEMPLATES = (
    layer_template("far", (3, 4, 12), FAR_FROM_ZERO),
    layer_template("equal-values", (4, 3, 2), equal_rows(2)),
    layer_template("one-value-a-channel", (1, 5)),
)
"""Templates of batch norm and `diopiBatchNormStats` that the gradient does not have."""


def epsilon_templates() -> Iterator[CaseTemplate[LayerSizes]]:
    """Yield a template per value of eps, in training and in evaluation mode."""
    for eps in EPSILONS:
        yield layer_template(f"eps-{eps}", (3, 4, 5), eps=eps)
        yield layer_template(f"eps-{eps}-evaluation", (3, 4, 5), eps=eps, training=False)


register_batch_norm(
    "diopiBatchNorm",
    templates=(
        *BATCH_NORM,
        *FORWARD_ONLY_TEMPLATES,
        NO_WEIGHT,
        NO_BIAS,
        layer_template("no-running", (3, 4, 5), omitted_names=RUNNING_STATISTICS, dtypes=(F32, BF16)),
        *(layer_template(f"momentum-{name}", (3, 4, 5), momentum=momentum) for name, momentum in MOMENTA.items()),
        layer_template("unsaved-evaluation", (4, 3, 2), training=False, omitted_names=SAVED_STATISTICS),
        layer_template("no-elements-saved-evaluation", (4, 3, 2), training=False).replace(
            results=saved_statistics(shape=(0,))
        ),
        layer_template("float16-saved", (4, 3, 6), dtypes=(F16,)).replace(results=saved_statistics(F16)),
        layer_template("float-saved", (4, 3, 6), omitted_names=RUNNING_STATISTICS, dtypes=(F64,)).replace(
            results=saved_statistics(F32)
        ),
        *(layer_template(f"momentum-{momentum}", (3, 4, 5), momentum=momentum) for momentum in FURTHER_MOMENTA),
        layer_template("momentum-0.1-no-running", (3, 4, 5), omitted_names=RUNNING_STATISTICS, momentum=0.1),
        *epsilon_templates(),
        *LARGE_BATCHES,
        layer_template("channels-last", IMAGE_BATCH_SHAPE, layout=channels_last, large=True),
        LARGE_EVALUATION,
    ),
    non_discriminating=NO_VARIANCE_REASONS,
)

register_batch_norm(
    "diopiBatchNormBackward",
    templates=(
        *BATCH_NORM,
        exact_template((8, 3, 8), 8),
        layer_template("no-running", (3, 4, 5), omitted_names=RUNNING_STATISTICS),
        layer_template("no-saved-evaluation", (3, 4, 5), omitted_names=SAVED_STATISTICS, training=False),
        *GRADIENTS,
        layer_template(
            "only-grad_input-evaluation", (3, 4, 5), omitted_names=["grad_weight", "grad_bias"], training=False
        ),
        *epsilon_templates(),
        *LARGE_BATCHES,
        LARGE_EVALUATION,
    ),
)

register_batch_norm(
    "diopiBatchNormStats",
    templates=(
        *STATISTICS_TEMPLATES,
        *FORWARD_ONLY_TEMPLATES,
        *(layer_template(f"eps-{eps}", (3, 4, 5), eps=eps) for eps in EPSILONS),
        *LARGE_BATCHES,
    ),
    non_discriminating=NO_VARIANCE_REASONS,
)


# Several workers


def _gather_arguments(template: CaseTemplate[LayerSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiBatchNormGatherStatsWithCounts`, which combines the statistics of several workers.

    Args:
        template: The template. Its shape is (workers, channels).
        dtype: The element type under test. Statistics are float32 if it has half precision.

    Returns:
        The arguments by name.
    """
    (workers, channels), parameter_dtype, statistics_dtype = (
        template.sizes.shape,
        template.sizes.parameter_dtype,
        statistic_dtype(dtype),
    )
    return {
        "eps": EPS,
        "momentum": MOMENTUM,
        "input": tensor(2, channels, 3),
        "mean_all": tensor(workers, channels, dtype=statistics_dtype, domain=SHIFTED),
        "invstd_all": tensor(workers, channels, dtype=statistics_dtype, domain=POSITIVE),
        "running_mean": tensor(channels, dtype=parameter_dtype),
        "running_var": tensor(channels, dtype=parameter_dtype, domain=POSITIVE),
        "counts": tensor(workers, dtype=statistics_dtype, domain=integer_values(2, 30)),
    }


register_gather = partial(register_layers, derive=_gather_arguments)
"""Register cases of the function that combines the statistics of several workers."""


def _gather_template(
    label: str, workers: int, channels: int, means: Domain = SHIFTED, **fields: Any
) -> CaseTemplate[LayerSizes]:
    """Return a template of a call that combines the statistics of several workers.

    Args:
        label: The label of the cases without the element type.
        workers: The number of workers.
        channels: The number of channels.
        means: The domain of the workers' means.
        **fields: Further arguments of `layer_template`.

    Returns:
        The template.
    """
    return layer_template(label, (workers, channels), **fields).replace(domains={"mean_all": means})


FLOAT32_STATISTICS = {
    "mean_all": tensor(3, 5, dtype=F32, domain=SHIFTED),
    "invstd_all": tensor(3, 5, dtype=F32, domain=POSITIVE),
    "counts": tensor(3, dtype=F32, domain=integer_values(2, 30)),
}
"""Statistics of three workers in float32, for an input in float64. The function combines them in float64."""

GATHER_TEMPLATES = (
    _gather_template("plain", 3, 5, dtypes=floating).replace(smoke=True),
    _gather_template("one-worker", 1, 4),
    _gather_template("many-workers", 17, 3, dtypes=floating),
    _gather_template("many-channels", 2, 67, uniform(1, 2)),
    _gather_template("float-running", 3, 4, parameter_dtype=F32, dtypes=half),
    _gather_template("no-running", 3, 4, omitted_names=RUNNING_STATISTICS, dtypes=(F32, F16)),
    _gather_template("strided", 4, 3, layout=strided),
    _gather_template("transposed", 4, 3, layout=transposed).replace(result_layout=contiguous),
    _gather_template("eps", 3, 4, eps=0.25),
    _gather_template("small-eps", 3, 4, eps=1e-5),
    *(_gather_template(f"momentum-{name}", 3, 4, momentum=momentum) for name, momentum in MOMENTA.items()),
    _gather_template("float-statistics", 3, 5, dtypes=(F64,)).replace(arguments=FLOAT32_STATISTICS),
    _gather_template("far", 5, 4, FAR_FROM_ZERO),
    _gather_template("far-apart", 3, 4, normal(30), dtypes=(F32, F64)),
    _gather_template("nan", 3, 4, shifted_starting_with(nan)),
    *(_gather_template(f"momentum-{momentum}", 3, 4, momentum=momentum) for momentum in FURTHER_MOMENTA),
    *(_gather_template(f"eps-{eps}", 3, 4, eps=eps) for eps in EPSILONS),
    _gather_template("images", 11, 37, large=True).replace(arguments={"input": tensor(*IMAGE_BATCH_SHAPE)}),
    _gather_template("half-wide", 131, 512, dtypes=(F16,), large=True).replace(
        arguments={"input": tensor(*LAST_FEATURE_MAPS)}
    ),
)
"""Templates of calls that combine the statistics of several workers."""

register_gather("diopiBatchNormGatherStatsWithCounts", templates=GATHER_TEMPLATES)


def _synchronized_arguments(template: CaseTemplate[LayerSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of one of several workers in synchronized batch norm.

    The statistics are random. They do not belong to the input of this worker, because they combine all workers.

    Args:
        template: The template. The channels are on axis 1 of its shape.
        dtype: The element type under test.

    Returns:
        The arguments by name, for all functions of synchronized batch norm.
    """
    channels, statistics_dtype = template.sizes.shape[1:2], statistic_dtype(dtype)
    arguments = shared_arguments(template, channels)
    total = tensor(*channels, dtype=statistics_dtype, domain=normal(20))
    return {
        **arguments,
        "grad_out": arguments["grad_output"],
        "mean": tensor(*channels, dtype=statistics_dtype, domain=SHIFTED),
        "invstd": tensor(*channels, dtype=statistics_dtype, domain=POSITIVE),
        "sum_dy": total,
        "sum_dy_xmu": total,
        "count": tensor(3, dtype=Dtype.int32, domain=integer_values(5, 20)),
        **dict.fromkeys(GRADIENT_FLAGS, True),
    }


register_synchronized = partial(register_layers, derive=_synchronized_arguments)
"""Register cases of a function of synchronized batch norm: `register_layers` with `_synchronized_arguments`."""

GRADIENT_FLAGS = ("input_g", "weight_g", "bias_g")
"""The attributes of `diopiBatchNormBackwardReduce` that request the gradients of input, weight and bias."""

OPTIONAL_RESULTS = ("sum_dy", "sum_dy_xmu", "grad_weight", "grad_bias")
"""The results of `diopiBatchNormBackwardReduce` that a call may omit."""

SYNCHRONIZED_TEMPLATES = (
    layer_template("plain", (3, 5, 2, 3), dtypes=floating).replace(smoke=True),
    large_template((4, 3, 43)),
    *CHANNEL_TEMPLATES,
    layer_template("mixed", (3, 4, 7), parameter_dtype=F32, dtypes=half),
    layer_template("transposed", (3, 4, 5), layout=transposed),
    NO_WEIGHT.replace(dtypes=(F32, F16)),
    layer_template("infinity", (3, 4, 5), shifted_starting_with(inf)),
    layer_template("empty", (0, 3, 2)),
)
"""The templates that all functions of synchronized batch norm have."""


EXACT_DOMAINS = {
    "input": two_values(8),
    "grad_out": POSITIVE_INTEGERS,
    "mean": choice([3.0, 2.0]),
    "invstd": choice([0.5, 0.25]),
}
"""Domains by argument name, for which all results are exact."""

register_synchronized(
    "diopiBatchNormBackwardReduce",
    templates=(
        *SYNCHRONIZED_TEMPLATES,
        layer_template("exact", (8, 3, 8), dtypes=floating).replace(domains=EXACT_DOMAINS, exact=True),
        *(
            layer_template(f"only-{requested}", (3, 4, 5)).replace(
                arguments={flag: flag == requested for flag in GRADIENT_FLAGS}
            )
            for requested in GRADIENT_FLAGS
        ),
        *(
            layer_template(f"no-{flag}", (3, 4, 5), dtypes=(F32, F16)).replace(arguments={flag: False})
            for flag in GRADIENT_FLAGS
        ),
        *(layer_template(f"without-{name}", (3, 4, 5), omitted_names=[name]) for name in OPTIONAL_RESULTS),
        *LARGE_BATCHES,
    ),
)

FLOAT32_SUMS = {
    **{name: tensor(5, dtype=F32, domain=normal(20)) for name in ("sum_dy", "sum_dy_xmu")},
    "mean": tensor(5, dtype=F32, domain=SHIFTED),
    "invstd": tensor(5, dtype=F32, domain=POSITIVE),
}
"""Sums and statistics in float32, for an input in float64."""

MANY_COUNTS = tensor(131, dtype=Dtype.int32, domain=integer_values(5, 20))
"""The argument `count`: the number of elements per channel on each of 131 workers."""

register_synchronized(
    "diopiBatchNormBackwardElemt",
    templates=(
        *SYNCHRONIZED_TEMPLATES,
        layer_template("float-statistics", (3, 5, 2), dtypes=(F64,)).replace(arguments=FLOAT32_SUMS),
        layer_template("one-worker", (3, 4, 5), count=tensor(1, dtype=Dtype.int32, domain=integer_values(5, 20))),
        layer_template(
            "strided-count", (3, 4, 5), count=tensor(4, dtype=Dtype.int32, domain=integer_values(1, 9), layout=strided)
        ),
        *(batch.replace(arguments={"count": MANY_COUNTS}) for batch in LARGE_BATCHES),
    ),
)

register_synchronized(
    "diopiBatchNormElemt",
    templates=(
        *SYNCHRONIZED_TEMPLATES,
        layer_template("far", (3, 4, 12), FAR_FROM_ZERO),
        NO_BIAS,
        NO_AFFINE.replace(dtypes=(F32,)),
        layer_template("large-eps", (3, 4, 5), eps=10.0, dtypes=floating),
        layer_template("nan-eps", (3, 4, 5), eps=nan),
        *LARGE_BATCHES,
    ),
)

CaseFacts(
    saved={
        "save_mean": ResultOf("diopiBatchNormStats", "mean"),
        "save_invstd": ResultOf("diopiBatchNormStats", "invstd"),
    }
).declare("diopiBatchNormBackward")
