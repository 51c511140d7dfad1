"""Cases of the calls that move elements: all element types, sizes and roots, in place and not, and meshes.

Every rank, which is a process, calls each case with its bench (`CollectivesBench`) at the same time. The functions
`_check_…` check a call with `size` elements per part, on the communicator `comm` and a stream. The `number` of a call
selects a variant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from diopi_proto.collectives import ELEMENT_TYPES
from diopi_proto.types import Dtype
from diopi_test.collectives.bench import (
    CASES,
    LARGE_CASES,
    CollectivesBench,
    check_elements,
    collective_case,
    type_code,
)
from diopi_test.collectives.combination import Elements, draw_elements
from diopi_test.device_runtime.bench import GUARD
from lib_rt.dtypes import to_numpy

SIZES = (0, 1, 3, 1021)
"""The numbers of elements in cases of all element types."""

MEDIUM_SIZES = (4096, 65537, (1 << 20) + 3)
"""The numbers of elements in the cases of larger sizes."""

LARGE_SIZE = 1 << 24
"""The number of elements of the largest cases."""

Movement = Callable[[CollectivesBench, Dtype, int, int, int, int], None]
"""Checks a call. Its parameters are the bench, the element type, the size, the number of the variant, the communicator
and the stream."""


def _inputs(bench: CollectivesBench, dtype: Dtype, size: int) -> list[Elements]:
    """Return the elements of all ranks."""
    return [draw_elements(dtype, size, rank) for rank in range(bench.ranks)]


def _untouched(dtype: Dtype, size: int) -> Elements:
    """Return elements that consist of guard bytes."""
    return np.full(size * to_numpy(dtype).itemsize, GUARD, np.uint8).view(to_numpy(dtype))


def _check_broadcast(bench: CollectivesBench, dtype: Dtype, size: int, number: int, comm: int, stream: int) -> None:
    """Check diclBroadcast, with `number` modulo the number of ranks as root; variants with odd numbers are in place."""
    root, in_place = number % bench.ranks, number % 2 == 1
    inputs = _inputs(bench, dtype, size)
    subject = f"diclBroadcast of {size:,} {dtype.name} from root {root}{' in place' if in_place else ''}"
    with bench.buffer(dtype, size, inputs[bench.rank]) as send, bench.buffer(dtype, size) as receive:
        target = send if in_place else receive
        source = send.address if in_place or bench.rank == root else 0
        bench.call("diclBroadcast", source, target.address, size, type_code(dtype), root, comm, stream)
        bench.synchronize(comm, stream)
        check_elements(subject, target.load(subject), inputs[root])
        if not in_place:
            check_elements(f"{subject}: the elements that are sent", send.load(subject), inputs[bench.rank])


def _check_all_gather(bench: CollectivesBench, dtype: Dtype, size: int, number: int, comm: int, stream: int) -> None:
    """Check diclAllGather; variants with odd numbers are in place."""
    in_place = number % 2 == 1
    inputs = _inputs(bench, dtype, size)
    subject = f"diclAllGather of {size:,} {dtype.name}{' in place' if in_place else ''}"
    with bench.buffer(dtype, size, inputs[bench.rank]) as send, bench.buffer(dtype, size * bench.ranks) as receive:
        source = receive.element(bench.rank * size) if in_place else send.address
        if in_place and size:
            bench.runtime.upload(source, np.ascontiguousarray(inputs[bench.rank]).view(np.uint8))
        bench.call("diclAllGather", source, receive.address, size, type_code(dtype), comm, stream)
        bench.synchronize(comm, stream)
        check_elements(subject, receive.load(subject), np.concatenate(inputs))
        check_elements(f"{subject}: the elements that are sent", send.load(subject), inputs[bench.rank])


def _check_all_to_all(bench: CollectivesBench, dtype: Dtype, size: int, number: int, comm: int, stream: int) -> None:
    """Check diclAllToAllEqualSplit."""
    inputs = [elements.reshape(bench.ranks, size) for elements in _inputs(bench, dtype, size * bench.ranks)]
    subject = f"diclAllToAllEqualSplit of {size:,} {dtype.name}"
    total = size * bench.ranks
    with bench.buffer(dtype, total, inputs[bench.rank].reshape(-1)) as send, bench.buffer(dtype, total) as receive:
        bench.call("diclAllToAllEqualSplit", send.address, receive.address, size, type_code(dtype), comm, stream)
        bench.synchronize(comm, stream)
        expected = np.concatenate([elements[bench.rank] for elements in inputs])
        check_elements(subject, receive.load(subject), expected)
        check_elements(f"{subject}: the elements that are sent", send.load(subject), inputs[bench.rank].reshape(-1))


def _split_size(source: int, target: int, size: int) -> int:
    """Return the number of elements that rank `source` sends to rank `target` in cases of unequal parts."""
    return 0 if (source + 2 * target) % 5 == 3 else size * (source + 1) // (target + 2)


def _displacements(counts: list[int], gap: int) -> list[int]:
    """Return the first element of each part, where parts of these sizes lie in reverse order.

    A gap of `gap` elements is before the first part, and after each part.
    """
    starts, position = [0] * len(counts), gap
    for part in reversed(range(len(counts))):
        starts[part] = position
        position += counts[part] + gap
    return starts


def _check_unequal(bench: CollectivesBench, dtype: Dtype, size: int, number: int, comm: int, stream: int) -> None:
    """Check diclAllToAllUnequalSplit with parts of all sizes, in reverse order, with gaps between them."""
    everyone, rank, gap = range(bench.ranks), bench.rank, number % 3
    sizes = [[_split_size(source, target, size) for target in everyone] for source in everyone]
    starts = [_displacements(counts, gap) for counts in sizes]
    extents = [sum(counts) + (bench.ranks + 1) * gap for counts in sizes]
    inputs = [draw_elements(dtype, extents[rank], rank) for rank in everyone]
    receive_counts = [sizes[source][rank] for source in everyone]
    receive_starts = _displacements(receive_counts, gap)
    extent = sum(receive_counts) + (bench.ranks + 1) * gap
    expected = _untouched(dtype, extent)
    for source in everyone:
        part = inputs[source][starts[source][rank] :][: receive_counts[source]]
        expected[receive_starts[source] :][: receive_counts[source]] = part
    subject = f"diclAllToAllUnequalSplit of {sizes[rank]} {dtype.name} with gaps of {gap}"
    with bench.buffer(dtype, extents[rank], inputs[rank]) as send, bench.buffer(dtype, extent) as receive:
        arguments = send.address, sizes[rank], starts[rank], receive.address, receive_counts, receive_starts
        bench.call("diclAllToAllUnequalSplit", *arguments, type_code(dtype), comm, stream)
        bench.synchronize(comm, stream)
        check_elements(subject, receive.load(subject), expected)
        check_elements(f"{subject}: the elements that are sent", send.load(subject), inputs[rank])


def _rounds(ranks: int) -> Iterator[list[tuple[int, int]]]:
    """Yield rounds of pairs of ranks, so that each pair occurs once and each rank at most once per round."""
    places = list(range(ranks + ranks % 2))
    for _ in range(len(places) - 1):
        pairs = zip(places[: len(places) // 2], reversed(places[len(places) // 2 :]), strict=True)
        yield [(min(pair), max(pair)) for pair in pairs if max(pair) < ranks]
        places[1:] = [places[-1], *places[1:-1]]


def _check_mesh(bench: CollectivesBench, dtype: Dtype, size: int, number: int, comm: int, stream: int) -> None:
    """Let each pair of ranks exchange elements; of two ranks, the lower one sends first."""
    rank = bench.rank
    element = draw_elements(dtype, size, rank)
    with bench.buffer(dtype, size, element) as send, bench.buffer(dtype, size * bench.ranks) as receive:
        for first, second in [pair for pairs in _rounds(bench.ranks) for pair in pairs if rank in pair]:
            peer = second if rank == first else first
            target = receive.element(peer * size)
            sending = "diclSend", send.address, size, type_code(dtype), peer, comm, stream
            receiving = "diclRecv", target, size, type_code(dtype), peer, comm, stream
            for call in (sending, receiving) if rank == first else (receiving, sending):
                bench.call(*call)
        bench.synchronize(comm, stream)
        subject = f"a mesh of sends of {size:,} {dtype.name}"
        expected = np.concatenate(_inputs(bench, dtype, size))
        expected[rank * size : (rank + 1) * size] = _untouched(dtype, size)
        check_elements(subject, receive.load(subject), expected)
        check_elements(f"{subject}: the elements that are sent", send.load(subject), element)


MOVEMENTS: dict[str, Movement] = {
    "diclBroadcast": _check_broadcast,
    "diclAllGather": _check_all_gather,
    "diclAllToAllEqualSplit": _check_all_to_all,
    "diclAllToAllUnequalSplit": _check_unequal,
    "diclSend_and_diclRecv": _check_mesh,
}
"""The checks of the functions that move elements."""


def _check_movement(bench: CollectivesBench, function: str, dtype: Dtype, sizes: tuple[int, ...]) -> None:
    """Check a function with several sizes: four variants of each small size, and one variant of each larger size."""
    with bench.runtime.stream() as stream:
        for size in sizes:
            for number in range(4 if size <= max(SIZES) else 1):
                MOVEMENTS[function](bench, dtype, size, number, bench.world, stream)


for _function in MOVEMENTS:
    for _type in ELEMENT_TYPES:
        CASES[f"{_function}_moves[{_type.dtype.name}]"] = partial(
            _check_movement, function=_function, dtype=_type.dtype, sizes=SIZES
        )
    CASES[f"{_function}_moves_many_elements"] = partial(
        _check_movement, function=_function, dtype=Dtype.float32, sizes=MEDIUM_SIZES
    )
    CASES[f"{_function}_moves_2_to_the_24_elements"] = partial(
        _check_movement, function=_function, dtype=Dtype.uint8, sizes=(LARGE_SIZE,)
    )
    LARGE_CASES.add(f"{_function}_moves_2_to_the_24_elements")


@collective_case
def sends_pair_with_receives_in_order(bench: CollectivesBench) -> None:
    bench.require_ranks(2)
    comm, turns = bench.world, 20
    if bench.rank > 1:
        return
    with bench.runtime.stream() as stream, bench.buffer(Dtype.int32, 7 * turns) as buffer:
        expected = np.arange(7 * turns, dtype=np.int32)
        if bench.rank == 0:
            buffer.store(expected)
        for turn in range(turns):
            arguments = buffer.element(7 * turn), 7, type_code(Dtype.int32), 1 - bench.rank, comm, stream
            bench.call("diclRecv" if bench.rank else "diclSend", *arguments)
        bench.synchronize(comm, stream)
        check_elements("elements of several sends", buffer.load("diclSend"), expected)


@collective_case
def arrays_of_counts_can_be_changed_after_the_call(bench: CollectivesBench) -> None:
    """The client passes temporary arrays, which are overwritten by the arrays of the next call."""
    with bench.runtime.stream() as stream:
        inputs = _inputs(bench, Dtype.int32, bench.ranks)
        with (
            bench.buffer(Dtype.int32, bench.ranks, inputs[bench.rank]) as send,
            bench.buffer(Dtype.int32, bench.ranks) as receive,
        ):
            bench.runtime.occupy(stream)
            for counts in ([1] * bench.ranks, [0] * bench.ranks):
                starts = list(range(bench.ranks)) if counts[0] else [0] * bench.ranks
                arguments = send.address, counts, starts, receive.address, counts, starts
                bench.call("diclAllToAllUnequalSplit", *arguments, type_code(Dtype.int32), bench.world, stream)
            bench.synchronize(bench.world, stream)
            expected = np.array([elements[bench.rank] for elements in inputs])
            check_elements("elements of the first call", receive.load("diclAllToAllUnequalSplit"), expected)
