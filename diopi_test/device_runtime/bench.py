"""The fixture of the cases: a device runtime with memory, streams and events, and checks of its results.

A case raises `RuntimeViolationError` if the runtime violates the interface. It releases what it allocates if it passes.
The process ends after a failed case.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.messages import pluralize
from lib_rt.device_runtime_client import READY, DeviceRuntimeClient, RuntimeCallError

Bytes: TypeAlias = NDArray[np.uint8]

CASES: dict[str, Callable[[RuntimeBench], None]] = {}
"""All cases by name."""

BUSY_MILLISECONDS = 60
"""The time for which `RuntimeBench.occupy` keeps a stream busy, much longer than a call takes that does not wait."""

BALLAST_BYTES = 2 << 20
"""The size of the fills and copies that keep a stream busy."""

MAX_REPETITIONS = 20_000
"""The maximum number of fills and copies that keep a stream busy, for a runtime that does not wait for them."""

POLL_SECONDS = 10.0
"""The time within which work of a few milliseconds must be complete."""

SPIN_SECONDS = 0.5
"""The time for which `RuntimeBench.wait_until` polls without pauses, so that it sees states that last shortly."""

ODD_SIZES = (1, 2, 3, 7, 63, 64, 65, 1023, 4097, (1 << 20) + 3)
"""Sizes of copies and fills in bytes."""

OFFSETS = (0, 1, 3, 13)
"""Distances of addresses from the beginning of memory in bytes."""

GUARD = 0xA5
"""The value of bytes that a copy or fill must not change."""

MARGIN = 64
"""The number of guard bytes on each side."""


class RuntimeViolationError(Exception):
    """The runtime violates the interface; the message says what it did and what was expected."""


class UnsupportedCaseError(Exception):
    """The case needs something that the runtime does not have; the message names it."""


def case(function: Callable[[RuntimeBench], None]) -> Callable[[RuntimeBench], None]:
    """Return the function unchanged, after registering it as a case under its name."""
    CASES[function.__name__] = function
    return function


@final
@dataclass
class RuntimeBench:
    """The runtime under test.

    Attributes:
        client: calls the functions of the runtime.
    """

    client: DeviceRuntimeClient
    _ballast: dict[int, int] = field(default_factory=dict)
    _repetitions: int = 0

    @property
    def device_count(self) -> int:
        """The number of devices."""
        return int(self.call("getDeviceCount"))

    def call(self, name: str, *inputs: Any) -> Any:
        """Return the output of a function of the runtime, called with `inputs`; see `DeviceRuntimeClient.call`."""
        return self.client.call(name, *inputs)

    def require_devices(self, count: int) -> None:
        """Raise UnsupportedCaseError if the runtime has fewer devices."""
        if self.device_count < count:
            raise UnsupportedCaseError(f"needs {count} devices; the runtime has {self.device_count}")

    @contextmanager
    def on_device(self, device: int) -> Iterator[None]:
        """Return a context manager in which a device is the current one."""
        previous = self.call("current_device")
        self.call("setDevice", device)
        yield
        self.call("setDevice", previous)

    @contextmanager
    def stream(self, prior: bool = False) -> Iterator[int]:
        """Create a stream on the current device, and destroy it at the end of the `with` statement.

        Args:
            prior: whether the stream has priority.

        Yields:
            The handle of the stream.
        """
        stream = self.call("createStream", prior)
        yield stream
        self.call("destroyStream", stream)

    @contextmanager
    def streams(self, count: int) -> Iterator[list[int]]:
        """Return a context manager with `count` new streams; every second one has priority."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.stream(prior=bool(n % 2))) for n in range(count)]

    @contextmanager
    def events(self, count: int) -> Iterator[list[int]]:
        """Return a context manager with `count` new events on the current device, which are destroyed at its end."""
        events = [self.call("createEvent") for _ in range(count)]
        yield events
        for event in events:
            self.call("destroyEvent", event)

    @contextmanager
    def memory(self, size: int, value: int | None = None) -> Iterator[int]:
        """Allocate memory on the current device, and free it at the end of the `with` statement.

        Args:
            size: the number of bytes.
            value: the value of all bytes; None to leave them as they are.

        Yields:
            The address.
        """
        address = self.call("mallocDevice", size, True)
        if value is not None:
            self.upload(address, np.full(size, value, np.uint8))
        yield address
        self.call("freeDevice", address)

    @contextmanager
    def pinned(self, size: int, value: int = GUARD) -> Iterator[Bytes]:
        """Allocate pinned memory filled with `value`, yield it as an array, and free it at the end of the `with`."""
        address = self.call("mallocHost", size)
        array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
        array[:] = value
        yield array
        self.call("freeHost", address)

    def upload(self, address: int, array: Bytes) -> None:
        """Copy an array to device memory and wait."""
        self.call("memCopyH2D", array.nbytes, address, address_of(array))

    def download(self, address: int, size: int) -> Bytes:
        """Return `size` bytes of device memory from an address."""
        array = np.full(size, GUARD, np.uint8)
        self.call("memCopyD2H", size, address_of(array), address)
        return array

    def occupy(self, stream: int, milliseconds: float = BUSY_MILLISECONDS) -> None:
        """Enqueue fills and copies on a stream of the current device that take about this time."""
        device = self.call("current_device")
        if device not in self._ballast:
            self._ballast[device] = self.call("mallocDevice", 2 * BALLAST_BYTES, True)
        self._repetitions = self._repetitions or self._count_repetitions(device)
        self._enqueue_ballast(stream, device, math.ceil(self._repetitions * milliseconds / BUSY_MILLISECONDS))

    def _enqueue_ballast(self, stream: int, device: int, repetitions: int) -> None:
        """Enqueue twice this number of copies and then this number of fills.

        The stream stays busy even if a faulty runtime performs either kind during the call.
        """
        first = self._ballast[device]
        for _ in range(2 * repetitions):
            self.call("memCopyD2DAsync", stream, BALLAST_BYTES, device, first + BALLAST_BYTES, device, first)
        for _ in range(repetitions):
            self.call("memSetAsync", stream, first, 0, BALLAST_BYTES)

    def _count_repetitions(self, device: int) -> int:
        """Return the repetitions for which `_enqueue_ballast` keeps an idle device busy for `BUSY_MILLISECONDS`."""
        count = 1
        with self.stream() as stream:
            while True:
                seconds = min(self._measure_ballast(stream, device, count) for _ in range(3))
                if seconds > BUSY_MILLISECONDS / 4000 or count > MAX_REPETITIONS:
                    return min(math.ceil(count * BUSY_MILLISECONDS / 1000 / seconds), MAX_REPETITIONS)
                count *= 2

    def _measure_ballast(self, stream: int, device: int, repetitions: int) -> float:
        """Return the seconds that the fills and copies of `_enqueue_ballast` take."""
        start = time.perf_counter()
        self._enqueue_ballast(stream, device, repetitions)
        self.call("syncStream", stream)
        return time.perf_counter() - start

    def forget_device(self, device: int) -> None:
        """Forget the memory that the bench has allocated on a device, because a reset of the device has freed it."""
        self._ballast.pop(device, None)

    def wait_until(self, subject: str, is_reached: Callable[[], bool]) -> None:
        """Poll until a state is reached; raise RuntimeViolationError if this takes too long."""
        start = time.monotonic()
        while not is_reached():
            elapsed = time.monotonic() - start
            if elapsed > POLL_SECONDS:
                raise RuntimeViolationError(f"{subject}: not reached within {POLL_SECONDS:g} s")
            time.sleep(0 if elapsed < SPIN_SECONDS else 0.0005)

    def is_ready(self, event: int) -> bool:
        """Return whether an event is ready."""
        return bool(self.call("getEventStatus", event) == READY)


def address_of(array: Bytes) -> int:
    """Return the address of the first byte of an array."""
    return int(array.ctypes.data)


def pattern(size: int, seed: int = 0) -> Bytes:
    """Return `size` random bytes, an array of shape (size,) that depends only on the size and the seed."""
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def check(subject: str, actual: object, expected: object) -> None:
    """Raise RuntimeViolationError unless two values are equal; `subject` says in the message what they are."""
    if actual != expected:
        raise RuntimeViolationError(f"{subject}: {actual!r}, expected {expected!r}")


def check_that(condition: bool, message: str) -> None:
    """Raise RuntimeViolationError with the message unless the condition holds."""
    if not condition:
        raise RuntimeViolationError(message)


def check_bytes(subject: str, actual: Bytes, expected: Bytes | int) -> None:
    """Raise RuntimeViolationError unless all bytes are as expected; the message names the first difference.

    Args:
        subject: what the bytes are, for the message.
        actual: the bytes.
        expected: the expected bytes, or the value of all bytes.

    Raises:
        RuntimeViolationError: A byte differs.
    """
    expected_bytes = np.broadcast_to(np.asarray(expected, np.uint8), actual.shape)
    (places,) = np.nonzero(actual != expected_bytes)
    if places.size:
        first = int(places[0])
        differing = f"{pluralize(places.size, 'byte')} of {actual.size:,} {'differs' if places.size == 1 else 'differ'}"
        raise RuntimeViolationError(
            f"{subject}: {differing}; the first is byte {first:,}: {actual[first]}, expected {expected_bytes[first]}"
        )


def check_guarded(subject: str, actual: Bytes, offset: int, expected: Bytes | int, size: int) -> None:
    """Raise RuntimeViolationError unless some bytes are as expected, and all others are guard bytes.

    Args:
        subject: what the bytes are, for the message.
        actual: the bytes.
        offset: the position of the first byte that is not a guard byte.
        expected: the expected bytes, or the value of all bytes.
        size: the number of bytes that are not guard bytes.
    """
    check_bytes(subject, actual[offset : offset + size], expected)
    check_bytes(f"{subject}: bytes before the target", actual[:offset], GUARD)
    check_bytes(f"{subject}: bytes after the target", actual[offset + size :], GUARD)


@contextmanager
def expect_rejection(subject: str, statuses: Sequence[str] = ("DIPU_EXCEPTION",)) -> Iterator[None]:
    """Return a context manager that raises RuntimeViolationError unless its body fails with one of the statuses."""
    try:
        yield
    except RuntimeCallError as error:
        check_that(
            error.status in statuses, f"{subject}: {error.function} returned {error.status}, expected {statuses[0]}"
        )
        return
    raise RuntimeViolationError(f"{subject} is accepted, expected {statuses[0]}")
