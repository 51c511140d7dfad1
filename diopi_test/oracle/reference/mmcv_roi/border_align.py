"""BorderAlign: the largest of the points on each border of a box."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.sampling import Coordinate, bordered, combined, exact, put, samples, stacked, taken

Array = NDArray[Any]


def _border_points(boxes: Array, pool_size: int) -> tuple[Coordinate, Coordinate]:
    """The points on the borders of boxes (K, 4): (K, borders, points), y and x."""
    x1, y1, x2, y2 = boxes.T
    part = np.arange(pool_size + 1) / pool_size
    across, down = ((high - low)[:, np.newaxis] * part for low, high in ((x1, x2), (y1, y2)))
    x1, y1, x2, y2 = (one[:, np.newaxis] + 0 * part for one in (x1, y1, x2, y2))
    y = np.stack([y1, y1 + down, y2, y2 - down], 1)
    x = np.stack([x1 + across, x1, x2 - across, x2], 1)
    corners = np.abs(boxes).max(-1)[:, np.newaxis, np.newaxis]
    return Coordinate(y, 0 * y + 2 * corners), Coordinate(x, 0 * x + 2 * corners)


def _at(coordinate: Coordinate, border: int) -> Coordinate:
    return Coordinate(coordinate.value[:, border], coordinate.terms[:, border])


@reference("diopiBorderAlignMmcv")
def border_align(input: Array, boxes: Array, pool_size: int) -> tuple[WithTerms, Array]:
    n, c, h, w = input.shape
    shape = (n, 4, c // 4, boxes.shape[1])
    planes = input.reshape(n, 4, c // 4, h * w)
    values, places = [], np.zeros(shape, np.int64)
    for image, border in product(range(n), range(4)):
        y, x = (_at(one, border) for one in _border_points(boxes[image], pool_size))
        its = samples(bordered(y, h), bordered(x, w), w)
        given = combined(taken(its.index), its.weight, exact(planes[image, border]))
        best = np.argmax(given.value, -1)
        places[image, border] = best
        values.append(
            WithTerms(
                *(np.take_along_axis(one, best[..., np.newaxis], -1)[..., 0] for one in (given.value, given.terms))
            )
        )
    largest = stacked(values, shape)
    return WithTerms(np.moveaxis(largest.value, 1, 3), np.moveaxis(largest.terms, 1, 3)), np.moveaxis(places, 1, 3)


@reference("diopiBorderAlignBackwardMmcv")
def border_align_backward(
    grad_input: Array, grad_output: Array, boxes: Array, argmax_idx: Array, pool_size: int
) -> WithTerms:
    n, c, h, w = grad_input.shape
    parts = []
    for image, border in product(range(n), range(4)):
        y, x = (_at(one, border) for one in _border_points(boxes[image], pool_size))
        for grad, places in zip(grad_output[image, ..., border], argmax_idx[image, ..., border], strict=True):
            at = [
                Coordinate(*(one[np.arange(len(places)), places] for one in (axis.value, axis.terms)))
                for axis in (y, x)
            ]
            its = samples(bordered(at[0], h), bordered(at[1], w), w)
            parts.append(combined(put(its.index, h * w), its.weight, exact(grad[np.newaxis])))
    return stacked(parts, (n, c, h, w))
