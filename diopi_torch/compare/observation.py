"""The base class of observers of operator calls, which collect data until they are closed, and then write files."""

from __future__ import annotations

import atexit
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self

import torch

from diopi_torch.observing import observe


class Observation(ABC):
    """An observer of operator calls; use it as a context manager or call `close`.

    A subclass calls `__init__` last, when it is ready for calls.

    Args:
        operators: the names of the operators, as returned by `find_observable_operators`.
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
        """Run an operator, collect data about the call, and return the operator's result.

        Args:
            operator: the operator.
            named: the arguments of the call by name.
            serve: a function that runs the operator on the device and returns its result.
        """

    def close(self) -> None:
        """Stop observing and write the collected data; do nothing if the observer is already closed."""
        with self._lock:
            end, self._end = self._end, None
        if end is None:
            return
        end()
        atexit.unregister(self.close)
        self._write_findings()

    @abstractmethod
    def _write_findings(self) -> None:
        """Write the collected data; called once when the observer is closed."""
