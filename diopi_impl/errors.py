"""The exceptions of vendors, and the error codes that the interface returns for exceptions."""

from __future__ import annotations

from diopi_proto.types import Error


class VendorError(Exception):
    """A vendor can't be used, for example because of an unknown name or a signature that contradicts the prototype."""


class VendorNotFoundError(VendorError):
    """No vendor has the requested name, or what has this name is not a vendor."""


class UnsupportedDtypeError(TypeError):
    """The operator exists, but not for these element types."""


def error_code(error: Exception) -> Error:
    """Return the error code for an exception that an implementation raised."""
    if isinstance(error, NotImplementedError):
        return Error.NoImplement
    if isinstance(error, UnsupportedDtypeError):
        return Error.DtypeNotSupported
    return Error.ErrorOccurred


def exception_text(error: BaseException) -> str:
    """Return the text of an exception, even if converting it to a string fails."""
    try:
        return str(error)
    except BaseException:
        return "its text can't be computed"


def describe_exception(error: BaseException) -> str:
    """Return `Type: text` for an exception."""
    return f"{type(error).__name__}: {exception_text(error)}".removesuffix(": ")
