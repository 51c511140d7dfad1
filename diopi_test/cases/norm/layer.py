"""Cases of layer norm, group norm and instance norm, which compute statistics for each sample.

A template describes cases that differ only in their element type.

Large cases belong to a level with the sizes of real models.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import inf, prod
from typing import Any

from diopi_proto.dtypes import floating, half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.axes import untested_axes
from diopi_test.cases.case import Case, ResultOf, ResultOverride, TensorSpec
from diopi_test.cases.domains import normal, uniform
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts
from diopi_test.cases.layouts import channels_last, contiguous, expanded, transposed
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
    single_gradient_templates,
)
from diopi_test.cases.norm.values import FAR_FROM_ZERO, SHIFTED, equal_rows, shifted_starting_with, two_values
from diopi_test.cases.template import CaseTemplate, tensor

F16, BF16, F32, F64 = floating
"""Short names for the floating-point types."""

LAST_FEATURE_MAPS = (3, 512, 7, 7)
"""The shape of the last feature maps of a typical network: many channels with few elements each."""

EPSILONS = tuple(layer_template(f"eps-{eps}", (3, 4, 5), eps=eps) for eps in (0.0, 1e-8, 1e-3, 2.0, -0.0625))
"""Templates with further values of eps. PyTorch accepts zero and negative values."""

SHARED_TEMPLATES = (
    *ALL_LAYERS_TEMPLATES,
    NO_AFFINE,
    layer_template("eps", (3, 4, 5), eps=0.5),
    layer_template("small-eps", (3, 4, 5), eps=1e-5),
)
"""Templates that all functions of this module have."""

# Layer norm


def _layer_arguments(template: CaseTemplate[LayerSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of layer norm and its gradient for the sizes of a template.

    Args:
        template: The template. Its argument `begin_norm_axis` is the first normalized axis, by default 1. If it
            overrides the result `save_mean`, the gradient's arguments `mean` and `rstd` get the same shape and element
            type.
        dtype: The element type under test.

    Returns:
        The arguments by name. `begin_norm_axis` counts from the first axis.
    """
    shape = template.sizes.shape
    begin = template.argument("begin_norm_axis", 1) % len(shape)
    override = template.results.get("save_mean")
    saved_mean = override if isinstance(override, ResultOverride) else ResultOverride()
    statistics_shape, statistics_dtype = (
        shape[:begin] if saved_mean.shape is None else saved_mean.shape,
        saved_mean.dtype or statistic_dtype(dtype),
    )
    mean = forward_statistic(
        template, ("diopiLayerNormGB", "running_mean"), statistics_shape, statistics_dtype, begin_norm_axis=begin
    )
    inverse_deviation = forward_statistic(
        template, ("diopiLayerNormGB", "running_var"), statistics_shape, statistics_dtype, begin_norm_axis=begin
    )
    return {
        "normalized_shape": shape[begin:],
        "begin_norm_axis": begin,
        **shared_arguments(template, shape[begin:]),
        **{"mean": mean, "rstd": inverse_deviation, "running_mean": mean, "running_std": inverse_deviation},
    }


register_layer_norm = partial(register_layers, derive=_layer_arguments)
"""Register cases of layer norm: `register_layers` with `_layer_arguments`."""

LAYER_NORM = (
    layer_template("plain", (4, 3, 5), dtypes=floating).replace(smoke=True),
    layer_template("last-axis", (3, 4, 7), begin_norm_axis=-1, dtypes=floating),
    *long_templates((3, 331), (2, 1031)),
    large_template((3, 331)),
    *SHARED_TEMPLATES,
    layer_template("many-rows", (131, 3)),
    layer_template("width-of-models", (2, 768), dtypes=(F32, F16)),
    layer_template("mixed", (3, 4, 7), parameter_dtype=F32, begin_norm_axis=2, dtypes=half),
    layer_template("all-axes", (4, 3, 2), begin_norm_axis=0, dtypes=(F32, BF16)),
    layer_template("rank1", (9,), begin_norm_axis=0),
    layer_template("rank5", (2, 3, 2, 1, 4), begin_norm_axis=-3),
    layer_template("kept-axes", (4, 3, 5)).replace(results=saved_statistics(shape=(4, 1, 1)), dtypes=(F32, F16)),
    layer_template("kept-all-axes", (3, 5), begin_norm_axis=0).replace(results=saved_statistics(shape=(1, 1))),
    *(
        layer_template(f"{saved_dtype.name}-saved", (4, 3, 5), dtypes=(saved_dtype,)).replace(
            results=saved_statistics(saved_dtype)
        )
        for saved_dtype in half
    ),
    layer_template("transposed", (3, 4, 5), layout=transposed, dtypes=(F32, F16)),
    layer_template("channels-last", (2, 3, 4, 5), layout=channels_last),
    layer_template("empty", (0, 3, 5), dtypes=(F32, F16)),
)
"""The templates that layer norm and its gradient have."""

FURTHER_BEGIN_AXES = tuple(
    layer_template(label.replace("axis", "from"), shape, begin_norm_axis=axis) for label, shape, axis in untested_axes()
)
"""A template for each value of `begin_norm_axis` in ranks 1 to 4, counted from either end."""

LARGE_LAYERS = (
    layer_template("many-rows", (4099, 67), large=True),
    layer_template("long-rows", (5, 32_003), large=True),
    layer_template("half-wide", (131, 1031), dtypes=(F16,), large=True),
    layer_template("planes", (17, 61, 67), large=True),
)
"""Large templates of layer norm: many rows, long rows, and several normalized axes."""

register_layer_norm(
    "diopiLayerNorm",
    "diopiLayerNormGB",
    templates=(
        *LAYER_NORM,
        layer_template("far", (5, 37), FAR_FROM_ZERO),
        layer_template("infinite", (3, 4, 5), shifted_starting_with(inf)),
        layer_template("no-elements", (3, 0), dtypes=(F32, F16)),
        NO_WEIGHT,
        NO_BIAS,
        layer_template("equal-values", (4, 6), equal_rows(6)),
        layer_template("one-value", (4, 1)),
        *FURTHER_BEGIN_AXES,
        *EPSILONS,
        *LARGE_LAYERS,
    ),
    non_discriminating={**NO_VARIANCE_REASONS, "expanded": "all rows are equal"},
)

register_layer_norm(
    "diopiLayerNormBackward",
    "diopiLayerNormGBBackward",
    templates=(
        *LAYER_NORM,
        layer_template("equal-gradients", (257, 31), grad_output=tensor(257, 31, domain=SHIFTED, layout=expanded)),
        exact_template((64, 4), 4),
        exact_template((2, 8, 8), 64, "exact-rows"),
        *GRADIENTS,
        NO_BIAS,
        *FURTHER_BEGIN_AXES,
        *LARGE_LAYERS,
    ),
    non_discriminating={"nan": "a sum over all rows includes the NaN"},
)

# Group norm


def _group_arguments(template: CaseTemplate[LayerSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of group norm and its gradient for the sizes of a template.

    Args:
        template: The template. Its argument `num_groups` is by default 2.
        dtype: The element type under test.

    Returns:
        The arguments by name.
    """
    shape, parameter_dtype = template.sizes.shape, template.sizes.parameter_dtype
    groups = template.argument("num_groups", 2)
    statistics_shape = (shape[0], groups)
    return {
        "num_groups": groups,
        **shared_arguments(template, shape[1:2]),
        "mean": forward_statistic(
            template, ("diopiGroupNorm", "save_mean"), statistics_shape, parameter_dtype, num_groups=groups
        ),
        "rstd": forward_statistic(
            template, ("diopiGroupNorm", "save_invstd"), statistics_shape, parameter_dtype, num_groups=groups
        ),
    }


register_group_norm = partial(register_layers, derive=_group_arguments)
"""Register cases of group norm: `register_layers` with `_group_arguments`."""

GROUP_NORM = (
    layer_template("plain", (3, 6, 2, 3), num_groups=3, dtypes=floating).replace(smoke=True),
    *long_templates((2, 4, 83), (2, 4, 519), mean=2),
    large_template((2, 4, 83)),
    *SHARED_TEMPLATES,
    layer_template("many-groups", (3, 70, 2), num_groups=35),
    layer_template("wide-groups", (2, 74, 3), num_groups=2),
    layer_template("mixed", (3, 4, 7), parameter_dtype=F32, dtypes=half),
    layer_template("one-group", (3, 4, 5), num_groups=1, dtypes=(F32, BF16)),
    layer_template("group-a-channel", (3, 4, 5), num_groups=4),
    layer_template("rank2", (3, 12), num_groups=3),
    layer_template("rank5", (2, 4, 2, 1, 3)),
    layer_template("channels-last", (2, 6, 3, 5), layout=channels_last, dtypes=(F32, F16)),
    layer_template("transposed", (3, 4, 5), layout=transposed),
    layer_template("empty", (0, 4, 5)),
)
"""The templates that group norm and its gradient have."""

GROUP_COUNT_TEMPLATES = tuple(
    layer_template(f"{groups}-groups", (2, 2 * groups, 3), num_groups=groups) for groups in (5, 8, 16, 32)
)
"""Templates with 5, 8, 16 and 32 groups of two channels each."""

register_group_norm(
    "diopiGroupNorm",
    templates=(
        *GROUP_NORM,
        layer_template("far", (2, 6, 13), FAR_FROM_ZERO),
        layer_template("infinite", (3, 4, 5), shifted_starting_with(-inf)),
        layer_template("no-elements", (2, 4, 0)),
        NO_WEIGHT,
        NO_BIAS,
        layer_template("equal-values", (4, 6, 2), equal_rows(6)),
        layer_template("float-saved", (3, 4, 5), dtypes=half).replace(results=saved_statistics(F32)),
        *EPSILONS,
        *GROUP_COUNT_TEMPLATES,
        layer_template("images", (3, 36, 29, 31), num_groups=12, large=True),
        layer_template("half-wide", LAST_FEATURE_MAPS, num_groups=32, dtypes=(F16,), large=True),
    ),
    non_discriminating=NO_VARIANCE_REASONS,
)

register_group_norm(
    "diopiGroupNormBackward",
    templates=(
        *GROUP_NORM,
        exact_template((8, 4, 8), 16, "exact-channels"),
        exact_template((2, 8, 16), 64, "exact-groups"),
        *GRADIENTS,
        *GROUP_COUNT_TEMPLATES,
        layer_template("images", (5, 36, 29, 31), num_groups=3, large=True),
        layer_template("half-wide", (3, 513, 7, 7), num_groups=3, dtypes=(F16,), large=True),
    ),
)


# Instance norm


def _instance_arguments(template: CaseTemplate[LayerSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of instance norm and its gradient for the sizes of a template.

    Args:
        template: The template. Its argument `axis`, by default 2, is the first axis that the statistics reduce.
        dtype: The element type under test.

    Returns:
        The arguments by name. The axes before `axis`, except for axis 0, have a scale and a bias per element.
    """
    axis = template.argument("axis", 2)
    arguments = shared_arguments(template, (prod(template.sizes.shape[1:axis]),))
    return {"axis": axis, **arguments, "scale": arguments["weight"]}


register_instance_norm = partial(register_layers, derive=_instance_arguments)
"""Register cases of instance norm: `register_layers` with `_instance_arguments`."""

EQUAL_ROWS = tensor(2, 40, 31, domain=SHIFTED, layout=expanded)
"""A tensor of equal rows. All rows have the same rounding error, so that the errors do not cancel in sums over rows."""

INSTANCE_NORM = (
    layer_template("plain", (3, 4, 3, 2), dtypes=(F32, F64)).replace(smoke=True),
    layer_template("plain", (3, 4, 9, 7), normal(1, 8), dtypes=half).replace(smoke=True),
    *long_templates((2, 3, 157), (1, 3, 1031)),
    large_template((2, 3, 157)),
    *SHARED_TEMPLATES,
    layer_template("many-channels", (2, 67, 3)),
    layer_template("mixed", (2, 4, 67), normal(1, 8), parameter_dtype=F32, dtypes=half),
    layer_template("first-axis", (3, 4, 5), axis=1, dtypes=(F32, BF16)),
    layer_template("third-axis", (2, 3, 4, 5), axis=3, dtypes=(F32, F16)),
    layer_template("rank2", (4, 7), axis=1),
    layer_template("rank5", (2, 3, 2, 2, 3)),
    layer_template("channels-last", (2, 3, 4, 5), layout=channels_last, dtypes=(F32, F16)),
    layer_template("transposed", (3, 4, 5), layout=transposed),
    layer_template("zero-eps", (3, 4, 5), eps=0.0),
    layer_template("negative-eps", (3, 4, 5), uniform(1, 9), eps=-0.125),
    layer_template("empty", (0, 4, 5)),
    layer_template("images", (5, 37, 29, 31), large=True),
    layer_template("half-wide", LAST_FEATURE_MAPS, dtypes=(F16,), large=True),
)
"""The templates that instance norm and its gradient have."""

FURTHER_AXES = tuple(
    layer_template(label, shape, axis=axis) for label, shape, axis in untested_axes() if len(shape) > 1 and axis > 0
)
"""A template for each positive axis of ranks 2 to 4.

Axis 0 counts samples, and the function does not support negative axes.
"""

register_instance_norm(
    "diopiInstanceNorm",
    templates=(
        *INSTANCE_NORM,
        layer_template("far", (3, 4, 31), FAR_FROM_ZERO),
        layer_template("no-scale", (3, 4, 5), omitted_names=["scale"]),
        NO_BIAS,
        layer_template("equal-values", (2, 3, 6), equal_rows(6)),
        layer_template("too-negative-eps", (2, 3, 4), two_values(4), eps=-2.0),
        *FURTHER_AXES,
    ),
    non_discriminating=NO_VARIANCE_REASONS,
)

register_instance_norm(
    "diopiInstanceNormBackward",
    templates=(
        *INSTANCE_NORM,
        *single_gradient_templates(("grad_input", "grad_scale", "grad_bias")),
        NO_BIAS,
        *FURTHER_AXES,
        layer_template("whole-eps", (3, 4, 5), eps=2.0),
        layer_template("far", (3, 4, 31), FAR_FROM_ZERO),
        layer_template("equal-rows", EQUAL_ROWS.shape, input=EQUAL_ROWS, grad_output=EQUAL_ROWS, dtypes=(F32, F64)),
    ),
)

# Facts

STATISTICS_ARGUMENTS: Mapping[str, Any] = {"bias": None, "eps": 1e-5}
"""Arguments of the forward call that computes the statistics for a call of the gradient."""

CaseFacts(
    saved={
        "mean": ResultOf("diopiGroupNorm", "save_mean", extra_arguments=STATISTICS_ARGUMENTS),
        "rstd": ResultOf("diopiGroupNorm", "save_invstd", extra_arguments=STATISTICS_ARGUMENTS),
    }
).declare("diopiGroupNormBackward")
CaseFacts(
    saved={
        "mean": ResultOf("diopiLayerNorm", "save_mean", extra_arguments={"eps": 1e-5}),
        "rstd": ResultOf("diopiLayerNorm", "save_invstd", extra_arguments={"eps": 1e-5}),
    }
).declare("diopiLayerNormBackward")


def _is_not_dense(prototype: Prototype, case: Case) -> bool:
    """Return whether the input or its gradient is neither contiguous nor channels last."""
    values = [case.arguments[name] for name in ("input", "grad_output") if name in case.arguments]
    specs = [value for value in values if isinstance(value, TensorSpec)]  # results of other functions are dense
    return any(not spec.has_layout(contiguous) and not spec.has_layout(channels_last) for spec in specs)


def _is_empty(prototype: Prototype, case: Case) -> bool:
    """Return whether the input has no elements."""
    return 0 in case.arguments["input"].shape


def _has_negative_begin_axis(prototype: Prototype, case: Case) -> bool:
    """Return whether the first normalized axis counts from the last axis."""
    return bool(case.arguments["begin_norm_axis"] < 0)


CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _is_not_dense,
            "torch.ops.aten.native_group_norm rejects tensors that are not contiguous, and its gradient misreads them; "
            "callers copy first",
        )
    ]
).declare("diopiGroupNorm", "diopiGroupNormBackward")
CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _is_empty,
            "PyTorch does not document the statistics of an empty tensor; its CPU kernels give mean 0 and rstd NaN",
        )
    ]
).declare("diopiGroupNorm")
CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _is_empty,
            "PyTorch does not document the gradient of an empty tensor; its CPU kernels give zeros for weight and bias",
        )
    ]
).declare("diopiGroupNormBackward")
CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _has_negative_begin_axis,
            "PyTorch takes the normalized shape; only the standard accepts an axis that counts from the end",
        )
    ]
).declare("diopiLayerNormGB", "diopiLayerNormGBBackward")
