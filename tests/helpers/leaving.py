"""A vendor module whose import ends or blocks the process, and vendors whose device opens late or never.

Environment variables control the module. LEAVING_WHERE states which imports execute a fault (see `is_import_faulty`).
LEAVING_WAY is the name of the fault in `IMPORT_FAULTS`, and LEAVING_FOLDER is a folder that the processes share.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faulty import FaultyVendor

from lib_rt import Device

IMPORT_FAULTS = {
    "exit": lambda: raise_error(SystemExit(0)),
    "interrupt": lambda: raise_error(KeyboardInterrupt()),
    "skip": lambda: pytest.skip("not today", allow_module_level=True),
    "pytest_exit": lambda: pytest.exit("enough", returncode=0),
    "end": lambda: os._exit(0),
    "hang": lambda: hang(),
}
"""What a faulty import does instead of returning, by name."""


def raise_error(error: BaseException) -> None:
    """Raise an error; usable in expressions."""
    raise error


def record_process() -> None:
    """Create an empty file in LEAVING_FOLDER, named after this process's number, for tests that count processes."""
    if folder := os.environ.get("LEAVING_FOLDER"):
        Path(folder, str(os.getpid())).touch()


def hang() -> None:
    """Record the process, then sleep for longer than any test waits."""
    record_process()
    time.sleep(600)


def take_time(arguments: dict[str, Any]) -> None:
    """Record the process, then sleep for 0.3 seconds. It is the corruption of a vendor whose results are correct."""
    record_process()
    time.sleep(0.3)


def use_processor() -> None:
    """Use two seconds of CPU."""
    end = time.process_time() + 2
    while time.process_time() < end:
        pass


class OpeningVendor(FaultyVendor):
    """A correct vendor that calls `before` before it opens its device."""

    def __init__(self, name: str, before: Callable[[], None]) -> None:
        super().__init__(name, lambda _: None)
        self._before = before

    def open_device(self) -> Device:
        self._before()
        return super().open_device()


def is_import_faulty() -> bool:
    """Return whether this import executes a fault, as LEAVING_WHERE specifies.

    Returns:
        `first`: True for every import. `later`: True for all imports except the first one of all processes. Without
        the variable: False.
    """
    match os.environ.get("LEAVING_WHERE"):
        case "first":
            return True
        case "later":
            try:
                Path(os.environ["LEAVING_FOLDER"], "loaded").touch(exist_ok=False)
            except FileExistsError:
                return True
    return False


if is_import_faulty():
    IMPORT_FAULTS[os.environ["LEAVING_WAY"]]()

slowly = FaultyVendor("slowly", take_time)
opening_busily, opening_never = OpeningVendor("busily", use_processor), OpeningVendor("never", hang)
