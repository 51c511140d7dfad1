"""Cases of events: waiting, order between streams, and time.

Each case receives the bench (`RuntimeBench`), through which it calls the runtime. The name of a case states what must
be true; the case raises `RuntimeViolationError` otherwise.
"""

from __future__ import annotations

import time
from itertools import pairwise

from diopi_test.device_runtime.bench import (
    BUSY_MILLISECONDS,
    GUARD,
    RuntimeBench,
    address_of,
    case,
    check,
    check_bytes,
    check_that,
    expect_rejection,
)
from lib_rt.device_runtime_client import RuntimeCallError

SIZE = 4097
"""The size of the copies in bytes."""

TOLERANCE = 2.0
"""The milliseconds by which times of the device and of the host may differ: twice the coarsest permitted resolution."""

ATTEMPTS = 5
"""The maximum number of measurements.

The first one counts in which the host enqueues work much faster than the device performs it, or else the last one.
"""

PAUSE = 50.0
"""The milliseconds for which the host sleeps between two events."""


@case
def an_event_that_was_never_recorded_is_ready(bench: RuntimeBench) -> None:
    with bench.events(1) as [event], bench.stream() as stream, bench.memory(SIZE) as memory:
        check("whether a new event is ready", bench.is_ready(event), True)
        bench.call("waitEvent", event)
        bench.call("streamWaitEvent", stream, event)
        bench.call("memSetAsync", stream, memory, 3, SIZE)
        bench.call("syncStream", stream)
        check_bytes("a fill after streamWaitEvent", bench.download(memory, SIZE), 3)


@case
def wait_event_waits_for_the_recorded_work(bench: RuntimeBench) -> None:
    with (
        bench.events(1) as [event],
        bench.memory(SIZE, 7) as memory,
        bench.pinned(SIZE) as array,
        bench.streams(2) as streams,
    ):
        for stream in [*streams, 0]:
            array[:] = GUARD
            bench.occupy(stream)
            bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
            bench.call("recordEvent", event, stream)
            bench.call("waitEvent", event)
            check_bytes("a copy before the event after waitEvent", array, 7)
            check("whether the event is ready after waitEvent", bench.is_ready(event), True)


@case
def an_event_is_ready_only_after_its_work(bench: RuntimeBench) -> None:
    with (
        bench.events(1) as [event],
        bench.stream() as stream,
        bench.pinned(SIZE) as array,
        bench.memory(SIZE) as memory,
    ):
        for value in (1, 2, 3):
            bench.call("memSetAsync", stream, memory, value, SIZE)
            bench.occupy(stream)
            bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
            bench.call("recordEvent", event, stream)
            bench.wait_until("a ready event", lambda: bench.is_ready(event))
            check_bytes("a copy before an event that is ready", array, value)
            bench.call("syncStream", stream)
            check("whether the event is ready after syncStream", bench.is_ready(event), True)


@case
def a_new_record_replaces_the_earlier_one(bench: RuntimeBench) -> None:
    with (
        bench.events(1) as [event],
        bench.streams(2) as [first, second],
        bench.pinned(SIZE) as array,
        bench.memory(SIZE, 7) as memory,
    ):
        bench.call("recordEvent", event, first)
        bench.call("waitEvent", event)
        bench.occupy(second)
        bench.call("memCopyD2HAsync", second, SIZE, address_of(array), memory)
        bench.call("recordEvent", event, second)
        bench.call("waitEvent", event)
        check_bytes("a copy before the second record after waitEvent", array, 7)


@case
def a_stream_waits_for_an_event(bench: RuntimeBench) -> None:
    with (
        bench.events(1) as [event],
        bench.streams(3) as streams,
        bench.pinned(SIZE) as array,
        bench.memory(SIZE) as memory,
    ):
        for value, (first, second) in enumerate([*pairwise([*streams, 0]), (0, streams[0])] * 3):
            bench.occupy(first)
            bench.call("memSetAsync", first, memory, value, SIZE)
            bench.call("recordEvent", event, first)
            bench.call("streamWaitEvent", second, event)
            bench.call("memCopyD2HAsync", second, SIZE, address_of(array), memory)
            bench.call("syncStream", second)
            check_bytes("a copy after streamWaitEvent", array, value)


@case
def several_streams_wait_for_an_event(bench: RuntimeBench) -> None:
    with (
        bench.events(1) as [event],
        bench.streams(5) as [first, *peers],
        bench.memory(SIZE, 1) as memory,
        bench.pinned(len(peers) * SIZE) as array,
    ):
        bench.occupy(first)
        bench.call("memSetAsync", first, memory, 2, SIZE)
        bench.call("recordEvent", event, first)
        for n, stream in enumerate(peers):
            bench.call("streamWaitEvent", stream, event)
            bench.call("memCopyD2HAsync", stream, SIZE, address_of(array) + n * SIZE, memory)
        for stream in peers:
            bench.call("syncStream", stream)
        check_bytes("copies on four streams after streamWaitEvent", array, 2)


@case
def a_stream_waits_for_several_events(bench: RuntimeBench) -> None:
    with (
        bench.events(3) as events,
        bench.streams(4) as [last, *peers],
        bench.memory(3 * SIZE) as memory,
        bench.pinned(3 * SIZE) as array,
    ):
        for value in (1, 2, 3):
            for n, (event, stream) in enumerate(zip(events, peers, strict=True)):
                bench.occupy(stream, BUSY_MILLISECONDS * n)
                bench.call("memSetAsync", stream, memory + n * SIZE, value, SIZE)
                bench.call("recordEvent", event, stream)
            for event in events:
                bench.call("streamWaitEvent", last, event)
            bench.call("memCopyD2HAsync", last, 3 * SIZE, address_of(array), memory)
            bench.call("syncStream", last)
            check_bytes("a copy after streamWaitEvent for three events", array, value)


@case
def a_later_record_does_not_change_a_wait(bench: RuntimeBench) -> None:
    with (
        bench.events(1) as [event],
        bench.streams(2) as [first, second],
        bench.memory(SIZE, 1) as memory,
        bench.pinned(SIZE) as array,
    ):
        bench.occupy(first)
        bench.call("memSetAsync", first, memory, 2, SIZE)
        bench.call("recordEvent", event, first)
        bench.call("streamWaitEvent", second, event)
        bench.call("recordEvent", event, second)  # a wait for the latest record would now never end
        bench.call("memCopyD2HAsync", second, SIZE, address_of(array), memory)
        bench.wait_until("a stream that waits for an earlier record", lambda: bool(bench.call("isStreamEmpty", second)))
        check_bytes("a copy after streamWaitEvent", array, 2)
        bench.call("syncStream", first)


@case
def a_record_on_an_idle_stream_does_not_end_an_earlier_wait(bench: RuntimeBench) -> None:
    with (
        bench.events(1) as [event],
        bench.streams(3) as [first, second, third],
        bench.memory(SIZE, 1) as memory,
        bench.pinned(SIZE) as array,
    ):
        bench.occupy(first)
        bench.call("memSetAsync", first, memory, 2, SIZE)
        bench.call("recordEvent", event, first)
        bench.call("streamWaitEvent", second, event)
        bench.call("recordEvent", event, third)
        bench.call("memCopyD2HAsync", second, SIZE, address_of(array), memory)
        bench.call("syncStream", second)
        check_bytes("a copy after streamWaitEvent", array, 2)


@case
def streams_can_wait_for_each_other_in_turn(bench: RuntimeBench) -> None:
    rounds = 40
    with (
        bench.streams(2) as streams,
        bench.events(2 * rounds) as events,
        bench.pinned(rounds) as array,
        bench.memory(rounds + 1, 0) as memory,
    ):
        for n, event in enumerate(events):
            stream, waiting = streams[n % 2], streams[1 - n % 2]
            if n % 2 == 0:
                bench.call("memSetAsync", stream, memory, n // 2 + 1, 1)
            else:
                bench.call("memCopyD2DAsync", stream, 1, 0, memory + 1 + n // 2, 0, memory)
            bench.call("recordEvent", event, stream)
            bench.call("streamWaitEvent", waiting, event)
        bench.call("memCopyD2HAsync", streams[0], rounds, address_of(array), memory + 1)
        bench.call("syncStream", streams[0])
        for n in range(rounds):
            check(f"the value of round {n}", int(array[n]), n + 1)


@case
def a_destroyed_event_is_still_waited_for(bench: RuntimeBench) -> None:
    with bench.streams(2) as [first, second], bench.memory(SIZE, 1) as memory, bench.pinned(SIZE) as array:
        event = bench.call("createEvent")
        bench.occupy(first)
        bench.call("memSetAsync", first, memory, 2, SIZE)
        bench.call("recordEvent", event, first)
        bench.call("streamWaitEvent", second, event)
        bench.call("destroyEvent", event)
        with bench.events(4):
            bench.call("memCopyD2HAsync", second, SIZE, address_of(array), memory)
            bench.call("syncStream", second)
        check_bytes("a copy after streamWaitEvent for an event that was destroyed", array, 2)


@case
def an_event_outlives_its_stream(bench: RuntimeBench) -> None:
    with bench.events(1) as [event], bench.memory(SIZE, 7) as memory, bench.pinned(SIZE) as array:
        stream = bench.call("createStream", False)
        bench.occupy(stream)
        bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
        bench.call("recordEvent", event, stream)
        bench.call("destroyStream", stream)
        bench.call("waitEvent", event)
        check_bytes("a copy on a destroyed stream after waitEvent", array, 7)


@case
def many_events_can_exist(bench: RuntimeBench) -> None:
    with bench.events(1000) as events, bench.stream() as stream, bench.memory(SIZE) as memory:
        check("the number of different handles", len(set(events)), len(events))
        for n, event in enumerate(events):
            bench.call("memSetAsync", stream, memory, n & 0xFF, 1)
            bench.call("recordEvent", event, stream)
        bench.call("waitEvent", events[-1])
        check("the number of ready events", sum(map(bench.is_ready, events)), len(events))


@case
def elapsed_time_is_that_of_the_host(bench: RuntimeBench) -> None:
    with bench.events(2) as [start, end], bench.stream() as stream:
        outer = time.perf_counter()
        bench.call("recordEvent", start, stream)
        bench.call("waitEvent", start)
        inner = time.perf_counter()
        time.sleep(PAUSE / 1000)
        shortest = (time.perf_counter() - inner) * 1000
        bench.call("recordEvent", end, stream)
        bench.call("waitEvent", end)
        longest = (time.perf_counter() - outer) * 1000
        elapsed = bench.call("eventElapsedTime", start, end)
        check_that(
            shortest - TOLERANCE <= elapsed <= longest + TOLERANCE,
            f"eventElapsedTime is {elapsed:.3f} ms, expected {shortest:.1f} to {longest:.1f} ms as on the host",
        )


@case
def elapsed_time_includes_the_work_between_the_events(bench: RuntimeBench) -> None:
    with bench.events(2) as [start, end], bench.stream() as stream:
        # Work that is performed while the host still enqueues it says nothing about a time that the calls take.
        for _ in range(ATTEMPTS):
            bench.occupy(stream, 1)
            bench.call("recordEvent", start, stream)
            bench.call("waitEvent", start)
            begin = time.perf_counter()
            bench.occupy(stream, 3 * BUSY_MILLISECONDS)
            bench.call("recordEvent", end, stream)
            enqueuing = (time.perf_counter() - begin) * 1000
            bench.call("waitEvent", end)
            duration = (time.perf_counter() - begin) * 1000
            if enqueuing < duration / 4:
                break
        elapsed = bench.call("eventElapsedTime", start, end)
        check_that(
            elapsed >= duration / 2,
            f"eventElapsedTime is {elapsed:.3f} ms, but the work between the events took {duration:.1f} ms",
        )


@case
def elapsed_time_is_monotonic_and_additive(bench: RuntimeBench) -> None:
    count = 50
    with bench.events(count) as events, bench.stream() as stream:
        for event in events:
            bench.occupy(stream, 2)
            bench.call("recordEvent", event, stream)
        bench.call("syncStream", stream)
        times = [bench.call("eventElapsedTime", events[0], event) for event in events]
        check("the time between an event and itself", times[0], 0.0)
        for n, (before, after) in enumerate(pairwise(times)):
            check_that(before <= after, f"event {n + 1} is {before - after:.4f} ms earlier than event {n} on a stream")
        middle, last = events[count // 2], times[-1]
        total = times[count // 2] + bench.call("eventElapsedTime", middle, events[-1])
        check_that(abs(total - last) <= TOLERANCE, f"two parts take {total:.3f} ms, but the whole takes {last:.3f} ms")
        reverse = bench.call("eventElapsedTime", events[-1], events[0])
        check_that(abs(reverse + last) <= TOLERANCE, f"the time is {last:.3f} ms and in reverse {reverse:.3f} ms")
        check_that(last > 0, f"the time of {count} events with work between them is {last:.3f} ms")


@case
def elapsed_time_needs_recorded_events(bench: RuntimeBench) -> None:
    with bench.events(2) as [recorded, new], bench.stream() as stream:
        bench.call("recordEvent", recorded, stream)
        bench.call("waitEvent", recorded)
        for start, end in ((recorded, new), (new, recorded), (new, new)):
            with expect_rejection("eventElapsedTime with an event that was never recorded"):
                bench.call("eventElapsedTime", start, end)


@case
def elapsed_time_needs_ready_events(bench: RuntimeBench) -> None:
    with bench.events(2) as [start, end], bench.stream() as stream:
        bench.call("recordEvent", start, stream)
        bench.occupy(stream)
        bench.call("recordEvent", end, stream)
        try:
            bench.call("eventElapsedTime", start, end)
        except RuntimeCallError:
            bench.call("waitEvent", end)
        else:
            check("whether the event is ready after eventElapsedTime has succeeded", bench.is_ready(end), True)
        check_that(bench.call("eventElapsedTime", start, end) > 0, "eventElapsedTime of work is not positive")


@case
def a_stream_waits_for_an_event_of_another_device(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    with (
        bench.events(1) as [event],
        bench.stream() as first,
        bench.memory(SIZE, 1) as source,
        bench.on_device(1),
        bench.stream() as second,
        bench.memory(SIZE, 1) as target,
    ):
        with bench.on_device(0):
            bench.occupy(first)
            bench.call("memSetAsync", first, source, 2, SIZE)
            bench.call("recordEvent", event, first)
        bench.call("streamWaitEvent", second, event)
        bench.call("memCopyD2DAsync", second, SIZE, 1, target, 0, source)
        bench.call("syncStream", second)
        check_bytes("a copy from a peer after streamWaitEvent", bench.download(target, SIZE), 2)
