"""Cases of streams: order within a stream, synchronization, several streams and threads.

Each case is a function that receives the vendor and opens a device; it raises `RuntimeCaseError` if the vendor
violates the contract that the name of the case states.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import product
from typing import final

import numpy as np

from diopi_impl import BaseVendor
from diopi_test.execution.runtime_cases.memory import IMPOSSIBLE_SIZES, check_impossible_allocation
from diopi_test.execution.runtime_cases.tools import (
    address_of,
    allocate,
    initial_contents,
    open_device,
    payload,
    require_equal,
    runtime_case,
)
from lib_rt import Stream

KIB, MIB, GIB = 2**10, 2**20, 2**30
"""The number of bytes of a kibibyte, a mebibyte and a gibibyte."""


HOP_BYTES = 64
"""Number of bytes that each copy of a chain moves to the next slot."""


@final
class _CopyChain:
    """Copies on one stream, each of which depends on the previous one: `HOP_BYTES` bytes move from slot to slot.

    The first copy is much larger than the others, so that a runtime that executes small copies first is detected.

    Args:
        stream: The stream.
        block: The address of a block of `required_bytes(slots)` bytes on the device.
        slots: The number of slots, which lie one after another at the beginning of the block.
        seed: The seed of the bytes.
    """

    def __init__(self, stream: Stream, block: int, slots: int, seed: int) -> None:
        self.stream = stream
        self._block = block
        self._slots = slots
        self._sent = payload(self.required_bytes(slots), seed)
        self._received = initial_contents(HOP_BYTES)

    @staticmethod
    def required_bytes(slots: int) -> int:
        """Return the bytes that a chain of `slots` needs."""
        return slots * HOP_BYTES + 256 * KIB

    def start(self) -> None:
        """Fill the block; the bytes for the chain are at its end."""
        self.stream.h2d(self._block, address_of(self._sent), self._sent.size)
        self.stream.d2d(self._block, self._block + self._sent.size - HOP_BYTES, HOP_BYTES)

    def copy_to_slot(self, slot: int) -> None:
        """Copy the bytes from the previous slot to the slot number `slot`, which is at least 1."""
        self.stream.d2d(self._block + slot * HOP_BYTES, self._block + (slot - 1) * HOP_BYTES, HOP_BYTES)

    def finish(self) -> None:
        """Copy the last slot to host memory."""
        self.stream.d2h(address_of(self._received), self._block + (self._slots - 1) * HOP_BYTES, HOP_BYTES)

    def check(self, subject: str) -> None:
        """Wait for the stream, and compare the bytes of the last slot with those that were sent."""
        self.stream.synchronize()
        require_equal(f"{subject}: after {self._slots} dependent copies", self._received, self._sent[-HOP_BYTES:])

    def enqueue(self) -> None:
        """Enqueue all copies."""
        self.start()
        for slot in range(1, self._slots):
            self.copy_to_slot(slot)
        self.finish()


@runtime_case
def a_stream_keeps_the_order_of_copies(vendor: BaseVendor) -> None:
    """Copy bytes through hundreds of slots, ordered only by the stream."""
    slots = 300
    with (
        open_device(vendor) as device,
        allocate(device, _CopyChain.required_bytes(slots)) as (block,),
        Stream(device) as stream,
    ):
        for seed in range(3):
            chain = _CopyChain(stream, block, slots, seed)
            chain.enqueue()
            chain.check("one stream")


@runtime_case
def writes_take_effect_in_order(vendor: BaseVendor) -> None:
    """Write a block 200 times, with a read after each write; check that each read returns the bytes written last."""
    rows = payload(200 * HOP_BYTES).reshape(200, HOP_BYTES)
    rows_on_device = np.full_like(rows, 255)
    with open_device(vendor) as device, allocate(device, HOP_BYTES) as (block,), Stream(device) as stream:
        for written, read in zip(rows, rows_on_device, strict=True):
            stream.h2d(block, address_of(written), HOP_BYTES)
            stream.d2h(address_of(read), block, HOP_BYTES)
        stream.synchronize()
        require_equal("a block written 200 times and read after each", rows_on_device.reshape(-1), rows.reshape(-1))


@runtime_case
def synchronization_waits_for_all_copies(vendor: BaseVendor) -> None:
    """Check that all copies of a long queue are complete when the synchronization of their stream returns."""
    nbytes, times = 4 * MIB, 8
    sent = payload(nbytes)
    with open_device(vendor) as device, allocate(device, nbytes, nbytes) as blocks, Stream(device) as stream:
        received = np.full_like(sent, 255)
        stream.synchronize()  # an empty stream
        stream.h2d(blocks[0], address_of(sent), nbytes)
        for i in range(times):
            stream.d2d(blocks[1 - i % 2], blocks[i % 2], nbytes)
        stream.d2h(address_of(received), blocks[times % 2], nbytes)
        stream.synchronize()
        require_equal(f"{times + 2} copies of {nbytes} bytes, then a wait", received, sent)
        stream.synchronize()


@runtime_case
def destroying_a_stream_completes_its_copies(vendor: BaseVendor) -> None:
    """Check that copies still queued when their stream is destroyed are completed."""
    sent = payload(4 * MIB)
    with open_device(vendor) as device, allocate(device, sent.size) as (block,):
        received = np.full_like(sent, 255)
        with Stream(device) as stream:
            for _ in range(4):
                stream.h2d(block, address_of(sent), sent.size)
            stream.d2h(address_of(received), block, sent.size)
        require_equal("copies queued on a stream that was destroyed", received, sent)


@runtime_case
def several_streams_work_concurrently(vendor: BaseVendor) -> None:
    """Interleave copies on eight streams. Check that each stream executes its copies in order.

    The stream whose copies were queued last is synchronized first.
    """
    slots, count = 40, 8
    with open_device(vendor) as device, ExitStack() as stack:
        blocks = stack.enter_context(allocate(device, *[_CopyChain.required_bytes(slots)] * count))
        streams = [stack.enter_context(Stream(device)) for _ in range(count)]
        chains = [_CopyChain(*pair, slots, seed) for seed, pair in enumerate(zip(streams, blocks, strict=True))]
        for chain in chains:
            chain.start()
        for slot, chain in product(range(1, slots), chains):
            chain.copy_to_slot(slot)
        for chain in chains:
            chain.finish()
        for number, chain in reversed(list(enumerate(chains))):
            chain.check(f"stream {number} of {count}")


@runtime_case
def a_stream_reads_what_a_synchronized_stream_wrote(vendor: BaseVendor) -> None:
    """Check that a stream reads the bytes that a second stream wrote, after the second one was synchronized."""
    sent = payload(MIB)
    with (
        open_device(vendor) as device,
        allocate(device, MIB) as (block,),
        Stream(device) as first,
        Stream(device) as second,
    ):
        received = np.full_like(sent, 255)
        first.h2d(block, address_of(sent), MIB)
        first.synchronize()
        second.d2h(address_of(received), block, MIB)
        second.synchronize()
        require_equal(f"{MIB} bytes written on one stream, read on another", received, sent)


@runtime_case
def many_streams_can_be_created_in_turn(vendor: BaseVendor) -> None:
    """Create and use a hundred streams, one after the other."""
    with open_device(vendor) as device, allocate(device, HOP_BYTES) as (block,):
        for seed in range(100):
            sent, received = payload(HOP_BYTES, seed), initial_contents(HOP_BYTES)
            with Stream(device) as stream:
                stream.h2d(block, address_of(sent), HOP_BYTES)
                stream.d2h(address_of(received), block, HOP_BYTES)
                stream.synchronize()
            require_equal(f"stream {seed} of 100, created one after the other", received, sent)


@runtime_case
def several_threads_work_concurrently(vendor: BaseVendor) -> None:
    """Check that threads do not affect each other: each copies on its own stream and requests an impossible size."""
    threads, slots = 6, 30
    with open_device(vendor) as device:

        def copy_repeatedly(thread: int) -> None:
            for seed in range(4):
                with allocate(device, _CopyChain.required_bytes(slots)) as (block,), Stream(device) as stream:
                    chain = _CopyChain(stream, block, slots, seed=10 * thread + seed)
                    chain.enqueue()
                    check_impossible_allocation(device, IMPOSSIBLE_SIZES[0])
                    chain.check(f"thread {thread} of {threads}")

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(copy_repeatedly, range(threads)))
