"""MMCV's operators on boxes, quadrilaterals and polygons in the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from diopi_impl.functional import Adapted, OutSpec
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.extremes import ranks
from diopi_impl.jax_cpu.geometry import (
    areas,
    box_overlaps,
    chosen,
    drops_turned,
    drops_upright,
    hulls,
    kept,
    overlaps,
    overlaps_with_gradients,
    upright_overlaps,
)
from diopi_impl.jax_cpu.jit import compiled
from diopi_impl.jax_cpu.sizes import check_shapes
from diopi_proto.prototype import Prototype

LEAST_AREA = 1e-14
"""Below it a box overlaps nothing."""


def _check_columns(columns: int, **tensors: Array) -> None:
    """ValueError unless the tensors are matrices with so many columns."""
    for name, tensor in tensors.items():
        if tensor.ndim != 2 or tensor.shape[1] != columns:
            raise ValueError(f"{name} has shape {tensor.shape}, expected (n, {columns})")


def _check_mode(mode: int) -> None:
    if mode not in (0, 1):
        raise ValueError(f"mode is {mode}, expected 0 or 1")


def _check_pairs(aligned: bool, bboxes1: Array, bboxes2: Array) -> None:
    if aligned and len(bboxes1) != len(bboxes2):
        raise ValueError(f"aligned boxes come in pairs, but there are {len(bboxes1)} and {len(bboxes2)}")


# Overlaps


def _every_pair(ratios: Callable[[Array, Array], Array], ones: Array, others: Array, aligned: bool) -> Array:
    """The ratios of all pairs, one row of the result at a time, or row by row if `aligned`."""
    if aligned:
        return ratios(ones, others)
    if not len(ones) or not len(others):
        return jnp.zeros((len(ones), len(others)), ones.dtype)
    return lax.map(lambda one: ratios(one, others), ones)


@vendor.implements("diopiBboxOverlapsMmcv")
def bbox_overlaps(bboxes1: Array, bboxes2: Array, mode: int, offset: int, aligned: bool) -> Array:
    _check_columns(4, bboxes1=bboxes1, bboxes2=bboxes2)
    _check_mode(mode)
    _check_pairs(aligned, bboxes1, bboxes2)

    def ratios(one: Array, other: Array) -> Array:
        common = upright_overlaps(one, other, offset)
        size, other_size = ((boxes[..., 2:] - boxes[..., :2] + offset).prod(-1) for boxes in (one, other))
        return common / jnp.maximum(size + other_size - common if mode == 0 else size, offset)

    return _every_pair(ratios, bboxes1, bboxes2, aligned)


def _polygon_ratios(ones: Array, others: Array, mode: int, aligned: bool) -> Array:
    """The intersections of polygons over their union, or over the first one's area."""

    def ratios(one: Array, other: Array) -> Array:
        return _ratios_of_areas(jnp.abs(areas(one)), jnp.abs(areas(other)), overlaps(one, other), mode)

    return _every_pair(ratios, ones, others, aligned)


def _ratios_of_areas(one: Array, other: Array, common: Array, mode: int) -> Array:
    is_area = jnp.minimum(one, other) >= LEAST_AREA
    base = one + other - common if mode == 0 else one + jnp.zeros_like(common)
    return jnp.where(is_area, common / jnp.where(is_area, base, 1), 0)


@vendor.implements("diopiBoxIouRotatedMmcv")
def box_iou_rotated(bboxes1: Array, bboxes2: Array, mode: int, aligned: bool) -> Array:
    _check_columns(5, bboxes1=bboxes1, bboxes2=bboxes2)
    _check_mode(mode)
    _check_pairs(aligned, bboxes1, bboxes2)

    def ratios(one: Array, other: Array) -> Array:
        size, other_size = (jnp.abs(boxes[..., 2] * boxes[..., 3]) for boxes in (one, other))
        return _ratios_of_areas(size, other_size, box_overlaps(one, other), mode)

    return _every_pair(ratios, bboxes1, bboxes2, aligned)


@vendor.implements("diopiBoxIouQuadriMmcv")
def box_iou_quadri(bboxes1: Array, bboxes2: Array, mode: int, aligned: bool) -> Array:
    _check_columns(8, bboxes1=bboxes1, bboxes2=bboxes2)
    _check_mode(mode)
    _check_pairs(aligned, bboxes1, bboxes2)
    return _polygon_ratios(bboxes1.reshape(-1, 4, 2), bboxes2.reshape(-1, 4, 2), mode, aligned)


# Suppression


def _without_gaps(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """The adapter of functions that give −1 for what is dropped: only the host can leave it out."""
    adapted = compiled(prototype, function)

    def left_out(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        (indices,) = map(np.asarray, adapted(arguments, out))
        return [indices[indices >= 0]]

    return left_out


@vendor.implements("diopiNmsMmcv", adapt=_without_gaps)
def nms(dets: Array, scores: Array, iou_threshold: float, offset: int) -> Array:
    _check_columns(4, dets=dets)
    check_shapes(dets.shape[:1], scores=scores)
    order = jnp.argsort(ranks(scores), descending=True)
    return jnp.where(kept(len(order), drops_upright(dets[order], iou_threshold, offset)), order, -1)


@vendor.implements("diopiNmsRotatedMmcv", adapt=_without_gaps)
def nms_rotated(
    dets: Array,
    scores: Array,
    order: Array,
    dets_sorted: Array,
    labels: Array,
    iou_threshold: float,
    multi_label: bool,
) -> Array:
    _check_columns(6 if multi_label else 5, dets=dets, dets_sorted=dets_sorted)
    check_shapes(dets.shape, dets_sorted=dets_sorted)
    check_shapes(dets.shape[:1], scores=scores, order=order)
    return jnp.where(kept(len(order), drops_turned(dets_sorted, iou_threshold)), order, -1)


# Points and polygons


@vendor.implements("diopiPointsInPolygonsMmcv")
def points_in_polygons(points: Array, polygons: Array) -> Array:
    _check_columns(2, points=points)
    _check_columns(8, polygons=polygons)
    ends = polygons.reshape(-1, 4, 2)
    starts = jnp.roll(ends, 1, 1)
    (xs, ys), (xt, yt) = ((corners[..., 0], corners[..., 1]) for corners in (starts, ends))

    def contains(point: Array) -> Array:
        passes = (ys < point[1]) != (yt < point[1])
        steps = jnp.where(passes, yt - ys, 1)
        return (passes & (xs + (point[1] - ys) * (xt - xs) / steps > point[0])).sum(-1) % 2

    return lax.map(contains, points) if points.size and polygons.size else jnp.zeros((len(points), len(ends)))


@vendor.implements("diopiMinAreaPolygonsMmcv")
def min_area_polygons(pointsets: Array) -> Array:
    _check_columns(18, pointsets=pointsets)
    points = pointsets.reshape(-1, 9, 2)
    around = chosen(points, hulls(points))
    dx, dy = (jnp.roll(around[..., i], -1, 1) - around[..., i] for i in range(2))
    angles = jnp.arctan2(dy, dx) % (jnp.pi / 2)
    turns = jnp.stack([jnp.cos(angles), jnp.sin(angles)], -1)
    x = jnp.einsum("nea,npa->nep", turns, around, precision="highest")
    y = jnp.einsum("nea,npa->nep", _quarter_turned(turns), around, precision="highest")
    low, high = (jnp.stack([extreme(x, -1), extreme(y, -1)], -1) for extreme in (jnp.min, jnp.max))
    sizes = jnp.where((dx == 0) & (dy == 0), jnp.inf, (high - low).prod(-1))
    best = jnp.argmin(sizes, -1)[:, None]
    low, high, turn = (chosen(one, best)[:, 0] for one in (low, high, turns))
    corners = (high, low), (low, low), (low, high), (high, high)
    return jnp.concatenate([x[:, :1] * turn + y[:, 1:] * _quarter_turned(turn) for x, y in corners], -1)


def _quarter_turned(vectors: Array) -> Array:
    return jnp.stack([-vectors[..., 1], vectors[..., 0]], -1)


# Hulls of nine points


@vendor.implements("diopiConvexIouMmcv")
def convex_iou(pointsets: Array, polygons: Array) -> Array:
    _check_columns(18, pointsets=pointsets)
    _check_columns(8, polygons=polygons)
    points = pointsets.reshape(-1, 9, 2)
    return _polygon_ratios(chosen(points, hulls(points)), polygons.reshape(-1, 4, 2), 0, False)


@vendor.implements("diopiConvexGiouMmcv")
def convex_giou(pointsets: Array, polygons: Array) -> Array:
    _check_columns(18, pointsets=pointsets)
    _check_columns(8, polygons=polygons)
    check_shapes((len(pointsets), 8), polygons=polygons)
    corners = polygons.reshape(-1, 4, 2)

    def ratios(rows: Array) -> Array:
        points = rows.reshape(-1, 9, 2)
        everything = jnp.concatenate([points, corners], 1)
        own, enclosing = (chosen(some, hulls(lax.stop_gradient(some))) for some in (points, everything))
        common, whole = overlaps_with_gradients(own, corners), areas(enclosing)
        union = areas(own) + jnp.abs(areas(corners)) - common
        return common / union - (whole - union) / whole

    value, pull = jax.vjp(ratios, pointsets)
    return jnp.concatenate([pull(jnp.ones_like(value))[0], value[:, None]], 1)


# Corners in order


@vendor.implements("diopiDiffIouRotatedSortVerticesMmcv")
def diff_iou_rotated_sort_vertices(vertices: Array, mask: Array, num_valid: Array) -> Array:
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
