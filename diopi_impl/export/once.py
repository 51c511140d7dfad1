"""Create the Python functions that an exported library calls, once per process; they live as long as the process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

_lock = threading.RLock()
"""Protects `_filled`, because several threads may make the first call."""

_filled: dict[int, Any] = {}
"""The functions of each library, by the address of its table."""


def fill_once(address: int, fill: Callable[[int], Any]) -> None:
    """Fill the function tables of a library on its first call.

    Args:
        address: the address of the tables.
        fill: writes the addresses of functions to the tables, and returns the functions, which stay alive.
    """
    with _lock:
        sys.path[:] = dict.fromkeys(sys.path)  # the library appended its paths without checking for duplicates
        if address not in _filled:
            _filled[address] = fill(address)
