"""Check that the values of a manifest are in range and do not contradict each other."""

from __future__ import annotations

from collections.abc import Sequence

from diopi_engine.errors import EngineFileError
from diopi_engine.manifest import DTYPES, LAYOUTS, MAX_CORES, MODES, Binding, Control, EngineManifest, Weight
from diopi_engine.proto.hgrt import MAX_DIMS
from diopi_engine.sizes import sample_bytes

MAX_NAME_BYTES = 1024
"""Maximum length of a name in UTF-8."""

MAX_BYTES = 1 << 48
"""Maximum size in bytes of a binding for the largest batch, of a weight and of local memory: no machine has more."""

_MAX_INT32 = (1 << 31) - 1
"""The largest number of int32, the type of most numbers in the interface."""

_MAX_WEIGHT_DIMS = 32
"""Maximum number of axes of a weight; all versions of NumPy support as many."""


def check_manifest(manifest: EngineManifest) -> None:
    """Raise EngineFileError if the manifest contains values that contradict each other or that no engine can have."""
    _check_names(manifest)
    _check_batches(manifest)
    for binding in manifest.bindings:
        _check_binding(binding, manifest.max_batch)
    for weight in manifest.weights:
        _check_weight(weight)
    if not (0 <= manifest.engine < len(manifest.scheme)):
        raise EngineFileError(
            f"the engine has number {manifest.engine}, expected 0 to {len(manifest.scheme) - 1} in this group"
        )
    for control in manifest.scheme:
        _check_control(control)
    modes = {(control.virtual_device, control.mode) for control in manifest.scheme}
    if len(modes) > len({device for device, _ in modes}):
        raise EngineFileError("the scheme has engines of one device that run in different modes")


def is_valid_name(name: str) -> bool:
    """Return whether a text can be the name of an engine, a binding, a weight or a platform."""
    return name.isprintable() and 0 < len(name.encode(errors="replace")) <= MAX_NAME_BYTES


def _check_names(manifest: EngineManifest) -> None:
    """Raise EngineFileError for names that C can't represent, that a message can't show, or that occur twice."""
    bindings, platforms = [binding.name for binding in manifest.bindings], [*manifest.platforms]
    names = [manifest.name, manifest.group, *bindings, *platforms]
    names += [control.name for control in manifest.scheme] + [weight.name for weight in manifest.weights]
    for name in names:
        if not is_valid_name(name):
            raise EngineFileError(
                f"a name is {name[:60]!r}, expected 1 to {MAX_NAME_BYTES} bytes of printable characters"
            )
    for subject, values in (("bindings", bindings), ("platforms", platforms)):
        if len(set(values)) < len(values):
            raise EngineFileError(f"{subject} have the same name: {', '.join(values[:8])}")
    if not platforms:
        raise EngineFileError("the engine is for no platform, expected at least one")


def _check_batches(manifest: EngineManifest) -> None:
    """Raise EngineFileError if the batch sizes or the order of the bindings are invalid."""
    if not 1 <= manifest.patch <= manifest.max_batch <= _MAX_INT32:
        raise EngineFileError(f"patches of {manifest.patch} do not suit batches of up to {manifest.max_batch}")
    if not manifest.is_divisible and manifest.patch != manifest.max_batch:
        raise EngineFileError(f"patches of {manifest.patch} divide batches, which must be computed as a whole")
    if not manifest.has_batch and manifest.max_batch != 1:
        raise EngineFileError(f"batches of up to {manifest.max_batch} samples have bindings of fixed sizes")
    if manifest.has_batch and not all(None in binding.shape for binding in manifest.bindings):
        raise EngineFileError("some bindings have the batch as first size, and others have fixed sizes")
    directions = [binding.is_input for binding in manifest.bindings]
    if directions != sorted(directions, reverse=True):
        raise EngineFileError("an output precedes an input, expected all inputs first")


def _check_binding(binding: Binding, max_batch: int) -> None:
    """Raise EngineFileError if a binding has an unknown type or layout, or sizes that are out of range."""
    is_known = binding.dtype in DTYPES and binding.layout in LAYOUTS and len(binding.shape) <= MAX_DIMS
    if not is_known or None in binding.shape[1:] or not _are_sizes(binding.shape):
        raise EngineFileError(f"binding {binding} has an invalid type, layout or shape")
    if binding.layout != "LINEAR" and len(binding.shape) != 4:
        raise EngineFileError(f"binding {binding.name} has layout {binding.layout} and {len(binding.shape)} axes")
    if sample_bytes(binding) * max_batch > MAX_BYTES:
        raise EngineFileError(f"binding {binding.name} has more than {MAX_BYTES} bytes for {max_batch} samples")


def _check_weight(weight: Weight) -> None:
    """Raise EngineFileError if a weight has an unknown type or sizes that are out of range."""
    if weight.dtype not in DTYPES or len(weight.shape) > _MAX_WEIGHT_DIMS or not _are_sizes(weight.shape):
        raise EngineFileError(f"weight {weight.name} is {weight.dtype}{[*weight.shape][:8]}, which is invalid")


def _are_sizes(shape: Sequence[int | None]) -> bool:
    """Return whether all sizes of a shape are in range; None stands for the batch."""
    return all(size is None or 0 <= size <= MAX_BYTES for size in shape)


def _check_control(control: Control) -> None:
    """Raise EngineFileError if the entry of a scheme for an engine is invalid."""
    cores = control.core_mask.bit_count()
    valid = (
        control.mode in MODES
        and 0 < control.core_mask < 1 << MAX_CORES
        and 1 <= control.cores_per_batch <= cores
        and cores % control.cores_per_batch == 0
        and 0 <= control.virtual_device <= _MAX_INT32
        and 0 <= control.memory_group <= _MAX_INT32
        and 0 <= control.memory <= MAX_BYTES
    )
    if not valid:
        raise EngineFileError(f"the scheme has invalid values for engine {control.name!r}: {control}")
