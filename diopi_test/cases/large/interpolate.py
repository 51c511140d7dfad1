"""Large cases of resizing and of sampling at points."""

from diopi_proto.types import Dtype
from diopi_test.cases.domains import any_value, normal
from diopi_test.cases.interpolate import in_every_mode, resize, resize_cases, sampling
from diopi_test.cases.layouts import channels_last
from diopi_test.cases.model import LARGE, cases_for
from diopi_test.cases.template import register, same_layout

HALF = (Dtype.float16,)

NEAREST = (
    resize("doubled", (2, 37, 29, 31), (58, 62)),
    resize("many-images", (263, 257, 3, 2), (3, 1)),
    resize("line", (3, 37, 1031), (4_124,)),
    resize("half-volume", (2, 7, 5, 13, 17), (15, 26, 17), dtypes=HALF),
)
"""Each size is a multiple of the other, so that rounding does not affect which element is nearest."""

LINEAR = (
    resize("up", (2, 13, 29, 31), (67, 59)),
    resize("down", (3, 37, 67, 61), (31, 23), **same_layout(channels_last)),
    resize("line", (3, 5, 4097), (5_003,)),
    resize("half-volume", (2, 3, 7, 13, 17), (11, 31, 37), dtypes=HALF),
)
cases_for("diopiUpsampleNearest", level=LARGE)(lambda prototype: resize_cases(prototype, NEAREST, any_value))
cases_for("diopiUpsampleNearestBackward", level=LARGE)(lambda prototype: resize_cases(prototype, NEAREST, normal()))
cases_for("diopiUpsampleLinear", "diopiUpsampleLinearBackward", level=LARGE)(
    lambda prototype: resize_cases(
        prototype, [variant for template in LINEAR for variant in in_every_mode(template)], normal(), typed=True
    )
)

register(
    "diopiGridSample",
    templates=(
        *sampling("images", (3, 37, 29, 31), (31, 23)),
        *sampling("half-volume", (2, 23, 5, 7, 11), (7, 11, 13), dtypes=HALF),
    ),
    level=LARGE,
)
