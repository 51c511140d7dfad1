"""Vendors with wrong results that try to get them accepted: each interferes with the suite's evaluation."""

from __future__ import annotations

import ctypes
import gc
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_test import checks
from diopi_test.checks import values
from diopi_test.execution import call_record
from diopi_test.execution.verdict import CheckResult
from diopi_test.oracle.records import Expected
from diopi_test.run import run_case
from diopi_test.run.isolation.exchange import Exchange
from diopi_test.run.isolation.messages import frame

Array = np.ndarray[Any, Any]


def do_nothing(result: Array) -> None:
    """Return a wrong result without any interference."""


def replace_numpy(result: Array) -> None:
    """Replace the functions with which arrays are compared."""
    np.abs = np.absolute = lambda array, **_: np.zeros_like(array, dtype=np.float64)  # type: ignore[assignment, misc] - the vendor cheats
    np.array_equal = np.allclose = lambda *_, **__: True  # type: ignore[assignment] - the vendor cheats
    np.isclose = lambda first, *_, **__: np.ones(np.shape(first), bool)  # type: ignore[assignment] - the vendor cheats


def replace_checks(result: Array) -> None:
    """Replace the checks by a check that always passes."""

    def accept(*_: object) -> CheckResult:
        return CheckResult(check="values", passed=True)

    values.check = values.compare = accept  # type: ignore[assignment] - the vendor cheats
    for module in (checks, run_case):
        module.CHECKS = module.CHECKS_OF_RELEASE = module.COMPARISONS = (accept,)  # type: ignore[attr-defined] - the vendor cheats
    call_record.are_bits_equal = lambda *_: True


def find_expected() -> Iterator[Expected]:
    """Yield the expected results that exist in this process."""
    return (entry for entry in gc.get_objects() if isinstance(entry, Expected))


def copy_expected(result: Array) -> None:
    """Copy an expected result of the same shape to the result."""
    for expected in find_expected():
        if expected.values.shape == result.shape:
            np.copyto(result, expected.values, casting="unsafe")


def overwrite_expected(result: Array) -> None:
    """Overwrite all expected results of the same shape with the result."""
    for expected in find_expected():
        wanted = expected.values
        if wanted.shape == result.shape and wanted.strides and wanted.strides[-1] == wanted.itemsize:
            content = result.astype(wanted.dtype)
            ctypes.memmove(wanted.ctypes.data, content.ctypes.data, content.nbytes)


class _File:
    """A file descriptor with the method of a socket that an exchange uses."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def sendall(self, content: bytes) -> None:
        os.write(self._descriptor, content)


OUTCOME = {"outcome": {"verdict": "passed", "message": "", "check_results": []}, "seconds": 0.0, "output": 0}


def forge_outcomes(result: Array) -> None:
    """Write the message of a passed case to all files."""
    for descriptor in range(3, 256):
        with suppress(OSError):
            os.write(descriptor, frame(OUTCOME))


def forge_replies(result: Array) -> None:
    """Write a reply without results to all files, in the form that the suite uses."""
    record = {"tensors": [], "values": {}, "missing": [], "damage": [], "generators": []}
    reply = {
        "record": record,
        "damage": [],
        "unreleased": [0, 0],
        "changes": [],
        "has_forked": False,
        "output": 0,
        "number": "0" * 16,
    }
    for descriptor in range(3, 256):
        with suppress(OSError):
            Exchange(_File(descriptor)).send(json.loads(json.dumps(reply)))  # type: ignore[arg-type] - any file descriptor


def leave(result: Array) -> None:
    """End the process with success."""
    os._exit(0)


def make_vendor(interfere: Callable[[Array], None]) -> Vendor:
    """Return a vendor whose square root is wrong, and that then interferes with the evaluation."""

    def square_root(input: Array) -> Array:
        result = np.full_like(input, 3)
        interfere(result)
        return result

    vendor = Vendor("cheating", "1", HostRuntime().functions(), host_addressable=True)
    vendor.implements("diopiSqrt")(square_root)
    return vendor


WAYS: dict[str, Callable[[Array], None]] = {
    interfere.__name__: interfere
    for interfere in (
        do_nothing,
        replace_numpy,
        replace_checks,
        copy_expected,
        overwrite_expected,
        forge_outcomes,
        forge_replies,
        leave,
    )
}

for name, way in WAYS.items():
    globals()[f"vendor_{name}"] = make_vendor(way)
