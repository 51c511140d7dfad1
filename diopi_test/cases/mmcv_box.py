"""MMCV's operators on boxes, quadrilaterals and polygons in the plane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, between, by_turns, choice, distinct, whole
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.model import ResultOf, Values
from diopi_test.cases.template import BASIC, CaseTemplate, TensorTemplate, Types, register, tensor

Array = NDArray[Any]

F64 = Dtype.float64
NEAR_EDGE = 0.01
"""Points are farther than this from an edge."""

NEAR_THRESHOLD = 1e-3
"""Overlaps are farther than this from a threshold."""

# Boxes


def _side_by_side(*domains: Domain) -> Domain:
    """Rows with one number of each domain."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        rows = count // len(domains)
        return np.stack([domain(rng, rows, dtype) for domain in domains], -1).reshape(-1)

    return draw


def boxes(places: Domain, sizes: Domain) -> Domain:
    """x1, y1, x2, y2, from the first corner and the sides."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        low = places(rng, count // 2, F64).reshape(-1, 2)
        return np.concatenate([low, low + sizes(rng, count // 2, F64).reshape(-1, 2)], -1).reshape(-1)

    return draw


def turned(places: Domain, sizes: Domain, angles: Domain) -> Domain:
    """cx, cy, w, h, θ."""
    return _side_by_side(places, places, sizes, sizes, angles)


def overlapping(
    label: str,
    n: int = 6,
    m: int = 7,
    domain: Domain | Sequence[Sequence[float]] | None = None,
    other: Domain | Sequence[Sequence[float]] | None = None,
    *,
    columns: int,
    mode: int = 0,
    offset: int = 0,
    aligned: bool = False,
    layout: Layout = contiguous,
    **about: Any,
) -> CaseTemplate:
    """Boxes with others, drawn or given; of `aligned` ones there are as many."""

    def of(rows: int, drawn: Any) -> TensorTemplate:
        if callable(drawn):
            return tensor(rows, columns, domain=drawn, layout=layout)
        return tensor(len(drawn), columns, compute=lambda values: drawn)

    arguments = {
        "bboxes1": of(n, domain),
        "bboxes2": of(n if aligned else m, domain if other is None else other),
        "mode": mode,
        "offset": offset,
        "aligned": aligned,
    }
    result = contiguous if aligned or layout is contiguous else layout
    return CaseTemplate(label, arguments=arguments, result=result, **about)


def upright(label: str, n: int = 6, m: int = 7, domain: Any = None, **about: Any) -> CaseTemplate:
    return overlapping(label, n, m, domain or boxes(between(0, 5), between(1, 6)), columns=4, **about)


SQUARES = [[1, 1, 5, 5], [3, 1, 7, 5], [-1, -3, 3, 5], [9, 9, 13, 11]]
PARTS = [[1, 1, 3, 5], [1, 1, 5, 5], [3, 3, 5, 5], [9, 9, 11, 11]]
"""What they have in common with `SQUARES` is a power of two."""

UPRIGHT = (
    upright("plain", **BASIC),
    upright("offset", offset=1, **BASIC),
    upright("foreground", mode=1, dtypes=Types.every),
    upright("foreground-offset", mode=1, offset=1),
    upright("aligned", 12, aligned=True, dtypes=Types.every),
    upright("aligned-foreground-offset", 12, mode=1, offset=1, aligned=True),
    upright("strided", 4, 5, layout=strided, dtypes=Types.every),
    upright("transposed", 5, 3, layout=transposed),
    upright("small", 8, 7, boxes(between(0, 0.5), between(0.01, 0.5)), dtypes=Types.every),
    upright("small-offset", 8, 7, boxes(between(0, 0.5), between(0.01, 0.5)), offset=1),
    upright("far", 8, 7, boxes(between(500, 510), between(2, 16))),
    upright("apart", 9, 8, boxes(between(0, 16), between(1, 6))),
    upright("whole", 7, 9, boxes(whole(-2, 4), whole(1, 6)), dtypes=Types.every),
    upright("one-each", 1, 1, boxes(whole(0, 1), whole(3, 5))),
    upright("no-boxes", 0, 5),
    upright("no-others", 5, 0),
    upright("no-pairs", 0, aligned=True),
    upright("large", 70, 90),
    upright("exact", domain=SQUARES, other=PARTS, mode=1, exact=True, dtypes=Types.every),
)

register("diopiBboxOverlapsMmcv", templates=UPRIGHT)


ANGLES = between(-3.5, 3.5)
USUAL = turned(between(0, 5), between(1, 6), ANGLES)
CROWDED = turned(between(0, 8), between(2, 6), ANGLES)


def rotated(label: str, n: int = 6, m: int = 7, domain: Any = None, **about: Any) -> CaseTemplate:
    return overlapping(label, n, m, USUAL if domain is None else domain, columns=5, **about)


INNER = turned(between(-0.1, 0.1), between(2, 2.5), ANGLES)
OUTER = turned(between(-0.1, 0.1), between(4, 4.5), ANGLES)
AROUND = turned(between(-0.1, 0.1), between(7, 7.5), ANGLES)
"""Boxes within others: what they have in common is the whole inner one, which leaves little to rounding."""

ROTATED = (
    rotated("plain", **BASIC),
    rotated("foreground", mode=1, dtypes=Types.every),
    rotated("aligned", 12, aligned=True, **BASIC),
    rotated("aligned-foreground", 12, mode=1, aligned=True),
    rotated("strided", 4, 5, layout=strided, dtypes=Types.every),
    rotated("transposed", 5, 3, layout=transposed),
    rotated("not-turned", 7, 6, turned(between(0, 5), between(1, 6), choice([0.0]))),
    rotated("quarter-turns", 7, 6, turned(between(0, 5), between(1, 6), choice([0.0, np.pi / 2, np.pi, -np.pi / 2]))),
    rotated("several-turns", 6, 5, turned(between(0, 5), between(1, 6), between(-40, 40))),
    rotated("slender", 7, 6, turned(between(0, 4), choice([9.0, 0.25, 12.5, 0.375]), ANGLES), dtypes=Types.every),
    rotated("far", 6, 7, turned(between(1000, 1010), between(4, 16), ANGLES), dtypes=Types.every),
    rotated(
        "far-slender", 6, 7, turned(between(1000, 1004), choice([15.0, 4.0, 12.5, 3.5]), ANGLES), dtypes=Types.every
    ),
    rotated("small", 6, 7, turned(between(0, 0.01), between(0.01, 0.03), ANGLES)),
    rotated("inside", 6, 5, by_turns(5, INNER, AROUND), other=OUTER, mode=1, dtypes=Types.every),
    rotated("apart", 9, 8, turned(between(0, 20), between(2, 7), ANGLES)),
    rotated("without-area", 6, 7, turned(between(0, 5), choice([0.0, 3.0, 4.5, 2.0]), ANGLES)),
    rotated("one-each", 1, 1, turned(between(0, 1), between(2, 4), ANGLES)),
    rotated("no-boxes", 0, 5),
    rotated("no-others", 5, 0),
    rotated("large", 40, 55),
)

register("diopiBoxIouRotatedMmcv", templates=ROTATED)


def convex(centres: Domain, radii: Domain, clockwise: bool = False) -> Domain:
    """Quadrilaterals with their corners on an ellipse, one in each quarter of it."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        n = count // 8
        centre, radius = (domain(rng, 2 * n, F64).reshape(n, 1, 2) for domain in (centres, radii))
        angles = (np.arange(4) + rng.uniform(0.15, 0.85, (n, 4))) * np.pi / 2 + rng.uniform(0, np.pi, (n, 1))
        corners = centre + radius * np.stack([np.cos(angles), np.sin(angles)], -1)
        return np.asarray(corners[:, ::-1] if clockwise else corners).reshape(-1)

    return draw


def _diamonds(low: float, high: float) -> Domain:
    """Squares around the origin, with diagonals of twice these lengths."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        angles = np.arange(4) * np.pi / 2 + rng.uniform(0, np.pi, (count // 8, 1))
        radii = rng.uniform(low, high, (count // 8, 1, 1))
        return np.asarray(radii * np.stack([np.cos(angles), np.sin(angles)], -1)).reshape(-1)

    return draw


WITHIN_AND_AROUND = by_turns(8, _diamonds(1.0, 1.2), _diamonds(3.0, 3.3))
QUADRILATERALS = convex(between(0, 4), between(1, 4))


def quadri(label: str, n: int = 6, m: int = 7, domain: Any = None, **about: Any) -> CaseTemplate:
    return overlapping(label, n, m, QUADRILATERALS if domain is None else domain, columns=8, **about)


QUADRI = (
    quadri("plain", **BASIC),
    quadri("foreground", mode=1, dtypes=Types.every),
    quadri("aligned", 12, aligned=True, **BASIC),
    quadri("aligned-foreground", 12, mode=1, aligned=True),
    quadri("strided", 4, 5, layout=strided, dtypes=Types.every),
    quadri("transposed", 5, 3, layout=transposed),
    quadri("clockwise", 6, 5, convex(between(0, 4), between(1, 4), clockwise=True), dtypes=Types.every),
    quadri("either-way", 6, 5, convex(between(0, 4), between(1, 4), clockwise=True), other=QUADRILATERALS),
    quadri("slender", 7, 6, convex(between(0, 4), choice([7.0, 0.25, 9.5, 0.375]))),
    quadri("far", 6, 7, convex(between(1000, 1010), between(4, 16)), dtypes=Types.every),
    quadri("small", 6, 7, convex(between(0, 0.01), between(0.01, 0.03))),
    quadri("inside", 6, 5, WITHIN_AND_AROUND, other=_diamonds(1.8, 2.0), mode=1, dtypes=Types.every),
    quadri("apart", 9, 8, convex(between(0, 20), between(2, 6))),
    quadri("one-each", 1, 1, convex(between(0, 0.5), between(2, 3))),
    quadri("no-boxes", 0, 5),
    quadri("no-others", 5, 0),
    quadri("large", 40, 55),
)

register("diopiBoxIouQuadriMmcv", templates=QUADRI)


# Suppression


def _kept_apart(candidates: Array, overlaps: Array, count: int, threshold: float) -> Array:
    """The first candidates none of which overlaps another by nearly the threshold."""
    chosen: list[int] = []
    for one in range(len(candidates)):
        if len(chosen) < count and not np.any(np.abs(overlaps[one, chosen] - threshold) < NEAR_THRESHOLD):
            chosen.append(one)
    if len(chosen) < count:
        raise ValueError(f"only {len(chosen)} of {len(candidates)} candidates keep away from the threshold {threshold}")
    return candidates[chosen]


def kept_apart(count: int, candidates: str, overlaps: str, threshold: float) -> Callable[[Values], Array]:
    """Computes `count` shapes of which no pair's overlap is near the threshold."""
    return lambda values: _kept_apart(values[candidates], values[overlaps], count, threshold)


def suppression(
    label: str,
    n: int,
    threshold: float,
    domain: Domain | None = None,
    scores: Domain = distinct,
    *,
    offset: int = 0,
    layout: Layout = contiguous,
    given: bool = False,
    **about: Any,
) -> CaseTemplate:
    """Boxes of which no overlap is near the threshold, but for whole ones, where all is exact (`given`)."""
    drawn = domain or boxes(between(0, 8), between(2, 6))
    selected = {
        "_boxes": tensor(2 * n, 4, domain=drawn, dtype=F64),
        "_overlaps": tensor(
            2 * n,
            2 * n,
            dtype=F64,
            compute=ResultOf(
                "diopiBboxOverlapsMmcv",
                "ious",
                {"bboxes1": "_boxes", "bboxes2": "_boxes"},
                {"mode": 0, "offset": offset, "aligned": False},
            ),
        ),
        "dets": tensor(n, 4, layout=layout, compute=kept_apart(n, "_boxes", "_overlaps", threshold)),
    }
    arguments = {
        **({"dets": tensor(n, 4, domain=drawn, layout=layout)} if given else selected),
        "scores": tensor(n, domain=scores, layout=contiguous if layout is contiguous else strided),
        "iou_threshold": threshold,
        "offset": offset,
    }
    return CaseTemplate(label, arguments=arguments, **about)


WHOLE = boxes(whole(-2, 4), whole(1, 7))

SUPPRESSIONS = (
    suppression("half", 20, 0.5, **BASIC),
    suppression("offset", 20, 0.45, offset=1, **BASIC),
    suppression("whole", 25, 0.5, WHOLE, given=True, dtypes=Types.every),
    suppression("whole-offset", 25, 0.25, WHOLE, offset=1, given=True, dtypes=Types.every),
    suppression("quarter", 15, 0.25, WHOLE, given=True, layout=strided, dtypes=Types.every),
    suppression("equal-scores", 16, 0.25, WHOLE, choice([0.25, 0.5]), given=True, dtypes=Types.every),
    suppression("tenth", 16, 0.11, layout=transposed),
    suppression("high", 30, 0.72, boxes(between(0, 2), between(4, 6))),
    suppression("zero", 12, 0.0, WHOLE, given=True),
    suppression("one", 12, 1.0, boxes(whole(0, 1), whole(1, 2)), given=True, weak="no overlap is above the whole"),
    suppression("apart", 15, 0.5, boxes(between(0, 200), between(2, 6)), weak="few boxes overlap"),
    suppression("single", 1, 0.5, given=True, weak="one box is kept, wherever it is"),
    suppression("none", 0, 0.5, given=True),
    suppression("long", 130, 0.4, boxes(between(0, 40), between(2, 12)), dtypes=Types.every),
)

register("diopiNmsMmcv", templates=SUPPRESSIONS)


def _falling(values: Values) -> Array:
    return np.argsort(-values["scores"], kind="stable")


def _in_order(values: Values) -> Array:
    return np.asarray(values["dets"][values["order"]])


def rotated_suppression(
    label: str,
    n: int,
    threshold: float,
    domain: Domain = CROWDED,
    *,
    multi_label: bool = False,
    labels: bool = True,
    layout: Layout = contiguous,
    **about: Any,
) -> CaseTemplate:
    """Boxes of which no overlap is near the threshold, with one label if there is one in each row."""

    def labelled(values: Values) -> Array:
        chosen = _kept_apart(values["_boxes"], values["_overlaps"], n, threshold)
        return np.concatenate([chosen, np.full((n, 1), 3)], -1) if multi_label else chosen

    columns, count = 6 if multi_label else 5, 2 * n
    vector = contiguous if layout is contiguous else strided
    arguments = {
        "_boxes": tensor(count, 5, domain=domain, dtype=F64),
        "_overlaps": tensor(
            count,
            count,
            dtype=F64,
            compute=ResultOf(
                "diopiBoxIouRotatedMmcv",
                "ious",
                {"bboxes1": "_boxes", "bboxes2": "_boxes"},
                {"mode": 0, "aligned": False},
            ),
        ),
        "dets": tensor(n, columns, layout=layout, compute=labelled),
        "scores": tensor(n, domain=distinct, layout=vector),
        "order": tensor(n, dtype=Dtype.int64, layout=vector, compute=_falling),
        "dets_sorted": tensor(n, columns, layout=layout, compute=_in_order),
        "labels": tensor(n if labels else 0, domain=choice([3]) if multi_label else whole(0, 4), dtype=Dtype.int64),
        "iou_threshold": threshold,
        "multi_label": multi_label,
    }
    return CaseTemplate(label, arguments=arguments, **about)


ROTATED_SUPPRESSIONS = (
    rotated_suppression("half", 16, 0.5, turned(between(0, 4), between(2, 6), ANGLES), **BASIC),
    rotated_suppression("labels", 14, 0.25, multi_label=True, **BASIC),
    rotated_suppression("no-labels", 14, 0.25, labels=False, dtypes=Types.every),
    rotated_suppression("strided", 9, 0.3, layout=strided, dtypes=Types.every),
    rotated_suppression("transposed", 11, 0.2, layout=transposed),
    rotated_suppression("tenth", 16, 0.11),
    rotated_suppression("high", 20, 0.72, turned(between(0, 1), between(4, 6), between(-0.3, 0.3))),
    rotated_suppression("slender", 14, 0.15, turned(between(0, 4), choice([9.0, 1.5, 12.5]), ANGLES)),
    rotated_suppression("several-turns", 14, 0.25, turned(between(0, 8), between(2, 6), between(-40, 40))),
    rotated_suppression("apart", 12, 0.5, turned(between(0, 90), between(2, 6), ANGLES), weak="few boxes overlap"),
    rotated_suppression("single", 1, 0.5, weak="one box is kept, wherever it is"),
    rotated_suppression("none", 0, 0.5),
    rotated_suppression("long", 60, 0.3, turned(between(0, 30), between(2, 12), ANGLES), dtypes=Types.every),
)

register("diopiNmsRotatedMmcv", templates=ROTATED_SUPPRESSIONS)


# Points and polygons


def _off_edges(values: Values) -> Array:
    """The first of the candidates that keep away from all edges, as many as there are to be."""
    ends = values["_polygons"].reshape(-1, 4, 2)
    starts, points = np.roll(ends, 1, 1), values["_points"][:, np.newaxis, np.newaxis]
    ways = ends - starts
    along = np.clip(((points - starts) * ways).sum(-1) / np.square(ways).sum(-1), 0, 1)
    distances = np.linalg.norm(points - starts - along[..., np.newaxis] * ways, axis=-1)
    return np.asarray(values["_points"][distances.min((1, 2), initial=np.inf) > NEAR_EDGE])


PLACES = between(-1, 5)


def containment(
    label: str,
    points: int = 12,
    polygons: int = 5,
    places: Domain = PLACES,
    shapes: Domain = QUADRILATERALS,
    layout: Layout = contiguous,
    **about: Any,
) -> CaseTemplate:
    """Points that keep away from the edges of polygons."""
    arguments = {
        "_points": tensor(3 * points, 2, domain=places, dtype=F64),
        "_polygons": tensor(polygons, 8, domain=shapes, dtype=F64),
        "points": tensor(points, 2, layout=layout, compute=lambda values: _off_edges(values)[:points]),
        "polygons": tensor(polygons, 8, layout=layout, compute=lambda values: values["_polygons"]),
    }
    return CaseTemplate(label, arguments=arguments, result=layout, **about)


LEVEL_POINTS = [[0, 0], [2, 0], [5, 0], [0, 2], [2, 2], [3, 2], [0, -2], [2, -2], [2.5, -1], [-2, 1]]
LEVEL_POLYGONS = [[4, 0, 2.5, 2, 1, 0, 2.5, -2], [1, -1, 4, -1, 4, 2, 1, 2.5], [-1, 1, -1, 4, -4, 4, -4, -1]]
"""Points as high as corners, or as an edge, but not on one."""

CONTAINMENTS = (
    containment("plain", **BASIC),
    containment("clockwise", 11, 6, shapes=convex(between(0, 4), between(1, 4), clockwise=True), dtypes=Types.every),
    containment("strided", 7, 4, layout=strided, dtypes=Types.every),
    containment("transposed", 6, 5, layout=transposed, dtypes=Types.every),
    containment("inside", 20, 4, between(1, 3), convex(between(0, 4), between(2, 4))),
    containment("far", 15, 6, between(1000, 1010), convex(between(1000, 1010), between(3, 5))),
    containment("slender", 20, 6, between(-3, 7), convex(between(0, 4), choice([6.0, 0.5, 7.5, 0.75]))),
    containment("one-polygon", 30, 1),
    containment("one-point", 1, 12, between(1, 3)),
    containment("large", 300, 40, dtypes=Types.every),
    containment("no-points", 0, 3),
    containment("no-polygons", 4, 0),
    CaseTemplate(
        "level",
        arguments={
            "points": tensor(10, 2, compute=lambda values: LEVEL_POINTS),
            "polygons": tensor(3, 8, compute=lambda values: LEVEL_POLYGONS),
        },
        dtypes=Types.every,
    ),
)

register("diopiPointsInPolygonsMmcv", templates=CONTAINMENTS)


SPREAD = between(-4, 4)


def around(
    label: str,
    n: int = 6,
    k: int = 5,
    points: Domain = SPREAD,
    shapes: Domain = QUADRILATERALS,
    *,
    rows: bool = False,
    layout: Layout = contiguous,
    **about: Any,
) -> CaseTemplate:
    """Sets of nine points, and quadrilaterals, one for each set if they are compared by `rows`."""
    arguments = {
        "pointsets": tensor(n, 18, domain=points, layout=layout),
        "polygons": tensor(n if rows else k, 8, domain=shapes, layout=layout),
    }
    return CaseTemplate(label, arguments=arguments, result=layout, **about)


def _off_centre(rng: Generator, count: int, dtype: Dtype) -> Array:
    """Sets of nine points, each around a place of its own and stretched its own way."""
    n = count // 18
    places, points = rng.uniform(0, 4, (n, 1, 2)), rng.normal(size=(n, 9, 2))
    return (places + points @ rng.normal(size=(n, 2, 2))).reshape(-1)


def _on_circle(rng: Generator, count: int, dtype: Dtype) -> Array:
    """Nine points all of which are corners of their hull."""
    angles = (np.arange(9) + rng.uniform(0.1, 0.9, (count // 18, 9))) * 2 * np.pi / 9
    order = rng.permuted(np.broadcast_to(np.arange(9), angles.shape), axis=1)
    angles = np.take_along_axis(angles, order, 1)
    return (2 + 3 * np.stack([np.cos(angles), np.sin(angles)], -1)).reshape(-1)


def _on_small_circle(rng: Generator, count: int, dtype: Dtype) -> Array:
    """As `_on_circle`, with radius 1 around the origin."""
    return (_on_circle(rng, count, dtype) - 2) / 3


def _in_triangle(rng: Generator, count: int, dtype: Dtype) -> Array:
    """Nine points of which three are the corners of the hull."""
    weights = rng.dirichlet([2, 2, 2], (count // 18, 6))
    corners = np.array([[-3, -2], [6, -1], [1, 6]]) + rng.uniform(-1, 1, (count // 18, 3, 2))
    return np.concatenate([weights @ corners, corners], 1).reshape(-1)


EVERY: Mapping[str, Any] = {"dtypes": Types.every}


def hull_cases(rows: bool) -> Sequence[CaseTemplate]:
    """Of functions of point sets, with quadrilaterals for each set or for all of them."""
    return (
        around("plain", rows=rows, **BASIC),
        around("off-centre", 7, 4, _off_centre, rows=rows, **BASIC),
        around("on-circle", 6, 5, _on_circle, rows=rows, dtypes=Types.every),
        around("in-triangle", 6, 5, _in_triangle, rows=rows, dtypes=Types.every),
        around("clockwise", 5, 4, shapes=convex(between(0, 4), between(1, 4), clockwise=True), rows=rows),
        around("strided", 4, 3, rows=rows, layout=strided, dtypes=Types.every),
        around("transposed", 5, 3, rows=rows, layout=transposed),
        around("inside", 6, 5, between(-0.9, 0.9), convex(between(-0.3, 0.3), between(3, 5)), rows=rows),
        around("outside", 6, 5, _on_circle, convex(between(1.8, 2.2), between(0.4, 0.9)), rows=rows),
        around("far", 6, 5, between(1000, 1006), convex(between(1000, 1006), between(1, 4)), rows=rows, **EVERY),
        around("one-each", 1, 1, rows=rows),
        around("no-sets", 0, 0, rows=rows),
        around("many", 40, 12, rows=rows),
    )


CONTAINED = around("contained", 6, 5, _on_small_circle, _diamonds(1.45, 1.5), dtypes=Types.every)
"""Hulls wholly within polygons that are hardly larger, which leaves little to rounding."""

DIAMOND = np.array([[0, -1], [1, 0], [0, 1], [-1, 0], [0, 0], [0.5, 0], [0, 0.25], [-0.25, -0.5], [-0.5, 0.25]])
"""Four corners of a hull, and five points within."""

SQUARE = np.array([[-4, -5], [4, -5], [4, 3], [-4, 3]])
SCALES, CENTRES = [1, 2, 4, 0.5], [[0, 0], [3, -2], [-8, 4], [1, 1]]


def _scaled(shape: Array, step: int) -> Array:
    """A shape in four sizes and places, its corners in another order each time."""
    rows = zip(SCALES, CENTRES, strict=True)
    drawn = [np.roll(shape, row, 0)[:: step**row] * size + np.array(centre) for row, (size, centre) in enumerate(rows)]
    return np.reshape(drawn, (len(SCALES), -1))


EXACT_HULLS = CaseTemplate(
    "exact",
    arguments={
        "pointsets": tensor(4, 18, compute=lambda values: _scaled(DIAMOND, 1)),
        "polygons": tensor(4, 8, compute=lambda values: _scaled(SQUARE, -1)),
    },
    exact=True,
    dtypes=Types.every,
)
"""Diamonds in squares of 32 times the area: all sums are of small whole numbers, and all quotients powers of two."""

register("diopiConvexIouMmcv", templates=(*hull_cases(False), around("no-polygons", 4, 0), CONTAINED))
register(
    "diopiConvexGiouMmcv",
    templates=(
        *hull_cases(True),
        around("apart", 6, 6, _on_circle, convex(between(12, 14), between(1, 2)), rows=True),
        EXACT_HULLS,
    ),
)

DIAMONDS = [[0, 1, 1, 0, 0, -1, -1, 0, 0, 0, 0.25, 0.25, 0.5, 0.25, -0.5, 0.25, 0.25, -0.5]]
"""All rectangles along the edges of its hull are equal."""

ENCLOSURES = (
    *hull_cases(False)[:-3],
    around("one-set", 1),
    around("no-sets", 0),
    around("many", 60),
    around("in-lines", 6, points=_side_by_side(*[whole(-4, 4)] * 18)),
    CaseTemplate("diamond", arguments={"pointsets": tensor(1, 18, compute=lambda values: DIAMONDS)}),
)

register("diopiMinAreaPolygonsMmcv", templates=ENCLOSURES)


# Corners in order

CORNERS = 24


def _valid(counts: Sequence[int]) -> Callable[[Values], Array]:
    """So many entries of each row, of the eight corners and, all but one at least, the intersections."""

    def compute(values: Values) -> Array:
        order = values["_order"].reshape(-1, CORNERS).argsort(-1)
        numbers = np.resize(counts, len(order))
        return np.asarray(order.argsort(-1) < numbers[:, np.newaxis]).reshape(values["_order"].shape)

    return compute


def _round_the_centre(values: Values) -> Array:
    """Places in directions well away from each other and from the x axis, in random order."""
    directions = values["_directions"].argsort(-1).argsort(-1)
    angles = (directions + 0.2 + 0.6 * values["_order"]) * 2 * np.pi / CORNERS
    return np.asarray(values["_radii"][..., np.newaxis] * np.stack([np.cos(angles), np.sin(angles)], -1))


def sorting(
    label: str, batches: int, n: int, counts: Sequence[int], layout: Layout = contiguous, **about: Any
) -> CaseTemplate:
    """Rows with so many valid entries, the counts again and again."""
    shape = (batches, n, CORNERS)
    arguments = {
        "_order": tensor(*shape, domain=between(0, 1), dtype=F64),
        "_directions": tensor(*shape, domain=between(0, 1), dtype=F64),
        "_radii": tensor(*shape, domain=between(0.5, 3), dtype=F64),
        "vertices": tensor(*shape, 2, layout=layout, compute=_round_the_centre),
        "mask": tensor(*shape, dtype=Dtype.bool, layout=layout, compute=_valid(counts)),
        "num_valid": tensor(
            batches, n, dtype=Dtype.int32, layout=layout, compute=lambda values: values["mask"].sum(-1)
        ),
    }
    return CaseTemplate(label, arguments=arguments, **about)


SORTINGS = (
    sorting("plain", 2, 5, [4, 6, 3, 8, 5, 7], **BASIC),
    sorting("few", 2, 6, [0, 1, 2, 3]),
    sorting("none", 1, 3, [0], weak="no entry is valid"),
    sorting("triangles", 3, 4, [3]),
    sorting("quadrilaterals", 2, 5, [4]),
    sorting("octagons", 2, 5, [8]),
    sorting("strided", 2, 4, [5, 3, 8, 2], strided),
    sorting("transposed", 3, 4, [4, 6, 8, 0, 3], transposed),
    sorting("one-batch", 1, 9, [7, 4]),
    sorting("one-row", 5, 1, [6, 3]),
    sorting("one", 1, 1, [5]),
    sorting("many", 4, 60, [4, 6, 3, 8, 5, 7, 2]),
    sorting("no-batches", 0, 3, [4]),
    sorting("no-rows", 2, 0, [4]),
)

register("diopiDiffIouRotatedSortVerticesMmcv", templates=SORTINGS)
