"""Domains of boxes and quadrilaterals in the plane.

A domain is a function that draws `count` numbers with a random generator (`diopi_test.cases.domains`). The domains of
this module return the numbers of whole boxes one after another, in float64, whatever the element type is. `count` must
be a multiple of the numbers per box: 4 for a box, 5 for a rotated box, 8 for a quadrilateral.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, uniform

Array = NDArray[Any]
"""An array of coordinates."""

F64 = Dtype.float64
"""The element type that the domains of this module pass to the domains of coordinates, sizes and radii."""


def column_domain(*domains: Domain) -> Domain:
    """Return a domain of the numbers of a matrix, row by row, with one column per domain.

    `column_domain(uniform(0, 1), uniform(5, 6))` draws numbers such as 0.3, 5.1, 0.8, 5.7.

    Args:
        *domains: The domain of each column.

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        """Return the numbers of the matrix, row by row."""
        rows = count // len(domains)
        return np.stack([domain(rng, rows, dtype) for domain in domains], -1).reshape(-1)

    return draw


def box_domain(coordinates: Domain, sizes: Domain) -> Domain:
    """Return a domain of boxes (x1, y1, x2, y2) with sides parallel to the axes.

    Args:
        coordinates: The domain of x1 and y1.
        sizes: The domain of the side lengths x2 − x1 and y2 − y1.

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        """Return the numbers of the boxes, one box after another."""
        low = coordinates(rng, count // 2, F64).reshape(-1, 2)
        return np.concatenate([low, low + sizes(rng, count // 2, F64).reshape(-1, 2)], -1).reshape(-1)

    return draw


def rotated_box_domain(coordinates: Domain, sizes: Domain, angles: Domain) -> Domain:
    """Return a domain of rotated boxes (x, y, width, height, angle).

    Args:
        coordinates: The domain of the coordinates x and y of the center.
        sizes: The domain of width and height.
        angles: The domain of the angle in radians.

    Returns:
        The domain.
    """
    return column_domain(coordinates, coordinates, sizes, sizes, angles)


ANGLES = uniform(-3.5, 3.5)
"""A domain of angles in radians. The range is a little larger than a full turn."""


def quadrilateral_domain(centers: Domain, radii: Domain, clockwise: bool = False) -> Domain:
    """Return a domain of convex quadrilaterals (x1, y1, …, x4, y4) whose corners lie on ellipses.

    There is one corner in each quarter of the ellipse, and the quarters start at a random angle.

    Args:
        centers: The domain of the coordinates of the ellipses' centers.
        radii: The domain of the radii of the ellipses along the axes.
        clockwise: Whether the corners are in clockwise instead of counterclockwise order.

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        """Return the corners of the quadrilaterals, one quadrilateral after another."""
        n = count // 8
        center, radius = (domain(rng, 2 * n, F64).reshape(n, 1, 2) for domain in (centers, radii))
        angles = (np.arange(4) + rng.uniform(0.15, 0.85, (n, 4))) * np.pi / 2 + rng.uniform(0, np.pi, (n, 1))
        corners = center + radius * np.stack([np.cos(angles), np.sin(angles)], -1)
        return np.asarray(corners[:, ::-1] if clockwise else corners).reshape(-1)

    return draw


def diamond_domain(low: float, high: float) -> Domain:
    """Return a domain of randomly rotated squares (x1, y1, …, x4, y4) around the origin.

    Args:
        low: The least distance of a corner from the origin.
        high: The upper limit of the distance of a corner from the origin.

    Returns:
        The domain. The distances are uniformly distributed in [low, high).
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        """Return the corners of the squares, one square after another."""
        angles = np.arange(4) * np.pi / 2 + rng.uniform(0, np.pi, (count // 8, 1))
        radii = rng.uniform(low, high, (count // 8, 1, 1))
        return np.asarray(radii * np.stack([np.cos(angles), np.sin(angles)], -1)).reshape(-1)

    return draw


def draw_nested_boxes(rng: Generator, count: int, dtype: Dtype) -> Array:
    """Return groups of three rotated boxes with the same center, in shuffled order.

    Args:
        rng: The random generator.
        count: The number of numbers to draw, 5 per box.
        dtype: Not used.

    Returns:
        The numbers x, y, width, height and angle of the boxes. The boxes of a group have the same angle, and sides that
        are scaled by 1, 0.9 and 0.5. Boxes of different groups do not overlap. Groups may be incomplete if the number
        of boxes is not a multiple of 3.
    """
    n = -(-count // 15)
    width = int(np.ceil(np.sqrt(n)))
    centers = 12.0 * np.stack(np.divmod(np.arange(n), width), -1) + rng.uniform(-1, 1, (n, 2))
    sides, angles = rng.uniform(3, 6, (n, 2)), rng.uniform(-3, 3, (n, 1))
    scaled_boxes = [np.concatenate([centers, scale * sides, angles], 1) for scale in (1.0, 0.9, 0.5)]
    rows = np.concatenate(scaled_boxes)[rng.permutation(3 * n)]
    return rows.reshape(-1)[:count]


QUADRILATERALS = quadrilateral_domain(uniform(0, 4), uniform(1, 4))
"""A domain of counterclockwise quadrilaterals. Many of them overlap."""
