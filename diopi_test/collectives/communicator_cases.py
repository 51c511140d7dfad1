"""Cases of communicators: creation, names, several at once, and invalid arguments.

Every rank, which is a process, calls each case with its bench (`CollectivesBench`) at the same time. The name of a
case states what must be true; the case raises `RuntimeViolationError` otherwise.
"""

from __future__ import annotations

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.collectives.bench import CollectivesBench, check_elements, collective_case, type_code
from diopi_test.device_runtime.bench import check, check_that
from lib_rt.device_runtime_client import RuntimeCallError


def check_sum(bench: CollectivesBench, subject: str, comm: int, value: int, expected: int) -> None:
    """Check diclAllReduce on a communicator: raise RuntimeViolationError unless the sum is as expected.

    Args:
        bench: the collectives of this rank.
        subject: what is checked, for messages.
        comm: the communicator.
        value: the number of this rank.
        expected: the sum over all ranks of the communicator.
    """
    with bench.runtime.stream() as stream, bench.buffer(Dtype.int64, 3, np.full(3, value, np.int64)) as buffer:
        bench.call("diclAllReduce", buffer.address, buffer.address, 3, type_code(Dtype.int64), 0, comm, stream)
        bench.synchronize(comm, stream)
        check_elements(subject, buffer.load(subject), np.full(3, expected, np.int64))


@collective_case
def unique_ids_differ(bench: CollectivesBench) -> None:
    ids = {bench.client.create_unique_id() for _ in range(8)}
    check("the number of distinct ids among 8", len(ids), 8)
    everyone = bench.exchange(sorted(identity.hex() for identity in ids))
    check("the number of distinct ids of all ranks", len({i for values in everyone for i in values}), 8 * bench.ranks)


@collective_case
def a_communicator_connects_all_ranks(bench: CollectivesBench) -> None:
    with bench.communicator() as comm:
        bench.call("diclGetCommAsyncError", comm)
        check_sum(bench, "the sum of powers of two over all ranks", comm, 1 << bench.rank, (1 << bench.ranks) - 1)


@collective_case
def ranks_of_a_communicator_may_be_in_another_order(bench: CollectivesBench) -> None:
    with bench.communicator(list(reversed(range(bench.ranks)))) as comm, bench.runtime.stream() as stream:
        elements = np.full(2, bench.rank, np.int32)
        with bench.buffer(Dtype.int32, 2, elements) as send, bench.buffer(Dtype.int32, 2 * bench.ranks) as receive:
            bench.call("diclAllGather", send.address, receive.address, 2, type_code(Dtype.int32), comm, stream)
            bench.synchronize(comm, stream)
            expected = np.repeat(np.arange(bench.ranks, dtype=np.int32)[::-1], 2)
            check_elements("the ranks in reverse order", receive.load("diclAllGather"), expected)


@collective_case
def a_communicator_of_one_rank_works(bench: CollectivesBench) -> None:
    for member in range(bench.ranks):
        ids = bench.exchange(bench.client.create_unique_id().hex())
        if bench.rank == member:
            comm = bench.client.create_communicator(1, bytes.fromhex(ids[member]), 0, -1)
            check_sum(bench, "the sum over one rank", comm, 5, 5)
            bench.call("diclCommDestroy", comm)


@collective_case
def disjoint_communicators_work_at_once(bench: CollectivesBench) -> None:
    bench.require_ranks(2)
    halves = [list(range(bench.ranks // 2)), list(range(bench.ranks // 2, bench.ranks))]
    ids = bench.exchange(bench.client.create_unique_id().hex())
    members = halves[bench.rank >= bench.ranks // 2]
    unique_id = bytes.fromhex(ids[members[0]])
    comm = bench.client.create_communicator(len(members), unique_id, members.index(bench.rank), -1)
    check_sum(bench, "the sum over half of the ranks", comm, 1 << bench.rank, sum(1 << rank for rank in members))
    bench.call("diclCommDestroy", comm)


@collective_case
def a_communicator_has_the_same_name_on_all_ranks(bench: CollectivesBench) -> None:
    with bench.communicator() as first, bench.communicator() as second:
        names = bench.exchange([bench.client.communicator_name(comm) for comm in (first, second)])
        check("the number of names of two communicators on all ranks", len({tuple(pair) for pair in names}), 1)
        check_that(names[0][0] != names[0][1], f"two communicators have the same name {names[0][0]}")
        check_that(bool(names[0][0]), "the name of a communicator is empty")


@collective_case
def many_communicators_can_be_created_and_destroyed(bench: CollectivesBench) -> None:
    for turn in range(20):
        with bench.communicator() as comm:
            check_sum(bench, f"the sum over communicator {turn}", comm, turn, turn * bench.ranks)


@collective_case
def a_rank_may_destroy_its_communicator_before_others_have_finished(bench: CollectivesBench) -> None:
    comm = bench.create_communicator()
    with bench.runtime.stream() as stream, bench.buffer(Dtype.int32, 1 << 16) as buffer:
        if bench.rank == 0:
            buffer.store(np.arange(1 << 16, dtype=np.int32))
        else:
            bench.runtime.occupy(stream)
        arguments = 1 << 16, type_code(Dtype.int32), 0, comm, stream
        bench.call("diclBroadcast", buffer.address, buffer.address, *arguments)
        bench.call("diclCommDestroy", comm)
        bench.runtime.call("syncStream", stream)
        check_elements("the elements of the root", buffer.load("diclBroadcast"), np.arange(1 << 16, dtype=np.int32))


@collective_case
def invalid_ranks_and_devices_are_rejected(bench: CollectivesBench) -> None:
    unique_id = bench.client.create_unique_id()
    count = bench.runtime.device_count
    for ranks, rank, device in ((1, 1, -1), (1, -1, -1), (0, 0, -1), (-1, 0, -1), (1, 0, count), (1, 0, -2)):
        try:
            bench.client.create_communicator(ranks, unique_id, rank, device)
        except RuntimeCallError:
            continue
        check_that(False, f"diclCommInitRank accepts rank {rank} of {ranks} on device {device} of {count}")


@collective_case
def the_device_of_a_communicator_can_be_chosen(bench: CollectivesBench) -> None:
    bench.runtime.require_devices(2)
    current = bench.runtime.call("current_device")
    next_device = (current + 1) % bench.runtime.device_count
    ids = bench.exchange(bench.client.create_unique_id().hex() if bench.rank == 0 else None)
    comm = bench.client.create_communicator(bench.ranks, bytes.fromhex(ids[0]), bench.rank, next_device)
    check("the current device after diclCommInitRank", bench.runtime.call("current_device"), current)
    with bench.runtime.on_device(next_device):
        check_sum(bench, "the sum on another device", comm, 1 << bench.rank, (1 << bench.ranks) - 1)
    bench.call("diclCommDestroy", comm)
