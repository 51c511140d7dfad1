"""MMCV's operators on boxes in space.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.geometry import (
    box_overlap_areas,
    non_maximum_suppression,
    rotated_suppression,
    upright_suppression,
)
from diopi_impl.jax_cpu.sizes import check_shapes

LEAST_UNION = 1e-8
"""Smaller unions of two boxes count as this area."""


def _check_columns(ndim: int, columns: int, **tensors: Array) -> None:
    """Raise ValueError unless the tensors have `ndim` axes, the last of size `columns`."""
    for name, tensor in tensors.items():
        if tensor.ndim != ndim or tensor.shape[-1] != columns:
            raise ValueError(f"{name} has shape {tensor.shape}, expected {ndim} axes, the last of size {columns}")


# Bird's-eye view


def _birds_eye_boxes(boxes: Array) -> Array:
    """Return the rectangles of boxes in the bird's-eye view, (cx, cy, w, h, θ)."""
    return boxes[:, jnp.array([0, 1, 3, 4, 6])]


@vendor.implements("diopiIou3dBoxesOverlapBevMmcv")
def iou3d_boxes_overlap_bev(boxes_a, boxes_b):
    """Return the area of the intersection of all pairs of boxes in the bird's-eye view."""
    _check_columns(2, 7, boxes_a=boxes_a, boxes_b=boxes_b)
    rects_a, rects_b = _birds_eye_boxes(boxes_a), _birds_eye_boxes(boxes_b)
    if not len(rects_a) or not len(rects_b):
        return jnp.zeros((len(rects_a), len(rects_b)), rects_a.dtype)
    return lax.map(lambda rect: box_overlap_areas(rect, rects_b), rects_a)


def _selected_rows(is_selected: Array) -> tuple[Array, Array]:
    """Return the indices of the true elements, padded with 0 to the full length, and their number."""
    return jnp.nonzero(is_selected, size=len(is_selected), fill_value=0)[0], is_selected.sum()[None]


@vendor.implements("diopiIou3dNms3dMmcv")
def iou3d_nms3d(boxes, nms_overlap_thresh):
    """Return the indices that non-maximum suppression selects by rotated overlap, padded, and their number."""
    _check_columns(2, 7, boxes=boxes)
    return _selected_rows(
        non_maximum_suppression(
            len(boxes), rotated_suppression(_birds_eye_boxes(boxes), nms_overlap_thresh, LEAST_UNION)
        )
    )


@vendor.implements("diopiIou3dNms3dNormalMmcv")
def iou3d_nms3d_normal(boxes, nms_overlap_thresh):
    """Return the indices that non-maximum suppression selects by overlap without rotation, padded, and their number."""
    _check_columns(2, 7, boxes=boxes)
    centers, halves = boxes[:, :2], boxes[:, 3:5] / 2
    upright = jnp.concatenate([centers - halves, centers + halves], 1)
    return _selected_rows(
        non_maximum_suppression(len(boxes), upright_suppression(upright, nms_overlap_thresh, 0, LEAST_UNION))
    )


# Points in boxes


def _box_coordinates(points: Array, box: Array) -> Array:
    """Return points in the box's coordinates, relative to its center in x and y and to its bottom in z."""
    x, y, z = (points[..., i] - box[i] for i in range(3))
    cosine, sine = jnp.cos(box[6]), jnp.sin(box[6])
    return jnp.stack([x * cosine + y * sine, y * cosine - x * sine, z], -1)


def _is_inside(positions: Array, box: Array) -> Array:
    """Return which positions, in the coordinates of the box, are inside the box."""
    halves = box[3:6] / 2
    upright = jnp.abs(positions[..., 2] - halves[2]) <= halves[2]
    return upright & (jnp.abs(positions[..., 0]) < halves[0]) & (jnp.abs(positions[..., 1]) < halves[1])


def _contains(box: Array, points: Array) -> Array:
    """Return which points are inside the box."""
    return _is_inside(_box_coordinates(points, box), box)


def _check_points(boxes: Array, pts: Array) -> None:
    """Raise ValueError unless boxes are (B, T, 7) and points (B, M, 3)."""
    _check_columns(3, 7, boxes=boxes)
    _check_columns(3, 3, pts=pts)
    check_shapes((boxes.shape[0], *pts.shape[1:]), pts=pts)


@vendor.implements("diopiPointsInBoxesPartMmcv")
def points_in_boxes_part(box_idx_of_points, boxes, pts):
    """Return the index of the first box that contains each point, or −1."""
    _check_points(boxes, pts)
    check_shapes(pts.shape[:2], box_idx_of_points=box_idx_of_points)

    def visit(i: Array, box_numbers: Array) -> Array:
        """Return the numbers of the boxes, with box t for the points inside it; boxes are visited in reverse order."""
        t = boxes.shape[1] - 1 - i
        return jnp.where(jax.vmap(_contains)(boxes[:, t], pts), t, box_numbers)

    no_box = jnp.full(pts.shape[:2], -1)
    return lax.fori_loop(0, boxes.shape[1], visit, no_box) if boxes.shape[1] else no_box


@vendor.implements("diopiPointsInBoxesAllMmcv")
def points_in_boxes_all(box_idx_of_points, boxes, pts):
    """Return 1 for each point in each box, else 0."""
    _check_points(boxes, pts)
    check_shapes((*pts.shape[:2], boxes.shape[1]), box_idx_of_points=box_idx_of_points)
    contains_points = jax.vmap(_contains, in_axes=(0, None), out_axes=-1)
    return jax.vmap(contains_points)(boxes, pts)


# Pooling of points


def _check_method(pool_method: int) -> None:
    """Raise ValueError unless pool_method is 0 (maximum) or 1 (mean)."""
    if pool_method not in (0, 1):
        raise ValueError(f"pool_method is {pool_method}, expected 0 or 1")


def _voxels(box: Array, points: Array, grid: tuple[int, int, int]) -> Array:
    """Return the number of the voxel of each point; for points outside the box, the total number of voxels."""
    positions, sizes = _box_coordinates(points, box), jnp.array(grid)
    from_corner = positions + jnp.stack([box[3] / 2, box[4] / 2, jnp.zeros_like(box[0])])
    x, y, z = jnp.moveaxis(jnp.clip((from_corner / (box[3:6] / sizes)).astype(int), 0, sizes - 1), -1, 0)
    return jnp.where(_is_inside(positions, box), (x * sizes[1] + y) * sizes[2] + z, sizes.prod())


def _ranks_in_voxel(voxels: Array) -> Array:
    """Return, for each point, the number of earlier points in the same voxel."""
    order = jnp.argsort(voxels, stable=True)
    first = jnp.searchsorted(voxels[order], voxels[order])
    return jnp.zeros_like(voxels).at[order].set(jnp.arange(len(voxels)) - first)


@vendor.implements("diopiRoiawarePool3dMmcv")
def roiaware_pool3d(argmax, pts_idx_of_voxels, pooled_features, rois, pts, pts_feature, pool_method):
    """Return, per voxel of each box, the points that attain the maxima, the points inside, and the pooled features.

    `pool_method` is 0 for the maximum and 1 for the mean.
    """
    _check_method(pool_method)
    _check_columns(2, 7, rois=rois)
    _check_columns(2, 3, pts=pts)
    check_shapes((len(pts), *pooled_features.shape[4:]), pts_feature=pts_feature)
    check_shapes((len(rois), *pooled_features.shape[1:]), argmax=argmax, pooled_features=pooled_features)
    check_shapes((*argmax.shape[:4], *pts_idx_of_voxels.shape[4:]), pts_idx_of_voxels=pts_idx_of_voxels)
    if not argmax.size or not len(pts):
        return argmax, pts_idx_of_voxels, pooled_features
    _, x, y, z, slots = pts_idx_of_voxels.shape
    count, number = x * y * z, jnp.arange(len(pts))

    def pool(roi: Array) -> tuple[Array, Array, Array]:
        """Return the points of maxima, the points of each voxel, and the pooled features of a box."""
        voxels = _voxels(roi, pts, (x, y, z))
        ranks = _ranks_in_voxel(voxels)
        voxels = jnp.where(ranks < slots - 1, voxels, count)
        sizes = jnp.zeros(count, int).at[voxels].add(1, mode="drop")
        lists = jnp.zeros((count, slots), int).at[:, 0].set(sizes).at[voxels, ranks + 1].set(number, mode="drop")
        if pool_method == 1:
            total = jnp.zeros((count, pts_feature.shape[1]), pts_feature.dtype).at[voxels].add(pts_feature, mode="drop")
            return jnp.zeros(0), lists, total / jnp.maximum(sizes, 1)[:, None]
        largest = jnp.full((count, pts_feature.shape[1]), -jnp.inf).at[voxels].max(pts_feature, mode="drop")
        attains = pts_feature == largest[jnp.minimum(voxels, count - 1)]
        candidates = jnp.where(attains, number[:, None], len(pts))
        first = jnp.full(largest.shape, len(pts)).at[voxels].min(candidates, mode="drop")
        is_empty = (sizes == 0)[:, None]
        return jnp.where(is_empty, -1, first), lists, jnp.where(is_empty, 0, largest)

    first, lists, pooled = lax.map(pool, rois)
    first = argmax if pool_method == 1 else first.reshape(argmax.shape)
    return first, lists.reshape(pts_idx_of_voxels.shape), pooled.reshape(pooled_features.shape)


@vendor.implements("diopiRoiawarePool3dBackwardMmcv")
def roiaware_pool3d_backward(grad_in, pts_idx_of_voxels, argmax, grad_out, pool_method):
    """Return the gradient of the features of the points."""
    _check_method(pool_method)
    check_shapes(grad_out.shape, argmax=argmax)
    check_shapes((*grad_out.shape[:4], *pts_idx_of_voxels.shape[4:]), pts_idx_of_voxels=pts_idx_of_voxels)
    channels = _channels(grad_in, grad_out)
    if not grad_out.size:
        return grad_in
    zeros = jnp.zeros(grad_in.shape, grad_out.dtype)
    if pool_method == 0:
        positions = jnp.where(argmax >= 0, argmax, len(grad_in))
        return zeros.at[positions, jnp.arange(channels)].add(grad_out, mode="drop")
    counts = pts_idx_of_voxels[..., :1]
    members = pts_idx_of_voxels[..., 1:]
    share = grad_out / jnp.maximum(counts, 1)

    def add(slot: Array, total: Array) -> Array:
        """Add the gradients of the points in a slot of every voxel."""
        positions = jnp.where(slot < counts[..., 0], members[..., slot], len(grad_in))
        return total.at[positions].add(share, mode="drop")

    return lax.fori_loop(0, members.shape[-1], add, zeros)


def _channels(grad_in: Array, grad_out: Array) -> int:
    """Return the number of channels; raise ValueError unless points and voxels have equally many."""
    if grad_in.ndim != 2 or grad_out.ndim != 5 or grad_in.shape[1] != grad_out.shape[4]:
        raise ValueError(
            f"grad_in has shape {grad_in.shape} and grad_out {grad_out.shape}, expected the same number of channels"
        )
    return int(grad_in.shape[1])


@vendor.implements("diopiRoipointPool3dMmcv")
def roipoint_pool3d(pooled_features, pooled_empty_flag, xyz, boxes3d, pts_feature):
    """Return coordinates and features of the points in each box, repeated to fill it, and which boxes are empty."""
    _check_columns(3, 3, xyz=xyz)
    _check_columns(3, 7, boxes3d=boxes3d)
    check_shapes((xyz.shape[0], *boxes3d.shape[1:]), boxes3d=boxes3d)
    check_shapes((*xyz.shape[:2], *pts_feature.shape[2:]), pts_feature=pts_feature)
    samples = pooled_features.shape[2]
    shape = (*boxes3d.shape[:2], samples, 3 + pts_feature.shape[2])
    check_shapes(shape, pooled_features=pooled_features)
    check_shapes(boxes3d.shape[:2], pooled_empty_flag=pooled_empty_flag)
    if not pooled_features.size or not xyz.size:
        return pooled_features, jnp.ones_like(pooled_empty_flag) if xyz.shape[1] == 0 else pooled_empty_flag
    rows = jnp.concatenate([xyz, pts_feature], -1)

    def pool(points: Array, point_rows: Array, initial: Array, box: Array) -> tuple[Array, Array]:
        """Return the samples of the points in a box, and whether the box is empty."""
        inside = _contains(box, points)
        place = jnp.where(inside, jnp.cumsum(inside) - 1, samples)
        members = jnp.zeros(samples, int).at[place].set(jnp.arange(len(points)), mode="drop")
        count = jnp.minimum(inside.sum(), samples)
        samples_of_box = point_rows[members[jnp.arange(samples) % jnp.maximum(count, 1)]]
        return jnp.where(count > 0, samples_of_box, initial), count == 0

    pool_boxes = jax.vmap(pool, in_axes=(None, None, 0, 0))
    pooled, flags = jax.vmap(pool_boxes)(xyz, rows, pooled_features, boxes3d)
    return pooled, flags
