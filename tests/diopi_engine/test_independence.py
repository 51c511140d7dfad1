"""The proof that samples are independent: which networks are computed in parts, as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from sampling import sampled

import diopi_engine
from diopi_engine import CompileError, Input
from diopi_engine.independence import prove_independence
from diopi_engine.runtime.execution import Execution

ROWS, SEQUENCES, PICTURES = (4,), (6, 4), (3, 8, 8)

MIXING: dict[str, Callable[[Any], Any]] = {
    "the first sample": lambda x: x - x[:1],
    "a sum": lambda x: x - x.mean(0),
    "a sum without NaN": lambda x: x - jnp.nanmean(x, 0),
    "an integer maximum": lambda x: x.astype(jnp.int32) + x.astype(jnp.int32).max(0),
    "a cumulative sum": lambda x: jnp.cumsum(x, 0),
    "the previous sample": lambda x: jnp.roll(x, 1, 0),
    "an order": lambda x: jnp.sort(x, 0),
    "a recurrence": lambda x: lax.scan(lambda c, row: (c + row, c + row), jnp.zeros(4), x)[1],
    "a condition": lambda x: lax.while_loop(lambda v: v.sum() < 10, lambda v: v + 1, x),
    "a branch": lambda x: lax.cond(True, lambda v: v - v.max(0), lambda v: v, x),
}
"""Networks in which an operation certainly mixes samples, all with rows as inputs."""

UNPROVED: dict[str, Callable[[Any], Any]] = {
    "positions": lambda x: x + jnp.arange(x.shape[0])[:, None],
    "the size of the batch": lambda x: x / x.shape[0],
    "positions of an order": lambda x: jnp.argsort(x, 0).astype(jnp.int32),
    "selected positions": lambda x: x[jnp.arange(x.shape[0]), 1],
    "joined batches": lambda x: jnp.concatenate([x, x])[: x.shape[0]],
}
"""Networks for which nothing is proved, all with rows as inputs."""

INDEPENDENT: list[tuple[tuple[int, ...], Callable[[Any], Any]]] = [
    (ROWS, lambda x: jnp.maximum(x @ np.ones((4, 5), np.float32), 0)),
    (ROWS, jax.nn.softmax),
    (ROWS, lambda x: jax.nn.gelu(x) + jax.nn.silu(x) + jax.nn.relu6(x)),
    (ROWS, lambda x: x.reshape(-1).reshape(-1, 4) + jnp.ones(x.shape)),
    (ROWS, lambda x: jnp.take(jnp.ones((10, 3)), x.astype(jnp.int32), axis=0)),
    (ROWS, lambda x: jnp.take_along_axis(x, jnp.argsort(x, -1), -1)),
    (ROWS, lambda x: x[:, jnp.array([0, 2])]),
    (ROWS, lambda x: lax.top_k(x, 2)[0]),
    (ROWS, lambda x: jax.vmap(lambda row: jnp.dot(row, row))(x)),
    (ROWS, lambda x: jnp.cumsum(x, 1)),
    (ROWS, lambda x: x[:, ::-1]),
    (ROWS, lambda x: jnp.zeros((x.shape[0], 3))),
    (ROWS, lambda x: lax.cond(True, lambda v: v + 1, lambda v: v, x)),
    (ROWS, lambda x: lax.fori_loop(0, 3, lambda _, v: v * 2, x)),
    (SEQUENCES, lambda x: (x.reshape(-1, 4) @ np.ones((4, 5), np.float32)).reshape(-1, 6, 5)),
    (SEQUENCES, lambda x: jax.nn.softmax(jnp.einsum("bid,bjd->bij", x, x)) @ x),
    (SEQUENCES, lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)),
    (SEQUENCES, lambda x: jax.vmap(lambda s: lax.scan(lambda c, r: (c + r, c + r), jnp.zeros(4), s)[1])(x)),
    (SEQUENCES, lambda x: jnp.concatenate([jnp.zeros((x.shape[0], 1, 4)), x], 1)[:, 0]),
    (SEQUENCES, lambda x: jnp.pad(x, ((0, 0), (1, 1), (0, 0)))),
    (SEQUENCES, lambda x: x + jnp.arange(6)[None, :, None]),
    (SEQUENCES, lambda x: jnp.fft.fft(x, axis=1).real),
    (PICTURES, lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")),
    (PICTURES, lambda x: jax.image.resize(x, (x.shape[0], 3, 16, 16), "bilinear")),
    (PICTURES, lambda x: lax.conv_general_dilated(x, np.ones((5, 3, 3, 3), np.float32), (1, 1), "SAME")),
]
"""Independent networks with the shape of a sample."""


def prove(function: Callable[[Any], Any], sample: tuple[int, ...] = ROWS) -> Any:
    """Return the dependence of the only output of a network."""
    shape = export.symbolic_shape(", ".join(["b", *map(str, sample)]))
    jaxpr = jax.jit(function).trace(jax.ShapeDtypeStruct(shape, jnp.float32)).jaxpr
    (output,) = prove_independence(jaxpr, 0)
    return output


@pytest.mark.parametrize("network", list(MIXING))
def test_networks_that_mix_samples_are_rejected(network: str) -> None:
    assert prove(MIXING[network]).is_certain
    with pytest.raises(CompileError, match=r"output0 .* other samples of its batch"):
        diopi_engine.compile(MIXING[network], [Input("x", ("b", 4))], platforms=["cpu"])


def test_a_transform_over_the_batch_mixes_samples() -> None:
    assert prove(lambda x: jnp.fft.fft(x, axis=0).real).is_certain


@pytest.mark.parametrize("network", list(UNPROVED))
def test_nothing_is_claimed_about_other_networks(network: str) -> None:
    dependence = prove(UNPROVED[network])
    assert not dependence.is_independent and not dependence.is_certain and dependence.reason


@pytest.mark.parametrize(("sample", "network"), INDEPENDENT)
def test_independent_networks_are_proved(sample: tuple[int, ...], network: Callable[[Any], Any]) -> None:
    assert prove(network, sample).is_independent


@pytest.mark.parametrize(("sample", "network"), sampled(INDEPENDENT, 4, slow=4))
def test_independent_networks_agree_in_parts(sample: tuple[int, ...], network: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(0).normal(size=(4, *sample)).astype(np.float32)
    parts = np.concatenate([np.asarray(network(jnp.asarray(part))) for part in (x[:1], x[1:])])
    np.testing.assert_allclose(np.asarray(network(jnp.asarray(x))), parts, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("network", ["positions", "the size of the batch", "selected positions"])
@pytest.mark.parametrize("lanes", [1, 2])
def test_unproved_networks_are_computed_as_a_whole(network: str, lanes: int) -> None:
    function = UNPROVED[network]
    engine = diopi_engine.compile(function, [Input("x", ("b", 4))], max_batch=16, patch=4, platforms=["cpu"])
    assert (engine.manifest.is_divisible, engine.manifest.patch) == (False, 16)
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    expected = np.asarray(function(jnp.asarray(x)))
    found = np.empty_like(expected)
    execution = Execution(engine, [jax.devices()[:1]] * lanes)
    execution.execute(16, [x], [found])
    execution.close()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_weights_are_the_same_for_every_sample() -> None:
    def network(weights: Any, x: Any) -> Any:
        return x @ jnp.linalg.inv(weights) + jnp.sort(weights, 0)[0]

    engine = diopi_engine.compile(
        network, [Input("x", ("b", 4))], weights=np.eye(4, dtype=np.float32), max_batch=16, patch=4, platforms=["cpu"]
    )
    assert (engine.manifest.is_divisible, engine.manifest.patch) == (True, 4)
