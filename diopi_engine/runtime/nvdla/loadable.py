"""Reading a loadable that lies somewhere in memory, of which the interface does not say how large it is."""

from __future__ import annotations

import os

from diopi_engine.container import extent
from diopi_engine.errors import EngineFileError
from diopi_engine.proto.nvdla import Error
from diopi_engine.runtime.errors import CallError


def read_loadable(address: int) -> bytes:
    """The bytes of the loadable at an address. NvError_InvalidFile if there is none.

    What damaged bytes say of their size may lead to where no memory is: the system reads them, and answers an error.
    """
    with open("/proc/self/mem", "rb", buffering=0) as memory:

        def read(offset: int, size: int) -> bytes:
            try:
                data = os.pread(memory.fileno(), size, address + offset)
            except OSError as error:
                raise EngineFileError(f"there is no memory {offset} bytes behind its start: {error}") from None
            if len(data) < size:
                raise EngineFileError(f"there is no memory {offset + len(data)} bytes behind its start")
            return data

        try:
            return read(0, extent(read))
        except EngineFileError as error:
            raise CallError(Error.Error_InvalidFile, f"the loadable is damaged: {error}") from error
