"""A client of a device runtime that calls the functions of its table by name, as a program in C does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, final

import cffi

from diopi_proto.device_runtime import FUNCTIONS
from diopi_proto.device_runtime.c_table import STATUSES, TABLE_VERSION, c_parameters, has_result, table_types
from diopi_proto.device_runtime.types import ENUMS
from diopi_proto.vendor_interface import VendorFunction

STATUS_BY_VALUE = {value: name for value, (name, _) in enumerate(STATUSES)}
"""The names of the statuses by value."""

READY = next([name for name, _ in enum.members].index("READY") for enum in ENUMS if enum.name == "EventStatus")
"""The value of `EventStatus::READY`."""

ffi: Any = cffi.FFI()
"""Declares the types of the table."""

ffi.cdef(table_types())

_HANDLE_OUTPUTS = frozenset({"void**", "int32_t*", "float*"})
"""The C types of parameters through which a function returns a value."""


class NoDeviceRuntimeError(Exception):
    """The library can't be loaded or has no table of a device runtime; the message states the reason."""


@final
class RuntimeCallError(Exception):
    """A function of the table did not return DIPU_SUCCESS.

    Attributes:
        function: the name of the function.
        status: the name of the status, or its number if it is not a status of the interface.
        text: the vendor's explanation; empty if there is none.
    """

    def __init__(self, function: str, status: str, text: str) -> None:
        super().__init__(f"{function} returned {status}{f': {text}' if text else ''}")
        self.function = function
        self.status = status
        self.text = text


@final
class MissingFunctionError(Exception):
    """The vendor left a function out.

    Attributes:
        function: the name of the function.
    """

    def __init__(self, function: str) -> None:
        super().__init__(function)
        self.function = function


class TableClient:
    """A table of C functions loaded from a library.

    Args:
        path: the path of the library, which exports the table.
        ffi: declares the types of the table.
        table: the name of the table's type without `dipu`.
        version: the least accepted version of the table.
        statuses: the names of the statuses by value.

    Attributes:
        interface: what messages call the table.

    Raises:
        NoDeviceRuntimeError: if the library can't be loaded, or has no table of at least this version.
    """

    interface: ClassVar[str]

    def __init__(self, path: Path, *, ffi: Any, table: str, version: int, statuses: Mapping[int, str]) -> None:
        try:
            self._library = ffi.dlopen(str(path), ffi.RTLD_NOW)
            self._table = getattr(self._library, f"dipuGet{table}")()
        except (OSError, AttributeError) as error:
            raise NoDeviceRuntimeError(f"{path} can't be used: {error}") from error
        if not self._table or self._table.version < version or self._table.size < ffi.sizeof(f"dipu{table}"):
            raise NoDeviceRuntimeError(f"{path}: the table is not one of version {version} of {self.interface}")
        self._ffi, self._statuses = ffi, statuses

    def has(self, name: str) -> bool:
        """Return whether the vendor implements a function."""
        return bool(getattr(self._table, name))

    def call_with(self, name: str, arguments: Sequence[Any]) -> None:
        """Call a function with arguments of cffi; raise RuntimeCallError if it does not return the status 0."""
        status = getattr(self._table, name)(*arguments)
        if status != 0:
            text = self._ffi.string(self._table.lastErrorText()).decode(errors="replace")
            raise RuntimeCallError(name, self._statuses.get(status, str(status)), text)


class DeviceRuntimeClient(TableClient):
    """A device runtime loaded from a library.

    Args:
        path: the path of the library, which exports the table.

    Raises:
        NoDeviceRuntimeError: if the library can't be loaded, or has no table of this version.
    """

    interface = "the interface"

    def __init__(self, path: Path) -> None:
        super().__init__(path, ffi=ffi, table="DeviceRuntime", version=TABLE_VERSION, statuses=STATUS_BY_VALUE)
        self._functions = {function.table_entry: function for function in FUNCTIONS}
        self._outputs = {name: _output_places(function) for name, function in self._functions.items()}
        self._types = {name: [p.type for p in c_parameters(function)] for name, function in self._functions.items()}

    def call(self, name: str, *inputs: Any) -> Any:
        """Call a function and return what it writes to its output parameter.

        Args:
            name: the name of the function in the table.
            *inputs: the arguments in order, without the output parameter. Pointers and handles are integers.

        Returns:
            The output: an integer for a pointer or handle, a structure, or a number; None if there is no output.

        Raises:
            MissingFunctionError: if the vendor left the function out.
            RuntimeCallError: if the function does not return DIPU_SUCCESS.
        """
        if not self.has(name):
            raise MissingFunctionError(name)
        types, places = self._types[name], self._outputs[name]
        values = iter(inputs)
        arguments = [
            ffi.new(kind) if place in places else _convert(kind, next(values)) for place, kind in enumerate(types)
        ]
        self.call_with(name, arguments)
        return _read(types[places[0]], arguments[places[0]]) if places else None


def _output_places(function: VendorFunction) -> list[int]:
    """Return the places of the output parameters of a function; every function has one or none."""
    parameters = c_parameters(function)
    if has_result(function):
        return [len(parameters) - 1]
    return [place for place, parameter in enumerate(parameters) if parameter.type in _HANDLE_OUTPUTS]


def _convert(kind: str, value: Any) -> Any:
    """Return an argument in the form that cffi passes; integers become pointers where the C type is a pointer."""
    if kind in ("void*", "const void*"):
        return ffi.cast(kind, value)
    return ffi.new("char[]", value.encode()) if kind == "const char*" else value


def _read(kind: str, output: Any) -> Any:
    """Return the value of an output parameter."""
    return int(ffi.cast("uintptr_t", output[0])) if kind == "void**" else output[0]
