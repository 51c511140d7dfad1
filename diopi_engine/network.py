"""The network of an engine: StableHLO that `jax.export` serialized, read and compared with the manifest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
from jax import export

from diopi_engine.errors import EngineFileError
from diopi_engine.manifest import Binding, EngineManifest
from diopi_engine.sizes import numpy_type

NETWORK = "network.stablehlo"
"""The name of the network among the members of an engine file."""

_CALLBACK = re.compile(r"custom_call @(\w*callback\w*)")
"""Matches calls to functions of the running process, which a network must not contain."""


def read_network(manifest: EngineManifest, network: bytes) -> export.Exported:
    """Return a network as a JAX callable.

    Damaged bytes can crash the process; `verification.verify_network` finds out.

    Args:
        manifest: the manifest of the engine.
        network: the serialized network.

    Returns:
        The callable.

    Raises:
        EngineFileError: if the network is invalid or contradicts the manifest.
    """
    try:
        exported = export.deserialize(bytearray(network))
        text = exported.mlir_module()
    except Exception as error:  # whatever its readers raise
        raise EngineFileError(f"{NETWORK} can't be read: {error}") from None
    if match := _CALLBACK.search(text):
        raise EngineFileError(f"the network calls {match[1]}: an engine must not call functions of its process")
    _check_types(manifest, exported)
    return exported


def input_types(inputs: Sequence[Binding], batch: int) -> list[jax.ShapeDtypeStruct]:
    """Return the shapes and element types of inputs for a batch size."""
    return [
        jax.ShapeDtypeStruct(
            tuple(batch if size is None else size for size in binding.shape), numpy_type(binding.dtype)
        )
        for binding in inputs
    ]


def _check_types(manifest: EngineManifest, exported: export.Exported) -> None:
    """Raise EngineFileError unless the arguments, the results and the platforms of the network match the manifest."""
    weights = [f"{weight.dtype}{list(weight.shape)}" for weight in manifest.weights]
    for subject, avals, expected in (
        ("arguments", exported.in_avals, [*weights, *map(_format_type, manifest.inputs)]),
        ("results", exported.out_avals, [*map(_format_type, manifest.outputs)]),
    ):
        types = [f"{aval.dtype}{[size if isinstance(size, int) else None for size in aval.shape]}" for aval in avals]
        if types != expected:
            raise EngineFileError(
                f"the network has the {subject} {join_names(types)}, the manifest says {join_names(expected)}"
            )
    if tuple(exported.platforms) != manifest.platforms:
        raise EngineFileError(
            f"the network is for {join_names(exported.platforms)}, the manifest says {join_names(manifest.platforms)}"
        )


def _format_type(binding: Binding) -> str:
    """Return the element type and the shape of a binding as text, for comparison and for messages."""
    return f"{binding.dtype}{list(binding.shape)}"


def join_names(names: Sequence[Any]) -> str:
    """Return up to eight names separated by commas, followed by their number if there are more."""
    listed = [*map(str, names)]
    return ", ".join([*listed[:8], *([f"... ({len(listed)})"] if len(listed) > 8 else [])])
