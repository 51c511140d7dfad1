"""Cases of allocation: device memory and pinned memory, exhaustion and misuse.

Each case receives the bench (`RuntimeBench`), through which it calls the runtime. The name of a case states what must
be true; the case raises `RuntimeViolationError` otherwise.
"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from diopi_proto.messages import pluralize
from diopi_test.device_runtime.bench import (
    GUARD,
    RuntimeBench,
    address_of,
    case,
    check,
    check_bytes,
    check_that,
    expect_rejection,
    pattern,
)
from lib_rt.device_runtime_client import RuntimeCallError

ALIGNMENT = 64
"""The alignment of allocations in bytes."""

SIZES = (1, 2, 31, 64, 100, 511, 512, 513, 4095, 65537, (1 << 20) + 1)
"""Sizes of allocations in bytes."""

TOO_LARGE = 1 << 60
"""A size that no memory has."""

PARTS = 8
"""The number of parts of the device memory that the cases of exhaustion allocate."""


def _check_aligned(name: str, address: int, size: int) -> None:
    """Check the address of an allocation."""
    check_that(address != 0, f"{name}: the address of {pluralize(size, 'byte')} is NULL")
    check(f"{name}: the address {address:#x} of {pluralize(size, 'byte')} modulo {ALIGNMENT}", address % ALIGNMENT, 0)


@case
def device_allocations_do_not_overlap(bench: RuntimeBench) -> None:
    with ExitStack() as stack:
        allocations = [(size, stack.enter_context(bench.memory(size))) for size in SIZES * 3]
        for seed, (size, address) in enumerate(allocations):
            _check_aligned("mallocDevice", address, size)
            bench.upload(address, pattern(size, seed))
        for seed, (size, address) in enumerate(allocations):
            check_bytes(f"allocation {seed} of {size} bytes", bench.download(address, size), pattern(size, seed))


@case
def pinned_allocations_do_not_overlap(bench: RuntimeBench) -> None:
    with ExitStack() as stack:
        arrays = [stack.enter_context(bench.pinned(size)) for size in SIZES * 3]
        for seed, array in enumerate(arrays):
            _check_aligned("mallocHost", address_of(array), array.size)
            array[:] = pattern(array.size, seed)
        for seed, array in enumerate(arrays):
            check_bytes(f"pinned allocation {seed} of {array.size} bytes", array, pattern(array.size, seed))


@case
def freeing_memory_leaves_the_neighbors_unchanged(bench: RuntimeBench) -> None:
    addresses = [bench.call("mallocDevice", 1000, True) for _ in range(16)]
    for seed, address in enumerate(addresses):
        bench.upload(address, pattern(1000, seed))
    for address in addresses[::2]:
        bench.call("freeDevice", address)
    with bench.memory(1000, 0), bench.memory(1000, 0):
        for seed, address in enumerate(addresses):
            if seed % 2:
                check_bytes(f"allocation {seed}", bench.download(address, 1000), pattern(1000, seed))
    for address in addresses[1::2]:
        bench.call("freeDevice", address)


@case
def zero_bytes_can_be_allocated_and_freed(bench: RuntimeBench) -> None:
    for address in [bench.call("mallocDevice", 0, True), bench.call("mallocDevice", 0, False), 0]:
        bench.call("freeDevice", address)
    for address in [bench.call("mallocHost", 0), 0]:
        bench.call("freeHost", address)


@case
def freed_memory_can_be_allocated_again(bench: RuntimeBench) -> None:
    size = bench.call("getDeviceProperties", 0).totalGlobalMem // PARTS * 3
    for _ in range(3 * PARTS):
        bench.call("freeDevice", bench.call("mallocDevice", size, True))


@case
def too_large_allocations_have_a_status(bench: RuntimeBench) -> None:
    total = bench.call("getDeviceProperties", 0).totalGlobalMem
    for size in (total + 1, TOO_LARGE, (1 << 64) - 1):
        with expect_rejection(f"mallocDevice of {size} bytes without an exception", ["DIPU_ERR_NOMEM"]):
            bench.call("mallocDevice", size, False)
        with expect_rejection(f"mallocDevice of {size} bytes with an exception"):
            bench.call("mallocDevice", size, True)
    for size in (TOO_LARGE, (1 << 64) - 1):
        with expect_rejection(f"mallocHost of {size} bytes"):
            bench.call("mallocHost", size)
    with bench.memory(100, 3) as memory:
        check_bytes("memory that is allocated after the errors", bench.download(memory, 100), 3)


@case
def exhausted_memory_has_a_status_and_recovers(bench: RuntimeBench) -> None:
    size = bench.call("getDeviceProperties", 0).totalGlobalMem // PARTS
    addresses: list[int] = []
    try:
        while len(addresses) <= PARTS:
            addresses.append(bench.call("mallocDevice", size, False))
    except RuntimeCallError as error:
        check("the status of the exhausted device", error.status, "DIPU_ERR_NOMEM")
    check_that(len(addresses) <= PARTS, f"{len(addresses)} times {size} bytes are allocated, more than the device has")
    check_that(len(addresses) >= PARTS // 2, f"only {len(addresses)} times {size} bytes of {PARTS} can be allocated")
    with expect_rejection("mallocDevice on the exhausted device"):
        bench.call("mallocDevice", size, True)
    bench.call("freeDevice", addresses.pop())
    addresses.append(bench.call("mallocDevice", size // 2, False))
    for address in addresses:
        bench.call("freeDevice", address)


@case
def every_byte_of_pinned_memory_is_pinned(bench: RuntimeBench) -> None:
    for size in (1, 100, 4096, 1 << 20):
        with bench.pinned(size) as array:
            for offset in {0, 1, size // 2, size - 1} & set(range(size)):
                subject = f"isPinnedPtr of byte {offset} of {size}"
                check(subject, bench.call("isPinnedPtr", address_of(array) + offset), True)


@case
def other_memory_is_not_pinned(bench: RuntimeBench) -> None:
    array, address = np.zeros(1 << 20, np.uint8), bench.call("mallocHost", 4096)
    with bench.memory(4096) as memory:
        for subject, place in {"NULL": 0, "pageable memory": address_of(array), "device memory": memory}.items():
            check(f"isPinnedPtr of {subject}", bench.call("isPinnedPtr", place), False)
    bench.call("freeHost", address)
    check("isPinnedPtr of freed memory", bench.call("isPinnedPtr", address), False)


@case
def pinned_memory_can_be_used_by_all_devices(bench: RuntimeBench) -> None:
    with bench.pinned(1001) as array:
        for device in range(bench.device_count):
            array[:] = pattern(1001, device)
            with bench.on_device(device), bench.memory(1001) as memory, bench.stream() as stream:
                bench.call("memCopyH2DAsync", stream, 1001, memory, address_of(array))
                bench.call("syncStream", stream)
                array[:] = GUARD
                bench.call("memCopyD2HAsync", stream, 1001, address_of(array), memory)
                bench.call("syncStream", stream)
            check_bytes(f"pinned memory after copies by device {device}", array, pattern(1001, device))


@case
def device_memory_is_freed_only_by_its_first_address(bench: RuntimeBench) -> None:
    array = np.zeros(4096, np.uint8)
    with bench.memory(4096, 5) as memory, bench.pinned(4096) as pinned:
        places = {"the middle of device memory": memory + 64, "pageable memory": address_of(array)}
        for subject, place in {**places, "pinned memory": address_of(pinned)}.items():
            with expect_rejection(f"freeDevice of {subject}"):
                bench.call("freeDevice", place)
        check_bytes("device memory after the rejected calls", bench.download(memory, 4096), 5)
        check_bytes("pinned memory after the rejected calls", pinned, GUARD)


@case
def pinned_memory_is_freed_only_by_its_first_address(bench: RuntimeBench) -> None:
    array = np.zeros(4096, np.uint8)
    with bench.memory(4096, 5) as memory, bench.pinned(4096) as pinned:
        places = {"the middle of pinned memory": address_of(pinned) + 64, "pageable memory": address_of(array)}
        for subject, place in {**places, "device memory": memory}.items():
            with expect_rejection(f"freeHost of {subject}"):
                bench.call("freeHost", place)
        check_bytes("pinned memory after the rejected calls", pinned, GUARD)
        check("isPinnedPtr after the rejected calls", bench.call("isPinnedPtr", address_of(pinned)), True)


@case
def memory_can_be_freed_only_once(bench: RuntimeBench) -> None:
    for allocate, free, arguments in (("mallocDevice", "freeDevice", [True]), ("mallocHost", "freeHost", [])):
        address = bench.call(allocate, 4096, *arguments)
        bench.call(free, address)
        with expect_rejection(f"{free} of freed memory"):
            bench.call(free, address)


@case
def memory_can_be_freed_while_another_device_is_current(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    size = bench.call("getDeviceProperties", 0).totalGlobalMem // PARTS * 5
    for _ in range(3):
        address = bench.call("mallocDevice", size, True)
        with bench.on_device(1):
            bench.call("freeDevice", address)
