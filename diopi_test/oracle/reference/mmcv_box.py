"""MMCV's operators on boxes, quadrilaterals and polygons in the plane.

MMCV is OpenMMLab's library for computer vision. The overlap of two shapes is measured by their *intersection over
union* (IoU): the area of the intersection divided by the area of the union.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Sources: MMCV's operators; H. Rezatofighi et al., "Generalized Intersection over Union", 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, WithTerms, reference
from diopi_test.oracle.reference.geometry import (
    Polygon,
    area,
    center_on_first,
    cross,
    hull,
    is_convex,
    orient_counter_clockwise,
    overlap,
    overlap_terms,
    rotated_box,
    to_points,
)

Array = NDArray[Any]

T = TypeVar("T")
"""An item whose overlap is computed: a row of numbers, or a polygon."""

MIN_AREA = 1e-14
"""The area below which a box overlaps no other box, as in MMCV."""


# Overlaps


def _sides(boxes: Array, offset: int) -> Array:
    """Return the widths and heights of boxes (x1, y1, x2, y2), plus `offset`."""
    return boxes[..., 2:] - boxes[..., :2] + offset


def _intersection_area(boxes_a: Array, boxes_b: Array, offset: int) -> Array:
    """Return the areas of the intersections of axis-aligned boxes."""
    low, high = np.maximum(boxes_a[..., :2], boxes_b[..., :2]), np.minimum(boxes_a[..., 2:], boxes_b[..., 2:])
    return np.prod(np.maximum(high - low + offset, 0), -1)


@reference("diopiBboxOverlapsMmcv")
def bbox_overlaps(bboxes1, bboxes2, mode, offset, aligned):
    """Return intersection over union (mode 0) or over the first area (mode 1) of axis-aligned boxes."""
    boxes_a, boxes_b = (bboxes1, bboxes2) if aligned else (bboxes1[:, np.newaxis], bboxes2)
    areas = [np.prod(_sides(boxes, offset), -1) for boxes in (boxes_a, boxes_b)]
    intersection = _intersection_area(boxes_a, boxes_b, offset)
    base = areas[0] + areas[1] - intersection if mode == 0 else areas[0] + np.zeros(intersection.shape)
    return intersection / np.maximum(base, offset)


def _overlap_ratio(polygon_a: Polygon, polygon_b: Polygon, mode: int) -> tuple[float, float]:
    """Return the overlap of two convex polygons, and its terms.

    The overlap is the area of the intersection, divided by the area of the union (mode 0) or of `polygon_a` (mode 1).
    """
    areas = abs(area(polygon_a)), abs(area(polygon_b))
    if min(areas) < MIN_AREA:
        return 0.0, 0.0
    intersection, terms = overlap(polygon_a, polygon_b), overlap_terms(polygon_a, polygon_b)
    if mode == 1:
        return intersection / areas[0], terms / areas[0]
    union = sum(areas) - intersection
    ratio = intersection / union
    return ratio, (1 + ratio) * terms / union


def _unchanged_pair(polygon_a: Polygon, polygon_b: Polygon) -> tuple[Polygon, Polygon]:
    """Return the polygons themselves: the conversion for items that are polygons."""
    return polygon_a, polygon_b


def _overlap_ratios(
    items_a: Sequence[T],
    items_b: Sequence[T],
    to_polygons: Callable[[T, T], tuple[Polygon, Polygon]],
    mode: int,
    aligned: bool,
) -> WithTerms:
    """Return the overlap ratios of all pairs of items, or of items in the same row if `aligned`.

    Args:
        items_a: The first items.
        items_b: The second items.
        to_polygons: Converts a pair of items to two polygons.
        mode: 0 for intersection over union, 1 for intersection over the area of the first polygon.
        aligned: Whether items are paired row by row.

    Returns:
        The ratios, (n) if `aligned`, else (n, m).
    """
    if aligned:
        ratios = [
            _overlap_ratio(*to_polygons(item_a, item_b), mode) for item_a, item_b in zip(items_a, items_b, strict=True)
        ]
        return WithTerms(*np.reshape(ratios, (-1, 2)).T)
    ratios = [_overlap_ratio(*to_polygons(item_a, item_b), mode) for item_a in items_a for item_b in items_b]
    pairs = np.reshape(ratios, (len(items_a), len(items_b), 2))
    return WithTerms(pairs[..., 0], pairs[..., 1])


@reference("diopiBoxIouRotatedMmcv")
def box_iou_rotated(bboxes1, bboxes2, mode, aligned):
    """Return the overlap ratios of rotated boxes (x, y, width, height, angle)."""
    return _overlap_ratios(list(bboxes1), list(bboxes2), center_on_first, mode, aligned)


@reference("diopiBoxIouQuadriMmcv")
def box_iou_quadri(bboxes1, bboxes2, mode, aligned):
    """Return the overlap ratios of convex quadrilaterals (x1, y1, …, x4, y4)."""
    return _overlap_ratios(
        _convex_quadrilaterals(bboxes1), _convex_quadrilaterals(bboxes2), _unchanged_pair, mode, aligned
    )


def _convex_quadrilaterals(rows: Array) -> list[Polygon]:
    """Return quadrilaterals from rows of corners; raise ValueError if a quadrilateral is not convex."""
    polygons: list[Polygon] = [to_points(row) for row in rows]
    if not all(is_convex(polygon) for polygon in polygons):
        raise ValueError("a quadrilateral is not convex")
    return polygons


# Non-maximum suppression


def suppress_nonmaxima(order: Sequence[int], find_overlaps: Callable[[int, Sequence[int]], Any]) -> list[int]:
    """Return the indices that greedy non-maximum suppression selects.

    Args:
        order: The indices by descending priority.
        find_overlaps: A function of a selected index and of candidate indices that returns for each candidate whether
            it overlaps too much with the selected one.

    Returns:
        The selected indices, by descending priority.
    """
    survivors = []
    remaining = list(order)
    while remaining:
        first, *candidates = remaining
        survivors.append(first)
        overlaps = find_overlaps(first, candidates)
        remaining = [
            candidate for candidate, is_overlapping in zip(candidates, overlaps, strict=True) if not is_overlapping
        ]
    return survivors


def upright_overlap_test(boxes: Array, threshold: float, offset: int, min_union: float = 0.0) -> Callable[..., Array]:
    """Return a function that tests which axis-aligned boxes overlap with a box by more than a threshold.

    Args:
        boxes: The boxes (x1, y1, x2, y2), (n, 4).
        threshold: The intersection over union above which boxes overlap too much.
        offset: 1 if the coordinates are pixel indices and both end pixels belong to the box, else 0.
        min_union: Smaller unions count as this area.

    Returns:
        A function of an index and candidate indices that returns a bool for each candidate.
    """
    areas = np.prod(_sides(boxes, offset), -1)

    def overlaps(index: int, candidates: Sequence[int]) -> Array:
        """Return which candidates overlap too much with the box `index`."""
        intersection = _intersection_area(boxes[index], boxes[candidates], offset)
        return np.greater(
            intersection, threshold * np.maximum(areas[index] + areas[candidates] - intersection, min_union)
        )

    return overlaps


def polygon_overlap_test(
    polygons: Sequence[Polygon], threshold: float, min_union: float = 0.0
) -> Callable[..., list[bool]]:
    """Return a function that tests which convex polygons overlap with a polygon by more than a threshold.

    Args:
        polygons: The polygons.
        threshold: The intersection over union above which polygons overlap too much.
        min_union: Smaller unions count as this area.

    Returns:
        A function of an index and candidate indices that returns a bool for each candidate.
    """
    areas = [abs(area(polygon)) for polygon in polygons]

    def overlaps(index: int, candidates: Sequence[int]) -> list[bool]:
        """Return which candidates overlap too much with the polygon `index`."""
        intersections = [overlap(polygons[index], polygons[candidate]) for candidate in candidates]
        unions = [
            areas[index] + areas[candidate] - intersection
            for candidate, intersection in zip(candidates, intersections, strict=True)
        ]
        return [
            intersection > threshold * max(union, min_union)
            for intersection, union in zip(intersections, unions, strict=True)
        ]

    return overlaps


@reference("diopiNmsMmcv")
def nms(dets, scores, iou_threshold, offset):
    """Return the indices of the boxes that non-maximum suppression selects; `AnyOf` if scores are equal."""
    order = np.argsort(-scores, kind="stable")
    survivors = np.array(suppress_nonmaxima(list(order), upright_overlap_test(dets, iou_threshold, offset)), np.int64)
    return survivors if len(np.unique(scores)) == len(scores) else AnyOf(survivors)


@reference("diopiNmsRotatedMmcv")
def nms_rotated(order, dets_sorted, iou_threshold):
    """Return the indices of the rotated boxes that non-maximum suppression selects.

    `dets_sorted` has the boxes by descending score, and `order` their original indices.
    """
    corners = [rotated_box(*box[:5]) for box in dets_sorted]
    survivors = suppress_nonmaxima(range(len(corners)), polygon_overlap_test(corners, iou_threshold))
    return order[np.array(survivors, np.int64)]


# Points and polygons


@reference("diopiPointsInPolygonsMmcv")
def points_in_polygons(points, polygons):
    """Return 1 for each point in each quadrilateral, else 0: a ray to the right crosses an odd number of edges."""
    x, y = points[:, 0, np.newaxis], points[:, 1, np.newaxis]
    corners = polygons.reshape(-1, 4, 2)
    crossings = np.zeros((len(points), len(polygons)))
    for (xs, ys), (xt, yt) in ((corners[:, i].T, corners[:, i - 1].T) for i in range(4)):
        is_crossed = np.not_equal(ys < y, yt < y)
        with np.errstate(all="ignore"):  # a ray never crosses a horizontal edge
            x_crossing = xs + (y - ys) / (yt - ys) * (xt - xs)
        crossings += is_crossed & (x_crossing > x)
    return crossings % 2


@reference("diopiMinAreaPolygonsMmcv")
def min_area_polygons(pointsets):
    """Return the corners of a smallest rectangle around each set of nine points: (sets, 8)."""
    return AnyOf(np.reshape([_smallest_rectangle(to_points(row)) for row in pointsets], (len(pointsets), 8)))


def _smallest_rectangle(corners: Polygon) -> Array:
    """Return the smallest of the rectangles along the edges of the hull: x1, y1 … x4, y4, starting at any corner."""
    hull_corners = [corners[i] for i in hull(corners)]
    rectangles = []
    for i, corner in enumerate(hull_corners):
        direction = (corner - hull_corners[i - 1]) / abs(corner - hull_corners[i - 1])
        rotated = np.array([point * direction.conjugate() for point in hull_corners])
        (x0, x1), (y0, y1) = ((part.min(), part.max()) for part in (rotated.real, rotated.imag))
        upright = [complex(x1, y0), complex(x0, y0), complex(x0, y1), complex(x1, y1)]
        rectangles.append(((x1 - x0) * (y1 - y0), [point * direction for point in upright]))
    return np.array(min(rectangles, key=lambda rectangle: rectangle[0])[1]).view(np.float64)


# Convex hulls of nine points


def _convex_hull(row: Array) -> Polygon:
    """Return the corners of the convex hull of a row of points x1, y1, x2, y2 …."""
    corners = to_points(row)
    return [corners[i] for i in hull(corners)]


@reference("diopiConvexIouMmcv")
def convex_iou(pointsets, polygons):
    """Return the intersection over union of each hull of nine points and each quadrilateral."""
    return _overlap_ratios(
        [_convex_hull(row) for row in pointsets], _convex_quadrilaterals(polygons), _unchanged_pair, 0, False
    )


@reference("diopiConvexGiouMmcv")
def convex_giou(pointsets, polygons):
    """Return the generalized IoU of each hull of nine points and its quadrilateral.

    A row of the result has the gradient with respect to the 18 coordinates of the points, then the value.
    """
    rows = [
        _giou(to_points(row), polygon) for row, polygon in zip(pointsets, _convex_quadrilaterals(polygons), strict=True)
    ]
    gradients_and_values: Array = np.reshape(rows, (len(rows), 2, 19))
    return WithTerms(gradients_and_values[:, 0], gradients_and_values[:, 1])


def _giou(corners: Polygon, polygon: Polygon) -> tuple[Array, Array]:
    """Return the gradient and the value of the generalized IoU of a hull and a polygon, and the terms of both.

    Args:
        corners: The nine points whose hull is compared.
        polygon: A convex polygon.

    Returns:
        Two vectors of 19 elements: the gradient with respect to the coordinates and the value; and their terms.
    """
    polygon = orient_counter_clockwise(polygon)
    hull_indices, all_points = hull(corners), [*corners, *polygon]
    enclosing_indices = hull(all_points)
    hull_polygon, enclosing = ([all_points[i] for i in indices] for indices in (hull_indices, enclosing_indices))
    intersection, hull_area, enclosing_area = overlap(hull_polygon, polygon), area(hull_polygon), area(enclosing)
    union = hull_area + area(polygon) - intersection
    intersection_gradient, hull_gradient, enclosing_gradient = (
        _area_gradient(hull_indices, corners, polygon),
        _area_gradient(hull_indices, corners, None),
        _area_gradient(enclosing_indices, all_points, None)[:9],
    )
    union_gradient = hull_gradient - intersection_gradient
    # GIoU = I/U + U/C - 1 with the areas I of the intersection, U of the union and C of the enclosing hull
    gradient = (
        intersection_gradient / union
        - intersection * union_gradient / union**2
        + union_gradient / enclosing_area
        - union * enclosing_gradient / enclosing_area**2
    )
    intersection_size, hull_size, enclosing_size = map(
        np.abs, (intersection_gradient, hull_gradient, enclosing_gradient)
    )
    union_factor = 1 / union + intersection / union**2 + 1 / enclosing_area
    gradient_terms = (intersection_size + hull_size) * union_factor + enclosing_size * union / enclosing_area**2
    terms = overlap_terms(hull_polygon, polygon)
    gradient_spread = (np.abs(gradient).max() + gradient_terms.max()) * (
        1 + (terms + overlap_terms(enclosing, enclosing)) / union
    )
    value_terms = (
        terms * (1 / union + intersection / union**2) + 2 * overlap_terms(enclosing, enclosing) / enclosing_area
    )
    value = intersection / union + union / enclosing_area - 1
    return (
        np.array([*gradient.view(np.float64), value]),
        np.array([*np.full(18, gradient_spread), value_terms + 1]),
    )


def _area_gradient(hull_indices: Sequence[int], corners: Polygon, clip: Polygon | None) -> Array:
    """Return the gradient of the area of a hull with respect to its points, as complex numbers ∂x + i·∂y.

    When a corner moves, its two edges move. A point of an edge sweeps an area in proportion to its displacement along
    the normal, which grows linearly toward the moving corner. Parts of an edge outside `clip` sweep no area.

    Args:
        hull_indices: The indices of the hull's corners, counter-clockwise.
        corners: All points.
        clip: A convex polygon. If it is not None, only the part of the hull inside this polygon counts as area.

    Returns:
        A complex number for each point, 0 for points that are not corners of the hull.
    """
    gradient = np.zeros(len(corners), np.complex128)
    for position, i in enumerate(hull_indices):
        start, end = corners[hull_indices[position - 1]], corners[i]
        low, high = (0.0, 1.0) if clip is None else _clip_segment(start, end, clip)
        normal = -1j * (end - start)
        gradient[i] += normal * (high**2 - low**2) / 2
        gradient[hull_indices[position - 1]] += normal * ((1 - low) ** 2 - (1 - high) ** 2) / 2
    return gradient


def _clip_segment(start: complex, end: complex, polygon: Polygon) -> tuple[float, float]:
    """Return the interval of [0, 1] in which start + t·(end − start) is in a convex polygon (Cyrus and Beck, 1978)."""
    low, high = 0.0, 1.0
    for i, corner in enumerate(polygon):
        edge = corner - polygon[i - 1]
        height, slope = cross(edge, start - polygon[i - 1]), cross(edge, end - start)
        if slope > 0:
            low = max(low, -height / slope)
        elif slope < 0:
            high = min(high, -height / slope)
        elif height < 0:
            return 0.0, 0.0
    return low, max(low, high)


# Sorting of corners

SORTED_COUNT = 9
"""The number of indices that sorting corners returns: at most eight corners, and the first corner again."""


@reference("diopiDiffIouRotatedSortVerticesMmcv")
def diff_iou_rotated_sort_vertices(vertices, mask, num_valid):
    """Return the indices of the valid corners of each polygon, sorted by angle."""
    result = np.zeros((*num_valid.shape, SORTED_COUNT), np.int64)
    for index in np.ndindex(*num_valid.shape):
        result[index] = _sort_corners(vertices[index], mask[index], int(num_valid[index]))
    return result


def _sort_corners(vertices: Array, mask: Array, count: int) -> list[int]:
    """Return the indices of the valid corners of a polygon by angle, then the first index again, then padding.

    Args:
        vertices: The corners, (24, 2), relative to a point inside the polygon.
        mask: Which corners are valid.
        count: The number of valid corners. If it is less than 3, the result consists of padding only.

    Returns:
        `SORTED_COUNT` indices; the padding is the index of the first invalid corner from index 8 on.
    """
    padding = 8 + int(np.argmin(mask[8:]))
    if count < 3:
        return [padding] * SORTED_COUNT
    angles = np.arctan2(vertices[:, 1], vertices[:, 0]) % (2 * np.pi)
    valid = [int(i) for i in np.argsort(np.where(mask, angles, np.inf))[:count]]
    return [*valid, valid[0], *[padding] * (SORTED_COUNT - 1 - count)]
