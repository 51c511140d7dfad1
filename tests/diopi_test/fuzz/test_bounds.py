"""The limits of memory and time for the reference of a fuzzed call."""

import resource
import time

import numpy as np
import pytest

from diopi_test.fuzz.bounds import limit_resources


def test_a_call_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(TimeoutError, match=r"0\.01 s"), limit_resources(seconds=0.01):
        time.sleep(60)


def test_a_call_that_needs_too_much_memory_is_stopped_and_the_limit_restored() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(MemoryError), limit_resources(memory=2**24):
        np.zeros(2**32, np.uint8)  # more than a process that did much before has to give again
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    with limit_resources(memory=2**33):
        np.zeros(2**32, np.uint8)
