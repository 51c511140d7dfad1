"""Validators of box functions: non-maximum suppression, and smallest rectangles around points.

Boxes of equal score may be selected in any order. If several smallest rectangles exist, any of them is valid.
"""

from __future__ import annotations

import numpy as np

from diopi_test.oracle.budget import K
from diopi_test.oracle.rms_limit import MIN_ELEMENTS, rms_limit
from diopi_test.oracle.validators import Array, CompletedCall, Problems, validates
from diopi_test.oracle.validators.properties import check_distinct_positions, check_elements
from lib_rt.formats import format_of

ROUNDINGS = 2
"""The unit of a corner's error in eps times the largest coordinate: one for each of the two rotations of a corner."""


@validates("diopiNmsMmcv")
def nms(call: CompletedCall) -> Problems:
    """Check non-maximum suppression: the selected boxes are all boxes that no better selected box overlaps.

    Selected boxes must be in descending order of score and must not overlap. Every other box must overlap a selected
    box whose score is at least as high.
    """
    boxes, scores, selected = call.arguments["dets"], call.arguments["scores"], call.result
    problems = list(check_distinct_positions("out", selected, len(scores), 0))
    yield from problems
    if problems:
        return
    if np.any(np.diff(scores[selected]) > 0):
        yield "out: the scores are not in descending order"
    threshold, offset = call.arguments["iou_threshold"], call.arguments["offset"]
    overlapping = np.reshape(
        [_find_overlapping(boxes[index], boxes, threshold, offset) for index in selected], (len(selected), len(boxes))
    )
    for place, index in enumerate(selected):
        if overlapping[:place, index].any():
            earlier = selected[:place][overlapping[:place, index]][0]
            yield f"out: box {index} overlaps box {earlier}, which is selected before it"
    before = overlapping & (scores[selected][:, np.newaxis] >= scores)
    before[np.arange(len(selected)), selected] = True
    missing = np.flatnonzero(~before.any(0))
    if missing.size:
        yield f"out: box {missing[0]} is missing, but overlaps no selected box"


def _find_overlapping(box: Array, boxes: Array, threshold: float, offset: int) -> Array:
    """Return a mask of the `boxes` whose intersection over union with `box` is above the threshold.

    Args:
        box: A box as (x1, y1, x2, y2).
        boxes: Other boxes, [boxes, 4].
        threshold: The threshold.
        offset: The number that is added to widths and heights: 0, or 1 if coordinates are the numbers of pixels.
    """

    def area(x1: Array, y1: Array, x2: Array, y2: Array) -> Array:
        """Return the areas of boxes from their corners; a negative width or height counts as 0."""
        return np.asarray(np.maximum(x2 - x1 + offset, 0) * np.maximum(y2 - y1 + offset, 0))

    inner = np.concatenate([np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])], 1)
    common = area(*inner.T)
    return np.asarray(common > threshold * (area(*box) + area(*boxes.T) - common))


@validates("diopiMinAreaPolygonsMmcv")
def min_area_polygons(call: CompletedCall) -> Problems:
    """Check that each result is a smallest rectangle around all points; any of its clockwise corners may come first."""
    points = call.arguments["pointsets"].reshape(-1, 9, 2)
    corners = call.result.reshape(-1, 4, 2)
    unit = ROUNDINGS * format_of(call.dtypes["polygons"]).epsilon * np.abs(points).max((1, 2), initial=0)
    errors = _corner_errors(corners, points, K * unit)
    is_valid = np.abs(errors).max((1, 2), initial=0) <= K * unit
    yield from check_elements(
        "polygons", is_valid, corners, "corners of a smallest rectangle around the points, clockwise"
    )
    units = errors[is_valid & (unit > 0)] / unit[is_valid & (unit > 0), np.newaxis, np.newaxis]
    mean = float(np.sqrt(np.mean(units**2))) if units.size >= MIN_ELEMENTS else 0.0
    if mean > (limit := rms_limit(call.dtypes["polygons"], max(units.size, 1))):
        text = f"root mean square {mean:.3g} units, at most {limit:.3g} is allowed"
        yield f"polygons: the errors of the corners have {text}"


def _corner_errors(corners: Array, points: Array, margin: Array) -> Array:
    """Return the difference of each corner from the corner of the nearest smallest rectangle, [N, 4, 2].

    A rectangle counts as smallest if errors of its corners within the margin could make it the smallest.

    Args:
        corners: The corners of the results, [N, 4, 2].
        points: The points that each rectangle encloses, [N, 9, 2].
        margin: The accepted error of the corners of each rectangle, [N].
    """
    rectangles, sizes, girths = _enclosing_rectangles(points)
    is_smallest = sizes <= (sizes + 2 * margin[:, np.newaxis] * girths).min(1, keepdims=True)
    errors_of_nearest = np.full(corners.shape, np.nan)
    smallest_error = np.full(len(corners), np.inf)
    for first in range(4):
        errors = np.roll(corners, first, 1)[:, np.newaxis] - rectangles
        distance = np.where(is_smallest, np.abs(errors).max((2, 3)), np.inf)
        best = distance.argmin(1)
        nearer = distance[np.arange(len(distance)), best] < smallest_error
        errors_of_nearest[nearer] = errors[nearer, best[nearer]]
        smallest_error[nearer] = distance[nearer, best[nearer]]
    return errors_of_nearest


def _enclosing_rectangles(points: Array) -> tuple[Array, Array, Array]:
    """Return the rectangles around nine points whose sides are parallel to the line through any two of the points.

    One of these rectangles is a smallest one, because a smallest rectangle has a side along an edge of the convex hull
    (H. Freeman, R. Shapira, "Determining the minimum-area encasing rectangle for an arbitrary closed curve", 1975).

    Args:
        points: Sets of nine points, [N, 9, 2].

    Returns:
        For each pair of points: the clockwise corners, [N, 81, 4, 2], the area, [N, 81], and the sum of width and
        height, [N, 81].
    """
    differences = (points[:, :, np.newaxis] - points[:, np.newaxis]).reshape(-1, 81, 2)
    lengths = np.linalg.norm(differences, axis=-1, keepdims=True)
    direction = np.where(lengths > 0, differences / np.where(lengths > 0, lengths, 1), [1, 0])
    normal = direction[..., ::-1] * [-1, 1]
    x, y = (np.einsum("nie,nke->nik", axis, points) for axis in (direction, normal))
    (x0, x1), (y0, y1) = ((place.min(-1), place.max(-1)) for place in (x, y))
    corners = [
        a[..., np.newaxis] * direction + b[..., np.newaxis] * normal
        for a, b in ((x1, y0), (x0, y0), (x0, y1), (x1, y1))
    ]
    return np.stack(corners, 2), (x1 - x0) * (y1 - y0), x1 - x0 + y1 - y0
