"""The Python side of an exported library: create the functions that call the vendor.

The C library imports this module and calls `serve` with the address of its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from diopi_impl.export.once import fill_once
from diopi_impl.export.receive import Receiver
from diopi_impl.export.source import implementation_type
from diopi_impl.plugins import find_vendor
from diopi_impl.vendor import Vendor
from diopi_proto.headers import pointer_type
from diopi_proto.interface import lookup, runtime_prototypes
from diopi_proto.registration import SERVICES
from diopi_proto.types import Error
from lib_rt.borrowed import BorrowedDevice
from lib_rt.device import make_callbacks
from lib_rt.errors import CallError
from lib_rt.library import ffi, read_declarations, text

ffi.cdef("typedef void (*function_t)(void);" + read_declarations(Path(__file__).with_name("exported.h")))


def serve(address: int) -> None:
    """Fill the tables of the library whose `struct diopi_exported` is at `address`, on the first call only."""
    fill_once(address, _fill)


def _fill(address: int) -> list[Any]:
    """Fill the tables and return their functions, which must live as long as the process."""
    exported: Any = ffi.cast("struct diopi_exported*", address)
    vendor = find_vendor(text(exported.vendor))
    assert isinstance(vendor, Vendor)
    services = make_callbacks(vendor.runtime)
    for number, service in enumerate(SERVICES):
        exported.services[number] = ffi.cast("function_t", services.get(service.name, 0))
    device = BorrowedDevice(vendor.runtime, _api(exported.runtime), host_addressable=vendor.host_addressable)
    operators = [_operator(vendor, name, device, exported.fail) for name in _names(exported.operators)]
    for number, operator in enumerate(operators):
        exported.implementations[number] = ffi.cast("function_t", operator)
    return [services, operators]


def _names(texts: Any) -> Iterator[str]:
    """Yield the strings of a NULL-terminated C array."""
    while texts[0]:
        yield text(texts[0])
        texts += 1


def _operator(vendor: Vendor, name: str, device: BorrowedDevice, fail: Any) -> Any:
    """Return the C function that calls the implementation of an operator.

    Args:
        vendor: The vendor.
        name: The name of the operator.
        device: The device for which the function is called.
        fail: A function that receives the reason why a call fails, as bytes.
    """
    prototype = lookup(name)
    receiver = Receiver(prototype, vendor, device, lambda reason: fail(reason.encode()))
    return ffi.callback(implementation_type(prototype), receiver, error=Error.ErrorOccurred)


def _api(functions: Any) -> SimpleNamespace:
    """Return the runtime functions of the framework by name; they raise CallError if they fail.

    Args:
        functions: the table of the library with the addresses of the functions, in the order of their prototypes.
    """
    named = enumerate(runtime_prototypes().values())
    return SimpleNamespace(
        **{p.name: _raise_on_error(p.name, ffi.cast(pointer_type(p), functions[number])) for number, p in named}
    )


_DEFAULTS = {"diopiIsTensorSparse": lambda handle, result: 0}
"""Replacements of newer functions that a framework may lack: without them no tensor is sparse."""


def _raise_on_error(name: str, function: Any) -> Callable[..., int]:
    """Return a function of the framework that raises CallError if it fails or is missing."""

    def raise_not_implemented(*arguments: Any) -> int:
        """Raise CallError, because the framework lacks the function."""
        raise CallError(Error.NoImplement, f"the framework has no {name}")

    def call(*arguments: Any) -> int:
        """Call the function; raise CallError if it returns an error code."""
        if code := function(*arguments):
            raise CallError(Error.ErrorOccurred, f"{name} returned {code}")
        return 0

    return call if function else _DEFAULTS.get(name, raise_not_implemented)
