"""Copies that keep a stream busy (ballast), so that operations queued behind them finish late."""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter
from typing import final
from weakref import WeakKeyDictionary

from lib_rt import CallError, Device
from lib_rt.stream import Stream

BALLAST, TIMES = 2**20, 8
"""The size in bytes and the number of the copies that precede the inputs in the queue. They take about a millisecond
on a host, and some hundredths of a millisecond on a chip: longer than a function that does not wait takes to read
its inputs."""

ATTEMPTS = 3
"""The number of measurements that must show immediate copies before the device is considered to copy immediately."""

LONG = 1e-4
"""Seconds that the calls which enqueue the copies take at least where they are what does the copying: at 80 GB/s. Where
it takes less, the ballast costs too little to be saved."""

REMAINDER = 0.05
"""The share of that time which waiting for the stream may take at most if it has nothing left to do."""

_at_once: WeakKeyDictionary[Device, bool] = WeakKeyDictionary()


@final
class Ballast:
    """Copies for the streams of one context; their memory is allocated at first use.

    Some devices have finished a copy when the call that enqueues it returns. Copies can't keep such a device busy, so
    they are omitted. Whether a device is one of these is measured once.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._memory = 0

    def put_on(self, stream: Stream) -> None:
        """Keep an idle stream busy, if there is memory to copy and a way to copy it."""
        if _at_once.get(self._device, False):
            return
        with suppress(CallError):
            self._memory = self._memory or self._device.malloc(2 * BALLAST)
            if self._device not in _at_once:
                _at_once[self._device] = all(self._is_done_at_once(stream) for _ in range(ATTEMPTS))
            if not _at_once[self._device]:
                self._enqueue(stream)

    def release(self) -> None:
        """Free the memory; the stream must have finished the copies."""
        if self._memory:
            self._device.free(self._memory)
            self._memory = 0

    def _enqueue(self, stream: Stream) -> None:
        for _ in range(TIMES):
            stream.d2d(self._memory + BALLAST, self._memory, BALLAST)

    def _is_done_at_once(self, stream: Stream) -> bool:
        """Return whether the copies seem to be synchronous."""
        start = perf_counter()
        self._enqueue(stream)
        enqueued = perf_counter()
        stream.synchronize()
        return enqueued - start > LONG and perf_counter() - enqueued < REMAINDER * (enqueued - start)
