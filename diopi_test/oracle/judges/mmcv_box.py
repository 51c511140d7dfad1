"""Boxes of equal scores are taken in any order; of several smallest rectangles any is right."""

from __future__ import annotations

import numpy as np

from diopi_test.cases.formats import format_of
from diopi_test.oracle.judges import Answer, Array, Problems, judges
from diopi_test.oracle.judges.kinds import all_where, distinct_positions

ROUNDINGS = 32
"""How many roundings of a coordinate a corner may be off: of cosine and sine, two turns, and the edge's angle."""


@judges("diopiNmsMmcv")
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


@judges("diopiMinAreaPolygonsMmcv")
def min_area_polygons(answer: Answer) -> Problems:
    """Each result is a rectangle around all points, its corners clockwise, and none is smaller."""
    points = answer.arguments["pointsets"].reshape(-1, 9, 2)
    corners = answer.result.reshape(-1, 4, 2)
    epsilon = format_of(answer.dtypes["polygons"]).epsilon
    margin = ROUNDINGS * epsilon * np.abs(points).max((1, 2), initial=0)
    yield from all_where("polygons", np.isfinite(corners), corners, "finite numbers")
    along, across = corners[:, 0] - corners[:, 1], corners[:, 2] - corners[:, 1]
    closing = np.abs(corners[:, 3] - corners[:, 1] - along - across).max(1)
    yield from all_where("polygons", closing <= margin, corners[:, 3], "fourth corners of a parallelogram")
    length, width = (np.linalg.norm(side, axis=1) for side in (along, across))
    slant = np.abs((along * across).sum(1))
    yield from all_where("polygons", slant <= margin * (length + width), corners, "right-angled")
    size = along[:, 0] * across[:, 1] - along[:, 1] * across[:, 0]
    smallest = _smallest_areas(points)
    slack = 2 * margin * (length + width)
    yield from all_where("polygons", np.abs(size - smallest) <= slack, size, "smallest areas, corners clockwise")
    for side, extent in ((along, length), (across, width)):
        place = ((points - corners[:, 1:2]) * side[:, np.newaxis]).sum(-1) / extent[:, np.newaxis]
        inside = (place >= -margin[:, np.newaxis]) & (place <= (extent + margin)[:, np.newaxis])
        yield from all_where("polygons", inside, place, "places of points within a rectangle's side")


def _smallest_areas(points: Array) -> Array:
    """Of the rectangles along the way from any point to another the least area, which is along an edge of the hull."""
    ways = points[:, :, np.newaxis] - points[:, np.newaxis]
    lengths = np.linalg.norm(ways, axis=-1)
    directions = np.where(
        lengths[..., np.newaxis] > 0, ways / np.where(lengths > 0, lengths, 1)[..., np.newaxis], [1, 0]
    )
    x = np.einsum("nije,nke->nijk", directions, points)
    y = np.einsum("nije,nke->nijk", directions[..., ::-1] * [-1, 1], points)
    return np.asarray((np.ptp(x, -1) * np.ptp(y, -1)).min((1, 2)))
