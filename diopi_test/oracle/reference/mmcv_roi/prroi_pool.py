"""Precise RoI pooling: the mean over a bin is an integral instead of a mean of samples.

The integrand is the bilinear interpolation of the feature map, so that the coordinates of regions have a gradient, too.
The interpolation is a sum of elements times *hat* functions max(1 − |x|, 0) along each axis.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: B. Jiang et al., "Acquisition of Localization Confidence for Accurate Object Detection", 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.mmcv_roi.grid import Pair, feature_map_index, pool_regions, sum_region_gradients
from diopi_test.oracle.reference.weights import AxisWeights, weighted_sum

Array = NDArray[Any]


def _hat(x: Array) -> Array:
    """Return the hat function max(1 − |x|, 0)."""
    return np.maximum(1 - np.abs(x), 0)


def _hat_integral(x: Array) -> Array:
    """Return the integral of the hat function from −1 to x."""
    x = np.clip(x, -1, 1)
    return x + 0.5 - np.sign(x) * x**2 / 2


def _bin_edges(roi: Array, scale: float, bins: Pair) -> tuple[list[Array], Array]:
    """Return the edges of the bins along H and W, and the widths of the bins."""
    starts = roi[[2, 1]] * scale
    widths = np.maximum(roi[[4, 3]] - roi[[2, 1]], 0) * scale / bins
    return [start + width * np.arange(n + 1) for start, width, n in zip(starts, widths, bins, strict=True)], widths


def _mean_weights(edges: Array, width: float, length: int) -> AxisWeights:
    """Return the weights of the elements of an axis in the mean over each bin; 0 if bins have no width.

    Args:
        edges: The edges of the bins, in elements.
        width: The width of a bin.
        length: The number of elements of the axis.
    """
    if width == 0:
        return AxisWeights(np.zeros((len(edges) - 1, length)), np.zeros((len(edges) - 1, length)))
    hat_integrals = _hat_integral(edges[:, np.newaxis] - np.arange(length))
    matrix = np.diff(hat_integrals, axis=0) / width
    terms = (1 + np.abs(edges[:-1]) + np.abs(edges[1:])) / width
    return AxisWeights(matrix, (matrix > 0) * terms[:, np.newaxis])


def _region_weights(roi: Array, scale: float, bins: Pair, size: Pair) -> list[AxisWeights]:
    """Return the weights of a region along H and W; 0 if the region has no area."""
    edges, widths = _bin_edges(roi, scale, bins)
    axes = [
        _mean_weights(axis_edges, float(width), length)
        for axis_edges, width, length in zip(edges, widths, size, strict=True)
    ]
    if (widths > 0).all():
        return axes
    return [AxisWeights(axis.matrix * 0, axis.terms * 0) for axis in axes]


@reference("diopiPrroiPoolMmcv")
def prroi_pool(input, rois, pooled_height, pooled_width, spatial_scale):
    """Return the mean of the bilinear interpolation over each bin: (regions, channels, height, width)."""
    bins, size = (pooled_height, pooled_width), (input.shape[2], input.shape[3])

    def pool_roi(number: int, roi: Array) -> WithTerms:
        """Return the bin means of a region."""
        return weighted_sum(_region_weights(roi, spatial_scale, bins, size), input[feature_map_index(roi)])

    return pool_regions(rois, (len(rois), input.shape[1], *bins), pool_roi)


@reference("diopiPrroiPoolbackwardMmcv")
def prroi_pool_backward(grad_input, grad_output, rois, pooled_height, pooled_width, spatial_scale):
    """Return the gradient of the input."""
    bins, size = (pooled_height, pooled_width), (grad_input.shape[2], grad_input.shape[3])

    def roi_gradient(number: int, roi: Array) -> WithTerms:
        """Return the gradient of the feature maps from a region."""
        axes = [axis.transposed for axis in _region_weights(roi, spatial_scale, bins, size)]
        return weighted_sum(axes, grad_output[number])

    return sum_region_gradients(rois, grad_input.shape, roi_gradient)


@reference("diopiPrroiPoolCoorBackwardMmcv")
def prroi_pool_coor_backward(grad_rois, output, grad_output, input, rois, pooled_height, pooled_width, spatial_scale):
    """Return the gradient of the regions: 0 for the index of the feature map, then those of x1, y1, x2, y2."""
    values, terms = np.zeros((2, *grad_rois.shape))
    for number, roi in enumerate(rois):
        edges, widths = _bin_edges(roi, spatial_scale, (pooled_height, pooled_width))
        if (widths <= 0).any():
            continue
        for axis, columns in ((0, [2, 4]), (1, [1, 3])):
            end_gradients = _edge_gradient(
                edges, widths, axis, input[feature_map_index(roi)], output[number], grad_output[number]
            )
            values[number, columns], terms[number, columns] = np.array(end_gradients) * spatial_scale
    return WithTerms(values, terms)


def _edge_gradient(
    edges: list[Array], widths: Array, axis: int, maps: Array, output: Array, grad: Array
) -> tuple[Array, Array]:
    """Return the gradient with respect to both ends of a region along an axis, and its terms.

    Args:
        edges: The edges of the bins along H and W, in cells.
        widths: The widths of the bins along H and W.
        axis: The axis: 0 for H, 1 for W.
        maps: The feature map, (C, H, W).
        output: The means of the region, (C, bins along H, bins along W).
        grad: The gradient of the means.
    """
    means = _mean_weights(edges[1 - axis], float(widths[1 - axis]), maps.shape[2 - axis])
    hats = _hat(edges[axis][:, np.newaxis] - np.arange(maps.shape[1 + axis]))
    on_edges = AxisWeights(hats, (hats > 0) * (1 + np.abs(edges[axis]))[:, np.newaxis])
    lines = weighted_sum([on_edges, means] if axis == 0 else [means, on_edges], maps)
    mean, sizes, grad_rows, pooled = (
        np.moveaxis(array, 1 + axis, -1) for array in (lines.value, lines.terms, grad, output)
    )
    fractions = np.arange(grad_rows.shape[-1] + 1) / grad_rows.shape[-1]
    shares = np.array([1 - fractions, fractions])  # the displacement of each edge per displacement of either end

    def sum_ends(low: Array, high: Array, grads: Array) -> Array:
        """Return the sums over all edges for the displacements of the start and of the end."""
        return np.array([np.sum(grads * (low * share[:-1] + high * share[1:])) for share in shares]) / widths[axis]

    value = sum_ends(pooled - mean[..., :-1], mean[..., 1:] - pooled, grad_rows)
    sizes = np.abs(mean) + sizes
    return value, sum_ends(np.abs(pooled) + sizes[..., :-1], np.abs(pooled) + sizes[..., 1:], np.abs(grad_rows))
