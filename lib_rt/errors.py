"""What can go wrong in the runtime, as exceptions."""

from __future__ import annotations

from diopi_proto.types import Error


class CallError(RuntimeError):
    """The runtime answered an error code.

    Attributes:
        code: the code.
        text: the runtime's explanation.
    """

    def __init__(self, code: Error, text: str) -> None:
        super().__init__(f"{code.name}: {text}" if text else code.name)
        self.code = code
        self.text = text


class GuardError(RuntimeError):
    """Memory outside a tensor was written.

    Attributes:
        offset: first damaged byte, counted from the start of the storage; negative before it.
    """

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(text)
        self.offset = offset


class ReleasedError(RuntimeError):
    """An object was used after it, or what it lives on, had been closed."""


class ForeignObjectError(ValueError):
    """Something of one device was given to another."""


class LibraryNotFoundError(ImportError):
    """`libdiopirt.so` is not where it was installed."""
