"""Cases of threads that use a runtime at the same time.

Each case receives the bench (`RuntimeBench`), through which it calls the runtime. The name of a case states what must
be true; the case raises `RuntimeViolationError` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from diopi_test.device_runtime.bench import RuntimeBench, address_of, case, check, check_bytes, pattern
from lib_rt.device_runtime_client import RuntimeCallError

THREADS = 8
"""The number of threads that work at the same time."""

ROUNDS = 40
"""The number of repetitions in each thread."""

SIZE = 20_011
"""The size of the copies in bytes."""


def _run_in_threads(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Call a function in several new threads that begin at the same time; raise the first exception."""
    barrier = Barrier(threads)

    def begin(number: int) -> None:
        barrier.wait()
        work(number)

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(begin, number) for number in range(threads)]:
            future.result()


@case
def a_new_thread_begins_on_device_0(bench: RuntimeBench) -> None:
    last = bench.device_count - 1
    with bench.on_device(last):
        _run_in_threads(lambda _: check("the current device of a new thread", bench.call("current_device"), 0), 1)
        check("the current device of the first thread", bench.call("current_device"), last)


@case
def each_thread_has_a_current_device(bench: RuntimeBench) -> None:
    bench.require_devices(2)

    def switch(number: int) -> None:
        for step in range(ROUNDS):
            device = (number + step) % 2
            with bench.on_device(device), bench.memory(100, number) as memory:
                check(f"the current device of thread {number}", bench.call("current_device"), device)
                check_bytes(f"memory of thread {number}", bench.download(memory, 100), number)

    _run_in_threads(switch)
    check("the current device of the first thread", bench.call("current_device"), 0)


@case
def threads_use_streams_of_their_own(bench: RuntimeBench) -> None:
    def work(number: int) -> None:
        with (
            bench.stream() as stream,
            bench.memory(SIZE) as first,
            bench.memory(SIZE) as second,
            bench.pinned(SIZE) as array,
        ):
            for step in range(ROUNDS):
                values = pattern(SIZE, number * ROUNDS + step)
                array[:] = values
                bench.call("memCopyH2DAsync", stream, SIZE, first, address_of(array))
                bench.call("memCopyD2DAsync", stream, SIZE, 0, second, 0, first)
                bench.call("syncStream", stream)
                array[:] = 0
                bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), second)
                bench.call("syncStream", stream)
                check_bytes(f"round {step} of thread {number}", array, values)

    _run_in_threads(work)


@case
def threads_share_a_stream(bench: RuntimeBench) -> None:
    with bench.stream() as stream, bench.memory(THREADS * ROUNDS) as memory:
        bench.occupy(stream)

        def work(number: int) -> None:
            for step in range(ROUNDS):
                bench.call("memSetAsync", stream, memory + number * ROUNDS + step, number, 1)
            bench.call("syncStream", stream)
            actual = bench.download(memory + number * ROUNDS, ROUNDS)
            check_bytes(f"the fills of thread {number} on a shared stream", actual, number)

        _run_in_threads(work)


@case
def threads_allocate_at_the_same_time(bench: RuntimeBench) -> None:
    def work(number: int) -> None:
        for step in range(ROUNDS):
            size = 100 + 37 * step
            with (
                bench.memory(size, number) as memory,
                bench.pinned(size, number) as array,
                bench.memory(size, number + 100),
            ):
                check_bytes(f"device memory of thread {number}", bench.download(memory, size), number)
                check_bytes(f"pinned memory of thread {number}", array, number)

    _run_in_threads(work)


@case
def threads_wait_for_events_of_other_threads(bench: RuntimeBench) -> None:
    with (
        bench.stream() as stream,
        bench.events(1) as [event],
        bench.memory(SIZE, 7) as memory,
        bench.pinned(SIZE) as array,
    ):
        bench.occupy(stream)
        bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
        bench.call("recordEvent", event, stream)
        waits = (
            lambda: bench.call("waitEvent", event),
            lambda: bench.call("syncStream", stream),
            lambda: bench.call("syncDevice"),
        )

        def work(number: int) -> None:
            waits[number % len(waits)]()
            check_bytes(f"a copy of another thread after a wait in thread {number}", array, 7)

        _run_in_threads(work)


@case
def sync_device_waits_for_work_of_other_threads(bench: RuntimeBench) -> None:
    with bench.stream() as stream, bench.memory(SIZE, 7) as memory, bench.pinned(SIZE) as array:

        def work(_: int) -> None:
            bench.occupy(stream)
            bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)

        _run_in_threads(work, 1)
        bench.call("syncDevice")
        check_bytes("a copy that another thread enqueued after syncDevice", array, 7)


@case
def threads_create_and_destroy_streams_and_events(bench: RuntimeBench) -> None:
    with bench.memory(THREADS) as memory:

        def work(number: int) -> None:
            for step in range(ROUNDS):
                with bench.stream(prior=step % 2 == 1) as stream, bench.events(1) as [event]:
                    bench.call("memSetAsync", stream, memory + number, step, 1)
                    bench.call("recordEvent", event, stream)
                    bench.call("waitEvent", event)
                    check_bytes(f"round {step} of thread {number}", bench.download(memory + number, 1), step)

        _run_in_threads(work)


@case
def an_error_of_a_thread_does_not_reach_others(bench: RuntimeBench) -> None:
    def work(number: int) -> None:
        for _ in range(ROUNDS):
            if number % 2:
                bench.call("checkLastError")
                with bench.memory(100, number) as memory:
                    check_bytes(f"memory of thread {number}", bench.download(memory, 100), number)
            else:
                try:
                    bench.call("setDevice", bench.device_count)
                except RuntimeCallError as error:
                    check("the function of the error", error.function, "setDevice")

    _run_in_threads(work)
