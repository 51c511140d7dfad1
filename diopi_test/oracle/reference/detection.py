"""Non-maximum suppression of boxes, and RoIAlign: pooling of regions of interest on feature maps.

A box is (x1, y1, x2, y2). A region of interest is the index of its image in the batch, followed by a box in the
coordinates of the original image. Each region is divided into *bins*, and each bin has a grid of samples.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: K. He et al., "Mask R-CNN", 2017 (RoIAlign).
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.weights import AxisWeights, weighted_sum

Array = NDArray[Any]
Pair = tuple[int, int]
"""Two values: one for H and one for W."""


def _intersection_and_union(box: Array, boxes: Array) -> tuple[Array, Array]:
    """Return the areas of the intersection and of the union of a box and each of `boxes`."""
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    intersection = np.prod(np.maximum(high - low, 0), -1)
    area, areas = np.prod(box[2:] - box[:2]), np.prod(boxes[:, 2:] - boxes[:, :2], -1)
    return intersection, area + areas - intersection


@reference("diopiNms")
def nms(boxes, confidence, iou_threshold):
    """Return the indices of the boxes that greedy non-maximum suppression selects, by descending confidence.

    A box is selected unless its intersection over union with a selected box is above `iou_threshold`.
    """
    selected: list[int] = []
    for candidate in np.argsort(-confidence, kind="stable"):
        intersection, union = _intersection_and_union(boxes[candidate], boxes[selected])
        # for two boxes without area, 0 / 0 is not above the threshold
        if not np.any(intersection / union > iou_threshold):
            selected.append(int(candidate))
    return np.array(selected, np.int64)


def _bin_weights(start: float, extent: float, bins: int, grid: int, length: int) -> AxisWeights:
    """Return the weight of each element of an axis in the mean over the samples of each bin of a region.

    Args:
        start: The position of the start of the region on the axis, in elements.
        extent: The length of the region along the axis.
        bins: The number of bins along the axis.
        grid: The number of samples per bin along the axis; 0 or less for the length of a bin, rounded up.
        length: The number of elements of the axis.

    Returns:
        The weights, (bins, length).
    """
    count = grid if grid > 0 else ceil(extent / bins)
    steps = (np.arange(bins * count) + 0.5) * extent / bins / max(count, 1)
    position = start + steps
    inside = (position >= -1) & (position <= length)
    distance = np.abs(np.clip(position, 0, length - 1)[:, np.newaxis] - np.arange(length))
    weights = inside[:, np.newaxis] * np.maximum(1 - distance, 0)
    # a weight is 1 minus the distance between the index of the element and start + steps
    terms = (distance < 1) * (1 + abs(start) + steps)[:, np.newaxis]

    def mean(samples: Array) -> Array:
        """Return the mean of the rows for the samples of each bin."""
        return samples.reshape(bins, count, length).sum(1) / max(count, 1)

    return AxisWeights(mean(weights), mean(terms))


def _region_weights(roi: Array, scale: float, bins: Pair, grid: int, aligned: bool, lengths: Pair) -> list[AxisWeights]:
    """Return the weights of the elements in the bins of a region, along H and along W.

    Args:
        roi: The region: index of the image, x1, y1, x2, y2.
        scale: The factor from coordinates of the region to elements of the feature map.
        bins: The number of bins along H and W.
        grid: The number of samples per bin along an axis; 0 or less for the length of a bin, rounded up.
        aligned: Whether coordinates are shifted by half an element, and small regions keep their size.
        lengths: The size of the feature map along H and W.
    """
    low, high = roi[[2, 1]] * scale, roi[[4, 3]] * scale
    extents = high - low if aligned else np.maximum(high - low, 1)
    starts = low - 0.5 if aligned else low
    return [
        _bin_weights(start, extent, n, grid, length)
        for start, extent, n, length in zip(starts, extents, bins, lengths, strict=True)
    ]


def _image_index(roi: Array) -> int:
    """Return the index in the batch of the image that a region belongs to."""
    return round(float(roi[0]))


@reference("diopiRoiAlign")
def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    """Return the mean of the bilinear samples in each bin of each region: (regions, channels, height, width)."""
    bins, lengths = (pooled_height, pooled_width), (input.shape[2], input.shape[3])
    pooled = [
        weighted_sum(
            _region_weights(roi, spatial_scale, bins, sampling_ratio, aligned, lengths), input[_image_index(roi)]
        )
        for roi in rois
    ]
    shape = (len(rois), input.shape[1], *bins)
    return WithTerms(*(np.reshape([getattr(region, part) for region in pooled], shape) for part in ("value", "terms")))


@reference("diopiRoiAlignBackward")
def roi_align_backward(
    grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width, sampling_ratio, aligned
):
    """Return the gradient of the input of `roi_align`: (batch, channels, height, width)."""
    values, terms = np.zeros((2, batch_size, channels, height, width))
    for roi, gradient in zip(rois, grad, strict=True):
        axes = _region_weights(
            roi, spatial_scale, (pooled_height, pooled_width), sampling_ratio, aligned, (height, width)
        )
        summed = weighted_sum([axis.transposed for axis in axes], gradient)
        values[_image_index(roi)] += summed.value
        terms[_image_index(roi)] += summed.terms
    return WithTerms(values, terms)
