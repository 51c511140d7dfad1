"""BorderAlign: the maximum over points on each border of a box.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: H. Qiu et al., "BorderDet: Border Feature for Dense Object Detection", 2020.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.sampling import (
    Coordinate,
    bilinear_samples,
    clamped_cells,
    make_gather,
    make_scatter,
    stack_results,
    sum_rounded_products,
    with_zero_terms,
)

Array = NDArray[Any]


def _border_points(boxes: Array, pool_size: int) -> tuple[Coordinate, Coordinate]:
    """Return y and x of equidistant points on the four borders of boxes: (boxes, borders, points) each.

    Args:
        boxes: The boxes x1, y1, x2, y2, (boxes, 4).
        pool_size: The number of intervals between the points of a border.
    """
    x1, y1, x2, y2 = boxes.T
    fraction = np.arange(pool_size + 1) / pool_size
    x_offsets, y_offsets = ((high - low)[:, np.newaxis] * fraction for low, high in ((x1, x2), (y1, y2)))
    x1, y1, x2, y2 = (edge[:, np.newaxis] + 0 * fraction for edge in (x1, y1, x2, y2))
    y = np.stack([y1, y1 + y_offsets, y2, y2 - y_offsets], 1)
    x = np.stack([x1 + x_offsets, x1, x2 - x_offsets, x2], 1)
    corners = np.abs(boxes).max(-1)[:, np.newaxis, np.newaxis]
    return Coordinate(y, 0 * y + 2 * corners), Coordinate(x, 0 * x + 2 * corners)


def _border_coordinate(coordinate: Coordinate, border: int) -> Coordinate:
    """Return the coordinates of the points on the border with this number, from those on all borders."""
    return Coordinate(coordinate.value[:, border], coordinate.terms[:, border])


@reference("diopiBorderAlignMmcv")
def border_align(input, boxes, pool_size):
    """Return the largest sample on each border of each box, and the number of its point on the border.

    The channels are divided into four parts, one per border. Both results are (N, C / 4, boxes, borders).
    """
    n, c, h, w = input.shape
    shape = (n, 4, c // 4, boxes.shape[1])
    planes = input.reshape(n, 4, c // 4, h * w)
    values, positions = [], np.zeros(shape, np.int64)
    for image, border in product(range(n), range(4)):
        y, x = (_border_coordinate(coordinate, border) for coordinate in _border_points(boxes[image], pool_size))
        samples = bilinear_samples(clamped_cells(y, h), clamped_cells(x, w), w)
        sampled = sum_rounded_products(
            make_gather(samples.index), samples.weight, with_zero_terms(planes[image, border])
        )
        best_points = np.argmax(sampled.value, -1)
        positions[image, border] = best_points
        values.append(
            WithTerms(
                *(
                    np.take_along_axis(array, best_points[..., np.newaxis], -1)[..., 0]
                    for array in (sampled.value, sampled.terms)
                )
            )
        )
    largest = stack_results(values, shape)
    return WithTerms(np.moveaxis(largest.value, 1, 3), np.moveaxis(largest.terms, 1, 3)), np.moveaxis(positions, 1, 3)


@reference("diopiBorderAlignBackwardMmcv")
def border_align_backward(grad_input, grad_output, boxes, argmax_idx, pool_size):
    """Return the gradient of the input."""
    n, c, h, w = grad_input.shape
    parts = []
    for image, border in product(range(n), range(4)):
        y, x = (_border_coordinate(coordinate, border) for coordinate in _border_points(boxes[image], pool_size))
        for grad, positions in zip(grad_output[image, ..., border], argmax_idx[image, ..., border], strict=True):
            points = [
                Coordinate(*(array[np.arange(len(positions)), positions] for array in (axis.value, axis.terms)))
                for axis in (y, x)
            ]
            samples = bilinear_samples(clamped_cells(points[0], h), clamped_cells(points[1], w), w)
            parts.append(
                sum_rounded_products(
                    make_scatter(samples.index, h * w), samples.weight, with_zero_terms(grad[np.newaxis])
                )
            )
    return stack_results(parts, (n, c, h, w))
