"""Engines that tests share."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import diopi_engine
from diopi_engine import Engine, Input

WEIGHTS = {"a": np.arange(12, dtype=np.float32).reshape(4, 3) / 8, "b": np.array([-1, 0, 1], np.float32)}


def layer(weights: Any, x: Any) -> Any:
    return {"y": jnp.maximum(x @ weights["a"] + weights["b"], 0), "z": jnp.argmax(x, -1)}


@pytest.fixture(scope="session")
def engine() -> Engine:
    """A layer with two outputs, of batches of up to 16 in parts of 4."""
    return diopi_engine.compile(
        layer, [Input("x", ("b", 4))], weights=WEIGHTS, outputs=["y", "z"], name="layer", max_batch=16, patch=4
    )
