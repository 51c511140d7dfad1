"""Cases of the overlaps of upright boxes, rotated boxes and quadrilaterals: of all pairs, or of corresponding pairs.

An overlap is the area of an intersection divided by another area: by the area of the union (`mode` 0) or by the area of
the first box (`mode` 1, "foreground" in labels).

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`).
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
    box_domain,
    diamond_domain,
    quadrilateral_domain,
    rotated_box_domain,
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
    first_count: int = 6,
    second_count: int = 7,
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
        label: The label of the cases without the element type.
        first_count: The number of boxes in the first set.
        second_count: The number of boxes in the second set.
        domain: The domain of the first set, or a list of boxes; None for `default_domain`.
        second_domain: The domain of the second set, or a list of boxes; None for the source of the first set.
        columns: The number of numbers that describe a box.
        default_domain: The domain of sets without a domain.
        mode: The argument `mode`: 0 for the union, 1 for the area of the first box as divisor.
        offset: The argument `offset`, a length that is added to each side of a box.
        aligned: Whether to compute only the overlaps of corresponding boxes.
        **fields: Further fields of the template. `layout` is the layout of the boxes.

    Returns:
        The template.
    """
    layout, first_domain = fields.get("layout", contiguous), domain or default_domain

    def boxes_from(rows: int, source: Any) -> TensorTemplate:
        """Return a tensor of boxes.

        Args:
            rows: The number of boxes if they are drawn from a domain.
            source: A domain, or a list of boxes.

        Returns:
            The tensor.
        """
        if callable(source):
            return tensor(rows, columns, domain=source, layout=layout)
        return tensor(len(source), columns, compute=lambda values: source)

    arguments: Arguments = {
        "bboxes1": boxes_from(first_count, first_domain),
        "bboxes2": boxes_from(first_count if aligned else second_count, second_domain or first_domain),
        "mode": mode,
        "offset": offset,
        "aligned": aligned,
    }
    result = contiguous if aligned or layout is contiguous else layout
    return CaseTemplate(label, arguments=arguments, result_layout=result).replace(**fields)


upright_template = partial(overlap_template, columns=4, default_domain=box_domain(uniform(0, 5), uniform(1, 6)))
"""Return an `overlap_template` of upright boxes (x1, y1, x2, y2)."""

SQUARES = [[1, 1, 5, 5], [3, 1, 7, 5], [-1, -3, 3, 5], [9, 9, 13, 11]]
"""Boxes whose areas are powers of two, so that quotients by the area of the first box are exact."""

PARTIAL_SQUARES = [[1, 1, 3, 5], [1, 1, 5, 5], [3, 3, 5, 5], [9, 9, 11, 11]]
"""Boxes whose intersections with `SQUARES` have areas that are powers of two."""

UPRIGHT_TEMPLATES = (
    upright_template("plain", **SMOKE_IN_ALL_DTYPES),
    upright_template("offset", offset=1, **SMOKE_IN_ALL_DTYPES),
    upright_template("foreground", mode=1, dtypes=DtypeSelection.all),
    upright_template("foreground-offset", mode=1, offset=1),
    upright_template("aligned", 12, aligned=True, dtypes=DtypeSelection.all),
    upright_template("aligned-foreground-offset", 12, mode=1, offset=1, aligned=True),
    upright_template("strided", 4, 5, layout=strided, dtypes=DtypeSelection.all),
    upright_template("transposed", 5, 3, layout=transposed),
    upright_template("small", 8, 7, box_domain(uniform(0, 0.5), uniform(0.01, 0.5)), dtypes=DtypeSelection.all),
    upright_template("small-offset", 8, 7, box_domain(uniform(0, 0.5), uniform(0.01, 0.5)), offset=1),
    upright_template("far", 8, 7, box_domain(uniform(500, 510), uniform(2, 16))),
    upright_template("apart", 9, 8, box_domain(uniform(0, 16), uniform(1, 6))),
    upright_template("whole", 7, 9, box_domain(integer_values(-2, 4), integer_values(1, 6)), dtypes=DtypeSelection.all),
    upright_template("one-each", 1, 1, box_domain(integer_values(0, 1), integer_values(3, 5))),
    upright_template("no-boxes", 0, 5),
    upright_template("no-others", 5, 0),
    upright_template("no-pairs", 0, aligned=True),
    upright_template("large", 70, 90),
    upright_template("many", 311, 227, box_domain(uniform(0, 60), uniform(1, 40)), offset=1, large=True),
    upright_template("aligned", 70_001, aligned=True, large=True),
    upright_template(
        "exact", domain=SQUARES, second_domain=PARTIAL_SQUARES, mode=1, exact=True, dtypes=DtypeSelection.all
    ),
)
"""The templates of `diopiBboxOverlapsMmcv`."""

register("diopiBboxOverlapsMmcv", templates=UPRIGHT_TEMPLATES)
SPREAD_COORDINATES = uniform(0, 120)
"""A domain of coordinates at which most pairs of boxes do not overlap, as in images."""

rotated_template = partial(
    overlap_template, columns=5, default_domain=rotated_box_domain(uniform(0, 5), uniform(1, 6), ANGLES)
)
"""Return an `overlap_template` of rotated boxes (x, y, width, height, angle in radians)."""

INNER_BOXES = rotated_box_domain(uniform(-0.1, 0.1), uniform(2, 2.5), ANGLES)
"""A domain of boxes that lie within the boxes of `OUTER_BOXES`."""

OUTER_BOXES = rotated_box_domain(uniform(-0.1, 0.1), uniform(4, 4.5), ANGLES)
"""A domain of boxes that contain the boxes of `INNER_BOXES`."""

SURROUNDING_BOXES = rotated_box_domain(uniform(-0.1, 0.1), uniform(7, 7.5), ANGLES)
"""A domain of boxes that contain the boxes of `OUTER_BOXES`.

The intersection is always the whole inner box, so that rounding has little effect.
"""

ROTATED_TEMPLATES = (
    rotated_template("plain", **SMOKE_IN_ALL_DTYPES),
    rotated_template("foreground", mode=1, dtypes=DtypeSelection.all),
    rotated_template("aligned", 12, aligned=True, **SMOKE_IN_ALL_DTYPES),
    rotated_template("aligned-foreground", 12, mode=1, aligned=True),
    rotated_template("strided", 4, 5, layout=strided, dtypes=DtypeSelection.all),
    rotated_template("transposed", 5, 3, layout=transposed),
    rotated_template("not-turned", 7, 6, rotated_box_domain(uniform(0, 5), uniform(1, 6), choice([0.0]))),
    rotated_template(
        "quarter-turns",
        7,
        6,
        rotated_box_domain(uniform(0, 5), uniform(1, 6), choice([0.0, np.pi / 2, np.pi, -np.pi / 2])),
    ),
    rotated_template("several-turns", 6, 5, rotated_box_domain(uniform(0, 5), uniform(1, 6), uniform(-40, 40))),
    rotated_template(
        "slender",
        7,
        6,
        rotated_box_domain(uniform(0, 4), choice([9.0, 0.25, 12.5, 0.375]), ANGLES),
        dtypes=DtypeSelection.all,
    ),
    rotated_template(
        "far", 6, 7, rotated_box_domain(uniform(1000, 1010), uniform(4, 16), ANGLES), dtypes=DtypeSelection.all
    ),
    rotated_template(
        "far-slender",
        6,
        7,
        rotated_box_domain(uniform(1000, 1004), choice([15.0, 4.0, 12.5, 3.5]), ANGLES),
        dtypes=DtypeSelection.all,
    ),
    rotated_template("small", 6, 7, rotated_box_domain(uniform(0, 0.01), uniform(0.01, 0.03), ANGLES)),
    rotated_template(
        "inside",
        6,
        5,
        alternating_rows(5, INNER_BOXES, SURROUNDING_BOXES),
        second_domain=OUTER_BOXES,
        mode=1,
        dtypes=DtypeSelection.all,
    ),
    rotated_template("apart", 9, 8, rotated_box_domain(uniform(0, 20), uniform(2, 7), ANGLES)),
    rotated_template("without-area", 6, 7, rotated_box_domain(uniform(0, 5), choice([0.0, 3.0, 4.5, 2.0]), ANGLES)),
    rotated_template("one-each", 1, 1, rotated_box_domain(uniform(0, 1), uniform(2, 4), ANGLES)),
    rotated_template("no-boxes", 0, 5),
    rotated_template("no-others", 5, 0),
    rotated_template("large", 40, 55),
    rotated_template("many", 211, 227, rotated_box_domain(SPREAD_COORDINATES, uniform(2, 16), ANGLES), large=True),
    rotated_template("aligned", 13_109, aligned=True, large=True),
)
"""The templates of `diopiBoxIouRotatedMmcv`. Equal, parallel and slender boxes reveal unstable algorithms."""

register("diopiBoxIouRotatedMmcv", templates=ROTATED_TEMPLATES)


INNER_AND_OUTER_DIAMONDS = alternating_rows(8, diamond_domain(1.0, 1.2), diamond_domain(3.0, 3.3))
"""A domain of small diamonds (squares on a corner), and of large diamonds around them, in rotation."""


quadrilateral_template = partial(overlap_template, columns=8, default_domain=QUADRILATERALS)
"""Return an `overlap_template` of quadrilaterals (x1, y1, …, x4, y4)."""

QUADRILATERAL_TEMPLATES = (
    quadrilateral_template("plain", **SMOKE_IN_ALL_DTYPES),
    quadrilateral_template("foreground", mode=1, dtypes=DtypeSelection.all),
    quadrilateral_template("aligned", 12, aligned=True, **SMOKE_IN_ALL_DTYPES),
    quadrilateral_template("aligned-foreground", 12, mode=1, aligned=True),
    quadrilateral_template("strided", 4, 5, layout=strided, dtypes=DtypeSelection.all),
    quadrilateral_template("transposed", 5, 3, layout=transposed),
    quadrilateral_template(
        "clockwise",
        6,
        5,
        quadrilateral_domain(uniform(0, 4), uniform(1, 4), clockwise=True),
        dtypes=DtypeSelection.all,
    ),
    quadrilateral_template(
        "either-way",
        6,
        5,
        quadrilateral_domain(uniform(0, 4), uniform(1, 4), clockwise=True),
        second_domain=QUADRILATERALS,
    ),
    quadrilateral_template("slender", 7, 6, quadrilateral_domain(uniform(0, 4), choice([7.0, 0.25, 9.5, 0.375]))),
    quadrilateral_template(
        "far", 6, 7, quadrilateral_domain(uniform(1000, 1010), uniform(4, 16)), dtypes=DtypeSelection.all
    ),
    quadrilateral_template("small", 6, 7, quadrilateral_domain(uniform(0, 0.01), uniform(0.01, 0.03))),
    quadrilateral_template(
        "inside",
        6,
        5,
        INNER_AND_OUTER_DIAMONDS,
        second_domain=diamond_domain(1.8, 2.0),
        mode=1,
        dtypes=DtypeSelection.all,
    ),
    quadrilateral_template("apart", 9, 8, quadrilateral_domain(uniform(0, 20), uniform(2, 6))),
    quadrilateral_template("one-each", 1, 1, quadrilateral_domain(uniform(0, 0.5), uniform(2, 3))),
    quadrilateral_template("no-boxes", 0, 5),
    quadrilateral_template("no-others", 5, 0),
    quadrilateral_template("large", 40, 55),
    quadrilateral_template("many", 211, 227, quadrilateral_domain(SPREAD_COORDINATES, uniform(2, 12)), large=True),
    quadrilateral_template("aligned", 8209, aligned=True, large=True),
)
"""The templates of `diopiBoxIouQuadriMmcv`."""

register("diopiBoxIouQuadriMmcv", templates=QUADRILATERAL_TEMPLATES)
