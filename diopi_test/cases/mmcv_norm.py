"""Cases of MMCV's synchronized batch normalization, and of its activation with bias.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). `Case.non_discriminating` is the reason why a wrong
result can pass a case.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from typing import Any, Unpack

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice, integer_values, log_uniform, normal, uniform
from diopi_test.cases.layouts import Layout, channels_last, contiguous, strided, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    TensorTemplate,
    register,
    tensor,
)

F32 = Dtype.float32
"""The element type of all statistics."""

NORMAL_NUMBERS = normal()
"""The domain of the standard normal distribution."""

POSITIVE = uniform(0.5, 2)
"""A domain of positive numbers, for standard deviations, variances and weights."""

# Statistics


def _channel_values(
    channels: int, domain: Domain = NORMAL_NUMBERS, layout: Layout = contiguous, **fields: Any
) -> TensorTemplate:
    """Return a float32 tensor with one value per channel.

    Args:
        channels: The number of channels.
        domain: The domain of the values.
        layout: The layout of the other tensors of the case. The tensor is strided unless this layout is contiguous.
        **fields: Further fields of the tensor template.

    Returns:
        The tensor template.
    """
    return tensor(channels, domain=domain, layout=contiguous if layout is contiguous else strided, dtype=F32, **fields)


def channel_statistics_template(
    label: str,
    shape: tuple[int, int, int] = (3, 4, 5),
    domain: Domain = NORMAL_NUMBERS,
    means: Domain = NORMAL_NUMBERS,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template for the four functions that compute mean, variance and their gradients.

    The arguments mean, std and gradients are drawn from domains. They are not computed from the input.

    Args:
        label: The label of the cases without the element type.
        shape: The shape (N, C, H · W) of the input.
        domain: The domain of input, grad_output and norm.
        means: The domain of the argument mean.
        **fields: Further fields of the template. `layout` is the layout of the tensors of the shape `shape`.

    Returns:
        The template.
    """
    channels, layout = shape[1], fields.get("layout", contiguous)
    arguments: Arguments = {
        "input": tensor(*shape, domain=domain, layout=layout),
        "mean": _channel_values(channels, means, layout),
        "grad_output": tensor(*shape, domain=domain, layout=layout),
        "weight": _channel_values(channels, POSITIVE, layout),
        "grad_weight": _channel_values(channels, normal(4), layout),
        "grad_bias": _channel_values(channels, normal(4), layout),
        "norm": tensor(*shape, domain=domain, layout=layout, dtype=F32),
        "std": _channel_values(channels, POSITIVE, layout),
    }
    return CaseTemplate(label, arguments=arguments, result_layout=layout).replace(**fields)


STATISTICS_TEMPLATES = (
    channel_statistics_template("plain", **SMOKE_IN_ALL_DTYPES),
    channel_statistics_template("one-sample", (1, 3, 7), dtypes=DtypeSelection.all),
    channel_statistics_template("no-space", (6, 3, 1), dtypes=DtypeSelection.all),
    channel_statistics_template("one-channel", (3, 1, 6)),
    channel_statistics_template(
        "channels-last", (2, 5, 4), layout=channels_last, result_layout=strided, dtypes=DtypeSelection.all
    ),
    channel_statistics_template("transposed", (3, 4, 2), layout=transposed, result_layout=contiguous),
    channel_statistics_template("strided", (2, 3, 5), layout=strided, dtypes=DtypeSelection.all),
    channel_statistics_template("long", (4, 2, 700), dtypes=DtypeSelection.all),
    channel_statistics_template("many-channels", (2, 150, 3)),
    channel_statistics_template("offset", (4, 3, 9), normal(1, 10), means=normal(1, 10), dtypes=DtypeSelection.all),
    channel_statistics_template("undefined", (2, 3, 4), choice([nan, 0.5, 1.5, -2.0, 0.25, 1.0, 2.0, 0.75])),
    channel_statistics_template("infinite", (2, 4, 4), choice([inf, 0.5, 1.5, -2.0, 0.25, 1.0, 2.0, 0.75])),
    channel_statistics_template("no-channels", (2, 0, 4)),
    channel_statistics_template("many", (5, 67, 229), large=True),
    channel_statistics_template("channels-last", (3, 131, 197), layout=channels_last, large=True),
)
"""The templates of means, variances and their gradients. Shapes are (N, C, H · W)."""

EXACT_FIELDS: Mapping[str, Any] = {
    "domains": {
        name: integer_values(1, 3) for name in ("input", "mean", "grad_output", "norm", "grad_weight", "grad_bias")
    }
    | {name: choice([1.0, 2.0, 4.0]) for name in ("weight", "std")},
    "exact": True,
    "dtypes": DtypeSelection.all,
}
"""Fields of templates with exact results.

The values are small integers, and each channel has a power of two elements, so that means are exact.
"""

STATISTICS_AND_EXACT_TEMPLATES = (
    *STATISTICS_TEMPLATES,
    channel_statistics_template("exact", (4, 5, 8), **EXACT_FIELDS),
)
"""The templates of means, variances and their gradients, with an exact template."""

VARIANCE_REASONS = {
    "infinite": "the distance of an infinity from any mean is infinite",
    "undefined": "the sum of a channel with NaN is NaN",
}
"""Why wrong variances and parameter gradients can pass a case (`Case.non_discriminating`), by label."""

register("diopiSyncBnMeanMmcv", "diopiSyncBnBackwardDataMmcv", templates=STATISTICS_AND_EXACT_TEMPLATES)
register(
    "diopiSyncBnVarMmcv",
    "diopiSyncBnBackwardParamMmcv",
    templates=STATISTICS_AND_EXACT_TEMPLATES,
    non_discriminating=VARIANCE_REASONS,
)


# The normalized input


def output_template(
    label: str,
    shape: tuple[int, int, int] = (3, 4, 5),
    domain: Domain = NORMAL_NUMBERS,
    *,
    has_affine: bool = True,
    has_running: bool = True,
    has_saved: bool = True,
    eps: float = 1e-5,
    momentum: float = 0.1,
    group_size: int = 1,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of `diopiSyncBnOutputMmcv`, which normalizes the input with the arguments mean and var.

    Args:
        label: The label of the cases without the element type.
        shape: The shape (N, C, H · W) of the input.
        domain: The domain of the input.
        has_affine: Whether weight and bias are passed; otherwise they are NULL.
        has_running: Whether the running statistics are passed; otherwise they are NULL.
        has_saved: Whether the results norm and std are requested; otherwise they are NULL.
        eps: The number that is added to variances.
        momentum: The weight of new statistics in running statistics.
        group_size: The number of devices.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    channels, layout = shape[1], fields.get("layout", contiguous)
    arguments: Arguments = {
        "running_mean": _channel_values(channels, NORMAL_NUMBERS, layout) if has_running else None,
        "running_var": _channel_values(channels, POSITIVE, layout) if has_running else None,
        "input": tensor(*shape, domain=domain, layout=layout),
        "mean": _channel_values(channels, normal(0.2), layout),
        "var": _channel_values(channels, POSITIVE, layout),
        "weight": _channel_values(channels, POSITIVE, layout) if has_affine else None,
        "bias": _channel_values(channels, NORMAL_NUMBERS, layout) if has_affine else None,
        "eps": eps,
        "momentum": momentum,
        "group_size": group_size,
    }
    results = {} if has_saved else {"norm": None, "std": None}
    return CaseTemplate(label, arguments=arguments, result_layout=layout, results=results).replace(**fields)


EXACT_OUTPUT = {
    "running_mean": integer_values(1, 4),
    "running_var": integer_values(1, 4),
    "input": integer_values(-4, 4),
    "mean": choice([0.5, 1.5, -0.5]),
    "var": choice([3.0, 15.0]),
    "weight": integer_values(1, 3),
    "bias": integer_values(1, 3),
}
"""Domains by argument name, for which the results are exact.

With eps 1, the roots of var + eps are 2 and 4. With nine elements per channel, the factor n / (n − 1) is 9/8.
"""

OUTPUT_TEMPLATES = (
    output_template("plain", **SMOKE_IN_ALL_DTYPES),
    output_template("two-devices", (2, 3, 4), group_size=2, **SMOKE_IN_ALL_DTYPES),
    output_template("no-affine", has_affine=False, dtypes=DtypeSelection.all),
    output_template("no-running", has_running=False, dtypes=DtypeSelection.all),
    output_template("not-saved", has_saved=False, dtypes=DtypeSelection.all),
    output_template("output-alone", has_affine=False, has_running=False, has_saved=False),
    output_template("channels-last", (2, 5, 4), layout=channels_last, dtypes=DtypeSelection.all),
    output_template("strided", (2, 3, 5), layout=strided, dtypes=DtypeSelection.all),
    output_template("transposed", (3, 4, 2), layout=transposed),
    output_template("large-eps", eps=0.3, dtypes=DtypeSelection.all),
    output_template("no-momentum", momentum=0.0),
    output_template("whole-momentum", momentum=1.0),
    output_template("one-element", (1, 5, 1), momentum=0.4, dtypes=DtypeSelection.all),
    output_template("one-element-each-of-two", (1, 5, 1), momentum=0.4, group_size=2),
    output_template("many-devices", (2, 3, 1), momentum=0.7, group_size=8),
    output_template("long", (4, 2, 300)),
    output_template("undefined", (2, 3, 4), choice([nan, inf, -inf, 0.5, 1.5, -2.0])),
    output_template("no-channels", (2, 0, 4)),
    output_template("many", (5, 67, 229), group_size=8, large=True),
    output_template("alone", (7, 3, 4099), has_affine=False, has_running=False, large=True),
    output_template(
        "exact", (3, 5, 3), eps=1.0, momentum=0.5, domains=EXACT_OUTPUT, exact=True, dtypes=DtypeSelection.all
    ),
)
"""The templates of `diopiSyncBnOutputMmcv`, which normalizes the input and updates the running statistics."""

register("diopiSyncBnOutputMmcv", templates=OUTPUT_TEMPLATES)


# Activation


def activation_template(
    label: str,
    shape: tuple[int, ...] = (2, 3, 4, 5),
    domain: Domain = NORMAL_NUMBERS,
    *,
    activation: int = 3,
    derivative_order: int = 0,
    has_bias: bool = True,
    has_refer: bool = True,
    alpha: float = 0.2,
    scale: float = 1.375,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of `diopiFusedBiasLeakyreluMmcv`, which adds a bias and applies an activation.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input.
        domain: The domain of input and bias.
        activation: The argument `act`: 1 is the identity, 3 a leaky ReLU.
        derivative_order: The argument `grad`, the order of the derivative; 0 is the function itself.
        has_bias: Whether the bias has elements.
        has_refer: Whether the tensor refer, the earlier result of the function, has elements.
        alpha: The slope of the leaky ReLU for negative numbers.
        scale: The factor of the result.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    layout = fields.get("layout", contiguous)
    vector = contiguous if layout is contiguous else strided
    arguments: Arguments = {
        "input": tensor(*shape, domain=domain, layout=layout),
        "bias": tensor(shape[1] if has_bias else 0, domain=domain, layout=vector),
        "refer": tensor(*shape, domain=EARLIER_RESULTS, layout=layout) if has_refer else tensor(0),
        "act": activation,
        "grad": derivative_order,
        "alpha": alpha,
        "scale": scale,
    }
    return CaseTemplate(label, arguments=arguments, **fields)


EARLIER_RESULTS = choice([0.0, -0.0, 1.5, -1.5, 0.75, -0.75, 3.0, -3.0])
"""The domain of the argument refer, the earlier results of the function.

Only the sign affects the result; 0 counts as negative.
"""

ZERO_DERIVATIVE_REASON = "the second derivative is 0"
"""The reason why wrong results can pass a case of the second derivative (`Case.non_discriminating`)."""

ACTIVATION_TEMPLATES = (
    activation_template("plain", **SMOKE_IN_ALL_DTYPES),
    activation_template("gradient-and-bias", derivative_order=1, **SMOKE_IN_ALL_DTYPES),
    activation_template("no-refer", has_refer=False, dtypes=DtypeSelection.all),
    activation_template("neither", has_bias=False, has_refer=False, dtypes=DtypeSelection.all),
    activation_template("gradient", (2, 3, 7), derivative_order=1, has_bias=False, dtypes=DtypeSelection.all),
    activation_template("second", derivative_order=2, non_discriminating=ZERO_DERIVATIVE_REASON),
    activation_template("linear", activation=1, dtypes=DtypeSelection.all),
    activation_template("linear-gradient", activation=1, derivative_order=1, has_bias=False),
    activation_template("linear-second", activation=1, derivative_order=2, non_discriminating=ZERO_DERIVATIVE_REASON),
    activation_template("matrix", (7, 5), alpha=-0.3),
    activation_template("rank-5", (2, 3, 2, 2, 3), scale=-0.7),
    activation_template("strided", (2, 3, 5), layout=strided, dtypes=DtypeSelection.all),
    activation_template("transposed", (3, 4, 2), layout=transposed),
    activation_template("channels-last", (2, 3, 4, 2), derivative_order=1, layout=channels_last),
    activation_template("steep", alpha=1.5, scale=0.5),
    activation_template("no-slope", (4, 9), alpha=0.0),
    activation_template("no-scale", (4, 9), scale=0.0, non_discriminating="the scale is 0"),
    activation_template("magnitudes", (6, 9), log_uniform(-8, 8)),
    activation_template("special", (6, 3), choice([nan, inf, -inf, 1.5, -0.75]), has_bias=False, alpha=0.25, scale=2.0),
    activation_template(
        "special-gradient",
        (6, 3),
        choice([nan, inf, -inf, 1.5]),
        has_bias=False,
        derivative_order=1,
        alpha=0.25,
        scale=2.0,
    ),
    activation_template("one-channel", (9, 1, 3)),
    activation_template("large", (3, 40, 70)),
    activation_template("no-samples", (0, 3, 4)),
    activation_template("many", (3, 129, 13, 17), large=True),
    activation_template(
        "gradient", (11, 67, 101), derivative_order=1, has_bias=False, layout=channels_last, large=True
    ),
    activation_template(
        "exact", (4, 5, 3), integer_values(-4, 4), alpha=0.25, scale=2.0, exact=True, dtypes=DtypeSelection.all
    ),
)
"""The templates of `diopiFusedBiasLeakyreluMmcv`."""

register("diopiFusedBiasLeakyreluMmcv", templates=ACTIVATION_TEMPLATES)
