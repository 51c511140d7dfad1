"""MMCV's operators on boxes in space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.geometry import Polygon, around_the_first, overlap, overlap_terms, rotated_box
from diopi_test.oracle.reference.mmcv_box import drops_turned, drops_upright, suppressed
from diopi_test.oracle.reference.sums import accumulated, sum_terms

Array = NDArray[Any]

LEAST_UNION = 1e-8
"""Smaller unions count as this."""


# Bird's-eye view


FROM_ABOVE = [0, 1, 3, 4, 6]
"""Of a box: x, y, dx, dy and heading."""


def _seen_from_above(boxes: Array) -> list[Polygon]:
    return [rotated_box(*box) for box in boxes[:, FROM_ABOVE]]


@reference("diopiIou3dBoxesOverlapBevMmcv")
def iou3d_boxes_overlap_bev(boxes_a: Array, boxes_b: Array) -> WithTerms:
    ones, others = boxes_a[:, FROM_ABOVE], boxes_b[:, FROM_ABOVE]
    pairs = [around_the_first(one, other) for one in ones for other in others]
    shape = len(boxes_a), len(boxes_b)
    return WithTerms(
        np.reshape([overlap(*pair) for pair in pairs], shape),
        np.reshape([overlap_terms(*pair) for pair in pairs], shape),
    )


def _kept(boxes: Array, drops: Callable[..., Any]) -> tuple[PartlySpecified, Array]:
    """The rows kept, of which all after the last are open, and their number."""
    rows = suppressed(range(len(boxes)), drops)
    keep = np.zeros(len(boxes), np.int64)
    keep[: len(rows)] = rows
    return PartlySpecified(keep, np.arange(len(boxes)) < len(rows)), np.array([len(rows)])


@reference("diopiIou3dNms3dMmcv")
def iou3d_nms3d(boxes: Array, nms_overlap_thresh: float) -> Any:
    return _kept(boxes, drops_turned(_seen_from_above(boxes), nms_overlap_thresh, LEAST_UNION))


@reference("diopiIou3dNms3dNormalMmcv")
def iou3d_nms3d_normal(boxes: Array, nms_overlap_thresh: float) -> Any:
    centres, halves = boxes[:, :2], boxes[:, 3:5] / 2
    upright = np.concatenate([centres - halves, centres + halves], 1)
    return _kept(boxes, drops_upright(upright, nms_overlap_thresh, 0, LEAST_UNION))


# Points in boxes


def _places(points: Array, box: Array) -> tuple[Array, Array]:
    """Where points are in a box's own axes, from its middle in x and y and from its bottom in z; which are inside."""
    away, sizes = points - box[:3], box[3:6]
    cosine, sine = np.cos(box[6]), np.sin(box[6])
    along = away[:, 0] * cosine + away[:, 1] * sine
    across = away[:, 1] * cosine - away[:, 0] * sine
    inside = (np.abs(along) < sizes[0] / 2) & (np.abs(across) < sizes[1] / 2)
    inside &= np.abs(away[:, 2] - sizes[2] / 2) <= sizes[2] / 2
    return np.stack([along, across, away[:, 2]], -1), inside


def _containment(boxes: Array, points: Array) -> Array:
    """Whether each point is in each box, (B, M, T)."""
    inside = np.zeros((*points.shape[:2], boxes.shape[1]), bool)
    for b, t in np.ndindex(*boxes.shape[:2]):
        inside[b, :, t] = _places(points[b], boxes[b, t])[1]
    return inside


@reference("diopiPointsInBoxesPartMmcv")
def points_in_boxes_part(box_idx_of_points: Array, boxes: Array, pts: Array) -> Array:
    inside = _containment(boxes, pts)
    return np.where(inside.any(-1), inside.argmax(-1) if inside.shape[-1] else 0, -1)


@reference("diopiPointsInBoxesAllMmcv")
def points_in_boxes_all(box_idx_of_points: Array, boxes: Array, pts: Array) -> Array:
    return _containment(boxes, pts).astype(np.int64)


# Pooling of points

MAXIMUM = 0
"""The pooling method; the other one is the mean."""


def _listed(box: Array, points: Array, slots: Array) -> None:
    """Enter the points of a box into the slots of its voxels, of which the first counts them."""
    places, inside = _places(points, box)
    grid = slots.shape[:3]
    from_corner = places + np.array([box[3] / 2, box[4] / 2, 0])
    for k in np.flatnonzero(inside):
        voxel = tuple(np.clip(np.floor(from_corner[k] / (box[3:6] / grid)).astype(int), 0, np.subtract(grid, 1)))
        if slots[voxel][0] < slots.shape[3] - 1:
            slots[voxel][0] += 1
            slots[voxel][slots[voxel][0]] = k


@reference("diopiRoiawarePool3dMmcv")
def roiaware_pool3d(
    argmax: Array,
    pts_idx_of_voxels: Array,
    pooled_features: Array,
    rois: Array,
    pts: Array,
    pts_feature: Array,
    pool_method: int,
) -> Any:
    lists = np.zeros(pts_idx_of_voxels.shape, np.int64)
    for roi, slots in zip(rois, lists, strict=True):
        _listed(roi, pts, slots)
    pooled, terms, first = np.zeros(pooled_features.shape), np.zeros(pooled_features.shape), np.full(argmax.shape, -1)
    for voxel in np.ndindex(*lists.shape[:4]):
        members = lists[voxel][1 : 1 + lists[voxel][0]]
        features = pts_feature[members]
        if len(members) and pool_method == MAXIMUM:
            pooled[voxel], first[voxel] = features.max(0), members[features.argmax(0)]
        elif len(members):
            pooled[voxel], terms[voxel] = features.mean(0), sum_terms(features, 0) / len(members)
    if pool_method == MAXIMUM:
        return first, lists, Exact(pooled)
    return argmax, lists, WithTerms(pooled, terms)


@reference("diopiRoiawarePool3dBackwardMmcv")
def roiaware_pool3d_backward(
    grad_in: Array, pts_idx_of_voxels: Array, argmax: Array, grad_out: Array, pool_method: int
) -> WithTerms:
    gradient, squares, counts = np.zeros((3, *grad_in.shape))

    def add(point: Any, channel: Any, given: Any) -> None:
        gradient[point, channel] += given
        squares[point, channel] += given**2
        counts[point, channel] += 1

    for voxel in np.ndindex(*grad_out.shape[:4]):
        count, *members = pts_idx_of_voxels[voxel]
        if pool_method == MAXIMUM:
            for channel in np.flatnonzero(argmax[voxel] >= 0):
                add(argmax[voxel][channel], channel, grad_out[voxel][channel])
        else:
            for point in members[:count]:
                add(point, slice(None), grad_out[voxel] / count)
    return WithTerms(gradient, accumulated(counts, np.sqrt(counts * squares), squares, gradient))


@reference("diopiRoipointPool3dMmcv")
def roipoint_pool3d(
    pooled_features: Array, pooled_empty_flag: Array, xyz: Array, boxes3d: Array, pts_feature: Array
) -> tuple[Array, Array]:
    pooled, is_empty = pooled_features.copy(), np.zeros(boxes3d.shape[:2], np.int64)
    rows = np.concatenate([xyz, pts_feature], -1)
    if pooled.shape[-1] != rows.shape[-1]:
        raise ValueError(f"pooled_features has shape {pooled.shape}, expected {rows.shape[-1]} in the last axis")
    for b, m in np.ndindex(*boxes3d.shape[:2]):
        members = np.flatnonzero(_places(xyz[b], boxes3d[b, m])[1])[: pooled.shape[2]]
        if len(members):
            pooled[b, m] = rows[b, np.resize(members, pooled.shape[2])]
        else:
            is_empty[b, m] = 1
    return pooled, is_empty
