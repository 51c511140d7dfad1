"""Compare the engine libraries with the same function of JAX, jitted and called from Python: latency and throughput.

    python benchmarks/engine_runtime.py

The goals are at most 60 µs more for one small call, and at least 0.95 of the throughput of large batches. The two sides
take turns in short rounds, and the best round of each counts, because other processes do not disturb every short round.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import diopi_engine
from diopi_engine import Input
from diopi_engine.conformance.client import EngineClient
from diopi_engine.conformance.nvdla.bench import BoundNetwork
from diopi_engine.conformance.nvdla.client import NvdlaClient
from diopi_engine.runtime.build import build
from diopi_engine.runtime.nvdla.build import build as build_driver

ROUNDS = 20
"""The number of rounds in which each call is measured."""


def small(weights: Any, x: Any) -> Any:
    """Return the result of one layer. Its time is mainly the overhead of the call."""
    return jnp.maximum(x @ weights[0] + weights[1], 0)


def large(weights: Any, image: Any) -> Any:
    """Return the means of the channels after eight convolutions. Their time is mainly computation."""
    for kernel in weights:
        image = jnp.maximum(jax.lax.conv(image, kernel, (1, 1), "SAME"), 0)
    return image.mean((2, 3))


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    """Return arrays of small random numbers."""
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape).astype(np.float32) / 10 for shape in shapes]


def best_times(calls: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Return the best time of each call in seconds. The calls take turns."""
    durations: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(ROUNDS):
        for call, seconds in zip(calls, durations, strict=True):
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            seconds.append((time.perf_counter() - start) / repeats)
    return [min(seconds) for seconds in durations]


def compare(
    client: EngineClient, function: Callable[..., Any], weights: Any, sizes: tuple[int, ...], batch: int, patch: int
) -> tuple[float, float]:
    """Return the seconds of a batch in JAX and in the library.

    Args:
        client: calls the library.
        function: the network, a function of weights and inputs.
        weights: the weights.
        sizes: the shape of a sample.
        batch: the number of samples.
        patch: the number of samples that a core computes at once.
    """
    inputs = [Input("x", ("b", *sizes))]
    engine = diopi_engine.compile(function, inputs, weights=weights, patch=patch, max_batch=batch, platforms=["cpu"])
    handle = client.engine(engine.to_bytes())
    context = client.context(handle)
    (x,) = arrays((batch, *sizes))
    y = np.empty((batch, *engine.manifest.outputs[0].shape[1:]), np.float32)  # type: ignore[misc]  # the batch is the first size alone
    jitted, on_device = jax.jit(function), jax.device_put(weights)
    in_python, in_library = best_times(
        [lambda: np.asarray(jitted(on_device, x)), lambda: client.execute(context, batch, [x, y])],
        20 if batch == 1 else 1,
    )
    np.testing.assert_allclose(y, np.asarray(jitted(on_device, x)), rtol=1e-3, atol=1e-4)
    client.call("hgExecutionContextDestroy", context)
    return in_python, in_library


def submit_beside_execute(driver: NvdlaClient, client: EngineClient) -> tuple[float, float]:
    """Return the seconds of a small network by `submit` of NVDLA's driver, and by hgExecutionContextExecute."""
    engine = diopi_engine.compile(small, [Input("x", (1, 64))], weights=arrays((64, 64), (64,)), platforms=["cpu"])
    runtime = driver.create_runtime()
    runtime.load(engine.to_bytes())
    bound = BoundNetwork(runtime)
    context = client.context(client.engine(engine.to_bytes()))
    bindings = [array[:64].reshape(1, 64) for (array,) in bound.arrays.values()]
    by_submit, by_execute = best_times(
        [lambda: runtime.call("submit"), lambda: client.execute(context, 1, bindings)], repeats=20
    )
    client.call("hgExecutionContextDestroy", context)
    runtime.destroy()
    return by_submit, by_execute


def main() -> None:
    """Print all comparisons."""
    with tempfile.TemporaryDirectory() as temporary:
        client = EngineClient(build(Path(temporary)))
        client.get("hgDeviceGetCount")  # starts JAX with one device per core
        in_jax, in_library = compare(client, small, arrays((64, 64), (64,)), (64,), 1, 1)
        print(
            f"latency: {in_library * 1e6:.0f} µs, of which JAX takes {in_jax * 1e6:.0f}: "
            f"{(in_library - in_jax) * 1e6:+.0f} µs"
        )
        by_submit, by_execute = submit_beside_execute(NvdlaClient(build_driver(Path(temporary))), client)
        print(f"latency of submit: {by_submit * 1e6:.0f} µs, of hgExecutionContextExecute: {by_execute * 1e6:.0f} µs")
        kernels = arrays((16, 3, 3, 3), *[(16, 16, 3, 3)] * 7)
        for patch in (8, 64):
            in_jax, in_library = compare(client, large, kernels, (3, 64, 64), 64, patch)
            print(
                f"throughput of 64 in parts of {patch}: {in_jax / in_library:.2f} of JAX's, "
                f"{64 / in_library:.0f} samples a second"
            )


if __name__ == "__main__":
    main()
