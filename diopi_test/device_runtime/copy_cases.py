"""Cases of copies and fills: sizes, addresses, kinds of host memory, and copies between devices.

Each case receives the bench (`RuntimeBench`), through which it calls the runtime. The name of a case states what must
be true; the case raises `RuntimeViolationError` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from diopi_test.device_runtime.bench import (
    GUARD,
    MARGIN,
    ODD_SIZES,
    OFFSETS,
    Bytes,
    RuntimeBench,
    address_of,
    case,
    check_bytes,
    check_guarded,
    pattern,
)

LARGE = (64 << 20) + 13
"""The size of a copy that devices may split into parts."""

Copy = Callable[[int, int, int], None]
"""Copies bytes and waits. The parameters are the number of bytes, the target address and the source address."""


def _shapes() -> Iterator[tuple[int, int, int]]:
    """Yield the size of a copy, the offset of its target and the offset of its source, in bytes."""
    for number, size in enumerate(ODD_SIZES):
        for to, source in product(OFFSETS, OFFSETS):
            if size < 100 or (to + source + number) % 3 == 0:  # all pairs of offsets only for small sizes
                yield size, to, source


def _check_copies_from_host(bench: RuntimeBench, copy: Copy, source: Bytes) -> None:
    """Check copies of all shapes from an array of the host to device memory."""
    capacity = max(ODD_SIZES) + 2 * MARGIN
    source[:] = pattern(source.size)
    with bench.memory(capacity) as memory:
        for size, to, start in _shapes():
            reach = size + 2 * MARGIN
            bench.upload(memory, np.full(reach, GUARD, np.uint8))
            copy(size, memory + MARGIN + to, address_of(source) + start)
            subject = f"a copy of {size} bytes to offset {to} from offset {start}"
            check_guarded(subject, bench.download(memory, reach), MARGIN + to, source[start : start + size], size)
    check_bytes("the source of the copies", source, pattern(source.size))


def _check_copies_to_host(bench: RuntimeBench, copy: Copy, target: Bytes) -> None:
    """Check copies of all shapes from device memory to an array of the host."""
    values = pattern(max(ODD_SIZES) + MARGIN)
    with bench.memory(values.size) as memory:
        bench.upload(memory, values)
        for size, to, start in _shapes():
            reach = target[: size + 2 * MARGIN]
            reach[:] = GUARD
            copy(size, address_of(target) + MARGIN + to, memory + start)
            subject = f"a copy of {size} bytes to offset {to} from offset {start}"
            check_guarded(subject, reach, MARGIN + to, values[start : start + size], size)
        check_bytes("the source of the copies", bench.download(memory, values.size), values)


def _enqueue(bench: RuntimeBench, name: str, stream: int) -> Copy:
    """Return a function that enqueues a copy on a stream and waits for the stream."""

    def copy(size: int, to: int, source: int) -> None:
        bench.call(name, stream, size, to, source)
        bench.call("syncStream", stream)

    return copy


def _call(bench: RuntimeBench, name: str) -> Copy:
    """Return a function that calls a synchronous copy."""
    return lambda size, to, source: bench.call(name, size, to, source)


def _host_array() -> Bytes:
    """Return pageable memory for copies of all shapes."""
    return np.zeros(max(ODD_SIZES) + 2 * MARGIN, np.uint8)


@case
def synchronous_copies_from_the_host_are_exact(bench: RuntimeBench) -> None:
    _check_copies_from_host(bench, _call(bench, "memCopyH2D"), _host_array())


@case
def synchronous_copies_to_the_host_are_exact(bench: RuntimeBench) -> None:
    _check_copies_to_host(bench, _call(bench, "memCopyD2H"), _host_array())


@case
def asynchronous_copies_from_pageable_memory_are_exact(bench: RuntimeBench) -> None:
    with bench.stream() as stream:
        _check_copies_from_host(bench, _enqueue(bench, "memCopyH2DAsync", stream), _host_array())


@case
def asynchronous_copies_to_pageable_memory_are_exact(bench: RuntimeBench) -> None:
    with bench.stream() as stream:
        _check_copies_to_host(bench, _enqueue(bench, "memCopyD2HAsync", stream), _host_array())


@case
def asynchronous_copies_from_pinned_memory_are_exact(bench: RuntimeBench) -> None:
    with bench.stream() as stream, bench.pinned(max(ODD_SIZES) + 2 * MARGIN) as array:
        _check_copies_from_host(bench, _enqueue(bench, "memCopyH2DAsync", stream), array)


@case
def asynchronous_copies_to_pinned_memory_are_exact(bench: RuntimeBench) -> None:
    with bench.stream() as stream, bench.pinned(max(ODD_SIZES) + 2 * MARGIN) as array:
        _check_copies_to_host(bench, _enqueue(bench, "memCopyD2HAsync", stream), array)


def _check_device_copies(bench: RuntimeBench, to_device: int, from_device: int, current: int) -> None:
    """Check copies of all `_shapes` between two devices, alternately asynchronous and synchronous.

    Args:
        bench: the runtime under test.
        to_device: the device of the target.
        from_device: the device of the source.
        current: the current device during the copies.
    """
    values = pattern(max(ODD_SIZES) + MARGIN)
    capacity = max(ODD_SIZES) + 2 * MARGIN
    with (
        bench.on_device(to_device),
        bench.memory(capacity) as target,
        bench.on_device(from_device),
        bench.memory(values.size) as source,
        bench.on_device(current),
        bench.stream() as stream,
    ):
        with bench.on_device(from_device):
            bench.upload(source, values)
        for number, (size, to, start) in enumerate(_shapes()):
            reach = size + 2 * MARGIN
            arguments = size, to_device, target + MARGIN + to, from_device, source + start
            with bench.on_device(to_device):
                bench.upload(target, np.full(reach, GUARD, np.uint8))
            if number % 2:
                bench.call("memCopyD2D", *arguments)
            else:
                bench.call("memCopyD2DAsync", stream, *arguments)
                bench.call("syncStream", stream)
            with bench.on_device(to_device):
                actual = bench.download(target, reach)
            name = "memCopyD2D" if number % 2 else "memCopyD2DAsync"
            subject = (
                f"{name} of {size} bytes to offset {to} on device {to_device} from offset {start} on {from_device}"
            )
            check_guarded(subject, actual, MARGIN + to, values[start : start + size], size)


@case
def copies_within_a_device_are_exact(bench: RuntimeBench) -> None:
    _check_device_copies(bench, 0, 0, 0)


@case
def copies_to_a_peer_are_exact(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    _check_device_copies(bench, to_device=1, from_device=0, current=0)


@case
def copies_from_a_peer_are_exact(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    _check_device_copies(bench, to_device=0, from_device=1, current=0)


@case
def copies_are_exact_while_a_peer_is_the_current_device(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    _check_device_copies(bench, to_device=1, from_device=1, current=1)
    _check_device_copies(bench, to_device=0, from_device=1, current=1)


@case
def fills_are_exact(bench: RuntimeBench) -> None:
    with bench.memory(max(ODD_SIZES) + 2 * MARGIN) as memory, bench.stream() as stream:
        for number, (size, offset) in enumerate(product(ODD_SIZES, OFFSETS)):
            value = (0, 1, 0x7F, 0xFF, 0x101, -1, -2)[number % 7]
            reach = size + 2 * MARGIN
            bench.upload(memory, np.full(reach, GUARD, np.uint8))
            bench.call("memSetAsync", stream, memory + MARGIN + offset, value, size)
            bench.call("syncStream", stream)
            subject = f"memSetAsync of {size} bytes at offset {offset} with {value}"
            check_guarded(subject, bench.download(memory, reach), MARGIN + offset, value & 0xFF, size)


@case
def copies_and_fills_of_zero_bytes_change_nothing(bench: RuntimeBench) -> None:
    with bench.memory(16, GUARD) as memory, bench.pinned(16) as array, bench.stream() as stream:
        host = address_of(array)
        for target, source in ((memory, host), (0, 0)):
            bench.call("memSetAsync", stream, target, 1, 0)
            bench.call("memCopyH2D", 0, target, source)
            bench.call("memCopyD2H", 0, source, target)
            bench.call("memCopyD2D", 0, 0, target, 0, target)
            bench.call("memCopyH2DAsync", stream, 0, target, source)
            bench.call("memCopyD2HAsync", stream, 0, source, target)
            bench.call("memCopyD2DAsync", stream, 0, 0, target, 0, target)
        bench.call("syncStream", stream)
        check_bytes("device memory", bench.download(memory, 16), GUARD)
        check_bytes("host memory", array, GUARD)


@case
def large_copies_are_complete(bench: RuntimeBench) -> None:
    values = pattern(LARGE)
    with bench.memory(LARGE) as first, bench.memory(LARGE, 0) as second, bench.stream() as stream:
        bench.call("memCopyH2DAsync", stream, LARGE, first, address_of(values))
        bench.call("memCopyD2DAsync", stream, LARGE, 0, second, 0, first)
        bench.call("memSetAsync", stream, first, 1, LARGE)
        bench.call("syncStream", stream)
        check_bytes("a large copy", bench.download(second, LARGE), values)
        check_bytes("a large fill", bench.download(first, LARGE), 1)


@case
def pageable_memory_can_be_changed_after_the_call(bench: RuntimeBench) -> None:
    for size in (5, 4097, 1 << 20):
        values = pattern(size, size)
        array = values.copy()
        with bench.memory(size, GUARD) as memory, bench.stream() as stream:
            bench.occupy(stream)
            bench.call("memCopyH2DAsync", stream, size, memory, address_of(array))
            array[:] = GUARD
            bench.call("syncStream", stream)
            check_bytes(f"memCopyH2DAsync of {size} pageable bytes", bench.download(memory, size), values)


@case
def pageable_memory_is_written_when_the_call_returns(bench: RuntimeBench) -> None:
    for size in (5, 4097, 1 << 20):
        array, values = np.full(size, GUARD, np.uint8), pattern(size, size)
        with bench.memory(size) as memory, bench.stream() as stream:
            bench.upload(memory, values)
            bench.occupy(stream)
            bench.call("memCopyD2HAsync", stream, size, address_of(array), memory)
            check_bytes(f"{size} pageable bytes after memCopyD2HAsync has returned", array, values)


@case
def synchronous_copies_wait_for_the_default_stream(bench: RuntimeBench) -> None:
    with bench.memory(4097, 1) as memory, bench.memory(4097, 3) as copy:
        bench.occupy(0)
        bench.call("memSetAsync", 0, memory, 2, 4097)
        check_bytes("memCopyD2H after a fill on the default stream", bench.download(memory, 4097), 2)
        bench.occupy(0)
        bench.call("memSetAsync", 0, memory, 4, 4097)
        bench.call("memCopyD2D", 4097, 0, copy, 0, memory)
        check_bytes("memCopyD2D after a fill on the default stream", bench.download(copy, 4097), 4)
        bench.occupy(0)
        bench.call("memCopyD2DAsync", 0, 4097, 0, copy, 0, memory)
        bench.upload(memory, np.full(4097, 5, np.uint8))
        bench.call("syncDevice")
        check_bytes("a copy on the default stream before memCopyH2D", bench.download(copy, 4097), 4)


@case
def synchronous_copies_are_complete_when_they_return(bench: RuntimeBench) -> None:
    values, further = pattern(1 << 20, 1), pattern(1 << 20, 2)
    with (
        bench.memory(1 << 20) as first,
        bench.memory(1 << 20) as second,
        bench.stream() as stream,
        bench.pinned(1 << 20) as array,
    ):
        for source in (values, further):
            array[:] = source
            bench.call("memCopyH2D", 1 << 20, first, address_of(array))
            array[:] = GUARD
            bench.call("memCopyD2D", 1 << 20, 0, second, 0, first)
            bench.call("memCopyD2HAsync", stream, 1 << 20, address_of(array), second)
            bench.call("syncStream", stream)
            check_bytes("memory that was copied synchronously", array, source)
