"""Losses of jax_cpu: how they are added up."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from diopi_impl.jax_cpu.loss import mse_loss
from diopi_proto.types import Reduction


@pytest.mark.parametrize("shape", [(1, 3, 32, 32), (3, 16, 16), (3072,)], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_a_mean_loss_is_added_up_in_parts_whatever_its_shape(shape: tuple[int, ...], seed: int) -> None:
    input, target = np.random.default_rng(seed).standard_normal((2, *shape)).astype(np.float32)
    mean = float(jax.jit(lambda x, y: mse_loss(x, y, Reduction.mean))(input, target))
    exact = np.square(input.astype(np.float64) - target).mean()
    assert abs(mean - exact) < 3 * np.finfo(np.float32).eps * exact
