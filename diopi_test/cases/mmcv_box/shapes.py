"""Boxes and quadrilaterals in the plane, as domains."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, uniform

Array = NDArray[Any]

F64 = Dtype.float64


def joined_columns(*domains: Domain) -> Domain:
    """Return a domain of rows with one number of each of the domains."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        rows = count // len(domains)
        return np.stack([domain(rng, rows, dtype) for domain in domains], -1).reshape(-1)

    return draw


def boxes(places: Domain, sizes: Domain) -> Domain:
    """Return a domain of boxes x1, y1, x2, y2, from domains of the first corner and of the sides."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        low = places(rng, count // 2, F64).reshape(-1, 2)
        return np.concatenate([low, low + sizes(rng, count // 2, F64).reshape(-1, 2)], -1).reshape(-1)

    return draw


def rotated_boxes(places: Domain, sizes: Domain, angles: Domain) -> Domain:
    """Return a domain of rotated boxes cx, cy, w, h, θ."""
    return joined_columns(places, places, sizes, sizes, angles)


ANGLES = uniform(-3.5, 3.5)


def convex_quadrilaterals(centres: Domain, radii: Domain, clockwise: bool = False) -> Domain:
    """Return a domain of quadrilaterals with one corner in each quarter of an ellipse."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        n = count // 8
        centre, radius = (domain(rng, 2 * n, F64).reshape(n, 1, 2) for domain in (centres, radii))
        angles = (np.arange(4) + rng.uniform(0.15, 0.85, (n, 4))) * np.pi / 2 + rng.uniform(0, np.pi, (n, 1))
        corners = centre + radius * np.stack([np.cos(angles), np.sin(angles)], -1)
        return np.asarray(corners[:, ::-1] if clockwise else corners).reshape(-1)

    return draw


def diamonds(low: float, high: float) -> Domain:
    """Return a domain of squares around the origin with half diagonals in [low, high]."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        angles = np.arange(4) * np.pi / 2 + rng.uniform(0, np.pi, (count // 8, 1))
        radii = rng.uniform(low, high, (count // 8, 1, 1))
        return np.asarray(radii * np.stack([np.cos(angles), np.sin(angles)], -1)).reshape(-1)

    return draw


def nested(rng: Generator, count: int, dtype: Dtype) -> Array:
    """Draw triples of concentric rotated boxes whose sides are in the ratio 1 : 0.9 : 0.5; triples do not overlap."""
    n = -(-count // 15)
    width = int(np.ceil(np.sqrt(n)))
    middles = 12.0 * np.stack(np.divmod(np.arange(n), width), -1) + rng.uniform(-1, 1, (n, 2))
    sides, angles = rng.uniform(3, 6, (n, 2)), rng.uniform(-3, 3, (n, 1))
    threes = [np.concatenate([middles, scale * sides, angles], 1) for scale in (1.0, 0.9, 0.5)]
    rows = np.concatenate(threes)[rng.permutation(3 * n)]
    return rows.reshape(-1)[:count]


QUADRILATERALS = convex_quadrilaterals(uniform(0, 4), uniform(1, 4))
