"""Read a loadable from memory without knowing its size, which the interface does not provide."""

from __future__ import annotations

import os
import struct

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
        InterfaceError: NvError_InvalidFile if there is no loadable.
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
            _reject_flatbuffer(read(0, 8))
            return read(0, find_archive_size(read))
        except EngineFileError as error:
            raise InterfaceError(Error.Error_InvalidFile, f"the loadable is damaged: {error}") from error


def _reject_flatbuffer(start: bytes) -> None:
    """Raise NvError_InvalidFile if the first 8 bytes are those of a FlatBuffer, the format of NVDLA's own compiler.

    A FlatBuffer begins with the offset of its root table, a multiple of 4, and an identifier of four letters.

    Args:
        start: the first 8 bytes of a loadable.

    Raises:
        InterfaceError: NvError_InvalidFile, with a message that names the format and the identifier.
    """
    offset, identifier = struct.unpack("<I4s", start)
    if 8 <= offset <= _LARGEST_ROOT_OFFSET and offset % 4 == 0 and identifier.isalnum():
        name = identifier.decode("ascii")
        raise InterfaceError(
            Error.Error_InvalidFile,
            f"the loadable is a FlatBuffer with the identifier {name!r}, the format of the NVDLA compiler's loadables "
            "for the NVDLA hardware; expected an engine file: compile the network with diopi_engine",
        )
