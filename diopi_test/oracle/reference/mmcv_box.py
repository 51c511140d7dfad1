"""MMCV's operators on boxes, quadrilaterals and polygons in the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, WithTerms, reference
from diopi_test.oracle.reference.geometry import (
    Polygon,
    area,
    around_the_first,
    counter_clockwise,
    cross,
    hull,
    is_convex,
    overlap,
    overlap_terms,
    points,
    rotated_box,
)

Array = NDArray[Any]

T = TypeVar("T")

LEAST_AREA = 1e-14
"""Below it a box overlaps nothing."""


# Overlaps


def _sides(boxes: Array, offset: int) -> Array:
    return boxes[..., 2:] - boxes[..., :2] + offset


def _common(one: Array, other: Array, offset: int) -> Array:
    """The area that upright boxes have in common."""
    low, high = np.maximum(one[..., :2], other[..., :2]), np.minimum(one[..., 2:], other[..., 2:])
    return np.prod(np.maximum(high - low + offset, 0), -1)


@reference("diopiBboxOverlapsMmcv")
def bbox_overlaps(bboxes1: Array, bboxes2: Array, mode: int, offset: int, aligned: bool) -> Array:
    one, other = (bboxes1, bboxes2) if aligned else (bboxes1[:, np.newaxis], bboxes2)
    areas = [np.prod(_sides(boxes, offset), -1) for boxes in (one, other)]
    common = _common(one, other, offset)
    base = areas[0] + areas[1] - common if mode == 0 else areas[0] + np.zeros(common.shape)
    return common / np.maximum(base, offset)


def _ratio(one: Polygon, other: Polygon, mode: int) -> tuple[float, float]:
    """The intersection over the union (mode 0) or the first area (mode 1), and the terms in it."""
    areas = abs(area(one)), abs(area(other))
    if min(areas) < LEAST_AREA:
        return 0.0, 0.0
    common, terms = overlap(one, other), overlap_terms(one, other)
    if mode == 1:
        return common / areas[0], terms / areas[0]
    union = sum(areas) - common
    ratio = common / union
    return ratio, (1 + ratio) * terms / union


def _as_they_are(one: Polygon, other: Polygon) -> tuple[Polygon, Polygon]:
    return one, other


def _ratios(
    ones: Sequence[T], others: Sequence[T], corners: Callable[[T, T], tuple[Polygon, Polygon]], mode: int, aligned: bool
) -> WithTerms:
    """The ratios of all pairs, or row by row if `aligned`, of the polygons that `corners` makes of a pair."""
    if aligned:
        found = [_ratio(*corners(one, other), mode) for one, other in zip(ones, others, strict=True)]
        return WithTerms(*np.reshape(found, (-1, 2)).T)
    found = [_ratio(*corners(one, other), mode) for one in ones for other in others]
    pairs = np.reshape(found, (len(ones), len(others), 2))
    return WithTerms(pairs[..., 0], pairs[..., 1])


@reference("diopiBoxIouRotatedMmcv")
def box_iou_rotated(bboxes1: Array, bboxes2: Array, mode: int, aligned: bool) -> WithTerms:
    return _ratios(list(bboxes1), list(bboxes2), around_the_first, mode, aligned)


@reference("diopiBoxIouQuadriMmcv")
def box_iou_quadri(bboxes1: Array, bboxes2: Array, mode: int, aligned: bool) -> WithTerms:
    return _ratios(_convex(bboxes1), _convex(bboxes2), _as_they_are, mode, aligned)


def _convex(rows: Array) -> list[Polygon]:
    """The quadrilaterals of which the corners are told; ValueError if one is not convex."""
    polygons: list[Polygon] = [points(row) for row in rows]
    if not all(is_convex(polygon) for polygon in polygons):
        raise ValueError("a quadrilateral is not convex")
    return polygons


# Suppression


def suppressed(order: Sequence[int], drops: Callable[[int, Sequence[int]], Any]) -> list[int]:
    """What is left if each one kept, in this order, drops those after it that `drops` says."""
    kept = []
    remaining = list(order)
    while remaining:
        first, *others = remaining
        kept.append(first)
        dropped = drops(first, others)
        remaining = [other for other, is_dropped in zip(others, dropped, strict=True) if not is_dropped]
    return kept


def drops_upright(boxes: Array, threshold: float, offset: int, least: float = 0.0) -> Callable[..., Array]:
    """Of upright boxes: whether one has more in common with others than the threshold times the union."""
    areas = np.prod(_sides(boxes, offset), -1)

    def drops(one: int, others: Sequence[int]) -> Array:
        common = _common(boxes[one], boxes[others], offset)
        return np.greater(common, threshold * np.maximum(areas[one] + areas[others] - common, least))

    return drops


def drops_turned(corners: Sequence[Polygon], threshold: float, least: float = 0.0) -> Callable[..., list[bool]]:
    """Of any convex polygons."""
    areas = [abs(area(polygon)) for polygon in corners]

    def drops(one: int, others: Sequence[int]) -> list[bool]:
        common = [overlap(corners[one], corners[other]) for other in others]
        unions = [areas[one] + areas[other] - shared for other, shared in zip(others, common, strict=True)]
        return [shared > threshold * max(union, least) for shared, union in zip(common, unions, strict=True)]

    return drops


@reference("diopiNmsMmcv")
def nms(dets: Array, scores: Array, iou_threshold: float, offset: int) -> Array | AnyOf:
    order = np.argsort(-scores, kind="stable")
    kept = np.array(suppressed(list(order), drops_upright(dets, iou_threshold, offset)), np.int64)
    return kept if len(np.unique(scores)) == len(scores) else AnyOf(kept)


@reference("diopiNmsRotatedMmcv")
def nms_rotated(
    dets: Array,
    scores: Array,
    order: Array,
    dets_sorted: Array,
    labels: Array,
    iou_threshold: float,
    multi_label: bool,
) -> Array:
    corners = [rotated_box(*box[:5]) for box in dets_sorted]
    kept = suppressed(range(len(corners)), drops_turned(corners, iou_threshold))
    return order[np.array(kept, np.int64)]


# Points and polygons


@reference("diopiPointsInPolygonsMmcv")
def points_in_polygons(points: Array, polygons: Array) -> Array:
    x, y = points[:, 0, np.newaxis], points[:, 1, np.newaxis]
    corners = polygons.reshape(-1, 4, 2)
    crossings = np.zeros((len(points), len(polygons)))
    for (xs, ys), (xt, yt) in ((corners[:, i].T, corners[:, i - 1].T) for i in range(4)):
        passes = np.not_equal(ys < y, yt < y)
        with np.errstate(all="ignore"):  # a level edge is not passed
            meets = xs + (y - ys) / (yt - ys) * (xt - xs)
        crossings += passes & (meets > x)
    return crossings % 2


@reference("diopiMinAreaPolygonsMmcv")
def min_area_polygons(pointsets: Array) -> AnyOf:
    return AnyOf(np.reshape([_smallest_rectangle(points(row)) for row in pointsets], (len(pointsets), 8)))


def _smallest_rectangle(corners: Polygon) -> Array:
    """Of the rectangles along the edges of the hull the smallest, as x1, y1 … x4, y4, from any corner on."""
    around = [corners[i] for i in hull(corners)]
    rectangles = []
    for i, corner in enumerate(around):
        direction = (corner - around[i - 1]) / abs(corner - around[i - 1])
        turned = np.array([point * direction.conjugate() for point in around])
        (x0, x1), (y0, y1) = ((part.min(), part.max()) for part in (turned.real, turned.imag))
        upright = [complex(x1, y0), complex(x0, y0), complex(x0, y1), complex(x1, y1)]
        rectangles.append(((x1 - x0) * (y1 - y0), [point * direction for point in upright]))
    return np.array(min(rectangles, key=lambda one: one[0])[1]).view(np.float64)


# Hulls of nine points


def _hull_of(row: Array) -> Polygon:
    corners = points(row)
    return [corners[i] for i in hull(corners)]


@reference("diopiConvexIouMmcv")
def convex_iou(pointsets: Array, polygons: Array) -> WithTerms:
    return _ratios([_hull_of(row) for row in pointsets], _convex(polygons), _as_they_are, 0, False)


@reference("diopiConvexGiouMmcv")
def convex_giou(pointsets: Array, polygons: Array) -> WithTerms:
    rows = [_giou(points(row), polygon) for row, polygon in zip(pointsets, _convex(polygons), strict=True)]
    both: Array = np.reshape(rows, (len(rows), 2, 19))
    return WithTerms(both[:, 0], both[:, 1])


def _giou(corners: Polygon, polygon: Polygon) -> tuple[Array, Array]:
    """The gradient and the value, and the terms in them."""
    polygon = counter_clockwise(polygon)
    around, everything = hull(corners), [*corners, *polygon]
    around_all = hull(everything)
    own, enclosing = ([everything[i] for i in indices] for indices in (around, around_all))
    common, mine, total = overlap(own, polygon), area(own), area(enclosing)
    union = mine + area(polygon) - common
    by_common, by_own, by_total = (
        _gradient(around, corners, polygon),
        _gradient(around, corners, None),
        _gradient(around_all, everything, None)[:9],
    )
    by_union = by_own - by_common
    # of I/U + U/C - 1
    gradient = by_common / union - common * by_union / union**2 + by_union / total - union * by_total / total**2
    sizes = [np.abs(one) for one in (by_common, by_own, by_total)]
    strength = (sizes[0] + sizes[1]) * (1 / union + common / union**2 + 1 / total) + sizes[2] * union / total**2
    terms = overlap_terms(own, polygon)
    spread = (np.abs(gradient).max() + strength.max()) * (1 + (terms + overlap_terms(enclosing, enclosing)) / union)
    of_value = terms * (1 / union + common / union**2) + 2 * overlap_terms(enclosing, enclosing) / total
    value = common / union + union / total - 1
    return (
        np.array([*gradient.view(np.float64), value]),
        np.array([*np.full(18, spread), of_value + 1]),
    )


def _gradient(around: Sequence[int], corners: Polygon, within: Polygon | None) -> Array:
    """How the area of a hull, or of what of it is within a polygon, changes with each point: ∂x + i·∂y.

    A corner that moves takes its two edges with it. A piece of boundary sweeps as much as it moves along its normal: a
    point of an edge, the more the nearer it is to the corner; the pieces outside the polygon sweep nothing.
    """
    gradient = np.zeros(len(corners), np.complex128)
    for place, i in enumerate(around):
        start, end = corners[around[place - 1]], corners[i]
        low, high = (0.0, 1.0) if within is None else _inside(start, end, within)
        normal = -1j * (end - start)
        gradient[i] += normal * (high**2 - low**2) / 2
        gradient[around[place - 1]] += normal * ((1 - low) ** 2 - (1 - high) ** 2) / 2
    return gradient


def _inside(start: complex, end: complex, polygon: Polygon) -> tuple[float, float]:
    """Which part of the way from start to end is inside a convex polygon (Cyrus and Beck, 1978); a to a if none is."""
    low, high = 0.0, 1.0
    for i, corner in enumerate(polygon):
        edge = corner - polygon[i - 1]
        height, climb = cross(edge, start - polygon[i - 1]), cross(edge, end - start)
        if climb > 0:
            low = max(low, -height / climb)
        elif climb < 0:
            high = min(high, -height / climb)
        elif height < 0:
            return 0.0, 0.0
    return low, max(low, high)


# Corners in order

SORTED = 9
"""The numbers that the sorting of corners gives: at most eight corners and the first again."""


@reference("diopiDiffIouRotatedSortVerticesMmcv")
def diff_iou_rotated_sort_vertices(vertices: Array, mask: Array, num_valid: Array) -> Array:
    result = np.zeros((*num_valid.shape, SORTED), np.int64)
    for place in np.ndindex(*num_valid.shape):
        result[place] = _corners_in_order(vertices[place], mask[place], int(num_valid[place]))
    return result


def _corners_in_order(vertices: Array, mask: Array, count: int) -> list[int]:
    padding = 8 + int(np.argmin(mask[8:]))
    if count < 3:
        return [padding] * SORTED
    angles = np.arctan2(vertices[:, 1], vertices[:, 0]) % (2 * np.pi)
    valid = [int(i) for i in np.argsort(np.where(mask, angles, np.inf))[:count]]
    return [*valid, valid[0], *[padding] * (SORTED - 1 - count)]
