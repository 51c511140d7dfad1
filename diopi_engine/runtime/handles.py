"""Handles: numbers for what is alive in the runtime, each of which is used once."""

from __future__ import annotations

import itertools
import threading
from typing import Any, TypeVar, final

from diopi_engine.proto.declarations import Enumeration
from diopi_engine.runtime.errors import CallError

T = TypeVar("T")


@final
class Handles:
    """Handles, and what is alive behind them.

    Attributes:
        lock: held while objects are made and destroyed, so that what a call found can't go meanwhile.
    """

    def __init__(self, invalid: Enumeration) -> None:
        """`invalid` is the result of a call with a handle of nothing that it takes."""
        self._invalid = invalid
        self._numbers = itertools.count(0x1000, 0x10)
        self._objects: dict[int, Any] = {}
        self.lock = threading.RLock()

    def enter(self, instance: Any) -> int:
        """A handle for something."""
        with self.lock:
            number = next(self._numbers)
            self._objects[number] = instance
            return number

    def find(self, kind: type[T], handle: int) -> T:
        """What a handle is of; CallError if nothing of that kind is alive behind it."""
        found = self._objects.get(handle)
        if not isinstance(found, kind):
            description = "nothing that is alive" if found is None else f"a {type(found).__name__}"
            raise CallError(self._invalid, f"handle {handle:#x} is of {description}, expected a {kind.__name__}")
        return found

    def remove(self, gone: Any) -> None:
        """Forget the handle of something."""
        with self.lock:
            self._objects = {handle: instance for handle, instance in self._objects.items() if instance is not gone}

    def all(self, kind: type[T]) -> list[T]:
        """Everything of a kind that is alive."""
        with self.lock:
            return [instance for instance in self._objects.values() if isinstance(instance, kind)]
