"""Ballast is enqueued only on streams that it can keep busy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from host_runtime import HostRuntime

from diopi_test.execution import ballast
from diopi_test.execution.ballast import ATTEMPTS, COPY_COUNT, Ballast
from lib_rt import Device, Stream

COPY = 1e-4
"""The duration of a copy of the ballast in seconds."""


class TimedRuntime(HostRuntime):
    """A runtime that counts copies on the device, which take time when they are enqueued or synchronized."""

    def __init__(self, at_once: bool) -> None:
        super().__init__()
        self.at_once = at_once
        self.copies = self.left = 0
        self.now = 0.0

    def copy(self, stream: int, destination: int, source: int, nbytes: int) -> None:
        self.copies += 1
        self.left += 1
        if self.at_once:
            self._work()

    def stream_sync(self, stream: int) -> None:
        self._work()

    def _work(self) -> None:
        """Advance the simulated time by the duration of all copies that are left."""
        self.now += COPY * self.left
        self.left = 0


@pytest.fixture(params=[True, False], ids=["at-once", "queued"])
def runtime(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TimedRuntime:
    """Return a runtime with a simulated clock, which also replaces the clock of the ballast."""
    runtime = TimedRuntime(request.param)
    monkeypatch.setattr(ballast, "perf_counter", lambda: runtime.now)
    return runtime


@pytest.fixture
def device(runtime: TimedRuntime) -> Iterator[Device]:
    """Open the device of a runtime that measures times."""
    with Device(runtime.functions()) as device:
        yield device


def put_on(device: Device) -> None:
    """Keep a stream of the device busy, and wait until it is idle."""
    with Stream(device) as stream:
        second_ballast = Ballast(device)
        second_ballast.keep_busy(stream)
        stream.synchronize()
        second_ballast.release()


def test_ballast_is_used_only_if_copies_keep_the_stream_busy(runtime: TimedRuntime, device: Device) -> None:
    put_on(device)
    runtime.copies = 0
    put_on(device)
    assert runtime.copies == (0 if runtime.at_once else COPY_COUNT)


def test_a_device_is_measured_once_or_thrice_if_copies_seem_instant(runtime: TimedRuntime, device: Device) -> None:
    put_on(device)
    assert runtime.copies == (ATTEMPTS * COPY_COUNT if runtime.at_once else 2 * COPY_COUNT)


def test_the_memory_of_the_ballast_is_released(device: Device) -> None:
    put_on(device)
    assert device.allocations == 0


def test_a_device_without_copies_gets_no_ballast(runtime: TimedRuntime, device: Device) -> None:
    with device.unregistered("d2d"):
        put_on(device)
    assert runtime.copies == 0
    assert device.allocations == 0
