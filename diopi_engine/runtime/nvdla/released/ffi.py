"""The cffi interface to the released declarations, and the correspondence of errors."""

from __future__ import annotations

from collections.abc import Mapping

import cffi

from diopi_engine.proto import headers, nvdla_released
from diopi_engine.proto.declarations import Enumeration
from diopi_engine.proto.nvdla import Error
from diopi_engine.proto.nvdla_released import DriverError
from diopi_engine.runtime.nvdla.ffi import TABLE

ffi = cffi.FFI()
"""The cffi interface with the declarations of the released headers and the type of the function table."""
ffi.cdef(headers.cffi_declarations(nvdla_released.DECLARATIONS))
ffi.cdef(f"typedef void (*function_t)(void); {TABLE}")

ERRORS: Mapping[Enumeration, DriverError] = {
    **{error: DriverError[error.name] for error in Error if error.name in DriverError.__members__},
    Error.Error_InvalidFile: DriverError.Error_FileReadFailed,
    Error.Error_FileVersion: DriverError.Error_FileReadFailed,
    Error.Error_Internal: DriverError.Error_InvalidState,
}
"""The released error for each error of the driver."""

DRIVER_ERRORS: Mapping[int, Enumeration] = {
    **{int(released): error for error, released in ERRORS.items()},
    int(DriverError.Error_FileReadFailed): Error.Error_InvalidFile,
}
"""The error of the driver for each released error that the driver's functions return."""
