"""An engine, and the reference runtime as a library, which tests share."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from shared_folders import fill_once

import diopi_engine
from diopi_engine import Engine, Input
from diopi_engine.conformance.client import EngineClient

WEIGHTS = {"a": np.arange(12, dtype=np.float32).reshape(4, 3) / 8, "b": np.array([-1, 0, 1], np.float32)}


def layer(weights: Any, x: Any) -> Any:
    """Compute a linear layer with ReLU, and the position of the largest input."""
    return {"y": jnp.maximum(x @ weights["a"] + weights["b"], 0), "z": jnp.argmax(x, -1)}


@pytest.fixture(scope="session", autouse=True)
def verified_networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder in which the processes of these tests record the networks that they have verified."""
    folder = tmp_path_factory.mktemp("verified")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIOPI_ENGINE_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def engine() -> Engine:
    """Compile a layer with two outputs, for batches of up to 16 samples and patches of 4."""
    return diopi_engine.compile(
        layer, [Input("x", ("b", 4))], weights=WEIGHTS, outputs=["y", "z"], name="layer", max_batch=16, patch=4
    )


@pytest.fixture(scope="session")
def engine_for_cuda() -> Engine:
    """Return an engine that adds 1, whose network was lowered for another platform than the CPU."""
    engine = diopi_engine.compile(lambda x: x + 1, [Input("x", ("b", 4))], platforms=["cpu"])
    (x,) = export.symbolic_args_specs((np.zeros((1, 4), np.float32),), "b, 4")
    network = export.export(jax.jit(lambda x: [x + 1]), platforms=["cuda"])(x).serialize()
    return replace(engine, manifest=replace(engine.manifest, platforms=("cuda",)), network=bytes(network))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of libhgrt.so. Its cores are separate from those of other processes."""
    from diopi_engine.runtime.build import LIBRARY, build

    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    return fill_once(tmp_path_factory, "hgrt", build) / LIBRARY


@pytest.fixture(scope="session")
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder in which the processes of these tests lock cores."""
    folder = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIOPI_ENGINE_LOCKS", str(folder))
        yield folder


@pytest.fixture(scope="session")
def nvdla_library(tmp_path_factory: pytest.TempPathFactory, locks: Path) -> Path:
    """Return the path of libnvdla_runtime.so. Its devices are separate from those of other processes."""
    from diopi_engine.runtime.nvdla.build import LIBRARY, build

    if shutil.which("cc") is None or shutil.which("c++") is None:
        pytest.skip("there is no compiler of C and C++ here")
    return fill_once(tmp_path_factory, "nvdla", build) / LIBRARY


@pytest.fixture
def client(library: Path, locks: Path) -> Iterator[EngineClient]:
    """Yield a client of the library; assert that no core is used at the end."""
    client = EngineClient(library)
    client.call("hgDeviceSetCurrent", 0)
    yield client
    assert [client.get("hgDeviceGetAttribute", device, 2) for device in (0, 1)] == [4, 4]
