"""Tests of the references of optimizer steps: error terms, unused momentum buffers and gradient clipping.

`diopi-test run --vendor torch_cpu` compares the results of these references with PyTorch.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from references import Array, call_reference

from diopi_proto.types import Dtype
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.domains import random_generator
from diopi_test.oracle.amplification import measure_amplification
from diopi_test.oracle.budget import K
from diopi_test.oracle.data import TensorData
from diopi_test.oracle.reference import find_reference
from lib_rt.formats import ulp

RNG = np.random.default_rng(4)
PARAM, GRAD = RNG.normal(size=(2, 6))
ZERO = np.zeros(6)


def test_sgd_without_momentum_keeps_the_buffer() -> None:
    param, buf = call_reference("diopiSgd", PARAM, GRAD, ZERO + 3, 0.5, 0.0, 0.3, 0.25, True)
    np.testing.assert_allclose(param, PARAM - 0.5 * (GRAD + 0.25 * PARAM))
    assert (buf == 3).all()


@pytest.mark.parametrize("nesterov", [False, True])
def test_budgets_of_sgd_fit_the_errors_if_momentum_and_gradient_cancel(nesterov: bool) -> None:
    param, grad, noise = RNG.normal(size=(3, 2000)).astype(np.float32)
    arrays = {"param": param, "grad": grad, "buf": -grad * (1 + noise / 100)}
    function = find_reference("diopiSgd")
    assert function is not None

    def step(arguments: Mapping[str, Any]) -> list[Array]:
        return list(function(*arguments.values(), 1.0, 0.75, 0.25, 2.0**-6, nesterov))

    values = {name: TensorData(array, TensorSpec(array.shape, Dtype.float32)) for name, array in arrays.items()}
    exact = step({name: value.exact for name, value in values.items()})
    amplified = measure_amplification(
        step, values, exact, [Dtype.float32] * 2, Dtype.float32, lambda: random_generator("sgd")
    )
    for expected, actual, amplification in zip(exact, step(arrays), amplified, strict=True):
        errors_in_units = (actual - expected) / (amplification + ulp(expected, Dtype.float32))
        assert np.abs(errors_in_units).max() < K / 2
        # a root mean square near 0 would mean that the budget is too wide
        assert 0.1 < np.sqrt(np.mean(errors_in_units**2)) < 1


def test_fused_adamw_with_maximize_is_adamw_of_negated_gradients_for_each_tensor() -> None:
    params, grads = [PARAM, GRAD], [GRAD, PARAM]
    squares, steps = [PARAM**2, GRAD**2], [np.array([3.0]), np.array(1)]
    hyperparameters = (0.1, 0.9, 0.99, 1e-3, 0.2)
    amsgrad, maximize = False, True
    options = (*hyperparameters, amsgrad, maximize)
    actual = call_reference("diopiFusedAdamW", params, grads, grads, squares, None, steps, *options)
    assert actual[3] is None
    for i, step in enumerate((3, 1)):
        negated = -grads[i]
        single = call_reference(
            "diopiAdamW", params[i], negated, grads[i], squares[i], None, *hyperparameters, step, amsgrad
        )
        for result, expected in zip(actual[:3], single[:3], strict=True):
            np.testing.assert_allclose(result[i], expected)


GRADS = [np.array([[3.0, 0.0], [0.0, 0.0]]), np.array([-4.0]), np.zeros(3)]


@pytest.mark.parametrize(
    ("order", "total"), [(2.0, 5.0), (1.0, 7.0), (np.inf, 4.0), (-np.inf, 0.0), (0.0, 2.0), (3.0, 91.0 ** (1 / 3))]
)
def test_clipping_takes_the_norm_of_norms(order: float, total: float) -> None:
    actual, grads = call_reference("diopiClipGradNorm", GRADS, 1.0, order, False)
    assert actual == pytest.approx(total)
    factor = min(1.0, 1 / (total + 1e-6))
    for grad, before in zip(grads, GRADS, strict=True):
        np.testing.assert_allclose(grad, before * factor)


@pytest.mark.parametrize("order", [2.0, 0.25, -0.5, -3.0])
def test_error_terms_of_clipping_are_positive_for_every_order(order: float) -> None:
    """The error budget grows with the terms, the sizes of intermediate values."""
    function = find_reference("diopiClipGradNorm")
    assert function is not None
    total, grads = function([PARAM, GRAD], 1e-4, order, False)
    assert total.terms > 0
    assert all((grad.terms > 0).all() for grad in grads)


def test_short_gradients_are_not_clipped() -> None:
    _, grads = call_reference("diopiClipGradNorm", GRADS, 6.0, 2.0, True)
    assert all((grad == before).all() for grad, before in zip(grads, GRADS, strict=True))


def test_no_gradients_have_norm_0() -> None:
    total, grads = call_reference("diopiClipGradNorm", [], 1.0, 2.0, True)
    assert total == 0
    assert grads == []
