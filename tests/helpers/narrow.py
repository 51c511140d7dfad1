"""Vendors that are right but for calls that no stored case makes: of a size, of a rank, after another call."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

from faulty import FaultyVendor

from lib_rt import Tensor

MAX_ELEMENTS = 3000
"""Elements up to which `beyond` is right."""


def _result(arguments: dict[str, Any]) -> Tensor:
    out = arguments["out"]
    assert isinstance(out, Tensor)
    return out


def _spoil(result: Tensor) -> None:
    """The last element is another one."""
    view = result.view()
    view[tuple(length - 1 for length in view.shape)] += 1


def _wrong_where(is_meant: Callable[[tuple[int, ...]], bool]) -> FaultyVendor:
    """A vendor that is wrong where the result's shape is meant."""

    def corrupt(arguments: dict[str, Any]) -> None:
        result = _result(arguments)
        if result.numel and is_meant(tuple(result.shape)):
            _spoil(result)

    return FaultyVendor("narrow", corrupt)


def _forgetful() -> FaultyVendor:
    """A vendor that is wrong in a call with the result's shape of the call before, in another element type."""
    before: list[Tensor] = []

    def corrupt(arguments: dict[str, Any]) -> None:
        result = _result(arguments)
        if before and result.numel and result.shape == before[0].shape and result.dtype is not before[0].dtype:
            _spoil(result)
        before[:] = [result]

    return FaultyVendor("forgetful", corrupt)


def _aborts(arguments: dict[str, Any]) -> None:
    """The process ends where there is nothing to do."""
    if not _result(arguments).numel:
        os.abort()


beyond = _wrong_where(lambda shape: math.prod(shape) > MAX_ELEMENTS)
of_rank_six = _wrong_where(lambda shape: len(shape) == 6)
forgetful = _forgetful()
aborting = FaultyVendor("aborting", _aborts)
correct = FaultyVendor("correct", lambda arguments: None)
