"""Vendors with defects that only few calls reveal, for the tests and measurements of the fuzzer.

A defect depends on the size or the rank of a tensor, on two arguments that share memory, or on earlier calls.
`tests/diopi_test/fuzz/test_fuzz.py` and `benchmarks/fuzz_defects.py` start the vendors as `narrow:NAME`.
"""

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
"""The largest number of result elements for which the vendor `beyond` is correct."""


def _result(arguments: dict[str, Any]) -> Tensor:
    """Return the tensor `out` of a call, from its arguments by name."""
    out = arguments["out"]
    assert isinstance(out, Tensor)
    return out


def _add_one_to_last_element(result: Tensor) -> None:
    """Add 1 to the last element of a tensor that is not empty."""
    view = result.view()
    view[tuple(length - 1 for length in view.shape)] += 1


def _vendor_wrong_for_shapes(is_affected: Callable[[tuple[int, ...]], bool]) -> FaultyVendor:
    """Return a vendor whose last result element is wrong if `is_affected` is true for the shape of the result."""

    def corrupt(arguments: dict[str, Any]) -> None:
        result = _result(arguments)
        if result.numel and is_affected(tuple(result.shape)):
            _add_one_to_last_element(result)

    return FaultyVendor("narrow", corrupt)


def _vendor_confusing_dtypes() -> FaultyVendor:
    """Return a vendor that is wrong if the previous call had the same result shape but another element type."""
    previous: list[Tensor] = []

    def corrupt(arguments: dict[str, Any]) -> None:
        result = _result(arguments)
        if previous and result.numel and result.shape == previous[0].shape and result.dtype is not previous[0].dtype:
            _add_one_to_last_element(result)
        previous[:] = [result]

    return FaultyVendor("forgetful", corrupt)


def _abort_if_empty(arguments: dict[str, Any]) -> None:
    """Abort the process if the result has no elements."""
    if not _result(arguments).numel:
        os.abort()


def _vendor_wrong_every(period: int) -> FaultyVendor:
    """Return a vendor that is wrong in one of every `period` calls."""
    call_numbers = count(1)

    def corrupt(arguments: dict[str, Any]) -> None:
        result = _result(arguments)
        if next(call_numbers) % period == 0 and result.numel:
            _add_one_to_last_element(result)

    return FaultyVendor("every", corrupt)


def _mistake_shared_inputs(arguments: dict[str, Any]) -> None:
    """Change the result if the call has one tensor for both inputs."""
    if arguments["input"].data_ptr == arguments["other"].data_ptr and _result(arguments).numel:
        _add_one_to_last_element(_result(arguments))


def _mistake_wide_rows(arguments: dict[str, Any]) -> None:
    """Change the result if the axis `dim` of the input has more than 65,536 elements."""
    shape = arguments["input"].shape
    if shape and shape[arguments["dim"]] > 2**16:
        _add_one_to_last_element(_result(arguments))


# Tests name these vendors for separate processes, for example as `narrow:beyond`.
beyond = _vendor_wrong_for_shapes(lambda shape: math.prod(shape) > MAX_ELEMENTS)
of_rank_six = _vendor_wrong_for_shapes(lambda shape: len(shape) == 6)
forgetful = _vendor_confusing_dtypes()
aborting = FaultyVendor("aborting", _abort_if_empty)
correct = FaultyVendor("correct", lambda arguments: None)
sharing = FaultyVendor("sharing", _mistake_shared_inputs)
wide = FaultyVendor("wide", _mistake_wide_rows)
wrapping = _vendor_wrong_for_shapes(lambda shape: math.prod(shape) > 2**20)
every_500th = _vendor_wrong_every(500)
scratch = QueueingVendor(SCRATCH)
