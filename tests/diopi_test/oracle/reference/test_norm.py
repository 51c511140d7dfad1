"""The references of normalization and vector norms: synchronized statistics and limits.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

from typing import Any

import numpy as np
import pytest
from references import call_reference, call_with_remarks

from diopi_test.cases.case import ResultOverride

EPS = 0.1
OUT = (ResultOverride(),) * 3


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator of random numbers with a fixed seed."""
    return np.random.default_rng(11)


def close(actual: Any, expected: Any) -> None:
    """Assert that arrays agree to about seven digits."""
    np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-9)


def test_synchronized_batch_norm_is_batch_norm_of_the_whole_batch(rng: np.random.Generator) -> None:
    x, dy = rng.normal(size=(2, 7, 3, 2))
    w, b, running_mean, running_var = rng.uniform(0.5, 2, size=(4, 3))
    whole = call_reference(
        "diopiBatchNorm", x, w, b, running_mean, running_var, True, 0.25, EPS, out=(ResultOverride(),) * 5
    )
    whole_gradients = call_reference("diopiBatchNormBackward", dy, x, w, None, None, whole[1], whole[2], True, EPS)
    workers = [slice(0, 2), slice(2, 7)]
    counts = np.array([4, 10])
    statistics = [call_reference("diopiBatchNormStats", x[worker], EPS) for worker in workers]
    mean_all, invstd_all = (np.stack(values) for values in zip(*statistics, strict=True))
    mean, invstd, *running = call_reference(
        "diopiBatchNormGatherStatsWithCounts",
        x, mean_all, invstd_all, running_mean, running_var, 0.25, EPS, counts.astype(float),
    )  # fmt: skip
    close(np.stack([mean, invstd, *running]), np.stack(whole[1:]))
    out = [call_reference("diopiBatchNormElemt", x[worker], w, b, mean, invstd, 0.0) for worker in workers]
    close(np.concatenate(out), whole[0])
    sums = [
        call_reference("diopiBatchNormBackwardReduce", dy[worker], x[worker], mean, invstd, w, True, True, True)
        for worker in workers
    ]
    sum_dy, sum_dy_xmu, grad_weight, grad_bias = (sum(values) for values in zip(*sums, strict=True))
    close(grad_weight, whole_gradients[1])
    close(grad_bias, whole_gradients[2])
    inputs = [
        call_reference(
            "diopiBatchNormBackwardElemt", dy[worker], x[worker], mean, invstd, w, sum_dy, sum_dy_xmu, counts
        )
        for worker in workers
    ]
    close(np.concatenate(inputs), whole_gradients[0])


def test_short_vectors_are_divided_by_eps() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    close(call_reference("diopiNormalize", x, 2, 1, 10.0), x / 10)
    close(call_reference("diopiNormalizeBackward", x, x, 2, 1, 10.0), x / 10)
    close(call_reference("diopiNormalizeBackward", x, x, 2, 1, 1.0), 0)


def test_mean_of_no_values_is_zero() -> None:
    _, mean, invstd = call_reference("diopiLayerNorm", np.zeros((3, 0)), None, None, (0,), EPS, out=OUT)
    assert mean.tolist() == [0, 0, 0]
    assert np.isnan(invstd).all()


def test_infinite_mean_is_left_open() -> None:
    x = np.array([[np.inf, 1.0], [np.nan, 1.0], [2.0, 1.0]])
    _, mean, _ = call_with_remarks("diopiLayerNorm", x, None, None, (2,), EPS, out=OUT)
    assert mean.specified.tolist() == [False, True, True]
