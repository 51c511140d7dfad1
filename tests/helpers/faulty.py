"""Vendors with one defect each: they take the expected results and corrupt something."""

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
"""Corrupts a call whose results are correct; receives the arguments by name."""


class FaultyVendor(StubVendor):
    """A vendor that writes the expected results and then corrupts something."""

    def __init__(self, name: str, corrupt: Corruption) -> None:
        super().__init__(name, "1", HostRuntime().functions(), host_addressable=True)
        self._corrupt = corrupt

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Write the expected results, then corrupt the call."""
        super().call(name, context, *arguments)
        names = [parameter.name for parameter in lookup(name).parameters[1:]]
        error_code = self._corrupt(dict(zip(names, arguments, strict=True)))
        self.failure = "corrupted" if error_code else ""
        return Error(error_code or 0)


def _result(arguments: dict[str, Any]) -> Tensor:
    """Return the result tensor of the call."""
    out = arguments.get("out", arguments.get("input"))
    assert isinstance(out, Tensor)
    return out


def _poke(address: int) -> None:
    """Flip a bit of the byte at an address."""
    byte = ctypes.c_ubyte.from_address(address)
    byte.value ^= 1


def element_off_by_ulps(ulps: int) -> Corruption:
    """Return a corruption that moves the last element of the result up by a number of ulps."""

    def corrupt(arguments: dict[str, Any]) -> None:
        view = _result(arguments).view()
        index = tuple(length - 1 for length in view.shape)
        for _ in range(ulps):
            view[index] = np.nextafter(view[index], view.dtype.type(np.inf))

    return corrupt


def unwritten_tail(arguments: dict[str, Any]) -> None:
    """Restore the last element of a contiguous result to its value before the call."""
    out = _result(arguments)
    fresh = Tensor.empty(out.context, (1,), out.dtype)
    out.context.stream.synchronize()  # what fresh memory holds comes by a copy
    ctypes.memmove(out.data_ptr + (out.numel - 1) * out.element_size, fresh.data_ptr, out.element_size)


def input_written(arguments: dict[str, Any]) -> None:
    """Change one bit of the input."""
    _poke(arguments["input"].data_ptr)


def byte_after(arguments: dict[str, Any]) -> None:
    """Change the byte after the result's storage."""
    out = _result(arguments)
    _poke(out.storage_ptr + out.storage_nbytes)


def byte_before(arguments: dict[str, Any]) -> None:
    """Change the byte before the result's storage."""
    _poke(_result(arguments).storage_ptr - 1)


def gap_written(arguments: dict[str, Any]) -> None:
    """Change the first byte of the result's storage. In a tensor with gaps, it belongs to no element."""
    _poke(_result(arguments).storage_ptr)


def row_by_row(arguments: dict[str, Any]) -> None:
    """Write the result in row-major order, whatever its strides are. The strides must leave no gaps."""
    out = _result(arguments)
    values = np.ascontiguousarray(out.view())
    out.context.stream.synchronize()
    ctypes.memmove(out.data_ptr, values.ctypes.data, values.nbytes)


def in_eight_bytes(arguments: dict[str, Any]) -> None:
    """Write the result as 64-bit integers, of which as many fit into its memory as it has bytes for."""
    out = _result(arguments)
    values = out.view().astype(np.int64)
    ctypes.memmove(out.data_ptr, values.ctypes.data, out.numel * out.element_size)


def fails(arguments: dict[str, Any]) -> Error:
    """Return an error."""
    return Error.ErrorOccurred


def declines(arguments: dict[str, Any]) -> Error:
    """Return that the function is not implemented."""
    return Error.NoImplement


def refuses_dtype(arguments: dict[str, Any]) -> Error:
    """Return that the element type is not supported."""
    return Error.DtypeNotSupported


def crashes(arguments: dict[str, Any]) -> None:
    """Crash the process."""
    os.abort()


def hangs(arguments: dict[str, Any]) -> None:
    """Never return."""
    time.sleep(600)


def keeps_plans() -> Corruption:
    """Return a corruption that uses the plan of the first call with a shape for all later calls with it.

    A plan for integers truncates floating-point results.
    """
    plans: dict[tuple[int, ...], bool] = {}

    def corrupt(arguments: dict[str, Any]) -> None:
        is_float = arguments["input"].view().dtype.kind in "fV"  # bfloat16 is of the latter
        is_for_floats = plans.setdefault(arguments["input"].shape, is_float)
        if is_float and not is_for_floats:
            view = _result(arguments).view()
            np.copyto(view, np.trunc(view))

    return corrupt


def accepts_one_shape() -> Corruption:
    """Return a corruption that fails if the shape or element type of the input differs from those of the first call."""
    first: list[tuple[tuple[int, ...], str]] = []

    def corrupt(arguments: dict[str, Any]) -> Error | None:
        view = arguments["input"].view()
        first.extend([] if first else [(view.shape, view.dtype.str)])
        return None if (view.shape, view.dtype.str) == first[0] else Error.ErrorOccurred

    return corrupt


crashing = FaultyVendor("crashing", crashes)
hanging = FaultyVendor("hanging", hangs)
failing = FaultyVendor("failing", fails)
keeping = FaultyVendor("keeping", keeps_plans())
declining = FaultyVendor("declining", declines)
stubborn = FaultyVendor("stubborn", accepts_one_shape())
