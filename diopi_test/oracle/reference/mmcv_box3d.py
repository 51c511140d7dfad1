"""MMCV's operators on boxes in space, and on the points in these boxes.

A box is (x, y, z, dx, dy, dz, heading): the center of its bottom, its sizes, and its rotation about the z axis in
radians. Its bird's-eye view is its projection to the plane of x and y.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Sources: MMCV's operators; S. Shi et al., "From Points to Parts", 2019 (RoI-aware pooling).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.geometry import Polygon, center_on_first, overlap, overlap_terms, rotated_box
from diopi_test.oracle.reference.mmcv_box import polygon_overlap_test, suppress_nonmaxima, upright_overlap_test
from diopi_test.oracle.reference.sums import accumulation_terms, sum_terms

Array = NDArray[Any]

MIN_UNION = 1e-8
"""The least area of a union in an overlap; smaller unions count as this area, as in MMCV."""


# Bird's-eye view


BEV_FIELDS = [0, 1, 3, 4, 6]
"""The fields of a box that describe its bird's-eye view: x, y, dx, dy and heading."""


def _bev_rectangles(boxes: Array) -> list[Polygon]:
    """Return the rectangle of each box in the bird's-eye view."""
    return [rotated_box(*box) for box in boxes[:, BEV_FIELDS]]


@reference("diopiIou3dBoxesOverlapBevMmcv")
def iou3d_boxes_overlap_bev(boxes_a, boxes_b):
    """Return the area of the intersection of all pairs of boxes in the bird's-eye view."""
    rectangles_a, rectangles_b = boxes_a[:, BEV_FIELDS], boxes_b[:, BEV_FIELDS]
    pairs = [center_on_first(rectangle_a, rectangle_b) for rectangle_a in rectangles_a for rectangle_b in rectangles_b]
    shape = len(boxes_a), len(boxes_b)
    return WithTerms(
        np.reshape([overlap(*pair) for pair in pairs], shape),
        np.reshape([overlap_terms(*pair) for pair in pairs], shape),
    )


def _nms_results(boxes: Array, find_overlaps: Callable[..., Any]) -> tuple[PartlySpecified, Array]:
    """Return the indices of the selected boxes, padded with unspecified elements, and their number."""
    survivors = suppress_nonmaxima(range(len(boxes)), find_overlaps)
    indices = np.zeros(len(boxes), np.int64)
    indices[: len(survivors)] = survivors
    return PartlySpecified(indices, np.arange(len(boxes)) < len(survivors)), np.array([len(survivors)])


@reference("diopiIou3dNms3dMmcv")
def iou3d_nms3d(boxes, nms_overlap_thresh):
    """Return the indices and the number of the boxes that non-maximum suppression selects by rotated overlap."""
    return _nms_results(boxes, polygon_overlap_test(_bev_rectangles(boxes), nms_overlap_thresh, MIN_UNION))


@reference("diopiIou3dNms3dNormalMmcv")
def iou3d_nms3d_normal(boxes, nms_overlap_thresh):
    """Return the indices and the number of the boxes that non-maximum suppression selects, without their rotation."""
    centers, halves = boxes[:, :2], boxes[:, 3:5] / 2
    upright = np.concatenate([centers - halves, centers + halves], 1)
    return _nms_results(boxes, upright_overlap_test(upright, nms_overlap_thresh, 0, MIN_UNION))


# Points in boxes


def _box_coordinates(points: Array, box: Array) -> tuple[Array, Array]:
    """Return the coordinates of points along the axes of a box, and a mask of the points inside the box.

    The origin of the coordinates is the center of the bottom of the box.

    Args:
        points: The points, (points, 3).
        box: The box.
    """
    offsets, sizes = points - box[:3], box[3:6]
    cosine, sine = np.cos(box[6]), np.sin(box[6])
    local_x = offsets[:, 0] * cosine + offsets[:, 1] * sine
    local_y = offsets[:, 1] * cosine - offsets[:, 0] * sine
    inside = (np.abs(local_x) < sizes[0] / 2) & (np.abs(local_y) < sizes[1] / 2)
    inside &= np.abs(offsets[:, 2] - sizes[2] / 2) <= sizes[2] / 2
    return np.stack([local_x, local_y, offsets[:, 2]], -1), inside


def _points_in_boxes(boxes: Array, points: Array) -> Array:
    """Return whether each point is in each box of its sample: (samples, points, boxes)."""
    inside = np.zeros((*points.shape[:2], boxes.shape[1]), bool)
    for b, t in np.ndindex(*boxes.shape[:2]):
        inside[b, :, t] = _box_coordinates(points[b], boxes[b, t])[1]
    return inside


@reference("diopiPointsInBoxesPartMmcv")
def points_in_boxes_part(boxes, pts):
    """Return the index of the first box that contains each point, or −1."""
    inside = _points_in_boxes(boxes, pts)
    return np.where(inside.any(-1), inside.argmax(-1) if inside.shape[-1] else 0, -1)


@reference("diopiPointsInBoxesAllMmcv")
def points_in_boxes_all(boxes, pts):
    """Return 1 for each pair of a point and a box that contains it, else 0: (samples, points, boxes)."""
    return _points_in_boxes(boxes, pts).astype(np.int64)


# Pooling of points

MAXIMUM = 0
"""The value of `pool_method` for the maximum; any other value stands for the mean."""


def _fill_voxel_slots(box: Array, points: Array, slots: Array) -> None:
    """Write the indices of the points in a box into the slots of its voxels; the first slot counts the points.

    Args:
        box: The box, which is divided into voxels.
        points: The points, (points, 3).
        slots: The slots of each voxel, (voxels along x, y and z, slots), zeros at first. Points for which there is no
            slot are dropped.
    """
    positions, inside = _box_coordinates(points, box)
    grid = slots.shape[:3]
    from_corner = positions + np.array([box[3] / 2, box[4] / 2, 0])
    for k in np.flatnonzero(inside):
        voxel = tuple(np.clip(np.floor(from_corner[k] / (box[3:6] / grid)).astype(int), 0, np.subtract(grid, 1)))
        if slots[voxel][0] < slots.shape[3] - 1:
            slots[voxel][0] += 1
            slots[voxel][slots[voxel][0]] = k


@reference("diopiRoiawarePool3dMmcv")
def roiaware_pool3d(argmax, pts_idx_of_voxels, pooled_features, rois, pts, pts_feature, pool_method):
    """Return the indices of the maxima, the points in each voxel of each box, and the pooled features of these points.

    The features are the maximum or the mean over the points in a voxel. For the mean, `argmax` is unchanged.
    """
    voxel_points = np.zeros(pts_idx_of_voxels.shape, np.int64)
    for roi, slots in zip(rois, voxel_points, strict=True):
        _fill_voxel_slots(roi, pts, slots)
    pooled, terms, argmax_points = (
        np.zeros(pooled_features.shape),
        np.zeros(pooled_features.shape),
        np.full(argmax.shape, -1),
    )
    for voxel in np.ndindex(*voxel_points.shape[:4]):
        members = voxel_points[voxel][1 : 1 + voxel_points[voxel][0]]
        features = pts_feature[members]
        if len(members) and pool_method == MAXIMUM:
            pooled[voxel], argmax_points[voxel] = features.max(0), members[features.argmax(0)]
        elif len(members):
            pooled[voxel], terms[voxel] = features.mean(0), sum_terms(features, 0) / len(members)
    if pool_method == MAXIMUM:
        return argmax_points, voxel_points, Exact(pooled)
    return argmax, voxel_points, WithTerms(pooled, terms)


@reference("diopiRoiawarePool3dBackwardMmcv")
def roiaware_pool3d_backward(grad_in, pts_idx_of_voxels, argmax, grad_out, pool_method):
    """Return the gradient of the features of the points."""
    gradient, squares, counts = np.zeros_like(grad_out, shape=(3, *grad_in.shape))

    def add(point: Any, channel: Any, grad: Any) -> None:
        """Add `grad` to the gradient at these indices, and update the statistics for its terms."""
        gradient[point, channel] += grad
        squares[point, channel] += grad**2
        counts[point, channel] += 1

    for voxel in np.ndindex(*grad_out.shape[:4]):
        count, *members = pts_idx_of_voxels[voxel]
        if pool_method == MAXIMUM:
            for channel in np.flatnonzero(argmax[voxel] >= 0):
                add(argmax[voxel][channel], channel, grad_out[voxel][channel])
        else:
            for point in members[:count]:
                add(point, slice(None), grad_out[voxel] / count)
    return WithTerms(gradient, accumulation_terms(counts, np.sqrt(counts * squares), squares, gradient))


@reference("diopiRoipointPool3dMmcv")
def roipoint_pool3d(pooled_features, xyz, boxes3d, pts_feature):
    """Return the coordinates and features of the points in each box, and 1 for each box without points.

    If a box has fewer points than the result has rows, its points are repeated. Rows of empty boxes are unchanged.
    """
    pooled, is_empty = pooled_features.copy(), np.zeros(boxes3d.shape[:2], np.int64)
    rows = np.concatenate([xyz, pts_feature], -1)
    if pooled.shape[-1] != rows.shape[-1]:
        raise ValueError(f"pooled_features has shape {pooled.shape}, expected {rows.shape[-1]} in the last axis")
    for b, m in np.ndindex(*boxes3d.shape[:2]):
        members = np.flatnonzero(_box_coordinates(xyz[b], boxes3d[b, m])[1])[: pooled.shape[2]]
        if len(members):
            pooled[b, m] = rows[b, np.resize(members, pooled.shape[2])]
        else:
            is_empty[b, m] = 1
    return pooled, is_empty
