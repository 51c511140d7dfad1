"""The masks of point-wise spatial attention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import reference

Array = NDArray[Any]
Shape = tuple[int, ...]


def _copies(shape: Shape, mask: Shape, half: Shape) -> tuple[Array, Array, Array]:
    """What is copied: the entry of the mask, the position it is the mask of, and the one it points at, each flat."""
    i, j, h, w = np.indices((*mask, *shape)).reshape(4, -1)
    y, x = h + i - half[0], w + j - half[1]
    inside = (y >= 0) & (y < shape[0]) & (x >= 0) & (x < shape[1])
    flat = i * mask[1] + j, h * shape[1] + w, y * shape[1] + x
    entry, own, target = (one[inside] for one in flat)
    return entry, own, target


@reference("diopiPsamaskMmcv")
def psamask(
    output: Array,
    input: Array,
    psa_type: int,
    num_: int,
    h_feature: int,
    w_feature: int,
    h_mask: int,
    w_mask: int,
    half_h_mask: int,
    half_w_mask: int,
) -> Array:
    entry, own, target = _copies((h_feature, w_feature), (h_mask, w_mask), (half_h_mask, half_w_mask))
    places = (target, own) if psa_type == 0 else (own, target)
    result = np.zeros((num_, h_feature * w_feature, h_feature * w_feature))
    result[:, *places] = input.reshape(num_, h_mask * w_mask, h_feature * w_feature)[:, entry, own]
    return result.reshape(output.shape)


@reference("diopiPsamaskBackwardMmcv")
def psamask_backward(
    grad_input: Array,
    grad_output: Array,
    psa_type: int,
    num_: int,
    h_feature: int,
    w_feature: int,
    h_mask: int,
    w_mask: int,
    half_h_mask: int,
    half_w_mask: int,
) -> Array:
    entry, own, target = _copies((h_feature, w_feature), (h_mask, w_mask), (half_h_mask, half_w_mask))
    places = (target, own) if psa_type == 0 else (own, target)
    result = np.zeros((num_, h_mask * w_mask, h_feature * w_feature))
    result[:, entry, own] = grad_output.reshape(num_, h_feature * w_feature, h_feature * w_feature)[:, *places]
    return result.reshape(grad_input.shape)
