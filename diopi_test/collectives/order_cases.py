"""Cases of order: collectives and other work on streams, several communicators and streams at once.

Every rank, which is a process, calls each case with its bench (`CollectivesBench`) at the same time. The name of a
case states what must be true; the case raises `RuntimeViolationError` otherwise.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.collectives.bench import (
    CASES,
    CollectivesBench,
    DeviceBuffer,
    check_elements,
    collective_case,
    type_code,
)
from diopi_test.device_runtime.bench import BUSY_MILLISECONDS, address_of, check_that

SIZE = 5003
"""The number of elements in the cases of order."""

EXCHANGES = ("diclAllReduce", "diclReduce", "diclBroadcast", "diclAllGather", "diclReduceScatter", "diclSend")
"""The functions whose order relative to other work is tested; diclSend also stands for diclRecv."""


def _sum(bench: CollectivesBench, buffer: DeviceBuffer, comm: int, stream: int) -> None:
    """Enqueue diclAllReduce with the operation SUM, with the buffer as input and result."""
    bench.call("diclAllReduce", buffer.address, buffer.address, buffer.count, type_code(buffer.dtype), 0, comm, stream)


def _enqueue_exchange(
    bench: CollectivesBench, function: str, send: DeviceBuffer, receive: DeviceBuffer, stream: int
) -> int:
    """Enqueue a call on the communicator of all ranks.

    Args:
        bench: the collectives of this rank.
        function: a function of `EXCHANGES`. For diclSend, each even rank sends to the next rank, which receives.
        send: the buffer of the input.
        receive: the buffer of the result.
        stream: the stream.

    Returns:
        The number of elements that this rank receives, at the beginning of `receive`.
    """
    tail = type_code(send.dtype), bench.world, stream
    code, *common = tail
    count, ranks = send.count // bench.ranks, bench.ranks
    addresses = send.address, receive.address
    if function == "diclSend":
        sender = bench.rank - bench.rank % 2
        if sender + 1 >= ranks:
            return 0
        is_sender = bench.rank == sender
        call = ("diclSend", send.address) if is_sender else ("diclRecv", receive.address)
        bench.call(*call, count, code, sender + 1 if is_sender else sender, *common)
        return 0 if is_sender else count
    arguments = {
        "diclAllReduce": (count, code, 0),
        "diclReduce": (count, code, 0, ranks - 1),
        "diclBroadcast": (count, code, 0),
        "diclAllGather": (count, code),
        "diclReduceScatter": (count, code, 0),
    }[function]
    bench.call(function, *addresses, *arguments, *common)
    if function == "diclReduce" and bench.rank != ranks - 1:
        return 0
    return count * ranks if function == "diclAllGather" else count


def _check_stream_order(bench: CollectivesBench, function: str) -> None:
    """Check that a call waits for earlier work on the stream, and later work for the call, on each rank in turn."""
    value = {"diclAllReduce": bench.ranks, "diclReduce": bench.ranks, "diclReduceScatter": bench.ranks}.get(function, 1)
    size = SIZE - SIZE % bench.ranks
    for busy in (0, bench.ranks - 1):
        with (
            bench.runtime.stream() as stream,
            bench.buffer(Dtype.uint8, size, np.full(size, 7, np.uint8)) as send,
            bench.buffer(Dtype.uint8, size) as receive,
            bench.runtime.pinned(size) as copy,
        ):
            if bench.rank == busy:
                bench.runtime.occupy(stream)
            bench.runtime.call("memSetAsync", stream, send.address, 1, size)
            count = _enqueue_exchange(bench, function, send, receive, stream)
            bench.runtime.call("memSetAsync", stream, send.address, 9, size)
            if count:
                bench.runtime.call("memCopyD2HAsync", stream, count, address_of(copy), receive.address)
            bench.runtime.call("memSetAsync", stream, receive.address, 5, size)
            bench.synchronize(bench.world, stream)
            subject = f"{function} between fills, while rank {busy} is busy"
            check_elements(subject, copy[:count], np.full(count, value, np.uint8))
            check_elements(f"{subject}: a later fill", receive.load(subject), np.full(size, 5, np.uint8))


for _function in EXCHANGES:
    CASES[f"{_function}_is_ordered_with_other_work_on_the_stream"] = partial(_check_stream_order, function=_function)


@collective_case
def a_call_does_not_wait_for_the_stream(bench: CollectivesBench) -> None:
    bench.exchange(bench.world)
    with bench.runtime.stream() as stream, bench.buffer(Dtype.int32, SIZE, np.ones(SIZE, np.int32)) as buffer:
        bench.runtime.occupy(stream, 3 * BUSY_MILLISECONDS)
        was_empty = bench.runtime.call("isStreamEmpty", stream)
        start = time.monotonic()
        _sum(bench, buffer, bench.world, stream)
        milliseconds = 1000 * (time.monotonic() - start)
        is_empty = bench.runtime.call("isStreamEmpty", stream)
        bench.synchronize(bench.world, stream)
        check_that(
            was_empty or not is_empty, f"diclAllReduce waits for the stream: it returned after {milliseconds:.0f} ms"
        )


@collective_case
def a_call_does_not_wait_for_other_ranks(bench: CollectivesBench) -> None:
    bench.require_ranks(2)
    bench.exchange(bench.world)
    with bench.runtime.stream() as stream, bench.buffer(Dtype.int32, SIZE, np.ones(SIZE, np.int32)) as buffer:
        if bench.rank > 0:
            bench.exchange("rank 0 has made its call")
        _sum(bench, buffer, bench.world, stream)
        if bench.rank == 0:
            bench.exchange("rank 0 has made its call")
        bench.synchronize(bench.world, stream)
        check_elements("the sum", buffer.load("diclAllReduce"), np.full(SIZE, bench.ranks, np.int32))


@collective_case
def events_wait_for_collectives(bench: CollectivesBench) -> None:
    with (
        bench.runtime.streams(2) as [first, second],
        bench.runtime.events(1) as [event],
        bench.buffer(Dtype.int32, SIZE, np.ones(SIZE, np.int32)) as buffer,
        bench.runtime.pinned(4 * SIZE) as copy,
    ):
        if bench.rank == bench.ranks - 1:
            bench.runtime.occupy(first)
        _sum(bench, buffer, bench.world, first)
        bench.runtime.call("recordEvent", event, first)
        bench.runtime.call("streamWaitEvent", second, event)
        bench.runtime.call("memCopyD2HAsync", second, 4 * SIZE, address_of(copy), buffer.address)
        bench.synchronize(bench.world, second)
        check_elements("a copy that waits for the event", copy.view(np.int32), np.full(SIZE, bench.ranks, np.int32))
        bench.synchronize(bench.world, first)


@collective_case
def collectives_run_on_the_default_stream(bench: CollectivesBench) -> None:
    with bench.buffer(Dtype.int32, SIZE, np.ones(SIZE, np.int32)) as buffer:
        _sum(bench, buffer, bench.world, 0)
        check_elements("the sum on the default stream", buffer.load("sum"), np.full(SIZE, bench.ranks, np.int32))


@collective_case
def calls_on_several_streams_keep_their_order(bench: CollectivesBench) -> None:
    with ExitStack() as stack:
        streams = stack.enter_context(bench.runtime.streams(3))
        values = [np.full(SIZE, 10**turn, np.int64) for turn in range(6)]
        buffers = [stack.enter_context(bench.buffer(Dtype.int64, SIZE, value)) for value in values]
        bench.runtime.occupy(streams[bench.rank % 3])
        for turn, buffer in enumerate(buffers):
            _sum(bench, buffer, bench.world, streams[turn % 3])
        for stream in streams:
            bench.synchronize(bench.world, stream)
        for turn, buffer in enumerate(buffers):
            expected = np.full(SIZE, bench.ranks * 10**turn, np.int64)
            check_elements(f"the sum of call {turn}", buffer.load("sum"), expected)


@collective_case
def communicators_on_different_streams_do_not_wait_for_each_other(bench: CollectivesBench) -> None:
    """The ranks enqueue the calls of two communicators in different orders."""
    with (
        bench.communicator() as first,
        bench.communicator() as second,
        bench.runtime.streams(2) as streams,
        bench.buffer(Dtype.int32, SIZE, np.full(SIZE, 1, np.int32)) as single,
        bench.buffer(Dtype.int32, SIZE, np.full(SIZE, 2, np.int32)) as double,
    ):
        calls = [(single, first, streams[0]), (double, second, streams[1])]
        for buffer, comm, stream in calls if bench.rank % 2 else reversed(calls):
            _sum(bench, buffer, comm, stream)
        for factor, (buffer, comm, stream) in enumerate(calls, 1):
            bench.synchronize(comm, stream)
            expected = np.full(SIZE, factor * bench.ranks, np.int32)
            check_elements(f"the sum of communicator {factor}", buffer.load("sum"), expected)


@collective_case
def two_ranks_send_to_each_other_at_once(bench: CollectivesBench) -> None:
    """Both ranks send first, on two communicators and two streams, more than fits into intermediate memory."""
    bench.require_ranks(2)
    count = 1 << 20
    with bench.communicator() as upward, bench.communicator() as downward, bench.runtime.streams(2) as streams:
        if bench.rank < 2:
            elements = np.full(count, bench.rank, np.uint8)
            with bench.buffer(Dtype.uint8, count, elements) as send, bench.buffer(Dtype.uint8, count) as receive:
                out, back = (upward, downward) if bench.rank == 0 else (downward, upward)
                peer = 1 - bench.rank
                bench.call("diclSend", send.address, count, type_code(Dtype.uint8), peer, out, streams[0])
                bench.call("diclRecv", receive.address, count, type_code(Dtype.uint8), peer, back, streams[1])
                bench.synchronize(out, streams[0])
                bench.synchronize(back, streams[1])
                check_elements("the elements of the peer", receive.load("diclRecv"), np.full(count, peer, np.uint8))


@collective_case
def threads_use_different_communicators_at_once(bench: CollectivesBench) -> None:
    """Each of four threads makes calls on a communicator of its own."""
    device = bench.runtime.call("current_device")

    def work(comm: int, value: int) -> None:
        """Add numbers repeatedly."""
        bench.runtime.call("setDevice", device)
        with bench.runtime.stream() as stream, bench.buffer(Dtype.int64, 65) as buffer:
            for turn in range(10):
                buffer.store(np.full(65, value + turn, np.int64))
                _sum(bench, buffer, comm, stream)
                bench.synchronize(comm, stream)
                expected = np.full(65, bench.ranks * (value + turn), np.int64)
                check_elements(f"the sum of turn {turn}", buffer.load("sum"), expected)

    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        comms = [stack.enter_context(bench.communicator()) for _ in range(4)]
        for future in [pool.submit(work, comm, 100 * number) for number, comm in enumerate(comms)]:
            future.result()
