"""An engine: a compiled network with its weights, which can be stored as bytes and called as a JAX function."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

import jax
import ml_dtypes
import numpy as np
from jax import export

from diopi_engine import container
from diopi_engine.errors import EngineFileError, EngineVersionError
from diopi_engine.manifest import COMPILER, FORMAT, Binding, EngineManifest, Weight

MANIFEST, NETWORK = "manifest.json", "network.stablehlo"

_CALLBACK = re.compile(r"custom_call @(\w*callback\w*)")
"""Matches calls to functions of the running process, which a network must not contain."""

Array = np.ndarray[Any, Any]


@final
@dataclass(frozen=True)
class Engine:
    """A compiled network.

    Attributes:
        manifest: the description of the engine.
        network: StableHLO serialized by `jax.export`. Its arguments are the weights and the inputs, in order.
        weights: the weights in the order of the manifest.
    """

    manifest: EngineManifest
    network: bytes
    weights: Sequence[Array]

    @cached_property
    def exported(self) -> export.Exported:
        """The network as a JAX callable; raises EngineFileError if it is invalid or contradicts the manifest."""
        try:
            exported = export.deserialize(bytearray(self.network))
        except Exception as error:  # whatever its readers raise
            raise EngineFileError(f"{NETWORK} is no network: {error}") from None
        if found := _CALLBACK.search(exported.mlir_module()):
            raise EngineFileError(f"the network calls {found[1]}: an engine must not call functions of its process")
        _check_types(self.manifest, exported)
        return exported

    def to_bytes(self) -> bytes:
        """Return the bytes of the engine file."""
        members = {NETWORK: self.network} | {
            _weight_member_name(n): _to_npy(array) for n, array in enumerate(self.weights)
        }
        digests = {name: container.sha256(data) for name, data in members.items()}
        return container.pack({MANIFEST: replace(self.manifest, members=digests).encode(), **members})

    @classmethod
    def from_bytes(cls, data: bytes) -> Engine:
        """Return the engine in the bytes of a file.

        Raises EngineVersionError if another version compiled it, and EngineFileError if it is damaged or not an engine.

        Args:
            data: the bytes of the file.

        Returns:
            The engine.
        """
        members = container.unpack(data)
        manifest = read_manifest(members)
        _check_members(manifest, members)
        weights = [_from_npy(weight, members[_weight_member_name(n)]) for n, weight in enumerate(manifest.weights)]
        engine = cls(manifest, members[NETWORK], weights)
        assert engine.exported
        return engine

    def save(self, path: Path) -> None:
        """Write the engine file atomically."""
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
            try:
                file.write(self.to_bytes())
                file.close()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise

    @classmethod
    def load(cls, path: Path) -> Engine:
        """Read an engine from a file; raise OSError if it can't be read, or the errors of `from_bytes`."""
        return cls.from_bytes(path.read_bytes())

    def __call__(self, *inputs: Array) -> list[Array]:
        """Return the outputs for these inputs on JAX's default device; raise ValueError for other shapes or types."""
        with jax.enable_x64(True):
            return [np.asarray(output) for output in self.exported.call(*self.weights, *inputs)]


def read_manifest(members: dict[str, bytes]) -> EngineManifest:
    """Return the manifest among the members of a file; raise EngineFileError or EngineVersionError if it is invalid."""
    if next(iter(members), None) != MANIFEST:
        raise EngineFileError(f"the first member is {next(iter(members), 'none')}, expected {MANIFEST}")
    manifest = EngineManifest.decode(members[MANIFEST])
    if (manifest.format, manifest.compiler) != (FORMAT, COMPILER):
        raise EngineVersionError(
            f"the engine has format {manifest.format} and was made by version {manifest.compiler} of the compiler, "
            f"expected format {FORMAT} and version {COMPILER}"
        )
    return manifest


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type for the element type of a binding or weight."""
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _check_members(manifest: EngineManifest, members: dict[str, bytes]) -> None:
    """Raise EngineFileError unless the file has exactly the members of the manifest, with the same digests."""
    expected = [NETWORK, *(_weight_member_name(n) for n in range(len(manifest.weights)))]
    if [*manifest.members] != expected or [*members] != [MANIFEST, *expected]:
        raise EngineFileError(f"the members are {_join_names(members)}, expected {_join_names([MANIFEST, *expected])}")
    for name, digest in manifest.members.items():
        if container.sha256(members[name]) != digest:
            raise EngineFileError(
                f"the digest of member {name} differs from the manifest; the file was modified or damaged"
            )


def _check_types(manifest: EngineManifest, exported: export.Exported) -> None:
    """Raise EngineFileError unless the arguments and results of the network match the manifest."""
    weights = [f"{weight.dtype}{list(weight.shape)}" for weight in manifest.weights]
    for subject, avals, expected in (
        ("arguments", exported.in_avals, [*weights, *map(_format_type, manifest.inputs)]),
        ("results", exported.out_avals, [*map(_format_type, manifest.outputs)]),
    ):
        found = [f"{aval.dtype}{[size if isinstance(size, int) else None for size in aval.shape]}" for aval in avals]
        if found != expected:
            raise EngineFileError(
                f"the network has the {subject} {_join_names(found)}, the manifest says {_join_names(expected)}"
            )


def _format_type(binding: Binding) -> str:
    """Return the element type and the shape of a binding as text, for comparison and for messages."""
    return f"{binding.dtype}{list(binding.shape)}"


def _weight_member_name(number: int) -> str:
    """Return the file member's name for the weight with this number."""
    return f"weights/{number}.npy"


def _to_npy(array: Array) -> bytes:
    """Return an array in NumPy's npy format; bfloat16 is stored as uint16."""
    buffer = io.BytesIO()
    stored = array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array
    np.lib.format.write_array(buffer, np.ascontiguousarray(stored).reshape(array.shape), allow_pickle=False)
    return buffer.getvalue()


def _from_npy(weight: Weight, data: bytes) -> Array:
    """Return the weight in npy bytes; raise EngineFileError if its type or shape contradicts the manifest."""
    dtype, buffer = numpy_type(weight.dtype), io.BytesIO(data)
    try:
        array = np.lib.format.read_array(buffer, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise EngineFileError(f"weight {weight.name} is not a valid npy array: {error}") from None
    array = array.view(dtype) if dtype == ml_dtypes.bfloat16 and array.dtype == np.uint16 else array
    if (array.dtype, array.shape) != (dtype, weight.shape) or buffer.read(1):
        raise EngineFileError(
            f"weight {weight.name} is {array.dtype}{list(array.shape)}, the manifest says {weight.dtype}"
            f"{list(weight.shape)}"
        )
    return array


def _join_names(names: Any) -> str:
    """Return up to eight names separated by commas, followed by their number if there are more."""
    listed = [*map(str, names)]
    return ", ".join([*listed[:8], *([f"... ({len(listed)})"] if len(listed) > 8 else [])])
