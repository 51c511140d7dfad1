"""The references of the optimizer steps, against what the algorithms are known to do."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from references import Array, call

from diopi_proto.types import Dtype
from diopi_test.cases.data import TensorData, random_generator
from diopi_test.cases.formats import ulp
from diopi_test.cases.model import TensorSpec
from diopi_test.oracle.budget import K, R, amplification
from diopi_test.oracle.reference import find_reference

RNG = np.random.default_rng(4)
PARAM, GRAD = RNG.normal(size=(2, 6))
ZERO = np.zeros(6)


def test_sgd_with_momentum_is_a_running_sum_of_gradients() -> None:
    gradients, lr, momentum, dampening = RNG.normal(size=(4, 6)), 0.1, 0.7, 0.2
    param, buf = PARAM, None
    for number, grad in enumerate(gradients):
        actual = call("diopiSgd", param, grad, buf, lr, momentum, dampening, 0.0, False)
        param, buf = actual[0], grad if number == 0 else actual[1]
    expected = momentum**3 * gradients[0]
    for number in (1, 2, 3):
        expected = expected + (1 - dampening) * momentum ** (3 - number) * gradients[number]
    np.testing.assert_allclose(buf, expected)


def test_sgd_looks_ahead_with_nesterov() -> None:
    buf = RNG.normal(size=6)
    plain, velocity = call("diopiSgd", PARAM, GRAD, buf, 1.0, 0.5, 0.0, 0.0, False)
    ahead, same = call("diopiSgd", PARAM, GRAD, buf, 1.0, 0.5, 0.0, 0.0, True)
    np.testing.assert_allclose(velocity, same)
    np.testing.assert_allclose(ahead, PARAM - GRAD - 0.5 * (PARAM - plain))


def test_sgd_leaves_an_idle_buffer_alone() -> None:
    param, buf = call("diopiSgd", PARAM, GRAD, ZERO + 3, 0.5, 0.0, 0.3, 0.25, True)
    np.testing.assert_allclose(param, PARAM - 0.5 * (GRAD + 0.25 * PARAM))
    assert (buf == 3).all()


@pytest.mark.parametrize("nesterov", [False, True])
def test_errors_of_sgd_are_within_budgets_where_momentum_and_gradient_cancel(nesterov: bool) -> None:
    param, grad, noise = RNG.normal(size=(3, 2000)).astype(np.float32)
    arrays = {"param": param, "grad": grad, "buf": -grad * (1 + noise / 100)}
    function = find_reference("diopiSgd")
    assert function is not None

    def step(arguments: Mapping[str, Any]) -> list[Array]:
        return list(function(*arguments.values(), 1.0, 0.75, 0.25, 2.0**-6, nesterov))

    values = {name: TensorData(array, TensorSpec(array.shape, Dtype.float32)) for name, array in arrays.items()}
    exact = step({name: value.exact for name, value in values.items()})
    amplified = amplification(step, values, exact, [Dtype.float32] * 2, Dtype.float32, lambda: random_generator("sgd"))
    for expected, actual, reach in zip(exact, step(arrays), amplified, strict=True):
        units = (actual - expected) / (reach + ulp(expected, Dtype.float32))
        assert np.abs(units).max() < K / 2
        assert 0.1 < np.sqrt(np.mean(units**2)) < R


def adam(name: str, moments: tuple[Array, Array], step: int, weight_decay: float = 0.0, **more: Any) -> list[Array]:
    arguments = {"largest": None, "eps": 0.0, "amsgrad": False, **more}
    numbers = (0.1, 0.9, 0.99, arguments["eps"], weight_decay, step, arguments["amsgrad"])
    result: list[Array] = call(name, PARAM, GRAD, *moments, arguments["largest"], *numbers)
    return result


@pytest.mark.parametrize("name", ["diopiAdam", "diopiAdamW"])
def test_the_first_step_of_adam_has_the_size_of_the_rate(name: str) -> None:
    param, mean, square, largest = adam(name, (ZERO, ZERO), 1)
    np.testing.assert_allclose(param, PARAM - 0.1 * np.sign(GRAD))
    np.testing.assert_allclose(mean, 0.1 * GRAD)
    np.testing.assert_allclose(square, 0.01 * GRAD**2)
    assert largest is None


def test_adam_with_steady_gradients_keeps_its_pace() -> None:
    step = 7
    moments = (GRAD * (1 - 0.9 ** (step - 1)), GRAD**2 * (1 - 0.99 ** (step - 1)))
    param = adam("diopiAdam", moments, step)[0]
    np.testing.assert_allclose(param, PARAM - 0.1 * np.sign(GRAD))


def test_decay_is_decoupled_in_adamw_alone() -> None:
    decayed, mean, *_ = adam("diopiAdamW", (ZERO, ZERO), 1, 0.5)
    np.testing.assert_allclose(decayed, PARAM * (1 - 0.05) - 0.1 * np.sign(GRAD))
    np.testing.assert_allclose(mean, 0.1 * GRAD)
    coupled, mean, *_ = adam("diopiAdam", (ZERO, ZERO), 1, 0.5)
    np.testing.assert_allclose(coupled, PARAM - 0.1 * np.sign(GRAD + 0.5 * PARAM))
    np.testing.assert_allclose(mean, 0.1 * (GRAD + 0.5 * PARAM))


def test_amsgrad_never_forgets_the_largest_variance() -> None:
    moments, largest = (GRAD, GRAD**2), np.array([9.0, 0, 9, 0, 9, 0])
    param, _, square, running_maximum = adam("diopiAdam", moments, 2, largest=largest, amsgrad=True)
    np.testing.assert_allclose(running_maximum, np.maximum(square, largest))
    np.testing.assert_allclose(param, PARAM - 0.1 * GRAD / (1 - 0.81) / np.sqrt(running_maximum / (1 - 0.99**2)))
    assert (adam("diopiAdam", moments, 2, largest=largest)[3] == largest).all()


def test_the_fused_step_is_adamw_for_each() -> None:
    params, grads = [PARAM, GRAD], [GRAD, PARAM]
    squares, steps = [PARAM**2, GRAD**2], [np.array([3.0]), np.array(1)]
    numbers = (0.1, 0.9, 0.99, 1e-3, 0.2)
    actual = call("diopiFusedAdamW", params, grads, grads, squares, None, steps, *numbers, False, True)
    assert actual[3] is None
    for i, step in enumerate((3, 1)):
        single = call("diopiAdamW", params[i], -grads[i], grads[i], squares[i], None, *numbers, step, False)
        for result, expected in zip(actual[:3], single[:3], strict=True):
            np.testing.assert_allclose(result[i], expected)


def test_adadelta_moves_by_what_it_moved_before() -> None:
    acc = RNG.uniform(1, 2, 6)
    param, square, acc_after = call("diopiAdadelta", PARAM, GRAD, GRAD**2, acc, 1.0, 0.9, 0.0, 0.0)
    np.testing.assert_allclose(square, GRAD**2)
    np.testing.assert_allclose(param, PARAM - np.sqrt(acc) * np.sign(GRAD))
    np.testing.assert_allclose(acc_after, acc)


def test_rmsprop_divides_by_the_spread_of_the_gradients() -> None:
    mean = GRAD - 2
    arguments = (PARAM, GRAD, mean**2 + 4, mean, ZERO, 0.1, 1.0, 0.5, 0.0)
    centered, _, mean_after, buf = call("diopiRmsprop", *arguments, 0.0, True)
    np.testing.assert_allclose(centered, PARAM - 0.1 * GRAD / 2.5)
    np.testing.assert_allclose(mean_after, mean)
    assert (buf == 0).all()
    moved, square, _, velocity = call("diopiRmsprop", *arguments, 0.5, False)
    np.testing.assert_allclose(velocity, GRAD / (np.sqrt(square) + 0.5))
    np.testing.assert_allclose(moved, PARAM - 0.1 * velocity)


GRADS = [np.array([[3.0, 0.0], [0.0, 0.0]]), np.array([-4.0]), np.zeros(3)]


@pytest.mark.parametrize(
    ("order", "total"), [(2.0, 5.0), (1.0, 7.0), (np.inf, 4.0), (-np.inf, 0.0), (0.0, 2.0), (3.0, 91.0 ** (1 / 3))]
)
def test_clipping_takes_the_norm_of_norms(order: float, total: float) -> None:
    actual, grads = call("diopiClipGradNorm", GRADS, 1.0, order, False)
    assert actual == pytest.approx(total)
    factor = min(1.0, 1 / (total + 1e-6))
    for grad, before in zip(grads, GRADS, strict=True):
        np.testing.assert_allclose(grad, before * factor)


@pytest.mark.parametrize("order", [2.0, 0.25, -0.5, -3.0])
def test_the_terms_of_clipping_are_sizes_whatever_the_order(order: float) -> None:
    function = find_reference("diopiClipGradNorm")
    assert function is not None
    total, grads = function([PARAM, GRAD], 1e-4, order, False)
    assert total.terms > 0
    assert all((grad.terms > 0).all() for grad in grads)


def test_short_gradients_are_not_clipped() -> None:
    _, grads = call("diopiClipGradNorm", GRADS, 6.0, 2.0, True)
    assert all((grad == before).all() for grad, before in zip(grads, GRADS, strict=True))


def test_no_gradients_have_norm_0() -> None:
    total, grads = call("diopiClipGradNorm", [], 1.0, 2.0, True)
    assert total == 0
    assert grads == []
