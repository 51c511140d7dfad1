"""The references of losses: limits, divisors, error terms and open results.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

from typing import Any

import numpy as np
import pytest
from references import Array, call_reference, call_with_remarks, numerical_gradient
from scipy import special

from diopi_proto.types import Reduction
from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import find_reference

REDUCTIONS = [Reduction.none, Reduction.mean, Reduction.sum]
OUT = (ResultOverride(),) * 3

RNG = np.random.default_rng(3)
TARGETS = RNG.uniform(0, 1, (4, 5))
LOGITS = RNG.normal(0, 2, (4, 5))


def grad_output(shape: tuple[int, ...]) -> Array:
    """Return a normally distributed gradient of this shape."""
    return np.asarray(np.random.default_rng(5).normal(size=shape))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("alpha", "gamma"), [(0.25, 2.0), (-1.0, 1.5), (0.7, 0.0)])
@pytest.mark.parametrize("targets", [TARGETS, TARGETS.round()], ids=["soft", "hard"])
def test_focal_loss_gradient_matches_finite_differences(
    targets: Array, alpha: float, gamma: float, reduction: Reduction
) -> None:
    def loss(x: Array) -> Any:
        return call_reference("diopiSigmoidFocalLoss", x, targets, alpha, gamma, reduction)

    grad = grad_output(loss(LOGITS).shape)
    actual = call_reference("diopiSigmoidFocalLossBackward", grad, LOGITS, targets, gamma, alpha, reduction)
    np.testing.assert_allclose(actual, numerical_gradient(loss, LOGITS, grad), atol=1e-7)


def test_bce_is_limited_to_100() -> None:
    actual = call_reference("diopiBCELoss", np.array([0.0, 1.0]), np.array([1.0, 0.25]), None, Reduction.none)
    assert actual.tolist() == [100, 75]


WEIGHT = np.array([0.5, 2.0, 1.25])


def class_data(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return logits, and classes of which some are −1 and some are 1."""
    rng = np.random.default_rng(11)
    outer = shape[:1] * (len(shape) > 1) + shape[2:]
    return rng.normal(size=shape), np.resize([0, 1, -1, 2], outer)


@pytest.mark.parametrize("smoothing", [-0.5, -2.0])
def test_negative_label_smoothing_is_ignored(smoothing: float) -> None:
    logits, probabilities = np.array([[0.5, -1.0, 2.0]]), np.array([[0.25, 0.25, 0.5]])
    for target in (np.array([2]), probabilities):
        plain, smooth = (
            call_reference("diopiCrossEntropyLoss", logits, target, None, Reduction.sum, -100, epsilon)
            for epsilon in (0.0, smoothing)
        )
        np.testing.assert_array_equal(plain, smooth)


def test_mean_divides_by_the_weights_of_counted_targets() -> None:
    log_probs, target = np.log([[0.5, 0.25, 0.25], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]), np.array([0, 1, 2])
    actual, total = call_reference("diopiNLLLossV2", log_probs, target, WEIGHT, Reduction.mean, 1, out=OUT)
    assert total == WEIGHT[0] + WEIGHT[2]
    assert actual == pytest.approx(-(WEIGHT[0] * np.log(0.5) + WEIGHT[2] * np.log(0.6)) / total)
    assert np.isnan(call_reference("diopiNLLLoss", log_probs[:1], target[1:2], None, Reduction.mean, 1))


def test_backward_divides_by_the_total_weight_argument() -> None:
    x, target = class_data((4, 3))
    divided = call_reference(
        "diopiNLLLossV2Backward", np.array(1.0), x, target, WEIGHT, np.array([8.0]), Reduction.mean, -1
    )
    summed = call_reference("diopiNLLLossBackward", np.array(1.0), x, target, WEIGHT, Reduction.sum, -1)
    np.testing.assert_allclose(8 * divided, summed)


CTC_TARGETS = [[1, 1], [2, 0], [], [1, 1, 1]]
"""Targets for blank 3. The last target does not fit into four steps."""


def ctc_data() -> tuple[Array, list[Any]]:
    """Return the logits of four samples, and the other arguments before the reduction."""
    table = np.array([[*target, *[2] * (4 - len(target))] for target in CTC_TARGETS])
    lengths = np.array([len(target) for target in CTC_TARGETS])
    return np.random.default_rng(2).normal(size=(5, 4, 4)), [table, np.array([5, 4, 3, 4]), lengths]


def test_ctc_loss_terms_cover_its_path() -> None:
    """A single class has one alignment, whose α after the last step is the loss."""
    function = find_reference("diopiCTCLoss")
    assert function is not None
    log_probs = np.full((9, 2, 1), -0.5)
    arguments = [log_probs, np.zeros((2, 0), int), np.array([9, 4]), np.array([0, 0]), 0]
    out, losses, alpha = function(*arguments, Reduction.sum, False, out=OUT)
    np.testing.assert_allclose(losses.value, [4.5, 2.0])
    np.testing.assert_allclose(losses.terms, [4.5 * np.sqrt(9 / 36), 2.0 * np.sqrt(4 / 36)])
    np.testing.assert_allclose(losses.terms, alpha.value.terms[[0, 1], [8, 3], 0])
    assert out.terms == pytest.approx(np.hypot(*losses.terms))


def test_ctc_gradient_without_an_alignment_is_nan() -> None:
    logits, arguments = ctc_data()
    log_probs = special.log_softmax(logits, -1)
    _, losses, alpha = call_reference("diopiCTCLoss", log_probs, *arguments, 3, Reduction.sum, False, out=OUT)
    actual = call_reference(
        "diopiCTCLossBackward", np.array(1.0), log_probs, *arguments, losses, alpha, 3, Reduction.sum, False
    )
    assert np.isnan(actual[:4, 3]).all()
    assert (actual[4:, 3] == 0).all()
    assert np.isfinite(actual[:, :3]).all()


@pytest.mark.parametrize("reduction", [Reduction.none, Reduction.sum, Reduction.mean])
def test_total_weight_of_one_sample_without_batch_is_reported_for_each_reduction(reduction: Reduction) -> None:
    log_probs, weight = np.array([-1.0, -2.0, -3.0]), np.array([1.0, 4.0, 2.0])
    total = call_reference("diopiNLLLossV2", log_probs, np.array(1), weight, reduction, -100, out=(None, None))[1]
    assert total.item() == 4


def test_losses_over_no_classes_ignore_all_targets() -> None:
    scores, target = np.zeros((2, 0)), np.full(2, -100)
    for loss in ("diopiNLLLoss", "diopiCrossEntropyLoss"):
        smoothing = [0.0] if loss == "diopiCrossEntropyLoss" else []
        assert call_reference(loss, scores, target, None, Reduction.sum, -100, *smoothing) == 0
        assert np.isnan(call_reference(loss, scores, target, None, Reduction.mean, -100, *smoothing))
        gradient = call_reference(f"{loss}Backward", np.ones(()), scores, target, None, Reduction.sum, -100, *smoothing)
        assert gradient.shape == (2, 0)


def test_binary_cross_entropy_of_an_infinite_logit_is_open_where_pytorch_subtracts_infinities() -> None:
    logits, target = np.array([-np.inf, np.inf, np.inf, 1.0]), np.array([0.5, 1.0, 0.5, 0.5])
    loss = call_with_remarks("diopiBCEWithLogits", logits, target, None, None, Reduction.none)
    assert loss.specified.tolist() == [False, False, True, True]
    assert not call_with_remarks("diopiBCEWithLogits", logits, target, None, None, Reduction.mean).specified
