"""Cases of streams: order, waiting, destruction and devices.

Each case receives the bench (`RuntimeBench`), through which it calls the runtime. The name of a case states what must
be true; the case raises `RuntimeViolationError` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from diopi_test.device_runtime.bench import (
    GUARD,
    RuntimeBench,
    address_of,
    case,
    check,
    check_bytes,
    check_that,
    pattern,
)

SIZE = 4097
"""The size of the copies in bytes."""

STEPS = 60
"""The number of dependent commands of a case of order."""

STREAM_COUNT = 64
"""The number of streams of a case of many streams."""


def _check_delayed_copy(bench: RuntimeBench, stream: int, wait: Callable[[], object], subject: str) -> None:
    """Check that a copy to pinned memory, enqueued on a busy stream, is complete after `wait` has been called.

    Args:
        bench: the runtime under test.
        stream: the stream.
        wait: waits for the copy.
        subject: when and on which stream the copy is checked, for the message.
    """
    with bench.memory(SIZE, 7) as memory, bench.pinned(SIZE) as array:
        bench.occupy(stream)
        bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
        wait()
        check_bytes(f"a copy on the stream {subject}", array, 7)
        bench.call("syncStream", stream)


def _check_order(bench: RuntimeBench, stream: int, subject: str) -> None:
    """Check that dependent copies and fills behind other work run in order."""
    with bench.memory(SIZE, 0) as first, bench.memory(SIZE, 0) as second, bench.pinned(STEPS * SIZE) as array:
        bench.occupy(stream)
        for step in range(STEPS):
            bench.call("memSetAsync", stream, first, step, SIZE)
            bench.call("memCopyD2DAsync", stream, SIZE, 0, second, 0, first)
            bench.call("memSetAsync", stream, first, GUARD, SIZE)
            bench.call("memCopyD2HAsync", stream, SIZE, address_of(array) + step * SIZE, second)
        bench.call("syncStream", stream)
        for step in range(STEPS):
            check_bytes(f"step {step} on {subject}", array[step * SIZE : (step + 1) * SIZE], step)


@case
def work_on_a_stream_runs_in_order(bench: RuntimeBench) -> None:
    with bench.stream() as stream:
        _check_order(bench, stream, "a stream")


@case
def work_on_a_stream_with_priority_runs_in_order(bench: RuntimeBench) -> None:
    with bench.stream(prior=True) as stream:
        _check_order(bench, stream, "a stream with priority")


@case
def work_on_the_default_stream_runs_in_order(bench: RuntimeBench) -> None:
    _check_order(bench, 0, "the default stream")


@case
def copies_and_fills_of_different_sizes_run_in_order(bench: RuntimeBench) -> None:
    size = 8 << 20
    parts = {"a small fill": 0, "a copy": SIZE, "a fill of one byte": 2 * SIZE, "a large fill": 2 * SIZE + 1}
    with (
        bench.memory(size, 0) as memory,
        bench.pinned(SIZE, 3) as source,
        bench.pinned(5 * len(parts)) as array,
        bench.stream() as stream,
    ):
        bench.occupy(stream)
        for step in range(5):
            bench.call("memSetAsync", stream, memory, step, size)
            bench.call("memSetAsync", stream, memory, step + 100, SIZE)
            bench.call("memCopyH2DAsync", stream, SIZE, memory + SIZE, address_of(source))
            bench.call("memSetAsync", stream, memory + 2 * SIZE, 77, 1)
            for n, place in enumerate(parts.values()):
                bench.call("memCopyD2HAsync", stream, 1, address_of(array) + step * len(parts) + n, memory + place)
        bench.call("syncStream", stream)
        for step in range(5):
            for n, (subject, value) in enumerate(zip(parts, (step + 100, 3, 77, step), strict=True)):
                check(f"the result of {subject} in step {step}", int(array[step * len(parts) + n]), value)


@case
def sync_stream_waits_for_its_work(bench: RuntimeBench) -> None:
    with bench.stream() as plain, bench.stream(prior=True) as urgent:
        for stream, name in ((plain, "a stream"), (urgent, "a stream with priority"), (0, "the default stream")):
            _check_delayed_copy(bench, stream, partial(bench.call, "syncStream", stream), f"after syncStream: {name}")


@case
def sync_device_waits_for_all_streams(bench: RuntimeBench) -> None:
    with bench.streams(4) as streams:
        for stream, name in ((streams[0], "a stream"), (streams[3], "the last stream"), (0, "the default stream")):
            _check_delayed_copy(bench, stream, partial(bench.call, "syncDevice"), f"after syncDevice: {name}")
        with bench.memory(SIZE, 9) as memory, bench.pinned(SIZE * 5) as array:
            for n, stream in enumerate([*streams, 0]):
                bench.occupy(stream, 10)
                bench.call("memCopyD2HAsync", stream, SIZE, address_of(array) + n * SIZE, memory)
            bench.call("syncDevice")
            check_bytes("copies on five streams after syncDevice", array, 9)


@case
def a_stream_is_empty_when_its_work_is_complete(bench: RuntimeBench) -> None:
    with bench.stream() as stream, bench.memory(SIZE, 7) as memory, bench.pinned(SIZE) as array:
        check("isStreamEmpty of a new stream", bench.call("isStreamEmpty", stream), True)
        for value in (1, 2, 3):
            bench.call("memSetAsync", stream, memory, value, SIZE)
            bench.occupy(stream)
            bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
            bench.wait_until("an empty stream", lambda: bool(bench.call("isStreamEmpty", stream)))
            check_bytes("a copy on a stream that is said to be empty", array, value)
            bench.call("syncStream", stream)
            check("isStreamEmpty after syncStream", bench.call("isStreamEmpty", stream), True)


@case
def a_stream_is_not_empty_while_its_last_copy_runs(bench: RuntimeBench) -> None:
    size = 32 << 20
    with bench.stream() as stream, bench.memory(size, 7) as memory, bench.pinned(size) as array:
        for _ in range(8):  # because it depends on chance whether the poll and the end of the copy coincide
            array[-1] = GUARD
            bench.call("memCopyD2HAsync", stream, size, address_of(array), memory)
            bench.wait_until("an empty stream", lambda: bool(bench.call("isStreamEmpty", stream)))
            check("the last byte of a copy on a stream that is said to be empty", int(array[-1]), 7)
            bench.call("syncStream", stream)


@case
def only_null_is_the_default_stream(bench: RuntimeBench) -> None:
    check("streamNotNull of NULL", bench.call("streamNotNull", 0), False)
    with bench.stream() as stream:
        check("streamNotNull of a new stream", bench.call("streamNotNull", stream), True)


@case
def a_destroyed_stream_completes_its_work(bench: RuntimeBench) -> None:
    for name, arguments in (("destroyStream", ()), ("destroyStreamOfDevice", (0,))):
        with bench.memory(SIZE, 7) as memory, bench.pinned(SIZE) as array:
            stream = bench.call("createStream", False)
            bench.occupy(stream)
            bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
            bench.call(name, stream, *arguments)
            bench.call("syncDevice")
            check_bytes(f"a copy that was enqueued before {name}", array, 7)


@case
def destroying_a_stream_leaves_others_valid(bench: RuntimeBench) -> None:
    with bench.streams(3) as streams:
        stream = bench.call("createStream", False)
        bench.call("destroyStream", stream)
        bench.call("releaseStream")
        for remaining in streams:
            _check_delayed_copy(bench, remaining, partial(bench.call, "syncStream", remaining), "after releaseStream")


@case
def release_stream_keeps_enqueued_work(bench: RuntimeBench) -> None:
    with bench.stream() as stream, bench.memory(SIZE, 7) as memory, bench.pinned(SIZE) as array:
        bench.occupy(stream)
        bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
        bench.call("releaseStream")
        bench.call("syncStream", stream)
        check_bytes("a copy that was enqueued before releaseStream", array, 7)


@case
def many_streams_work_at_once(bench: RuntimeBench) -> None:
    with (
        bench.streams(STREAM_COUNT) as streams,
        bench.memory(STREAM_COUNT * SIZE) as memory,
        bench.pinned(STREAM_COUNT * SIZE) as array,
    ):
        check("the number of different handles", len(set(streams)), STREAM_COUNT)
        for n, stream in enumerate(streams):
            bench.call("memSetAsync", stream, memory + n * SIZE, n, SIZE)
            bench.call("memCopyD2HAsync", stream, SIZE, address_of(array) + n * SIZE, memory + n * SIZE)
        for stream in streams:
            bench.call("syncStream", stream)
        for n in range(STREAM_COUNT):
            check_bytes(f"the bytes of stream {n} of {STREAM_COUNT}", array[n * SIZE : (n + 1) * SIZE], n)


@case
def streams_can_be_created_and_destroyed_often(bench: RuntimeBench) -> None:
    with bench.memory(SIZE) as memory:
        for n in range(300):
            with bench.stream(prior=n % 2 == 1) as stream:
                bench.call("memSetAsync", stream, memory, n & 0xFF, SIZE)
        bench.call("syncDevice")
        check_bytes("the last fill", bench.download(memory, SIZE), 299 & 0xFF)


@case
def a_stream_belongs_to_the_device_of_its_creation(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    values = pattern(SIZE)
    with bench.on_device(1), bench.stream() as stream, bench.memory(SIZE, 0) as memory, bench.pinned(SIZE) as array:
        array[:] = values
        with bench.on_device(0):
            bench.call("memCopyH2DAsync", stream, SIZE, memory, address_of(array))
            bench.call("syncStream", stream)
        check_bytes("a copy on a stream of device 1 while device 0 is current", bench.download(memory, SIZE), values)
        bench.occupy(stream)
        bench.call("memSetAsync", stream, memory, 5, SIZE)
        bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
        bench.call("syncDevice")
        check_bytes("a copy on a stream of device 1 after syncDevice", array, 5)


@case
def a_stream_can_be_destroyed_while_another_device_is_current(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    for name, arguments in (("destroyStream", ()), ("destroyStreamOfDevice", (1,))):
        with bench.on_device(1), bench.memory(SIZE, 7) as memory, bench.pinned(SIZE) as array:
            stream = bench.call("createStream", False)
            bench.occupy(stream)
            bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
            with bench.on_device(0):
                bench.call(name, stream, *arguments)
                check(f"the current device after {name}", bench.call("current_device"), 0)
            bench.call("syncDevice")
            check_bytes(f"a copy that was enqueued before {name}", array, 7)


@case
def each_device_has_a_default_stream(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    with bench.memory(SIZE, 1) as first, bench.on_device(1), bench.memory(SIZE, 2) as second:
        for device, memory in ((0, first), (1, second)):
            with bench.on_device(device), bench.pinned(SIZE) as array:
                bench.occupy(0)
                bench.call("memSetAsync", 0, memory, device + 5, SIZE)
                bench.call("memCopyD2HAsync", 0, SIZE, address_of(array), memory)
                bench.call("syncStream", 0)
                check_bytes(f"a copy on the default stream of device {device}", array, device + 5)
                check_that(bench.call("isStreamEmpty", 0), f"the default stream of device {device} is not empty")
