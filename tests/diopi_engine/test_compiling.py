"""Engines of JAX functions: their results, their properties, and functions that are rejected."""

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import diopi_engine
from diopi_engine import CompileError, Engine, Input


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_an_engine_computes_the_same_as_its_function(engine: Engine, batch: int) -> None:
    from diopi_engine.sizes import Array

    x: Array = np.linspace(-2, 2, batch * 4, dtype=np.float32).reshape(batch, 4)
    y, z = engine(x)
    weights = dict(zip("ab", engine.weights, strict=True))
    np.testing.assert_allclose(y, np.maximum(x @ weights["a"] + weights["b"], 0), rtol=1e-6)
    np.testing.assert_array_equal(z, x.argmax(-1))


def test_the_manifest_describes_inputs_and_outputs(engine: Engine) -> None:
    manifest = engine.manifest
    assert [(entry.name, entry.is_input, entry.dtype, entry.shape) for entry in manifest.bindings] == [
        ("x", True, "float32", (None, 4)),
        ("y", False, "float32", (None, 3)),
        ("z", False, "int32", (None,)),
    ]
    assert [(entry.name, entry.dtype, entry.shape) for entry in manifest.weights] == [
        ("a", "float32", (4, 3)),
        ("b", "float32", (3,)),
    ]
    assert (manifest.max_batch, manifest.patch, manifest.platforms) == (16, 4, ("cpu", "cuda", "rocm", "tpu"))
    assert manifest.control.memory >= 15 * 4 + 4 * (16 + 12 + 4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int64", "uint8", "bool"])
def test_element_types_are_preserved(dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    weight = np.array([1, 0, 1], kind)
    found = diopi_engine.compile(
        lambda w, x: (x | w) if dtype == "bool" else x + w, [Input("x", (3,), dtype=dtype)], weights=weight
    )
    (y,) = found(np.array([1, 0, 0], kind))
    assert y.dtype == kind
    assert not found.manifest.has_batch
    np.testing.assert_array_equal(y.astype(float), [1, 0, 1] if dtype == "bool" else [2, 0, 1])


BATCH = [Input("x", ("b", 4))]


@pytest.mark.parametrize(
    ("function", "inputs", "options", "message"),
    [
        (lambda x: x - x.mean(0), BATCH, {}, "output0 of a sample depends on other samples"),
        (lambda x: x.sum(), BATCH, {}, "batch"),
        (lambda x: x.T, BATCH, {}, "batch"),
        (lambda x: jnp.concatenate([x, x]), BATCH, {}, "batch"),
        (lambda x: x if x.shape[0] > 3 else -x, BATCH, {}, "can't be compiled"),
        (lambda x: x @ x, BATCH, {}, "can't be compiled"),
        (lambda x: x, BATCH, {"outputs": ["a", "b"]}, "2 outputs are named, the network has 1"),
        (lambda x: x, BATCH, {"mode": "split"}, "mode 'split'"),
        (lambda x: x, BATCH, {"cores": 33}, "on 33 cores"),
        (lambda x: x, [Input("x", (4, "b"))], {}, "expected sizes"),
        (lambda x: x, [Input("x", (4,), dtype="float8")], {}, "input x is float8"),
        (lambda x: x, [Input("x", (4,), layout="NHWC")], {}, "layout NHWC and 1 axes"),
        (lambda x, y: x, [*BATCH, Input("y", (4,))], {}, "inputs"),
        (lambda x, y: x, BATCH * 2, {}, "inputs have the same name"),
        (lambda w, x: x, BATCH, {"weights": np.zeros(2, np.complex64)}, "complex64"),
    ],
)
def test_invalid_networks_are_rejected(
    function: Any, inputs: list[Input], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CompileError, match=message):
        diopi_engine.compile(function, inputs, **options)


def test_compile_does_not_change_the_settings_of_jax(engine: Engine) -> None:
    assert not jax.config.jax_enable_x64
    assert engine(np.zeros((1, 4), np.float32))[0].dtype == np.float32
    assert jnp.arange(3).dtype == np.int32
