"""`NativeVendor`: a compiled library as a vendor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

from diopi_impl.base import BaseVendor
from diopi_impl.claims import read_claims
from diopi_impl.native.library import Library
from diopi_impl.native.marshal import caller
from diopi_impl.numerics import IEEE, read_numerics_of_library
from diopi_proto.interface import prototypes
from diopi_proto.types import Error
from lib_rt import Context, Device


@final
class NativeVendor(BaseVendor):
    """The vendor that a compiled library implements; operators that the library does not export are not implemented.

    A file next to the library, with the library's name and the suffix `.claims.toml`, contains the claims. Another one,
    with the suffix `.numerics.toml`, declares the library's arithmetic.

    Args:
        path: the path of a `libdiopi_impl.so`.

    Raises:
        VendorError: if the library can't be loaded, or if its claims or its declaration can't be read.
    """

    def __init__(self, path: Path) -> None:
        self._library = Library(path)
        name = self._library.query("diopiGetVendorName")
        version = self._library.query("diopiGetImplVersion")
        claims = read_claims(path.with_suffix(".claims.toml"))
        numerics = read_numerics_of_library(path) or IEEE
        super().__init__(name or path.name, version or "unknown", claims=claims, numerics=numerics)
        self._callers: dict[str, Callable[[Context, Sequence[Any]], Error]] = {}
        self._failure = _UnreachableReason()

    @property
    def device_runtime(self) -> Path | None:
        """The path of the library if it exports the table of a device runtime; otherwise None."""
        return self._library.path if self._library.exports("dipuGetDeviceRuntime") else None

    def has(self, name: str) -> bool:
        """Return whether the vendor implements the standard function `name`."""
        return name in prototypes() and self._library.function(name) is not None

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call the standard function `name` and return its error code; see `BaseVendor.call`."""
        self._failure.text = ""
        call = self._callers.get(name) or self._caller(name)
        if call is None:
            self._failure.text = f"{self._library.path} does not export {name}"
            return Error.NoImplement
        try:
            return call(context, arguments)
        except Exception as error:  # a value that C can't represent, or an invalid error code
            self._failure.text = f"{name}: {error}"
            return Error.ErrorOccurred

    def last_error(self) -> str:
        """Return the message of the latest failed call."""
        return self._failure.text or self._library.query("diopiGetLastErrorString") or ""

    def open_device(self) -> Device:
        """Open and return a device with the library's runtime functions."""
        return self._library.open_device()

    def _caller(self, name: str) -> Callable[[Context, Sequence[Any]], Error] | None:
        """Return the caller of the function called `name`, created at its first call; None if there is none."""
        if self.has(name):
            self._callers[name] = caller(prototypes()[name], self._library.function(name))
        return self._callers.get(name)

    def __repr__(self) -> str:
        return f"<NativeVendor {self.name} {self.version}: {self._library.path}>"


@final
class _UnreachableReason(threading.local):
    """The reason why this thread's latest call did not reach the library; empty if it did."""

    text = ""
