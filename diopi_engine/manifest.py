"""The manifest of an engine: what it takes and gives, the scheme of its group, and what its file consists of."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from diopi_engine.errors import EngineFileError
from diopi_engine.proto.hgrt import MAX_DIMS, DataType, Layout

FORMAT = 1
"""Of the file: which members it has, and what the manifest says."""

COMPILER = "1.0"
"""Version of the compiler: engines of another one are refused."""

MAX_CORES = 32
"""Cores of a device: as many as a mask has bits."""

MODES = ("normal", "weight_split")
"""How the cores of an engine share the work: see hgExecuteMode."""

DTYPES = tuple(dtype.name.lower() for dtype in DataType)
"""Element types, as NumPy names them."""

LAYOUTS = tuple(layout.name for layout in Layout)
"""What the axes are: see hgLayout."""


@dataclass(frozen=True)
class Binding:
    """An input or output.

    Attributes:
        shape: its sizes; the first one is None for a batch.
        dtype: one of `DTYPES`.
        layout: one of `LAYOUTS`.
    """

    name: str
    is_input: bool
    dtype: str
    layout: str
    shape: tuple[int | None, ...]


@dataclass(frozen=True)
class Control:
    """What a scheme says of one engine of its group: see hgEngineControl. `memory` is in bytes."""

    name: str
    virtual_device: int
    memory_group: int
    mode: str
    cores_per_batch: int
    core_mask: int
    memory: int


@dataclass(frozen=True)
class Weight:
    """An array that is an argument of the network."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Manifest:
    """All that is known of an engine without its network.

    Attributes:
        name: it was compiled with.
        bindings: inputs, then outputs, in the order of the network's arguments and results.
        max_batch: largest batch of an execution on the cores of one scheme; 1 if sizes are fixed.
        patch: largest part of a batch that is computed at a time.
        platforms: JAX's names of the platforms that the network was lowered for.
        group: names the group; engines of one group have the same.
        engine: its number in the group.
        scheme: an entry an engine of the group.
        weights: in the order of the network's arguments, before the inputs.
        members: the digest of each other member of the file.
    """

    format: int
    compiler: str
    name: str
    bindings: tuple[Binding, ...]
    max_batch: int
    patch: int
    platforms: tuple[str, ...]
    group: str
    engine: int
    scheme: tuple[Control, ...]
    weights: tuple[Weight, ...]
    members: Mapping[str, str]

    @property
    def control(self) -> Control:
        """What the scheme says of this engine."""
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
        """Whether the first size of every binding is that of the batch."""
        return any(None in binding.shape for binding in self.bindings)

    def encoded(self) -> bytes:
        """The text of the manifest, which is the same for the same manifest."""
        return (json.dumps(asdict(self), indent=1) + "\n").encode()

    @classmethod
    def decoded(cls, text: bytes) -> Manifest:
        """The manifest of a text; EngineFileError if it is none, or says what can't be."""
        try:
            value = json.loads(text)
        except ValueError as error:
            raise EngineFileError(f"the manifest is not JSON: {error}") from None
        manifest = _decoded(cls, value, "manifest")
        _check(manifest)
        if manifest.encoded() != text:
            raise EngineFileError("the manifest is not written as the compiler writes it")
        return manifest


T = TypeVar("T")


def _decoded(kind: type[T], value: Any, location: str) -> T:
    """A value of JSON as one of `kind`; EngineFileError if it is of another."""
    hints = get_type_hints(kind) if is_dataclass(kind) else {}
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    if not isinstance(value, dict) or list(value) != names:
        raise EngineFileError(f"{location} is {_short(value)}, expected an object with {', '.join(names)}")
    return kind(**{name: _value(hints[name], value[name], f"{location}.{name}") for name in names})


def _value(kind: Any, value: Any, location: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _decoded(kind, value, location)  # type: ignore[arg-type]  # a class of them, not one
    if origin is tuple and isinstance(value, list):
        return tuple(_value(arguments[0], item, f"{location}[{n}]") for n, item in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {key: _value(arguments[1], item, f"{location}.{key}") for key, item in value.items()}
    if origin is types.UnionType and type(value) in arguments:
        return value
    if origin is None and type(value) is kind:
        return value
    raise EngineFileError(f"{location} is {_short(value)}, expected {getattr(kind, '__name__', kind)}")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check(manifest: Manifest) -> None:
    """EngineFileError if the manifest says what can't be, of whatever version it is."""
    for binding in manifest.bindings:
        known = binding.dtype in DTYPES and binding.layout in LAYOUTS and len(binding.shape) <= MAX_DIMS
        if not known or None in binding.shape[1:] or any(size is not None and size < 0 for size in binding.shape):
            raise EngineFileError(f"binding {binding} has a type, a layout or sizes that no binding can have")
    if not (0 <= manifest.engine < len(manifest.scheme)):
        raise EngineFileError(f"engine {manifest.engine} is not one of a group of {len(manifest.scheme)}")
    if not 1 <= manifest.patch <= manifest.max_batch:
        raise EngineFileError(f"patches of {manifest.patch} do not suit batches of up to {manifest.max_batch}")
    for control in manifest.scheme:
        cores = control.core_mask.bit_count()
        whole = 0 < control.core_mask < 1 << MAX_CORES and cores % max(control.cores_per_batch, 1) == 0
        if control.mode not in MODES or not whole or control.cores_per_batch < 1 or control.virtual_device < 0:
            raise EngineFileError(f"the scheme gives {control.name!r} what no engine can have: {control}")
