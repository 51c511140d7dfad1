"""The references of MMCV's normalization agree with PyTorch's batch norm and leaky ReLU, and their gradients."""

from typing import Any

import numpy as np
import pytest
from references import call_reference, numerical_gradient

torch = pytest.importorskip("torch")

Array = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator of random numbers with a fixed seed."""
    return np.random.default_rng(0)


def _statistics(input: Array) -> tuple[Array, Array]:
    """Return the mean and the variance of each channel."""
    mean = call_reference("diopiSyncBnMeanMmcv", input)
    return mean, call_reference("diopiSyncBnVarMmcv", input, mean)


def test_mean_variance_and_output_compute_batch_norm(rng: np.random.Generator) -> None:
    input, weight, bias = rng.normal(size=(3, 4, 5)), rng.normal(size=4), rng.normal(size=4)
    running = rng.normal(size=4), rng.uniform(1, 2, 4)
    expected_running = [torch.tensor(ones) for ones in running]
    expected = torch.nn.functional.batch_norm(
        torch.tensor(input), *expected_running, torch.tensor(weight), torch.tensor(bias), True, 0.3, 0.01
    )
    actual = call_reference("diopiSyncBnOutputMmcv", *running, input, *_statistics(input), weight, bias, 0.01, 0.3, 1)
    np.testing.assert_allclose(actual[4], expected, atol=1e-12)
    np.testing.assert_allclose(actual[0], expected_running[0], rtol=1e-12)
    np.testing.assert_allclose(actual[1], expected_running[1], rtol=1e-12)


def test_statistics_of_two_devices_are_those_of_all_samples(rng: np.random.Generator) -> None:
    input, running = rng.normal(size=(4, 3, 2)), (np.zeros(3), np.ones(3))
    mean, var = _statistics(input)
    whole = call_reference("diopiSyncBnOutputMmcv", *running, input, mean, var, None, None, 1e-5, 0.1, 1)
    halves = [
        call_reference("diopiSyncBnOutputMmcv", *running, half, mean, var, None, None, 1e-5, 0.1, 2)
        for half in (input[:2], input[2:])
    ]
    for half in halves:
        np.testing.assert_allclose(half[0], whole[0])
        np.testing.assert_allclose(half[1], whole[1])
    np.testing.assert_allclose(np.concatenate([half[4] for half in halves]), whole[4])


def test_running_variance_of_one_element_is_its_biased_variance() -> None:
    actual = call_reference(
        "diopiSyncBnOutputMmcv",
        np.zeros(1),
        np.zeros(1),
        np.ones((1, 1, 1)),
        np.zeros(1),
        np.full(1, 3.0),
        None,
        None,
        0.0,
        1.0,
        1,
    )
    np.testing.assert_array_equal(actual[1], [3.0])


def test_gradients_are_those_of_batch_norm(rng: np.random.Generator) -> None:
    input, grad = torch.tensor(rng.normal(size=(3, 4, 5)), requires_grad=True), rng.normal(size=(3, 4, 5))
    weight, bias = (torch.tensor(rng.normal(size=4), requires_grad=True) for _ in range(2))
    torch.nn.functional.batch_norm(input, None, None, weight, bias, True, 0.1, 0.01).backward(torch.tensor(grad))
    x, w = input.detach().numpy(), weight.detach().numpy()
    _, _, norm, std, _ = call_reference("diopiSyncBnOutputMmcv", None, None, x, *_statistics(x), w, w, 0.01, 0.1, 1)
    grad_weight, grad_bias = call_reference("diopiSyncBnBackwardParamMmcv", grad, norm)
    np.testing.assert_allclose(grad_weight, weight.grad, atol=1e-12)
    np.testing.assert_allclose(grad_bias, bias.grad, atol=1e-12)
    grad_input = call_reference("diopiSyncBnBackwardDataMmcv", grad, w, grad_weight, grad_bias, norm, std)
    np.testing.assert_allclose(grad_input, input.grad, atol=1e-12)


@pytest.mark.parametrize("act", [1, 3])
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 3, 2)])
def test_bias_and_activation_are_those_of_pytorch(rng: np.random.Generator, act: int, shape: tuple[int, ...]) -> None:
    input, bias, grad = rng.normal(size=shape), rng.normal(size=4), rng.normal(size=shape)
    x = torch.tensor(input, requires_grad=True)
    shifted = x + torch.tensor(bias).reshape(-1, *[1] * (len(shape) - 2))
    expected = 1.5 * (torch.nn.functional.leaky_relu(shifted, 0.3) if act == 3 else shifted)
    expected.backward(torch.tensor(grad))
    empty = np.zeros(0)
    actual = call_reference("diopiFusedBiasLeakyreluMmcv", input, bias, empty, act, 0, 0.3, 1.5)
    np.testing.assert_allclose(actual, expected.detach(), rtol=1e-12)
    gradient = call_reference("diopiFusedBiasLeakyreluMmcv", grad, empty, actual, act, 1, 0.3, 1.5)
    np.testing.assert_allclose(gradient, x.grad, rtol=1e-12)


def test_the_first_derivative_is_the_slope_and_the_second_is_zero(rng: np.random.Generator) -> None:
    input, empty = rng.normal(size=(2, 3)), np.zeros(0)

    def forward(x: Array) -> Any:
        return call_reference("diopiFusedBiasLeakyreluMmcv", x, empty, empty, 3, 0, 0.2, 2.0)

    slope = call_reference("diopiFusedBiasLeakyreluMmcv", np.ones((2, 3)), empty, forward(input), 3, 1, 0.2, 2.0)
    np.testing.assert_allclose(slope, numerical_gradient(forward, input), atol=1e-9)
    second = call_reference("diopiFusedBiasLeakyreluMmcv", np.ones((2, 3)), empty, forward(input), 3, 2, 0.2, 2.0)
    np.testing.assert_array_equal(second, np.zeros((2, 3)))
