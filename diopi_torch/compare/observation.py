"""What watches operators from now until it is closed, and writes at its end what it found."""

from __future__ import annotations

import atexit
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self

import torch

from diopi_torch.observing import observe


class Observation(ABC):
    """Has to do with calls of operators as long as it is not closed: a context manager, or `close` it.

    A subclass calls `__init__` last, when it is ready for calls.

    Args:
        operators: which, as `observable` gives them.
    """

    def __init__(self, operators: frozenset[str]) -> None:
        self._lock = threading.Lock()
        self._end: Callable[[], None] | None = observe(operators, self)
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def observe(self, operator: torch._ops.OpOverload, named: Mapping[str, Any], serve: Callable[[], Any]) -> Any:
        """Have an operator done, see to what it does, and give what it gives."""

    def close(self) -> None:
        """End it, and write what it found; nothing if it has ended already. Raises what writing raises."""
        with self._lock:
            end, self._end = self._end, None
        if end is None:
            return
        end()
        atexit.unregister(self.close)
        self._write()

    @abstractmethod
    def _write(self) -> None:
        """Write what was found."""
