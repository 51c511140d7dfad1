"""MMCV's losses and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from diopi_test.oracle.budget import NEAR
from diopi_test.oracle.reference import AnyOf, WithTerms, reference
from diopi_test.oracle.reference.sums import accumulated

Array = NDArray[Any]

MIN = 2.0**-126
"""The smallest argument of logarithms, whatever the element type: the smallest normal float32."""


def _log(p: Array) -> Array:
    """ln max(p, MIN)."""
    return np.log(np.maximum(p, MIN))


def _log_expit(x: Array) -> Array:
    """ln max(1 / (1 + e⁻ˣ), MIN)."""
    return np.maximum(-np.logaddexp(0, -x), np.log(MIN))


def _cancelled(p: Array, rest: Array) -> Array:
    """The relative error, in eps, of 1 − p made of a rounded p; none where a sound kernel has 0 or less than MIN."""
    return np.where(rest > MIN, p / np.maximum(rest, MIN), 0)


def _weight_of(target: Array, weight: Array) -> Array:
    """The weight of each row, 1 without weights."""
    return weight[target] if weight.size else np.ones(target.shape)


# Independent classes


def _is_target(input: Array, target: Array) -> Array:
    return np.equal(target[:, np.newaxis], np.arange(input.shape[1]))


@reference("diopiSigmoidFocalLossMmcv")
def sigmoid_focal_loss(input: Array, target: Array, weight: Array, gamma: float, alpha: float) -> WithTerms:
    p, rest, scale = special.expit(input), special.expit(-input), _weight_of(target, weight)[:, np.newaxis]
    positive, negative = -alpha * rest**gamma * _log_expit(input), -(1 - alpha) * p**gamma * _log_expit(-input)
    # the logarithm of p near 1, and 1 − p made of it
    positive_terms = np.abs(alpha) * rest**gamma * p + np.abs(positive) * gamma * _cancelled(p, rest)
    negative_terms = np.abs(1 - alpha) * p**gamma * _cancelled(p, rest)
    is_target = _is_target(input, target)
    terms = np.where(is_target, positive_terms, negative_terms)
    return WithTerms(scale * np.where(is_target, positive, negative), np.abs(scale) * terms)


@reference("diopiSigmoidFocalLossBackwardMmcv")
def sigmoid_focal_loss_backward(input: Array, target: Array, weight: Array, gamma: float, alpha: float) -> WithTerms:
    p, rest, scale = special.expit(input), special.expit(-input), _weight_of(target, weight)[:, np.newaxis]
    positive = -alpha * rest**gamma * (rest - gamma * p * _log_expit(input))
    negative = -(1 - alpha) * p**gamma * (gamma * rest * _log_expit(-input) - p)
    # 1 − p, the logarithms of p near 1 and of 1 − p, and the difference
    positive_terms = np.abs(alpha) * rest**gamma * p * (1 + gamma) + np.abs(positive) * gamma * _cancelled(p, rest)
    negative_terms = np.abs(1 - alpha) * p**gamma * p * (1 + gamma * (1 + np.abs(_log_expit(-input))))
    is_target = _is_target(input, target)
    terms = np.where(is_target, positive_terms, negative_terms)
    return WithTerms(scale * np.where(is_target, positive, negative), np.abs(scale) * terms)


# Exclusive classes


def _of_target(softmax: Array, target: Array) -> Array:
    """The probability of each row's target, 1 where there is none."""
    taken = np.take_along_axis(softmax, np.maximum(target, 0)[:, np.newaxis], 1)[:, 0] if softmax.size else target
    return np.where(target >= 0, taken, 1.0)


@reference("diopiSoftmaxFocalLossMmcv")
def softmax_focal_loss(softmax: Array, target: Array, weight: Array, gamma: float, alpha: float) -> WithTerms:
    p = _of_target(softmax, target)
    loss = -alpha * (1 - p) ** gamma * _log(p) * _weight_of(np.maximum(target, 0), weight)
    return WithTerms(np.where(target >= 0, loss, 0), np.zeros(loss.shape))


@reference("diopiSoftmaxFocalLossBackwardMmcv")
def softmax_focal_loss_backward(
    buff: Array, softmax: Array, target: Array, weight: Array, gamma: float, alpha: float
) -> WithTerms:
    p = _of_target(softmax, target)
    rest, scale = 1 - p, alpha * _weight_of(np.maximum(target, 0), weight)
    decay = gamma * rest ** (gamma - 1) * p * _log(p)
    slope = np.where(target >= 0, scale * (decay - rest**gamma), 0)[:, np.newaxis]
    classes = np.arange(softmax.shape[1])
    gradient = slope * (np.equal(target[:, np.newaxis], classes) - softmax)
    return WithTerms(gradient, np.zeros(gradient.shape))


# Point sets


def _nearest(points: Array, others: Array) -> tuple[Array, Array | AnyOf]:
    """For each point the squared distance to the nearest of the others, and its position."""
    distances = np.square(points[:, :, np.newaxis] - others[:, np.newaxis]).sum(-1)
    if not distances.size:
        return np.zeros(points.shape[:2]), np.zeros(points.shape[:2], np.int64)
    nearest, positions = distances.min(-1), distances.argmin(-1)
    near = np.less_equal(distances, nearest[..., np.newaxis] * (1 + NEAR)).sum(-1) > 1
    return nearest, AnyOf(positions) if near.any() else positions


@reference("diopiChamferDistanceMmcv")
def chamfer_distance(xyz1: Array, xyz2: Array) -> tuple[Any, ...]:
    dist1, idx1 = _nearest(xyz1, xyz2)
    dist2, idx2 = _nearest(xyz2, xyz1)
    return dist1, dist2, idx1, idx2


def _pulled(points: Array, others: Array, nearest: Array, grad: Array) -> tuple[Array, Array, Array]:
    """The gradients by points and others of the distances from each point to its nearest; the size of the summands."""
    batches = np.arange(len(points))[:, np.newaxis]
    by_point = 2 * grad[..., np.newaxis] * (points - others[batches, nearest])
    by_other, squares, counts = np.zeros(others.shape), np.zeros(others.shape), np.zeros(others.shape[:2])
    np.subtract.at(by_other, (batches, nearest), by_point)
    np.add.at(squares, (batches, nearest), by_point**2)
    np.add.at(counts, (batches, nearest), 1)
    return by_point, by_other, np.stack([squares, np.broadcast_to(counts[..., np.newaxis], squares.shape)])


def _summed(by_point: Array, by_other: Array, sums: Array) -> WithTerms:
    """A point's own summand and those of the others whose nearest it is."""
    squares, count = sums[0] + by_point**2, sums[1] + 1
    value = by_point + by_other
    return WithTerms(value, accumulated(count, np.sqrt(count * squares), squares, value))


@reference("diopiChamferDistanceBackwardMmcv")
def chamfer_distance_backward(
    grad_xyz1: Array,
    grad_xyz2: Array,
    xyz1: Array,
    xyz2: Array,
    idx1: Array,
    idx2: Array,
    grad_dist1: Array,
    grad_dist2: Array,
) -> tuple[WithTerms, WithTerms]:
    own1, other2, sums2 = _pulled(xyz1, xyz2, idx1, grad_dist1)
    own2, other1, sums1 = _pulled(xyz2, xyz1, idx2, grad_dist2)
    return _summed(own1, other1, sums1), _summed(own2, other2, sums2)
