"""MMCV's losses and their gradients: focal losses of classes, and the Chamfer distance of point sets.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: MMCV's operators; T.-Y. Lin et al., "Focal Loss for Dense Object Detection", 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from diopi_test.oracle.budget import NEAR
from diopi_test.oracle.reference import AnyOf, WithTerms, reference
from diopi_test.oracle.reference.sums import accumulation_terms

Array = NDArray[Any]

MIN_ARGUMENT = 2.0**-126
"""The smallest argument of logarithms for every element type: the smallest normal float32 number."""


def _log(p: Array) -> Array:
    """Return ln max(p, MIN_ARGUMENT)."""
    return np.log(np.maximum(p, MIN_ARGUMENT))


def _log_expit(x: Array) -> Array:
    """Return ln max(1 / (1 + e⁻ˣ), MIN_ARGUMENT)."""
    return np.maximum(-np.logaddexp(0, -x), np.log(MIN_ARGUMENT))


def _complement_error(p: Array, q: Array) -> Array:
    """Return the relative error, in eps, of q = 1 − p if it is computed from a rounded p; 0 where q ≤ MIN_ARGUMENT."""
    return np.where(q > MIN_ARGUMENT, p / np.maximum(q, MIN_ARGUMENT), 0)


def _row_weights(target: Array, weight: Array) -> Array:
    """Return the weight of each row; 1 if there are no weights."""
    return weight[target] if weight.size else np.ones(target.shape)


# Sigmoid: independent classes


def _is_target(input: Array, target: Array) -> Array:
    """Return whether each class (column) is the target of its row."""
    return np.equal(target[:, np.newaxis], np.arange(input.shape[1]))


@reference("diopiSigmoidFocalLossMmcv")
def sigmoid_focal_loss(input, target, weight, gamma, alpha):
    """Return the focal loss of each class of each row, computed with independent sigmoids."""
    p, q, scale = special.expit(input), special.expit(-input), _row_weights(target, weight)[:, np.newaxis]
    positive, negative = -alpha * q**gamma * _log_expit(input), -(1 - alpha) * p**gamma * _log_expit(-input)
    # errors of the logarithm of p near 1, and of 1 − p computed from p
    positive_terms = np.abs(alpha) * q**gamma * p + np.abs(positive) * gamma * _complement_error(p, q)
    negative_terms = np.abs(1 - alpha) * p**gamma * _complement_error(p, q)
    is_target = _is_target(input, target)
    terms = np.where(is_target, positive_terms, negative_terms)
    return WithTerms(scale * np.where(is_target, positive, negative), np.abs(scale) * terms)


@reference("diopiSigmoidFocalLossBackwardMmcv")
def sigmoid_focal_loss_backward(input, target, weight, gamma, alpha):
    """Return the gradient of the logits."""
    p, q, scale = special.expit(input), special.expit(-input), _row_weights(target, weight)[:, np.newaxis]
    positive = -alpha * q**gamma * (q - gamma * p * _log_expit(input))
    negative = -(1 - alpha) * p**gamma * (gamma * q * _log_expit(-input) - p)
    # errors of 1 − p, of the logarithms of p near 1 and of 1 − p, and of the difference
    positive_terms = np.abs(alpha) * q**gamma * p * (1 + gamma) + np.abs(positive) * gamma * _complement_error(p, q)
    negative_terms = np.abs(1 - alpha) * p**gamma * p * (1 + gamma * (1 + np.abs(_log_expit(-input))))
    is_target = _is_target(input, target)
    terms = np.where(is_target, positive_terms, negative_terms)
    return WithTerms(scale * np.where(is_target, positive, negative), np.abs(scale) * terms)


# Softmax: exclusive classes


def _target_probabilities(softmax: Array, target: Array) -> Array:
    """Return the probability of each row's target class; 1 for rows without a target."""
    probabilities = (
        np.take_along_axis(softmax, np.maximum(target, 0)[:, np.newaxis], 1)[:, 0] if softmax.size else target
    )
    return np.where(target >= 0, probabilities, 1.0)


@reference("diopiSoftmaxFocalLossMmcv")
def softmax_focal_loss(softmax, target, weight, gamma, alpha):
    """Return −α · (1 − p)^γ · ln p · weight for the probability p of the target class; 0 without a target."""
    p = _target_probabilities(softmax, target)
    loss = -alpha * (1 - p) ** gamma * _log(p) * _row_weights(np.maximum(target, 0), weight)
    return WithTerms(np.where(target >= 0, loss, 0), np.zeros(loss.shape))


@reference("diopiSoftmaxFocalLossBackwardMmcv")
def softmax_focal_loss_backward(softmax, target, weight, gamma, alpha):
    """Return the gradient of the logits."""
    p = _target_probabilities(softmax, target)
    q, scale = 1 - p, alpha * _row_weights(np.maximum(target, 0), weight)
    decay = gamma * q ** (gamma - 1) * p * _log(p)
    slope = np.where(target >= 0, scale * (decay - q**gamma), 0)[:, np.newaxis]
    classes = np.arange(softmax.shape[1])
    gradient = slope * (np.equal(target[:, np.newaxis], classes) - softmax)
    return WithTerms(gradient, np.zeros(gradient.shape))


# Point sets


def _nearest_neighbors(points: Array, candidates: Array) -> tuple[Array, Array | AnyOf]:
    """Return the squared distance from each point to its nearest candidate, and the index of the candidate.

    If several candidates are almost equally near, the indices are `AnyOf`.
    """
    distances = np.square(points[:, :, np.newaxis] - candidates[:, np.newaxis]).sum(-1)
    if not distances.size:
        return np.zeros(points.shape[:2]), np.zeros(points.shape[:2], np.int64)
    nearest, positions = distances.min(-1), distances.argmin(-1)
    is_tied = np.less_equal(distances, nearest[..., np.newaxis] * (1 + NEAR)).sum(-1) > 1
    return nearest, AnyOf(positions) if is_tied.any() else positions


@reference("diopiChamferDistanceMmcv")
def chamfer_distance(xyz1, xyz2):
    """Return the squared distance and index of the nearest point in the opposite set, for both sets."""
    dist1, idx1 = _nearest_neighbors(xyz1, xyz2)
    dist2, idx2 = _nearest_neighbors(xyz2, xyz1)
    return dist1, dist2, idx1, idx2


def _distance_gradients(points: Array, neighbors: Array, nearest: Array, grad: Array) -> tuple[Array, Array, Array]:
    """Return the gradients of the squared distances of points from their nearest neighbors.

    Args:
        points: The points, (N, points, 2).
        neighbors: The points of the opposite set, (N, neighbors, 2).
        nearest: The index of the nearest neighbor of each point.
        grad: The gradient of the squared distances.

    Returns:
        The gradients of the points and of the neighbors. The last item has the sums of squares and the numbers of
        addends in the gradients of the neighbors, (2, N, neighbors, 2).
    """
    samples = np.arange(len(points))[:, np.newaxis]
    point_gradient = 2 * grad[..., np.newaxis] * (points - neighbors[samples, nearest])
    neighbor_gradient, squares, counts = (
        np.zeros(neighbors.shape),
        np.zeros(neighbors.shape),
        np.zeros(neighbors.shape[:2]),
    )
    np.subtract.at(neighbor_gradient, (samples, nearest), point_gradient)
    np.add.at(squares, (samples, nearest), point_gradient**2)
    np.add.at(counts, (samples, nearest), 1)
    return (
        point_gradient,
        neighbor_gradient,
        np.stack([squares, np.broadcast_to(counts[..., np.newaxis], squares.shape)]),
    )


def _add_gradients(point_gradient: Array, neighbor_gradient: Array, sums: Array) -> WithTerms:
    """Return the gradient of points, with terms: the sum of both gradients that `_distance_gradients` returns.

    Args:
        point_gradient: The gradient of the distances from the points.
        neighbor_gradient: The gradient of the distances to the points as nearest neighbors.
        sums: The sums of squares and the numbers of addends of `neighbor_gradient`.
    """
    squares, count = sums[0] + point_gradient**2, sums[1] + 1
    value = point_gradient + neighbor_gradient
    return WithTerms(value, accumulation_terms(count, np.sqrt(count * squares), squares, value))


@reference("diopiChamferDistanceBackwardMmcv")
def chamfer_distance_backward(xyz1, xyz2, idx1, idx2, grad_dist1, grad_dist2):
    """Return the gradients of both sets of points."""
    point_gradient1, neighbor_gradient2, sums2 = _distance_gradients(xyz1, xyz2, idx1, grad_dist1)
    point_gradient2, neighbor_gradient1, sums1 = _distance_gradients(xyz2, xyz1, idx2, grad_dist2)
    return _add_gradients(point_gradient1, neighbor_gradient1, sums1), _add_gradients(
        point_gradient2, neighbor_gradient2, sums2
    )
