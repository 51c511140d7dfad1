"""Vendors that handle negative tests incorrectly, each in a different way. They compute nothing.

A negative test calls a function with invalid arguments. A vendor must return an error code with a reason, and change
no tensor. `refuses`, which tests compare the others with, does so.

Each function of arguments and results is the behavior of one vendor; it returns the error code and its text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from diopi_impl import BaseVendor, Box
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Error
from lib_rt import Context, Device, Tensor

ErrorCodeAndText = tuple[Error, str]
"""An error code, and the last error that goes with it."""


class RejectingVendor(BaseVendor):
    """A vendor whose calls return what `respond` returns for the arguments and the result tensors.

    A vendor with the name "generous" creates the results that a function allocates, though it rejects the call.
    """

    def __init__(self, name: str, respond: Callable[[Sequence[Any], list[Tensor]], ErrorCodeAndText]) -> None:
        super().__init__(name, "1")
        self._respond = respond
        self._runtime = HostRuntime().functions()
        self._text = ""

    def has(self, name: str) -> bool:
        return True

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Return and remember the response; set the results that the function allocates beforehand."""
        parameters = lookup(name).parameters[1:]
        results = [value for p, value in zip(parameters, arguments, strict=True) if p.is_result]
        tensors = [tensor for value in results for tensor in (value if isinstance(value, list) else [value])]
        for box in (tensor for tensor in tensors if isinstance(tensor, Box)):
            box.value = context.require_tensor((1,), Dtype.float32) if self.name == "generous" else None
        code, self._text = self._respond(arguments, [tensor for tensor in tensors if isinstance(tensor, Tensor)])
        return code

    def last_error(self) -> str:
        return self._text

    def open_device(self) -> Device:
        return Device(self._runtime, host_addressable=True)


def refuses(arguments: Sequence[Any], results: list[Tensor]) -> ErrorCodeAndText:
    """Reject every call, as required for negative tests."""
    return Error.ErrorOccurred, "no"


def trusts(arguments: Sequence[Any], results: list[Tensor]) -> ErrorCodeAndText:
    """Accept every call."""
    return Error.Success, ""


def is_silent(arguments: Sequence[Any], results: list[Tensor]) -> ErrorCodeAndText:
    """Return an error code without a reason."""
    return Error.ErrorOccurred, ""


def writes_first(arguments: Sequence[Any], results: list[Tensor]) -> ErrorCodeAndText:
    """Change the last result, then fail."""
    view = results[-1].view().reshape(-1)
    view[-1:] = np.zeros(1, view.dtype)
    return Error.ErrorOccurred, "too late"


def changes_inputs(arguments: Sequence[Any], results: list[Tensor]) -> ErrorCodeAndText:
    """Change an input, then fail."""
    inputs = [argument for argument in arguments if isinstance(argument, Tensor) and argument not in results]
    inputs[0].view()[...] = 7
    return Error.ErrorOccurred, "too late"


def crashes_on_null(arguments: Sequence[Any], results: list[Tensor]) -> ErrorCodeAndText:
    """Abort for NULL, as a compiled vendor that reads through NULL may."""
    if any(argument is None for argument in arguments):
        os.abort()
    return Error.ErrorOccurred, "no"


def does_not_know_dtypes(arguments: Sequence[Any], results: list[Tensor]) -> ErrorCodeAndText:
    """Reject every element type."""
    return Error.DtypeNotSupported, "not this one"


def declines(arguments: Sequence[Any], results: list[Tensor]) -> ErrorCodeAndText:
    """Implement no function."""
    return Error.NoImplement, "not yet"


crashing = RejectingVendor("crashing", crashes_on_null)
trusting = RejectingVendor("trusting", trusts)
