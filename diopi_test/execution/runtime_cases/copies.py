"""Cases of copies: they copy every byte and no other.

Each case is a function that receives the vendor and opens a device; it raises `RuntimeCaseError` if the vendor
violates the contract that the name of the case states.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from diopi_impl import BaseVendor
from diopi_test.execution.runtime_cases.tools import (
    Bytes,
    address_of,
    allocate,
    initial_contents,
    open_device,
    payload,
    require_equal,
    runtime_case,
)
from lib_rt import Stream

ALIGNMENT = 16
"""Bytes to which every allocation must be aligned: the largest element of the standard, complex128, takes 16."""

SIZES = (0, 1, 2, 3, 64, 255, 4097, 300_007)
"""The numbers of bytes to copy."""

OFFSETS = ((0, 0), (1, 0), (0, 1), (7, 3), (64, 64))
"""Offsets of the destination and the source of a copy, in bytes from aligned memory."""

MARGIN = 80
"""Half the number of bytes around a copied region, which the copy must not change. The region begins at its offset."""

KIB, MIB, GIB = 2**10, 2**20, 2**30
"""The number of bytes of a kibibyte, a mebibyte and a gibibyte."""


@runtime_case
def copies_to_the_device_are_exact(vendor: BaseVendor) -> None:
    """Copy any number of bytes to the device, at any offsets, and check that no other byte changes."""
    _check_copies(vendor, "h2d")


@runtime_case
def copies_from_the_device_are_exact(vendor: BaseVendor) -> None:
    """Copy any number of bytes from the device, at any offsets, and check that no other byte changes."""
    _check_copies(vendor, "d2h")


@runtime_case
def copies_within_the_device_are_exact(vendor: BaseVendor) -> None:
    """Copy any number of bytes within the device, at any offsets, and check that no other byte changes."""
    _check_copies(vendor, "d2d")


def _check_copies(vendor: BaseVendor, direction: str) -> None:
    """Check copies of all sizes and offsets in one direction: `h2d`, `d2h` or `d2d`."""
    room = max(SIZES) + 2 * MARGIN
    with open_device(vendor) as device, allocate(device, room, room) as blocks, Stream(device) as stream:
        for nbytes, (end, start) in product(SIZES, OFFSETS):
            source, before = payload(nbytes + 2 * MARGIN), initial_contents(nbytes + 2 * MARGIN)
            expected = before.copy()
            expected[end : end + nbytes] = source[start : start + nbytes]
            actual = _copy_and_read(stream, blocks, direction, source[start:], before.copy(), end, nbytes)
            require_equal(f"{direction} of {nbytes} bytes from offset {start} to {end}", actual, expected)


def _copy_and_read(
    stream: Stream, blocks: Sequence[int], direction: str, source: Bytes, target: Bytes, end: int, nbytes: int
) -> Bytes:
    """Return the contents of `target` after `nbytes` of `source` were copied to its byte `end`.

    Args:
        stream: The stream.
        blocks: The addresses of two blocks of device memory, for the source and the target of the copy.
        direction: The name of the copy function: h2d, d2h or d2d.
        source: The bytes to copy. If the copy is from the device, they are first sent there.
        target: The initial contents of the target. If the copy is to the device, they are first sent there.
        end: The position in `target` at which the copied bytes begin.
        nbytes: The number of copied bytes.
    """
    origin, destination = address_of(source), address_of(target)
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
    stream.d2h(address_of(result), destination, result.size)
    stream.synchronize()
    return result


@runtime_case
def large_copies_are_exact(vendor: BaseVendor) -> None:
    """Copy 16 MiB and a byte to the device, within it and back."""
    sent = payload(16 * MIB + 1)
    with (
        open_device(vendor) as device,
        allocate(device, sent.size, sent.size) as (first, second),
        Stream(device) as stream,
    ):
        received = np.full_like(sent, 255)
        stream.h2d(second, address_of(received), sent.size)  # memory may hold the right bytes since it was used before
        stream.h2d(first, address_of(sent), sent.size)
        stream.d2d(second, first, sent.size)
        stream.d2h(address_of(received), second, sent.size)
        stream.synchronize()
        require_equal(f"{sent.size} bytes to the device, within it and back", received, sent)
