"""Large cases of reductions and running sums: long axes, many rows, and many axes."""

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain
from diopi_test.cases.large.makers import HUGE_ROWS, PlacedShape, grow, register_grown
from diopi_test.cases.layouts import strides, transposed
from diopi_test.cases.template import tensor

FAR = strides(5003, 1)
FAR_ROWS = PlacedShape((263, 4097), FAR)
SIX_AXES = (7, 3, 11, 5, 13, 17)

ALONG_SEVERAL_AXES = (
    grow("rows", "long-rows", input=(5, 65_537), dim=(1,)),
    grow("rows", "many-rows", input=(70_001, 3), dim=(1,)),
    grow("rows", "long-columns", input=(32_003, 7), dim=(0,)),
    grow("rows", "long-rows-added", input=(17, 50_021), dim=(0,)),
    grow("rows", "six-axes", input=SIX_AXES, dim=(1, 3, 4)),
    grow("rows", "half-far-apart", Dtype.float16, input=FAR_ROWS, dim=(1,)),
)
"""Calls along several axes: in one case sums as long as an axis can be, in another as many results as rows."""

register_grown(
    "diopiSum",
    "diopiMean",
    cases=[
        *ALONG_SEVERAL_AXES,
        grow("all", "all", input=(263, 257), dim=()),
        grow("rows", "huge", input=HUGE_ROWS, dim=(1,)),
    ],
)
register_grown("diopiStd", cases=ALONG_SEVERAL_AXES)

ALONG_ONE_AXIS = (
    grow("rows", "long-rows", input=(5, 65_537)),
    grow("rows", "many-rows", input=(70_001, 3)),
    grow("rows", "long-columns", input=(32_003, 7), dim=0),
    grow("rows", "long-rows-compared", input=(17, 50_021), dim=0),
    grow("rows", "five-axes", input=(11, 7, 67, 3, 17), dim=2),
)
"""Calls along one axis; not in float16, which has too few numbers for all to differ."""


def _one_in(often: float, seldom: float, rows: int) -> Domain:
    """Return a domain with `seldom` at one random place of every `rows` elements, and `often` elsewhere."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return np.where(rng.random(count) * rows < 1, seldom, often)

    return draw


def _peaks(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw numbers near 0, and a few of either sign far from it."""
    return np.where(
        rng.random(count) < 1 / 512,
        rng.choice([-1.0, 1.0], count) * rng.uniform(8, 2000, count),
        rng.normal(0, 1, count),
    )


register_grown(
    "diopiMax",
    "diopiMin",
    "diopiArgmax",
    "diopiArgmin",
    cases=[
        *ALONG_ONE_AXIS,
        grow("rows", "half-far-apart", Dtype.float16, input=tensor(263, 4097, domain=_peaks, layout=FAR)),
    ],
)
TRUTH_VALUES = (
    ("long-rows", (67, 4097), 1),
    ("many-rows", (70_001, 3), 1),
    ("long-columns", (32_003, 7), 0),
    ("five-axes", (11, 7, 67, 3, 17), 2),
)
for function, often, seldom in (("diopiAny", 0.0, 0.25), ("diopiAll", 0.25, 0.0)):
    register_grown(
        function,
        cases=[
            *(
                grow("rows", label, input=tensor(*shape, domain=_one_in(often, seldom, shape[dim])), dim=dim)
                for label, shape, dim in TRUTH_VALUES
            ),
            grow(
                "rows",
                "half-far-apart",
                Dtype.float16,
                input=tensor(263, 4097, domain=_one_in(often, seldom, 4097), layout=FAR),
            ),
        ],
    )
register_grown(
    "diopiAmax",
    cases=[
        grow("rows", "long-rows", self=(5, 65_537)),
        grow("rows", "many-rows", self=(70_001, 3)),
        grow("rows", "six-axes", self=SIX_AXES, dim=(1, 3, 4)),
        grow("rows", "half-far-apart", Dtype.float16, self=tensor(263, 4097, domain=_peaks, layout=FAR)),
    ],
)
register_grown(
    "diopiMaxAll",
    "diopiMinAll",
    cases=[
        grow("matrix", "all", input=(263, 257)),
        grow("matrix", "six-axes", input=PlacedShape(SIX_AXES, transposed)),
        grow("matrix", "half-far-apart", Dtype.float16, input=PlacedShape((70_001,), strides(31))),
    ],
)
register_grown(
    "diopiProd",
    cases=[
        grow("rows", "many-rows", input=(70_001, 3)),
        grow("rows", "long-rows", input=(257, 263)),
        grow("rows", "long-columns", input=(131, 517), dim=0),
    ],
)
RUNNING = (
    ("long-rows", (5, 32_003), 1, None),
    ("many-rows", (70_001, 3), 1, None),
    ("middle", (7, 1031, 11), 1, None),
    ("half", (67, 1031), 1, Dtype.float16),
)
register_grown(
    "diopiCumsum", cases=[grow("rows", label, dtype, input=shape, dim=dim) for label, shape, dim, dtype in RUNNING]
)
register_grown(
    "diopiCumsumBackward",
    cases=[grow("rows", label, dtype, grad_output=shape, dim=dim) for label, shape, dim, dtype in RUNNING],
)
