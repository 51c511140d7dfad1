"""Cases of functions that a vendor has not registered.

Each case is a function that receives the vendor and opens a device; it raises `RuntimeCaseError` if the vendor
violates the contract that the name of the case states.
"""

from __future__ import annotations

from collections.abc import Callable

from diopi_impl import BaseVendor
from diopi_proto.registration import SERVICES
from diopi_proto.types import Error
from diopi_test.execution.runtime_cases.tools import (
    RuntimeCaseError,
    address_of,
    allocate,
    open_device,
    payload,
    require,
    runtime_case,
)
from lib_rt import CallError, Device, Stream

NBYTES = 64
"""The number of bytes of each block and each copy."""


@runtime_case
def each_missing_function_has_its_own_error(vendor: BaseVendor) -> None:
    """Check the error code of a call that needs an unregistered function, and that the call works otherwise."""
    host = payload(NBYTES)
    with open_device(vendor) as device, allocate(device, NBYTES, NBYTES) as (first, second), Stream(device) as stream:
        spare, unused = Stream(device), device.malloc(NBYTES)
        calls: dict[str, Callable[[], object]] = {
            "stream_create": lambda: Stream(device).close(),
            "stream_sync": stream.synchronize,
            "stream_destroy": spare.close,
            "malloc": lambda: device.free(device.malloc(NBYTES)),
            "free": lambda: device.free(unused),
            "h2d": lambda: stream.h2d(first, address_of(host), NBYTES),
            "d2d": lambda: stream.d2d(second, first, NBYTES),
            "d2h": lambda: stream.d2h(address_of(host), second, NBYTES),
            "last_error": lambda: device.last_error,
        }
        for service in SERVICES:
            _check_missing(device, service.name, service.missing, calls[service.name])
            calls[service.name]()
        stream.synchronize()


def _check_missing(device: Device, name: str, expected: Error, call: Callable[[], object]) -> None:
    """Raise RuntimeCaseError unless a call fails with the expected code while a runtime function is unregistered."""
    try:
        with device.unregistered(name):
            call()
    except CallError as error:
        require(error.code is expected, f"without {name}: {error.code.name}, expected {expected.name}")
    else:
        raise RuntimeCaseError(f"without {name} a call that needs it succeeded, expected {expected.name}")
