"""Cases of the overlaps of all pairs, or of corresponding pairs, of upright boxes, rotated boxes and quadrilaterals.

`mode` 0 divides the area of an intersection by the area of the union, 1 by the area of the first box ("foreground").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np

from diopi_test.cases.domains import Domain, alternating_rows, choice, integer_values, uniform
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.mmcv_box.shapes import (
    ANGLES,
    QUADRILATERALS,
    boxes,
    convex_quadrilaterals,
    diamonds,
    rotated_boxes,
)
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


def overlap_template(
    label: str,
    n: int = 6,
    m: int = 7,
    domain: Domain | Sequence[Sequence[float]] | None = None,
    second_domain: Domain | Sequence[Sequence[float]] | None = None,
    *,
    columns: int,
    default_domain: Domain,
    mode: int = 0,
    offset: int = 0,
    aligned: bool = False,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of the overlaps of two sets of boxes.

    Args:
        label: The label of the cases.
        n: The number of boxes in the first set.
        m: The number of boxes in the second set.
        domain: The domain of the first set, or a list of boxes; None for `default_domain`.
        second_domain: The domain of the second set, or a list of boxes; None for the source of the first set.
        columns: The number of numbers that describe a box.
        default_domain: The domain of sets without a domain.
        mode: The argument `mode`: 0 for the union, 1 for the area of the first box as divisor.
        offset: The argument `offset`.
        aligned: Whether to compute only the overlaps of corresponding boxes.
        **fields: Further fields of the template. `layout` is the layout of the boxes.

    Returns:
        The template.
    """
    layout, first_domain = fields.get("layout", contiguous), domain or default_domain

    def boxes_from(rows: int, source: Any) -> TensorTemplate:
        """Return a tensor of boxes from a domain or a list."""
        if callable(source):
            return tensor(rows, columns, domain=source, layout=layout)
        return tensor(len(source), columns, compute=lambda values: source)

    arguments: Arguments = {
        "bboxes1": boxes_from(n, first_domain),
        "bboxes2": boxes_from(n if aligned else m, second_domain or first_domain),
        "mode": mode,
        "offset": offset,
        "aligned": aligned,
    }
    result = contiguous if aligned or layout is contiguous else layout
    return CaseTemplate(label, arguments=arguments, result_layout=result).replace(**fields)


upright = partial(overlap_template, columns=4, default_domain=boxes(uniform(0, 5), uniform(1, 6)))
"""Return a template of upright boxes (x1, y1, x2, y2); see `overlap_template`."""

SQUARES = [[1, 1, 5, 5], [3, 1, 7, 5], [-1, -3, 3, 5], [9, 9, 13, 11]]
"""Boxes whose areas are powers of two."""

PARTS = [[1, 1, 3, 5], [1, 1, 5, 5], [3, 3, 5, 5], [9, 9, 11, 11]]
"""Boxes whose intersections with `SQUARES` have areas that are powers of two."""

UPRIGHT = (
    upright("plain", **SMOKE_IN_ALL_DTYPES),
    upright("offset", offset=1, **SMOKE_IN_ALL_DTYPES),
    upright("foreground", mode=1, dtypes=DtypeSelection.all),
    upright("foreground-offset", mode=1, offset=1),
    upright("aligned", 12, aligned=True, dtypes=DtypeSelection.all),
    upright("aligned-foreground-offset", 12, mode=1, offset=1, aligned=True),
    upright("strided", 4, 5, layout=strided, dtypes=DtypeSelection.all),
    upright("transposed", 5, 3, layout=transposed),
    upright("small", 8, 7, boxes(uniform(0, 0.5), uniform(0.01, 0.5)), dtypes=DtypeSelection.all),
    upright("small-offset", 8, 7, boxes(uniform(0, 0.5), uniform(0.01, 0.5)), offset=1),
    upright("far", 8, 7, boxes(uniform(500, 510), uniform(2, 16))),
    upright("apart", 9, 8, boxes(uniform(0, 16), uniform(1, 6))),
    upright("whole", 7, 9, boxes(integer_values(-2, 4), integer_values(1, 6)), dtypes=DtypeSelection.all),
    upright("one-each", 1, 1, boxes(integer_values(0, 1), integer_values(3, 5))),
    upright("no-boxes", 0, 5),
    upright("no-others", 5, 0),
    upright("no-pairs", 0, aligned=True),
    upright("large", 70, 90),
    upright("many", 311, 227, boxes(uniform(0, 60), uniform(1, 40)), offset=1, large=True),
    upright("aligned", 70_001, aligned=True, large=True),
    upright("exact", domain=SQUARES, second_domain=PARTS, mode=1, exact=True, dtypes=DtypeSelection.all),
)
"""The templates of `diopiBboxOverlapsMmcv`; `offset` is added to each side."""

register("diopiBboxOverlapsMmcv", templates=UPRIGHT)
SPREAD = uniform(0, 120)
"""Positions at which most pairs of boxes do not overlap, as in images."""

rotated = partial(overlap_template, columns=5, default_domain=rotated_boxes(uniform(0, 5), uniform(1, 6), ANGLES))
"""Return a template of rotated boxes (x, y, width, height, angle in radians); see `overlap_template`."""

INNER = rotated_boxes(uniform(-0.1, 0.1), uniform(2, 2.5), ANGLES)
"""Boxes that lie within the boxes of `OUTER`."""

OUTER = rotated_boxes(uniform(-0.1, 0.1), uniform(4, 4.5), ANGLES)
"""Boxes that contain the boxes of `INNER`."""

AROUND = rotated_boxes(uniform(-0.1, 0.1), uniform(7, 7.5), ANGLES)
"""Boxes that contain the boxes of `OUTER`: the intersection is the whole inner box, so that rounding has little effect.
"""

ROTATED = (
    rotated("plain", **SMOKE_IN_ALL_DTYPES),
    rotated("foreground", mode=1, dtypes=DtypeSelection.all),
    rotated("aligned", 12, aligned=True, **SMOKE_IN_ALL_DTYPES),
    rotated("aligned-foreground", 12, mode=1, aligned=True),
    rotated("strided", 4, 5, layout=strided, dtypes=DtypeSelection.all),
    rotated("transposed", 5, 3, layout=transposed),
    rotated("not-turned", 7, 6, rotated_boxes(uniform(0, 5), uniform(1, 6), choice([0.0]))),
    rotated(
        "quarter-turns", 7, 6, rotated_boxes(uniform(0, 5), uniform(1, 6), choice([0.0, np.pi / 2, np.pi, -np.pi / 2]))
    ),
    rotated("several-turns", 6, 5, rotated_boxes(uniform(0, 5), uniform(1, 6), uniform(-40, 40))),
    rotated(
        "slender",
        7,
        6,
        rotated_boxes(uniform(0, 4), choice([9.0, 0.25, 12.5, 0.375]), ANGLES),
        dtypes=DtypeSelection.all,
    ),
    rotated("far", 6, 7, rotated_boxes(uniform(1000, 1010), uniform(4, 16), ANGLES), dtypes=DtypeSelection.all),
    rotated(
        "far-slender",
        6,
        7,
        rotated_boxes(uniform(1000, 1004), choice([15.0, 4.0, 12.5, 3.5]), ANGLES),
        dtypes=DtypeSelection.all,
    ),
    rotated("small", 6, 7, rotated_boxes(uniform(0, 0.01), uniform(0.01, 0.03), ANGLES)),
    rotated("inside", 6, 5, alternating_rows(5, INNER, AROUND), second_domain=OUTER, mode=1, dtypes=DtypeSelection.all),
    rotated("apart", 9, 8, rotated_boxes(uniform(0, 20), uniform(2, 7), ANGLES)),
    rotated("without-area", 6, 7, rotated_boxes(uniform(0, 5), choice([0.0, 3.0, 4.5, 2.0]), ANGLES)),
    rotated("one-each", 1, 1, rotated_boxes(uniform(0, 1), uniform(2, 4), ANGLES)),
    rotated("no-boxes", 0, 5),
    rotated("no-others", 5, 0),
    rotated("large", 40, 55),
    rotated("many", 211, 227, rotated_boxes(SPREAD, uniform(2, 16), ANGLES), large=True),
    rotated("aligned", 13_109, aligned=True, large=True),
)
"""The templates of `diopiBoxIouRotatedMmcv`. Equal, parallel and slender boxes reveal unstable algorithms."""

register("diopiBoxIouRotatedMmcv", templates=ROTATED)


INNER_AND_OUTER_DIAMONDS = alternating_rows(8, diamonds(1.0, 1.2), diamonds(3.0, 3.3))
"""Small diamonds, and large diamonds around them."""


quadrilateral = partial(overlap_template, columns=8, default_domain=QUADRILATERALS)
"""Return a template of quadrilaterals (four corners x, y); see `overlap_template`."""

QUADRILATERAL = (
    quadrilateral("plain", **SMOKE_IN_ALL_DTYPES),
    quadrilateral("foreground", mode=1, dtypes=DtypeSelection.all),
    quadrilateral("aligned", 12, aligned=True, **SMOKE_IN_ALL_DTYPES),
    quadrilateral("aligned-foreground", 12, mode=1, aligned=True),
    quadrilateral("strided", 4, 5, layout=strided, dtypes=DtypeSelection.all),
    quadrilateral("transposed", 5, 3, layout=transposed),
    quadrilateral(
        "clockwise",
        6,
        5,
        convex_quadrilaterals(uniform(0, 4), uniform(1, 4), clockwise=True),
        dtypes=DtypeSelection.all,
    ),
    quadrilateral(
        "either-way",
        6,
        5,
        convex_quadrilaterals(uniform(0, 4), uniform(1, 4), clockwise=True),
        second_domain=QUADRILATERALS,
    ),
    quadrilateral("slender", 7, 6, convex_quadrilaterals(uniform(0, 4), choice([7.0, 0.25, 9.5, 0.375]))),
    quadrilateral("far", 6, 7, convex_quadrilaterals(uniform(1000, 1010), uniform(4, 16)), dtypes=DtypeSelection.all),
    quadrilateral("small", 6, 7, convex_quadrilaterals(uniform(0, 0.01), uniform(0.01, 0.03))),
    quadrilateral(
        "inside", 6, 5, INNER_AND_OUTER_DIAMONDS, second_domain=diamonds(1.8, 2.0), mode=1, dtypes=DtypeSelection.all
    ),
    quadrilateral("apart", 9, 8, convex_quadrilaterals(uniform(0, 20), uniform(2, 6))),
    quadrilateral("one-each", 1, 1, convex_quadrilaterals(uniform(0, 0.5), uniform(2, 3))),
    quadrilateral("no-boxes", 0, 5),
    quadrilateral("no-others", 5, 0),
    quadrilateral("large", 40, 55),
    quadrilateral("many", 211, 227, convex_quadrilaterals(SPREAD, uniform(2, 12)), large=True),
    quadrilateral("aligned", 8209, aligned=True, large=True),
)
"""The templates of `diopiBoxIouQuadriMmcv`."""

register("diopiBoxIouQuadriMmcv", templates=QUADRILATERAL)
