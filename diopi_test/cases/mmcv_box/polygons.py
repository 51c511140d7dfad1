"""Cases of points in polygons, and of convex hulls of point sets and their overlaps with polygons.

A point set consists of nine points. A template describes cases that differ only in their element type
(`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). A case does not pass arguments whose names start
with `_`; it computes other arguments from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.case import Values
from diopi_test.cases.domains import Domain, choice, integer_values, uniform
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.mmcv_box.shapes import F64, QUADRILATERALS, column_domain, diamond_domain, quadrilateral_domain
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    register,
    tensor,
)

Array = NDArray[Any]
"""An array of coordinates."""
NEAR_EDGE = 0.01
"""The minimum distance of a point from an edge, in the units of the coordinates.

Rounding may move points that are nearer to an edge to the other side.
"""


def _select_off_edges(values: Values) -> Array:
    """Return the points of the argument `_points` that are farther than `NEAR_EDGE` from all edges of `_polygons`."""
    ends = values["_polygons"].reshape(-1, 4, 2)
    starts, points = np.roll(ends, 1, 1), values["_points"][:, np.newaxis, np.newaxis]
    edges = ends - starts
    projections = np.clip(((points - starts) * edges).sum(-1) / np.square(edges).sum(-1), 0, 1)
    distances = np.linalg.norm(points - starts - projections[..., np.newaxis] * edges, axis=-1)
    return np.asarray(values["_points"][distances.min((1, 2), initial=np.inf) > NEAR_EDGE])


COORDINATES = uniform(-1, 5)
"""The domain of coordinates in and around the polygons."""


def containment_template(
    label: str,
    points: int = 12,
    polygons: int = 5,
    coordinates: Domain = COORDINATES,
    shapes: Domain = QUADRILATERALS,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of `diopiPointsInPolygonsMmcv` with points that are not near an edge.

    Args:
        label: The label of the cases without the element type.
        points: The number of points.
        polygons: The number of polygons.
        coordinates: The domain of the coordinates of points.
        shapes: The domain of polygons with four corners.
        **fields: Further fields of the template.

    Returns:
        The template. It draws three times as many points, and passes the first points that are not near an edge.
    """
    layout = fields.get("layout", contiguous)
    arguments: Arguments = {
        "_points": tensor(3 * points, 2, domain=coordinates, dtype=F64),
        "_polygons": tensor(polygons, 8, domain=shapes, dtype=F64),
        "points": tensor(points, 2, layout=layout, compute=lambda values: _select_off_edges(values)[:points]),
        "polygons": tensor(polygons, 8, layout=layout, compute=lambda values: values["_polygons"]),
    }
    return CaseTemplate(label, arguments=arguments, result_layout=layout).replace(**fields)


LEVEL_POINTS = [[0, 0], [2, 0], [5, 0], [0, 2], [2, 2], [3, 2], [0, -2], [2, -2], [2.5, -1], [-2, 1]]
"""Points with the same y coordinate as a corner. A horizontal ray from such a point meets two edges in that corner."""

LEVEL_POLYGONS = [[4, 0, 2.5, 2, 1, 0, 2.5, -2], [1, -1, 4, -1, 4, 2, 1, 2.5], [-1, 1, -1, 4, -4, 4, -4, -1]]
"""Polygons that have a corner or an edge at the height of `LEVEL_POINTS`, while no point is on an edge."""

CONTAINMENT_TEMPLATES = (
    containment_template("plain", **SMOKE_IN_ALL_DTYPES),
    containment_template(
        "clockwise",
        11,
        6,
        shapes=quadrilateral_domain(uniform(0, 4), uniform(1, 4), clockwise=True),
        dtypes=DtypeSelection.all,
    ),
    containment_template("strided", 7, 4, layout=strided, dtypes=DtypeSelection.all),
    containment_template("transposed", 6, 5, layout=transposed, dtypes=DtypeSelection.all),
    containment_template("inside", 20, 4, uniform(1, 3), quadrilateral_domain(uniform(0, 4), uniform(2, 4))),
    containment_template("far", 15, 6, uniform(1000, 1010), quadrilateral_domain(uniform(1000, 1010), uniform(3, 5))),
    containment_template(
        "slender", 20, 6, uniform(-3, 7), quadrilateral_domain(uniform(0, 4), choice([6.0, 0.5, 7.5, 0.75]))
    ),
    containment_template("one-polygon", 30, 1),
    containment_template("one-point", 1, 12, uniform(1, 3)),
    containment_template("large", 300, 40, dtypes=DtypeSelection.all),
    containment_template("no-points", 0, 3),
    containment_template("no-polygons", 4, 0),
    containment_template(
        "many", 1009, 67, uniform(0, 30), quadrilateral_domain(uniform(0, 30), uniform(2, 12)), large=True
    ),
    CaseTemplate(
        "level",
        arguments={
            "points": tensor(10, 2, compute=lambda values: LEVEL_POINTS),
            "polygons": tensor(3, 8, compute=lambda values: LEVEL_POLYGONS),
        },
        dtypes=DtypeSelection.all,
    ),
)
"""The templates of `diopiPointsInPolygonsMmcv`."""

register("diopiPointsInPolygonsMmcv", templates=CONTAINMENT_TEMPLATES)


NEAR_COORDINATES, FAR_COORDINATES = uniform(-4, 4), uniform(1000, 1006)
"""Domains of coordinates near the origin, and far from the origin."""


def hull_template(
    label: str,
    set_count: int = 6,
    polygon_count: int = 5,
    points: Domain = NEAR_COORDINATES,
    shapes: Domain = QUADRILATERALS,
    *,
    has_polygon_per_set: bool = False,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of a function of the convex hulls of point sets.

    Args:
        label: The label of the cases without the element type.
        set_count: The number of sets of nine points.
        polygon_count: The number of quadrilaterals, unless `has_polygon_per_set` is true.
        points: The domain of the coordinates of the points.
        shapes: The domain of the quadrilaterals.
        has_polygon_per_set: Whether each set has its own quadrilateral, so that there are `set_count` quadrilaterals.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    layout = fields.get("layout", contiguous)
    arguments: Arguments = {
        "pointsets": tensor(set_count, 18, domain=points, layout=layout),
        "polygons": tensor(set_count if has_polygon_per_set else polygon_count, 8, domain=shapes, layout=layout),
    }
    return CaseTemplate(label, arguments=arguments, result_layout=layout).replace(**fields)


def _draw_at_random_positions(rng: Generator, count: int, dtype: Dtype) -> Array:
    """Return point sets with random positions, scales and orientations."""
    set_count = count // 18
    coordinates, points = rng.uniform(0, 4, (set_count, 1, 2)), rng.normal(size=(set_count, 9, 2))
    return (coordinates + points @ rng.normal(size=(set_count, 2, 2))).reshape(-1)


def _draw_on_circle(rng: Generator, count: int, dtype: Dtype) -> Array:
    """Return sets of nine points on the circle with the radius 3 around (2, 2); all are corners of the hull."""
    angles = (np.arange(9) + rng.uniform(0.1, 0.9, (count // 18, 9))) * 2 * np.pi / 9
    order = rng.permuted(np.broadcast_to(np.arange(9), angles.shape), axis=1)
    angles = np.take_along_axis(angles, order, 1)
    return (2 + 3 * np.stack([np.cos(angles), np.sin(angles)], -1)).reshape(-1)


def _draw_on_small_circle(rng: Generator, count: int, dtype: Dtype) -> Array:
    """Return sets of nine points on the circle with the radius 1 around the origin."""
    return (_draw_on_circle(rng, count, dtype) - 2) / 3


def _draw_in_triangle(rng: Generator, count: int, dtype: Dtype) -> Array:
    """Return sets of nine points: six points inside a triangle, then the three corners of the triangle."""
    weights = rng.dirichlet([2, 2, 2], (count // 18, 6))
    corners = np.array([[-3, -2], [6, -1], [1, 6]]) + rng.uniform(-1, 1, (count // 18, 3, 2))
    return np.concatenate([weights @ corners, corners], 1).reshape(-1)


def hull_templates(has_polygon_per_set: bool) -> Sequence[CaseTemplate]:
    """Return the templates that functions of point sets share.

    Args:
        has_polygon_per_set: Whether each set has its own quadrilateral.

    Returns:
        The templates.
    """
    return (
        hull_template("plain", has_polygon_per_set=has_polygon_per_set, **SMOKE_IN_ALL_DTYPES),
        hull_template(
            "off-center",
            7,
            4,
            _draw_at_random_positions,
            has_polygon_per_set=has_polygon_per_set,
            **SMOKE_IN_ALL_DTYPES,
        ),
        hull_template(
            "on-circle", 6, 5, _draw_on_circle, has_polygon_per_set=has_polygon_per_set, dtypes=DtypeSelection.all
        ),
        hull_template(
            "in-triangle", 6, 5, _draw_in_triangle, has_polygon_per_set=has_polygon_per_set, dtypes=DtypeSelection.all
        ),
        hull_template(
            "clockwise",
            5,
            4,
            shapes=quadrilateral_domain(uniform(0, 4), uniform(1, 4), clockwise=True),
            has_polygon_per_set=has_polygon_per_set,
        ),
        hull_template(
            "strided", 4, 3, has_polygon_per_set=has_polygon_per_set, layout=strided, dtypes=DtypeSelection.all
        ),
        hull_template("transposed", 5, 3, has_polygon_per_set=has_polygon_per_set, layout=transposed),
        hull_template(
            "inside",
            6,
            5,
            uniform(-0.9, 0.9),
            quadrilateral_domain(uniform(-0.3, 0.3), uniform(3, 5)),
            has_polygon_per_set=has_polygon_per_set,
        ),
        hull_template(
            "outside",
            6,
            5,
            _draw_on_circle,
            quadrilateral_domain(uniform(1.8, 2.2), uniform(0.4, 0.9)),
            has_polygon_per_set=has_polygon_per_set,
        ),
        hull_template(
            "far",
            6,
            5,
            FAR_COORDINATES,
            quadrilateral_domain(FAR_COORDINATES, uniform(1, 4)),
            has_polygon_per_set=has_polygon_per_set,
            dtypes=DtypeSelection.all,
        ),
        hull_template("one-each", 1, 1, has_polygon_per_set=has_polygon_per_set),
        hull_template("no-sets", 0, 0, has_polygon_per_set=has_polygon_per_set),
        hull_template("many", 40, 12, has_polygon_per_set=has_polygon_per_set),
    )


HULLS_IN_POLYGONS = hull_template(
    "contained", 6, 5, _draw_on_small_circle, diamond_domain(1.45, 1.5), dtypes=DtypeSelection.all
)
"""A template of hulls inside polygons that are only slightly larger, so that rounding has little effect."""

DIAMOND = np.array([[0, -1], [1, 0], [0, 1], [-1, 0], [0, 0], [0.5, 0], [0, 0.25], [-0.25, -0.5], [-0.5, 0.25]])
"""Nine points: the four corners of a diamond, which is the hull, and five points inside."""

SQUARE = np.array([[-4, -5], [4, -5], [4, 3], [-4, 3]])
"""The corners of a square with 32 times the area of `DIAMOND`."""

SCALES, CENTERS = [1, 2, 4, 0.5], [[0, 0], [3, -2], [-8, 4], [1, 1]]
"""The scales and the centers of the four copies of a shape. The scales are powers of two."""


def _scaled_copies(shape: Array, step: int) -> Array:
    """Return four copies of a shape, scaled by `SCALES` and moved to `CENTERS`.

    Args:
        shape: The points of the shape, an array (points, 2).
        step: 1, or −1 to list the points of every second copy in reverse order.

    Returns:
        An array (4, 2 · points). Each copy starts at another point.
    """
    copies = zip(SCALES, CENTERS, strict=True)
    outlines = [
        np.roll(shape, row, 0)[:: step**row] * size + np.array(center) for row, (size, center) in enumerate(copies)
    ]
    return np.reshape(outlines, (len(SCALES), -1))


EXACT_HULLS = CaseTemplate(
    "exact",
    arguments={
        "pointsets": tensor(4, 18, compute=lambda values: _scaled_copies(DIAMOND, 1)),
        "polygons": tensor(4, 8, compute=lambda values: _scaled_copies(SQUARE, -1)),
    },
    exact=True,
    dtypes=DtypeSelection.all,
)
"""A template of diamonds in squares of 32 times their area.

All sums are small integers, and all quotients are powers of two.
"""

register(
    "diopiConvexIouMmcv",
    templates=(
        *hull_templates(False),
        hull_template("no-polygons", 4, 0),
        HULLS_IN_POLYGONS,
        hull_template("many", 97, 61, large=True),
    ),
)
register(
    "diopiConvexGiouMmcv",
    templates=(
        *hull_templates(True),
        hull_template(
            "apart",
            6,
            6,
            _draw_on_circle,
            quadrilateral_domain(uniform(12, 14), uniform(1, 2)),
            has_polygon_per_set=True,
        ),
        EXACT_HULLS,
        hull_template("many", 3643, has_polygon_per_set=True, large=True),
    ),
)

DIAMOND_POINTS = [[0, 1, 1, 0, 0, -1, -1, 0, 0, 0, 0.25, 0.25, 0.5, 0.25, -0.5, 0.25, 0.25, -0.5]]
"""A set of nine points whose hull is a diamond, so that the rectangles along all edges are equal."""

ENCLOSURE_TEMPLATES = (
    *hull_templates(False)[:-3],
    hull_template("one-set", 1),
    hull_template("no-sets", 0),
    hull_template("many", 60),
    hull_template("in-lines", 6, points=column_domain(*[integer_values(-4, 4)] * 18)),
    CaseTemplate("diamond", arguments={"pointsets": tensor(1, 18, compute=lambda values: DIAMOND_POINTS)}),
    hull_template("many", 3643, large=True),
)
"""The templates of `diopiMinAreaPolygonsMmcv`, which computes the smallest rectangle around each set of points."""

register("diopiMinAreaPolygonsMmcv", templates=ENCLOSURE_TEMPLATES)
