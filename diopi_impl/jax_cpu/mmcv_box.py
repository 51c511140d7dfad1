"""MMCV's operators on boxes, quadrilaterals and polygons in the plane.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from diopi_impl.functional import Adapted
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.extremes import to_ranks
from diopi_impl.jax_cpu.geometry import (
    box_overlap_areas,
    differentiable_overlap_areas,
    hull_indices,
    non_maximum_suppression,
    overlap_areas,
    rotated_suppression,
    select_points,
    signed_areas,
    upright_overlap_areas,
    upright_suppression,
)
from diopi_impl.jax_cpu.jit import adapt_by_compiling
from diopi_impl.jax_cpu.sizes import check_shapes
from diopi_impl.specs import OutSpec
from diopi_proto.prototype import Prototype

LEAST_AREA = 1e-14
"""A box whose area is smaller than this overlaps no other box."""


def _check_columns(columns: int, **tensors: Array) -> None:
    """Raise ValueError unless the tensors are matrices with this number of columns."""
    for name, tensor in tensors.items():
        if tensor.ndim != 2 or tensor.shape[1] != columns:
            raise ValueError(f"{name} has shape {tensor.shape}, expected (n, {columns})")


def _check_mode(mode: int) -> None:
    """Raise ValueError unless mode is 0 or 1."""
    if mode not in (0, 1):
        raise ValueError(f"mode is {mode}, expected 0 or 1")


def _check_pairs(aligned: bool, bboxes1: Array, bboxes2: Array) -> None:
    """Raise ValueError if the boxes are aligned and their numbers differ."""
    if aligned and len(bboxes1) != len(bboxes2):
        raise ValueError(f"there are {len(bboxes1)} and {len(bboxes2)} boxes, expected equal numbers of aligned boxes")


# Overlaps


def _compute_ratios(ratios: Callable[[Array, Array], Array], a: Array, b: Array, aligned: bool) -> Array:
    """Return the ratios of all pairs of rows, computed row by row, or only of rows with the same index if `aligned`."""
    if aligned:
        return ratios(a, b)
    if not len(a) or not len(b):
        return jnp.zeros((len(a), len(b)), a.dtype)
    return lax.map(lambda row: ratios(row, b), a)


@vendor.implements("diopiBboxOverlapsMmcv")
def bbox_overlaps(bboxes1, bboxes2, mode, offset, aligned):
    """Return intersection over union (mode 0) or over the first area (mode 1) of axis-aligned boxes."""
    _check_columns(4, bboxes1=bboxes1, bboxes2=bboxes2)
    _check_mode(mode)
    _check_pairs(aligned, bboxes1, bboxes2)

    def ratios(a: Array, b: Array) -> Array:
        """Return the ratios of two arrays of boxes, which broadcast."""
        common = upright_overlap_areas(a, b, offset)
        area_a, area_b = ((boxes[..., 2:] - boxes[..., :2] + offset).prod(-1) for boxes in (a, b))
        return common / jnp.maximum(area_a + area_b - common if mode == 0 else area_a, offset)

    return _compute_ratios(ratios, bboxes1, bboxes2, aligned)


def _polygon_overlap_ratios(polygons_a: Array, polygons_b: Array, mode: int, aligned: bool) -> Array:
    """Return the intersections of polygons over their union (mode 0), or over the first polygon's area (mode 1)."""

    def ratios(a: Array, b: Array) -> Array:
        """Return the ratios of two arrays of polygons, which broadcast."""
        return _overlap_ratios(jnp.abs(signed_areas(a)), jnp.abs(signed_areas(b)), overlap_areas(a, b), mode)

    return _compute_ratios(ratios, polygons_a, polygons_b, aligned)


def _overlap_ratios(area_a: Array, area_b: Array, common: Array, mode: int) -> Array:
    """Return intersection over union (mode 0) or over the first area (mode 1); 0 for boxes smaller than LEAST_AREA."""
    has_area = jnp.minimum(area_a, area_b) >= LEAST_AREA
    base = area_a + area_b - common if mode == 0 else area_a + jnp.zeros_like(common)
    return jnp.where(has_area, common / jnp.where(has_area, base, 1), 0)


@vendor.implements("diopiBoxIouRotatedMmcv")
def box_iou_rotated(bboxes1, bboxes2, mode, aligned):
    """Return the overlap ratios of rotated boxes (x, y, width, height, angle)."""
    _check_columns(5, bboxes1=bboxes1, bboxes2=bboxes2)
    _check_mode(mode)
    _check_pairs(aligned, bboxes1, bboxes2)

    def ratios(a: Array, b: Array) -> Array:
        """Return the ratios of two arrays of boxes, which broadcast."""
        area_a, area_b = (jnp.abs(boxes[..., 2] * boxes[..., 3]) for boxes in (a, b))
        return _overlap_ratios(area_a, area_b, box_overlap_areas(a, b), mode)

    return _compute_ratios(ratios, bboxes1, bboxes2, aligned)


@vendor.implements("diopiBoxIouQuadriMmcv")
def box_iou_quadri(bboxes1, bboxes2, mode, aligned):
    """Return the overlap ratios of convex quadrilaterals."""
    _check_columns(8, bboxes1=bboxes1, bboxes2=bboxes2)
    _check_mode(mode)
    _check_pairs(aligned, bboxes1, bboxes2)
    return _polygon_overlap_ratios(bboxes1.reshape(-1, 4, 2), bboxes2.reshape(-1, 4, 2), mode, aligned)


# Suppression


def _drop_negative_indices(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """Adapt a function that returns −1 for boxes that are not selected; the host removes these indices."""
    adapted = adapt_by_compiling(prototype, function)

    def drop_negative(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Return the indices that are not negative."""
        (indices,) = map(np.asarray, adapted(arguments, out))
        return [indices[indices >= 0]]

    return drop_negative


@vendor.implements("diopiNmsMmcv", adapt=_drop_negative_indices)
def nms(dets, scores, iou_threshold, offset):
    """Return the indices of the boxes that non-maximum suppression selects, by descending score.

    The index of a box that is not selected is replaced by −1; the adapter removes these entries.
    """
    _check_columns(4, dets=dets)
    check_shapes(dets.shape[:1], scores=scores)
    order = jnp.argsort(to_ranks(scores), descending=True)
    return jnp.where(
        non_maximum_suppression(len(order), upright_suppression(dets[order], iou_threshold, offset)), order, -1
    )


@vendor.implements("diopiNmsRotatedMmcv", adapt=_drop_negative_indices)
def nms_rotated(dets, scores, order, dets_sorted, iou_threshold, multi_label):
    """Return the indices of the rotated boxes that non-maximum suppression selects, in the order of `order`.

    The index of a box that is not selected is replaced by −1; the adapter removes these entries.
    """
    _check_columns(6 if multi_label else 5, dets=dets, dets_sorted=dets_sorted)
    check_shapes(dets.shape, dets_sorted=dets_sorted)
    check_shapes(dets.shape[:1], scores=scores, order=order)
    return jnp.where(non_maximum_suppression(len(order), rotated_suppression(dets_sorted, iou_threshold)), order, -1)


# Points and polygons


@vendor.implements("diopiPointsInPolygonsMmcv")
def points_in_polygons(points, polygons):
    """Return 1 for each point in each quadrilateral, else 0: a ray to the right crosses an odd number of edges."""
    _check_columns(2, points=points)
    _check_columns(8, polygons=polygons)
    ends = polygons.reshape(-1, 4, 2)
    starts = jnp.roll(ends, 1, 1)
    (xs, ys), (xt, yt) = ((corners[..., 0], corners[..., 1]) for corners in (starts, ends))

    def contains(point: Array) -> Array:
        """Return for each polygon 1 if a ray from the point crosses an odd number of its edges, else 0."""
        passes = (ys < point[1]) != (yt < point[1])
        steps = jnp.where(passes, yt - ys, 1)
        return (passes & (xs + (point[1] - ys) * (xt - xs) / steps > point[0])).sum(-1) % 2

    return lax.map(contains, points) if points.size and polygons.size else jnp.zeros((len(points), len(ends)))


@vendor.implements("diopiMinAreaPolygonsMmcv")
def min_area_polygons(pointsets):
    """Return the corners of a smallest rectangle around each set of nine points."""
    _check_columns(18, pointsets=pointsets)
    points = pointsets.reshape(-1, 9, 2)
    hull = select_points(points, hull_indices(points))
    dx, dy = (jnp.roll(hull[..., i], -1, 1) - hull[..., i] for i in range(2))
    angles = jnp.arctan2(dy, dx) % (jnp.pi / 2)
    turns = jnp.stack([jnp.cos(angles), jnp.sin(angles)], -1)
    x = jnp.einsum("nea,npa->nep", turns, hull, precision="highest")
    y = jnp.einsum("nea,npa->nep", _rotate_by_quarter(turns), hull, precision="highest")
    low, high = (jnp.stack([extreme(x, -1), extreme(y, -1)], -1) for extreme in (jnp.min, jnp.max))
    sizes = jnp.where((dx == 0) & (dy == 0), jnp.inf, (high - low).prod(-1))
    best = jnp.argmin(sizes, -1)[:, None]
    low, high, turn = (select_points(corners_of_edges, best)[:, 0] for corners_of_edges in (low, high, turns))
    corners = (high, low), (low, low), (low, high), (high, high)
    return jnp.concatenate([x[:, :1] * turn + y[:, 1:] * _rotate_by_quarter(turn) for x, y in corners], -1)


def _rotate_by_quarter(vectors: Array) -> Array:
    """Return vectors rotated by 90° counter-clockwise."""
    return jnp.stack([-vectors[..., 1], vectors[..., 0]], -1)


# Hulls of nine points


@vendor.implements("diopiConvexIouMmcv")
def convex_iou(pointsets, polygons):
    """Return the intersection over union of each hull of nine points and each quadrilateral."""
    _check_columns(18, pointsets=pointsets)
    _check_columns(8, polygons=polygons)
    points = pointsets.reshape(-1, 9, 2)
    return _polygon_overlap_ratios(select_points(points, hull_indices(points)), polygons.reshape(-1, 4, 2), 0, False)


@vendor.implements("diopiConvexGiouMmcv")
def convex_giou(pointsets, polygons):
    """Return the generalized IoU of each hull of nine points and its quadrilateral, with the gradient: (n, 19).

    The first 18 columns are the gradient with respect to the points, and the last column is the generalized IoU.
    """
    _check_columns(18, pointsets=pointsets)
    _check_columns(8, polygons=polygons)
    check_shapes((len(pointsets), 8), polygons=polygons)
    corners = polygons.reshape(-1, 4, 2)

    def ratios(rows: Array) -> Array:
        """Return the generalized IoU of the hull of each row of points and its quadrilateral."""
        points = rows.reshape(-1, 9, 2)
        all_points = jnp.concatenate([points, corners], 1)
        hull, enclosing = (
            select_points(candidates, hull_indices(lax.stop_gradient(candidates)))
            for candidates in (points, all_points)
        )
        common, enclosing_area = differentiable_overlap_areas(hull, corners), signed_areas(enclosing)
        union = signed_areas(hull) + jnp.abs(signed_areas(corners)) - common
        return common / union - (enclosing_area - union) / enclosing_area

    value, pull = jax.vjp(ratios, pointsets)
    return jnp.concatenate([pull(jnp.ones_like(value))[0], value[:, None]], 1)


# Corners in order


@vendor.implements("diopiDiffIouRotatedSortVerticesMmcv")
def diff_iou_rotated_sort_vertices(vertices, mask, num_valid):
    """Return nine indices per polygon: the valid corners by angle, the first again, then an invalid corner's index.

    A polygon with fewer than three valid corners has the index of the invalid corner in all nine places.
    """
    check_shapes((*num_valid.shape, 24, 2), vertices=vertices)
    check_shapes((*num_valid.shape, 24), mask=mask)
    if num_valid.ndim != 2:
        raise ValueError(f"num_valid has shape {num_valid.shape}, expected (B, N)")
    angles = jnp.arctan2(vertices[..., 1], vertices[..., 0])
    order = jnp.argsort(jnp.where(mask, jnp.where(angles < 0, angles + 2 * jnp.pi, angles), jnp.inf), -1)[..., :9]
    padding = 8 + jnp.argmin(mask[..., 8:], -1)[..., None]
    place, count = jnp.arange(9), num_valid[..., None]
    closed = jnp.where(place < count, order, jnp.where(place == count, order[..., :1], padding))
    return jnp.where(count < 3, padding, closed)
