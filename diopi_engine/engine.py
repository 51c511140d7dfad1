"""An engine: a compiled network with its weights, which can be stored as bytes and called as a JAX function."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import final

import jax
import ml_dtypes
import numpy as np
from jax import export

from diopi_engine import container
from diopi_engine.errors import EngineFileError, EngineVersionError
from diopi_engine.manifest import COMPILER, FORMAT, EngineManifest, Weight
from diopi_engine.manifest_checks import check_manifest
from diopi_engine.network import NETWORK, join_names, read_network
from diopi_engine.sizes import Array, numpy_type
from diopi_engine.verification import verify_network

MANIFEST = "manifest.json"
"""The name of the manifest among the members of an engine file."""


_MAX_NPY_HEADER = 1 << 13
"""Maximum length of the header of a weight in bytes."""


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
        """The network as a JAX callable; raises EngineFileError if it is invalid or contradicts the manifest.

        Another thread reads it: JAX leaves reference cycles that contain the frames of all its callers. In this thread,
        these would keep the weights in memory until the next garbage collection.
        """
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(read_network, self.manifest, self.network).result()

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
        members = container.read_members(data)
        manifest = read_manifest(members)
        _check_members(manifest, members)
        weights = [_from_npy(weight, members[_weight_member_name(n)]) for n, weight in enumerate(manifest.weights)]
        engine = cls(manifest, bytes(members[NETWORK]), weights)
        verify_network(manifest, engine.network)
        assert engine.exported
        return engine

    def save(self, path: Path) -> None:
        """Write the engine file atomically, with the permissions that new files of the process have."""
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            with temporary.open("xb") as file:
                file.write(self.to_bytes())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: Path) -> Engine:
        """Return the engine in a file; raise OSError if it can't be read, or the errors of `from_bytes`."""
        return cls.from_bytes(path.read_bytes())

    def __call__(self, *inputs: Array) -> list[Array]:
        """Return the outputs for these inputs on JAX's default device; raise ValueError for other shapes or types."""
        with jax.enable_x64(True):
            return [np.asarray(output) for output in self.exported.call(*self.weights, *inputs)]


def read_manifest(members: Mapping[str, memoryview]) -> EngineManifest:
    """Return the manifest among the members of a file; raise EngineFileError or EngineVersionError if it is invalid."""
    if next(iter(members), None) != MANIFEST:
        raise EngineFileError(f"the first member is {next(iter(members), 'none')}, expected {MANIFEST}")
    manifest = EngineManifest.decode(bytes(members[MANIFEST]))
    if (manifest.format, manifest.compiler) != (FORMAT, COMPILER):
        raise EngineVersionError(
            f"the engine has format {manifest.format} and was made by version {manifest.compiler} of the compiler, "
            f"expected format {FORMAT} and version {COMPILER}"
        )
    check_manifest(manifest)
    return manifest


def _check_members(manifest: EngineManifest, members: Mapping[str, memoryview]) -> None:
    """Raise EngineFileError unless the file has exactly the members of the manifest, with the same digests."""
    expected = [NETWORK, *(_weight_member_name(n) for n in range(len(manifest.weights)))]
    if [*manifest.members] != expected or [*members] != [MANIFEST, *expected]:
        raise EngineFileError(f"the members are {join_names([*members])}, expected {join_names([MANIFEST, *expected])}")
    for name, digest in manifest.members.items():
        if container.sha256(members[name]) != digest:
            raise EngineFileError(
                f"the digest of member {name} differs from the manifest; the file was modified or damaged"
            )


def _weight_member_name(number: int) -> str:
    """Return the file member's name for the weight with this number."""
    return f"weights/{number}.npy"


def _to_npy(array: Array) -> bytes:
    """Return an array in NumPy's npy format; bfloat16 is stored as uint16."""
    buffer = io.BytesIO()
    stored = array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array
    np.lib.format.write_array(buffer, np.ascontiguousarray(stored).reshape(array.shape), allow_pickle=False)
    return buffer.getvalue()


def _from_npy(weight: Weight, data: memoryview) -> Array:
    """Return a weight as a view of npy bytes.

    Args:
        weight: the weight.
        data: the bytes.

    Returns:
        The array.

    Raises:
        EngineFileError: if the bytes are invalid, or their type, shape or number contradicts the manifest.
    """
    dtype, count = numpy_type(weight.dtype), prod(weight.shape)
    try:
        buffer = io.BytesIO(data[:_MAX_NPY_HEADER])
        version = np.lib.format.read_magic(buffer)
        shape, is_fortran, stored_dtype = np.lib.format.read_array_header_1_0(buffer)
    except Exception as error:  # whatever the parser of the header raises
        raise EngineFileError(f"weight {weight.name} is not a valid npy array: {error}") from None
    expected = np.dtype(np.uint16) if dtype == ml_dtypes.bfloat16 else dtype
    if (version, stored_dtype, shape, is_fortran) != ((1, 0), expected, weight.shape, False):
        raise EngineFileError(
            f"weight {weight.name} is {stored_dtype}{list(shape)}, the manifest says {weight.dtype}{list(weight.shape)}"
        )
    if (size := len(data) - buffer.tell()) != count * dtype.itemsize:
        raise EngineFileError(f"weight {weight.name} has {size} bytes, expected {count * dtype.itemsize}")
    return np.frombuffer(data, dtype, count, buffer.tell()).reshape(shape)
