"""Boxes in space, as domains."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, uniform

Array = NDArray[Any]

F64, INT32 = Dtype.float64, Dtype.int32


def boxes(places: Domain, sizes: Domain, angles: Domain) -> Domain:
    """Return a domain of boxes x, y, z, dx, dy, dz, rz."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        n = count // 7
        parts = [domain(rng, k * n, F64).reshape(n, k) for domain, k in ((places, 3), (sizes, 3), (angles, 1))]
        return np.concatenate(parts, -1).reshape(-1)

    return draw


ANGLES = uniform(-3.5, 3.5)
