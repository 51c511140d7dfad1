"""Descriptions of the inputs and outputs of a loaded network, the released NvDlaTensor."""

from __future__ import annotations

from math import prod
from typing import Any

from diopi_engine.manifest import Binding
from diopi_engine.proto.nvdla import Error
from diopi_engine.proto.nvdla_released import (
    NAME_LENGTH,
    STRIDES,
    ReleasedDataFormat,
    ReleasedDataType,
    ReleasedPixelFormat,
)
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.execution import binding_shape
from diopi_engine.runtime.nvdla.ffi import bad_parameter
from diopi_engine.runtime.nvdla.program import binding_bytes
from diopi_engine.runtime.nvdla.released.ffi import ffi
from diopi_engine.sizes import numpy_type

_TYPES = {
    "float32": ReleasedDataType.FLOAT,
    "float16": ReleasedDataType.HALF,
    "int16": ReleasedDataType.INT16,
    "int8": ReleasedDataType.INT8,
}
"""The element types that the interface can name, by their names in NumPy."""


def released_type(binding: Binding) -> ReleasedDataType:
    """Return the element type of a binding, or UNKNOWN if the interface has no name for it."""
    return _TYPES.get(binding.dtype, ReleasedDataType.UNKNOWN)


def tensor_fields(binding: Binding, batch: int) -> dict[str, Any]:
    """Return the fields of the NvDlaTensor that describes a binding with this batch size.

    Args:
        binding: the binding.
        batch: the size of the batch.

    Returns:
        The fields by name. Sizes that the tensor lacks are 1. If there are more than four sizes, the last field has the
        product of the fourth one and all that follow.
    """
    is_nhwc = binding.layout == "NHWC"
    sizes = [*binding_shape(binding, batch), 1, 1, 1, 1]
    first, *middle = sizes[:3]
    last = prod(sizes[3:])
    n, c, h, w = (first, last, *middle) if is_nhwc else (first, *middle, last)
    element = numpy_type(binding.dtype).itemsize
    line = element * (c * w if is_nhwc else w)
    strides = [element, line, line * h, element * c * h * w]
    return {
        "name": binding.name.encode()[:NAME_LENGTH].decode(errors="ignore").encode().ljust(NAME_LENGTH + 1, b"\0"),
        "bufferSize": binding_bytes(binding, batch),
        "dims": {"n": n, "c": c, "h": h, "w": w},
        "dataFormat": ReleasedDataFormat.NHWC if is_nhwc else ReleasedDataFormat.NCHW,
        "dataType": released_type(binding),
        "dataCategory": 0,
        "pixelFormat": ReleasedPixelFormat.FEATURE,
        "pixelMapping": 0,
        "stride": [*strides, *[0] * (STRIDES - len(strides))],
    }


def requested_batch(tensor: Any, binding: Binding, batch: int, max_batch: int) -> int:
    """Return the batch size that a modified NvDlaTensor requests; its `bufferSize` is ignored.

    Raises:
        bad_parameter: the batch size is not between 1 and `max_batch`.
        InterfaceError: `Error_NotSupported` if another field is modified.
    """
    requested = tensor.dims.n if None in binding.shape else batch
    if None in binding.shape and not 1 <= requested <= max_batch:
        raise bad_parameter(f"{binding.name} is set to a batch of {requested}, expected 1 to {max_batch}")
    expected: Any = ffi.new("NvDlaTensor*", tensor_fields(binding, requested))
    expected.bufferSize = tensor.bufferSize
    fields = [field for field, _ in ffi.typeof("NvDlaTensor").fields or ()]
    for field in fields:
        if _bytes(expected, field) != _bytes(tensor, field):
            raise InterfaceError(Error.Error_NotSupported, f"{field} of {binding.name} can't be changed")
    return requested


def _bytes(tensor: Any, field: str) -> bytes:
    """Return the bytes of a field of an NvDlaTensor."""
    return bytes(ffi.buffer(ffi.addressof(tensor[0], field)))
