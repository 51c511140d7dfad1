"""Cases of the nine runtime functions, run for every vendor beside the operator cases.

A case is a function that receives the vendor, opens a device of its own, and raises `RuntimeCaseError` when the
vendor's functions don't do what they promise, or `CallError` when one fails. It leaves nothing allocated.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from diopi_impl import BaseVendor
from diopi_proto.registration import SERVICES
from diopi_proto.types import Error
from lib_rt import CallError, Context, Device, Stream

Bytes = NDArray[np.uint8]

ALIGNMENT = 16
"""Bytes to which every allocation must be aligned: the largest element of the standard, complex128, takes 16."""

IMPOSSIBLE = (2**62, 2**63, 2**64 - 1)
"""Bytes no device has; a runtime that rounds the last one up to whole blocks overflows."""

SIZES = (0, 1, 2, 3, 64, 255, 4097, 300_007)
"""Bytes of a copy."""

OFFSETS = ((0, 0), (1, 0), (0, 1), (7, 3), (64, 64))
"""Where a copy ends and where it starts, in bytes from aligned memory."""

MARGIN = 80
"""Bytes around a copy, the offset included, that it must leave alone."""

KIB, MIB, GIB = 2**10, 2**20, 2**30


class RuntimeCaseError(Exception):
    """The vendor's functions did something else than they promise; the message says what, and what was expected."""


@dataclass(frozen=True)
class RuntimeCase:
    """A case of the runtime: `run` raises when the vendor's functions don't do what they promise."""

    name: str
    run: Callable[[BaseVendor], None]


RUNTIME_CASES: list[RuntimeCase] = []


def runtime_case(function: Callable[[BaseVendor], None]) -> Callable[[BaseVendor], None]:
    """Add the decorated function to the cases; its name becomes the case's."""
    RUNTIME_CASES.append(RuntimeCase(function.__name__, function))
    return function


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeCaseError(message)


# What the cases work with: a device, memory on it, bytes on the host.

_in_doubt: list[Exception] = []
"""What failed cases raised. Copies may still be under way after a failure, and the frames these keep alive hold the
host memory they write to."""


@contextmanager
def _device(vendor: BaseVendor) -> Iterator[Device]:
    device = vendor.open_device()
    try:
        yield device
    except Exception as error:
        _in_doubt.append(error)
        raise
    finally:
        device.close()


@contextmanager
def _memory(device: Device, *sizes: int) -> Iterator[list[int]]:
    """Addresses of blocks of `sizes` bytes, freed at the end."""
    with ExitStack() as stack:
        addresses = []
        for nbytes in sizes:
            addresses.append(device.malloc(nbytes))
            stack.callback(device.free, addresses[-1])
        yield addresses


def _address(array: Bytes) -> int:
    return int(array.ctypes.data)


def _payload(nbytes: int, seed: int = 0) -> Bytes:
    """Random bytes below 128, which no `_background` has."""
    return np.random.default_rng((nbytes, seed)).integers(0, 128, nbytes, np.uint8)


def _background(nbytes: int) -> Bytes:
    """What memory holds before bytes of a `_payload` are copied into it."""
    return np.random.default_rng(nbytes).integers(128, 256, nbytes, np.uint8)


def _require_equal(what: str, given: Bytes, expected: Bytes) -> None:
    wrong = np.flatnonzero(given != expected)
    if wrong.size:
        i = int(wrong[0])
        raise RuntimeCaseError(
            f"{what}: {wrong.size} of {given.size} bytes are wrong, the first at {i}: "
            f"{given[i]:#04x}, expected {expected[i]:#04x}"
        )


# Texts.


def _require_text(what: str, text: object, *, may_be_empty: bool = False) -> None:
    _require(isinstance(text, str), f"{what} is a {type(text).__name__}, expected text")
    _require(may_be_empty or bool(str(text).strip()), f"{what} is empty")
    _require("\N{REPLACEMENT CHARACTER}" not in str(text), f"{what} is not UTF-8: {text!r}")


@runtime_case
def name_and_version_are_text(vendor: BaseVendor) -> None:
    """The vendor says who it is."""
    _require_text("the vendor's name", vendor.name)
    _require_text("the vendor's version", vendor.version)


@runtime_case
def a_failing_call_is_explained(vendor: BaseVendor) -> None:
    """An operator that the standard does not have can't be called, and the vendor says so."""
    with _device(vendor) as device, Context(device) as context:
        code = vendor.call("diopiNoSuchFunction", context)
    _require(code is not Error.Success, "a call of diopiNoSuchFunction succeeded, expected an error")
    _require_text("the vendor's last error after a failing call", vendor.last_error())


@runtime_case
def the_last_error_can_always_be_asked_for(vendor: BaseVendor) -> None:
    """Before any failure there is a text too, though it may be empty."""
    with _device(vendor) as device:
        _require_text("the runtime's last error", device.last_error, may_be_empty=True)


# Memory.


@dataclass(frozen=True)
class _Block:
    address: int
    nbytes: int


@runtime_case
def memory_is_aligned(vendor: BaseVendor) -> None:
    """Whatever the size, an address is a multiple of `ALIGNMENT`."""
    with _device(vendor) as device, _memory(device, *range(1, 66), 1000, 4097, MIB + 1) as addresses:
        for address in addresses:
            _require(address % ALIGNMENT == 0, f"address {address:#x} is not a multiple of {ALIGNMENT}")


@runtime_case
def blocks_do_not_overlap(vendor: BaseVendor) -> None:
    """Of many blocks of mixed sizes each has its own addresses and keeps its own bytes."""
    sizes = [1 + 37 * (i % 100) for i in range(500)]
    with _device(vendor) as device, _memory(device, *sizes) as addresses, Stream(device) as stream:
        _check_disjoint([_Block(*pair) for pair in zip(addresses, sizes, strict=True)])
        written = [_payload(nbytes, seed) for seed, nbytes in enumerate(sizes)]
        read = [_background(nbytes) for nbytes in sizes]
        for address, values in zip(addresses, written, strict=True):
            stream.h2d(address, _address(values), values.size)
        for address, values in zip(addresses, read, strict=True):
            stream.d2h(_address(values), address, values.size)
        stream.synchronize()
        for given, expected in zip(read, written, strict=True):
            _require_equal(f"a block of {given.size} bytes among {len(sizes)}", given, expected)


def _check_disjoint(blocks: Sequence[_Block]) -> None:
    for low, high in pairwise(sorted(blocks, key=lambda block: block.address)):
        _require(
            low.address + low.nbytes <= high.address,
            f"{low.nbytes} bytes at {low.address:#x} overlap {high.nbytes} bytes at {high.address:#x}",
        )


@runtime_case
def no_bytes_can_be_asked_for(vendor: BaseVendor) -> None:
    """A block of no bytes is an address that can be freed, or a refusal."""
    with _device(vendor) as device:
        try:
            device.free(device.malloc(0))
        except CallError as error:
            _require(error.code is Error.ErrorOccurred, f"a block of 0 bytes gave {error.code.name}")


@runtime_case
def a_large_block_holds_what_is_written_to_its_ends(vendor: BaseVendor) -> None:
    """64 MiB in one piece, its first and last bytes written and read."""
    nbytes, edge = 64 * MIB, 4097
    with _device(vendor) as device, _memory(device, nbytes) as (block,), Stream(device) as stream:
        ends = {"first": block, "last": block + nbytes - edge}
        written = {name: _payload(edge, seed) for seed, name in enumerate(ends)}
        read = {name: _background(edge) for name in ends}
        for name, address in ends.items():
            stream.h2d(address, _address(written[name]), edge)
        for name, address in ends.items():
            stream.d2h(_address(read[name]), address, edge)
        stream.synchronize()
        for name in ends:
            _require_equal(f"the {name} {edge} bytes of {nbytes}", read[name], written[name])


@runtime_case
def exhaustion_is_reported(vendor: BaseVendor) -> None:
    """More memory than there is gives an error and a reason; the device works on."""
    with _device(vendor) as device:
        for nbytes in IMPOSSIBLE:
            _check_exhaustion(device, nbytes)
        device.free(device.malloc(MIB))


def _check_exhaustion(device: Device, nbytes: int) -> None:
    try:
        address = device.malloc(nbytes)
    except CallError as error:
        _require(error.code is Error.ErrorOccurred, f"a block of {nbytes} bytes gave {error.code.name}")
        what = f"the runtime's last error after malloc({nbytes}) failed"
        _require(not error.text.endswith(": "), f"{what} is empty")  # lib_rt's words, a colon, the vendor's
        _require_text(what, device.last_error, may_be_empty=True)  # who reads it first may have taken it away
    else:
        raise RuntimeCaseError(f"malloc({nbytes}) gave the address {address:#x}, expected no memory to be left")


@runtime_case
def freed_memory_can_be_had_again(vendor: BaseVendor) -> None:
    """Blocks are made and freed until they add up to more than a device has, or five seconds have passed.

    On a chip a runtime that keeps them runs out of memory; in host memory the process grows.
    """
    block, rounds, at_once = 64 * MIB, 256, 16
    with _device(vendor) as device:
        before, deadline = _address_space(), time.monotonic() + 5
        for number in range(1, rounds + 1):
            for _ in range(at_once):
                device.free(device.malloc(block))
            grown, served = _address_space() - before, number * at_once * block
            _require(
                grown < max(served // 2, 2 * GIB),  # allocators may keep something back
                f"the process grew by {grown / GIB:.1f} GiB while {served / GIB:.1f} GiB were allocated and freed",
            )
            if time.monotonic() > deadline:
                break


def _address_space() -> int:
    """Bytes of address space this process uses; 0 where the system doesn't tell."""
    statistics = Path("/proc/self/statm")  # in pages
    return int(statistics.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") if statistics.exists() else 0


@runtime_case
def memory_can_be_freed_in_any_order(vendor: BaseVendor) -> None:
    """Blocks come and go at random; those that are left don't overlap."""
    generator = random.Random(0)
    with _device(vendor) as device:
        alive: list[_Block] = []
        for _ in range(1500):
            if alive and generator.random() < 0.45:
                device.free(alive.pop(generator.randrange(len(alive))).address)
            else:
                nbytes = generator.choice((1, 16, 100, 4096, 70_001))
                alive.append(_Block(device.malloc(nbytes), nbytes))
        _check_disjoint(alive)
        for block in alive:
            device.free(block.address)


# Copies.


@runtime_case
def copies_to_the_device_are_exact(vendor: BaseVendor) -> None:
    """Any number of bytes, at any offsets, and not one more."""
    _check_copies(vendor, "h2d")


@runtime_case
def copies_from_the_device_are_exact(vendor: BaseVendor) -> None:
    """As to the device."""
    _check_copies(vendor, "d2h")


@runtime_case
def copies_within_the_device_are_exact(vendor: BaseVendor) -> None:
    """As to the device."""
    _check_copies(vendor, "d2d")


def _check_copies(vendor: BaseVendor, direction: str) -> None:
    room = max(SIZES) + 2 * MARGIN
    with _device(vendor) as device, _memory(device, room, room) as blocks, Stream(device) as stream:
        for nbytes, (end, start) in product(SIZES, OFFSETS):
            source, before = _payload(nbytes + 2 * MARGIN), _background(nbytes + 2 * MARGIN)
            expected = before.copy()
            expected[end : end + nbytes] = source[start : start + nbytes]
            given = _copied(stream, blocks, direction, source[start:], before.copy(), end, nbytes)
            _require_equal(f"{direction} of {nbytes} bytes from offset {start} to {end}", given, expected)


def _copied(
    stream: Stream, blocks: Sequence[int], direction: str, source: Bytes, target: Bytes, end: int, nbytes: int
) -> Bytes:
    """What `target` holds once `nbytes` of `source` were copied to its byte `end` in the given direction."""
    origin, destination = _address(source), _address(target)
    if direction[0] == "d":
        shifted = blocks[0] + origin % ALIGNMENT  # as unaligned as on the host
        stream.h2d(shifted, origin, source.size)
        origin = shifted
    if direction[-1] == "d":
        stream.h2d(blocks[1], destination, target.size)
        destination = blocks[1]
    getattr(stream, direction)(destination + end, origin, nbytes)
    stream.synchronize()
    if direction[-1] == "h":
        return target
    result = np.zeros_like(target)
    stream.d2h(_address(result), destination, result.size)
    stream.synchronize()
    return result


@runtime_case
def large_copies_are_exact(vendor: BaseVendor) -> None:
    """16 MiB and a byte to the device, within it and back."""
    sent = _payload(16 * MIB + 1)
    with _device(vendor) as device, _memory(device, sent.size, sent.size) as (one, two), Stream(device) as stream:
        received = np.full_like(sent, 255)
        stream.h2d(one, _address(sent), sent.size)
        stream.d2d(two, one, sent.size)
        stream.d2h(_address(received), two, sent.size)
        stream.synchronize()
        _require_equal(f"{sent.size} bytes to the device, within it and back", received, sent)


# Streams.


HOP = 64
"""Bytes handed on in a chain."""


class _Chain:
    """Copies on one stream that each need the one before: bytes go from slot to slot of a block, and back.

    Its first copy is far larger than the others, so that a runtime which lets small ones pass is found out.
    """

    def __init__(self, stream: Stream, block: int, slots: int, seed: int) -> None:
        self.stream = stream
        self._block = block
        self._slots = slots
        self._sent = _payload(self.room(slots), seed)
        self._received = _background(HOP)

    @staticmethod
    def room(slots: int) -> int:
        """Bytes of the block a chain of `slots` needs."""
        return slots * HOP + 256 * KIB

    def start(self) -> None:
        """Fill the block; what goes through the chain lies at its end."""
        self.stream.h2d(self._block, _address(self._sent), self._sent.size)
        self.stream.d2d(self._block, self._block + self._sent.size - HOP, HOP)

    def hop(self, slot: int) -> None:
        """Hand the bytes on to `slot`."""
        self.stream.d2d(self._block + slot * HOP, self._block + (slot - 1) * HOP, HOP)

    def finish(self) -> None:
        """Read the last slot."""
        self.stream.d2h(_address(self._received), self._block + (self._slots - 1) * HOP, HOP)

    def check(self, what: str) -> None:
        """Wait, and compare."""
        self.stream.synchronize()
        _require_equal(f"{what}: after {self._slots} dependent copies", self._received, self._sent[-HOP:])

    def enqueue(self) -> None:
        """All of it."""
        self.start()
        for slot in range(1, self._slots):
            self.hop(slot)
        self.finish()


@runtime_case
def a_stream_keeps_the_order_of_copies(vendor: BaseVendor) -> None:
    """Bytes handed on through hundreds of slots, with nothing but the stream to keep the order."""
    slots = 300
    with _device(vendor) as device, _memory(device, _Chain.room(slots)) as (block,), Stream(device) as stream:
        for seed in range(3):
            chain = _Chain(stream, block, slots, seed)
            chain.enqueue()
            chain.check("one stream")


@runtime_case
def the_last_of_several_writes_stays(vendor: BaseVendor) -> None:
    """A block written again and again holds what was written last, and reads in between see their own time."""
    rows = _payload(200 * HOP).reshape(200, HOP)
    seen = np.full_like(rows, 255)
    with _device(vendor) as device, _memory(device, HOP) as (block,), Stream(device) as stream:
        for written, read in zip(rows, seen, strict=True):
            stream.h2d(block, _address(written), HOP)
            stream.d2h(_address(read), block, HOP)
        stream.synchronize()
        _require_equal("a block written 200 times and read after each", seen.reshape(-1), rows.reshape(-1))


@runtime_case
def synchronising_really_waits(vendor: BaseVendor) -> None:
    """What a long queue of large copies brings is all there as soon as the wait returns."""
    nbytes, times = 4 * MIB, 8
    sent = _payload(nbytes)
    with _device(vendor) as device, _memory(device, nbytes, nbytes) as blocks, Stream(device) as stream:
        received = np.full_like(sent, 255)
        stream.synchronize()  # of nothing
        stream.h2d(blocks[0], _address(sent), nbytes)
        for i in range(times):
            stream.d2d(blocks[1 - i % 2], blocks[i % 2], nbytes)
        stream.d2h(_address(received), blocks[times % 2], nbytes)
        stream.synchronize()
        _require_equal(f"{times + 2} copies of {nbytes} bytes, then a wait", received, sent)
        stream.synchronize()


@runtime_case
def ending_a_stream_finishes_its_work(vendor: BaseVendor) -> None:
    """Copies still queued when their stream is destroyed are done afterwards."""
    sent = _payload(4 * MIB)
    with _device(vendor) as device, _memory(device, sent.size) as (block,):
        received = np.full_like(sent, 255)
        with Stream(device) as stream:
            for _ in range(4):
                stream.h2d(block, _address(sent), sent.size)
            stream.d2h(_address(received), block, sent.size)
        _require_equal("copies queued on a stream that was destroyed", received, sent)


@runtime_case
def several_streams_work_at_once(vendor: BaseVendor) -> None:
    """Copies enqueued in turn on eight streams keep their order on each, whichever is waited for first."""
    slots, count = 40, 8
    with _device(vendor) as device, ExitStack() as stack:
        blocks = stack.enter_context(_memory(device, *[_Chain.room(slots)] * count))
        streams = [stack.enter_context(Stream(device)) for _ in range(count)]
        chains = [_Chain(*pair, slots, seed) for seed, pair in enumerate(zip(streams, blocks, strict=True))]
        for chain in chains:
            chain.start()
        for slot, chain in product(range(1, slots), chains):
            chain.hop(slot)
        for chain in chains:
            chain.finish()
        for number, chain in reversed(list(enumerate(chains))):
            chain.check(f"stream {number} of {count}")


@runtime_case
def one_stream_sees_what_another_was_waited_for(vendor: BaseVendor) -> None:
    """Streams share the device's memory: what one wrote, once waited for, another reads."""
    sent = _payload(MIB)
    with _device(vendor) as device, _memory(device, MIB) as (block,), Stream(device) as one, Stream(device) as two:
        received = np.full_like(sent, 255)
        one.h2d(block, _address(sent), MIB)
        one.synchronize()
        two.d2h(_address(received), block, MIB)
        two.synchronize()
        _require_equal(f"{MIB} bytes written on one stream, read on another", received, sent)


@runtime_case
def streams_come_and_go(vendor: BaseVendor) -> None:
    """A hundred streams, one after the other, each of which works."""
    with _device(vendor) as device, _memory(device, HOP) as (block,):
        for seed in range(100):
            sent, received = _payload(HOP, seed), _background(HOP)
            with Stream(device) as stream:
                stream.h2d(block, _address(sent), HOP)
                stream.d2h(_address(received), block, HOP)
                stream.synchronize()
            _require_equal(f"stream {seed} of 100, made one after the other", received, sent)


@runtime_case
def several_threads_work_at_once(vendor: BaseVendor) -> None:
    """Threads with a stream each make memory, copy, run out of memory and free, and don't disturb one another."""
    threads, slots = 6, 30
    with _device(vendor) as device:

        def work(thread: int) -> None:
            for seed in range(4):
                with _memory(device, _Chain.room(slots)) as (block,), Stream(device) as stream:
                    chain = _Chain(stream, block, slots, seed=10 * thread + seed)
                    chain.enqueue()
                    _check_exhaustion(device, IMPOSSIBLE[0])
                    chain.check(f"thread {thread} of {threads}")

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))


# Functions that are missing.


@runtime_case
def each_missing_function_has_its_own_error(vendor: BaseVendor) -> None:
    """A call that needs a function gives the standard's code when it is not registered, and works when it is."""
    host = _payload(HOP)
    with _device(vendor) as device, _memory(device, HOP, HOP) as (one, two), Stream(device) as stream:
        spare, unused = Stream(device), device.malloc(HOP)
        calls: dict[str, Callable[[], object]] = {
            "stream_create": lambda: Stream(device).close(),
            "stream_sync": stream.synchronize,
            "stream_destroy": spare.close,
            "malloc": lambda: device.free(device.malloc(HOP)),
            "free": lambda: device.free(unused),
            "h2d": lambda: stream.h2d(one, _address(host), HOP),
            "d2d": lambda: stream.d2d(two, one, HOP),
            "d2h": lambda: stream.d2h(_address(host), two, HOP),
            "last_error": lambda: device.last_error,
        }
        for service in SERVICES:
            _check_missing(device, service.name, service.missing, calls[service.name])
            calls[service.name]()
        stream.synchronize()


def _check_missing(device: Device, name: str, expected: Error, call: Callable[[], object]) -> None:
    try:
        with device.unregistered(name):
            call()
    except CallError as error:
        _require(error.code is expected, f"without {name}: {error.code.name}, expected {expected.name}")
    else:
        raise RuntimeCaseError(f"without {name} a call that needs it succeeded, expected {expected.name}")
