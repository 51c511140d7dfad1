"""Vendors that take bad input badly, each in one way. They don't compute anything."""

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

Answer = tuple[Error, str]
"""An error code, and the last error that goes with it."""


class CarelessVendor(BaseVendor):
    """Answers every call as `answer` does, which receives the arguments and the result tensors among them."""

    def __init__(self, name: str, answer: Callable[[Sequence[Any], list[Tensor]], Answer]) -> None:
        super().__init__(name, "1")
        self._answer = answer
        self._runtime = HostRuntime().functions()
        self._text = ""

    def has(self, name: str) -> bool:
        return True

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        parameters = lookup(name).parameters[1:]
        results = [value for p, value in zip(parameters, arguments, strict=True) if p.is_result]
        tensors = [one for value in results for one in (value if isinstance(value, list) else [value])]
        for box in (one for one in tensors if isinstance(one, Box)):
            box.value = context.require_tensor((1,), Dtype.float32) if self.name == "generous" else None
        code, self._text = self._answer(arguments, [one for one in tensors if isinstance(one, Tensor)])
        return code

    def last_error(self) -> str:
        return self._text

    def open_device(self) -> Device:
        return Device(self._runtime, host_addressable=True)


def refuses(arguments: Sequence[Any], results: list[Tensor]) -> Answer:
    """As it should be, without looking."""
    return Error.ErrorOccurred, "no"


def trusts(arguments: Sequence[Any], results: list[Tensor]) -> Answer:
    """Success, whatever was given."""
    return Error.Success, ""


def is_silent(arguments: Sequence[Any], results: list[Tensor]) -> Answer:
    """An error code without a reason."""
    return Error.ErrorOccurred, ""


def writes_first(arguments: Sequence[Any], results: list[Tensor]) -> Answer:
    """Its last result is changed before it fails."""
    view = results[-1].view().reshape(-1)
    view[-1:] = np.zeros(1, view.dtype)
    return Error.ErrorOccurred, "too late"


def changes_inputs(arguments: Sequence[Any], results: list[Tensor]) -> Answer:
    """An input is changed before it fails."""
    inputs = [one for one in arguments if isinstance(one, Tensor) and one not in results]
    inputs[0].view()[...] = 7
    return Error.ErrorOccurred, "too late"


def crashes_on_null(arguments: Sequence[Any], results: list[Tensor]) -> Answer:
    """What reading through NULL does to a compiled vendor."""
    if any(one is None for one in arguments):
        os.abort()
    return Error.ErrorOccurred, "no"


def does_not_know_dtypes(arguments: Sequence[Any], results: list[Tensor]) -> Answer:
    """No element type is supported."""
    return Error.DtypeNotSupported, "not this one"


def declines(arguments: Sequence[Any], results: list[Tensor]) -> Answer:
    """Nothing is implemented."""
    return Error.NoImplement, "not yet"


crashing = CarelessVendor("crashing", crashes_on_null)
trusting = CarelessVendor("trusting", trusts)
