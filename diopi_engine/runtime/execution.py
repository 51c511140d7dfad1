"""Run an engine on its cores.

A lane is one core, or several cores that share the weights. Each lane holds the weights, and the parts of a batch run
concurrently.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any, final

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from diopi_engine.engine import Engine
from diopi_engine.manifest import Binding
from diopi_engine.proto.hgrt import Result
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.sizes import Array, numpy_type

PARTS_PER_LANE = 2
"""The number of parts of a batch in progress on a lane: one is computed while another is transferred."""


@final
class CoreLane:
    """One or more cores that compute a part of a batch together, and the weights, which several cores share.

    Args:
        engine: the engine.
        cores: the JAX devices that are the cores.

    Raises:
        InterfaceError: a core occurs twice, or the engine is compiled for other platforms.
    """

    def __init__(self, engine: Engine, cores: Sequence[Any]) -> None:
        if len(set(cores)) < len(cores):
            raise InterfaceError(
                Result.ERROR_NOT_SUPPORTED,
                f"the engine needs {len(cores)} different devices of JAX, but there are {len(set(cores))}",
            )
        if (platform := cores[0].platform) not in engine.manifest.platforms:
            raise InterfaceError(
                Result.ERROR_NOT_SUPPORTED,
                f"the engine is for {', '.join(engine.manifest.platforms)}, the cores are {platform} devices",
            )
        self._engine = engine
        self._mesh = Mesh(np.array(cores), ("core",)) if len(cores) > 1 else None
        self._whole: Any = NamedSharding(self._mesh, PartitionSpec()) if self._mesh else SingleDeviceSharding(cores[0])
        with jax.enable_x64(True):
            self._weights = [jax.device_put(array, self._sharding(array)) for array in engine.weights]
        jax.block_until_ready(self._weights)
        gc.collect(0)  # JAX frees copied arrays only when garbage is collected; generation 0 suffices and is fast
        self._programs: dict[int, Any] = {}
        self._compiling = threading.Lock()

    def run(self, inputs: Sequence[Array], size: int) -> list[Any]:
        """Start to compute a part of `size` samples and return its outputs, which JAX may still be computing."""
        with jax.enable_x64(True):
            program = self._programs.get(size) or self._compile(size)
            return list(program(*self._weights, *inputs))

    def _sharding(self, array: Array) -> Any:
        """Return the sharding of a weight: split along its longest axis that divides evenly among the cores."""
        axes = [axis for axis, size in enumerate(array.shape) if self._mesh and size and size % self._mesh.size == 0]
        if self._mesh is None or not axes:
            return self._whole
        longest = max(axes, key=lambda axis: array.shape[axis])
        return NamedSharding(self._mesh, PartitionSpec(*[None] * longest, "core"))

    def _compile(self, size: int) -> Any:
        """Return the network compiled for parts of `size` samples; the compiled program is cached."""
        with self._compiling:
            if size not in self._programs:
                manifest = self._engine.manifest
                types = [
                    jax.ShapeDtypeStruct(weight.shape, weight.dtype, sharding=weight.sharding)
                    for weight in self._weights
                ]
                shapes = zip(
                    map(binding_shape, manifest.inputs, [size] * len(manifest.inputs)), manifest.inputs, strict=True
                )
                types += [
                    jax.ShapeDtypeStruct(shape, numpy_type(binding.dtype), sharding=self._whole)
                    for shape, binding in shapes
                ]
                function = jax.jit(self._engine.exported.call, out_shardings=self._whole)
                self._programs[size] = function.lower(*types).compile()
            return self._programs[size]


def binding_shape(binding: Binding, batch: int) -> tuple[int, ...]:
    """Return the sizes of a binding for a batch."""
    return tuple(batch if size is None else size for size in binding.shape)


@final
class Execution:
    """The execution of an engine on lanes of cores; threads that call it concurrently run one after another.

    Args:
        engine: the engine.
        lanes: the JAX devices of each lane.
    """

    def __init__(self, engine: Engine, lanes: Sequence[Sequence[Any]]) -> None:
        self._engine = engine
        self._lanes = [CoreLane(engine, cores) for cores in lanes]
        self._pool = ThreadPoolExecutor(PARTS_PER_LANE * len(lanes), "engine")
        self._turn = threading.Lock()

    def execute(self, batch: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write the outputs for a batch of inputs; raise HG_ERROR_INVALID_HANDLE after `close`."""
        with self._turn:
            if not self._lanes:
                raise InterfaceError(
                    Result.ERROR_INVALID_HANDLE, "the context was destroyed while the call waited for it"
                )
            parts = self._split_batch(batch)
            if len(parts) == 1:
                return _copy_results(self._lanes[0].run(inputs, batch), outputs)
            lanes = cycle(self._lanes)
            list(
                self._pool.map(
                    lambda job: self._run_part(*job), [(next(lanes), part, inputs, outputs) for part in parts]
                )
            )

    def close(self) -> None:
        """Wait for running executions and release the weights."""
        with self._turn:
            self._pool.shutdown()
            self._lanes.clear()

    def _split_batch(self, batch: int) -> list[slice]:
        """Return the parts of a batch; if it may be split, they give each lane its share and fit in a patch."""
        manifest = self._engine.manifest
        size = min(manifest.patch, -(-batch // len(self._lanes))) if manifest.is_divisible else max(batch, 1)
        return [slice(start, min(start + size, batch)) for start in range(0, batch, size)]

    def _run_part(self, lane: CoreLane, part: slice, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute one part of a batch on a lane and write its outputs."""
        results = lane.run([array[part] for array in inputs], part.stop - part.start)
        _copy_results(results, [array[part] for array in outputs])


def _copy_results(results: Sequence[Any], outputs: Sequence[Array]) -> None:
    """Wait for the results and copy them to the outputs."""
    for result, output in zip(results, outputs, strict=True):
        np.copyto(output, np.asarray(result))
