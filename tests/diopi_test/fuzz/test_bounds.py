"""What the reference may take for a drawn call."""

import resource
import time

import numpy as np
import pytest

from diopi_test.fuzz.bounds import bounded


def test_what_takes_longer_is_ended() -> None:
    with pytest.raises(TimeoutError, match=r"not done after 0\.01 s"), bounded(seconds=0.01):
        time.sleep(60)


def test_what_takes_more_memory_is_ended_and_the_limit_as_before() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(MemoryError), bounded(memory=2**24):
        np.zeros(2**32, np.uint8)  # more than a process that did much before has to give again
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    with bounded(memory=2**33):
        np.zeros(2**32, np.uint8)
