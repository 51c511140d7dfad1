"""Exceptions of the engines in Python."""

from __future__ import annotations


class EngineFileError(Exception):
    """The bytes are not an engine file, or were modified; the message states what was found and what was expected."""


class EngineVersionError(EngineFileError):
    """The engine was compiled by another version of the compiler."""


class CompileError(Exception):
    """A network can't be compiled; the message states the reason."""


class LinkError(Exception):
    """The engines do not fit on the devices for which they are to be linked."""
