"""Precise RoI pooling: means are integrals, and there is a gradient by the regions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.mmcv_roi.grid import Pair, gathered, pooled, sample_of
from diopi_test.oracle.reference.weights import Weights, weighted

Array = NDArray[Any]


def _hat(x: Array) -> Array:
    return np.maximum(1 - np.abs(x), 0)


def _hat_integral(x: Array) -> Array:
    """∫ of the hat from −1 to x."""
    x = np.clip(x, -1, 1)
    return x + 0.5 - np.sign(x) * x**2 / 2


def _edges(roi: Array, scale: float, bins: Pair) -> tuple[list[Array], Array]:
    """Edges of the bins along H and W, and how wide they are."""
    starts = roi[[2, 1]] * scale
    widths = np.maximum(roi[[4, 3]] - roi[[2, 1]], 0) * scale / bins
    return [start + width * np.arange(n + 1) for start, width, n in zip(starts, widths, bins, strict=True)], widths


def _means(edges: Array, width: float, length: int) -> Weights:
    """The weights of an axis's elements in the mean over each bin; none where bins have no width."""
    if width == 0:
        return Weights(np.zeros((len(edges) - 1, length)), np.zeros((len(edges) - 1, length)))
    integrals = _hat_integral(edges[:, np.newaxis] - np.arange(length))
    matrix = np.diff(integrals, axis=0) / width
    terms = (1 + np.abs(edges[:-1]) + np.abs(edges[1:])) / width
    return Weights(matrix, (matrix > 0) * terms[:, np.newaxis])


def _axes(roi: Array, scale: float, bins: Pair, size: Pair) -> list[Weights]:
    edges, widths = _edges(roi, scale, bins)
    axes = [_means(one, float(width), length) for one, width, length in zip(edges, widths, size, strict=True)]
    return axes if (widths > 0).all() else [Weights(one.matrix * 0, one.terms * 0) for one in axes]


@reference("diopiPrroiPoolMmcv")
def prroi_pool(input: Array, rois: Array, pooled_height: int, pooled_width: int, spatial_scale: float) -> WithTerms:
    bins, size = (pooled_height, pooled_width), (input.shape[2], input.shape[3])

    def of_roi(number: int, roi: Array) -> WithTerms:
        return weighted(_axes(roi, spatial_scale, bins, size), input[sample_of(roi)])

    return pooled(rois, (len(rois), input.shape[1], *bins), of_roi)


@reference("diopiPrroiPoolbackwardMmcv")
def prroi_pool_backward(
    grad_input: Array,
    grad_output: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> WithTerms:
    bins, size = (pooled_height, pooled_width), (grad_input.shape[2], grad_input.shape[3])

    def of_roi(number: int, roi: Array) -> WithTerms:
        axes = [axis.transposed for axis in _axes(roi, spatial_scale, bins, size)]
        return weighted(axes, grad_output[number])

    return gathered(rois, grad_input.shape, of_roi)


@reference("diopiPrroiPoolCoorBackwardMmcv")
def prroi_pool_coor_backward(
    grad_rois: Array,
    output: Array,
    grad_output: Array,
    input: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> WithTerms:
    values, terms = np.zeros((2, *grad_rois.shape))
    for number, roi in enumerate(rois):
        edges, widths = _edges(roi, spatial_scale, (pooled_height, pooled_width))
        if (widths <= 0).any():
            continue
        for axis, columns in ((0, [2, 4]), (1, [1, 3])):
            parts = _edge_gradient(edges, widths, axis, input[sample_of(roi)], output[number], grad_output[number])
            values[number, columns], terms[number, columns] = np.array(parts) * spatial_scale
    return WithTerms(values, terms)


def _edge_gradient(
    edges: list[Array], widths: Array, axis: int, maps: Array, output: Array, grad: Array
) -> tuple[Array, Array]:
    """The gradient by both ends of a region along an axis, in cells, and the size of its terms."""
    means = _means(edges[1 - axis], float(widths[1 - axis]), maps.shape[2 - axis])
    hats = _hat(edges[axis][:, np.newaxis] - np.arange(maps.shape[1 + axis]))
    on_edges = Weights(hats, (hats > 0) * (1 + np.abs(edges[axis]))[:, np.newaxis])
    lines = weighted([on_edges, means] if axis == 0 else [means, on_edges], maps)
    mean, size, given, p = (np.moveaxis(one, 1 + axis, -1) for one in (lines.value, lines.terms, grad, output))
    parts = np.arange(given.shape[-1] + 1) / given.shape[-1]
    shares = np.array([1 - parts, parts])  # how far each edge moves with either end

    def summed(low: Array, high: Array, given: Array) -> Array:
        return np.array([np.sum(given * (low * share[:-1] + high * share[1:])) for share in shares]) / widths[axis]

    value = summed(p - mean[..., :-1], mean[..., 1:] - p, given)
    size = np.abs(mean) + size
    return value, summed(np.abs(p) + size[..., :-1], np.abs(p) + size[..., 1:], np.abs(given))
