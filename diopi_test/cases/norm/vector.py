"""Vector norms and their gradients."""

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
from diopi_test.cases.norm.values import POSITIVE_INTEGERS, half_zero, with_first
from diopi_test.cases.products import fixed_values
from diopi_test.cases.template import CaseTemplate, TemplateFields, register, tensor

F16, BF16, F32, F64 = floating
Shape = tuple[int, ...]
LARGE_HALF: Mapping[str, Any] = {"dtypes": (F16,), "large": True}
FAR_APART = strides(1031, 2)

ORDERS = (0, 1, 2.0, 3, 0.5, 1.5, -1, -2.0)
"""Finite orders, as integers and as floating numbers; the default is 2."""

FURTHER_ORDERS = (-3, -1.5, -0.5, 0.25, 0.75, 2.5, 4, 5.0, 6)
"""Further orders, for which kernels have no special case."""

FROM_ONE = avoid_points([0.0], normal(2), 1.0)
"""Numbers of absolute value 1 or more, so that all elements count in a norm of negative order."""

HUGE_SQUARES = log_uniform(8, 10)
"""Numbers whose squares are too large for float16, while norms are not."""

TINY_SQUARES = log_uniform(-13, -10)
"""Numbers whose squares are too small for float16, while norms are not."""

SOME_ZEROS = choice([0.0, 0.0, 1.5, -2.0, 0.25])
FEW_ZEROS = choice([0.0, 1.5, -2.0, 0.25, 3.0])
ZERO_OR_POSITIVE = choice([0.0, 1.5, 2.0, 0.25, 3.0])
ONE_NAN = choice([nan, *range(1, 12)])
"""Numbers with a single NaN. If the gradient of a vector is 0, its sign is that of the element."""


ALL_SUBNORMAL = tiny_multiples(*(part / 32 for part in range(-13, 14)))
"""Different subnormal numbers, so that the largest numbers of the rows differ."""

NAN_OF_MANY = with_value_in_middle(nan, choice([1.0, 2.0, 3.0, 4.0]))


def vectors(
    label: str,
    shape: Shape,
    dim: Shape = (1,),
    order: float = 2,
    domain: Domain | None = None,
    *,
    keepdim: bool = False,
    wide: Dtype | None = None,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[Axes]:
    """Return a template of a norm.

    Args:
        label: The label of the cases.
        shape: The shape of the input.
        dim: The axes; an empty tuple means all axes.
        order: The order of the norm.
        domain: The domain of the input; None for normal numbers.
        keepdim: Whether the result has the reduced axes.
        wide: The element type of the result; None for the input's.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    sizes = Axes(shape, dim, keepdim)
    template = CaseTemplate(label, sizes, {"p": order, "ord": order, "keepdim": keepdim}, **fields)
    result_shape = sizes.reduced_shape if not template.large else None
    return template.replace(
        domains={"input": domain, "self": domain} if domain else {},
        results={"out": ResultOverride(wide, template.result_layout, result_shape)},
    )


def with_half(template: CaseTemplate[Axes], longer: CaseTemplate[Axes]) -> Iterator[CaseTemplate[Axes]]:
    """Yield a template without its half-precision types, and the longer one in these types with nearly equal numbers.

    The other fields of the longer template are those of the template.
    """
    wide, narrow = half_sums.split_dtypes(template)
    domains = {**template.domains, **dict.fromkeys(("input", "self"), half_sums.NEARLY_EQUAL)}
    yield template.replace(dtypes=wide)
    yield longer.replace(dtypes=narrow, domains=domains, smoke=template.smoke)


def has_long_half_rows(order: float) -> bool:
    """Return whether norms of this order of long rows of numbers near 1 are ordinary numbers of float16."""
    return 0.75 <= abs(order) < inf


def of_order(
    orders: Sequence[float], dtypes: Sequence[Dtype], domain_of: Callable[[float], Domain]
) -> Iterator[CaseTemplate[Axes]]:
    """Yield norms of these orders, half-precision ones of long rows."""
    for p in orders:
        template = vectors(f"order-{p}", (4, 6), order=p, domain=domain_of(p), dtypes=dtypes)
        if has_long_half_rows(p):
            yield from with_half(template, vectors(f"order-{p}", (4, half_sums.LONG_ROW), order=p))
        else:
            yield template


VECTORS = (
    *with_half(vectors("rows", (4, 5), dtypes=floating, smoke=True), vectors("rows", (4, half_sums.LONG_ROW))),
    *with_half(vectors("all", (3, 4), (), dtypes=floating), vectors("all", (3, 517), ())),
    *with_half(vectors("long", (1031,), (), dtypes=floating), vectors("long", (1031,), ())),
    vectors("columns", (4, 3), (0,)),
    vectors("kept", (3, 4, 2), keepdim=True, dtypes=(F32, BF16)),
    vectors("kept-all", (3, 4), (), keepdim=True),
    vectors("two-axes", (3, 4, 2), (0, 2)),
    vectors("negative-axes", (3, 4, 2), (-1, -3), keepdim=True),
    vectors("every-axis", (2, 3), (1, 0)),
    vectors("scalar", (), ()),
    vectors("scalar-axis", (), (0,)),
    vectors("scalar-last-axis", (), (-1,), 3, FROM_ONE, keepdim=True),
    vectors("scalar-infinity", (), (0,), inf),
    vectors("strided", (3, 4, 2), layout=strided, result_layout=strided),
    vectors("transposed", (3, 4, 2), (2,), layout=transposed, result_layout=transposed, dtypes=(F32, F16)),
    vectors("channels-last", (2, 3, 4, 2), layout=channels_last),
)

NORMS = (
    vectors("empty", (0, 3), ()),
    *(vectors(f"far-order-{p}", (20, 6), order=p, domain=normal(1000)) for p in (1.5, 2.5)),
    vectors("empty-rows", (3, 0), keepdim=True),
    vectors("zeros", (4, 4), domain=half_zero),
    *of_order(ORDERS, floating, lambda p: FROM_ONE if p else SOME_ZEROS),
    vectors("count", (5, 6), order=0.0, domain=choice([0.0, -0.0, 1.5, nan, inf])),
    vectors("zero-in-order--1", (7, 3), order=-1, domain=FEW_ZEROS),
    vectors("zero-in-order-0.5", (3, 5), order=0.5, domain=SOME_ZEROS),
    vectors("infinity", (5, 6), order=inf, dtypes=floating, smoke=True),
    vectors("minus-infinity", (5, 6), (0,), -inf, dtypes=floating),
    vectors("largest-special", (20, 1), order=inf, domain=special),
    vectors("smallest-special", (20, 1), order=-inf, domain=special),
    vectors("largest-subnormal", (3, 9), (1,), inf, ALL_SUBNORMAL),
    vectors("smallest-subnormal", (3, 9), (1,), -inf, subnormal),
    vectors("largest-nan", (3, 4), order=inf, domain=with_first(nan)),
    vectors("smallest-nan", (3, 4), order=-inf, domain=with_first(nan)),
    vectors("largest-nan-of-many", (5, 1031), order=inf, domain=NAN_OF_MANY, dtypes=floating),
    vectors("smallest-nan-of-many", (5, 1031), order=-inf, domain=NAN_OF_MANY, dtypes=floating),
    vectors("nan", (3, 4), domain=with_first(nan)),
    vectors("one-infinite", (3, 4), order=3, domain=with_first(-inf)),
    vectors("large", (4, 8), domain=HUGE_SQUARES, dtypes=half),
    vectors("small", (4, 8), domain=TINY_SQUARES, dtypes=half),
    vectors("large-cubes", (4, 8), order=3, domain=HUGE_SQUARES, dtypes=half),
    vectors("exact-sum", (2, 517), order=1, domain=POSITIVE_INTEGERS, dtypes=floating, exact=True),
    vectors("exact-length", (5, 1), domain=integer_values(-9, 9), dtypes=floating, exact=True),
    vectors("in-float32", (4, 7), wide=F32, dtypes=half),
    vectors("in-float64", (4, 7), wide=F64),
    vectors("sum-in-float64", (4, 7), order=1, domain=choice([2.0**25, 1.0, 3.0]), wide=F64, exact=True),
)
"""The last template is exact in float64 only."""


def of_further_orders() -> list[CaseTemplate[Axes]]:
    """Return a template per further order of the norm."""
    return list(of_order(FURTHER_ORDERS, (F32, F16), lambda p: FROM_ONE))


def along_untried(templates: Sequence[CaseTemplate[Axes]]) -> list[CaseTemplate[Axes]]:
    """Return norms over each axis that no template uses as the only axis, alternately of order 2 and 3."""
    tried = {
        (len(template.sizes.shape), template.sizes.axes[0]) for template in templates if len(template.sizes.axes) == 1
    }
    return [
        vectors(label, shape, (axis,), 2 + axis % 2, FROM_ONE, keepdim=axis < 0)
        for label, shape, axis in untested_axes(tried)
    ]


def _input(template: CaseTemplate[Axes], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of a vector norm from a template."""
    return {"input": tensor(*template.sizes.shape, layout=template.layout), "dim": template.sizes.axes}


LARGE_VECTORS = (
    vectors("long-rows", (5, 65_537), large=True),
    vectors("many-rows", (70_001, 3), large=True),
    vectors("half-far-apart", (263, 517), layout=FAR_APART, **LARGE_HALF),
)

register(
    "diopiNorm",
    "diopiLinalgVecNorm",
    templates=(*VECTORS, *NORMS, *of_further_orders(), *along_untried((*VECTORS, *NORMS)), *LARGE_VECTORS),
    derive=_input,
)

# Norms of several tensors

SEVERAL = ((3, 4), (5,), (2, 1, 3))
LONG_SEVERAL = ((3, 344), (half_sums.LONG_ROW,), (2, 1, 523))


def lengths(
    label: str,
    shapes: Sequence[Shape] = SEVERAL,
    order: float = 2,
    domain: Domain | None = None,
    *,
    first: Domain | None = None,
    layouts: Sequence[Layout] = (contiguous,),
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of the norms of several tensors.

    Args:
        label: The label of the cases.
        shapes: The shapes of the tensors.
        order: The order of the norms.
        domain: The domain of the tensors; None for normal numbers.
        first: A domain for the first tensor.
        layouts: The layouts of the tensors, in rotation.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    inputs = [
        tensor(*shape, domain=domain if number else first or domain, layout=layout)
        for number, (shape, layout) in enumerate(zip(shapes, cycle(layouts), strict=False))
    ]
    return CaseTemplate(label, arguments={"inputs": inputs, "ord": order}, **fields)


LENGTHS = (
    lengths("several", dtypes=(F32, F64), smoke=True),
    lengths("several", LONG_SEVERAL, domain=half_sums.NEARLY_EQUAL, dtypes=half, smoke=True),
    lengths("long", ((517,), (31, 17)), 2.0, dtypes=(F32, F64)),
    lengths("long", ((half_sums.LONG_ROW,), (31, 37)), 2.0, half_sums.NEARLY_EQUAL, dtypes=half),
    lengths("exact-sum", ((517,), (9,)), 1, POSITIVE_INTEGERS, dtypes=floating, exact=True),
    lengths("infinity", order=inf, dtypes=floating),
    lengths("minus-infinity", order=-inf, dtypes=floating),
    lengths("large", domain=HUGE_SQUARES, dtypes=half),
    lengths("small", domain=TINY_SQUARES, dtypes=half),
    lengths("one", ((4, 3),)),
    lengths("many", [(n,) for n in range(1, 18)]),
    lengths("scalars", ((), (1,), ())),
    lengths("empty", ((3,), (0, 2))),
    lengths("strided", layouts=[strided]),
    lengths("transposed", layouts=[transposed]),
    lengths("nan", order=inf, first=with_first(nan)),
    lengths("nan-of-many", ((5, 1031), (3,)), order=inf, first=NAN_OF_MANY, dtypes=floating),
    *(lengths(f"order-{p}", order=p, domain=FROM_ONE if p else SOME_ZEROS) for p in ORDERS),
    *(lengths(f"order-{p}", order=p, domain=FROM_ONE) for p in FURTHER_ORDERS),
    *(
        lengths(f"order-{p}", LONG_SEVERAL, p, half_sums.NEARLY_EQUAL, dtypes=(F16,))
        if has_long_half_rows(p)
        else lengths(f"order-{p}", order=p, domain=FROM_ONE, dtypes=(F16,))
        for p in FURTHER_ORDERS
    ),
    lengths("models", ((263, 257), (4097,), (2, 1, 3)), large=True),
    lengths("half", ((32_003,), (131, 511), (7, 1, 509)), layouts=(contiguous, FAR_APART), **LARGE_HALF),
)


register("diopiForeachnormScalar", templates=LENGTHS)


# The gradient


def slope(
    label: str, shape: Shape, order: float, domain: Domain, gradient: Domain, **fields: Any
) -> CaseTemplate[Axes]:
    """Return a template of the gradient of norms of rows; the gradient of the result is drawn from `gradient`."""
    return vectors(label, shape, order=order, **fields).replace(domains={"self": domain, "grad_output": gradient})


Rows = Sequence[Sequence[float]]

LARGEST_TIED: Rows = [[1, 7, 2, 0.5, 3, 4], [6, 1, -6, 3, 2, 1], [-5, 3, 5, 5, -5, 2], [-9, 1, 1, 1, 1, 8]]
SMALLEST_TIED: Rows = [[6, 7, 2, 0.5, 3, 4], [6, 1, -1, 3, 2, 5], [-2, 3, 2, 2, -2, 7], [-1, 3, 3, 3, 3, 8]]
"""Rows in which one, two or four elements share the gradient; the others are positive, so that their zeros are too."""

TIED: Mapping[str, Any] = {"gradient": integer_values(1, 9), "dtypes": floating, "exact": True, "smoke": True}
POSITIVE = uniform(0.5, 2)

SLOPES = (
    *VECTORS,
    *(vectors(f"order-{p}", (4, 6), order=p, domain=FROM_ONE, dtypes=floating) for p in ORDERS if p),
    slope("order-0", (4, 6), 0, FROM_ONE, uniform(-2, 2), dtypes=floating),
    vectors("large", (4, 8), domain=HUGE_SQUARES, dtypes=half),
    vectors("empty", (0, 3)),
    vectors("exact", (5, 1), domain=choice([1.0, -1.0, 2.0, -3.0, 4.0]), dtypes=floating, exact=True),
    *(
        slope(f"zero-in-order-{p}", (7, 3), p, FEW_ZEROS if p > 0 else ZERO_OR_POSITIVE, POSITIVE, keepdim=True)
        for p in ORDERS
    ),
    *(slope(f"nan-in-order-{p}", (3, 4), p, ONE_NAN, POSITIVE) for p in (2, inf, -inf)),
    *(slope(f"zeros-in-order-{p}", (4, 4), p, half_zero, POSITIVE) for p in (1, 2, 3, 1.5, inf)),
    slope("infinity", (4, 6), inf, fixed_values(LARGEST_TIED), **TIED),
    slope("minus-infinity", (4, 6), -inf, fixed_values(SMALLEST_TIED), **TIED),
)


def _gradient(template: CaseTemplate[Axes], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of the gradient of a vector norm from a template."""
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
    templates=(*SLOPES, *of_further_orders(), *along_untried(SLOPES), *LARGE_VECTORS),
    derive=_gradient,
    non_discriminating={"(zero-in-)?order-0": "the number of nonzero elements has the gradient 0"},
)

CaseFacts(saved={"norm": ResultOf("diopiNorm", argument_names={"input": "self"})}).declare("diopiNormBackward")
