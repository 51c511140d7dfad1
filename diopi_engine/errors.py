"""Exceptions of the engines in Python."""

from __future__ import annotations


class EngineFileError(Exception):
    """Bytes are not an engine or were modified; the message says what was found and what was expected."""


class EngineVersionError(EngineFileError):
    """The engine was compiled by another version of the compiler."""


class CompileError(Exception):
    """A network can't be compiled; the message states the reason."""


class LinkError(Exception):
    """Engines do not fit the devices for which they are to be linked."""
