"""The manifest of an engine: its inputs and outputs, the scheme of its group, and the members of its file."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from diopi_engine.errors import EngineFileError, EngineVersionError
from diopi_engine.proto.hgrt import DataType, Layout

FORMAT = 2
"""Version of the file format: the set of members and the structure of the manifest."""

COMPILER = "1.0"
"""Version of the compiler; engines of other versions are rejected."""

MAX_CORES = 32
"""Maximum number of cores of a device, the number of bits of a mask."""

MODES = ("normal", "weight_split")
"""How the cores of an engine share the work; see hgExecuteMode."""

DTYPES = tuple(dtype.name.lower() for dtype in DataType)
"""The element types, by their names in NumPy."""

LAYOUTS = tuple(layout.name for layout in Layout)
"""The meaning of the axes; see hgLayout."""


@dataclass(frozen=True, kw_only=True)
class Binding:
    """An input or output of an engine.

    Attributes:
        name: the name, by which programs can find the binding.
        is_input: whether the binding is an input.
        shape: the sizes; the first one is None for a batch.
        dtype: one of `DTYPES`.
        layout: one of `LAYOUTS`.
    """

    name: str
    is_input: bool
    dtype: str
    layout: str
    shape: tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True)
class Control:
    """The cores and the memory that one engine of a group needs; hgEngineControl in hgrt.h documents the members.

    Attributes:
        name: the name of the engine.
        virtual_device: the virtual device that the engine runs on.
        memory_group: engines with the same number share memory and do not run at the same time.
        mode: one of `MODES`: how the cores share the work.
        cores_per_batch: the minimum number of cores for one batch.
        core_mask: the cores; bit n stands for core n of the virtual device.
        memory: the local memory of a core for one patch in bytes, including weights.
    """

    name: str
    virtual_device: int
    memory_group: int
    mode: str
    cores_per_batch: int
    core_mask: int
    memory: int


@dataclass(frozen=True)
class Weight:
    """A weight: an array that is an argument of the network.

    Attributes:
        name: the name.
        dtype: the element type.
        shape: the sizes of the axes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class EngineManifest:
    """The description of an engine without its network.

    Attributes:
        format: the version of the file format (`FORMAT`).
        compiler: the version of the compiler (`COMPILER`).
        name: the name with which the engine was compiled.
        bindings: inputs, then outputs, in the order of the network's arguments and results.
        max_batch: the largest batch of an execution on the cores of one scheme; 1 if sizes are fixed.
        patch: the largest number of samples that a core computes at a time.
        is_divisible: whether a batch may be computed in parts, because its samples are proved to be independent.
        platforms: JAX's names of the platforms that the network was lowered for.
        group: the name of the group, which is equal for all engines of a group.
        engine: the number of this engine in the group, from 0 on.
        scheme: an entry for each engine of the group.
        weights: the weights in the order of the network's arguments, before the inputs.
        members: the SHA-256 of each member of the file except the manifest, by the name of the member.
    """

    format: int
    compiler: str
    name: str
    bindings: tuple[Binding, ...]
    max_batch: int
    patch: int
    is_divisible: bool
    platforms: tuple[str, ...]
    group: str
    engine: int
    scheme: tuple[Control, ...]
    weights: tuple[Weight, ...]
    members: Mapping[str, str]

    @property
    def control(self) -> Control:
        """The entry of the scheme for this engine."""
        return self.scheme[self.engine]

    @property
    def inputs(self) -> tuple[Binding, ...]:
        """The bindings that are inputs."""
        return tuple(binding for binding in self.bindings if binding.is_input)

    @property
    def outputs(self) -> tuple[Binding, ...]:
        """The bindings that are outputs."""
        return tuple(binding for binding in self.bindings if not binding.is_input)

    @property
    def has_batch(self) -> bool:
        """Whether the first size of every binding is the size of the batch."""
        return any(None in binding.shape for binding in self.bindings)

    def encode(self) -> bytes:
        """Return the manifest as JSON bytes; equal manifests have equal bytes."""
        return (json.dumps(asdict(self), indent=1) + "\n").encode()

    @classmethod
    def decode(cls, text: bytes) -> EngineManifest:
        """Return the manifest in a text; `manifest_checks` checks the ranges of its values.

        Args:
            text: the text.

        Returns:
            The manifest.

        Raises:
            EngineVersionError: if the manifest has a former format.
            EngineFileError: if the text is not what `encode` returns for a manifest.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise EngineFileError(f"the manifest is not JSON: {error}") from None
        if isinstance(value, dict) and value.get("format") in range(1, FORMAT):
            raise EngineVersionError(f"the engine has format {value['format']}, expected format {FORMAT}")
        manifest = _decode_object(cls, value, "manifest")
        if manifest.encode() != text:
            raise EngineFileError("the manifest is not written as the compiler writes it")
        return manifest


T = TypeVar("T")
"""The dataclass that an object is read as."""


def _decode_object(kind: type[T], value: Any, location: str) -> T:
    """Return a JSON object as an instance of the dataclass `kind`; raise EngineFileError if its fields differ."""
    hints = get_type_hints(kind) if is_dataclass(kind) else {}
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    if not isinstance(value, dict) or list(value) != names:
        raise EngineFileError(f"{location} is {_shorten(value)}, expected an object with {', '.join(names)}")
    return kind(**{name: _decode_value(hints[name], value[name], f"{location}.{name}") for name in names})


def _decode_value(kind: Any, value: Any, location: str) -> Any:
    """Return a JSON value as the type `kind`; raise EngineFileError at `location` if it has another type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _decode_object(kind, value, location)  # type: ignore[arg-type]  # the class is a dataclass, not an instance
    if origin is tuple and isinstance(value, list):
        return tuple(_decode_value(arguments[0], item, f"{location}[{n}]") for n, item in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {key: _decode_value(arguments[1], item, f"{location}.{key}") for key, item in value.items()}
    if origin is types.UnionType and type(value) in arguments:
        return value
    if origin is None and type(value) is kind:
        return value
    raise EngineFileError(f"{location} is {_shorten(value)}, expected {getattr(kind, '__name__', kind)}")


def _shorten(value: Any) -> str:
    """Return a value as JSON text, shortened to 60 characters."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
