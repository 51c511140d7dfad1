"""The references of MMCV's losses agree with PyTorch's functions, SciPy's nearest points and finite differences."""

import numpy as np
import pytest
from references import call_reference, numerical_gradient
from scipy.spatial import KDTree

from diopi_proto.interface import lookup
from diopi_test.oracle.reference.mmcv_loss import MIN_ARGUMENT
from diopi_test.oracle.validators import CompletedCall, find_validator

torch = pytest.importorskip("torch")

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

ATTRIBUTES = [(2.0, 0.25), (0.0, 0.6), (0.7, 1.0), (5.0, 0.0)]
"""The values of gamma and alpha."""


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator of random numbers with a fixed seed."""
    return np.random.default_rng(0)


def _torch_sigmoid_focal(
    logits: torch.Tensor, target: torch.Tensor, weight: torch.Tensor, gamma: float, alpha: float
) -> torch.Tensor:
    """Return −α_t (1 − p_t)^γ ln p_t, with PyTorch's cross entropy for the logarithm."""
    classes = logits.shape[1]
    wanted = torch.nn.functional.one_hot(target, classes + 1)[:, :classes].double()
    entropy = torch.nn.functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    p_t = torch.exp(-entropy)
    alpha_t = alpha * wanted + (1 - alpha) * (1 - wanted)
    return alpha_t * (1 - p_t) ** gamma * entropy * weight[target][:, None]


@pytest.mark.parametrize(("gamma", "alpha"), ATTRIBUTES)
def test_sigmoid_focal_loss_and_gradient_are_those_of_pytorch(
    rng: np.random.Generator, gamma: float, alpha: float
) -> None:
    logits, target, weight = rng.normal(size=(6, 4)), rng.integers(0, 4, 6), rng.uniform(0.5, 2, 4)
    x = torch.tensor(logits, requires_grad=True)
    expected = _torch_sigmoid_focal(x, torch.tensor(target), torch.tensor(weight), gamma, alpha)
    expected.sum().backward()
    actual = call_reference("diopiSigmoidFocalLossMmcv", logits, target, weight, gamma, alpha)
    np.testing.assert_allclose(actual, expected.detach(), rtol=1e-12)
    gradient = call_reference("diopiSigmoidFocalLossBackwardMmcv", logits, target, weight, gamma, alpha)
    np.testing.assert_allclose(gradient, x.grad, rtol=1e-11, atol=1e-14)


def test_background_targets_belong_to_no_class(rng: np.random.Generator) -> None:
    logits, empty = rng.normal(size=(3, 4)), np.zeros(0)
    background = call_reference("diopiSigmoidFocalLossMmcv", logits, np.full(3, 4), empty, 2.0, 0.25)
    negative = call_reference("diopiSigmoidFocalLossMmcv", logits[:, 1:], np.zeros(3, int), empty, 2.0, 0.25)
    np.testing.assert_array_equal(background[:, 2:], negative[:, 1:])


def test_logarithms_are_limited_to_that_of_the_smallest_float32() -> None:
    actual = call_reference(
        "diopiSigmoidFocalLossMmcv", np.array([[-200.0, 200.0]]), np.array([0]), np.zeros(0), 0.0, 0.5
    )
    np.testing.assert_allclose(actual, [[-0.5 * np.log(MIN_ARGUMENT)] * 2])


@pytest.mark.parametrize(("gamma", "alpha"), ATTRIBUTES)
def test_softmax_focal_loss_and_gradient_are_those_of_pytorch(
    rng: np.random.Generator, gamma: float, alpha: float
) -> None:
    target, weight = np.array([0, 3, -1, 1, 2, -2]), rng.uniform(0.5, 2, 4)
    logits = torch.tensor(rng.normal(size=(6, 4)), requires_grad=True)
    entropy = torch.nn.functional.cross_entropy(logits, torch.tensor(target.clip(0)), reduction="none")
    rows = alpha * (1 - torch.exp(-entropy)) ** gamma * entropy * torch.tensor(weight[target.clip(0)])
    expected = torch.where(torch.tensor(target) < 0, 0, rows)
    expected.sum().backward()
    softmax = torch.softmax(logits.detach(), 1).numpy()
    actual = call_reference("diopiSoftmaxFocalLossMmcv", softmax, target, weight, gamma, alpha)
    np.testing.assert_allclose(actual, expected.detach(), rtol=1e-12)
    gradient = call_reference("diopiSoftmaxFocalLossBackwardMmcv", np.zeros(6), softmax, target, weight, gamma, alpha)
    np.testing.assert_allclose(gradient, logits.grad, rtol=1e-10, atol=1e-14)


def test_nearest_points_are_those_of_a_search_tree(rng: np.random.Generator) -> None:
    points_a, points_b = rng.normal(size=(2, 30, 2)), rng.normal(size=(2, 20, 2))
    dist1, dist2, idx1, idx2 = call_reference("diopiChamferDistanceMmcv", points_a, points_b)
    for b in range(2):
        for points, neighbors, distances, positions in (
            (points_a, points_b, dist1, idx1),
            (points_b, points_a, dist2, idx2),
        ):
            expected, nearest = KDTree(neighbors[b]).query(points[b])
            np.testing.assert_array_equal(positions[b], nearest)
            np.testing.assert_allclose(distances[b], expected**2)


def test_distances_do_not_change_when_both_sets_are_shifted(rng: np.random.Generator) -> None:
    points_a, points_b, shift = rng.normal(size=(1, 9, 2)), rng.normal(size=(1, 7, 2)), rng.normal(size=2)
    original, shifted = (
        call_reference("diopiChamferDistanceMmcv", points_a, points_b),
        call_reference("diopiChamferDistanceMmcv", points_a + shift, points_b + shift),
    )
    for expected, actual in zip(original, shifted, strict=True):
        np.testing.assert_allclose(actual, expected)


@pytest.mark.parametrize("input_index", [0, 1])
def test_the_gradient_of_chamfer_distance_equals_finite_differences(rng: np.random.Generator, input_index: int) -> None:
    sets = [rng.normal(size=(2, 5, 2)), rng.normal(size=(2, 4, 2))]
    grads = [rng.normal(size=(2, 5)), rng.normal(size=(2, 4))]
    _, _, idx1, idx2 = call_reference("diopiChamferDistanceMmcv", *sets)
    zeros = [np.zeros_like(points) for points in sets]
    gradients = call_reference("diopiChamferDistanceBackwardMmcv", *zeros, *sets, idx1, idx2, *grads)

    def summed(points: Array) -> Array:
        changed = [points if i == input_index else other_points for i, other_points in enumerate(sets)]
        distances = call_reference("diopiChamferDistanceMmcv", *changed)[:2]
        return np.array(sum((grad * dist).sum() for grad, dist in zip(grads, distances, strict=True)))

    np.testing.assert_allclose(gradients[input_index], numerical_gradient(summed, sets[input_index]), atol=1e-8)


def test_any_of_equally_near_points_is_accepted() -> None:
    points_a, points_b = np.zeros((1, 1, 2)), np.array([[[1.0, 0], [0, 1], [2, 0]]])
    arguments = {"xyz1": points_a, "xyz2": points_b}

    def problems(position: int) -> list[str]:
        results = {"idx1": np.array([[position]]), "idx2": np.zeros((1, 3), int)}
        return list(
            find_validator(lookup("diopiChamferDistanceMmcv"))(
                CompletedCall(arguments=arguments, results=results, expected={}, dtypes={})
            )
        )

    assert not problems(0) and not problems(1)
    assert "not positions of nearest points" in problems(2)[0]
    assert "not positions from 0 to 2" in problems(3)[0]
