"""Timing a call: its inputs have arrived, it is repeated, and the bytes it must move are counted."""

from __future__ import annotations

import numpy as np
import pytest
from faulty import FaultyVendor

from diopi_proto.types import Dtype, Error
from diopi_test.execution import stopwatch
from diopi_test.execution.call import RejectedCallError
from diopi_test.execution.stopwatch import (
    MAX_REPEATS,
    WARMUP_CALLS,
    count_bytes,
    count_operations,
    measure_copy_bandwidth,
    time_call,
)
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected


def tensor(*shape: int) -> BaselineTensor:
    """Return a float32 tensor of ones."""
    return BaselineTensor(np.ones(shape, np.float32), Dtype.float32, "contiguous")


def case(function: str = "diopiSqrtInp") -> BaselineCase:
    """Return a case whose argument and result contain only ones."""
    result = Expected(values=np.ones((3, 4)), dtype=Dtype.float32)
    arguments, name = {"input": tensor(3, 4)}, "input" if function.endswith("Inp") else "out"
    return BaselineCase(
        function=function, label="float32-x", dtype=Dtype.float32, arguments=arguments, expected={name: result}
    )


def test_updated_tensors_count_as_read_and_written() -> None:
    assert count_bytes(case()) == 2 * 12 * 4
    assert count_bytes(case("diopiSqrt")) == 2 * 12 * 4


def test_array_entries_count_and_omitted_arguments_do_not() -> None:
    arrays = BaselineCase(
        function="diopiCat",
        label="x",
        dtype=Dtype.float32,
        arguments={"tensors": [tensor(2), tensor(3), None], "dim": 0},
        expected={},
    )
    assert count_bytes(arrays) == 5 * 4


def test_operations_are_counted_for_element_wise_functions() -> None:
    assert count_operations(case()) == 12
    assert (
        count_operations(BaselineCase(function="diopiCat", label="x", dtype=Dtype.float32, arguments={}, expected={}))
        is None
    )


def test_a_call_is_repeated_until_the_measurement_is_long_enough() -> None:
    seen: list[float] = []
    vendor = FaultyVendor("counting", lambda arguments: seen.append(float(arguments["input"].view()[0, 0])))
    timing = time_call(vendor, vendor.open_device(), case(), 1e9)
    assert len(seen) == WARMUP_CALLS + MAX_REPEATS == WARMUP_CALLS + timing.repeats
    assert timing.seconds > 0
    assert (timing.bytes, timing.operations, timing.bandwidth) == (96, 12, 1e9)


def test_a_call_is_repeated_less_often_if_its_context_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopwatch, "MAX_CONTEXT_BYTES", 0)
    vendor = FaultyVendor("right", lambda arguments: None)
    assert time_call(vendor, vendor.open_device(), case(), None).repeats == stopwatch.MIN_REPEATS


def test_a_rejected_call_has_no_time() -> None:
    vendor = FaultyVendor("refusing", lambda arguments: Error.ErrorOccurred)
    with pytest.raises(RejectedCallError):
        time_call(vendor, vendor.open_device(), case(), None)


def test_the_bandwidth_of_copies_is_measured() -> None:
    vendor = FaultyVendor("copying", lambda arguments: None)
    device = vendor.open_device()
    found = measure_copy_bandwidth(device, 2**16)
    assert found is not None and found > 0
    assert device.allocations == 0
    with device.unregistered("d2d"):
        assert measure_copy_bandwidth(device, 2**16) is None
    assert device.allocations == 0
