"""Descriptions of the inputs and outputs of a loaded network, NvDlaTensor."""

from __future__ import annotations

from typing import Any

from diopi_engine.manifest import Binding
from diopi_engine.proto.hgrt import DataType, Layout
from diopi_engine.proto.nvdla import MAX_DIMS, NAME_LENGTH, Error
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.execution import binding_shape
from diopi_engine.runtime.nvdla.ffi import bad_parameter, ffi
from diopi_engine.runtime.nvdla.program import binding_bytes


def tensor_fields(binding: Binding, batch: int, max_batch: int) -> dict[str, Any]:
    """Return the fields of the NvDlaTensor that describes a binding with this batch size."""
    shape = binding_shape(binding, batch)
    name = binding.name.encode()[: NAME_LENGTH - 1].decode(errors="ignore").encode()  # no half characters
    return {
        "name": name.ljust(NAME_LENGTH, b"\0"),
        "bufferSize": binding_bytes(binding, batch),
        "dataType": DataType[binding.dtype.upper()].value,  # the numbers of both interfaces are the same
        "dataFormat": Layout[binding.layout].value,
        "numDims": len(shape),
        "dims": [*shape, *[0] * (MAX_DIMS - len(shape))],
        "maxBatch": max_batch if None in binding.shape else 0,
    }


def requested_batch(tensor: Any, binding: Binding, batch: int, max_batch: int) -> int:
    """Return the batch size that a modified NvDlaTensor requests.

    Args:
        tensor: the modified description, a cffi structure.
        binding: the input or output that it describes.
        batch: the current batch size, which is returned if all sizes of the binding are fixed.
        max_batch: the maximum batch size.

    Raises:
        bad_parameter: the batch size is not between 1 and `max_batch`.
        InterfaceError: `Error_NotSupported` if another field is modified.
    """
    requested = tensor.dims[0] if None in binding.shape else batch
    if None in binding.shape and not 1 <= requested <= max_batch:
        raise bad_parameter(f"{binding.name} is set to a batch of {requested}, expected 1 to {max_batch}")
    expected = ffi.new("NvDlaTensor*", tensor_fields(binding, requested, max_batch))
    for field in ("name", "dataType", "dataFormat", "numDims", "dims", "maxBatch"):
        expected_value, actual_value = _comparable(getattr(expected, field)), _comparable(getattr(tensor, field))
        if expected_value != actual_value:
            raise InterfaceError(
                Error.Error_NotSupported, f"{field} of {binding.name} is set to {actual_value}, it is {expected_value}"
            )
    return requested


def _comparable(value: Any) -> Any:
    """Return a field of a cffi structure as bytes, a list or a number, which Python can compare."""
    if not isinstance(value, ffi.CData):
        return value
    return ffi.string(value) if ffi.typeof(value).item is ffi.typeof("char") else list(value)
