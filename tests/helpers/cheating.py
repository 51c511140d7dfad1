"""Vendors with wrong results that try to have them accepted by interfering with the suite's evaluation.

`run/isolation/test_separation.py` runs each of them as `cheating:vendor_NAME` and asserts that no case passes: the
evaluation takes place in another process than the vendor.
"""

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


# Each of the following functions is a way to interfere. The vendor calls it with the wrong result, an array that the
# function may change in place.


def do_nothing(result: Array) -> None:
    """Leave the wrong result as it is, without any interference."""


def replace_numpy(result: Array) -> None:
    """Replace the functions of NumPy that compare arrays by functions that find no differences."""
    np.abs = np.absolute = lambda array, **_: np.zeros_like(array, dtype=np.float64)  # type: ignore[assignment, misc] - the vendor cheats
    np.array_equal = np.allclose = lambda *_, **__: True  # type: ignore[assignment] - the vendor cheats
    np.isclose = lambda first, *_, **__: np.ones(np.shape(first), bool)  # type: ignore[assignment] - the vendor cheats


def replace_checks(result: Array) -> None:
    """Replace the checks of the suite by a check that always passes."""

    def accept(*_: object) -> CheckResult:
        return CheckResult(check="values", passed=True)

    values.check = values.compare = accept  # type: ignore[assignment] - the vendor cheats
    for module in (checks, run_case):
        module.CHECKS = module.CHECKS_OF_RELEASE = module.COMPARISONS = (accept,)  # type: ignore[attr-defined] - the vendor cheats
    call_record.are_bits_equal = lambda *_: True


def find_expected() -> Iterator[Expected]:
    """Yield the objects with expected results that exist in this process."""
    return (entry for entry in gc.get_objects() if isinstance(entry, Expected))


def copy_expected(result: Array) -> None:
    """Copy an expected result of the same shape to the result."""
    for expected in find_expected():
        if expected.values.shape == result.shape:
            np.copyto(result, expected.values, casting="unsafe")


def overwrite_expected(result: Array) -> None:
    """Overwrite all expected results of the same shape with the result."""
    for expected in find_expected():
        values = expected.values
        if values.shape == result.shape and values.strides and values.strides[-1] == values.itemsize:
            content = result.astype(values.dtype)
            ctypes.memmove(values.ctypes.data, content.ctypes.data, content.nbytes)


class _File:
    """A file descriptor with the one method of a socket that `Exchange` calls, for sending to any descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def sendall(self, content: bytes) -> None:
        os.write(self._descriptor, content)


OUTCOME = {"outcome": {"verdict": "passed", "message": "", "check_results": []}, "seconds": 0.0, "output": 0}
"""The message with which an evaluator tells the runner that a case passed."""


def forge_outcomes(result: Array) -> None:
    """Write the message of a passed case to all open file descriptors, one of which may lead to the runner."""
    for descriptor in range(3, 256):
        with suppress(OSError):
            os.write(descriptor, frame(OUTCOME))


def forge_replies(result: Array) -> None:
    """Write the reply of a call without result tensors to all open file descriptors.

    The reply has the form in which a worker sends the results of a call to the evaluator. An evaluator that used the
    reply would find nothing wrong.
    """
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


def exit_with_success(result: Array) -> None:
    """End the process of the vendor with exit status 0."""
    os._exit(0)


def make_vendor(interfere: Callable[[Array], None]) -> Vendor:
    """Return a vendor whose square root is always 3 and then calls `interfere` with this result."""

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
        exit_with_success,
    )
}
"""The ways to interfere, by name."""

for name, way in WAYS.items():
    globals()[f"vendor_{name}"] = make_vendor(way)
