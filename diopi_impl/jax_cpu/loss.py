"""Loss functions and their gradients.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and element
types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from diopi_impl.functional import Adapted
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.activation import stable_log_softmax
from diopi_impl.jax_cpu.jit import adapt_by_compiling
from diopi_impl.jax_cpu.pointwise import log1p
from diopi_impl.jax_cpu.sizes import check_shapes, check_size
from diopi_impl.specs import OutSpec
from diopi_proto.prototype import Prototype
from diopi_proto.types import Reduction


def _reduce(losses: Array, reduction: Reduction, divisor: Any = None) -> Array:
    """Return the element losses, or their sum or mean; the mean divides by `divisor`, by default their number."""
    if reduction == Reduction.none:
        return losses
    if reduction not in (Reduction.mean, Reduction.sum):
        raise ValueError(f"reduction is {int(reduction)}, expected none (0), mean (1) or sum (2)")
    # XLA sums one axis in parts; for some shapes of several axes it sums sequentially, 10 ulp off for 3,072 elements
    total = lax.optimization_barrier(losses.ravel()).sum()
    return total / (losses.size if divisor is None else divisor) if reduction == Reduction.mean else total


def _vjp(loss: Callable[[Array], Array], input: Array, grad_output: Array) -> Array:
    """Return the gradient of `input`, from the gradient `grad_output` of the result of `loss`."""
    result, pull_back = jax.vjp(loss, input)
    gradient: Array = pull_back(grad_output.astype(result.dtype))[0]
    return gradient


def _element_gradient(grad_output: Array, input: Array, reduction: Reduction) -> Array:
    """Return the gradients of the element losses, in the shape of input, from the gradient of the reduced loss."""
    return _vjp(lambda losses: _reduce(losses, reduction), jnp.zeros(input.shape, grad_output.dtype), grad_output)


def _weight_or_one(weight: Array | None) -> Any:
    """Return the weight, or 1 if there is none."""
    return 1 if weight is None else weight


def _broadcast_weight(input: Array, weight: Array | None) -> Any:
    """Return weights broadcast to input and promoted to the common type; 1 for NULL."""
    if weight is None:
        return 1
    return jnp.broadcast_to(weight, input.shape).astype(jnp.result_type(weight, input))


# Element by element


@vendor.implements("diopiMSELoss")
def mse_loss(input, target, reduction):
    """Return the reduced squares of input − target."""
    return _reduce(jnp.square(input - target), reduction)


def _check_beta(beta: float) -> None:
    """Raise ValueError if beta is negative."""
    if beta < 0:
        raise ValueError(f"beta is {beta}, expected at least 0")


@vendor.implements("diopiSmoothL1Loss")
def smooth_l1_loss(input, target, reduction, beta):
    """Return the reduced losses d² / (2β) where d = |input − target| < β, else d − β / 2."""
    _check_beta(beta)
    d = jnp.abs(input - target)
    return _reduce(jnp.where(d < beta, d * d / (2 * (beta or 1)), d - beta / 2), reduction)


@vendor.implements("diopiSmoothL1LossBackward")
def smooth_l1_loss_backward(grad_output, input, target, reduction, beta):
    """Return (input − target) / β limited to ±1, times the gradients of the element losses."""
    _check_beta(beta)
    d = input - target
    return jnp.where(jnp.abs(d) < beta, d / (beta or 1), jnp.sign(d)) * _element_gradient(grad_output, input, reduction)


@vendor.implements("diopiBCELoss")
def bce_loss(input, target, weight, reduction):
    """Return the reduced losses −w · (t ln p + (1 − t) ln(1 − p)), with logarithms of at least −100."""
    check_shapes(input.shape, target=target)
    log, log_complement = jnp.maximum(jnp.log(input), -100), jnp.maximum(log1p(-input), -100)
    return _reduce(-_broadcast_weight(input, weight) * (target * log + (1 - target) * log_complement), reduction)


@vendor.implements("diopiBCELossBackward")
def bce_loss_backward(grad_output, input, target, weight, reduction):
    """Return w · (p − t) / max(p (1 − p), 1e-12), times the gradients of the element losses."""
    check_shapes(input.shape, target=target)
    slope = (input - target) / jnp.maximum(input * (1 - input), 1e-12)
    return _broadcast_weight(input, weight) * slope * _element_gradient(grad_output, input, reduction)


def _binary_cross_entropy(logit: Array, target: Array, pos_weight: Any = 1) -> Array:
    """Return −pos_weight · t · ln σ(x) − (1 − t) · ln σ(−x)."""
    return pos_weight * target * jnp.logaddexp(0, -logit) + (1 - target) * jnp.logaddexp(0, logit)


@vendor.implements("diopiBCEWithLogits")
def bce_with_logits(input, target, weight, pos_weight, reduction):
    """Return the reduced binary cross entropies of logits, with weights of elements and of positive targets."""
    check_shapes(input.shape, target=target)
    return _reduce(
        _broadcast_weight(input, weight) * _binary_cross_entropy(input, target, _broadcast_weight(input, pos_weight)),
        reduction,
    )


def _focal_factor(t: Array, not_p_t: Array, alpha: float, gamma: float) -> Array:
    """Return α_t · not_p_t^gamma, where `not_p_t` is 1 − p_t; α_t is 1 if alpha is negative."""
    return (alpha * t + (1 - alpha) * (1 - t) if alpha >= 0 else 1) * not_p_t**gamma


@vendor.implements("diopiSigmoidFocalLoss")
def sigmoid_focal_loss(inputs, targets, alpha, gamma, reduction):
    """Return the reduced losses α_t · (1 − p_t)^γ · cross entropy (Lin et al., "Focal loss")."""
    check_shapes(inputs.shape, targets=targets)
    not_p_t = jax.nn.sigmoid(-inputs) * targets + jax.nn.sigmoid(inputs) * (1 - targets)
    return _reduce(_focal_factor(targets, not_p_t, alpha, gamma) * _binary_cross_entropy(inputs, targets), reduction)


@vendor.implements("diopiSigmoidFocalLossBackward")
def sigmoid_focal_loss_backward(grad_output, input, target, gamma, alpha, reduction):
    """Return the gradient of `sigmoid_focal_loss` with respect to the logits `input`."""
    check_shapes(input.shape, target=target)
    # JAX's derivative of the sigmoid, σ·(1 − σ), is 0 where σ rounds to 1
    p, not_p = jax.nn.sigmoid(input), jax.nn.sigmoid(-input)
    not_p_t = not_p * target + p * (1 - target)
    decay = gamma * p * not_p / not_p_t * (2 * target - 1) * _binary_cross_entropy(input, target)
    slope = p * (1 - target) - not_p * target - decay
    return _focal_factor(target, not_p_t, alpha, gamma) * slope * _element_gradient(grad_output, input, reduction)


# Classes


def _classes_last(array: Array) -> Array:
    """Return an array (N, C, d…) as (N, d…, C); return (C) unchanged."""
    return jnp.moveaxis(array, min(1, array.ndim - 1), -1)


def _one_hot(target: Array, classes: int, ignore_index: int) -> Array:
    """Return (*target, C): true at the target class, false everywhere if the class is ignored."""
    return (target[..., None] == jnp.arange(classes)) & (target != ignore_index)[..., None]


def _checked_classes(input: Array, target: Array, weight: Array | None) -> Array:
    """Return the target: class indices as int64, or probabilities unchanged. Raise ValueError if shapes do not fit."""
    *outer, classes = jnp.shape(_classes_last(input))
    check_shapes((classes,), weight=weight)
    if jnp.issubdtype(target.dtype, jnp.floating):
        check_shapes(input.shape, target=target)
        return target
    check_shapes(outer, target=target)
    return target.astype(jnp.int64)


@vendor.implements("diopiNLLLossV2")
def nll_loss_v2(input, target, weight, reduction, ignore_index):
    """Return the loss of `nll_loss` and the sum of the weights of the targets.

    The sum is 0 without reduction, except for a single sample.
    """
    target = _checked_classes(input, target, weight)
    axis = min(1, input.ndim - 1)
    counts = (target != ignore_index) & (target >= 0) & (target < input.shape[axis])
    if not input.shape[axis]:  # no target counts, and XLA can't gather from an empty axis
        input, weight = jnp.zeros_like(jnp.expand_dims(target, axis), input.dtype), None
    weights = jnp.where(counts, 1 if weight is None else weight.at[target].get(mode="fill", fill_value=0), 0)
    log_probs = jnp.take_along_axis(input, jnp.expand_dims(target, axis), axis, mode="fill", fill_value=0)
    losses = jnp.where(counts, -weights * log_probs.squeeze(axis), 0)
    total = weights.sum().astype(input.dtype)
    is_counted = reduction != Reduction.none or input.ndim == 1
    return _reduce(losses, reduction, total), total if is_counted else jnp.zeros_like(total)


@vendor.implements("diopiNLLLoss")
def nll_loss(input, target, weight, reduction, ignore_index):
    """Return the reduced losses −w · input at the target class; the mean divides by the sum of the weights w."""
    return nll_loss_v2(input, target, weight, reduction, ignore_index)[0]


@vendor.implements("diopiNLLLossV2Backward")
def nll_loss_v2_backward(grad_output, input, target, weight, totalWeight, reduction, ignore_index):
    """Return −w · grad_output at the target class, 0 elsewhere; divided by totalWeight for the mean."""
    target = _checked_classes(input, target, weight)
    check_size(1, totalWeight=totalWeight)
    check_shapes(target.shape if reduction == Reduction.none else (), grad_output=grad_output)
    scale = grad_output / totalWeight.reshape(()) if reduction == Reduction.mean else grad_output
    axis = min(1, input.ndim - 1)
    hot = _one_hot(target, input.shape[axis], ignore_index)
    return jnp.moveaxis(jnp.where(hot, -_weight_or_one(weight) * scale[..., None], 0), -1, axis)


def _class_coefficients(
    input: Array, target: Array, weight: Array | None, ignore_index: int, label_smoothing: float
) -> tuple[Array, Any]:
    """Return the coefficients a of the loss −Σ_c a_c · log p_c, classes last, and the divisor of the mean.

    Args:
        input: The logits, with the classes in axis 1.
        target: The class of each element, or the probabilities of all classes in the shape of `input`.
        weight: The weight of each class; None for 1.
        ignore_index: The class whose elements do not count.
        label_smoothing: The share of the target that is distributed evenly over all classes.
    """
    target = _checked_classes(input, target, weight)
    *outer, classes = jnp.shape(_classes_last(input))
    if jnp.issubdtype(target.dtype, jnp.floating):
        certain, is_counted = _classes_last(target), jnp.array(True)
        divisor: Any = math.prod(outer)
    else:
        certain, is_counted = _one_hot(target, classes, ignore_index), (target != ignore_index)[..., None]
        divisor = jnp.where(certain, _weight_or_one(weight), 0).sum()
    smoothing = max(label_smoothing, 0.0)
    smoothed = (1 - smoothing) * certain.astype(input.dtype) + smoothing / max(classes, 1)
    return jnp.where(is_counted, _weight_or_one(weight) * smoothed, 0), divisor


@vendor.implements("diopiCrossEntropyLoss")
def cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing):
    """Return the reduced cross entropies of logits with target classes or target probabilities."""
    if label_smoothing > 1:
        raise ValueError(f"label_smoothing is {label_smoothing}, expected at most 1")
    weights, divisor = _class_coefficients(input, target, weight, ignore_index, label_smoothing)
    neg_log_probs = -stable_log_softmax(_classes_last(input), -1)
    return _reduce(jnp.where(weights == 0, 0, weights * neg_log_probs).sum(-1), reduction, divisor)


# Connectionist temporal classification


def _extended_targets(targets: Array, lengths: Array, longest: int, blank: int) -> tuple[Array, Array]:
    """Return the labels with a blank before, between and after them (extended labels), and their numbers.

    Args:
        targets: the labels, [samples, …] or packed in one axis.
        lengths: the number of labels of each sample.
        longest: the largest of these numbers.
        blank: the class of the blank.

    Returns:
        The extended labels, [samples, 2 · longest + 1], padded with blanks, and 2 · lengths + 1.
    """
    positions = jnp.arange(longest)
    if targets.ndim == 1:
        starts = jnp.cumsum(lengths) - lengths
        labels = jnp.take(targets, starts[:, None] + positions, mode="clip")
    else:
        labels = targets[:, :longest]
    labels = jnp.where(positions < lengths[:, None], labels, blank)
    extended = jnp.full((len(lengths), 2 * longest + 1), blank, labels.dtype)
    return extended.at[:, 1::2].set(labels), 2 * lengths + 1


def _log_alpha(emitted: Array, labels: Array, blank: int) -> Array:
    """Return ln α_t(s), (T, N, S), from ln p_t(label s), `emitted`, (T, N, S), and the extended labels, (N, S)."""

    def shift(values: Array, places: int, fill: Any) -> Array:
        """Return `values` shifted to the right by `places`, with `fill` in front."""
        padding = jnp.full((len(values), places), fill, values.dtype)
        return jnp.concatenate([padding, values], 1)[:, : values.shape[1]]

    may_skip = (labels != blank) & (labels != shift(labels, 2, blank))

    def step(alpha: Array, emission: Array) -> tuple[Array, Array]:
        """Compute ln α of the next step."""
        skipped = jnp.where(may_skip, shift(alpha, 2, -jnp.inf), -jnp.inf)
        alpha = jnp.logaddexp(jnp.logaddexp(alpha, shift(alpha, 1, -jnp.inf)), skipped) + emission
        return alpha, alpha

    begin = jnp.where(jnp.arange(labels.shape[1]) == 0, 0.0, -jnp.inf).astype(emitted.dtype)
    # an alignment starts at the leading blank, so that after the first step it is at s = 0 or 1, never at 2
    return lax.scan(step, jnp.broadcast_to(begin, labels.shape), emitted)[1]


def _emissions(log_probs: Array, labels: Array) -> Array:
    """Return the log-probability of each extended label at each step: (T, N, S)."""
    return jnp.take_along_axis(log_probs, jnp.broadcast_to(labels, (len(log_probs), *labels.shape)), 2)


def _check_alignment(arguments: Mapping[str, Any], alpha: Sequence[int]) -> None:
    """Raise ValueError unless blank is a class and lengths and shapes fit; `alpha` is the shape of log_alpha."""
    (steps, samples, classes), targets = arguments["log_probs"].shape, arguments["targets"]
    if not 0 <= arguments["blank"] < classes:
        raise ValueError(f"blank is {arguments['blank']}, expected one of {classes} classes")
    lengths: NDArray[np.int64] = arguments["target_lengths"]
    room = targets.shape[-1]
    _check_lengths("input_lengths", arguments["input_lengths"], samples, steps)
    _check_lengths("target_lengths", lengths, samples, room)
    longest = int(lengths.max(initial=0))
    if lengths.sum() != room if targets.ndim == 1 else targets.shape != (samples, room):
        raise ValueError(f"targets have shape {targets.shape}, which target_lengths {lengths} do not fit")
    if tuple(alpha) != (samples, steps, 2 * longest + 1):
        raise ValueError(f"log_alpha has shape {tuple(alpha)}, expected {(samples, steps, 2 * longest + 1)}")


def _check_lengths(name: str, lengths: NDArray[np.int64], samples: int, limit: int) -> None:
    """Raise ValueError unless there is a length per sample, from 0 to `limit`."""
    if lengths.shape != (samples,):
        raise ValueError(f"{name} have shape {lengths.shape}, expected ({samples},)")
    invalid = lengths[(lengths < 0) | (lengths > limit)]
    if invalid.size:
        raise ValueError(f"{name} contain {invalid[0]}, expected lengths from 0 to {limit}")


def _check_alignment_on_host(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """Return the adapted form of a function of CTC whose lengths are checked on the host."""
    run = adapt_by_compiling(prototype, function)

    def check_and_call(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Check the lengths, then call the implementation."""
        named_arguments = dict(zip((p.name for p in prototype.arguments), arguments, strict=True))
        alpha: Any = named_arguments["log_alpha"] if "log_alpha" in named_arguments else out[2]
        _check_alignment(named_arguments, alpha.shape)
        return run(arguments, out)

    return check_and_call


@vendor.implements("diopiCTCLoss", adapt=_check_alignment_on_host)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity, *, out):
    """Return the reduced losses, the loss of each sample, and ln α (Graves et al., 2006)."""
    longest = (out[2].shape[2] - 1) // 2
    labels, lengths = _extended_targets(targets, target_lengths, longest, blank)
    log_alpha = _log_alpha(_emissions(log_probs, labels), labels, blank).swapaxes(0, 1)
    losses = _minus_log_likelihood(log_alpha, input_lengths, lengths)
    counted = jnp.where(jnp.isinf(losses), 0, losses) if zero_infinity else losses
    if reduction == Reduction.mean:
        counted = counted / jnp.maximum(target_lengths, 1)
    return _reduce(counted.astype(losses.dtype), reduction), losses, log_alpha


def _minus_log_likelihood(log_alpha: Array, input_lengths: Array, lengths: Array) -> Array:
    """Return the loss of each sample: −ln (α(final blank) + α(last label)) at the sample's last step."""
    last = jnp.take_along_axis(log_alpha, jnp.maximum(input_lengths - 1, 0)[:, None, None], 1)[:, 0]
    ends = [jnp.take_along_axis(last, jnp.maximum(lengths - back, 0)[:, None], 1)[:, 0] for back in (1, 2)]
    before_blank = jnp.where(lengths > 1, ends[1], -jnp.inf)
    without_steps = jnp.where(lengths == 1, 0, jnp.inf)
    return jnp.where(input_lengths == 0, without_steps, -jnp.logaddexp(ends[0], before_blank))


def _reverse_prefix(array: Array, lengths: Array, axis: int) -> Array:
    """Return `array` with the first `lengths[n]` entries along `axis` reversed, for each sample n (axis 1)."""
    shape = [1] * array.ndim
    shape[1], shape[axis] = array.shape[1], array.shape[axis]
    order = (lengths[:, None] - 1 - jnp.arange(array.shape[axis])) % array.shape[axis]
    order = (order if axis > 1 else order.T).reshape(shape)
    return jnp.take_along_axis(array, jnp.broadcast_to(order, array.shape), axis)


@vendor.implements("diopiCTCLossBackward", adapt=_check_alignment_on_host)
def ctc_loss_backward(
    grad_output,
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    neg_log_likelihood,
    log_alpha,
    blank,
    reduction,
    zero_infinity,
):
    """Return the gradient of log_probs: (probability − posterior probability) · grad_output."""
    steps, samples, classes = log_probs.shape
    check_shapes((samples,), neg_log_likelihood=neg_log_likelihood)
    check_size(samples if reduction == Reduction.none else 1, grad_output=grad_output)
    labels, lengths = _extended_targets(targets, target_lengths, (log_alpha.shape[2] - 1) // 2, blank)
    emitted = _emissions(log_probs, labels)
    log_beta = _log_beta(emitted, labels, input_lengths, lengths, blank)
    joint = log_alpha.swapaxes(0, 1) + log_beta - emitted + neg_log_likelihood[:, None]
    inside = jnp.arange(labels.shape[1]) < lengths[:, None]
    share = jnp.where(inside, jnp.exp(joint), 0)
    posterior = (share[..., None] * (labels[..., None] == jnp.arange(classes))).sum(2)
    scale = jnp.broadcast_to(grad_output, (samples,))
    if reduction == Reduction.mean:
        scale = scale / (samples * jnp.maximum(target_lengths, 1)).astype(scale.dtype)
    infinite = jnp.isinf(neg_log_likelihood)[:, None]
    gradient = jnp.where(infinite, 0 if zero_infinity else jnp.nan, (jnp.exp(log_probs) - posterior) * scale[:, None])
    return jnp.where((jnp.arange(steps)[:, None] < input_lengths)[..., None], gradient, 0)


def _log_beta(emitted: Array, labels: Array, input_lengths: Array, lengths: Array, blank: int) -> Array:
    """Return ln β_t(s), which is ln α_t(s) for reversed steps and labels."""
    backwards = _reverse_prefix(_reverse_prefix(emitted, input_lengths, 0), lengths, 2)
    labels_backwards = _reverse_prefix(labels[None], lengths, 2)[0]
    log_beta = _log_alpha(backwards, labels_backwards, blank)
    return _reverse_prefix(_reverse_prefix(log_beta, input_lengths, 0), lengths, 2)
