"""Exceptions of the runtime."""

from __future__ import annotations

from diopi_proto.types import Error


class CallError(RuntimeError):
    """A function of the runtime returned an error code.

    Attributes:
        code: The error code.
        text: The runtime's explanation.
    """

    def __init__(self, code: Error, text: str) -> None:
        super().__init__(f"{code.name}: {text}" if text else code.name)
        self.code = code
        self.text = text


class GuardError(RuntimeError):
    """Memory just outside a tensor's storage, in its guard zone, was written.

    Attributes:
        offset: Position of the first damaged byte, counted from the start of the storage; negative before it.
    """

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(text)
        self.offset = offset


class ReleasedError(RuntimeError):
    """An object was used after it, or the object that owns it, was closed."""


class ForeignObjectError(ValueError):
    """An object of one device was passed to another device."""


class LibraryNotFoundError(ImportError):
    """A compiled library of the project, such as `libdiopirt.so`, was not found."""
