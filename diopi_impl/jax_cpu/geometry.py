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


def rotated_boxes(boxes: Array) -> Array:
    """The corners of boxes (cx, cy, w, h, θ): (…, 5) to (…, 4, 2)."""
    x, y, w, h, angle = (boxes[..., i] for i in range(5))
    along = jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1) * w[..., None] / 2
    across = jnp.stack([-jnp.sin(angle), jnp.cos(angle)], -1) * h[..., None] / 2
    centre = jnp.stack([x, y], -1)
    return jnp.stack([centre + i * along + j * across for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))], -2)


def cross(one: Array, other: Array) -> Array:
    """The area that vectors span, positive if the other is to the left."""
    return one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]


def areas(polygons: Array) -> Array:
    """Negative where the corners come clockwise."""
    around = polygons - polygons[..., :1, :]
    return cross(around[..., :-1, :], around[..., 1:, :]).sum(-1) / 2


def overlaps(ones: Array, others: Array) -> Array:
    """The areas that polygons have in common with others, both convex; the axes before their corners broadcast.

    Both are cut into triangles with one apex. Their signed areas of intersection add up to that of the polygons,
    wherever the apex is, and each of them depends continuously on the corners: edges that lie on each other need no
    care. With a corner of the smaller polygon as the apex no intersection is much larger than that polygon.
    """
    extents = (jnp.ptp(polygons, -2).max(-1)[..., None, None] for polygons in (ones, others))
    apex = jnp.where(jnp.less(*extents), ones[..., :1, :], others[..., :1, :])
    ones, others = (ones - apex)[..., :, None, :], (others - apex)[..., None, :, :]
    common = _triangles(jnp.roll(ones, 1, -3), ones, jnp.roll(others, 1, -2), others)
    return jnp.abs(common.sum((-2, -1)))


def overlaps_with_gradients(ones: Array, others: Array) -> Array:
    """`overlaps` as a function of the first polygons' corners, for gradients: those of `overlaps` jump between parts.

    A piece of boundary inside the other polygon sweeps as much as it moves along its normal.
    """
    swept = lax.stop_gradient(_swept(ones, others))
    common = lax.stop_gradient(overlaps(ones, others))
    return common + (swept * (ones - lax.stop_gradient(ones))).sum((-2, -1))


def _swept(ones: Array, others: Array) -> Array:
    """How the areas that polygons have in common with others change with the corners of the first, either way round."""
    before = jnp.roll(others, 1, -2)
    starts, edges = jnp.roll(ones, 1, -2), (others - before) * jnp.sign(areas(others))[..., None, None]
    ways = ones - starts
    heights = cross(edges[..., None, :, :], starts[..., :, None, :] - before[..., None, :, :])
    climbs = cross(edges[..., None, :, :], ways[..., :, None, :])
    meets = -heights / _or_one(climbs, climbs != 0)
    low = jnp.where(climbs > 0, meets, 0).max(-1, initial=0)
    high = jnp.where(climbs < 0, meets, 1).min(-1, initial=1)
    high = jnp.where(((climbs == 0) & (heights < 0)).any(-1), low, jnp.maximum(low, high))
    normals = jnp.stack([ways[..., 1], -ways[..., 0]], -1)
    # the nearer a piece is to a corner, the more it moves with it
    to_ends, to_starts = (high - low) * (high + low), (high - low) * (2 - high - low)
    return (normals * to_ends[..., None] + jnp.roll(normals * to_starts[..., None], -1, -2)) / 2


def box_overlaps(ones: Array, others: Array) -> Array:
    """As `overlaps`, of boxes (cx, cy, w, h, θ): (…, 5).

    They are seen from the centre of the first: far from the origin, corners are rounded as numbers of that distance.
    """
    centre = ones.at[..., 2:].set(0)
    return overlaps(rotated_boxes(ones - centre), rotated_boxes(others - centre))


def _counter_clockwise(p: Array, q: Array) -> tuple[Array, Array, Array]:
    """The area spanned, its sign apart, and the two vectors in this order."""
    spanned = cross(p, q)
    swapped = (spanned < 0)[..., None]
    return spanned, jnp.where(swapped, q, p), jnp.where(swapped, p, q)


def _triangles(p: Array, q: Array, r: Array, s: Array) -> Array:
    """The signed area of intersection of triangles (0, p, q) and (0, r, s)."""
    (one, p, q), (other, r, s) = _counter_clockwise(p, q), _counter_clockwise(r, s)
    rp, ps, rq, qs = cross(r, p), cross(p, s), cross(r, q), cross(q, s)
    first, last = jnp.where((rp >= 0)[..., None], p, r), jnp.where((qs >= 0)[..., None], q, s)
    meets = (jnp.where(rp >= 0, ps, rq) >= 0) & (jnp.where(qs >= 0, rq, ps) >= 0) & (one != 0) & (other != 0)
    # how often the ray along a vector must be shortened to end on a triangle's far side
    one_first, one_last = (cross(ray, q - p) / _or_one(jnp.abs(one), meets) for ray in (first, last))
    other_first, other_last = (cross(ray, s - r) / _or_one(jnp.abs(other), meets) for ray in (first, last))
    ahead, behind = one_first - other_first, one_last - other_last
    crosses = meets & (ahead * behind < 0)
    part = jnp.where(crosses, ahead / _or_one(ahead - behind, crosses), 0)
    between = jnp.maximum(one_first + part * (one_last - one_first), other_first + part * (other_last - other_first))
    from_first = part / _or_one(jnp.maximum(one_first, other_first), meets)
    to_last = (1 - part) / _or_one(jnp.maximum(one_last, other_last), meets)
    area = cross(first, last) * (from_first + to_last) / _or_one(between, meets) / 2
    return jnp.where(meets, jnp.sign(one) * jnp.sign(other) * area, 0)


def _or_one(divisor: Array, needed: Array) -> Array:
    """A divisor where it is needed; what is left out must not become NaN, in gradients either."""
    return jnp.where(needed, divisor, 1)


def hulls(points: Array) -> Array:
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


def chosen(points: Array, places: Array) -> Array:
    """The points at these places."""
    return jnp.take_along_axis(points, places[..., None], -2)


def kept(count: int, drops: Callable[[Array], Array]) -> Array:
    """Which of `count` candidates are left if each one kept drops those after it that `drops` says of it."""

    def visit(candidate: Array, remaining: Array) -> Array:
        def dropped() -> Array:
            return remaining & ~(drops(candidate) & (jnp.arange(count) > candidate))

        return lax.cond(remaining[candidate], dropped, lambda: remaining)

    everything = jnp.ones(count, bool)
    return lax.fori_loop(0, count, visit, everything) if count else everything


def drops_turned(boxes: Array, threshold: float, least: float = 0.0) -> Callable[[Array], Array]:
    """Of boxes (cx, cy, w, h, θ): which ones have more in common with one than the threshold times their union."""
    size = jnp.abs(boxes[:, 2] * boxes[:, 3])

    def drops(one: Array) -> Array:
        common = lax.map(lambda other: box_overlaps(boxes[one], other), boxes, batch_size=BLOCK)
        return common > threshold * jnp.maximum(size + size[one] - common, least)

    return drops


def upright_overlaps(ones: Array, others: Array, offset: int) -> Array:
    """The areas that boxes (x1, y1, x2, y2) have in common, sides longer by `offset`."""
    low, high = jnp.maximum(ones[..., :2], others[..., :2]), jnp.minimum(ones[..., 2:], others[..., 2:])
    return jnp.maximum(high - low + offset, 0).prod(-1)


def drops_upright(boxes: Array, threshold: float, offset: int, least: float = 0.0) -> Callable[[Array], Array]:
    """As `drops_turned`, of boxes (x1, y1, x2, y2)."""
    size = (boxes[:, 2:] - boxes[:, :2] + offset).prod(-1)

    def drops(one: Array) -> Array:
        common = upright_overlaps(boxes, boxes[one], offset)
        return common > threshold * jnp.maximum(size + size[one] - common, least)

    return drops
