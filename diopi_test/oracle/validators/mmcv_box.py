"""Boxes of equal scores are taken in any order; of several smallest rectangles any is right."""

from __future__ import annotations

import numpy as np

from diopi_test.cases.formats import format_of
from diopi_test.oracle.budget import R_ELEMENTS, K, R
from diopi_test.oracle.validators import Answer, Array, Problems, validates
from diopi_test.oracle.validators.kinds import all_where, distinct_positions

ROUNDINGS = 2
"""The unit of a corner's error in roundings of the largest coordinate, one for each of two turns by a rounded angle."""


@validates("diopiNmsMmcv")
def nms(answer: Answer) -> Problems:
    """No box kept drops another kept one, and each box that is not kept is dropped by one that comes before it."""
    boxes, scores, kept = answer.arguments["dets"], answer.arguments["scores"], answer.result
    problems = list(distinct_positions("out", kept, len(scores), 0))
    yield from problems
    if problems:
        return
    if np.any(np.diff(scores[kept]) > 0):
        yield "out: the scores are not falling"
    threshold, offset = answer.arguments["iou_threshold"], answer.arguments["offset"]
    overlapping = np.reshape([_overlap(boxes[one], boxes, threshold, offset) for one in kept], (len(kept), len(boxes)))
    for place, one in enumerate(kept):
        if overlapping[:place, one].any():
            yield f"out: box {one} overlaps box {kept[:place][overlapping[:place, one]][0]}, which is kept before it"
    before = overlapping & (scores[kept][:, np.newaxis] >= scores)
    before[np.arange(len(kept)), kept] = True
    missing = np.flatnonzero(~before.any(0))
    if missing.size:
        yield f"out: nothing that is kept drops box {missing[0]}, which is not"


def _overlap(box: Array, boxes: Array, threshold: float, offset: int) -> Array:
    """Which upright boxes have more in common with `box` than the threshold times what both cover."""

    def area(left: Array, top: Array, right: Array, bottom: Array) -> Array:
        return np.asarray(np.maximum(right - left + offset, 0) * np.maximum(bottom - top + offset, 0))

    inner = np.concatenate([np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])], 1)
    common = area(*inner.T)
    return np.asarray(common > threshold * (area(*box) + area(*boxes.T) - common))


@validates("diopiMinAreaPolygonsMmcv")
def min_area_polygons(answer: Answer) -> Problems:
    """Each result is a smallest rectangle around all points, its corners clockwise from any of them on."""
    points = answer.arguments["pointsets"].reshape(-1, 9, 2)
    corners = answer.result.reshape(-1, 4, 2)
    unit = ROUNDINGS * format_of(answer.dtypes["polygons"]).epsilon * np.abs(points).max((1, 2), initial=0)
    errors = _from_smallest(corners, points, K * unit)
    right = np.abs(errors).max((1, 2), initial=0) <= K * unit
    yield from all_where("polygons", right, corners, "corners of a smallest rectangle around the points, clockwise")
    units = errors[right & (unit > 0)] / unit[right & (unit > 0), np.newaxis, np.newaxis]
    mean = float(np.sqrt(np.mean(units**2))) if units.size >= R_ELEMENTS else 0.0
    if mean > R:
        yield f"polygons: the errors of the corners have root mean square {mean:.3g} units, at most {R:g} is allowed"


def _from_smallest(corners: Array, points: Array, margin: Array) -> Array:
    """How far corners are from those of the nearest of the smallest rectangles: [N, 4, 2].

    All rectangles are as good as smallest that corners within the margin, [N], could make so.
    """
    rectangles, sizes, girths = _rectangles(points)
    is_smallest = sizes <= (sizes + 2 * margin[:, np.newaxis] * girths).min(1, keepdims=True)
    found = np.full(corners.shape, np.nan)
    least = np.full(len(corners), np.inf)
    for first in range(4):
        errors = np.roll(corners, first, 1)[:, np.newaxis] - rectangles
        far = np.where(is_smallest, np.abs(errors).max((2, 3)), np.inf)
        best = far.argmin(1)
        nearer = far[np.arange(len(far)), best] < least
        found[nearer] = errors[nearer, best[nearer]]
        least[nearer] = far[nearer, best[nearer]]
    return found


def _rectangles(points: Array) -> tuple[Array, Array, Array]:
    """Those around nine points along the way from any of them to another; a smallest is along an edge of their hull.

    Their corners, clockwise, [N, 81, 4, 2], areas, and sums of two sides.
    """
    ways = (points[:, :, np.newaxis] - points[:, np.newaxis]).reshape(-1, 81, 2)
    lengths = np.linalg.norm(ways, axis=-1, keepdims=True)
    along = np.where(lengths > 0, ways / np.where(lengths > 0, lengths, 1), [1, 0])
    across = along[..., ::-1] * [-1, 1]
    x, y = (np.einsum("nie,nke->nik", axis, points) for axis in (along, across))
    (x0, x1), (y0, y1) = ((place.min(-1), place.max(-1)) for place in (x, y))
    corners = [
        a[..., np.newaxis] * along + b[..., np.newaxis] * across for a, b in ((x1, y0), (x0, y0), (x0, y1), (x1, y1))
    ]
    return np.stack(corners, 2), (x1 - x0) * (y1 - y0), x1 - x0 + y1 - y0
