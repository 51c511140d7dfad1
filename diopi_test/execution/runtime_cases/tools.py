"""Helper functions of the runtime cases: an open device, memory on the device, and bytes on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from diopi_impl import BaseVendor
from lib_rt import Device

Bytes = NDArray[np.uint8]
"""Bytes in host memory."""


class RuntimeCaseError(Exception):
    """A runtime function violated its contract. The message states what it did and what was expected."""


@final
@dataclass(frozen=True)
class RuntimeCase:
    """A case of the runtime.

    Attributes:
        name: the name of the case, which is the label in its ID.
        run: runs the case on a vendor; raises an error if a runtime function of the vendor violates its contract.
    """

    name: str
    run: Callable[[BaseVendor], None]


RUNTIME = "runtime"
"""The word that replaces the function in the IDs of cases of the runtime."""

RUNTIME_CASES: list[RuntimeCase] = []
"""All cases of the runtime, in the order in which the modules register them."""


def runtime_case(function: Callable[[BaseVendor], None]) -> Callable[[BaseVendor], None]:
    """Return the decorated function unchanged, after adding it to `RUNTIME_CASES`; its name is the name of the case."""
    RUNTIME_CASES.append(RuntimeCase(function.__name__, function))
    return function


def require(condition: bool, message: str) -> None:
    """Raise RuntimeCaseError with this message unless `condition` is true."""
    if not condition:
        raise RuntimeCaseError(message)


_failures: list[Exception] = []
"""The exceptions of failed cases, which are never released.

Copies may still be running after a failure. The frames of the exceptions refer to the host memory to which the copies
write, so that this memory is not released."""


@contextmanager
def open_device(vendor: BaseVendor) -> Iterator[Device]:
    """Return a context manager that opens the vendor's device and closes it at the end."""
    device = vendor.open_device()
    try:
        yield device
    except Exception as error:
        _failures.append(error)
        raise
    finally:
        device.close()


@contextmanager
def allocate(device: Device, *sizes: int) -> Iterator[list[int]]:
    """Allocate blocks of `sizes` bytes, yield their addresses, and free them at the end."""
    with ExitStack() as stack:
        addresses = []
        for nbytes in sizes:
            addresses.append(device.malloc(nbytes))
            stack.callback(device.free, addresses[-1])
        yield addresses


def address_of(array: Bytes) -> int:
    """Return the address of the first byte."""
    return int(array.ctypes.data)


def payload(nbytes: int, seed: int = 0) -> Bytes:
    """Return `nbytes` random bytes below 128, for a copy. `initial_contents` has only bytes from 128 on."""
    return np.random.default_rng((nbytes, seed)).integers(0, 128, nbytes, np.uint8)


def initial_contents(nbytes: int) -> Bytes:
    """Return `nbytes` random bytes from 128 on, for memory into which a `payload` will be copied."""
    return np.random.default_rng(nbytes).integers(128, 256, nbytes, np.uint8)


def require_equal(subject: str, actual: Bytes, expected: Bytes) -> None:
    """Raise RuntimeCaseError unless the bytes are equal; the message begins with `subject`, which names the bytes."""
    differing = np.flatnonzero(actual != expected)
    if differing.size:
        i = int(differing[0])
        raise RuntimeCaseError(
            f"{subject}: {differing.size} of {actual.size} bytes are wrong, the first at {i}: "
            f"{actual[i]:#04x}, expected {expected[i]:#04x}"
        )


def require_text(subject: str, text: object, *, may_be_empty: bool = False) -> None:
    """Raise RuntimeCaseError unless `text` is valid UTF-8 text that is not blank, or may be empty."""
    require(isinstance(text, str), f"{subject} is a {type(text).__name__}, expected text")
    require(may_be_empty or bool(str(text).strip()), f"{subject} is empty")
    require("\N{REPLACEMENT CHARACTER}" not in str(text), f"{subject} is not UTF-8: {text!r}")
