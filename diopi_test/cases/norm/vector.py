"""Cases of vector norms, norms of lists of tensors, and gradients of vector norms.

The norm of order p is (Σ|x|ᵖ)^(1/p). The norm of order 0 is the number of elements other than 0. The norms of order ∞
and −∞ are the largest and the smallest magnitude.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A domain draws the
values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the suite. Large cases
belong to a level with the sizes of real models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from math import inf, nan
from typing import Any, Unpack

from diopi_proto.dtypes import floating, half
from diopi_proto.types import Dtype
from diopi_test.cases import half_sums
from diopi_test.cases.axes import Axes, untested_axes
from diopi_test.cases.case import ResultOf, ResultOverride
from diopi_test.cases.domains import (
    Domain,
    avoid_points,
    choice,
    integer_values,
    log_uniform,
    normal,
    special,
    subnormal,
    tiny_multiples,
    uniform,
    with_value_in_middle,
)
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import Layout, channels_last, contiguous, strided, strides, transposed
from diopi_test.cases.norm.values import POSITIVE_INTEGERS, draw_half_zero, shifted_starting_with
from diopi_test.cases.products import fixed_values
from diopi_test.cases.template import CaseTemplate, TemplateFields, register, tensor

F16, BF16, F32, F64 = floating
"""Short names for the floating-point types."""

Shape = tuple[int, ...]
"""The sizes of a tensor, or the axes that a norm reduces, such as (0, 2)."""

LARGE_FLOAT16_FIELDS: Mapping[str, Any] = {"dtypes": (F16,), "large": True}
"""Fields of `norm_template` for cases of the large level in float16."""

GAPPED_MATRICES = strides(1031, 2)
"""A layout of matrices with gaps between rows and between the elements of a row."""

COMMON_ORDERS = (0, 1, 2.0, 3, 0.5, 1.5, -1, -2.0)
"""Finite orders of norms for which kernels often have special code, as integers and as floating-point numbers."""

RARE_ORDERS = (-3, -1.5, -0.5, 0.25, 0.75, 2.5, 4, 5.0, 6)
"""Finite orders of norms for which kernels rarely have special code."""

MAGNITUDES_FROM_ONE = avoid_points([0.0], normal(2), 1.0)
"""A domain of numbers of magnitude 1 or more. With a negative order, numbers near 0 would dominate the sum."""

NUMBERS_WITH_HUGE_SQUARES = log_uniform(8, 10)
"""A domain of numbers from 2⁸ to 2¹⁰ in magnitude. Their norms are in the range of float16; their squares are not."""

NUMBERS_WITH_TINY_SQUARES = log_uniform(-13, -10)
"""A domain of numbers from 2⁻¹³ to 2⁻¹⁰ in magnitude. In float16, their squares are subnormal or 0."""

TWO_FIFTHS_ZEROS = choice([0.0, 0.0, 1.5, -2.0, 0.25])
"""A domain in which two of five elements are 0: `choice` draws every entry of the list equally often."""

ONE_FIFTH_ZEROS = choice([0.0, 1.5, -2.0, 0.25, 3.0])
"""A domain in which one of five elements is 0. The other numbers have both signs."""

ONE_FIFTH_ZEROS_OTHERS_POSITIVE = choice([0.0, 1.5, 2.0, 0.25, 3.0])
"""A domain in which one of five elements is 0. The other numbers are positive."""

ONE_NAN_IN_TWELVE = choice([nan, *range(1, 12)])
"""A domain for tensors of 12 elements: one NaN and 11 positive numbers.

A gradient of 0 has the sign of the input's element. These inputs are positive, so that the gradient is never −0.0.
"""

DISTINCT_SUBNORMALS = tiny_multiples(*(part / 32 for part in range(-13, 14)))
"""A domain of 0 and 26 different subnormal numbers, so that the largest magnitudes of the rows differ."""

NAN_IN_MIDDLE = with_value_in_middle(nan, choice([1.0, 2.0, 3.0, 4.0]))
"""A domain of the numbers 1, 2, 3 and 4 in random order, with NaN as the middle element."""


def norm_template(
    label: str,
    shape: Shape,
    dim: Shape = (1,),
    order: float = 2,
    domain: Domain | None = None,
    *,
    keepdim: bool = False,
    result_dtype: Dtype | None = None,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[Axes]:
    """Return a template of cases of a vector norm.

    Args:
        label: The label of the cases.
        shape: The shape of the input.
        dim: The axes to reduce; an empty tuple means all axes.
        order: The order of the norm.
        domain: The domain of the input; None for normally distributed numbers.
        keepdim: Whether the result keeps the reduced axes with size 1.
        result_dtype: The element type of the result; None for the element type of the input.
        **fields: Further fields of the template.

    Returns:
        The template. Large templates do not prescribe the shape of the result.
    """
    sizes = Axes(shape, dim, keepdim)
    template = CaseTemplate(label, sizes, {"p": order, "ord": order, "keepdim": keepdim}, **fields)
    result_shape = sizes.reduced_shape if not template.large else None
    return template.replace(
        domains={"input": domain, "self": domain} if domain else {},
        results={"out": ResultOverride(result_dtype, template.result_layout, result_shape)},
    )


def half_templates(template: CaseTemplate[Axes], long_template: CaseTemplate[Axes]) -> Iterator[CaseTemplate[Axes]]:
    """Split a template into one for its wider types and one for its half-precision types.

    Args:
        template: The template to split. It lists its element types.
        long_template: The template for the half-precision types. Its long sums make an inaccurate accumulation visible.

    Yields:
        `template` without its half-precision types. Then `long_template` in these types, with the domains and the smoke
        flag of `template`. Its input consists of the numbers ±0.7 and ±0.9, whose rounding errors do not cancel.
    """
    wide_dtypes, half_dtypes = half_sums.split_dtypes(template)
    domains = {**template.domains, **dict.fromkeys(("input", "self"), half_sums.NEARLY_EQUAL)}
    yield template.replace(dtypes=wide_dtypes)
    yield long_template.replace(dtypes=half_dtypes, domains=domains, smoke=template.smoke)


def has_long_half_rows(order: float) -> bool:
    """Return whether half-precision cases of this order use long rows, which make an inaccurate accumulation visible.

    For an order near 0, the norm of a long row leaves the range of normal float16 numbers. Norms of order 0, ∞ and −∞
    have no rounding errors that add up.
    """
    return 0.75 <= abs(order) < inf


def order_templates(
    orders: Sequence[float], dtypes: Sequence[Dtype], domain_of: Callable[[float], Domain]
) -> Iterator[CaseTemplate[Axes]]:
    """Yield the templates of cases that compute the norms of rows, for each order.

    Args:
        orders: The orders.
        dtypes: The element types.
        domain_of: Returns the domain of the input for an order.

    Yields:
        For an order with `has_long_half_rows`, two templates: one for wider types, and one with long rows for
        half-precision types. For every other order, one template.
    """
    for order in orders:
        template = norm_template(f"order-{order}", (4, 6), order=order, domain=domain_of(order), dtypes=dtypes)
        if has_long_half_rows(order):
            yield from half_templates(template, norm_template(f"order-{order}", (4, half_sums.LONG_ROW), order=order))
        else:
            yield template


SHARED_NORM_TEMPLATES = (
    *half_templates(
        norm_template("rows", (4, 5), dtypes=floating, smoke=True), norm_template("rows", (4, half_sums.LONG_ROW))
    ),
    *half_templates(norm_template("all", (3, 4), (), dtypes=floating), norm_template("all", (3, 517), ())),
    *half_templates(norm_template("long", (1031,), (), dtypes=floating), norm_template("long", (1031,), ())),
    norm_template("columns", (4, 3), (0,)),
    norm_template("kept", (3, 4, 2), keepdim=True, dtypes=(F32, BF16)),
    norm_template("kept-all", (3, 4), (), keepdim=True),
    norm_template("two-axes", (3, 4, 2), (0, 2)),
    norm_template("negative-axes", (3, 4, 2), (-1, -3), keepdim=True),
    norm_template("every-axis", (2, 3), (1, 0)),
    norm_template("scalar", (), ()),
    norm_template("scalar-axis", (), (0,)),
    norm_template("scalar-last-axis", (), (-1,), 3, MAGNITUDES_FROM_ONE, keepdim=True),
    norm_template("scalar-infinity", (), (0,), inf),
    norm_template("strided", (3, 4, 2), layout=strided, result_layout=strided),
    norm_template("transposed", (3, 4, 2), (2,), layout=transposed, result_layout=transposed, dtypes=(F32, F16)),
    norm_template("channels-last", (2, 3, 4, 2), layout=channels_last),
)
"""The templates that `diopiNorm`, `diopiLinalgVecNorm` and `diopiNormBackward` share.

They vary shapes, axes and layouts. Most norms have order 2.
"""

NORM_TEMPLATES = (
    norm_template("empty", (0, 3), ()),
    *(norm_template(f"far-order-{order}", (20, 6), order=order, domain=normal(1000)) for order in (1.5, 2.5)),
    norm_template("empty-rows", (3, 0), keepdim=True),
    norm_template("zeros", (4, 4), domain=draw_half_zero),
    *order_templates(COMMON_ORDERS, floating, lambda order: MAGNITUDES_FROM_ONE if order else TWO_FIFTHS_ZEROS),
    norm_template("count", (5, 6), order=0.0, domain=choice([0.0, -0.0, 1.5, nan, inf])),
    norm_template("zero-in-order--1", (7, 3), order=-1, domain=ONE_FIFTH_ZEROS),
    norm_template("zero-in-order-0.5", (3, 5), order=0.5, domain=TWO_FIFTHS_ZEROS),
    norm_template("infinity", (5, 6), order=inf, dtypes=floating, smoke=True),
    norm_template("minus-infinity", (5, 6), (0,), -inf, dtypes=floating),
    norm_template("largest-special", (20, 1), order=inf, domain=special),
    norm_template("smallest-special", (20, 1), order=-inf, domain=special),
    norm_template("largest-subnormal", (3, 9), (1,), inf, DISTINCT_SUBNORMALS),
    norm_template("smallest-subnormal", (3, 9), (1,), -inf, subnormal),
    norm_template("largest-nan", (3, 4), order=inf, domain=shifted_starting_with(nan)),
    norm_template("smallest-nan", (3, 4), order=-inf, domain=shifted_starting_with(nan)),
    norm_template("largest-nan-of-many", (5, 1031), order=inf, domain=NAN_IN_MIDDLE, dtypes=floating),
    norm_template("smallest-nan-of-many", (5, 1031), order=-inf, domain=NAN_IN_MIDDLE, dtypes=floating),
    norm_template("nan", (3, 4), domain=shifted_starting_with(nan)),
    norm_template("one-infinite", (3, 4), order=3, domain=shifted_starting_with(-inf)),
    norm_template("large", (4, 8), domain=NUMBERS_WITH_HUGE_SQUARES, dtypes=half),
    norm_template("small", (4, 8), domain=NUMBERS_WITH_TINY_SQUARES, dtypes=half),
    norm_template("large-cubes", (4, 8), order=3, domain=NUMBERS_WITH_HUGE_SQUARES, dtypes=half),
    norm_template("exact-sum", (2, 517), order=1, domain=POSITIVE_INTEGERS, dtypes=floating, exact=True),
    norm_template("exact-length", (5, 1), domain=integer_values(-9, 9), dtypes=floating, exact=True),
    norm_template("in-float32", (4, 7), result_dtype=F32, dtypes=half),
    norm_template("in-float64", (4, 7), result_dtype=F64),
    norm_template("sum-in-float64", (4, 7), order=1, domain=choice([2.0**25, 1.0, 3.0]), result_dtype=F64, exact=True),
)
"""The templates that only `diopiNorm` and `diopiLinalgVecNorm` have.

They vary orders, special values and the element type of the result. The sums of the last template are exact in float64,
but not in float32.
"""


def rare_order_templates() -> list[CaseTemplate[Axes]]:
    """Return the templates of norms of the orders `RARE_ORDERS`, in float32 and float16."""
    return list(order_templates(RARE_ORDERS, (F32, F16), lambda order: MAGNITUDES_FROM_ONE))


def untested_axis_templates(templates: Sequence[CaseTemplate[Axes]]) -> list[CaseTemplate[Axes]]:
    """Return templates of norms over a single axis, for the axes of ranks 1 to 4 that `templates` do not reduce.

    An axis and its negative number, such as 1 and −1 for rank 2, count as two axes. A norm over an even axis number has
    order 2, and a norm over an odd axis number has order 3.

    Args:
        templates: The templates whose axes are already tested. Only norms over a single axis count.

    Returns:
        One template per combination of rank and axis.
    """
    tested_axes = {
        (len(template.sizes.shape), template.sizes.axes[0]) for template in templates if len(template.sizes.axes) == 1
    }
    return [
        norm_template(label, shape, (axis,), 2 + axis % 2, MAGNITUDES_FROM_ONE, keepdim=axis < 0)
        for label, shape, axis in untested_axes(tested_axes)
    ]


def _norm_arguments(template: CaseTemplate[Axes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments `input` and `dim` of a vector norm for the sizes of a template.

    Args:
        template: The template. Its layout applies to the input.
        dtype: Not used; the input has the type under test.

    Returns:
        The arguments by name.
    """
    return {"input": tensor(*template.sizes.shape, layout=template.layout), "dim": template.sizes.axes}


LARGE_NORM_TEMPLATES = (
    norm_template("long-rows", (5, 65_537), large=True),
    norm_template("many-rows", (70_001, 3), large=True),
    norm_template("half-far-apart", (263, 517), layout=GAPPED_MATRICES, **LARGE_FLOAT16_FIELDS),
)
"""The templates of norms with the sizes of real models, which belong to the large level."""

register(
    "diopiNorm",
    "diopiLinalgVecNorm",
    templates=(
        *SHARED_NORM_TEMPLATES,
        *NORM_TEMPLATES,
        *rare_order_templates(),
        *untested_axis_templates((*SHARED_NORM_TEMPLATES, *NORM_TEMPLATES)),
        *LARGE_NORM_TEMPLATES,
    ),
    derive=_norm_arguments,
)

# Norms of several tensors

LIST_SHAPES = ((3, 4), (5,), (2, 1, 3))
"""The default shapes of the tensors in a list."""

LONG_LIST_SHAPES = ((3, 344), (half_sums.LONG_ROW,), (2, 1, 523))
"""The shapes of a list of three tensors with more than 1000 elements each."""


def list_template(
    label: str,
    shapes: Sequence[Shape] = LIST_SHAPES,
    order: float = 2,
    domain: Domain | None = None,
    *,
    first_domain: Domain | None = None,
    layouts: Sequence[Layout] = (contiguous,),
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of a call that computes the norm of each tensor in a list.

    Args:
        label: The label of the cases without the element type.
        shapes: The shapes of the tensors.
        order: The order of the norms.
        domain: The domain of the tensors; None for normally distributed numbers.
        first_domain: The domain of the first tensor; None for `domain`.
        layouts: The layouts of the tensors, assigned in rotation.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    inputs = [
        tensor(*shape, domain=domain if position else first_domain or domain, layout=layout)
        for position, (shape, layout) in enumerate(zip(shapes, cycle(layouts), strict=False))
    ]
    return CaseTemplate(label, arguments={"inputs": inputs, "ord": order}, **fields)


LIST_NORM_TEMPLATES = (
    list_template("several", dtypes=(F32, F64), smoke=True),
    list_template("several", LONG_LIST_SHAPES, domain=half_sums.NEARLY_EQUAL, dtypes=half, smoke=True),
    list_template("long", ((517,), (31, 17)), 2.0, dtypes=(F32, F64)),
    list_template("long", ((half_sums.LONG_ROW,), (31, 37)), 2.0, half_sums.NEARLY_EQUAL, dtypes=half),
    list_template("exact-sum", ((517,), (9,)), 1, POSITIVE_INTEGERS, dtypes=floating, exact=True),
    list_template("infinity", order=inf, dtypes=floating),
    list_template("minus-infinity", order=-inf, dtypes=floating),
    list_template("large", domain=NUMBERS_WITH_HUGE_SQUARES, dtypes=half),
    list_template("small", domain=NUMBERS_WITH_TINY_SQUARES, dtypes=half),
    list_template("one", ((4, 3),)),
    list_template("many", [(n,) for n in range(1, 18)]),
    list_template("scalars", ((), (1,), ())),
    list_template("empty", ((3,), (0, 2))),
    list_template("strided", layouts=[strided]),
    list_template("transposed", layouts=[transposed]),
    list_template("nan", order=inf, first_domain=shifted_starting_with(nan)),
    list_template("nan-of-many", ((5, 1031), (3,)), order=inf, first_domain=NAN_IN_MIDDLE, dtypes=floating),
    *(
        list_template(f"order-{order}", order=order, domain=MAGNITUDES_FROM_ONE if order else TWO_FIFTHS_ZEROS)
        for order in COMMON_ORDERS
    ),
    *(list_template(f"order-{order}", order=order, domain=MAGNITUDES_FROM_ONE) for order in RARE_ORDERS),
    *(
        list_template(f"order-{order}", LONG_LIST_SHAPES, order, half_sums.NEARLY_EQUAL, dtypes=(F16,))
        if has_long_half_rows(order)
        else list_template(f"order-{order}", order=order, domain=MAGNITUDES_FROM_ONE, dtypes=(F16,))
        for order in RARE_ORDERS
    ),
    list_template("models", ((263, 257), (4097,), (2, 1, 3)), large=True),
    list_template(
        "half", ((32_003,), (131, 511), (7, 1, 509)), layouts=(contiguous, GAPPED_MATRICES), **LARGE_FLOAT16_FIELDS
    ),
)
"""The templates of `diopiForeachnormScalar`, which computes the norm of each tensor in a list."""


register("diopiForeachnormScalar", templates=LIST_NORM_TEMPLATES)


# The gradient


def gradient_template(
    label: str, shape: Shape, order: float, domain: Domain, gradient_domain: Domain, **fields: Any
) -> CaseTemplate[Axes]:
    """Return a template of the gradient of the norms of a matrix's rows.

    Args:
        label: The label of the cases.
        shape: The shape of the input `self`.
        order: The order of the norm.
        domain: The domain of `self`.
        gradient_domain: The domain of `grad_output`, the gradient of the norms.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    return norm_template(label, shape, order=order, **fields).replace(
        domains={"self": domain, "grad_output": gradient_domain}
    )


Rows = Sequence[Sequence[float]]
"""The elements of a matrix, row by row."""

TIED_MAXIMA: Rows = [[1, 7, 2, 0.5, 3, 4], [6, 1, -6, 3, 2, 1], [-5, 3, 5, 5, -5, 2], [-9, 1, 1, 1, 1, 8]]
"""Four rows, in each of which one, two or four elements have the largest magnitude of the row."""

TIED_MINIMA: Rows = [[6, 7, 2, 0.5, 3, 4], [6, 1, -1, 3, 2, 5], [-2, 3, 2, 2, -2, 7], [-1, 3, 3, 3, 3, 8]]
"""Four rows, in each of which one, two or four elements have the smallest magnitude of the row.

All other elements are positive, so that their gradients are 0.0 and not −0.0.
"""

TIED_ROW_FIELDS: Mapping[str, Any] = {
    "gradient_domain": integer_values(1, 9),
    "dtypes": floating,
    "exact": True,
    "smoke": True,
}
"""Arguments of `gradient_template` for rows in which several elements of equal magnitude share the gradient."""

POSITIVE_GRADIENTS = uniform(0.5, 2)
"""A domain of positive gradients of the norms."""

GRADIENT_TEMPLATES = (
    *SHARED_NORM_TEMPLATES,
    *(
        norm_template(f"order-{order}", (4, 6), order=order, domain=MAGNITUDES_FROM_ONE, dtypes=floating)
        for order in COMMON_ORDERS
        if order
    ),
    gradient_template("order-0", (4, 6), 0, MAGNITUDES_FROM_ONE, uniform(-2, 2), dtypes=floating),
    norm_template("large", (4, 8), domain=NUMBERS_WITH_HUGE_SQUARES, dtypes=half),
    norm_template("empty", (0, 3)),
    norm_template("exact", (5, 1), domain=choice([1.0, -1.0, 2.0, -3.0, 4.0]), dtypes=floating, exact=True),
    *(
        gradient_template(
            f"zero-in-order-{order}",
            (7, 3),
            order,
            ONE_FIFTH_ZEROS if order > 0 else ONE_FIFTH_ZEROS_OTHERS_POSITIVE,
            POSITIVE_GRADIENTS,
            keepdim=True,
        )
        for order in COMMON_ORDERS
    ),
    *(
        gradient_template(f"nan-in-order-{order}", (3, 4), order, ONE_NAN_IN_TWELVE, POSITIVE_GRADIENTS)
        for order in (2, inf, -inf)
    ),
    *(
        gradient_template(f"zeros-in-order-{order}", (4, 4), order, draw_half_zero, POSITIVE_GRADIENTS)
        for order in (1, 2, 3, 1.5, inf)
    ),
    gradient_template("infinity", (4, 6), inf, fixed_values(TIED_MAXIMA), **TIED_ROW_FIELDS),
    gradient_template("minus-infinity", (4, 6), -inf, fixed_values(TIED_MINIMA), **TIED_ROW_FIELDS),
)
"""Templates of `diopiNormBackward`, the gradient of a vector norm."""


def _gradient_arguments(template: CaseTemplate[Axes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiNormBackward` for the sizes of a template.

    Args:
        template: The template. Its layout applies to all tensors. In large templates, `norm` and `grad_output` are
            contiguous.
        dtype: Not used; all tensors have the type under test.

    Returns:
        The arguments `self`, `dim`, `p`, `norm` and `grad_output`. The reference computes `norm` with `diopiNorm`.
    """
    sizes, layout = template.sizes, template.layout
    norm_layout = layout if not template.large else contiguous
    return {
        "self": tensor(*sizes.shape, layout=layout),
        "dim": sizes.axes,
        "p": template.argument("p"),
        "norm": tensor(
            *sizes.reduced_shape, layout=norm_layout, compute=ResultOf("diopiNorm", argument_names={"input": "self"})
        ),
        "grad_output": tensor(*sizes.reduced_shape, layout=norm_layout),
    }


register(
    "diopiNormBackward",
    templates=(
        *GRADIENT_TEMPLATES,
        *rare_order_templates(),
        *untested_axis_templates(GRADIENT_TEMPLATES),
        *LARGE_NORM_TEMPLATES,
    ),
    derive=_gradient_arguments,
    non_discriminating={"(zero-in-)?order-0": "the number of nonzero elements has the gradient 0"},
)

CaseFacts(saved={"norm": ResultOf("diopiNorm", argument_names={"input": "self"})}).declare("diopiNormBackward")
