"""Read a loadable from memory without knowing its size, which the interface does not provide."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

from diopi_engine.container import find_archive_size
from diopi_engine.errors import EngineFileError
from diopi_engine.proto.nvdla import Error
from diopi_engine.runtime.errors import InterfaceError

_LARGEST_ROOT_OFFSET = 1 << 16
"""The largest offset of a root table with which bytes are recognized as a FlatBuffer; writers place it near the start.
"""


def read_loadable(address: int) -> bytes:
    """Return the bytes of the loadable at an address.

    Damaged bytes may contain sizes that lead outside of allocated memory. Therefore the operating system reads them,
    which returns an error in this case.

    Args:
        address: the address of the first byte.

    Returns:
        The bytes of the loadable.

    Raises:
        InterfaceError: `Error_InvalidFile` if there is no loadable.
    """
    with open("/proc/self/mem", "rb", buffering=0) as memory:

        def read(offset: int, size: int) -> bytes:
            """Read `size` bytes at an offset from the address; raise EngineFileError if they are not mapped."""
            try:
                data = os.pread(memory.fileno(), size, address + offset)
            except OSError as error:
                raise EngineFileError(f"there is no memory {offset} bytes behind its start: {error}") from None
            if len(data) < size:
                raise EngineFileError(f"there is no memory {offset + len(data)} bytes behind its start")
            return data

        try:
            if _is_flatbuffer(read):
                raise InterfaceError(Error.Error_InvalidFile, _describe_flatbuffer(read(4, 4)))
            return read(0, find_archive_size(read))
        except EngineFileError as error:
            raise InterfaceError(Error.Error_InvalidFile, f"the loadable is damaged: {error}") from error


def _is_flatbuffer(read: Callable[[int, int], bytes]) -> bool:
    """Return whether a loadable is a FlatBuffer, the format of NVDLA's own compiler.

    A FlatBuffer begins with the offset of its root table. The table begins with the distance to its list of fields. The
    list begins with two sizes in bytes: those of the list and of the table.

    Args:
        read: returns a number of bytes (second argument) at an offset (first argument); raises EngineFileError if there
            are fewer.

    Returns:
        Whether the offset, the distance and the sizes are possible.
    """
    (root,) = struct.unpack("<I", read(0, 4))
    if not 4 <= root <= _LARGEST_ROOT_OFFSET or root % 4:
        return False
    try:
        (distance,) = struct.unpack("<i", read(root, 4))
        if not distance or root - distance < 0:
            return False
        list_size, table_size = struct.unpack("<2H", read(root - distance, 4))
    except EngineFileError:
        return False
    return bool(list_size >= 4 and list_size % 2 == 0 and table_size >= 4)


def _describe_flatbuffer(identifier: bytes) -> str:
    """Return the message for a FlatBuffer; `identifier` is its second group of four bytes, which may be letters."""
    name = f" with the identifier {identifier.decode('ascii')!r}" if identifier.isalnum() else ""
    return (
        f"the loadable is a FlatBuffer{name}, the format of the NVDLA compiler's loadables for the NVDLA hardware; "
        "expected an engine file: compile the network with diopi_engine"
    )
