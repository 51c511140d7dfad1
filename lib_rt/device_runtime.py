"""The device runtime of the built-in device, a compiled library that vendors and programs can compare with.

These environment variables configure it in a process:

- `DIOPI_DEVICE_COUNT`: the number of devices, 0 to 16; by default 2.
- `DIOPI_DEVICE_MEMORY`: the memory of a device in MiB; by default 2048.
- `DIOPI_DEVICE_DELAY`: the time in microseconds that each copy and fill waits before it starts; by default 0. With a
  delay, a program that does not synchronize fails more often.
- `DIOPI_DEVICE_RUNTIME`: the path of another library to use instead.
"""

from __future__ import annotations

from pathlib import Path

from lib_rt.installed import find_library

NAME = "libdiopi_device_runtime.so"
"""The file name of the library."""


def find_device_runtime() -> Path:
    """Return the path of the library; raise LibraryNotFoundError if it was not built."""
    return find_library(NAME, "DIOPI_DEVICE_RUNTIME")
