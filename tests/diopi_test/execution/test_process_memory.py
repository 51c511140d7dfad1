"""A process returns the memory that it has freed to the system after a large case, and only then."""

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from diopi_impl import find_vendor
from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.execution.call import Call
from diopi_test.execution.process_memory import LARGE_BYTES, RESIDENT, measure_memory, release_freed_memory
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from lib_rt import Device

if not hasattr(ctypes.CDLL(None), "malloc_trim"):
    pytest.skip("the C library has no function that returns freed memory", allow_module_level=True)

BLOCK, COUNT, PERIOD = 2**16, 2000, 50
"""The size of the blocks in bytes, their number, and the distance of those that stay allocated."""

FREED = BLOCK * COUNT * 9 // 10
"""Bytes that are freed at least, and less than that."""


@pytest.fixture
def device() -> Iterator[Device]:
    """Yield a device of the built-in vendor."""
    with find_vendor("jax_cpu").open_device() as opened:
        yield opened


@pytest.fixture
def gaps() -> list[np.ndarray]:
    """Free most of many blocks of memory, and return the remaining blocks, which keep the allocator from shrinking."""
    blocks = [np.ones(BLOCK, np.uint8) for _ in range(COUNT)]
    return blocks[PERIOD - 1 :: PERIOD]


def multiplication(label: str, level: str) -> BaselineCase:
    """Return a computed case of the multiplication."""
    (case,) = (case for case in select_cases("diopiMul", level) if case.label == label)
    return compute_baseline_case(lookup("diopiMul"), case)


def test_freed_memory_is_returned_if_a_case_used_much(device: Device, gaps: list[np.ndarray]) -> None:
    before = measure_memory(device)[RESIDENT]
    release_freed_memory(LARGE_BYTES - 1)
    assert measure_memory(device)[RESIDENT] > before - FREED // 2
    release_freed_memory(LARGE_BYTES)
    assert measure_memory(device)[RESIDENT] < before - FREED
    assert len(gaps) == COUNT // PERIOD


def test_a_large_call_returns_freed_memory(device: Device, gaps: list[np.ndarray]) -> None:
    vendor, case = find_vendor("jax_cpu"), multiplication("float32-long-input-axis-1", "large")
    before = measure_memory(device)[RESIDENT]
    with Call(vendor, device, case) as call:
        call.run()
    assert measure_memory(device)[RESIDENT] < before - FREED // 2
    assert len(gaps) == COUNT // PERIOD
