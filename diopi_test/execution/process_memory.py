"""The memory of the process and of its device: measured in long series of calls, and released after large calls."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, final

from lib_rt import Device

STATUS = Path("/proc/self/status")
"""The file in which Linux reports the memory of a process. Other systems don't report it."""

RESIDENT: Final = "resident memory of the process"
WRITABLE: Final = "writable address space of the process"
ALLOCATED: Final = "memory allocated with malloc"
DEVICE_BYTES: Final = "bytes of tensors on the device"
DEVICE_BLOCKS: Final = "blocks of device memory"
"""The names of the measured quantities. The last one is a number of blocks, the others are numbers of bytes."""

_KIBIBYTES: Mapping[str, tuple[str, ...]] = {RESIDENT: ("RssAnon", "RssShmem"), WRITABLE: ("VmData",)}
"""The lines of `STATUS` whose sum is a quantity. Pages of files, such as libraries, don't count."""


@final
class _MallocInfo(ctypes.Structure):
    """The C structure `mallinfo2`: what the allocator of the C library has allocated and freed."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in [
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        ]
    )


def measure_memory(device: Device) -> Mapping[str, int]:
    """Return the memory of this process and of a device by the names of the quantities that the system reports."""
    gc.collect()
    measured = {DEVICE_BYTES: device.live_bytes, DEVICE_BLOCKS: device.allocations}
    if STATUS.exists():
        lines = dict(line.split(":", 1) for line in STATUS.read_text("ascii", "replace").splitlines() if ":" in line)
        for quantity, names in _KIBIBYTES.items():
            measured[quantity] = sum(int(lines.get(name, "0 kB").split()[0]) << 10 for name in names)
    if (malloc_info := _find_malloc_info()) is not None:
        info = malloc_info()
        measured[ALLOCATED] = info.uordblks + info.hblkhd
    return measured


LARGE_BYTES = 2**20
"""If the arrays of a case have at least this many bytes, the process gives freed memory back to the system after it."""


def release_freed_memory(used_bytes: int) -> None:
    """Give memory that the process has freed back to the system, if a case used at least `LARGE_BYTES`.

    The allocator of glibc keeps freed memory for later calls. Arrays of changing sizes leave gaps that later arrays do
    not fit in, so that a process of hundreds of large cases grows. Small cases reuse the memory, which costs less.

    Args:
        used_bytes: the size of the arrays of the case in bytes.
    """
    if used_bytes >= LARGE_BYTES and (malloc_trim := _find_c_function("malloc_trim")) is not None:
        malloc_trim(ctypes.c_size_t(0))


def _find_malloc_info() -> Any:
    """Return the function `mallinfo2` of the C library; None if it has none."""
    function = _find_c_function("mallinfo2")
    if function is not None:
        function.restype = _MallocInfo
    return function


@cache
def _find_c_function(name: str) -> Any:
    """Return a function of the C library; None if it has none with this name."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
