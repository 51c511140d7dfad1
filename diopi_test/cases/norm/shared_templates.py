"""Templates that several normalization layers share.

A template describes cases that differ only in their element type.

Large cases belong to a level with the sizes of real models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan

from diopi_proto.dtypes import floating, half
from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOverride
from diopi_test.cases.domains import integer_values, normal
from diopi_test.cases.layouts import expanded, strided
from diopi_test.cases.norm.affine import LayerSizes, layer_template
from diopi_test.cases.norm.values import (
    POSITIVE_INTEGERS,
    SHIFTED,
    SQUARES_OVERFLOW_FLOAT16,
    shifted_starting_with,
    two_values,
)
from diopi_test.cases.template import CaseTemplate, tensor

F16, BF16, F32, F64 = floating
"""Short names for the floating-point types."""

EXPANDED_TENSOR = tensor(3, 4, 5, domain=SHIFTED, layout=expanded)
"""A tensor of the shape (3, 4, 5) with stride 0 along its first axis."""

AFFINE_PARAMETERS = ("weight", "scale", "bias")
"""The names of the parameters that scale and shift the normalized values; functions use different names."""

ALL_LAYERS_TEMPLATES = (
    layer_template("expanded", (3, 4, 5), input=EXPANDED_TENSOR, grad_output=EXPANDED_TENSOR, grad_out=EXPANDED_TENSOR),
    layer_template("strided", (3, 4, 5), layout=strided),
    layer_template("nan", (3, 4, 5), shifted_starting_with(nan)),
)
"""Templates that every normalization layer has: with unusual layouts, and with a NaN in the input."""

NO_AFFINE = layer_template(
    "no-affine",
    (3, 4, 5),
    omitted_names=(*AFFINE_PARAMETERS, "grad_weight", "grad_scale", "grad_bias"),
    dtypes=(F32, F16),
)
"""A template of a layer without weight and bias, and without their gradients."""

NO_WEIGHT = layer_template("no-weight", (3, 4, 5), omitted_names=["weight"])
"""A template of a layer without weight."""

NO_BIAS = layer_template("no-bias", (3, 4, 5), omitted_names=["bias", "grad_bias"])
"""A template of a layer without bias, and without its gradient."""


def long_templates(
    shape: tuple[int, ...], very_long: tuple[int, ...], mean: float = 8
) -> tuple[CaseTemplate[LayerSizes], ...]:
    """Return templates with many elements per statistic.

    Args:
        shape: The shape of the templates "long". In half precision, the mean of their inputs is not 0. Sums in half
            precision are then inaccurate.
        very_long: The shape of the template "very-long".
        mean: The mean of the half-precision inputs.

    Returns:
        The templates.
    """
    return (
        layer_template("long", shape, normal(1, mean), dtypes=half),
        layer_template("long", shape, dtypes=(F32, F64)),
        layer_template("very-long", very_long, dtypes=(*half, F32)),
    )


def large_template(shape: tuple[int, ...], parameter_dtype: Dtype | None = None) -> CaseTemplate[LayerSizes]:
    """Return a float16 template with large numbers, whose squares overflow in float16.

    Args:
        shape: The shape of the input.
        parameter_dtype: The element type of weight, bias and running statistics; None for the type of the input.

    Returns:
        The template. Its label is "large", but it does not belong to the level of large cases.
    """
    return layer_template("large", shape, SQUARES_OVERFLOW_FLOAT16, parameter_dtype=parameter_dtype, dtypes=(F16,))


def exact_template(shape: tuple[int, ...], length: int, label: str = "exact") -> CaseTemplate[LayerSizes]:
    """Return a template for which float32 represents statistics and sums exactly. Half precision does not.

    The template is for functions that receive the statistics. Functions that compute the statistics may round, as
    Welford's algorithm does.

    Args:
        shape: The shape of the input.
        length: The number of elements per statistic, which must be neighbors in the input.
        label: The label of the cases without the element type.

    Returns:
        The template.
    """
    domains = {
        "grad_output": POSITIVE_INTEGERS,
        "grad_out": POSITIVE_INTEGERS,
        **dict.fromkeys(AFFINE_PARAMETERS, integer_values(1, 3)),
    }
    template = layer_template(label, shape, eps=0.0, dtypes=floating)
    return template.replace(domains={"input": two_values(length), **domains}, exact=True)


def single_gradient_templates(names: Sequence[str]) -> Iterator[CaseTemplate[LayerSizes]]:
    """Yield a template for each gradient in `names`, which requests only this gradient and omits the others."""
    for requested in names:
        yield layer_template(
            f"only-{requested}", (3, 4, 5), omitted_names=[name for name in names if name != requested]
        )


GRADIENTS = (
    *single_gradient_templates(("grad_input", "grad_weight", "grad_bias")),
    layer_template("bias-only", (3, 4, 5), omitted_names=["weight"]).replace(
        results={"grad_weight": None, "grad_bias": ResultOverride(F32)}
    ),
)
"""Templates of gradient functions that request only one gradient.

The last template requests only the gradient of the bias, in float32, for a layer without weight.
"""


def saved_statistics(dtype: Dtype | None = None, shape: tuple[int, ...] | None = None) -> dict[str, ResultOverride]:
    """Return overrides of the results that are statistics, under all names that layers use.

    Args:
        dtype: The element type; None for the default.
        shape: The shape; None for the default.

    Returns:
        The overrides by result name; functions ignore names of results that they do not have.
    """
    names = ("save_mean", "save_invstd", "running_mean", "running_var")
    return dict.fromkeys(names, ResultOverride(dtype, shape=shape))
