"""Vendors with one defect each, with which tests show that the checks of the suite detect the defect.

A faulty vendor knows the expected results of the case that runs. It writes them, and then a *corruption* changes the
result, an input or the memory around them, returns an error code, or disturbs the process.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Error
from diopi_test.quality.stub_vendor import StubVendor
from lib_rt import Context, Tensor

Corruption = Callable[[dict[str, Any]], Any]
"""Corrupts a call whose correct results are already written.

It receives the arguments of the call by parameter name. It may return an error code, which the call then returns; None
stands for success.
"""


class FaultyVendor(StubVendor):
    """A vendor that writes the expected results of each call and then applies a corruption to the call."""

    def __init__(self, name: str, corrupt: Corruption) -> None:
        super().__init__(name, "1", HostRuntime().functions(), host_addressable=True)
        self._corrupt = corrupt

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Write the expected results, then corrupt the call, and return the error code."""
        super().call(name, context, *arguments)
        names = [parameter.name for parameter in lookup(name).parameters[1:]]
        error_code = self._corrupt(dict(zip(names, arguments, strict=True)))
        self.failure = "corrupted" if error_code else ""
        return Error(error_code or 0)


def _result(arguments: dict[str, Any]) -> Tensor:
    """Return the tensor that the call writes: `out`, or `input` if the function works in place."""
    out = arguments.get("out", arguments.get("input"))
    assert isinstance(out, Tensor)
    return out


def _flip_lowest_bit(address: int) -> None:
    """Flip the lowest bit of the byte at an address."""
    byte = ctypes.c_ubyte.from_address(address)
    byte.value ^= 1


def move_last_element_up(ulps: int) -> Corruption:
    """Return a corruption that moves the last element of a floating-point result up by a number of ulps."""

    def corrupt(arguments: dict[str, Any]) -> None:
        view = _result(arguments).view()
        index = tuple(length - 1 for length in view.shape)
        for _ in range(ulps):
            view[index] = np.nextafter(view[index], view.dtype.type(np.inf))

    return corrupt


def restore_last_element(arguments: dict[str, Any]) -> None:
    """Set the last element of a contiguous result to the content of fresh memory, as if it had not been written."""
    out = _result(arguments)
    fresh = Tensor.empty(out.context, (1,), out.dtype)
    out.context.stream.synchronize()  # an asynchronous copy fills fresh memory
    ctypes.memmove(out.data_ptr + (out.numel - 1) * out.element_size, fresh.data_ptr, out.element_size)


def flip_bit_of_input(arguments: dict[str, Any]) -> None:
    """Change one bit of the first element of the input."""
    _flip_lowest_bit(arguments["input"].data_ptr)


def flip_bit_after_storage(arguments: dict[str, Any]) -> None:
    """Change a bit of the byte after the storage of the result."""
    out = _result(arguments)
    _flip_lowest_bit(out.storage_ptr + out.storage_nbytes)


def flip_bit_before_storage(arguments: dict[str, Any]) -> None:
    """Change a bit of the byte before the storage of the result."""
    _flip_lowest_bit(_result(arguments).storage_ptr - 1)


def flip_bit_in_gap(arguments: dict[str, Any]) -> None:
    """Change a bit of the first byte of the result's storage, which belongs to no element if the layout has gaps."""
    _flip_lowest_bit(_result(arguments).storage_ptr)


def write_in_row_major_order(arguments: dict[str, Any]) -> None:
    """Write the result in row-major order and ignore its strides, which must leave no gaps between elements."""
    out = _result(arguments)
    values = np.ascontiguousarray(out.view())
    out.context.stream.synchronize()
    ctypes.memmove(out.data_ptr, values.ctypes.data, values.nbytes)


def write_as_int64(arguments: dict[str, Any]) -> None:
    """Write the result as 64-bit integers, as many as fit into the memory of its elements."""
    out = _result(arguments)
    values = out.view().astype(np.int64)
    ctypes.memmove(out.data_ptr, values.ctypes.data, out.numel * out.element_size)


def return_error(arguments: dict[str, Any]) -> Error:
    """Return the general error code."""
    return Error.ErrorOccurred


def return_no_implement(arguments: dict[str, Any]) -> Error:
    """Return the error code for a function that is not implemented."""
    return Error.NoImplement


def return_dtype_not_supported(arguments: dict[str, Any]) -> Error:
    """Return the error code for an unsupported element type."""
    return Error.DtypeNotSupported


def abort_process(arguments: dict[str, Any]) -> None:
    """End the process with SIGABRT."""
    os.abort()


def sleep_ten_minutes(arguments: dict[str, Any]) -> None:
    """Sleep for longer than any test waits."""
    time.sleep(600)


def reuse_first_plan() -> Corruption:
    """Return a corruption of a vendor that wrongly caches its execution plans by the shape of the input only.

    If the first call with a shape has integers, all later calls with this shape truncate their results to integers.
    """
    plans: dict[tuple[int, ...], bool] = {}

    def corrupt(arguments: dict[str, Any]) -> None:
        is_float = arguments["input"].view().dtype.kind in "fV"  # V is the kind of bfloat16
        is_for_floats = plans.setdefault(arguments["input"].shape, is_float)
        if is_float and not is_for_floats:
            view = _result(arguments).view()
            np.copyto(view, np.trunc(view))

    return corrupt


def accept_only_first_shape() -> Corruption:
    """Return a corruption that returns an error unless the input has the shape and type of the first call's input."""
    first: list[tuple[tuple[int, ...], str]] = []

    def corrupt(arguments: dict[str, Any]) -> Error | None:
        view = arguments["input"].view()
        first.extend([] if first else [(view.shape, view.dtype.str)])
        return None if (view.shape, view.dtype.str) == first[0] else Error.ErrorOccurred

    return corrupt


# Tests name these vendors for separate processes, for example as `faulty:crashing`.
crashing = FaultyVendor("crashing", abort_process)
hanging = FaultyVendor("hanging", sleep_ten_minutes)
failing = FaultyVendor("failing", return_error)
keeping = FaultyVendor("keeping", reuse_first_plan())
declining = FaultyVendor("declining", return_no_implement)
stubborn = FaultyVendor("stubborn", accept_only_first_shape())
