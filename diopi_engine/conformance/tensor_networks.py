"""Networks with several inputs and outputs, of one shape or of several element types, for the cases of both interfaces.

Each network is a Python function of arrays. JAX compiles it to an engine, and NumPy computes the expected outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from diopi_engine.sizes import Array

MAX_BATCH, PATCH = 16, 4
"""The largest batch of the networks, and the number of samples computed at once."""


@final
@dataclass(frozen=True, kw_only=True)
class TensorNetwork:
    """A network without weights.

    Attributes:
        inputs: the name, the element type, the sizes of a sample, and the layout of each input.
        outputs: the names of the outputs.
        function: computes the outputs from the inputs, which are arrays of NumPy or JAX.
    """

    inputs: Sequence[tuple[str, str, tuple[int, ...], str]]
    outputs: Sequence[str]
    function: Callable[..., list[Any]]

    def random_inputs(self, size: int, seed: int = 0) -> list[Array]:
        """Return random inputs of `size` samples: integers that the element types represent exactly."""
        generator, limits = np.random.default_rng([size, seed]), {"int8": 100}
        return [
            generator.integers(-limits.get(dtype, 1000), limits.get(dtype, 1000), (size, *shape)).astype(dtype)
            for _, dtype, shape, _ in self.inputs
        ]

    def expected_outputs(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs that an engine must compute."""
        return [np.asarray(output) for output in self.function(*inputs)]


def _combine_twins(a: Any, b: Any) -> list[Any]:
    """Return two combinations of two inputs; all four arrays have one shape."""
    return [a - 2 * b, 3 * a + b]


def _convert_types(half: Any, byte: Any, wide: Any) -> list[Any]:
    """Return an output of each input's type, and an int32 output whose sign depends on the sign of an int8 input."""
    return [half + half, byte - 1, wide * 70_000, byte.astype("int32") * -2]


NETWORKS: Mapping[str, TensorNetwork] = {
    "twins": TensorNetwork(
        inputs=[("a", "float32", (4,), "LINEAR"), ("b", "float32", (4,), "LINEAR")],
        outputs=["difference", "sum"],
        function=_combine_twins,
    ),
    "types": TensorNetwork(
        inputs=[
            ("half", "float16", (2, 2, 3), "NHWC"),
            ("byte", "int8", (5,), "LINEAR"),
            ("wide", "int32", (2,), "LINEAR"),
        ],
        outputs=["half_out", "byte_out", "wide_out", "sign_out"],
        function=_convert_types,
    ),
}
"""The networks by name."""


def compile_networks() -> dict[str, Any]:
    """Return the engines of the networks by name."""
    from diopi_engine import Input, compile

    return {
        name: compile(
            network.function,
            [
                Input(tensor, ("b", *shape), dtype=dtype, layout=layout)
                for tensor, dtype, shape, layout in network.inputs
            ],
            outputs=network.outputs,
            name=name,
            max_batch=MAX_BATCH,
            patch=PATCH,
            platforms=["cpu"],
        )
        for name, network in NETWORKS.items()
    }
