"""Creation of the functions of an exported library, once per process; they live as long as the process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

_lock = threading.RLock()
_filled: dict[int, Any] = {}
"""The functions of each library, by the address of its table."""


def fill_once(address: int, fill: Callable[[int], Any]) -> None:
    """Fill a library's tables at `address` on the first call, and keep the functions that `fill` returns alive."""
    with _lock:
        sys.path[:] = dict.fromkeys(sys.path)  # the library appended its paths without checking for duplicates
        if address not in _filled:
            _filled[address] = fill(address)
