"""The Python side of `libnvdla_runtime.so` with the released interface."""

from __future__ import annotations

from diopi_engine.proto.nvdla_released import ERROR_TYPE, METHODS, PORTABILITY, DriverError
from diopi_engine.runtime.errors import ResultCodes
from diopi_engine.runtime.nvdla.functions import layer_functions, method_functions
from diopi_engine.runtime.nvdla.released.calls import CALLS
from diopi_engine.runtime.nvdla.released.ffi import ERRORS, ffi
from diopi_engine.runtime.nvdla.released.layer import ReleasedLayer
from diopi_engine.runtime.nvdla.service import DriverInterface, serve_interface

_INTERFACE = DriverInterface(
    ffi=ffi,
    functions=[*layer_functions(PORTABILITY), *method_functions(METHODS, ERROR_TYPE)],
    calls=CALLS,
    layer=ReleasedLayer,
    layer_size=len(PORTABILITY),
    error_type=ERROR_TYPE,
    codes=ResultCodes(DriverError.Success, DriverError.Error_InsufficientMemory, DriverError.Error_InvalidState),
    errors=ERRORS,
)
"""The functions, implementations and types of the released interface."""


def serve(address: int) -> None:
    """Fill the function table of the library whose `struct nvdla_exported` is at `address`, once per process."""
    serve_interface(_INTERFACE, address)
