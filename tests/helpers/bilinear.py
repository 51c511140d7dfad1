"""Bilinear interpolation of a plane at a single point, in plain Python, to compare the vectorized references with."""

from math import floor
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def bordered(plane: Array, y: float, x: float) -> float:
    """Return the value at (y, x) as function B of the reference module `mmcv_roi` defines it.

    Up to one element outside of the plane, the value is that of the border. Beyond, it is 0.
    """
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    low, left = min(floor(y), height - 1), min(floor(x), width - 1)
    down, right_column = min(low + 1, height - 1), min(left + 1, width - 1)
    t, u = y - low, x - left
    top = (1 - u) * plane[low, left] + u * plane[low, right_column]
    return float((1 - t) * top + t * ((1 - u) * plane[down, left] + u * plane[down, right_column]))


def zero_padded(plane: Array, y: float, x: float) -> float:
    """Return the value at (y, x) as function Z of the reference module `mmcv_deform` defines it.

    The plane is surrounded by zeros.
    """
    padded = np.pad(plane, 2)
    height, width = plane.shape
    if not (-1 < y < height and -1 < x < width):
        return 0.0
    low, left = floor(y), floor(x)
    t, u = y - low, x - left
    (a, b), (c, d) = padded[low + 2 : low + 4, left + 2 : left + 4]
    return float((1 - t) * ((1 - u) * a + u * b) + t * ((1 - u) * c + u * d))
