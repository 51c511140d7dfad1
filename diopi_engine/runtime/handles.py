"""Handles: numbers of the objects in the runtime, which are never reused."""

from __future__ import annotations

import itertools
import threading
from typing import Any, TypeVar, final

from diopi_engine.proto.declarations import Enumeration
from diopi_engine.runtime.errors import InterfaceError

T = TypeVar("T")
"""The class of the objects."""


@final
class Handles:
    """The handles and the objects that they represent.

    Args:
        invalid: the result of a call with an invalid handle.

    Attributes:
        lock: held while objects are created and destroyed, so that objects in use by a call can't be destroyed.
    """

    def __init__(self, invalid: Enumeration) -> None:
        """Create an empty table; `invalid` is the result code of a call with an invalid handle."""
        self._invalid = invalid
        self._numbers = itertools.count(0x1000, 0x10)
        self._objects: dict[int, Any] = {}
        self.lock = threading.RLock()

    def enter(self, instance: Any) -> int:
        """Return a new handle for an object."""
        with self.lock:
            number = next(self._numbers)
            self._objects[number] = instance
            return number

    def find(self, kind: type[T], handle: int) -> T:
        """Return the object of a handle; raise InterfaceError if it does not exist or has another type."""
        value = self._objects.get(handle)
        if not isinstance(value, kind):
            description = "no live object" if value is None else f"a {type(value).__name__}"
            raise InterfaceError(
                self._invalid, f"handle {handle:#x} refers to {description}, expected a {kind.__name__}"
            )
        return value

    def remove(self, removed: Any) -> None:
        """Remove the handle of an object."""
        with self.lock:
            self._objects = {handle: instance for handle, instance in self._objects.items() if instance is not removed}

    def all(self, kind: type[T]) -> list[T]:
        """Return all objects of a type."""
        with self.lock:
            return [instance for instance in self._objects.values() if isinstance(instance, kind)]
