"""Cases of `diopiNormalize`, which divides vectors by their norms, and of its gradient.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Large cases belong to a level with the sizes of real
models. `Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, nan
from typing import Any, Unpack

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, half
from diopi_proto.types import Dtype
from diopi_test.cases import half_sums
from diopi_test.cases.axes import untested_axes
from diopi_test.cases.domains import Domain, integer_values
from diopi_test.cases.layouts import Layout, channels_last, contiguous, strided, transposed
from diopi_test.cases.norm.values import domain_of_rows, shifted_starting_with
from diopi_test.cases.norm.vector import (
    BF16,
    COMMON_ORDERS,
    F16,
    F32,
    F64,
    GAPPED_MATRICES,
    MAGNITUDES_FROM_ONE,
    NUMBERS_WITH_HUGE_SQUARES,
    ONE_FIFTH_ZEROS,
    RARE_ORDERS,
    TIED_MAXIMA,
    Shape,
    has_long_half_rows,
)
from diopi_test.cases.products import fixed_values
from diopi_test.cases.template import Arguments, CaseTemplate, TemplateFields, register, tensor


def normalize_template(
    label: str,
    shape: Shape,
    axis: int = 1,
    *,
    order: float = 2,
    eps: float = 1e-12,
    domain: Domain | None = None,
    factors: Sequence[float] = (1,),
    vector_layout: Layout = contiguous,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[Shape]:
    """Return a template that divides vectors by their norms.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input.
        axis: The axis of the vectors.
        order: The order of the norms.
        eps: The smallest divisor, which replaces smaller norms.
        domain: The domain of the vectors; None for normally distributed numbers.
        factors: Factors by which the slices along axis 0 are multiplied, in rotation.
        vector_layout: The layout of all tensors.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    template = CaseTemplate(label, shape, **fields)
    column = np.resize(factors, (*shape[:1], *[1] * (len(shape) - 1)))
    gradients = integer_values(-9, 9) if template.exact else None
    arguments: Arguments = {
        "_drawn": tensor(*shape, domain=domain, dtype=F64),
        "input": tensor(*shape, layout=vector_layout, compute=lambda values: values["_drawn"] * column),
        "p": order,
        "axis": axis,
        "eps": eps,
        "grad_output": tensor(*shape, domain=gradients, layout=vector_layout),
    }
    return template.replace(arguments=arguments, result_layout=vector_layout)


def large_rows_template(
    label: str, shape: Shape, layout: Layout = contiguous, dtype: Dtype = F32
) -> CaseTemplate[Shape]:
    """Return a large template that divides rows of normally distributed numbers by their norms.

    Args:
        label: The label of the cases.
        shape: The shape of the input.
        layout: The layout of the tensor arguments; the result is contiguous.
        dtype: The element type.

    Returns:
        The template.
    """
    template = normalize_template(label, shape, vector_layout=layout, dtypes=(dtype,), large=True)
    return template.replace(arguments={"input": tensor(*shape, layout=layout)}, result_layout=contiguous)


def _draw_row_of_norm_64(rng: Generator, number: int) -> NDArray[Any]:
    """Return 33 elements in random order, of random signs, whose absolute values add up to 64; `number` is not used."""
    return np.asarray(rng.permutation([1.0, 1.0, *[2.0] * 31]) * rng.choice([-1.0, 1.0], 33))


def _draw_distinct_moduli(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return numbers whose absolute values differ, so that the largest and the smallest magnitude are unique."""
    return np.asarray(rng.permutation(np.arange(1, count + 1)) / 4 * rng.choice([-1.0, 1.0], count))


NORM_64_ROWS = domain_of_rows(33, _draw_row_of_norm_64)
"""A domain of rows of 33 elements whose norm of order 1 is 64, a power of two, so that quotients are exact."""


def normalize_order_templates(orders: Sequence[float], half_dtype: Dtype) -> Iterator[CaseTemplate[Shape]]:
    """Yield templates that divide rows by norms of these orders.

    Args:
        orders: The orders.
        half_dtype: A half-precision type.

    Yields:
        For each order, a template in float32 and a template in `half_dtype`. The latter has long rows if
        `has_long_half_rows` is true for the order.
    """
    for order in orders:
        yield normalize_template(f"order-{order}", (4, 6), order=order, domain=MAGNITUDES_FROM_ONE)
        if has_long_half_rows(order):
            yield normalize_template(
                f"order-{order}",
                (4, half_sums.LONG_ROW),
                order=order,
                domain=half_sums.NEARLY_EQUAL,
                dtypes=(half_dtype,),
            )
        else:
            yield normalize_template(
                f"order-{order}", (4, 6), order=order, domain=MAGNITUDES_FROM_ONE, dtypes=(half_dtype,)
            )


ROW_FACTORS = (4, 0.125)
"""Factors of consecutive rows, with which the norms are clearly above or below 1."""

NORMALIZE_TEMPLATES = (
    normalize_template("rows", (4, 5), dtypes=(F32, F64), smoke=True),
    normalize_template("rows", (4, half_sums.LONG_ROW), domain=half_sums.NEARLY_EQUAL, dtypes=half, smoke=True),
    normalize_template("columns", (4, 5), 0, dtypes=(F32, F64)),
    normalize_template("columns", (half_sums.LONG_ROW, 5), 0, domain=half_sums.NEARLY_EQUAL, dtypes=half),
    normalize_template("last-axis", (2, 3, 4), -1),
    normalize_template("middle-axis", (2, 5, 3), dtypes=(F32, F16)),
    normalize_template("rank1", (9,), -1),
    normalize_template("scalar", (), 0, eps=4.0),
    normalize_template("scalar-last-axis", (), -1, order=1, eps=4.0),
    normalize_template("long", (2, 517), dtypes=floating),
    normalize_template("strided", (3, 4, 2), vector_layout=strided),
    normalize_template("transposed", (3, 4, 2), 2, vector_layout=transposed),
    normalize_template("channels-last", (2, 3, 4, 2), vector_layout=channels_last),
    normalize_template("empty", (0, 3)),
    normalize_template("length-one-axis", (5, 1), domain=MAGNITUDES_FROM_ONE, order=3),
    normalize_template("eps", (6, 5), eps=1.0, factors=ROW_FACTORS, dtypes=floating),
    normalize_template("eps-order-1", (6, 5), order=1, eps=1.0, factors=(4, 0.0625)),
    normalize_template("negative-eps", (4, 5), eps=-3.0, factors=ROW_FACTORS),
    normalize_template("exact", (5, 33), order=1, domain=NORM_64_ROWS, dtypes=floating, exact=True),
    normalize_template("exact-unit", (5, 33), order=1, domain=NORM_64_ROWS, factors=(2.0**-6,), exact=True),
    normalize_template("exact-eps", (5, 33), order=1, eps=64.0, domain=NORM_64_ROWS, exact=True),
    *(normalize_template(f"zero-in-order-{order}", (7, 3), order=order, domain=ONE_FIFTH_ZEROS) for order in (0.5, 1)),
    normalize_template("large", (4, 8), domain=NUMBERS_WITH_HUGE_SQUARES, dtypes=half),
    normalize_template("infinity", (4, 5), order=inf, domain=_draw_distinct_moduli, dtypes=floating),
    normalize_template("minus-infinity", (4, 5), order=-inf, domain=_draw_distinct_moduli),
    *normalize_order_templates(COMMON_ORDERS, BF16),
    normalize_template("nan", (3, 4), domain=shifted_starting_with(nan)),
)
"""The templates that normalization and its gradient have."""

FURTHER_NORMALIZE_TEMPLATES = (
    *normalize_order_templates(RARE_ORDERS, F16),
    *(
        normalize_template(label, shape, axis, order=2 + axis % 2)
        for label, shape, axis in untested_axes(
            {(len(template.sizes), template.argument("axis")) for template in NORMALIZE_TEMPLATES}
        )
    ),
    large_rows_template("long-rows", (5, 65_537)),
    large_rows_template("many-rows", (70_001, 3)),
    large_rows_template("half-far-apart", (263, 517), GAPPED_MATRICES, F16),
)
"""Templates of further orders and axes, and large templates, for normalization and its gradient."""

PARALLEL_GRADIENTS = tensor(
    40, 2, compute=lambda values: 1000 * np.where(np.arange(40) % 2, values["input"].T, values["_drawn"].T[::-1]).T
)
"""Gradients of the result that are parallel to the input in every other row.

The gradient of the input is 0 there: a vector's length does not affect the normalized vector.
"""

EQUAL_EPS_REASONS = {"exact-eps": "the norm equals eps"}
"""Why wrong kernels can pass the case with this label (`Case.non_discriminating`)."""

ONE_ELEMENT_REASONS = {"length-one-axis": "normalization scales a single element to 1 or -1"}
"""Why wrong gradients can pass the case with this label (`Case.non_discriminating`)."""


register(
    "diopiNormalize",
    templates=(
        *NORMALIZE_TEMPLATES,
        normalize_template("zeros", (3, 4), factors=(1, 0)),
        normalize_template("zeros-zero-eps", (3, 4), eps=0.0, factors=(1, 0)),
        normalize_template("zeros-negative-eps", (3, 4), eps=-1.0, factors=(1, 0)),
        *FURTHER_NORMALIZE_TEMPLATES,
    ),
    non_discriminating=EQUAL_EPS_REASONS,
)

register(
    "diopiNormalizeBackward",
    templates=(
        *NORMALIZE_TEMPLATES,
        normalize_template("zeros", (3, 4), eps=0.25, factors=(4, 0)),
        normalize_template("tied", (4, 6), order=inf, domain=fixed_values(TIED_MAXIMA)),
        normalize_template("parallel", (40, 2), dtypes=(F32, F64)).replace(
            arguments={"grad_output": PARALLEL_GRADIENTS}
        ),
        *FURTHER_NORMALIZE_TEMPLATES,
    ),
    non_discriminating={**EQUAL_EPS_REASONS, **ONE_ELEMENT_REASONS},
)
