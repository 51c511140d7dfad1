"""MMCV's losses: focal loss on sigmoid and softmax probabilities, and chamfer distance.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from math import log

import jax
import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.extremes import nan_propagating_min
from diopi_impl.jax_cpu.sizes import check_shapes

LOG_MIN = log(2.0**-126)
"""The lower bound of all logarithms of probabilities: the logarithm of the smallest normal float32 number."""


def _row_weights(target: Array, weight: Array, classes: int) -> Array:
    """Return the weight of each row's target class: that of class 0 if the target is negative, 1 without weights."""
    if not weight.size:
        return jnp.ones(target.shape, weight.dtype)
    check_shapes((classes,), weight=weight)
    return weight[jnp.maximum(target, 0)]


def _check_rows(name: str, rows: Array, target: Array) -> None:
    """Raise ValueError unless the tensor called `name` has shape (N, C) and the target has shape (N)."""
    if rows.ndim != 2:
        raise ValueError(f"{name} has shape {rows.shape}, expected (N, C)")
    check_shapes(rows.shape[:1], target=target)


def _log_sigmoid(x: Array) -> Array:
    """Return log σ(x), at least `LOG_MIN`."""
    return jnp.maximum(jax.nn.log_sigmoid(x), LOG_MIN)


@vendor.implements("diopiSigmoidFocalLossMmcv")
def sigmoid_focal_loss(input, target, weight, gamma, alpha):
    """Return the focal loss of each row and class, where each class has an independent sigmoid probability.

    For the probability p of the true answer, the loss is −α · (1 − p)^γ · ln p · weight. The factor of the classes that
    are not the target is 1 − α.
    """
    _check_rows("input", input, target)
    is_target = target[:, None] == jnp.arange(input.shape[1])
    x, balance = jnp.where(is_target, input, -input), jnp.where(is_target, alpha, 1 - alpha)
    scale = _row_weights(target, weight, input.shape[1])[:, None]
    return -scale * balance.astype(x.dtype) * jax.nn.sigmoid(-x) ** gamma * _log_sigmoid(x)


@vendor.implements("diopiSigmoidFocalLossBackwardMmcv")
def sigmoid_focal_loss_backward(input, target, weight, gamma, alpha):
    """Return the gradient of the loss with respect to the logits."""
    _check_rows("input", input, target)
    is_target = target[:, None] == jnp.arange(input.shape[1])
    x, balance = jnp.where(is_target, input, -input), jnp.where(is_target, -alpha, 1 - alpha)
    p, not_p = jax.nn.sigmoid(x), jax.nn.sigmoid(-x)  # the probability of the true answer, and its complement
    scale = _row_weights(target, weight, input.shape[1])[:, None]
    return scale * balance.astype(x.dtype) * not_p**gamma * (not_p - gamma * p * _log_sigmoid(x))


def _target_probability(softmax: Array, target: Array) -> Array:
    """Return the probability of the target class of each row: that of class 0 if the target is negative."""
    if not softmax.size:
        return jnp.ones(target.shape, softmax.dtype)
    return jnp.take_along_axis(softmax, jnp.maximum(target, 0)[:, None], 1)[:, 0]


@vendor.implements("diopiSoftmaxFocalLossMmcv")
def softmax_focal_loss(softmax, target, weight, gamma, alpha):
    """Return −α · (1 − p)^γ · ln p · weight for the probability p of the target class; 0 without a target."""
    _check_rows("softmax", softmax, target)
    p = _target_probability(softmax, target)
    scale = alpha * _row_weights(target, weight, softmax.shape[1])
    return jnp.where(target >= 0, -scale * (1 - p) ** gamma * jnp.maximum(jnp.log(p), LOG_MIN), 0)


@vendor.implements("diopiSoftmaxFocalLossBackwardMmcv")
def softmax_focal_loss_backward(softmax, target, weight, gamma, alpha):
    """Return the gradient of the loss with respect to the logits."""
    _check_rows("softmax", softmax, target)
    p = _target_probability(softmax, target)
    scale = alpha * _row_weights(target, weight, softmax.shape[1])
    decay = gamma * (1 - p) ** (gamma - 1) * p * jnp.maximum(jnp.log(p), LOG_MIN)
    slope = jnp.where(target >= 0, scale * (decay - (1 - p) ** gamma), 0)
    return slope[:, None] * ((target[:, None] == jnp.arange(softmax.shape[1])) - softmax)


def _check_points(xyz1: Array, xyz2: Array) -> None:
    """Raise ValueError unless both sets of points have the shape (B, n, 2), with the same B."""
    for name, points in (("xyz1", xyz1), ("xyz2", xyz2)):
        if points.ndim != 3 or points.shape[0] != xyz1.shape[0] or points.shape[2] != 2:
            raise ValueError(f"{name} has shape {points.shape}, expected (B, n, 2) with the same B for both sets")


def _nearest(points: Array, candidates: Array) -> tuple[Array, Array]:
    """Return the squared distance of each point to the nearest candidate, and its index; zeros without candidates."""
    if not points.size or not candidates.size:
        return jnp.zeros(points.shape[:2], points.dtype), jnp.zeros(points.shape[:2], int)
    distances = sum(jnp.square(points[:, :, None, i] - candidates[:, None, :, i]) for i in range(2))
    assert isinstance(distances, Array)
    return nan_propagating_min(distances, -1), distances.argmin(-1)


@vendor.implements("diopiChamferDistanceMmcv")
def chamfer_distance(xyz1, xyz2):
    """Return the squared distance and index of the nearest point in the opposite set, for both sets."""
    _check_points(xyz1, xyz2)
    (dist1, idx1), (dist2, idx2) = _nearest(xyz1, xyz2), _nearest(xyz2, xyz1)
    return dist1, dist2, idx1, idx2


@vendor.implements("diopiChamferDistanceBackwardMmcv")
def chamfer_distance_backward(grad_xyz1, grad_xyz2, xyz1, xyz2, idx1, idx2, grad_dist1, grad_dist2):
    """Return the gradients of the squared distances by both sets of points; the nearest points are fixed."""
    _check_points(xyz1, xyz2)
    check_shapes(xyz1.shape, grad_xyz1=grad_xyz1)
    check_shapes(xyz2.shape, grad_xyz2=grad_xyz2)
    check_shapes(xyz1.shape[:2], idx1=idx1, grad_dist1=grad_dist1)
    check_shapes(xyz2.shape[:2], idx2=idx2, grad_dist2=grad_dist2)

    def distances(a: Array, b: Array) -> tuple[Array, Array]:
        """Return the squared distances of both sets of points to their nearest points."""

        def squared_distances(points: Array, candidates: Array, nearest: Array) -> Array:
            """Return the squared distance of each point to its nearest candidate."""
            return jnp.square(points - jnp.take_along_axis(candidates, nearest[..., None], 1)).sum(-1)

        return squared_distances(a, b, idx1), squared_distances(b, a, idx2)

    gradients: tuple[Array, Array] = jax.vjp(distances, xyz1, xyz2)[1]((grad_dist1, grad_dist2))
    return gradients
