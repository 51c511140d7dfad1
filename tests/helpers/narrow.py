"""Vendors with defects that few calls show: for a size, a rank, shared memory, or after other calls."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from itertools import count
from typing import Any

from faulty import FaultyVendor

from diopi_test.quality.mutation.in_flight import SCRATCH, QueueingVendor
from lib_rt import Tensor

MAX_ELEMENTS = 3000
"""The number of elements up to which the vendor `beyond` is correct."""


def _result(arguments: dict[str, Any]) -> Tensor:
    """Return the result tensor of the call."""
    out = arguments["out"]
    assert isinstance(out, Tensor)
    return out


def _spoil(result: Tensor) -> None:
    """Change the last element."""
    view = result.view()
    view[tuple(length - 1 for length in view.shape)] += 1


def _wrong_where(is_meant: Callable[[tuple[int, ...]], bool]) -> FaultyVendor:
    """Return a vendor that is wrong if a condition on the result's shape holds."""

    def corrupt(arguments: dict[str, Any]) -> None:
        result = _result(arguments)
        if result.numel and is_meant(tuple(result.shape)):
            _spoil(result)

    return FaultyVendor("narrow", corrupt)


def _forgetful() -> FaultyVendor:
    """Return a vendor that is wrong in a call with the result shape of the previous call and another element type."""
    before: list[Tensor] = []

    def corrupt(arguments: dict[str, Any]) -> None:
        result = _result(arguments)
        if before and result.numel and result.shape == before[0].shape and result.dtype is not before[0].dtype:
            _spoil(result)
        before[:] = [result]

    return FaultyVendor("forgetful", corrupt)


def _aborts(arguments: dict[str, Any]) -> None:
    """Abort the process if the call has no elements."""
    if not _result(arguments).numel:
        os.abort()


def _wrong_in_one_call_of(period: int) -> FaultyVendor:
    """Return a vendor that is wrong in every n-th call."""
    numbers = count(1)

    def corrupt(arguments: dict[str, Any]) -> None:
        result = _result(arguments)
        if next(numbers) % period == 0 and result.numel:
            _spoil(result)

    return FaultyVendor("every", corrupt)


def _mistake_shared_inputs(arguments: dict[str, Any]) -> None:
    """Change the result of a call with one tensor for both inputs."""
    if arguments["input"].data_ptr == arguments["other"].data_ptr and _result(arguments).numel:
        _spoil(_result(arguments))


def _mistake_wide_rows(arguments: dict[str, Any]) -> None:
    """Change the result of a call along an axis with more than 65,536 elements."""
    shape = arguments["input"].shape
    if shape and shape[arguments["dim"]] > 2**16:
        _spoil(_result(arguments))


beyond = _wrong_where(lambda shape: math.prod(shape) > MAX_ELEMENTS)
of_rank_six = _wrong_where(lambda shape: len(shape) == 6)
forgetful = _forgetful()
aborting = FaultyVendor("aborting", _aborts)
correct = FaultyVendor("correct", lambda arguments: None)
sharing = FaultyVendor("sharing", _mistake_shared_inputs)
wide = FaultyVendor("wide", _mistake_wide_rows)
wrapping = _wrong_where(lambda shape: math.prod(shape) > 2**20)
every_500th = _wrong_in_one_call_of(500)
scratch = QueueingVendor(SCRATCH)
