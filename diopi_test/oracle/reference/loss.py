"""Loss functions and their gradients.

A loss is *reduced* if the losses of all elements are added or averaged (`Reduction`). Without reduction, the result has
the loss of each element.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Sources: A. Graves et al., "Connectionist temporal classification", ICML 2006; T.-Y. Lin et al., "Focal Loss for Dense
Object Detection", 2017; PyTorch for the remaining definitions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from diopi_proto.types import Reduction
from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import PartlySpecified, WithTerms, mark_unspecified, reference
from diopi_test.oracle.reference.sums import coarser_sum_terms, relative_terms, sum_terms

Array = NDArray[Any]


def _reduce(losses: Array, reduction: int, divisor: Any = None, stored: Any = 0.0, *, terms: Any = 0.0) -> WithTerms:
    """Return element losses, or their sum or mean, with terms.

    The sum has terms like any other sum. The errors of the losses, which `terms` and `stored` state, are independent:
    their squares add up.

    Args:
        losses: the loss of each element.
        reduction: a `Reduction`.
        divisor: the divisor of the mean; None for the number of losses.
        stored: the terms of the losses for values that are rounded to the result's type.
        terms: the terms of the losses for values that are rounded to float32 or a finer type.

    Returns:
        The losses, or their sum or mean.
    """
    if reduction == Reduction.none:
        return WithTerms(losses, terms, stored)
    scale = _reduction_factor(reduction, losses.size if divisor is None else divisor)

    def random_walk(element_terms: Any) -> Any:
        """Return √(Σ terms²), the error of a sum of losses with independent errors."""
        return np.sqrt(np.square(element_terms * np.ones(losses.shape)).sum())

    summed = sum_terms(losses, None) + random_walk(terms)
    return WithTerms(losses.sum() * scale, scale * summed, scale * random_walk(stored))


def _reduction_factor(reduction: int, divisor: Any) -> Any:
    """Return the factor of a reduction: 1 / divisor for the mean, else 1."""
    return 1 / np.float64(divisor) if reduction == Reduction.mean else 1.0


def _weight_or_one(weight: Array | None) -> Any:
    """Return the weight, or 1 if there is none."""
    return 1.0 if weight is None else weight


def _unsigned_zeros(weight: Array | None) -> Any:
    """Return terms without errors, as an array of zeros if a weight is 0 and as the number 0 otherwise.

    The product with a weight of 0 may be a zero of either sign. If the terms are an array, the checks accept a zero of
    either sign as a result (`WithTerms.signed`).
    """
    return 0.0 if weight is None or weight.all() else np.zeros(weight.shape)


def _softplus(x: Array) -> Array:
    """Return ln(1 + eˣ), which is −ln σ(−x)."""
    return np.logaddexp(0, x)


# Element by element


@reference("diopiMSELoss")
def mse_loss(input, target, reduction):
    """Return the reduced squares of input − target."""
    return _reduce(np.square(input - target), reduction)


@reference("diopiMSELossBackward")
def mse_loss_backward(grad_output, input, target, reduction):
    """Return 2 · (input − target) · grad_output, divided by the number of losses for the mean."""
    return 2 * (input - target) * _reduction_factor(reduction, input.size) * grad_output


@reference("diopiSmoothL1Loss")
def smooth_l1_loss(input, target, reduction, beta):
    """Return the reduced losses d² / (2β) where d = |input − target| < β, else d − β / 2."""
    d = np.abs(input - target)
    return _reduce(np.where(d < beta, d * d / (2 * np.float64(beta)), d - beta / 2), reduction)


@reference("diopiSmoothL1LossBackward")
def smooth_l1_loss_backward(grad_output, input, target, reduction, beta):
    """Return (input − target) / β limited to ±1, times grad_output, divided by the number of losses for the mean."""
    d = input - target
    slope = np.where(np.abs(d) < beta, d / np.float64(beta), np.sign(d))
    return slope * _reduction_factor(reduction, input.size) * grad_output


@reference("diopiBCELoss")
def bce_loss(input, target, weight, reduction):
    """Return the reduced losses −w · (t ln p + (1 − t) ln(1 − p)), with logarithms of at least −100."""
    log, log_complement = np.maximum(np.log(input), -100), np.maximum(np.log1p(-input), -100)
    return _reduce(_weight_or_one(weight) * -(target * log + (1 - target) * log_complement), reduction)


@reference("diopiBCELossBackward")
def bce_loss_backward(grad_output, input, target, weight, reduction):
    """Return w · (p − t) / max(p (1 − p), 1e-12) · grad_output, divided by the number of losses for the mean."""
    slope = (input - target) / np.maximum(input * (1 - input), 1e-12)
    gradient = _weight_or_one(weight) * slope * _reduction_factor(reduction, input.size) * grad_output
    return WithTerms(gradient, _unsigned_zeros(weight))


@reference("diopiBCEWithLogits")
def bce_with_logits(input, target, weight, pos_weight, reduction):
    """Return the reduced binary cross entropies of logits, with weights of elements and of positive targets."""
    loss = _weight_or_one(pos_weight) * target * _softplus(-input) + (1 - target) * _softplus(input)
    # PyTorch's form is (1 − t)·x + (1 − t + p·t)·ln(1 + e⁻ˣ): where x < 0, (1 − t)·x cancels
    cancelled = np.where(input < 0, np.abs((1 - target) * input), 0)
    reduced = _reduce(_weight_or_one(weight) * loss, reduction, stored=np.abs(_weight_or_one(weight)) * cancelled)
    return _leave_undecided_unspecified(input, target, reduced, reduction)


def _leave_undecided_unspecified(logits: Array, target: Array, losses: WithTerms, reduction: int) -> Any:
    """Return binary cross entropies that are unspecified where the result depends on the formula.

    For some infinite logits, PyTorch's formula computes ∞ − ∞ or 0 · ∞, which is NaN, and other formulas do not.

    Args:
        logits: the logits.
        target: the targets.
        losses: the losses of the elements, or their sum or mean.
        reduction: a `Reduction`.
    """
    undecided = (logits == -np.inf) | ((logits == np.inf) & (target == 1))
    return mark_unspecified(undecided if reduction == Reduction.none else undecided.any(), losses)


@reference("diopiBCEWithLogitsBackward")
def bce_with_logits_backward(grad_output, input, target, weight, pos_weight, reduction):
    """Return the gradient of the logits in `bce_with_logits`."""
    positive = _weight_or_one(pos_weight) * target
    up = (1 - target + positive) * special.expit(input)
    scale = _weight_or_one(weight) * _reduction_factor(reduction, input.size) * grad_output
    return WithTerms((up - positive) * scale, _unsigned_zeros(weight), (np.abs(up) + np.abs(positive)) * np.abs(scale))


def _focal_factors(x: Array, t: Array, alpha: float, gamma: float) -> tuple[Array, Array, Array, Array]:
    """Return the factors of the focal loss for logits x and targets t.

    They are α_t, the probability p_t of the target, and (1 − p_t)^gamma. The last item is the relative error of this
    power, in eps, if 1 − p_t is computed as a difference. α_t is alpha for the target 1 and 1 − alpha for the target 0;
    if alpha is negative, α_t is 1.
    """
    p, not_p = special.expit(x), special.expit(-x)
    p_t, not_p_t = p * t + not_p * (1 - t), not_p * t + p * (1 - t)
    alpha_t = alpha * t + (1 - alpha) * (1 - t) if alpha >= 0 else np.ones(x.shape)
    return alpha_t, p_t, not_p_t**gamma, gamma * p_t / not_p_t


def _binary_cross_entropy(x: Array, t: Array) -> Array:
    """Return −t · ln σ(x) − (1 − t) · ln σ(−x)."""
    return t * _softplus(-x) + (1 - t) * _softplus(x)


@reference("diopiSigmoidFocalLoss")
def sigmoid_focal_loss(inputs, targets, alpha, gamma, reduction):
    """Return the reduced losses α_t · (1 − p_t)^γ · cross entropy (Lin et al., "Focal loss"; see `_focal_factors`)."""
    alpha_t, _, modulation, cancelled = _focal_factors(inputs, targets, alpha, gamma)
    loss = alpha_t * modulation * _binary_cross_entropy(inputs, targets)
    # the terms of `bce_with_logits`, and the cancellation in 1 − p_t
    terms = alpha_t * modulation * np.where(inputs < 0, np.abs((1 - targets) * inputs), 0) + np.abs(loss) * cancelled
    return _leave_undecided_unspecified(inputs, targets, _reduce(loss, reduction, stored=terms), reduction)


@reference("diopiSigmoidFocalLossBackward")
def sigmoid_focal_loss_backward(grad_output, input, target, gamma, alpha, reduction):
    """Return the gradient of the logits in `sigmoid_focal_loss`."""
    alpha_t, _, modulation, cancelled = _focal_factors(input, target, alpha, gamma)
    p, not_p, sign = special.expit(input), special.expit(-input), 2 * target - 1
    # (1 − p_t)^gamma = M: M′ = −gamma·M/(1 − p_t)·p′_t with p′_t = p·(1 − p)·(2t − 1)
    decay = gamma * p * not_p * sign / (not_p * target + p * (1 - target)) * _binary_cross_entropy(input, target)
    scale = alpha_t * modulation * _reduction_factor(reduction, input.size) * grad_output
    terms = p + target + np.abs(decay) + (np.abs(p - target) + np.abs(decay)) * cancelled
    terms += gamma * p * (1 - target) * _binary_cross_entropy(input, target)  # 1 − p in p′ cancels
    # a sum of the factors' gradients: zeros, as for an alpha of 0, have no sign
    return WithTerms((p - target - decay) * scale, np.zeros(input.shape), terms * np.abs(scale))


# Classes


def _classes_last(array: Array) -> Array:
    """Return (N, C, d…) as (N, d…, C), and (C) unchanged."""
    return np.moveaxis(array, min(1, array.ndim - 1), -1)


def _classes_second(array: Array) -> Array:
    """Return (N, d…, C) as (N, C, d…), and (C) unchanged."""
    return np.moveaxis(array, -1, min(1, array.ndim - 1))


def _one_hot(target: Array, classes: int, ignore_index: int) -> Array:
    """Return a mask (*target, C) that is true at the target class; false for an ignored target.

    Raises:
        ValueError: a target is neither a class nor `ignore_index`.
    """
    if (((target < 0) | (target >= classes)) & (target != ignore_index)).any():
        raise ValueError(f"a target is neither one of {classes} classes nor {ignore_index}")
    return (target[..., None] == np.arange(classes)) & (target != ignore_index)[..., None]


@reference("diopiNLLLoss")
def nll_loss(input, target, weight, reduction, ignore_index):
    """Return the reduced losses −w · input at the target class; the mean divides by the sum of weights."""
    return nll_loss_v2(input, target, weight, reduction, ignore_index, out=(ResultOverride(), ResultOverride()))[0]


@reference("diopiNLLLossV2")
def nll_loss_v2(input, target, weight, reduction, ignore_index, *, out):
    """Return the loss and the sum of the weights; the sum is 0 without reduction, except for a single sample."""
    log_probs = _classes_last(input)
    hot = _one_hot(target, log_probs.shape[-1], ignore_index)
    total = (hot * _weight_or_one(weight)).sum()
    losses = np.where(hot, -_weight_or_one(weight) * log_probs, 0.0).sum(-1)
    is_counted = reduction != Reduction.none or input.ndim == 1
    reported = total if is_counted else np.float64(0)
    shape = out[1].shape if out[1] else None
    loss = _reduce(losses, reduction, total)
    if reduction == Reduction.none:  # −0 for a selected element, +0 if an algorithm adds the zeros of other classes
        loss = replace(loss, terms=np.zeros(losses.shape))
    return loss, np.asanyarray(reported, np.float64).reshape(shape or ())


@reference("diopiNLLLossBackward")
def nll_loss_backward(grad_output, input, target, weight, reduction, ignore_index):
    """Return −w · grad_output at the target class, 0 elsewhere; divided by the sum of the weights for the mean.

    Unlike `nll_loss_v2_backward`, the function computes this sum from the weights of the targets.
    """
    weights = _one_hot(target, _classes_last(input).shape[-1], ignore_index) * _weight_or_one(weight)
    gradient = nll_loss_v2_backward(grad_output, input, target, weight, weights.sum(), reduction, ignore_index)
    if reduction != Reduction.mean:
        return gradient
    return WithTerms(gradient, coarser_sum_terms(np.abs(gradient) * relative_terms(weights, None)), signed=True)


@reference("diopiNLLLossV2Backward")
def nll_loss_v2_backward(grad_output, input, target, weight, totalWeight, reduction, ignore_index):
    """Return −w · grad_output at the target class, 0 elsewhere; divided by totalWeight for the mean."""
    hot = _one_hot(target, _classes_last(input).shape[-1], ignore_index)
    scale = _reduction_factor(reduction, np.sum(totalWeight)) * grad_output[..., None]
    return _classes_second(np.where(hot, -_weight_or_one(weight) * scale, 0.0))


def _class_coefficients(
    input: Array, target: Array, weight: Array | None, ignore_index: int, label_smoothing: float
) -> tuple[Array, Any]:
    """Return the coefficients a of the loss −Σ_c a_c · log p_c, and the divisor of the mean.

    Args:
        input: the logits, (C) or (N, C, d…).
        target: the target classes, (N, d…), or the target probabilities, in the shape of `input`.
        weight: the weight of each class; None for weights of 1.
        ignore_index: the target class that does not count.
        label_smoothing: the share of the target that is distributed equally to all classes.

    Returns:
        The coefficients with the classes last, and the sum of the weights of the target classes; for target
        probabilities, the number of losses.
    """
    classes = _classes_last(input).shape[-1]
    if target.dtype.kind == "f":
        certain, is_counted = _classes_last(target), np.ones(_classes_last(target).shape[:-1], bool)
        divisor = is_counted.size
    else:
        certain, is_counted = _one_hot(target, classes, ignore_index), target != ignore_index
        divisor = (certain * _weight_or_one(weight)).sum()
    smoothing = max(label_smoothing, 0.0)
    smoothed = (1 - smoothing) * certain + smoothing / max(classes, 1)
    return np.where(is_counted[..., None], _weight_or_one(weight) * smoothed, 0.0), divisor


@reference("diopiCrossEntropyLoss")
def cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing):
    """Return the reduced cross entropies of logits with target classes or target probabilities."""
    share, divisor = _class_coefficients(input, target, weight, ignore_index, label_smoothing)
    logits = _classes_last(input)
    losses = np.where(share == 0, 0.0, share * -_log_softmax_of_rows(logits))
    # ln p = x − max − ln Σ e^(x − max): x cancels, and the relative error of the sum is the error of its logarithm
    stored = np.where(share == 0, 0.0, share * (np.abs(logits) + 1))
    terms = np.where(share == 0, 0.0, share * _divisor_terms(logits))
    return _reduce(losses.sum(-1), reduction, divisor, stored.sum(-1), terms=terms.sum(-1))


def _log_softmax_of_rows(logits: Array) -> Array:
    """Return the logarithm of the softmax of each row."""
    top = logits.max(-1, keepdims=True, initial=-np.inf)
    shifted = logits - np.where(np.isfinite(top), top, 0.0)
    return np.asanyarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def _softmax_of_rows(logits: Array) -> Array:
    """Return the softmax of each row."""
    e = np.exp(logits - logits.max(-1, keepdims=True, initial=-np.inf))
    return np.asanyarray(e / e.sum(-1, keepdims=True))


def _divisor_terms(logits: Array) -> Array:
    """Return the terms of the divisor of softmax, relative to the divisor, with a last axis of size 1."""
    return relative_terms(np.exp(logits - logits.max(-1, keepdims=True, initial=-np.inf)), -1)


@reference("diopiCrossEntropyLossBackward")
def cross_entropy_backward(grad_output, input, target, weight, reduction, ignore_index, label_smoothing):
    """Return the gradient of the logits: (softmax · Σ a − a) · grad_output, divided by the divisor for the mean.

    `_class_coefficients` returns the coefficients a and the divisor.
    """
    share, divisor = _class_coefficients(input, target, weight, ignore_index, label_smoothing)
    logits = _classes_last(input)
    spread = _softmax_of_rows(logits) * share.sum(-1, keepdims=True)
    # `terms` are those of the divisor of softmax; `stored` are those of the difference, which may cancel
    divided = spread * _divisor_terms(logits)
    scale = np.where(share.any(-1, keepdims=True), _reduction_factor(reduction, divisor) * grad_output[..., None], 0.0)
    value, terms, stored = ((spread - share) * scale, divided * np.abs(scale), (spread + share) * np.abs(scale))
    return WithTerms(*map(_classes_second, (value, terms, stored)))


# Connectionist temporal classification


def _check_lengths(steps: int, targets: Array, input_lengths: Array, target_lengths: Array) -> None:
    """Raise ValueError unless the lengths of each sample fit the number of steps and of labels."""
    if ((input_lengths < 0) | (input_lengths > steps)).any():
        raise ValueError(f"input_lengths are {input_lengths.tolist()}, expected 0 to {steps}")
    max_length = targets.shape[-1]
    if ((target_lengths < 0) | (target_lengths > max_length)).any():
        raise ValueError(f"target_lengths are {target_lengths.tolist()}, expected 0 to {max_length}")
    if targets.ndim == 1 and target_lengths.sum() != max_length:
        raise ValueError(
            f"target_lengths add up to {target_lengths.sum()}, expected {max_length}, the number of labels"
        )


def _extended_targets(targets: Array, lengths: Array, blank: int) -> list[Array]:
    """Return the labels of every sample with a blank before, between and after them.

    Args:
        targets: the labels, (samples, labels), or the labels of all samples one after the other.
        lengths: the number of labels of each sample.
        blank: the class of the blank.
    """
    starts = np.cumsum(lengths) - lengths
    rows = targets if targets.ndim == 2 else [targets[start:] for start in starts]
    extended = [np.full(2 * length + 1, blank) for length in lengths]
    for row, length, labels in zip(rows, lengths, extended, strict=True):
        labels[1::2] = row[:length]
    return extended


def _log_alpha(log_probs: Array, labels: Array, blank: int) -> Array:
    """Return ln α_t(s): the logarithm of the probability of all alignments of steps 0 … t with labels 0 … s.

    Args:
        log_probs: the logarithms of the probabilities of classes at each step of a sample, (T, C).
        labels: the labels with blanks, as `_extended_targets` returns them.
        blank: the class of the blank.

    Returns:
        The logarithms, (T, len(labels)).
    """
    emitted = log_probs[:, labels]
    may_skip = (labels != blank) & (labels != _shift_up(labels, 2, blank))
    start = np.where(np.arange(len(labels)) < 2, 0.0, -np.inf)
    alpha: list[Array] = []
    for step in emitted:
        if alpha:
            skipped = np.where(may_skip, _shift_up(alpha[-1], 2, -np.inf), -np.inf)
            start = np.logaddexp.reduce([alpha[-1], _shift_up(alpha[-1], 1, -np.inf), skipped])
        alpha.append(start + step)
    return np.array(alpha).reshape(emitted.shape)


def _shift_up(values: Array, places: int, fill: Any) -> Array:
    """Return a vector shifted to higher indices by `places`; `fill` is at the first indices."""
    return np.concatenate([np.full(places, fill), values])[: len(values)]


def _minus_log_likelihood(alpha: Array) -> Any:
    """Return −ln of the sum of the last two probabilities in ln α.

    For a sample without steps, the result is 0 if the sample has no labels, and ∞ otherwise.
    """
    if len(alpha) == 0:
        return 0.0 if alpha.shape[1] == 1 else np.inf
    return -np.logaddexp.reduce(alpha[-1, -2:])


@reference("diopiCTCLoss")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity, *, out):
    """Return the reduced losses, the loss of each sample, and ln α (Graves et al., 2006)."""
    steps, samples, _ = log_probs.shape
    _check_lengths(steps, targets, input_lengths, target_lengths)
    alpha = np.full_like(log_probs, -np.inf, shape=(samples, steps, 2 * max(target_lengths) + 1))
    specified = np.zeros(alpha.shape, bool)
    losses = np.zeros_like(log_probs, shape=samples)
    for n, labels in enumerate(_extended_targets(targets, target_lengths, blank)):
        part = np.s_[n, : input_lengths[n], : len(labels)]
        alpha[part] = _log_alpha(log_probs[: input_lengths[n], n], labels, blank)
        specified[part] = True
        losses[n] = _minus_log_likelihood(alpha[part])
    # −ln 1 of a certain alignment is −0, or the rounding error of a sum
    terms = np.where(losses == 0, 1.0, _path_terms(losses, input_lengths))
    counted = np.where(np.isinf(losses), 0.0, losses) if zero_infinity else losses
    return (
        _reduce_ctc(WithTerms(counted, terms), target_lengths, reduction, out[0]),
        WithTerms(losses, terms),
        PartlySpecified(WithTerms(alpha, _path_terms(alpha, np.arange(1, steps + 1)[:, None])), specified),
    )


def _path_terms(alpha: Array, steps: Array) -> Array:
    """Return the terms of logarithms α that are rounded at each of t steps, |α| · √(t / 36).

    The logarithm grows linearly with the steps. Its rounding error at step i has the variance (|α| · i / t)² / 12, and
    these variances add up to |α|² · t / 36.
    """
    return np.where(np.isfinite(alpha), np.abs(alpha), 0.0) * np.sqrt(steps / 36)


def _reduce_ctc(losses: WithTerms, target_lengths: Array, reduction: int, out: ResultOverride) -> WithTerms:
    """Return the losses of samples, or their sum or mean with the terms of independent errors.

    For the mean, each loss is first divided by the length of its target.

    Args:
        losses: the loss of each sample.
        target_lengths: the number of labels of each sample.
        reduction: a `Reduction`.
        out: the properties of the result that the caller allocated.
    """
    if reduction == Reduction.none:
        return losses
    lengths = np.maximum(target_lengths, 1) if reduction == Reduction.mean else 1
    total = (losses.value / lengths).sum(), np.sqrt(np.square(losses.terms / lengths).sum())
    factor = _reduction_factor(reduction, len(losses.value))
    return WithTerms(*(np.reshape(part * factor, out.shape or ()) for part in total))


@reference("diopiCTCLossBackward")
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
    """Return the gradient of log_probs: (probability − posterior probability) · grad_output.

    For the mean, the gradient of a sample is divided by the number of samples and by the length of the target. If
    `zero_infinity` is true, the gradient of a sample with an infinite loss is 0.
    """
    gradient, terms = np.zeros_like(log_probs), np.zeros(log_probs.shape)
    steps, samples, _ = log_probs.shape
    _check_lengths(steps, targets, input_lengths, target_lengths)
    outer = np.broadcast_to(grad_output, samples)
    for n, labels in enumerate(_extended_targets(targets, target_lengths, blank)):
        if np.isinf(neg_log_likelihood[n]) and zero_infinity:
            continue
        time = slice(input_lengths[n])
        scale = _reduction_factor(reduction, samples * max(target_lengths[n], 1)) * outer[n]
        probability = np.exp(log_probs[time, n])
        posterior = _posterior(
            log_probs[time, n], labels, log_alpha[n, time, : len(labels)], neg_log_likelihood[n], blank
        )
        gradient[time, n] = (probability - posterior.value) * scale
        terms[time, n] = (probability + posterior.terms) * np.abs(scale)
    return WithTerms(gradient, terms)


def _posterior(log_probs: Array, labels: Array, log_alpha: Array, neg_log_likelihood: float, blank: int) -> WithTerms:
    """Return the posterior probability of each class at each step of a sample, (T, C), with terms.

    The posterior is NaN if no alignment is possible. The terms contain the errors of two logarithms, because an error
    of a logarithm is a relative error of the probability. The first is ln β, which is accumulated from the last step to
    the first. The second is ln α + ln β, which is rounded twice before the exponential function is applied.
    """
    if np.isinf(neg_log_likelihood):
        return WithTerms(np.full(log_probs.shape, np.nan), np.zeros(log_probs.shape))
    log_beta = _log_alpha(log_probs[::-1], labels[::-1], blank)[::-1, ::-1]
    remaining = np.arange(len(log_probs), 0, -1)
    posterior, terms = np.zeros_like(log_probs), np.zeros(log_probs.shape)
    for s, label in enumerate(labels):
        log_product = log_alpha[:, s] + log_beta[:, s]
        share = np.exp(log_product - log_probs[:, label] + neg_log_likelihood)
        posterior[:, label] += share
        error = _path_terms(log_beta[:, s], remaining) + np.where(
            np.isfinite(log_product), np.abs(log_product), 0
        ) * np.sqrt(2 / 12)
        terms[:, label] += share * (1 + error)
    return WithTerms(posterior, terms)
