"""The masks of point-wise spatial attention: each position has a mask with its attention to surrounding positions.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: H. Zhao et al., "PSANet: Point-wise Spatial Attention Network for Scene Parsing", 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import reference

Array = NDArray[Any]
Shape = tuple[int, ...]
"""The sizes of a tensor."""


def _copied_positions(shape: Shape, mask: Shape, half: Shape) -> tuple[Array, Array, Array]:
    """Return flat indices of all copied elements: in the mask, of the mask's center, and of the target position.

    Args:
        shape: The size of the feature map along H and W.
        mask: The size of a mask along H and W.
        half: The position of the center in a mask.
    """
    i, j, h, w = np.indices((*mask, *shape)).reshape(4, -1)
    y, x = h + i - half[0], w + j - half[1]
    inside = (y >= 0) & (y < shape[0]) & (x >= 0) & (x < shape[1])
    flat = i * mask[1] + j, h * shape[1] + w, y * shape[1] + x
    entry, center, target = (indices[inside] for indices in flat)
    return entry, center, target


@reference("diopiPsamaskMmcv")
def psamask(output, input, psa_type, num_, h_feature, w_feature, h_mask, w_mask, half_h_mask, half_w_mask):
    """Return the attention between all positions, from a mask around each position.

    For `psa_type` 0 (collect), the masks are in the columns of the result; for 1 (distribute), in the rows.
    """
    entry, center, target = _copied_positions((h_feature, w_feature), (h_mask, w_mask), (half_h_mask, half_w_mask))
    result_index = (target, center) if psa_type == 0 else (center, target)
    result = np.zeros((num_, h_feature * w_feature, h_feature * w_feature))
    result[:, *result_index] = input.reshape(num_, h_mask * w_mask, h_feature * w_feature)[:, entry, center]
    return result.reshape(output.shape)


@reference("diopiPsamaskBackwardMmcv")
def psamask_backward(
    grad_input, grad_output, psa_type, num_, h_feature, w_feature, h_mask, w_mask, half_h_mask, half_w_mask
):
    """Return the gradient of the masks."""
    entry, center, target = _copied_positions((h_feature, w_feature), (h_mask, w_mask), (half_h_mask, half_w_mask))
    result_index = (target, center) if psa_type == 0 else (center, target)
    result = np.zeros((num_, h_mask * w_mask, h_feature * w_feature))
    result[:, entry, center] = grad_output.reshape(num_, h_feature * w_feature, h_feature * w_feature)[:, *result_index]
    return result.reshape(grad_input.shape)
