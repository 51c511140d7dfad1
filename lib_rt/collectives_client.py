"""A client of collectives that calls the functions of their table by name, as a program in C does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cffi

from diopi_proto.collectives import FUNCTIONS
from diopi_proto.collectives.c_table import STATUSES, TABLE_VERSION, c_parameters, table_types
from lib_rt.device_runtime_client import MissingFunctionError, TableClient

STATUS_BY_VALUE = {value: name for name, value, _ in STATUSES}
"""The names of the statuses by value."""

NAME_BYTES = 256
"""The size of the memory for the name of a communicator."""

ffi: Any = cffi.FFI()
"""Declares the types of the table."""

ffi.cdef(table_types())


class CollectivesClient(TableClient):
    """Collectives loaded from a library.

    Args:
        path: the path of the library, which exports the table.

    Raises:
        NoDeviceRuntimeError: if the library can't be loaded, or has no table of this version.
    """

    interface = "the collectives"

    def __init__(self, path: Path) -> None:
        super().__init__(path, ffi=ffi, table="Collectives", version=TABLE_VERSION, statuses=STATUS_BY_VALUE)
        self._types = {f.table_entry: [parameter.type for parameter in c_parameters(f)] for f in FUNCTIONS}

    def call(self, name: str, *inputs: Any) -> None:
        """Call a function.

        Args:
            name: the name of the function in the table.
            *inputs: the arguments in order. Addresses and handles are integers; arrays of numbers are lists.

        Raises:
            MissingFunctionError: if the vendor left the function out.
            RuntimeCallError: if the function does not return DICL_SUCCESS.
        """
        if not self.has(name):
            raise MissingFunctionError(name)
        self.call_with(name, [_convert(kind, value) for kind, value in zip(self._types[name], inputs, strict=True)])

    def create_unique_id(self) -> bytes:
        """Return a new unique id."""
        memory = ffi.new("char[]", self._table.uniqueIdBytes)
        self.call("diclGetUniqueId", memory)
        return bytes(ffi.buffer(memory))

    def create_communicator(self, ranks: int, unique_id: bytes, rank: int, device: int) -> int:
        """Return the handle of a new communicator.

        Args:
            ranks: the number of ranks.
            unique_id: the ID that one rank has created, the same on all ranks.
            rank: the rank of this process in the communicator.
            device: the device, or -1 for the current device.
        """
        comm = ffi.new("void**")
        self.call("diclCommInitRank", comm, ranks, ffi.from_buffer(unique_id), rank, device)
        return int(ffi.cast("uintptr_t", comm[0]))

    def communicator_name(self, comm: int) -> str:
        """Return the name of a communicator."""
        memory = ffi.new("char[]", NAME_BYTES)
        self.call("diclGetCommName", memory, NAME_BYTES, comm)
        return str(ffi.string(memory).decode(errors="replace"))


def _convert(kind: str, value: Any) -> Any:
    """Return an argument in the form that cffi passes: integers become pointers where the C type is a pointer."""
    if kind.endswith("*") and isinstance(value, int):
        return ffi.cast(kind, value)
    return ffi.new("size_t[]", value) if isinstance(value, list) else value
