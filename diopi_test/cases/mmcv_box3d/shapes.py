"""Domains of boxes in space.

A domain is a function that draws `count` numbers with a random generator (`diopi_test.cases.domains`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, uniform

Array = NDArray[Any]
"""An array of the numbers of boxes."""

F64, INT32 = Dtype.float64, Dtype.int32
"""Short names for the element types of auxiliary tensors and of indices."""


def box_3d_domain(coordinates: Domain, sizes: Domain, angles: Domain) -> Domain:
    """Return a domain of boxes (x, y, z, dx, dy, dz, angle around z).

    The domain returns the 7 numbers of each box one after another, in float64 whatever the element type is.

    Args:
        coordinates: The domain of the coordinates x, y and z.
        sizes: The domain of the side lengths dx, dy and dz.
        angles: The domain of the angle in radians.

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        """Return the numbers of the boxes, one box after another."""
        n = count // 7
        columns = [domain(rng, k * n, F64).reshape(n, k) for domain, k in ((coordinates, 3), (sizes, 3), (angles, 1))]
        return np.concatenate(columns, -1).reshape(-1)

    return draw


ANGLES = uniform(-3.5, 3.5)
"""A domain of angles in radians. The range is a little larger than a full turn."""
