"""The references of normalisation and vector norms: gradients against finite differences, layers against each other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from references import call, difference, raw

from diopi_test.cases.model import ResultOverride

Array = np.ndarray[Any, Any]
EPS = 0.1
OUT = (ResultOverride(),) * 3


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-9)


def batch_norm(x: Array, w: Array, b: Array) -> Any:
    return call("diopiBatchNorm", x, w, b, None, None, True, 0.1, EPS, out=(ResultOverride(),) * 5)


def layer_norm(x: Array, w: Array, b: Array) -> Any:
    return call("diopiLayerNorm", x, w, b, x.shape[1:], EPS, out=OUT)


def layer_norm_gb(x: Array, w: Array, b: Array) -> Any:
    return call("diopiLayerNormGB", x, w, b, EPS, -2, out=OUT)


def group_norm(x: Array, w: Array, b: Array) -> Any:
    return call("diopiGroupNorm", x, w, b, 2, EPS)


def instance_norm(x: Array, w: Array, b: Array) -> Any:
    return [call("diopiInstanceNorm", x, 2, w, b, EPS)]


def batch_norm_backward(dy: Array, x: Array, w: Array, b: Array, mean: Array, invstd: Array) -> Any:
    return call("diopiBatchNormBackward", dy, x, w, None, None, mean, invstd, True, 7.0)


def layer_norm_backward(dy: Array, x: Array, w: Array, b: Array, mean: Array, invstd: Array) -> Any:
    return call("diopiLayerNormBackward", dy, x, w, b, mean, invstd, x.shape[1:])


def layer_norm_gb_backward(dy: Array, x: Array, w: Array, b: Array, mean: Array, invstd: Array) -> Any:
    return call("diopiLayerNormGBBackward", dy, x, w, b, mean, invstd, 1)


def group_norm_backward(dy: Array, x: Array, w: Array, b: Array, mean: Array, invstd: Array) -> Any:
    return call("diopiGroupNormBackward", dy, x, w, mean, invstd, 2)


def instance_norm_backward(dy: Array, x: Array, w: Array, b: Array) -> Any:
    return call("diopiInstanceNormBackward", dy, x, w, b, 2, EPS)


PER_CHANNEL, PER_ELEMENT = (4,), (4, 3)
LAYERS = [
    (batch_norm, batch_norm_backward, PER_CHANNEL),
    (layer_norm, layer_norm_backward, PER_ELEMENT),
    (layer_norm_gb, layer_norm_gb_backward, PER_ELEMENT),
    (group_norm, group_norm_backward, PER_CHANNEL),
    (instance_norm, instance_norm_backward, PER_CHANNEL),
]


@pytest.mark.parametrize(("forward", "backward", "shape"), LAYERS)
def test_gradients_of_layers(
    forward: Callable[..., Any], backward: Callable[..., Any], shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    x, dy = rng.normal(size=(2, 2, 4, 3))
    w, b = rng.normal(size=(2, *shape))
    saved = forward(x, w, b)[1:3]
    grad_input, grad_weight, grad_bias = backward(dy, x, w, b, *saved)
    close(grad_input, difference(lambda v: forward(v, w, b)[0], x, dy))
    close(grad_weight, difference(lambda v: forward(x, v, b)[0], w, dy))
    close(grad_bias, difference(lambda v: forward(x, w, v)[0], b, dy))


def test_gradients_of_batch_norm_outside_training(rng: np.random.Generator) -> None:
    x, dy = rng.normal(size=(2, 2, 4, 3))
    w, b, mean, var = rng.uniform(0.5, 2, size=(4, 4))

    def forward(x: Array, w: Array, b: Array) -> Any:
        return call("diopiBatchNorm", x, w, b, mean, var, False, 0.1, EPS, out=(ResultOverride(),) * 5)[0]

    gradients = call("diopiBatchNormBackward", dy, x, w, mean, var, None, None, False, EPS)
    close(gradients[0], difference(lambda v: forward(v, w, b), x, dy))
    close(gradients[1], difference(lambda v: forward(x, v, b), w, dy))
    close(gradients[2], difference(lambda v: forward(x, w, v), b, dy))


def test_normalised_values_have_mean_0_and_variance_1(rng: np.random.Generator) -> None:
    x = rng.normal(3, 2, size=(5, 3, 4))
    out, mean, invstd, running_mean, running_var = call(
        "diopiBatchNorm", x, None, None, np.ones(3), np.ones(3), True, 0.25, 0.0, out=(ResultOverride(),) * 5
    )
    close(out.mean((0, 2)), 0)
    close(out.var((0, 2)), 1)
    close(mean, x.mean((0, 2)))
    close(invstd, 1 / x.std((0, 2)))
    close(running_mean, 0.75 + 0.25 * x.mean((0, 2)))
    close(running_var, 0.75 + 0.25 * x.var((0, 2), ddof=1))


def test_layers_agree_where_they_mean_the_same(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, 4, 5))
    w, b = rng.normal(size=(2, 3))
    by_group, mean, _ = call("diopiGroupNorm", x, w, b, 3, EPS)
    close(by_group, call("diopiInstanceNorm", x, 2, w, b, EPS))
    close(mean, x.mean((2, 3)))
    close(
        by_group[0], call("diopiBatchNorm", x[:1], w, b, None, None, True, 0.0, EPS, out=(ResultOverride(),) * 5)[0][0]
    )
    one_group = call("diopiGroupNorm", x, None, None, 1, EPS)[0]
    close(one_group, call("diopiLayerNorm", x, None, None, (3, 4, 5), EPS, out=OUT)[0])


def test_synchronised_batch_norm_is_batch_norm_of_the_whole_batch(rng: np.random.Generator) -> None:
    x, dy = rng.normal(size=(2, 7, 3, 2))
    w, b, running_mean, running_var = rng.uniform(0.5, 2, size=(4, 3))
    whole = call("diopiBatchNorm", x, w, b, running_mean, running_var, True, 0.25, EPS, out=(ResultOverride(),) * 5)
    whole_gradients = call("diopiBatchNormBackward", dy, x, w, None, None, whole[1], whole[2], True, EPS)
    workers = [slice(0, 2), slice(2, 7)]
    counts = np.array([4, 10])
    statistics = [call("diopiBatchNormStats", x[worker], EPS) for worker in workers]
    mean_all, invstd_all = (np.stack(values) for values in zip(*statistics, strict=True))
    mean, invstd, *running = call(
        "diopiBatchNormGatherStatsWithCounts",
        x, mean_all, invstd_all, running_mean, running_var, 0.25, EPS, counts.astype(float),
    )  # fmt: skip
    close(np.stack([mean, invstd, *running]), np.stack(whole[1:]))
    out = [call("diopiBatchNormElemt", x[worker], w, b, mean, invstd, 0.0) for worker in workers]
    close(np.concatenate(out), whole[0])
    sums = [
        call("diopiBatchNormBackwardReduce", dy[worker], x[worker], mean, invstd, w, True, True, True)
        for worker in workers
    ]
    sum_dy, sum_dy_xmu, grad_weight, grad_bias = (sum(values) for values in zip(*sums, strict=True))
    close(grad_weight, whole_gradients[1])
    close(grad_bias, whole_gradients[2])
    inputs = [
        call("diopiBatchNormBackwardElemt", dy[worker], x[worker], mean, invstd, w, sum_dy, sum_dy_xmu, counts)
        for worker in workers
    ]
    close(np.concatenate(inputs), whole_gradients[0])


@pytest.mark.parametrize("p", [1, 2, 3, 0.5, -1, np.inf, -np.inf])
def test_norm_is_numpys(p: float, rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 5))
    close(call("diopiNorm", x, p, (1,), out=ResultOverride()), np.linalg.norm(x, p, axis=1))
    close(call("diopiLinalgVecNorm", x, p, (), True), np.linalg.norm(x.ravel(), p).reshape(1, 1))


@pytest.mark.parametrize("p", [1, 2, 3, 0.5, 1.5, -1, -2, np.inf, -np.inf])
def test_gradients_of_norms(p: float, rng: np.random.Generator) -> None:
    x = rng.uniform(0.5, 2, size=(2, 3, 2)) * rng.choice([-1, 1], size=(2, 3, 2))
    dy = rng.normal(size=2)
    norm = call("diopiNorm", x, p, (0, 1), out=ResultOverride())
    actual = call("diopiNormBackward", dy, x, norm, (0, 1), p)
    close(actual, difference(lambda v: call("diopiNorm", v, p, (0, 1), out=ResultOverride()), x, dy))
    dy = rng.normal(size=x.shape)
    actual = call("diopiNormalizeBackward", dy, x, p, 1, 1e-12)
    close(actual, difference(lambda v: call("diopiNormalize", v, p, 1, 1e-12), x, dy))


def test_short_vectors_are_divided_by_eps() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    close(call("diopiNormalize", x, 2, 1, 10.0), x / 10)
    close(call("diopiNormalizeBackward", x, x, 2, 1, 10.0), x / 10)
    close(call("diopiNormalizeBackward", x, x, 2, 1, 1.0), 0)


def test_mean_of_no_values_is_zero() -> None:
    _, mean, invstd = call("diopiLayerNorm", np.zeros((3, 0)), None, None, (0,), EPS, out=OUT)
    assert mean.tolist() == [0, 0, 0]
    assert np.isnan(invstd).all()


def test_infinite_mean_is_left_open() -> None:
    x = np.array([[np.inf, 1.0], [np.nan, 1.0], [2.0, 1.0]])
    _, mean, _ = raw("diopiLayerNorm", x, None, None, (2,), EPS, out=OUT)
    assert mean.specified.tolist() == [False, True, True]
