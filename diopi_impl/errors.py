"""The errors a vendor raises, and the code each becomes at the interface."""

from __future__ import annotations

from diopi_proto.types import Error


class VendorError(Exception):
    """A vendor that can't be used as described: an unknown name, a signature that is not the prototype's."""


class UnsupportedDtypeError(TypeError):
    """The operator exists, but not for these element types."""


def error_code(error: Exception) -> Error:
    """What the interface answers when an implementation raised `error`."""
    if isinstance(error, NotImplementedError):
        return Error.NoImplement
    if isinstance(error, UnsupportedDtypeError):
        return Error.DtypeNotSupported
    return Error.ErrorOccurred
