"""What all objects of the runtime have in common: they own a handle of the C core, and release it once."""

from __future__ import annotations

import sys
from typing import Any, Self
from weakref import ref

from diopi_proto.types import Error
from lib_rt.errors import CallError, GuardError, ReleasedError


class Owner:
    """Owns a handle until `close`; a context manager. Closing twice is fine, use after closing a `ReleasedError`."""

    __slots__ = ("__weakref__", "_handle")

    _handle: Any

    @property
    def handle(self) -> Any:
        """The C handle, a cffi pointer."""
        if self._handle is None:
            raise ReleasedError(f"the {type(self).__name__.lower()} is closed")
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._handle is None

    def close(self) -> None:
        """Release the handle.

        CallError when the vendor lacks a function this needs; then nothing was released. Any other error is
        raised after the release.
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
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and not sys.is_finalizing():
            self.close()


class Parent(Owner):
    """An owner on which others live. It refers to them weakly, and closes them before itself."""

    __slots__ = ("_children",)

    def __init__(self) -> None:
        self._handle = None
        self._children: dict[int, ref[Owner]] = {}

    def _add(self, child: Owner) -> None:
        self._children[id(child)] = ref(child)

    def _remove(self, child: Owner) -> None:
        self._children.pop(id(child), None)

    def _living(self) -> list[Owner]:
        """The children that somebody else still refers to."""
        return [child for weak in list(self._children.values()) if (child := weak()) is not None]
