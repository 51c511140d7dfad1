"""Templates that several normalization layers share: descriptions of cases that differ only in their element type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan

from diopi_proto.dtypes import floating, half
from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOverride
from diopi_test.cases.domains import integer_values, normal
from diopi_test.cases.layouts import expanded, strided
from diopi_test.cases.norm.affine import Layer, layer_template
from diopi_test.cases.norm.values import BEYOND_ITS_SQUARE, POSITIVE_INTEGERS, SHIFTED, two_values, with_first
from diopi_test.cases.template import CaseTemplate, tensor

F16, BF16, F32, F64 = floating

VIEW = tensor(3, 4, 5, domain=SHIFTED, layout=expanded)
"""A tensor that repeats its elements along an axis."""

AFFINE = ("weight", "scale", "bias")
"""The parameters that scale and shift the normalized values."""

COMMON = (
    layer_template("expanded", (3, 4, 5), input=VIEW, grad_output=VIEW, grad_out=VIEW),
    layer_template("strided", (3, 4, 5), layout=strided),
    layer_template("nan", (3, 4, 5), with_first(nan)),
)
"""Unusual layouts, and an input with a NaN, for every normalization."""

NO_AFFINE = layer_template(
    "no-affine", (3, 4, 5), without=(*AFFINE, "grad_weight", "grad_scale", "grad_bias"), dtypes=(F32, F16)
)
"""A layer without weight and bias."""

NO_WEIGHT = layer_template("no-weight", (3, 4, 5), without=["weight"])
"""A layer without weight."""

NO_BIAS = layer_template("no-bias", (3, 4, 5), without=["bias", "grad_bias"])
"""A layer without bias."""


def long_templates(
    shape: tuple[int, ...], very_long: tuple[int, ...], mean: float = 8
) -> tuple[CaseTemplate[Layer], ...]:
    """Return templates with many elements, in half precision off center, so that half-precision sums are inaccurate."""
    return (
        layer_template("long", shape, normal(1, mean), dtypes=half),
        layer_template("long", shape, dtypes=(F32, F64)),
        layer_template("very-long", very_long, dtypes=(*half, F32)),
    )


def large_template(shape: tuple[int, ...], parameters: Dtype | None = None) -> CaseTemplate[Layer]:
    """Return a template with numbers whose squares overflow in float16."""
    return layer_template("large", shape, BEYOND_ITS_SQUARE, parameters=parameters, dtypes=(F16,))


def exact_template(shape: tuple[int, ...], length: int, label: str = "exact") -> CaseTemplate[Layer]:
    """Return a template whose statistics and sums are exact in float32; in half types the sums are not.

    It is for functions that receive the statistics: a sound algorithm that computes them, Welford's, rounds.

    Args:
        shape: The shape of the input.
        length: The number of neighboring elements of each statistic.
        label: The label of the cases.

    Returns:
        The template.
    """
    domains = {
        "grad_output": POSITIVE_INTEGERS,
        "grad_out": POSITIVE_INTEGERS,
        **dict.fromkeys(AFFINE, integer_values(1, 3)),
    }
    template = layer_template(label, shape, eps=0.0, dtypes=floating)
    return template.replace(domains={"input": two_values(length), **domains}, exact=True)


def single_gradient_templates(names: Sequence[str]) -> Iterator[CaseTemplate[Layer]]:
    """Yield a template per gradient that requests only this gradient."""
    for wanted in names:
        yield layer_template(f"only-{wanted}", (3, 4, 5), without=[name for name in names if name != wanted])


GRADIENTS = (
    *single_gradient_templates(("grad_input", "grad_weight", "grad_bias")),
    layer_template("bias-only", (3, 4, 5), without=["weight"]).replace(
        results={"grad_weight": None, "grad_bias": ResultOverride(F32)}
    ),
)
"""Templates of each gradient without the others, and of the bias gradient of a layer without weight."""


def saved_statistics(dtype: Dtype | None = None, shape: tuple[int, ...] | None = None) -> dict[str, ResultOverride]:
    """Return overrides for the saved statistics, under all names that layers give them."""
    names = ("save_mean", "save_invstd", "running_mean", "running_var")
    return dict.fromkeys(names, ResultOverride(dtype, shape=shape))
