"""Copies that keep a stream busy (ballast), so that operations queued behind them finish late."""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter
from typing import final
from weakref import WeakKeyDictionary

from lib_rt import CallError, Device
from lib_rt.stream import Stream

COPY_BYTES, COPY_COUNT = 2**20, 8
"""The size in bytes and the number of the copies that precede the inputs in the queue.

They take about a millisecond on a host, and some hundredths of a millisecond on a chip. A vendor that fails to wait for
its inputs reads them earlier."""

ATTEMPTS = 3
"""The number of measurements that must show immediate copies before the device is considered to copy immediately."""

MIN_COPY_SECONDS = 1e-4
"""If the calls that enqueue all copies take less than this many seconds, the copies are never omitted.

A device that copies 80 GB/s takes as long to execute the copies. Omitting faster copies would save too little."""

MAX_WAIT_SHARE = 0.05
"""If waiting for the copies takes more than this share of the time of the calls, the copies are not immediate."""

_copies_immediately_by_device: WeakKeyDictionary[Device, bool] = WeakKeyDictionary()
"""Whether a device has finished a copy when the call that enqueues it returns, for each measured device."""


@final
class Ballast:
    """Copies that keep the streams of one context busy; their memory is allocated at first use.

    Some devices have finished a copy when the call that enqueues it returns. Copies can't keep such a device busy, so
    they are omitted. Each device is measured once to find this out.

    Args:
        device: The device that executes the copies.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._memory = 0

    def keep_busy(self, stream: Stream) -> None:
        """Enqueue copies on an idle stream.

        Do nothing if the device copies immediately, or if allocation or copying fails.
        """
        if _copies_immediately_by_device.get(self._device, False):
            return
        with suppress(CallError):
            self._memory = self._memory or self._device.malloc(2 * COPY_BYTES)
            if self._device not in _copies_immediately_by_device:
                _copies_immediately_by_device[self._device] = all(
                    self._copies_immediately(stream) for _ in range(ATTEMPTS)
                )
            if not _copies_immediately_by_device[self._device]:
                self._enqueue_copies(stream)

    def release(self) -> None:
        """Free the memory; the stream must have finished the copies."""
        if self._memory:
            self._device.free(self._memory)
            self._memory = 0

    def _enqueue_copies(self, stream: Stream) -> None:
        """Enqueue all copies on the stream."""
        for _ in range(COPY_COUNT):
            stream.d2d(self._memory + COPY_BYTES, self._memory, COPY_BYTES)

    def _copies_immediately(self, stream: Stream) -> bool:
        """Return whether every copy seems to be complete when the call that enqueues it returns."""
        start = perf_counter()
        self._enqueue_copies(stream)
        enqueued = perf_counter()
        stream.synchronize()
        return enqueued - start > MIN_COPY_SECONDS and perf_counter() - enqueued < MAX_WAIT_SHARE * (enqueued - start)
