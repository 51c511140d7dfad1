"""Boxes and regions of interest: suppression of overlapping boxes, and pooling of features inside boxes.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. With `apply_directly`, the arrays are NumPy's.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from diopi_impl.functional import apply_directly
from diopi_impl.jax_cpu import vendor


def _areas(boxes: NDArray[Any]) -> NDArray[Any]:
    """Return the areas of boxes (x1, y1, x2, y2)."""
    areas: NDArray[Any] = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return areas


def _intersections(boxes: NDArray[Any]) -> NDArray[Any]:
    """Return the intersection areas of all pairs of boxes: (N, N)."""
    boxes_a, boxes_b = boxes[:, np.newaxis], boxes[np.newaxis]
    low, high = np.maximum(boxes_a, boxes_b)[..., :2], np.minimum(boxes_a, boxes_b)[..., 2:]
    return _areas(np.concatenate([low, np.maximum(low, high)], -1))


@vendor.implements("diopiNms", adapt=apply_directly)
def nms(boxes, confidence, iou_threshold):
    """Return the indices of the boxes that greedy non-maximum suppression selects, by descending confidence."""
    if boxes.shape != (*confidence.shape, 4) or confidence.ndim != 1:
        raise ValueError(f"boxes have shape {boxes.shape} and confidence {confidence.shape}, expected (N, 4) and (N)")
    boxes = boxes.astype(np.float64)
    common, areas = _intersections(boxes), _areas(boxes)
    with np.errstate(invalid="ignore"):  # for two boxes without area, 0 / 0 is not above the threshold
        overlapping = common / (areas[:, np.newaxis] + areas - common) > iou_threshold
    selected: list[int] = []
    for candidate in np.argsort(-confidence.astype(np.float64), kind="stable"):
        if not overlapping[candidate, selected].any():
            selected.append(candidate)
    return np.array(selected, np.int64)


def _bin_weights(start: Array, extent: Array, bins: int, ratio: int, length: int) -> Array:
    """Return the weight of each element of an axis in each bin of K regions: (K, bins, length).

    Args:
        start: the start of each region on the axis, in elements.
        extent: the length of each region.
        bins: the number of bins into which a region is divided.
        ratio: the number of samples per bin; 0 or less for the length of a bin, rounded up.
        length: the number of elements of the axis.
    """
    count = jnp.full(extent.shape, ratio) if ratio > 0 else jnp.ceil(extent / bins).astype(int)
    cell = extent / bins / jnp.maximum(count, 1)

    def add_sample(j: Array, total: Array) -> Array:
        """Add the weights of sample j of every bin that has more than j samples."""
        number = jnp.arange(bins) * count[:, np.newaxis] + j
        x = start[:, np.newaxis] + (number + 0.5) * cell[:, np.newaxis]
        counts = (j < count[:, np.newaxis]) & (x >= -1) & (x <= length)
        distance = jnp.abs(jnp.clip(x, 0, length - 1)[..., np.newaxis] - jnp.arange(length))
        return total + jnp.where(counts[..., np.newaxis], jnp.maximum(1 - distance, 0), 0).astype(total.dtype)

    zeros = jnp.zeros((len(start), bins, length), start.dtype)
    total = lax.fori_loop(0, jnp.max(count, initial=0), add_sample, zeros)
    return total / jnp.maximum(count, 1)[:, np.newaxis, np.newaxis].astype(start.dtype)


def _axis_weights(
    rois: Array, scale: float, bins: tuple[int, int], ratio: int, aligned: bool, lengths: tuple[int, int]
) -> list[Array]:
    """Return the weights of `_bin_weights` along H and along W.

    Args:
        rois: The regions, (K, 5): the index of the map, x1, y1, x2 and y2.
        scale: The factor from the coordinates of regions to those of maps.
        bins: The numbers of bins along H and W.
        ratio: The number of samples per bin, as in `_bin_weights`.
        aligned: Whether regions are moved by half an element; if not, their sizes are at least 1.
        lengths: The height and width of the maps.

    Raises:
        ValueError: the regions have another shape
    """
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise ValueError(f"rois have shape {rois.shape}, expected (K, 5)")
    weights = []
    for first, n, length in zip((2, 1), bins, lengths, strict=True):
        start = rois[:, first] * scale - (0.5 if aligned else 0)
        extent = (rois[:, first + 2] - rois[:, first]) * scale
        weights.append(_bin_weights(start, extent if aligned else jnp.maximum(extent, 1), n, ratio, length))
    return weights


def _pool_regions(input: Array, rois: Array, axes: list[Array]) -> Array:
    """Return the weighted sums over the image of each region: (K, C, bins along H, bins along W)."""
    features = input[rois[:, 0].astype(int)]
    return jnp.einsum("kph,kqw,kchw->kcpq", *axes, features, precision="highest")


@vendor.implements("diopiRoiAlign")
def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    """Return the mean of bilinear samples in each bin of each region (He et al., "Mask R-CNN")."""
    bins, lengths = (pooled_height, pooled_width), (input.shape[2], input.shape[3])
    return _pool_regions(input, rois, _axis_weights(rois, spatial_scale, bins, sampling_ratio, aligned, lengths))


@vendor.implements("diopiRoiAlignBackward")
def roi_align_backward(
    grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width, sampling_ratio, aligned
):
    """Return the gradient of `roi_align` with respect to the input: (batch_size, channels, height, width)."""
    bins, lengths = (pooled_height, pooled_width), (height, width)
    axes = _axis_weights(rois, spatial_scale, bins, sampling_ratio, aligned, lengths)
    features = jnp.zeros((batch_size, channels, *lengths), grad.dtype)
    _, pull = jax.vjp(lambda x: _pool_regions(x, rois, axes), features)
    (gradient,) = pull(grad)
    return gradient
