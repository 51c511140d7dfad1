"""Vendors that go wrong in one way: each takes the expected results and corrupts something."""

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
"""Corrupts a call whose results are right; receives the arguments by name."""


class FaultyVendor(StubVendor):
    """Right results, and then something goes wrong."""

    def __init__(self, name: str, corrupt: Corruption) -> None:
        super().__init__(name, "1", HostRuntime().functions(), host_addressable=True)
        self._corrupt = corrupt

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        super().call(name, context, *arguments)
        names = [parameter.name for parameter in lookup(name).parameters[1:]]
        error_code = self._corrupt(dict(zip(names, arguments, strict=True)))
        self.failure = "corrupted" if error_code else ""
        return Error(error_code or 0)


def _result(arguments: dict[str, Any]) -> Tensor:
    out = arguments.get("out", arguments.get("input"))
    assert isinstance(out, Tensor)
    return out


def _poke(address: int) -> None:
    byte = ctypes.c_ubyte.from_address(address)
    byte.value ^= 1


def element_off_by_ulps(ulps: int) -> Corruption:
    """The last element of the result is off by some numbers of its format."""

    def corrupt(arguments: dict[str, Any]) -> None:
        view = _result(arguments).view()
        index = tuple(length - 1 for length in view.shape)
        for _ in range(ulps):
            view[index] = np.nextafter(view[index], view.dtype.type(np.inf))

    return corrupt


def unwritten_tail(arguments: dict[str, Any]) -> None:
    """The last element is what it was before the call; for contiguous results."""
    out = _result(arguments)
    fresh = Tensor.empty(out.context, (1,), out.dtype)
    out.context.stream.synchronize()  # what fresh memory holds comes by a copy
    ctypes.memmove(out.data_ptr + (out.numel - 1) * out.element_size, fresh.data_ptr, out.element_size)


def input_written(arguments: dict[str, Any]) -> None:
    """One bit of the input changes."""
    _poke(arguments["input"].data_ptr)


def byte_after(arguments: dict[str, Any]) -> None:
    """One byte past the end of the result's storage changes."""
    out = _result(arguments)
    _poke(out.storage_ptr + out.storage_nbytes)


def byte_before(arguments: dict[str, Any]) -> None:
    """One byte before the start of the result's storage changes."""
    _poke(_result(arguments).storage_ptr - 1)


def gap_written(arguments: dict[str, Any]) -> None:
    """The first byte of the result's storage changes, which in a strided tensor belongs to no element."""
    _poke(_result(arguments).storage_ptr)


def row_by_row(arguments: dict[str, Any]) -> None:
    """The result lies row by row whatever its strides say; they must leave no gaps."""
    out = _result(arguments)
    values = np.ascontiguousarray(out.view())
    out.context.stream.synchronize()
    ctypes.memmove(out.data_ptr, values.ctypes.data, values.nbytes)


def in_eight_bytes(arguments: dict[str, Any]) -> None:
    """Every position is written in eight bytes, as far as there is room."""
    out = _result(arguments)
    values = out.view().astype(np.int64)
    ctypes.memmove(out.data_ptr, values.ctypes.data, out.numel * out.element_size)


def fails(arguments: dict[str, Any]) -> Error:
    """The call reports an error."""
    return Error.ErrorOccurred


def declines(arguments: dict[str, Any]) -> Error:
    """The call is not implemented."""
    return Error.NoImplement


def refuses_dtype(arguments: dict[str, Any]) -> Error:
    """The call does not support the element type."""
    return Error.DtypeNotSupported


def crashes(arguments: dict[str, Any]) -> None:
    """The process ends."""
    os.abort()


def hangs(arguments: dict[str, Any]) -> None:
    """The call does not come back."""
    time.sleep(600)


def keeps_plans() -> Corruption:
    """The plan of the first call with a shape serves all later ones; one made for integers has integer results."""
    plans: dict[tuple[int, ...], bool] = {}

    def corrupt(arguments: dict[str, Any]) -> None:
        is_float = arguments["input"].view().dtype.kind in "fV"  # bfloat16 is of the latter
        is_for_floats = plans.setdefault(arguments["input"].shape, is_float)
        if is_float and not is_for_floats:
            view = _result(arguments).view()
            np.copyto(view, np.trunc(view))

    return corrupt


crashing = FaultyVendor("crashing", crashes)
hanging = FaultyVendor("hanging", hangs)
failing = FaultyVendor("failing", fails)
keeping = FaultyVendor("keeping", keeps_plans())
declining = FaultyVendor("declining", declines)
