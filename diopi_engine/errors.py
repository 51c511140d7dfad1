"""What goes wrong with engines in Python."""

from __future__ import annotations


class EngineFileError(Exception):
    """Bytes are no engine, or not what was written; the message says what was found and what was expected."""


class EngineVersionError(EngineFileError):
    """The engine was made by another version of the compiler."""


class CompileError(Exception):
    """A network can't be compiled; the message says what of it."""


class LinkError(Exception):
    """Engines don't fit the devices they are to be linked for."""
