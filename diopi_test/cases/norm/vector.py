"""Vector norms, vectors brought to length one, and their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, half
from diopi_proto.types import Dtype
from diopi_test.cases.axes import Axes, untested_axes
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
from diopi_test.cases.layouts import Layout, channels_last, contiguous, strided, transposed
from diopi_test.cases.model import ResultOf, ResultOverride
from diopi_test.cases.norm.values import POSITIVE_INTEGERS, half_zero, rows, with_first
from diopi_test.cases.products import fixed_values
from diopi_test.cases.template import Arguments, CaseTemplate, register, tensor

F16, BF16, F32, F64 = floating

ORDERS = (0, 1, 2.0, 3, 0.5, 1.5, -1, -2.0)
"""Orders but for ±∞, as integers and as floating numbers; order 2 is the usual one."""

FURTHER_ORDERS = (-3, -1.5, -0.5, 0.25, 0.75, 2.5, 4, 5.0, 6)
"""More of them; roots of these have no rule of their own."""

FROM_ONE = avoid_points([0.0], normal(2), 1.0)
"""Moduli of 1 and more, so that all elements count in a norm of negative order."""

LARGE = log_uniform(8, 10)
"""Squares are too large for float16, norms are not."""

SMALL = log_uniform(-13, -10)
"""Squares are too small for float16, norms are not."""

SOME_ZEROS = choice([0.0, 0.0, 1.5, -2.0, 0.25])
FEW_ZEROS = choice([0.0, 1.5, -2.0, 0.25, 3.0])
ZERO_OR_POSITIVE = choice([0.0, 1.5, 2.0, 0.25, 3.0])
ONE_NAN = choice([nan, *range(1, 12)])
"""Where a whole vector's gradient is 0, its sign is that of the element."""


ALL_SUBNORMAL = tiny_multiples(*(part / 32 for part in range(-13, 14)))
"""Different subnormal numbers, so that the rows' largest differ."""

NAN_OF_MANY = with_value_in_middle(nan, choice([1.0, 2.0, 3.0, 4.0]))


def vectors(
    label: str,
    shape: tuple[int, ...],
    dim: tuple[int, ...] = (1,),
    order: float = 2,
    domain: Domain | None = None,
    *,
    keepdim: bool = False,
    result_layout: Layout = contiguous,
    wide: Dtype | None = None,
    **fields: Any,
) -> CaseTemplate[Any]:
    """The norm over the axes `dim`, or all of them, of elements drawn from `domain`; `wide` is the result's type."""
    sizes = Axes(shape, dim, keepdim)
    return CaseTemplate(
        label,
        sizes,
        {"p": order, "ord": order, "keepdim": keepdim},
        {"input": domain, "self": domain} if domain else {},
        result_layout=result_layout,
        results={"out": ResultOverride(wide, result_layout, sizes.reduced_shape)},
        **fields,
    )


VECTORS = (
    vectors("rows", (4, 5), dtypes=floating, smoke=True),
    vectors("all", (3, 4), (), dtypes=floating),
    vectors("long", (1031,), (), dtypes=floating),
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
    *(vectors(f"order-{p}", (4, 6), order=p, domain=FROM_ONE if p else SOME_ZEROS, dtypes=floating) for p in ORDERS),
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
    vectors("large", (4, 8), domain=LARGE, dtypes=half),
    vectors("small", (4, 8), domain=SMALL, dtypes=half),
    vectors("large-cubes", (4, 8), order=3, domain=LARGE, dtypes=half),
    vectors("exact-sum", (2, 517), order=1, domain=POSITIVE_INTEGERS, dtypes=floating, exact=True),
    vectors("exact-length", (5, 1), domain=integer_values(-9, 9), dtypes=floating, exact=True),
    vectors("in-float32", (4, 7), wide=F32, dtypes=half),
    vectors("in-float64", (4, 7), wide=F64),
    vectors("sum-in-float64", (4, 7), order=1, domain=choice([2.0**25, 1.0, 3.0]), wide=F64, exact=True),
)
"""The last is exact in float64 only."""


def of_further_orders() -> list[CaseTemplate[Any]]:
    """Return a template per further order of the norm."""
    return [vectors(f"order-{p}", (4, 6), order=p, domain=FROM_ONE, dtypes=(F32, F16)) for p in FURTHER_ORDERS]


def along_untried(templates: Sequence[CaseTemplate[Any]]) -> list[CaseTemplate[Any]]:
    """Norms over each single axis that none of the templates is over alone, in turn in order 2 and in order 3."""
    tried = {
        (len(template.sizes.shape), template.sizes.axes[0]) for template in templates if len(template.sizes.axes) == 1
    }
    return [
        vectors(label, shape, (axis,), 2 + axis % 2, FROM_ONE, keepdim=axis < 0)
        for label, shape, axis in untested_axes(tried)
    ]


def _input(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    return {"input": tensor(*template.sizes.shape, layout=template.layout), "dim": template.sizes.axes}


register(
    "diopiNorm",
    "diopiLinalgVecNorm",
    templates=(*VECTORS, *NORMS, *of_further_orders(), *along_untried((*VECTORS, *NORMS))),
    derive=_input,
)

# Norms of several tensors

SEVERAL = ((3, 4), (5,), (2, 1, 3))


def lengths(
    label: str,
    shapes: Sequence[tuple[int, ...]] = SEVERAL,
    order: float = 2,
    domain: Domain | None = None,
    *,
    first: Domain | None = None,
    layout: Layout = contiguous,
    **fields: Any,
) -> CaseTemplate[Any]:
    """Norms of tensors of these shapes, drawn from `domain`, the first from `first` if that is given."""
    inputs = [
        tensor(*shape, domain=domain if number else first or domain, layout=layout)
        for number, shape in enumerate(shapes)
    ]
    return CaseTemplate(label, arguments={"inputs": inputs, "ord": order}, **fields)


LENGTHS = (
    lengths("several", dtypes=floating, smoke=True),
    lengths("long", ((517,), (31, 17)), 2.0, dtypes=floating),
    lengths("exact-sum", ((517,), (9,)), 1, POSITIVE_INTEGERS, dtypes=floating, exact=True),
    lengths("infinity", order=inf, dtypes=floating),
    lengths("minus-infinity", order=-inf, dtypes=floating),
    lengths("large", domain=LARGE, dtypes=half),
    lengths("small", domain=SMALL, dtypes=half),
    lengths("one", ((4, 3),)),
    lengths("many", [(n,) for n in range(1, 18)]),
    lengths("scalars", ((), (1,), ())),
    lengths("empty", ((3,), (0, 2))),
    lengths("strided", layout=strided),
    lengths("transposed", layout=transposed),
    lengths("nan", order=inf, first=with_first(nan)),
    lengths("nan-of-many", ((5, 1031), (3,)), order=inf, first=NAN_OF_MANY, dtypes=floating),
    *(lengths(f"order-{p}", order=p, domain=FROM_ONE if p else SOME_ZEROS) for p in ORDERS),
    *(lengths(f"order-{p}", order=p, domain=FROM_ONE, dtypes=(F32, F16)) for p in FURTHER_ORDERS),
)


register("diopiForeachnormScalar", templates=LENGTHS)


# The gradient


def slope(
    label: str, shape: tuple[int, ...], order: float, domain: Domain, gradient: Domain, **fields: Any
) -> CaseTemplate[Any]:
    """The gradient of norms of rows, where that of the result is drawn from `gradient`."""
    return vectors(label, shape, order=order, **fields).replace(domains={"self": domain, "grad_output": gradient})


Rows = Sequence[Sequence[float]]

LARGEST_TIED: Rows = [[1, 7, 2, 0.5, 3, 4], [6, 1, -6, 3, 2, 1], [-5, 3, 5, 5, -5, 2], [-9, 1, 1, 1, 1, 8]]
SMALLEST_TIED: Rows = [[6, 7, 2, 0.5, 3, 4], [6, 1, -1, 3, 2, 5], [-2, 3, 2, 2, -2, 7], [-1, 3, 3, 3, 3, 8]]
"""One, two and four elements share the gradient; all others are positive, so that their zeros are."""

TIED: Mapping[str, Any] = {"gradient": integer_values(1, 9), "dtypes": floating, "exact": True, "smoke": True}
POSITIVE = uniform(0.5, 2)

SLOPES = (
    *VECTORS,
    *(vectors(f"order-{p}", (4, 6), order=p, domain=FROM_ONE, dtypes=floating) for p in ORDERS if p),
    vectors("large", (4, 8), domain=LARGE, dtypes=half),
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


def _gradient(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    sizes, layout = template.sizes, template.layout
    return {
        "self": tensor(*sizes.shape, layout=layout),
        "dim": sizes.axes,
        "p": template.argument("p"),
        "norm": tensor(
            *sizes.reduced_shape, layout=layout, compute=ResultOf("diopiNorm", argument_names={"input": "self"})
        ),
        "grad_output": tensor(*sizes.reduced_shape, layout=layout),
    }


register(
    "diopiNormBackward",
    templates=(*SLOPES, *of_further_orders(), *along_untried(SLOPES)),
    derive=_gradient,
    non_discriminating={"zero-in-order-0": "a count has no slope"},
)

# Vectors of length one


def scaled(
    label: str,
    shape: tuple[int, ...],
    axis: int = 1,
    *,
    order: float = 2,
    eps: float = 1e-12,
    domain: Domain | None = None,
    factors: Sequence[float] = (1,),
    layout: Layout = contiguous,
    exact: bool = False,
    **fields: Any,
) -> CaseTemplate[Any]:
    """Vectors along `axis`, scaled by their norm of an order; along axis 0 they are multiplied by `factors` in turn."""
    column = np.resize(factors, (*shape[:1], *[1] * (len(shape) - 1)))
    arguments: Arguments = {
        "_drawn": tensor(*shape, domain=domain, dtype=F64),
        "input": tensor(*shape, layout=layout, compute=lambda values: values["_drawn"] * column),
        "p": order,
        "axis": axis,
        "eps": eps,
        "grad_output": tensor(*shape, domain=integer_values(-9, 9) if exact else None, layout=layout),
    }
    return CaseTemplate(label, shape, arguments, result_layout=layout, exact=exact, **fields)


def _adding_up_to_64(rng: Generator, number: int) -> NDArray[Any]:
    """33 elements whose moduli add up to 64."""
    return np.asarray(rng.permutation([1.0, 1.0, *[2.0] * 31]) * rng.choice([-1.0, 1.0], 33))


def _distinct_moduli(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    return np.asarray(rng.permutation(np.arange(1, count + 1)) / 4 * rng.choice([-1.0, 1.0], count))


OF_LENGTH_64 = rows(33, _adding_up_to_64)

SHORT_AND_LONG = (4, 0.125)
"""Factors that put every norm clearly above or below 1."""

SCALED = (
    scaled("rows", (4, 5), dtypes=floating, smoke=True),
    scaled("columns", (4, 5), 0, dtypes=floating),
    scaled("last-axis", (2, 3, 4), -1),
    scaled("middle-axis", (2, 5, 3), dtypes=(F32, F16)),
    scaled("rank1", (9,), -1),
    scaled("scalar", (), 0, eps=4.0),
    scaled("scalar-last-axis", (), -1, order=1, eps=4.0),
    scaled("long", (2, 517), dtypes=floating),
    scaled("strided", (3, 4, 2), layout=strided),
    scaled("transposed", (3, 4, 2), 2, layout=transposed),
    scaled("channels-last", (2, 3, 4, 2), layout=channels_last),
    scaled("empty", (0, 3)),
    scaled("length-one-axis", (5, 1), domain=FROM_ONE, order=3),
    scaled("eps", (6, 5), eps=1.0, factors=SHORT_AND_LONG, dtypes=floating),
    scaled("eps-order-1", (6, 5), order=1, eps=1.0, factors=(4, 0.0625)),
    scaled("negative-eps", (4, 5), eps=-3.0, factors=SHORT_AND_LONG),
    scaled("exact", (5, 33), order=1, domain=OF_LENGTH_64, dtypes=floating, exact=True),
    scaled("exact-unit", (5, 33), order=1, domain=OF_LENGTH_64, factors=(2.0**-6,), exact=True),
    scaled("exact-eps", (5, 33), order=1, eps=64.0, domain=OF_LENGTH_64, exact=True),
    *(scaled(f"zero-in-order-{p}", (7, 3), order=p, domain=FEW_ZEROS) for p in (0.5, 1)),
    scaled("large", (4, 8), domain=LARGE, dtypes=half),
    scaled("infinity", (4, 5), order=inf, domain=_distinct_moduli, dtypes=floating),
    scaled("minus-infinity", (4, 5), order=-inf, domain=_distinct_moduli),
    *(scaled(f"order-{p}", (4, 6), order=p, domain=FROM_ONE, dtypes=(F32, BF16)) for p in ORDERS),
    scaled("nan", (3, 4), domain=with_first(nan)),
)

SCALED_FURTHER = (
    *(scaled(f"order-{p}", (4, 6), order=p, domain=FROM_ONE, dtypes=(F32, F16)) for p in FURTHER_ORDERS),
    *(
        scaled(label, shape, axis, order=2 + axis % 2)
        for label, shape, axis in untested_axes(
            {(len(template.sizes), template.argument("axis")) for template in SCALED}
        )
    ),
)

PARALLEL = tensor(
    40, 2, compute=lambda values: 1000 * np.where(np.arange(40) % 2, values["input"].T, values["_drawn"].T[::-1]).T
)
"""Gradients of which every other one is along its vector, and so nothing is left of it."""

NOT_BELOW_EPS = {"exact-eps": "the norm just reaches eps"}
ONE_ELEMENT = {"length-one-axis": "one element is scaled to 1 or -1, whatever it is"}


register(
    "diopiNormalize",
    templates=(
        *SCALED,
        scaled("zeros", (3, 4), factors=(1, 0)),
        scaled("zeros-zero-eps", (3, 4), eps=0.0, factors=(1, 0)),
        scaled("zeros-negative-eps", (3, 4), eps=-1.0, factors=(1, 0)),
        *SCALED_FURTHER,
    ),
    non_discriminating=NOT_BELOW_EPS,
)

register(
    "diopiNormalizeBackward",
    templates=(
        *SCALED,
        scaled("zeros", (3, 4), eps=0.25, factors=(4, 0)),
        scaled("tied", (4, 6), order=inf, domain=fixed_values(LARGEST_TIED)),
        scaled("parallel", (40, 2), dtypes=(F32, F64)).replace(arguments={"grad_output": PARALLEL}),
        *SCALED_FURTHER,
    ),
    non_discriminating={**NOT_BELOW_EPS, **ONE_ELEMENT},
)
