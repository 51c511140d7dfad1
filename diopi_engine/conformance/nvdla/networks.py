"""The loadables that the cases run: networks with two inputs and two outputs and a batch, and one without a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from diopi_engine.conformance import tensor_networks
from diopi_engine.sizes import Array

INPUTS, OUTPUTS, MAX_BATCH, PATCH = 4, 3, 16, 4
"""The numbers of inputs and outputs of the layers, the largest batch, and the samples computed at once."""

FACTORS: Mapping[str, float] = {"pair": 1.0, "other": -2.0, "namesake": 5.0, "split": 4.0}
"""The factor that distinguishes the weights of the networks with a batch.

`namesake` has the same name as `pair`, and `split` splits its weights over two cores.
"""

NAMES = (*FACTORS, "fixed", "older", *tensor_networks.NETWORKS)
"""The names of the files. `fixed` has no batch, and `older` states that another version of the compiler wrote it."""


def weight_matrix(name: str) -> Array:
    """Return the weight matrix of the network called `name`, of shape (INPUTS, OUTPUTS)."""
    return np.arange(INPUTS * OUTPUTS, dtype=np.float32).reshape(INPUTS, OUTPUTS) / 8 * np.float32(FACTORS[name])


def expected_outputs(name: str, x: Array, s: Array) -> list[Array]:
    """Return the outputs `y` and `z` that the network called `name` must compute for the inputs `x` and `s`."""
    return [np.maximum(x @ weight_matrix(name) + 1, 0).astype(np.float32), x - 2 * s]


def compile_loadables(folder: Path) -> None:
    """Compile the networks and write each to a file with its name."""
    import jax.numpy as jnp

    from diopi_engine import Input, compile

    def pair(matrix: Any, x: Any, s: Any) -> Any:
        """Return a linear layer of x with ReLU, and x - 2 s."""
        return jnp.maximum(x @ matrix + 1, 0), x - 2 * s

    inputs = [Input("x", ("b", INPUTS)), Input("s", ("b", INPUTS))]
    options: dict[str, Any] = {"outputs": ["y", "z"], "max_batch": MAX_BATCH, "patch": PATCH, "platforms": ["cpu"]}
    changes: dict[str, Any] = {"namesake": {"name": "pair"}, "split": {"mode": "weight_split", "cores": 2}}
    engines = {
        name: compile(pair, inputs, weights=weight_matrix(name), **{"name": name, **options, **changes.get(name, {})})
        for name in FACTORS
    }
    fixed = [Input("x", (1, 2, 2, 3), dtype="int32", layout="NHWC")]
    engines["fixed"] = compile(lambda x: x + 1, fixed, outputs=["y"], name="fixed", platforms=["cpu"])
    engines["older"] = replace(engines["pair"], manifest=replace(engines["pair"].manifest, compiler="0.1"))
    for name, engine in (engines | tensor_networks.compile_networks()).items():
        engine.save(folder / name)
