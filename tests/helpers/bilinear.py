"""Bilinear samples computed one at a time, as the standard defines them."""

from math import floor
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def bordered(plane: Array, y: float, x: float) -> float:
    """Sample as function B of `mmcv_roi`: the border's value up to one element outside, 0 beyond."""
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
    """Sample as function Z of `mmcv_deform`: the plane is surrounded by zeros."""
    padded = np.pad(plane, 2)
    height, width = plane.shape
    if not (-1 < y < height and -1 < x < width):
        return 0.0
    low, left = floor(y), floor(x)
    t, u = y - low, x - left
    (a, b), (c, d) = padded[low + 2 : low + 4, left + 2 : left + 4]
    return float((1 - t) * ((1 - u) * a + u * b) + t * ((1 - u) * c + u * d))
