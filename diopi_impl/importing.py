"""Import of vendors, and of functions that prepare vendors, by `module:attribute`."""

from __future__ import annotations

import importlib

from diopi_impl.errors import VendorError, VendorNotFoundError, describe_exception


def import_attribute(path: str, subject: str) -> object:
    """Return the object at `module:attribute`.

    Args:
        path: the module and the attribute.
        subject: the beginning of the message of an error, such as `vendor my_module:vendor`.

    Returns:
        The object.

    Raises:
        VendorNotFoundError: if there is no such module or no such attribute.
        VendorError: if the module raises an exception when it is imported.
        KeyboardInterrupt: if the user interrupts the import.
    """
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        raise VendorNotFoundError(f"{subject}: module {module_name} can't be imported: {error}") from error
    except BaseException as error:  # a module may raise any exception when it is imported, even SystemExit
        raise VendorError(
            f"{subject}: module {module_name} can't be imported: {describe_import_failure(error)}"
        ) from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise VendorNotFoundError(f"{subject}: module {module_name} has no attribute {attribute!r}") from None


def describe_import_failure(error: BaseException) -> str:
    """Return the text of an ImportError, or type and text of another exception."""
    return str(error) if isinstance(error, ImportError) else describe_exception(error)
