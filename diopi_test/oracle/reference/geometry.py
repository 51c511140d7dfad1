"""Geometry of convex polygons in the plane: areas, intersections and convex hulls.

A polygon is a list of corners. Points are complex numbers x + iy, so that a rotation is a product.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Polygon = Sequence[complex]
"""The corners of a polygon in order, as complex numbers x + iy."""


def cross(u: complex, v: complex) -> float:
    """Return the signed area of the parallelogram that two vectors span, positive if v is to the left of u."""
    return (u.conjugate() * v).imag


def to_points(coordinates: Array) -> list[complex]:
    """Return an array of coordinates x1, y1, x2, y2 … as a list of points."""
    return [complex(x, y) for x, y in coordinates.reshape(-1, 2)]


def rotated_box(x: float, y: float, width: float, height: float, angle: float) -> Polygon:
    """Return the corners, counter-clockwise, of a rectangle with center (x, y) that is rotated by `angle` radians."""
    turn = complex(np.cos(angle), np.sin(angle)) / 2
    return [complex(x, y) + turn * complex(i * width, j * height) for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]


def center_on_first(first: Array, second: Array) -> tuple[Polygon, Polygon]:
    """Return the corners of two boxes (x, y, width, height, angle) relative to the center of the first box.

    Corners relative to a distant origin would have larger rounding errors.

    Args:
        first: a box.
        second: another box.

    Returns:
        The corners of both boxes.
    """
    return rotated_box(0.0, 0.0, *first[2:]), rotated_box(*(second[:2] - first[:2]), *second[2:])


def area(polygon: Polygon) -> float:
    """Return the signed area, negative for clockwise corners; coordinates relative to a corner avoid cancellation."""
    return (
        sum(cross(corner - polygon[0], next_corner - polygon[0]) for corner, next_corner in pairwise(polygon[1:])) / 2
    )


def orient_counter_clockwise(polygon: Polygon) -> Polygon:
    """Return the polygon with its corners in counter-clockwise order."""
    return polygon if area(polygon) >= 0 else polygon[::-1]


def is_convex(polygon: Polygon) -> bool:
    """Return whether a polygon is convex: all corners turn in the same direction, or not at all."""
    edges = [corner - polygon[i - 1] for i, corner in enumerate(polygon)]
    turns = [cross(edges[i - 1], edge) for i, edge in enumerate(edges)]
    return min(turns) >= 0 or max(turns) <= 0


def _clip(polygon: Polygon, start: complex, end: complex) -> Polygon:
    """Return the part of a polygon to the left of the line from `start` to `end`."""
    heights = [cross(end - start, corner - start) for corner in polygon]
    clipped = []
    for i, corner in enumerate(polygon):
        if min(heights[i - 1], heights[i]) < 0 < max(heights[i - 1], heights[i]):
            part = heights[i - 1] / (heights[i - 1] - heights[i])
            clipped.append(polygon[i - 1] + part * (corner - polygon[i - 1]))
        if heights[i] >= 0:
            clipped.append(corner)
    return clipped


def intersection(a: Polygon, b: Polygon) -> Polygon:
    """Return the intersection of two convex counter-clockwise polygons (Sutherland and Hodgman, 1974)."""
    for i, corner in enumerate(b):
        a = _clip(a, b[i - 1], corner)
    return a


def overlap(a: Polygon, b: Polygon) -> float:
    """Return the area of the intersection of two convex polygons, whose corners may be in either order."""
    if are_apart(a, b):
        return 0.0
    return area(intersection(orient_counter_clockwise(a), orient_counter_clockwise(b)))


def are_apart(a: Polygon, b: Polygon) -> bool:
    """Return whether a vertical or horizontal line separates two polygons."""
    x, y = ([corner.real for corner in polygon] for polygon in (a, b))
    u, v = ([corner.imag for corner in polygon] for polygon in (a, b))
    return max(x) < min(y) or max(y) < min(x) or max(u) < min(v) or max(v) < min(u)


def diameter(polygon: Polygon) -> float:
    """Return the largest distance between two corners."""
    return max(abs(a - b) for a in polygon for b in polygon)


def overlap_terms(a: Polygon, b: Polygon) -> float:
    """Return the terms of the area of the intersection of two polygons.

    The rounding error of a corner moves an edge of the intersection. The edge is at most as long as the diameter of the
    smaller polygon.

    Args:
        a: a polygon.
        b: another polygon.

    Returns:
        The terms, d · (d + D) / 4 for the diameters d ≤ D. For two equal squares they are the area of a square.
    """
    diameters = diameter(a), diameter(b)
    return min(diameters) * sum(diameters) / 4


def hull(corners: Polygon) -> list[int]:
    """Return the indices of the corners of the convex hull, counter-clockwise from the leftmost (Andrew, 1979)."""
    order = sorted(range(len(corners)), key=lambda i: (corners[i].real, corners[i].imag))
    return _hull_chain(corners, order) + _hull_chain(corners, order[::-1])


def _hull_chain(corners: Polygon, order: Sequence[int]) -> list[int]:
    """Return the indices of the lower or upper half of the convex hull, without its last corner.

    Args:
        corners: The points.
        order: The indices of the points from left to right for the lower half, from right to left for the upper half.
    """
    chain: list[int] = []
    for i in order:
        while len(chain) > 1 and cross(corners[chain[-1]] - corners[chain[-2]], corners[i] - corners[chain[-1]]) <= 0:
            chain.pop()
        chain.append(i)
    return chain[:-1]
