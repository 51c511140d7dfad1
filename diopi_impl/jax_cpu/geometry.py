"""Areas of polygons in the plane, and which of several shapes are kept where they overlap.

Polygons have their corners along the last axis but one, counter-clockwise, x and y along the last. A corner that
repeats the one before it adds nothing, so that polygons of fewer corners can be filled up.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

BLOCK = 512
"""Boxes whose triangles are in memory at a time, where one is compared with all others."""


def rotated_box_corners(boxes: Array) -> Array:
    """The corners of boxes (cx, cy, w, h, θ): (…, 5) to (…, 4, 2)."""
    x, y, w, h, angle = (boxes[..., i] for i in range(5))
    half_width = jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1) * w[..., None] / 2
    half_height = jnp.stack([-jnp.sin(angle), jnp.cos(angle)], -1) * h[..., None] / 2
    centre = jnp.stack([x, y], -1)
    return jnp.stack([centre + i * half_width + j * half_height for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))], -2)


def cross(u: Array, v: Array) -> Array:
    """The area that vectors span, positive if the other is to the left."""
    return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]


def signed_areas(polygons: Array) -> Array:
    """Negative where the corners come clockwise."""
    around = polygons - polygons[..., :1, :]
    return cross(around[..., :-1, :], around[..., 1:, :]).sum(-1) / 2


def overlap_areas(a: Array, b: Array) -> Array:
    """The areas that polygons have in common with others, both convex; the axes before their corners broadcast.

    Both are cut into triangles with one apex. Their signed areas of intersection add up to that of the polygons,
    wherever the apex is, and each of them depends continuously on the corners: edges that lie on each other need no
    care. With a corner of the smaller polygon as the apex no intersection is much larger than that polygon.
    """
    extents = (jnp.ptp(polygons, -2).max(-1)[..., None, None] for polygons in (a, b))
    apex = jnp.where(jnp.less(*extents), a[..., :1, :], b[..., :1, :])
    a, b = (a - apex)[..., :, None, :], (b - apex)[..., None, :, :]
    common = _triangle_overlaps(jnp.roll(a, 1, -3), a, jnp.roll(b, 1, -2), b)
    return jnp.abs(common.sum((-2, -1)))


def differentiable_overlap_areas(a: Array, b: Array) -> Array:
    """`overlaps` as a function of the first polygons' corners, for gradients: those of `overlaps` jump between parts.

    A piece of boundary inside the other polygon sweeps as much as it moves along its normal.
    """
    swept = lax.stop_gradient(_overlap_slopes(a, b))
    common = lax.stop_gradient(overlap_areas(a, b))
    return common + (swept * (a - lax.stop_gradient(a))).sum((-2, -1))


def _overlap_slopes(a: Array, b: Array) -> Array:
    """How the areas that polygons have in common with others change with the corners of the first, either way round."""
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
    # the nearer a piece is to a corner, the more it moves with it
    to_ends, to_starts = (high - low) * (high + low), (high - low) * (2 - high - low)
    return (normals * to_ends[..., None] + jnp.roll(normals * to_starts[..., None], -1, -2)) / 2


def box_overlap_areas(a: Array, b: Array) -> Array:
    """As `overlaps`, of boxes (cx, cy, w, h, θ): (…, 5).

    They are seen from the centre of the first: far from the origin, corners are rounded as numbers of that distance.
    """
    centre = a.at[..., 2:].set(0)
    return overlap_areas(rotated_box_corners(a - centre), rotated_box_corners(b - centre))


def _counter_clockwise(p: Array, q: Array) -> tuple[Array, Array, Array]:
    """The area spanned, its sign apart, and the two vectors in this order."""
    spanned = cross(p, q)
    swapped = (spanned < 0)[..., None]
    return spanned, jnp.where(swapped, q, p), jnp.where(swapped, p, q)


def _triangle_overlaps(p: Array, q: Array, r: Array, s: Array) -> Array:
    """The signed area of intersection of triangles (0, p, q) and (0, r, s)."""
    (area_pq, p, q), (area_rs, r, s) = _counter_clockwise(p, q), _counter_clockwise(r, s)
    rp, ps, rq, qs = cross(r, p), cross(p, s), cross(r, q), cross(q, s)
    first, last = jnp.where((rp >= 0)[..., None], p, r), jnp.where((qs >= 0)[..., None], q, s)
    meets = (jnp.where(rp >= 0, ps, rq) >= 0) & (jnp.where(qs >= 0, rq, ps) >= 0) & (area_pq != 0) & (area_rs != 0)
    # how often the ray along a vector must be shortened to end on a triangle's far side
    pq_first, pq_last = (cross(ray, q - p) / _safe_divisor(jnp.abs(area_pq), meets) for ray in (first, last))
    rs_first, rs_last = (cross(ray, s - r) / _safe_divisor(jnp.abs(area_rs), meets) for ray in (first, last))
    ahead, behind = pq_first - rs_first, pq_last - rs_last
    crosses = meets & (ahead * behind < 0)
    part = jnp.where(crosses, ahead / _safe_divisor(ahead - behind, crosses), 0)
    between = jnp.maximum(pq_first + part * (pq_last - pq_first), rs_first + part * (rs_last - rs_first))
    from_first = part / _safe_divisor(jnp.maximum(pq_first, rs_first), meets)
    to_last = (1 - part) / _safe_divisor(jnp.maximum(pq_last, rs_last), meets)
    area = cross(first, last) * (from_first + to_last) / _safe_divisor(between, meets) / 2
    return jnp.where(meets, jnp.sign(area_pq) * jnp.sign(area_rs) * area, 0)


def _safe_divisor(divisor: Array, needed: Array) -> Array:
    """A divisor where it is needed; what is left out must not become NaN, in gradients either."""
    return jnp.where(needed, divisor, 1)


def hull_indices(points: Array) -> Array:
    """Which points are the corners of their convex hulls, counter-clockwise: (…, n, 2) to (…, n), the first repeated.

    From the lowest point, the leftmost of these, on, the next corner is the one no other point is to the right of, the
    farthest if there are several (Jarvis, 1973).
    """
    x, y = points[..., 0], points[..., 1]
    start = jnp.argmin(jnp.where(y == y.min(-1, keepdims=True), x, jnp.inf), -1)
    corners, done = [start], jnp.zeros(start.shape, bool)
    for _ in range(points.shape[-2] - 1):
        following = _next_corner(points, corners[-1])
        done = done | (following == start)
        corners.append(jnp.where(done, start, following))
    return jnp.stack(corners, -1)


def _next_corner(points: Array, corner: Array) -> Array:
    away = points - jnp.take_along_axis(points, corner[..., None, None], -2)
    far = jnp.square(away).sum(-1)
    to_the_right = (cross(away[..., :, None, :], away[..., None, :, :]) < 0).sum(-1)
    to_the_right = jnp.where(far > 0, to_the_right, points.shape[-2])
    outermost = to_the_right == to_the_right.min(-1, keepdims=True)
    return jnp.argmax(jnp.where(outermost, far, -1), -1)


def select_points(points: Array, places: Array) -> Array:
    """The points at these places."""
    return jnp.take_along_axis(points, places[..., None], -2)


def non_maximum_suppression(count: int, suppresses: Callable[[Array], Array]) -> Array:
    """Which of `count` candidates are left if each one kept drops those after it that `drops` says of it."""

    def visit(candidate: Array, remaining: Array) -> Array:
        def suppress() -> Array:
            return remaining & ~(suppresses(candidate) & (jnp.arange(count) > candidate))

        return lax.cond(remaining[candidate], suppress, lambda: remaining)

    all_candidates = jnp.ones(count, bool)
    return lax.fori_loop(0, count, visit, all_candidates) if count else all_candidates


def rotated_suppression(boxes: Array, threshold: float, least: float = 0.0) -> Callable[[Array], Array]:
    """Of boxes (cx, cy, w, h, θ): which ones have more in common with one than the threshold times their union."""
    size = jnp.abs(boxes[:, 2] * boxes[:, 3])

    def suppresses(candidate: Array) -> Array:
        common = lax.map(lambda box: box_overlap_areas(boxes[candidate], box), boxes, batch_size=BLOCK)
        return common > threshold * jnp.maximum(size + size[candidate] - common, least)

    return suppresses


def upright_overlap_areas(a: Array, b: Array, offset: int) -> Array:
    """The areas that boxes (x1, y1, x2, y2) have in common, sides longer by `offset`."""
    low, high = jnp.maximum(a[..., :2], b[..., :2]), jnp.minimum(a[..., 2:], b[..., 2:])
    return jnp.maximum(high - low + offset, 0).prod(-1)


def upright_suppression(boxes: Array, threshold: float, offset: int, least: float = 0.0) -> Callable[[Array], Array]:
    """As `drops_turned`, of boxes (x1, y1, x2, y2)."""
    size = (boxes[:, 2:] - boxes[:, :2] + offset).prod(-1)

    def suppresses(candidate: Array) -> Array:
        common = upright_overlap_areas(boxes, boxes[candidate], offset)
        return common > threshold * jnp.maximum(size + size[candidate] - common, least)

    return suppresses
