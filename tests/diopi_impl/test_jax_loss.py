"""The accuracy of sums in the losses of jax_cpu."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from diopi_impl.jax_cpu.activation import stable_log_softmax
from diopi_impl.jax_cpu.loss import mse_loss
from diopi_proto.types import Reduction


@pytest.mark.parametrize("shape", [(1, 3, 32, 32), (3, 16, 16), (3072,)], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_mean_loss_is_accurate_for_every_shape(shape: tuple[int, ...], seed: int) -> None:
    input, target = np.random.default_rng(seed).standard_normal((2, *shape)).astype(np.float32)
    mean = float(jax.jit(lambda x, y: mse_loss(x, y, Reduction.mean))(input, target))
    exact = np.square(input.astype(np.float64) - target).mean()
    assert abs(mean - exact) < 3 * np.finfo(np.float32).eps * exact


@pytest.mark.parametrize("classes", [100, 1000, 50257])
def test_log_softmax_sums_many_small_terms_accurately(classes: int) -> None:
    """One exponential is 1, and each of the others is less than half an ulp of 1."""
    input = np.random.default_rng(0).uniform(-17.2, -16.7, (2, classes)).astype(np.float32)
    input[0, 0] = input[1, classes // 2] = 0
    with jax.enable_x64(True):  # as programs are compiled
        found = jax.jit(lambda x: stable_log_softmax(x, 1))(input)
    exact = -np.log1p(np.exp(np.sort(input.astype(np.float64))[:, :-1]).sum(1))
    assert abs(np.diag(found[:, [0, classes // 2]]) - exact).max() < 4 * np.finfo(np.float32).eps
