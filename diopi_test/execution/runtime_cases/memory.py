"""Cases of device memory: alignment, overlap, size, exhaustion and release."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import final

from diopi_impl import BaseVendor
from diopi_proto.types import Error
from diopi_test.execution.runtime_cases.tools import (
    RuntimeCaseError,
    address_of,
    allocate,
    initial_contents,
    open_device,
    payload,
    require,
    require_equal,
    require_text,
    runtime_case,
)
from lib_rt import CallError, Device, Stream

ALIGNMENT = 16
"""Bytes to which every allocation must be aligned: the largest element of the standard, complex128, takes 16."""

IMPOSSIBLE_SIZES = (2**62, 2**63, 2**64 - 1)
"""Sizes in bytes that no device has. Rounding the last one up to whole blocks overflows 64 bits."""

KIB, MIB, GIB = 2**10, 2**20, 2**30
"""The number of bytes of a kibibyte, a mebibyte and a gibibyte."""


@final
@dataclass(frozen=True)
class _Allocation:
    """A block of device memory.

    Attributes:
        address: the address of the first byte.
        nbytes: the size in bytes.
    """

    address: int
    nbytes: int


@runtime_case
def memory_is_aligned(vendor: BaseVendor) -> None:
    """Check that an address is a multiple of `ALIGNMENT`, whatever the size."""
    # most sizes are no multiples of `ALIGNMENT`; 4097 exceeds a page by one byte
    sizes = (*range(1, 66), 1000, 4097, MIB + 1)
    with open_device(vendor) as device, allocate(device, *sizes) as addresses:
        for address in addresses:
            require(address % ALIGNMENT == 0, f"address {address:#x} is not a multiple of {ALIGNMENT}")


@runtime_case
def blocks_do_not_overlap(vendor: BaseVendor) -> None:
    """Check that many blocks of mixed sizes have their own addresses and contents."""
    sizes = [1 + 37 * (i % 100) for i in range(500)]
    with open_device(vendor) as device, allocate(device, *sizes) as addresses, Stream(device) as stream:
        _check_disjoint([_Allocation(*pair) for pair in zip(addresses, sizes, strict=True)])
        written = [payload(nbytes, seed) for seed, nbytes in enumerate(sizes)]
        read = [initial_contents(nbytes) for nbytes in sizes]
        for address, values in zip(addresses, written, strict=True):
            stream.h2d(address, address_of(values), values.size)
        for address, values in zip(addresses, read, strict=True):
            stream.d2h(address_of(values), address, values.size)
        stream.synchronize()
        for actual, expected in zip(read, written, strict=True):
            require_equal(f"a block of {actual.size} bytes among {len(sizes)}", actual, expected)


def _check_disjoint(blocks: Sequence[_Allocation]) -> None:
    """Raise RuntimeCaseError if two blocks overlap."""
    for low, high in pairwise(sorted(blocks, key=lambda block: block.address)):
        require(
            low.address + low.nbytes <= high.address,
            f"{low.nbytes} bytes at {low.address:#x} overlap {high.nbytes} bytes at {high.address:#x}",
        )


@runtime_case
def zero_bytes_may_be_requested(vendor: BaseVendor) -> None:
    """Check that allocating 0 bytes returns an address that can be freed, or fails with ErrorOccurred."""
    with open_device(vendor) as device:
        try:
            device.free(device.malloc(0))
        except CallError as error:
            require(error.code is Error.ErrorOccurred, f"a block of 0 bytes gave {error.code.name}")


@runtime_case
def both_ends_of_a_large_block_are_writable(vendor: BaseVendor) -> None:
    """Write and read the first and last bytes of a block of 64 MiB."""
    nbytes, edge = 64 * MIB, 4097  # a byte more than a page at each end
    with open_device(vendor) as device, allocate(device, nbytes) as (block,), Stream(device) as stream:
        ends = {"first": block, "last": block + nbytes - edge}
        written = {name: payload(edge, seed) for seed, name in enumerate(ends)}
        read = {name: initial_contents(edge) for name in ends}
        for name, address in ends.items():
            stream.h2d(address, address_of(written[name]), edge)
        for name, address in ends.items():
            stream.d2h(address_of(read[name]), address, edge)
        stream.synchronize()
        for name in ends:
            require_equal(f"the {name} {edge} bytes of {nbytes}", read[name], written[name])


@runtime_case
def exhaustion_is_reported(vendor: BaseVendor) -> None:
    """Check that impossible sizes give an error and a reason, and that the device works afterwards."""
    with open_device(vendor) as device:
        for nbytes in IMPOSSIBLE_SIZES:
            check_impossible_allocation(device, nbytes)
        device.free(device.malloc(MIB))


def check_impossible_allocation(device: Device, nbytes: int) -> None:
    """Check that allocating `nbytes` fails with ErrorOccurred, and that the exception's text gives a reason.

    The last error must be readable, but may be empty. The cases of streams also use this function.

    Args:
        device: The open device.
        nbytes: A number of bytes that no device has.

    Raises:
        RuntimeCaseError: The allocation succeeded, or failed in another way.
    """
    try:
        address = device.malloc(nbytes)
    except CallError as error:
        require(error.code is Error.ErrorOccurred, f"a block of {nbytes} bytes gave {error.code.name}")
        subject = f"the runtime's last error after malloc({nbytes}) failed"
        require(not error.text.endswith(": "), f"{subject} is empty")  # the vendor's message follows the colon
        require_text(subject, device.last_error, may_be_empty=True)  # CallError has read it, which may clear it
    else:
        raise RuntimeCaseError(f"malloc({nbytes}) gave the address {address:#x}, expected no memory to be left")


@runtime_case
def freed_memory_can_be_allocated_again(vendor: BaseVendor) -> None:
    """Allocate and free 4,096 blocks of 64 MiB, one after the other, for at most five seconds.

    If the runtime does not release blocks, `malloc` fails on a chip. In host memory, the address space of the process
    grows: it is measured after every 16 blocks.
    """
    block, measurements, blocks_per_measurement = 64 * MIB, 256, 16
    with open_device(vendor) as device:
        initial_bytes, deadline = _address_space_bytes(), time.monotonic() + 5
        for number in range(1, measurements + 1):
            for _ in range(blocks_per_measurement):
                device.free(device.malloc(block))
            growth, allocated = _address_space_bytes() - initial_bytes, number * blocks_per_measurement * block
            require(
                growth < max(allocated // 2, 2 * GIB),  # an allocator may cache freed memory
                f"the process grew by {growth / GIB:.1f} GiB while {allocated / GIB:.1f} GiB were allocated and freed",
            )
            if time.monotonic() > deadline:
                break


def _address_space_bytes() -> int:
    """Return the bytes of address space of this process; 0 if the system does not report them."""
    statistics = Path("/proc/self/statm")  # in pages
    return int(statistics.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") if statistics.exists() else 0


@runtime_case
def memory_can_be_freed_in_any_order(vendor: BaseVendor) -> None:
    """Allocate and free blocks at random, and check that the remaining ones do not overlap."""
    generator = random.Random(0)
    with open_device(vendor) as device:
        alive: list[_Allocation] = []
        for _ in range(1500):
            if alive and generator.random() < 0.45:
                device.free(alive.pop(generator.randrange(len(alive))).address)
            else:
                nbytes = generator.choice((1, 16, 100, 4096, 70_001))
                alive.append(_Allocation(device.malloc(nbytes), nbytes))
        _check_disjoint(alive)
        for block in alive:
            device.free(block.address)
