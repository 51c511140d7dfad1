"""Cases of ranks that are late, end, or make another call: an error within the time limit, and never a hang.

Every rank, which is a process, calls each case with its bench (`CollectivesBench`) at the same time. The name of a
case states what must be true; the case raises `RuntimeViolationError` otherwise.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.collectives.bench import (
    CASES,
    GRACE_SECONDS,
    CollectivesBench,
    DeviceBuffer,
    check_elements,
    collective_case,
    type_code,
)
from diopi_test.collectives.communicator_cases import check_sum
from diopi_test.device_runtime.bench import RuntimeViolationError
from lib_rt.device_runtime_client import MissingFunctionError, RuntimeCallError

LIMIT_SECONDS = 2.0
"""The time limit in the cases in which ranks fail."""

SIZE = 1000
"""The number of elements of most calls."""

FLOAT, INT = type_code(Dtype.float32), type_code(Dtype.int32)

Call = Callable[[CollectivesBench, DeviceBuffer, int, int], None]
"""Makes a call. Its parameters are the bench, a buffer of ranks * SIZE elements, the communicator and the stream."""


def _caller(function: str, *arguments: int) -> Call:
    """Return a function that makes a call in place, with these arguments between the buffers and the communicator."""

    def call(bench: CollectivesBench, buffer: DeviceBuffer, comm: int, stream: int) -> None:
        """Make the call."""
        bench.call(function, buffer.address, buffer.address, *arguments, comm, stream)

    return call


def _call_all_to_all(bench: CollectivesBench, buffer: DeviceBuffer, comm: int, stream: int) -> None:
    """Call diclAllToAllEqualSplit with the two halves of the buffer."""
    count = SIZE // 2
    target = buffer.element(count * bench.ranks)
    bench.call("diclAllToAllEqualSplit", buffer.address, target, count, FLOAT, comm, stream)


def _call_peer(bench: CollectivesBench, buffer: DeviceBuffer, comm: int, stream: int) -> None:
    """Call diclSend on the last rank for each other rank, and diclRecv on the other ranks."""
    last = bench.ranks - 1
    for peer in range(last):
        if bench.rank == last:
            bench.call("diclSend", buffer.address, SIZE, FLOAT, peer, comm, stream)
        elif bench.rank == peer:
            bench.call("diclRecv", buffer.address, SIZE, FLOAT, last, comm, stream)


CALLS: dict[str, Call] = {
    "diclAllReduce": _caller("diclAllReduce", SIZE, FLOAT, 0),
    "diclReduce": _caller("diclReduce", SIZE, FLOAT, 0, 0),
    "diclAllGather": _caller("diclAllGather", SIZE, FLOAT),
    "diclReduceScatter": _caller("diclReduceScatter", SIZE, FLOAT, 0),
    "diclAllToAllEqualSplit": _call_all_to_all,
    "diclRecv": _call_peer,
}
"""The calls that must report an error if a rank is late or has ended, by name.

The call `diclRecv` consists of diclSend on the last rank and diclRecv on the others.
"""


def _check_failed(bench: CollectivesBench, subject: str, buffer: DeviceBuffer, comm: int, stream: int) -> None:
    """Check that the communicator reports an error in time and rejects calls, and that the stream continues.

    Args:
        bench: the collectives of this rank.
        subject: the failure, for messages.
        buffer: a buffer of ranks * `SIZE` elements.
        comm: the communicator that must fail.
        stream: the stream of its calls.

    Raises:
        RuntimeViolationError: if one of the checks fails.
    """
    with suppress(RuntimeCallError):  # a call after a failure may be rejected
        CALLS["diclAllReduce"](bench, buffer, comm, stream)
    bench.await_failure(subject, comm, LIMIT_SECONDS + GRACE_SECONDS)
    with suppress(RuntimeCallError):  # waiting for the stream may report the error, too
        bench.runtime.call("syncStream", stream)
    try:
        CALLS["diclAllReduce"](bench, buffer, comm, stream)
    except RuntimeCallError:
        pass
    else:
        raise RuntimeViolationError(f"{subject}: a call on the communicator that has failed is accepted")
    bench.runtime.call("memSetAsync", stream, buffer.address, 3, buffer.nbytes)
    bench.runtime.call("syncStream", stream)
    check_elements("a fill", buffer.load("a fill").view(np.uint8), np.full(buffer.nbytes, 3, np.uint8))


def _check_failure(bench: CollectivesBench, subject: str, call: Call) -> None:
    """Make a call that must fail on all ranks, and check that the communicator of all cases still works.

    Args:
        bench: the collectives of this rank.
        subject: the mistake, for messages.
        call: makes the call on a new communicator.
    """
    world = bench.world
    with (
        bench.time_limit(LIMIT_SECONDS),
        bench.communicator() as comm,
        bench.runtime.stream() as stream,
        bench.buffer(Dtype.float32, SIZE * bench.ranks) as buffer,
    ):
        with suppress(RuntimeCallError):  # the vendor may find the mistake during the call
            call(bench, buffer, comm, stream)
        _check_failed(bench, subject, buffer, comm, stream)
        bench.exchange("failed")
    check_sum(bench, f"the sum over another communicator after: {subject}", world, 1, bench.ranks)


MISMATCHES = {
    "another_count": ("diclAllReduce", (SIZE, FLOAT, 0), (SIZE - 1, FLOAT, 0)),
    "no_elements": ("diclAllReduce", (SIZE, FLOAT, 0), (0, FLOAT, 0)),
    "another_type_of_the_same_size": ("diclAllReduce", (SIZE, FLOAT, 0), (SIZE, INT, 0)),
    "another_operation": ("diclAllReduce", (SIZE, FLOAT, 0), (SIZE, FLOAT, 3)),
    "another_root": ("diclReduce", (SIZE, FLOAT, 0, 0), (SIZE, FLOAT, 0, 1)),
    "another_root_of_a_broadcast": ("diclBroadcast", (SIZE, FLOAT, 0), (SIZE, FLOAT, 1)),
    "another_count_in_a_broadcast": ("diclBroadcast", (SIZE, FLOAT, 0), (SIZE // 2, FLOAT, 0)),
    "another_count_in_a_gather": ("diclAllGather", (SIZE, FLOAT), (SIZE // 2, FLOAT)),
    "another_count_in_a_scatter": ("diclReduceScatter", (SIZE, FLOAT, 0), (SIZE // 2, FLOAT, 0)),
}
"""Calls that do not match: the function, the arguments of most ranks, and those of the last rank."""


def _check_mismatch(
    bench: CollectivesBench, function: str, common: tuple[int, ...], differing: tuple[int, ...]
) -> None:
    """Check that a call fails on all ranks if the last rank makes it with the arguments `differing`, not `common`."""
    bench.require_ranks(2)
    arguments = differing if bench.rank == bench.ranks - 1 else common
    subject = f"{function} with {common}, but the last rank with {differing}"
    _check_failure(bench, subject, _caller(function, *arguments))


for _name, (_function, _common, _differing) in MISMATCHES.items():
    CASES[f"a_rank_with_{_name}_is_an_error"] = partial(
        _check_mismatch, function=_function, common=_common, differing=_differing
    )


@collective_case
def a_rank_that_calls_another_function_is_an_error(bench: CollectivesBench) -> None:
    bench.require_ranks(2)
    is_last = bench.rank == bench.ranks - 1
    call = _caller("diclBroadcast", SIZE, FLOAT, 0) if is_last else _caller("diclAllReduce", SIZE, FLOAT, 0)
    _check_failure(bench, "diclAllReduce, but the last rank calls diclBroadcast", call)


@collective_case
def a_send_of_another_count_than_the_receive_is_an_error(bench: CollectivesBench) -> None:
    bench.require_ranks(2)

    def call(bench: CollectivesBench, buffer: DeviceBuffer, comm: int, stream: int) -> None:
        """Send fewer elements than the other rank receives."""
        if bench.rank == 0:
            bench.call("diclSend", buffer.address, SIZE, FLOAT, 1, comm, stream)
        elif bench.rank == 1:
            bench.call("diclRecv", buffer.address, SIZE + 1, FLOAT, 0, comm, stream)

    _check_failure(bench, "diclSend of fewer elements than diclRecv expects", call)


@collective_case
def parts_of_different_sizes_are_an_error(bench: CollectivesBench) -> None:
    bench.require_ranks(2)

    def call(bench: CollectivesBench, buffer: DeviceBuffer, comm: int, stream: int) -> None:
        """Let the last rank expect too much from rank 0."""
        counts, starts = [1] * bench.ranks, list(range(bench.ranks))
        receive_counts = [1 + (bench.rank == bench.ranks - 1), *counts[1:]]
        receive_starts = [2 * start for start in starts]
        arguments = buffer.address, counts, starts, buffer.element(SIZE), receive_counts, receive_starts
        bench.call("diclAllToAllUnequalSplit", *arguments, FLOAT, comm, stream)

    _check_failure(bench, "diclAllToAllUnequalSplit with a part that the sender does not have", call)


@collective_case
def a_rank_that_is_late_is_an_error_within_the_time_limit(bench: CollectivesBench) -> None:
    """The last rank makes its calls only after all others have reported errors. All functions are tested at once."""
    bench.require_ranks(2)
    is_late, world = bench.rank == bench.ranks - 1, bench.world
    with bench.time_limit(LIMIT_SECONDS), ExitStack() as stack:
        entries = [
            (
                name,
                stack.enter_context(bench.buffer(Dtype.float32, SIZE * bench.ranks)),
                stack.enter_context(bench.communicator()),
                stack.enter_context(bench.runtime.stream()),
            )
            for name in CALLS
        ]
        for turn in (False, True):
            if is_late is turn:
                for name, buffer, comm, stream in entries:
                    with suppress(MissingFunctionError, RuntimeCallError):  # the late rank may be rejected
                        CALLS[name](bench, buffer, comm, stream)
                for name, buffer, comm, stream in entries:
                    _check_failed(bench, f"{name} with a late rank", buffer, comm, stream)
            bench.exchange("failed")
    check_sum(bench, "the sum over another communicator after a rank was late", world, 1, bench.ranks)


@collective_case
def a_rank_that_is_late_within_the_time_limit_is_awaited(bench: CollectivesBench) -> None:
    with bench.time_limit(60), bench.communicator() as comm:
        if bench.rank == 0:
            time.sleep(1)
        check_sum(bench, "the sum after rank 0 was late", comm, 1, bench.ranks)


@collective_case
def a_rank_that_is_missing_at_the_creation_is_an_error(bench: CollectivesBench) -> None:
    bench.require_ranks(2)
    with bench.time_limit(LIMIT_SECONDS):
        _expect_no_communicator(bench, "a missing rank", bench.ranks, bench.rank, bench.rank == bench.ranks - 1)


@collective_case
def equal_ranks_are_an_error(bench: CollectivesBench) -> None:
    bench.require_ranks(2)
    with bench.time_limit(LIMIT_SECONDS):
        _expect_no_communicator(bench, "two equal ranks", bench.ranks, min(bench.rank, bench.ranks - 2))


@collective_case
def different_numbers_of_ranks_are_an_error(bench: CollectivesBench) -> None:
    bench.require_ranks(2)
    with bench.time_limit(LIMIT_SECONDS):
        _expect_no_communicator(bench, "different numbers of ranks", bench.ranks + bench.rank % 2, bench.rank)


def _expect_no_communicator(
    bench: CollectivesBench, subject: str, ranks: int, rank: int, is_missing: bool = False
) -> None:
    """Check that diclCommInitRank fails on this rank within the time limit.

    Args:
        bench: the collectives of this rank.
        subject: what is wrong with the call, for messages.
        ranks: the number of ranks that this rank states.
        rank: the rank that this rank states.
        is_missing: whether this rank does not call diclCommInitRank at all.

    Raises:
        RuntimeViolationError: if the call succeeds, or fails too late.
    """
    ids = bench.exchange(bench.client.create_unique_id().hex() if bench.rank == 0 else None)
    if not is_missing:
        start = time.monotonic()
        try:
            bench.client.create_communicator(ranks, bytes.fromhex(ids[0]), rank, -1)
        except RuntimeCallError:
            seconds = time.monotonic() - start
            if seconds > LIMIT_SECONDS + GRACE_SECONDS:
                raise RuntimeViolationError(f"{subject}: diclCommInitRank fails after {seconds:.1f} s") from None
        else:
            raise RuntimeViolationError(f"{subject}: diclCommInitRank succeeds, expected an error")
    bench.exchange("failed")


def _end(bench: CollectivesBench) -> None:
    """Announce the end of this process, then kill it, which looks like a crash to the other ranks."""
    bench.announce_end()
    os.kill(os.getpid(), signal.SIGKILL)


@collective_case
def a_rank_that_has_ended_is_an_error(bench: CollectivesBench) -> None:
    bench.require_ranks(2)
    with bench.time_limit(LIMIT_SECONDS), ExitStack() as stack:
        stream = stack.enter_context(bench.runtime.stream())
        entries = [
            (name, stack.enter_context(bench.buffer(Dtype.float32, SIZE * bench.ranks)), bench.create_communicator())
            for name in CALLS
        ]
        survivors = bench.create_communicator()
        check_sum(bench, "the sum before a rank ends", survivors, 1, bench.ranks)
        if bench.rank == bench.ranks - 1:
            _end(bench)
        for name, buffer, comm in entries:
            with suppress(MissingFunctionError, RuntimeCallError):
                CALLS[name](bench, buffer, comm, stream)
        for name, buffer, comm in entries:
            _check_failed(bench, f"{name} with a rank that has ended", buffer, comm, stream)
            bench.call("diclCommDestroy", comm)


@collective_case
def a_rank_that_ends_during_a_call_is_an_error(bench: CollectivesBench) -> None:
    """The last rank ends while its stream is busy with large calls."""
    bench.require_ranks(2)
    count = 1 << 21
    with (
        bench.time_limit(LIMIT_SECONDS),
        bench.runtime.stream() as stream,
        bench.buffer(Dtype.float32, count, np.ones(count, np.float32)) as buffer,
    ):
        comm = bench.create_communicator()
        for _ in range(20):
            bench.call("diclAllReduce", buffer.address, buffer.address, count, FLOAT, 0, comm, stream)
        if bench.rank == bench.ranks - 1:
            time.sleep(0.05)
            _end(bench)
        _check_failed(bench, "diclAllReduce while a rank ends", buffer, comm, stream)
        bench.call("diclCommDestroy", comm)


@collective_case
def survivors_can_create_a_communicator(bench: CollectivesBench) -> None:
    bench.require_ranks(2)
    if bench.rank == bench.ranks - 1:
        _end(bench)
    with bench.communicator(list(range(bench.ranks - 1))) as comm:
        check_sum(bench, "the sum over the survivors", comm, 1, bench.ranks - 1)
