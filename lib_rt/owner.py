"""The base classes of all objects of the runtime, which own a handle of the C core and release it once."""

from __future__ import annotations

import sys
from typing import Any, Self
from weakref import ref

from diopi_proto.types import Error
from lib_rt.errors import CallError, GuardError, ReleasedError


class Owner:
    """A context manager that owns a C handle until `close`.

    Closing twice has no effect. Use after closing raises `ReleasedError`.
    """

    __slots__ = ("__weakref__", "_handle")

    _handle: Any

    @property
    def handle(self) -> Any:
        """The C handle, a cffi pointer; raises ReleasedError after `close`."""
        if self._handle is None:
            raise ReleasedError(f"the {type(self).__name__.lower()} is closed")
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether the object is closed."""
        return self._handle is None

    def close(self) -> None:
        """Release the handle.

        Raises:
            CallError: The release failed. If a function of the vendor reported an error, the handle is released anyway.
                If the vendor does not provide the function, nothing is released.
            GuardError: Memory outside a tensor was written; the handle is released.
        """
        if (handle := self._handle) is None:
            return
        try:
            self._release(handle)
        except CallError as error:
            if error.code is Error.ErrorOccurred:
                self._handle = None
            raise
        except GuardError:
            self._handle = None
            raise
        self._handle = None

    def _release(self, handle: Any) -> None:
        """Release the C handle; derived classes implement this."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and not sys.is_finalizing():
            self.close()


class Parent(Owner):
    """An owner of other owners, its children. It has weak references to the children and closes them before itself."""

    __slots__ = ("_children",)

    def __init__(self) -> None:
        self._handle = None
        self._children: dict[int, ref[Owner]] = {}

    def _add(self, child: Owner) -> None:
        """Register an object that must be closed before this object."""
        self._children[id(child)] = ref(child)

    def _remove(self, child: Owner) -> None:
        """Remove a child that was closed from the registered children."""
        self._children.pop(id(child), None)

    def _living_children(self) -> list[Owner]:
        """Return the children to which other references exist."""
        return [child for weak in list(self._children.values()) if (child := weak()) is not None]
