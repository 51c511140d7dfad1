"""A Python vendor with faults that the environment specifies, like the vendor in C in tests/vendors/faulty.

DIOPI_TEST_FAULT has the same form: "diopiSin=exit,diopiCos=hang*,import=interrupt". A place is an operator, `import` or
`device`. At an operator, the fault occurs in the case float32-special, or with a star in every call.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from leaving import IMPORT_FAULTS, raise_error

from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Error
from diopi_test.quality.stub_vendor import StubVendor
from diopi_test.run.isolation.messages import MAGIC
from lib_rt import Context, Device

HANG_SECONDS = 120
"""How long a hanging process sleeps, in seconds: longer than any test waits."""

EXCESSIVE_MIB = 4096
"""An amount of memory in MiB that exceeds the limit of every test."""

LONG_TEXT_BYTES = 20 * 2**20
"""The length in bytes of the text of an error that is too long."""


class NotEvenAnError(BaseException):
    """An exception that `except Exception` does not catch."""


class UntellableError(Exception):
    """An exception whose conversion to text fails."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


def hold_interpreter_lock() -> None:
    """Sleep in C with Python's global lock held, so that no other thread of this process runs."""
    ctypes.PyDLL(None).sleep(HANG_SECONDS)


def block_all_signals() -> None:
    """Hang so that only SIGKILL ends the process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    hold_interpreter_lock()


def recurse() -> None:
    """Overflow the stack."""
    recurse()


def exceed_memory_limit() -> None:
    """Allocate more memory than the limit allows."""
    blocks = [bytearray(b"1") * 2**20 for _ in range(EXCESSIVE_MIB)]
    raise RuntimeError(f"there is no limit: {len(blocks)} MiB")


def leave_thread() -> None:
    """Start a thread that does not end."""
    threading.Thread(target=time.sleep, args=(HANG_SECONDS,)).start()


def leave_child() -> None:
    """Fork a process that does not end."""
    if os.fork() == 0:
        time.sleep(HANG_SECONDS)
        os._exit(0)


def ignore_end_signals() -> None:
    """Ignore the signals that end a process."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def raise_from_alarm() -> None:
    """Set an alarm whose handler raises an exception in whatever code runs at that time."""
    signal.signal(signal.SIGALRM, lambda *_: raise_error(KeyboardInterrupt("late")))
    signal.setitimer(signal.ITIMER_REAL, 0.02)


def print_invalid_text() -> None:
    """Write bytes that are not valid text to both output streams."""
    for stream in (1, 2):
        os.write(stream, b"\xff\xfe\x00\x1b[2J\xed\xa0\x80" * 1000)


def close_streams() -> None:
    """Close both output streams."""
    for stream in (sys.stdout, sys.stderr):
        stream.close()
    for descriptor in (1, 2):
        with suppress(OSError):  # closed by an earlier call
            os.close(descriptor)


def write_to_all_descriptors() -> None:
    """Write to all file descriptors. The first bytes, read as the length of a message, announce a mebibyte."""
    for descriptor in range(3, 1024):
        with suppress(OSError):  # not open, or not for writing
            os.write(descriptor, b"\x00\x10\x00\x00not mine")


def write_start_of_message() -> None:
    """Write to all file descriptors bytes that look like the beginning of a message."""
    for descriptor in range(3, 1024):
        with suppress(OSError):
            os.write(descriptor, MAGIC)


def warn_with_errors() -> None:
    """Turn all warnings into errors."""
    warnings.simplefilter("error")


def raise_floating_errors() -> None:
    """Let NumPy raise floating-point errors."""
    np.seterr(all="raise")


# Faults without a function of their own end the process, raise an exception, or leave something behind.
FAULTS: dict[str, Callable[[], object]] = {
    **IMPORT_FAULTS,  # exit, interrupt, skip, pytest_exit, end, hang
    "exit7": lambda: sys.exit(7),
    "exit_text": lambda: sys.exit("no driver here"),
    "generator_exit": lambda: raise_error(GeneratorExit()),
    "stop_iteration": lambda: raise_error(StopIteration()),
    "cancelled": lambda: raise_error(asyncio.CancelledError()),
    "base": lambda: raise_error(NotEvenAnError("not even an error")),
    "error": lambda: raise_error(RuntimeError("the queue is full")),
    "untellable": lambda: raise_error(UntellableError()),
    "surrogates": lambda: raise_error(RuntimeError("no text: \udcff\ud800")),
    "long": lambda: raise_error(RuntimeError("y" * LONG_TEXT_BYTES)),
    "controls": lambda: raise_error(RuntimeError("\x1b[2J\x1b]0;title\x07 [bold]markup[/bold]\r\n[/] \x7f the end")),
    "xfail": lambda: pytest.xfail("not today"),
    "fail": lambda: pytest.fail("not today"),
    "memory_error": lambda: raise_error(MemoryError()),
    "memory": exceed_memory_limit,
    "recursion": recurse,
    "end7": lambda: os._exit(7),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "terminate": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "abort": os.abort,
    "lock": hold_interpreter_lock,
    "deaf": block_all_signals,
    "fork": os.fork,
    "child": leave_child,
    "thread": leave_thread,
    "atexit": lambda: atexit.register(time.sleep, HANG_SECONDS),
    "chdir": lambda: os.chdir("/"),
    "ignore": ignore_end_signals,
    "alarm": raise_from_alarm,
    "errstate": raise_floating_errors,
    "warnings": warn_with_errors,
    "bytes": print_invalid_text,
    "close": close_streams,
    "stray": write_to_all_descriptors,
    "stray_beginning": write_start_of_message,
}


def execute_fault(place: str, is_special: bool = True) -> None:
    """Execute the fault that the environment specifies for a place.

    Args:
        place: the name of a function, `import` or `device`.
        is_special: whether to execute a fault without a star; a fault with a star is always executed.
    """
    entries = (entry.split("=") for entry in os.environ.get("DIOPI_TEST_FAULT", "").split(",") if entry)
    fault = dict(entries).get(place, "")
    if fault and (is_special or fault.endswith("*")):
        FAULTS[fault.removesuffix("*")]()


class UnrulyVendor(StubVendor):
    """A vendor that writes the expected results and then executes a fault."""

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        code = super().call(name, context, *arguments)
        if code is Error.Success:
            execute_fault(name, self.case is not None and "float32-special" in self.case.id)
        return code

    def open_device(self) -> Device:
        execute_fault("device")
        return super().open_device()


execute_fault("import")
vendor = UnrulyVendor("unruly", "1", HostRuntime().functions(), host_addressable=True)
