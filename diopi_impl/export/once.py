"""What an exported library calls is made once in a process, which it lives as long as."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

_lock = threading.RLock()
_filled: dict[int, Any] = {}
"""By the address of its table, what each library calls."""


def fill_once(address: int, fill: Callable[[int], Any]) -> None:
    """Fill the tables of a library, which are at `address`, and keep what `fill` returns; nothing a second time."""
    with _lock:
        sys.path[:] = dict.fromkeys(sys.path)  # the library's paths were appended, whether they were there or not
        if address not in _filled:
            _filled[address] = fill(address)
