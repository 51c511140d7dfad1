"""Areas of polygons in the plane and their intersections, convex hulls, and non-maximum suppression.

Polygons are arrays (…, corners, 2) with the corners counter-clockwise. A corner may repeat the previous one: this pads
polygons that have fewer corners.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

BLOCK = 512
"""The number of boxes whose triangles are in memory at a time when a box is compared with all boxes."""


def rotated_box_corners(boxes: Array) -> Array:
    """Return the corners (…, 4, 2) of boxes (cx, cy, w, h, θ), (…, 5)."""
    x, y, w, h, angle = (boxes[..., i] for i in range(5))
    half_width = jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1) * w[..., None] / 2
    half_height = jnp.stack([-jnp.sin(angle), jnp.cos(angle)], -1) * h[..., None] / 2
    center = jnp.stack([x, y], -1)
    return jnp.stack([center + i * half_width + j * half_height for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))], -2)


def cross(u: Array, v: Array) -> Array:
    """Return the signed area of the parallelogram that two vectors (…, 2) span: positive if v is to the left of u."""
    return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]


def signed_areas(polygons: Array) -> Array:
    """Return the areas of polygons, negative where the corners are clockwise."""
    around = polygons - polygons[..., :1, :]
    return cross(around[..., :-1, :], around[..., 1:, :]).sum(-1) / 2


def overlap_areas(a: Array, b: Array) -> Array:
    """Return the intersection areas of convex polygons.

    Both polygons are cut into triangles with a common apex. The signed areas of the triangles' intersections add up to
    the intersection of the polygons, wherever the apex is. Each depends continuously on the corners, so that collinear
    edges need no special case. The apex is a corner of the smaller polygon, which keeps the terms small.

    Args:
        a: the first polygons, (…, corners, 2).
        b: the second polygons; the axes before the corners broadcast.

    Returns:
        The areas, in the broadcast shape of those axes.
    """
    extents = (jnp.ptp(polygons, -2).max(-1)[..., None, None] for polygons in (a, b))
    apex = jnp.where(jnp.less(*extents), a[..., :1, :], b[..., :1, :])
    a, b = (a - apex)[..., :, None, :], (b - apex)[..., None, :, :]
    common = _triangle_overlaps(jnp.roll(a, 1, -3), a, jnp.roll(b, 1, -2), b)
    return jnp.abs(common.sum((-2, -1)))


def differentiable_overlap_areas(a: Array, b: Array) -> Array:
    """Return the intersection areas, which JAX can differentiate with respect to the corners of the first polygons.

    The gradient of `overlap_areas` itself is discontinuous. Here, a piece of boundary of `a` inside `b` adds area in
    proportion to its movement along its normal.

    Args:
        a: the first polygons, (…, corners, 2).
        b: the second polygons; the axes before the corners broadcast.

    Returns:
        The areas.
    """
    slopes = lax.stop_gradient(_overlap_slopes(a, b))
    common = lax.stop_gradient(overlap_areas(a, b))
    return common + (slopes * (a - lax.stop_gradient(a))).sum((-2, -1))


def _overlap_slopes(a: Array, b: Array) -> Array:
    """Return the gradient of the intersection areas with respect to the corners of `a`, (…, corners, 2).

    The corners of `b` may also be clockwise.
    """
    previous = jnp.roll(b, 1, -2)
    starts, edges = jnp.roll(a, 1, -2), (b - previous) * jnp.sign(signed_areas(b))[..., None, None]
    ways = a - starts
    heights = cross(edges[..., None, :, :], starts[..., :, None, :] - previous[..., None, :, :])
    climbs = cross(edges[..., None, :, :], ways[..., :, None, :])
    meets = -heights / _safe_divisor(climbs, climbs != 0)
    low = jnp.where(climbs > 0, meets, 0).max(-1, initial=0)
    high = jnp.where(climbs < 0, meets, 1).min(-1, initial=1)
    high = jnp.where(((climbs == 0) & (heights < 0)).any(-1), low, jnp.maximum(low, high))
    normals = jnp.stack([ways[..., 1], -ways[..., 0]], -1)
    # a point of an edge moves with both corners; the nearer corner has the larger share
    to_ends, to_starts = (high - low) * (high + low), (high - low) * (2 - high - low)
    return (normals * to_ends[..., None] + jnp.roll(normals * to_starts[..., None], -1, -2)) / 2


def box_overlap_areas(a: Array, b: Array) -> Array:
    """Return the intersection areas of boxes (cx, cy, w, h, θ).

    Coordinates are taken relative to the center of the first box, because rounding grows with the distance from the
    origin.

    Args:
        a: the first boxes, (…, 5).
        b: the second boxes; the axes before the last broadcast.

    Returns:
        The areas, in the broadcast shape of those axes.
    """
    center = a.at[..., 2:].set(0)
    return overlap_areas(rotated_box_corners(a - center), rotated_box_corners(b - center))


def _counter_clockwise(p: Array, q: Array) -> tuple[Array, Array, Array]:
    """Return the signed area that p and q span, and the two vectors in counter-clockwise order."""
    signed_area = cross(p, q)
    swapped = (signed_area < 0)[..., None]
    return signed_area, jnp.where(swapped, q, p), jnp.where(swapped, p, q)


def _triangle_overlaps(p: Array, q: Array, r: Array, s: Array) -> Array:
    """Return the signed intersection area of the triangles (0, p, q) and (0, r, s)."""
    (area_pq, p, q), (area_rs, r, s) = _counter_clockwise(p, q), _counter_clockwise(r, s)
    rp, ps, rq, qs = cross(r, p), cross(p, s), cross(r, q), cross(q, s)
    first, last = jnp.where((rp >= 0)[..., None], p, r), jnp.where((qs >= 0)[..., None], q, s)
    meets = (jnp.where(rp >= 0, ps, rq) >= 0) & (jnp.where(qs >= 0, rq, ps) >= 0) & (area_pq != 0) & (area_rs != 0)
    # the factor by which the ray along a vector must shrink to end on the far side of a triangle
    pq_first, pq_last = (cross(ray, q - p) / _safe_divisor(jnp.abs(area_pq), meets) for ray in (first, last))
    rs_first, rs_last = (cross(ray, s - r) / _safe_divisor(jnp.abs(area_rs), meets) for ray in (first, last))
    first_difference, last_difference = pq_first - rs_first, pq_last - rs_last
    crosses = meets & (first_difference * last_difference < 0)
    part = jnp.where(crosses, first_difference / _safe_divisor(first_difference - last_difference, crosses), 0)
    between = jnp.maximum(pq_first + part * (pq_last - pq_first), rs_first + part * (rs_last - rs_first))
    from_first = part / _safe_divisor(jnp.maximum(pq_first, rs_first), meets)
    to_last = (1 - part) / _safe_divisor(jnp.maximum(pq_last, rs_last), meets)
    area = cross(first, last) * (from_first + to_last) / _safe_divisor(between, meets) / 2
    return jnp.where(meets, jnp.sign(area_pq) * jnp.sign(area_rs) * area, 0)


def _safe_divisor(divisor: Array, is_used: Array) -> Array:
    """Return `divisor` where it is used, else 1, so that unused quotients and their gradients are not NaN."""
    return jnp.where(is_used, divisor, 1)


def hull_indices(points: Array) -> Array:
    """Return the indices of the corners of convex hulls, counter-clockwise.

    The hull starts at the lowest point, and the leftmost of several. The next corner is the point that has no point to
    its right, and the farthest of several (Jarvis, 1973).

    Args:
        points: the points, (…, n, 2).

    Returns:
        Indices (…, n), padded with the first corner.
    """
    x, y = points[..., 0], points[..., 1]
    start = jnp.argmin(jnp.where(y == y.min(-1, keepdims=True), x, jnp.inf), -1)
    corners, is_closed = [start], jnp.zeros(start.shape, bool)
    for _ in range(points.shape[-2] - 1):
        following = _next_corner(points, corners[-1])
        is_closed = is_closed | (following == start)
        corners.append(jnp.where(is_closed, start, following))
    return jnp.stack(corners, -1)


def _next_corner(points: Array, corner: Array) -> Array:
    """Return the indices of the corners (…) that follow the corners `corner` on the hulls of points."""
    away = points - jnp.take_along_axis(points, corner[..., None, None], -2)
    squared_distances = jnp.square(away).sum(-1)
    to_the_right = (cross(away[..., :, None, :], away[..., None, :, :]) < 0).sum(-1)
    to_the_right = jnp.where(squared_distances > 0, to_the_right, points.shape[-2])
    outermost = to_the_right == to_the_right.min(-1, keepdims=True)
    return jnp.argmax(jnp.where(outermost, squared_distances, -1), -1)


def select_points(points: Array, places: Array) -> Array:
    """Return the points (…, m, 2) with the indices `places` (…, n): (…, n, 2)."""
    return jnp.take_along_axis(points, places[..., None], -2)


def non_maximum_suppression(count: int, suppresses: Callable[[Array], Array]) -> Array:
    """Return the mask (count) of the candidates that greedy suppression selects.

    Args:
        count: the number of candidates, which are sorted by descending priority.
        suppresses: returns the mask (count) of the candidates that the candidate with this index suppresses. They are
            removed if this candidate is still selected and they follow it.
    """

    def visit(candidate: Array, remaining: Array) -> Array:
        """Remove the candidates that this candidate suppresses, if it is still selected."""

        def suppress() -> Array:
            """Return the remaining candidates without those that the candidate suppresses."""
            return remaining & ~(suppresses(candidate) & (jnp.arange(count) > candidate))

        return lax.cond(remaining[candidate], suppress, lambda: remaining)

    all_candidates = jnp.ones(count, bool)
    return lax.fori_loop(0, count, visit, all_candidates) if count else all_candidates


def rotated_suppression(boxes: Array, threshold: float, least: float = 0.0) -> Callable[[Array], Array]:
    """Return a function that maps an index to the mask of boxes (cx, cy, w, h, θ) whose IoU with that box is too large.

    Args:
        boxes: the boxes, (n, 5).
        threshold: the largest permitted intersection over union (IoU).
        least: smaller unions count as this area.

    Returns:
        A function of an index that returns a mask (n).
    """
    size = jnp.abs(boxes[:, 2] * boxes[:, 3])

    def find_suppressed(candidate: Array) -> Array:
        """Return which boxes exceed the IoU threshold with the candidate."""
        common = lax.map(lambda box: box_overlap_areas(boxes[candidate], box), boxes, batch_size=BLOCK)
        return common > threshold * jnp.maximum(size + size[candidate] - common, least)

    return find_suppressed


def upright_overlap_areas(a: Array, b: Array, offset: int) -> Array:
    """Return the intersection areas of boxes (x1, y1, x2, y2) whose sides are longer by `offset`."""
    low, high = jnp.maximum(a[..., :2], b[..., :2]), jnp.minimum(a[..., 2:], b[..., 2:])
    return jnp.maximum(high - low + offset, 0).prod(-1)


def upright_suppression(boxes: Array, threshold: float, offset: int, least: float = 0.0) -> Callable[[Array], Array]:
    """Return a function that maps an index to the mask of boxes (x1, y1, x2, y2) whose IoU with that box is too large.

    Args:
        boxes: the boxes, (n, 4).
        threshold: the largest permitted intersection over union (IoU).
        offset: is added to the lengths of the sides.
        least: smaller unions count as this area.

    Returns:
        A function of an index that returns a mask (n).
    """
    size = (boxes[:, 2:] - boxes[:, :2] + offset).prod(-1)

    def find_suppressed(candidate: Array) -> Array:
        """Return which boxes exceed the IoU threshold with the candidate."""
        common = upright_overlap_areas(boxes, boxes[candidate], offset)
        return common > threshold * jnp.maximum(size + size[candidate] - common, least)

    return find_suppressed
