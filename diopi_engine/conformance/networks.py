"""The engines that the cases run: single layers with a batch, and a group of two layers."""

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

FACTORS: Mapping[str, float] = {
    "layer": 1.0,
    "first": 2.0,
    "second": -3.0,
    "other": 1.0,
    "namesake": 5.0,
    "split": 4.0,
}
"""The factor that distinguishes the weights of each engine.

`first` and `second` are linked; the others are not. `namesake` has the same name as `layer`, and `split` splits its
weights over two cores.
"""

NAMES = (*FACTORS, "older", *tensor_networks.NETWORKS)
"""The names of the files; `older` has another version of the compiler."""


def weight_matrix(name: str) -> Array:
    """Return the weight matrix of the engine called `name`, of shape (INPUTS, OUTPUTS)."""
    return np.arange(INPUTS * OUTPUTS, dtype=np.float32).reshape(INPUTS, OUTPUTS) / 8 * np.float32(FACTORS[name])


def expected_output(name: str, x: Array) -> Array:
    """Return the output that the engine called `name` must compute for a batch: relu(x · weights + 1)."""
    return np.maximum(x @ weight_matrix(name) + 1, 0).astype(np.float32)


def compile_engines(folder: Path) -> None:
    """Compile the engines and write each to a file with its name."""
    import jax.numpy as jnp

    from diopi_engine import Input, compile, link

    def layer(matrix: Any, x: Any) -> Any:
        """Return the ReLU of a linear layer with bias 1."""
        return jnp.maximum(x @ matrix + 1, 0)

    inputs = [Input("x", ("b", INPUTS))]
    options: dict[str, Any] = {"outputs": ["y"], "max_batch": MAX_BATCH, "patch": PATCH, "platforms": ["cpu"]}
    changes: dict[str, Any] = {"namesake": {"name": "layer"}, "split": {"mode": "weight_split", "cores": 2}}
    engines = {
        name: compile(layer, inputs, weights=weight_matrix(name), **{"name": name, **options, **changes.get(name, {})})
        for name in FACTORS
    }
    engines["first"], engines["second"] = link([engines["first"], engines["second"]], cores=2)
    manifest = engines["layer"].manifest
    engines["other"] = replace(engines["other"], manifest=replace(manifest, name="other", group="other"))
    engines["older"] = replace(engines["layer"], manifest=replace(manifest, compiler="0.1"))
    for name, engine in (engines | tensor_networks.compile_networks()).items():
        engine.save(folder / name)
