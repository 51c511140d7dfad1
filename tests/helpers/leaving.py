"""Vendors whose import raises exceptions that are not errors, and vendors whose device opens late or never."""

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
"""Faults of a module that is imported, by the name in LEAVING_WAY."""


def raise_error(error: BaseException) -> None:
    """Raise an error; usable in expressions."""
    raise error


def record_process() -> None:
    """Create a file with the process number as its name in the folder that the environment names."""
    if folder := os.environ.get("LEAVING_FOLDER"):
        Path(folder, str(os.getpid())).touch()


def hang() -> None:
    """Record the process, then block."""
    record_process()
    time.sleep(600)


def take_time(arguments: dict[str, Any]) -> None:
    """Record the process, then take 0.3 seconds."""
    record_process()
    time.sleep(0.3)


def use_processor() -> None:
    """Use two seconds of CPU."""
    end = time.process_time() + 2
    while time.process_time() < end:
        pass


class OpeningVendor(FaultyVendor):
    """A vendor that does something before it opens its device."""

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
