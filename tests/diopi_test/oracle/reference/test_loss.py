"""The references of the losses: gradients against finite differences, values against their definitions."""

import itertools
from typing import Any

import numpy as np
import pytest
from references import Array, call, difference, raw
from scipy import special

from diopi_proto.types import Reduction
from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import find_reference

REDUCTIONS = [Reduction.none, Reduction.mean, Reduction.sum]
OUT = (ResultOverride(),) * 3

RNG = np.random.default_rng(3)
PROBABILITIES = RNG.uniform(0.1, 0.9, (4, 5))
TARGETS = RNG.uniform(0, 1, (4, 5))
LOGITS = RNG.normal(0, 2, (4, 5))
ROW, COLUMN = RNG.uniform(0.3, 2, 5), RNG.uniform(0.3, 2, (4, 1))
FAR_APART = TARGETS + RNG.choice([-1.7, -0.6, 0.2, 0.9, 1.4], (4, 5))

ELEMENTWISE = {
    "MSELoss": (LOGITS, [TARGETS], []),
    "SmoothL1Loss-1": (FAR_APART, [TARGETS], [1.0]),
    "SmoothL1Loss-0.4": (FAR_APART, [TARGETS], [0.4]),
    "SmoothL1Loss-0": (FAR_APART, [TARGETS], [0.0]),
    "BCELoss": (PROBABILITIES, [TARGETS, None], []),
    "BCELoss-weight": (PROBABILITIES, [TARGETS, ROW], []),
    "BCEWithLogits": (LOGITS, [TARGETS, None, None], []),
    "BCEWithLogits-weights": (LOGITS, [TARGETS, COLUMN, ROW], []),
}


def grad_output(shape: tuple[int, ...]) -> Array:
    return np.asarray(np.random.default_rng(5).normal(size=shape))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("case", ELEMENTWISE)
def test_gradients_of_element_losses_match_differences(case: str, reduction: Reduction) -> None:
    name = "diopi" + case.split("-")[0]
    x, before, after = ELEMENTWISE[case]

    def loss(x: Array) -> Any:
        return call(name, x, *before, reduction, *after)

    grad = grad_output(loss(x).shape)
    actual = call(f"{name}Backward", grad, x, *before, reduction, *after)
    np.testing.assert_allclose(actual, difference(loss, x, grad), atol=1e-7)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("alpha", "gamma"), [(0.25, 2.0), (-1.0, 1.5), (0.7, 0.0)])
@pytest.mark.parametrize("targets", [TARGETS, TARGETS.round()], ids=["soft", "hard"])
def test_focal_loss_gradient_matches_differences(
    targets: Array, alpha: float, gamma: float, reduction: Reduction
) -> None:
    def loss(x: Array) -> Any:
        return call("diopiSigmoidFocalLoss", x, targets, alpha, gamma, reduction)

    grad = grad_output(loss(LOGITS).shape)
    actual = call("diopiSigmoidFocalLossBackward", grad, LOGITS, targets, gamma, alpha, reduction)
    np.testing.assert_allclose(actual, difference(loss, LOGITS, grad), atol=1e-7)


def test_focal_loss_with_gamma_0_is_binary_cross_entropy() -> None:
    focal = call("diopiSigmoidFocalLoss", LOGITS, TARGETS, -1.0, 0.0, Reduction.none)
    np.testing.assert_allclose(focal, call("diopiBCEWithLogits", LOGITS, TARGETS, None, None, Reduction.none))


def test_bce_with_logits_equals_bce_of_probabilities() -> None:
    of_logits = call("diopiBCEWithLogits", LOGITS, TARGETS, ROW, None, Reduction.sum)
    of_probabilities = call("diopiBCELoss", special.expit(LOGITS), TARGETS, ROW, Reduction.sum)
    np.testing.assert_allclose(of_logits, of_probabilities)


def test_bce_is_limited_to_100() -> None:
    actual = call("diopiBCELoss", np.array([0.0, 1.0]), np.array([1.0, 0.25]), None, Reduction.none)
    assert actual.tolist() == [100, 75]


SHAPES = [(4, 3), (3,), (2, 3, 2, 2)]
WEIGHT = np.array([0.5, 2.0, 1.25])


def class_data(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Logits, and classes of which some are −1 and some 1."""
    rng = np.random.default_rng(11)
    outer = shape[:1] * (len(shape) > 1) + shape[2:]
    return rng.normal(size=shape), np.resize([0, 1, -1, 2], outer)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("weight", "ignored"), list(itertools.product([None, WEIGHT], [-1, 1])))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_of_class_losses_match_differences(
    shape: tuple[int, ...], weight: Array | None, ignored: int, reduction: Reduction
) -> None:
    x, target = class_data(shape)
    target = np.where((target < 0) & (ignored != -1), 2, target)
    for name, more in (("diopiCrossEntropyLoss", [0.0]), ("diopiCrossEntropyLoss", [0.3]), ("diopiNLLLoss", [])):

        def loss(x: Array, name: str = name, more: list[Any] = more) -> Any:
            return call(name, x, target, weight, reduction, ignored, *more)

        grad = grad_output(loss(x).shape)
        actual = call(f"{name}Backward", grad, x, target, weight, reduction, ignored, *more)
        np.testing.assert_allclose(actual, difference(loss, x, grad), atol=1e-8)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy_gradient_for_probabilities_matches_differences(
    shape: tuple[int, ...], smoothing: float, reduction: Reduction
) -> None:
    x, _ = class_data(shape)
    target = special.softmax(np.random.default_rng(1).normal(size=shape), min(1, len(shape) - 1))

    def loss(x: Array) -> Any:
        return call("diopiCrossEntropyLoss", x, target, WEIGHT, reduction, -100, smoothing)

    grad = grad_output(loss(x).shape)
    actual = call("diopiCrossEntropyLossBackward", grad, x, target, WEIGHT, reduction, -100, smoothing)
    np.testing.assert_allclose(actual, difference(loss, x, grad), atol=1e-8)


def test_class_target_equals_a_one_hot_target() -> None:
    x, target = LOGITS, np.array([4, 0, 2, 2])
    for smoothing in (0.0, 0.4):
        of_classes = call("diopiCrossEntropyLoss", x, target, None, Reduction.mean, -100, smoothing)
        certain = np.eye(5)[target]
        of_certainty = call("diopiCrossEntropyLoss", x, certain, None, Reduction.mean, -100, smoothing)
        np.testing.assert_allclose(of_classes, of_certainty)


@pytest.mark.parametrize("smoothing", [-0.5, -2.0])
def test_negative_label_smoothing_is_ignored(smoothing: float) -> None:
    logits, probabilities = np.array([[0.5, -1.0, 2.0]]), np.array([[0.25, 0.25, 0.5]])
    for target in (np.array([2]), probabilities):
        plain, smooth = (
            call("diopiCrossEntropyLoss", logits, target, None, Reduction.sum, -100, epsilon)
            for epsilon in (0.0, smoothing)
        )
        np.testing.assert_array_equal(plain, smooth)


def test_mean_divides_by_the_weights_of_counted_targets() -> None:
    log_probs, target = np.log([[0.5, 0.25, 0.25], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]), np.array([0, 1, 2])
    actual, total = call("diopiNLLLossV2", log_probs, target, WEIGHT, Reduction.mean, 1, out=OUT)
    assert total == WEIGHT[0] + WEIGHT[2]
    assert actual == pytest.approx(-(WEIGHT[0] * np.log(0.5) + WEIGHT[2] * np.log(0.6)) / total)
    assert np.isnan(call("diopiNLLLoss", log_probs[:1], target[1:2], None, Reduction.mean, 1))


def test_backward_divides_by_the_total_weight_argument() -> None:
    x, target = class_data((4, 3))
    divided = call("diopiNLLLossV2Backward", np.array(1.0), x, target, WEIGHT, np.array([8.0]), Reduction.mean, -1)
    summed = call("diopiNLLLossBackward", np.array(1.0), x, target, WEIGHT, Reduction.sum, -1)
    np.testing.assert_allclose(8 * divided, summed)


def all_alignments(log_probs: Array, target: list[int], blank: int) -> float:
    """Minus the log of the probability of `target`, every path through the classes taken in turn."""
    total = 0.0
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        without_repeats = [label for label, _ in itertools.groupby(path)]
        if [label for label in without_repeats if label != blank] == target:
            total += np.exp(log_probs[np.arange(len(path)), path].sum())
    return float(-np.log(total)) if total else np.inf


CTC_TARGETS = [[1, 1], [2, 0], [], [1, 1, 1]]
"""For blank 3; the last does not fit into four steps."""


def ctc_data() -> tuple[Array, list[Any]]:
    """Logits of four samples, and the remaining arguments up to the reduction."""
    table = np.array([[*target, *[2] * (4 - len(target))] for target in CTC_TARGETS])
    lengths = np.array([len(target) for target in CTC_TARGETS])
    return np.random.default_rng(2).normal(size=(5, 4, 4)), [table, np.array([5, 4, 3, 4]), lengths]


def test_ctc_sums_over_all_alignments() -> None:
    logits, (table, steps, lengths) = ctc_data()
    log_probs = special.log_softmax(logits, -1)
    out, losses, _ = call("diopiCTCLoss", log_probs, table, steps, lengths, 3, Reduction.none, False, out=OUT)
    expected = [all_alignments(log_probs[: steps[n], n], CTC_TARGETS[n], 3) for n in range(4)]
    np.testing.assert_allclose(losses, expected)
    np.testing.assert_allclose(out, expected)
    joined = np.concatenate([np.array(target, int) for target in CTC_TARGETS])
    for reduction, zeroed in ((Reduction.mean, np.mean), (Reduction.sum, np.sum)):
        divisors = np.maximum(lengths, 1) if reduction == Reduction.mean else np.ones(4)
        total = call("diopiCTCLoss", log_probs, joined, steps, lengths, 3, reduction, True, out=OUT)[0]
        assert total == pytest.approx(zeroed(np.where(np.isinf(expected), 0, expected) / divisors))


def test_ctc_loss_terms_cover_its_path() -> None:
    """A class alone has one alignment, of which α after the last step is the loss."""
    function = find_reference("diopiCTCLoss")
    assert function is not None
    log_probs = np.full((9, 2, 1), -0.5)
    arguments = [log_probs, np.zeros((2, 0), int), np.array([9, 4]), np.array([0, 0]), 0]
    out, losses, alpha = function(*arguments, Reduction.sum, False, out=OUT)
    np.testing.assert_allclose(losses.value, [4.5, 2.0])
    np.testing.assert_allclose(losses.terms, [4.5 * np.sqrt(9 / 36), 2.0 * np.sqrt(4 / 36)])
    np.testing.assert_allclose(losses.terms, alpha.value.terms[[0, 1], [8, 3], 0])
    assert out.terms == pytest.approx(np.hypot(*losses.terms))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_ctc_gradient_matches_differences_of_logits(reduction: Reduction) -> None:
    logits, arguments = ctc_data()

    def loss(logits: Array) -> Any:
        log_probs = special.log_softmax(logits, -1)
        return call("diopiCTCLoss", log_probs, *arguments, 3, reduction, True, out=OUT)[0]

    log_probs = special.log_softmax(logits, -1)
    grad = grad_output(loss(logits).shape)
    _, losses, alpha = call("diopiCTCLoss", log_probs, *arguments, 3, reduction, True, out=OUT)
    actual = call("diopiCTCLossBackward", grad, log_probs, *arguments, losses, alpha, 3, reduction, True)
    np.testing.assert_allclose(actual, difference(loss, logits, grad), atol=1e-8)


def test_ctc_gradient_without_an_alignment_is_nan() -> None:
    logits, arguments = ctc_data()
    log_probs = special.log_softmax(logits, -1)
    _, losses, alpha = call("diopiCTCLoss", log_probs, *arguments, 3, Reduction.sum, False, out=OUT)
    actual = call("diopiCTCLossBackward", np.array(1.0), log_probs, *arguments, losses, alpha, 3, Reduction.sum, False)
    assert np.isnan(actual[:4, 3]).all()
    assert (actual[4:, 3] == 0).all()
    assert np.isfinite(actual[:, :3]).all()


@pytest.mark.parametrize("reduction", [Reduction.none, Reduction.sum, Reduction.mean])
def test_total_weight_of_one_sample_without_batch_is_reported_for_each_reduction(reduction: Reduction) -> None:
    log_probs, weight = np.array([-1.0, -2.0, -3.0]), np.array([1.0, 4.0, 2.0])
    total = call("diopiNLLLossV2", log_probs, np.array(1), weight, reduction, -100, out=(None, None))[1]
    assert total.item() == 4


def test_losses_over_no_classes_ignore_all_targets() -> None:
    scores, target = np.zeros((2, 0)), np.full(2, -100)
    for loss in ("diopiNLLLoss", "diopiCrossEntropyLoss"):
        smoothing = [0.0] if loss == "diopiCrossEntropyLoss" else []
        assert call(loss, scores, target, None, Reduction.sum, -100, *smoothing) == 0
        assert np.isnan(call(loss, scores, target, None, Reduction.mean, -100, *smoothing))
        gradient = call(f"{loss}Backward", np.ones(()), scores, target, None, Reduction.sum, -100, *smoothing)
        assert gradient.shape == (2, 0)


def test_binary_cross_entropy_of_an_infinite_logit_is_open_where_pytorch_subtracts_infinities() -> None:
    logits, target = np.array([-np.inf, np.inf, np.inf, 1.0]), np.array([0.5, 1.0, 0.5, 0.5])
    loss = raw("diopiBCEWithLogits", logits, target, None, None, Reduction.none)
    assert loss.specified.tolist() == [False, False, True, True]
    assert not raw("diopiBCEWithLogits", logits, target, None, None, Reduction.mean).specified
