"""The errors a vendor raises, and the code each becomes at the interface."""

from __future__ import annotations

from diopi_proto.types import Error


class VendorError(Exception):
    """A vendor that can't be used as described: an unknown name, a signature that is not the prototype's."""


class VendorNotFoundError(VendorError):
    """There is no vendor of that name; nothing of one was run."""


class UnsupportedDtypeError(TypeError):
    """The operator exists, but not for these element types."""


def error_code(error: Exception) -> Error:
    """What the interface answers when an implementation raised `error`."""
    if isinstance(error, NotImplementedError):
        return Error.NoImplement
    if isinstance(error, UnsupportedDtypeError):
        return Error.DtypeNotSupported
    return Error.ErrorOccurred


def text_of(error: BaseException) -> str:
    """The text of an exception, whatever happens when it is asked for it."""
    try:
        return str(error)
    except BaseException:
        return "its text can't be made"


def described(error: BaseException) -> str:
    """`Type: text` of an exception."""
    return f"{type(error).__name__}: {text_of(error)}".removesuffix(": ")
