"""The cases of the portability layer: sessions, devices, heaps and tasks, as a driver uses them."""

from __future__ import annotations

import numpy as np

from diopi_engine.conformance.bench import check, check_array, expect_failure
from diopi_engine.conformance.nvdla import networks
from diopi_engine.conformance.nvdla.bench import (
    NvdlaBench,
    as_array,
    available_bytes,
    case,
    fill_heap,
    free_blocks,
    random_inputs,
    total_size,
)
from diopi_engine.conformance.nvdla.client import DeviceSession, ffi
from diopi_engine.proto.nvdla import Error, Heap

BAD, UNKNOWN, NO_MEMORY = Error.Error_BadParameter, Error.Error_BadValue, Error.Error_InsufficientMemory
"""Errors for an invalid argument, an invalid handle, and a full heap."""

WIDTH = 4 * networks.MAX_BATCH * 4
"""A size in bytes that is sufficient for every tensor of the network."""


@case
def ended_sessions_and_unknown_devices_are_rejected(bench: NvdlaBench) -> None:
    """Check that devices that do not exist, and devices in an ended session, can't be opened."""
    with bench.device() as device:
        session = device.session
        with expect_failure("opening a device that is not there", Error.Error_DeviceNotFound):
            bench.client.get("NvDlaOpen", session, 1 << 16)
    with expect_failure("a session that has ended", UNKNOWN):
        bench.client.get("NvDlaOpen", session, 0)
    for name, arguments in {"NvDlaInitialize": (), "NvDlaOpen": (session, 0)}.items():
        with expect_failure(f"{name} into NULL", BAD):
            bench.client.call(name, *arguments, ffi.NULL)


@case
def handles_of_other_sessions_are_rejected(bench: NvdlaBench) -> None:
    """Check that a session can't use the devices and the memory of another session."""
    with bench.device() as device, bench.device() as second:
        handle, address = second.allocate(100, Heap.DRAM)
        with expect_failure("allocating on a device of another session", UNKNOWN):
            pointers = ffi.new("void**"), ffi.new("void**")
            bench.client.call("NvDlaAllocMem", device.session, second.handle, *pointers, 100, Heap.DRAM)
        with expect_failure("freeing memory of another session", UNKNOWN):
            device.call("NvDlaFreeMem", handle, address, 100)
        with expect_failure("a session handle passed as a device", UNKNOWN):
            bench.client.call("NvDlaFreeMem", device.session, device.session, handle, address, 100)
        with expect_failure("running memory of another session", UNKNOWN):
            device.submit((1, [(handle, 100)]))
        second.call("NvDlaFreeMem", handle, address, 100)


@case
def memory_of_both_heaps_is_usable(bench: NvdlaBench) -> None:
    """Check that memory can be written, and freed once with its address and size."""
    with bench.device() as device:
        for heap in Heap:
            handle, address = device.allocate(1000, heap)
            memory = as_array(address, 250)
            memory[:] = 1
            check(f"the sum of what was written to {heap.name}", memory.sum(), 250)
            for subject, invalid in {"address": (ffi.cast("char*", address) + 4, 1000), "size": (address, 999)}.items():
                with expect_failure(f"freeing memory with another {subject}", BAD):
                    device.call("NvDlaFreeMem", handle, *invalid)
            device.call("NvDlaFreeMem", handle, address, 1000)
            with expect_failure("freeing memory twice", UNKNOWN):
                device.call("NvDlaFreeMem", handle, address, 1000)
            with expect_failure("0 bytes", BAD):
                device.allocate(0, heap)
        with expect_failure("memory of a heap that is not there", BAD):
            device.allocate(100, len(Heap))


@case
def heaps_have_limits(bench: NvdlaBench) -> None:
    """Check that a full heap rejects allocations until memory is freed."""
    with bench.device() as device:
        with expect_failure("4294967295 bytes of SRAM", NO_MEMORY):
            device.allocate(0xFFFFFFFF, Heap.SRAM)
        blocks = fill_heap(device, Heap.SRAM)
        with expect_failure("memory of a heap that is full", NO_MEMORY):
            device.allocate(64, Heap.SRAM)
        device.call("NvDlaFreeMem", *device.allocate(64, Heap.DRAM), 64)
        free_blocks(device, blocks)
        check("what can be allocated again", available_bytes(device, Heap.SRAM), total_size(blocks))


@case
def closing_frees_memory(bench: NvdlaBench) -> None:
    """Check that closing a device frees the memory that was allocated for it."""
    with bench.device() as device:
        bytes_before = available_bytes(device, Heap.SRAM)
        with bench.device() as second:
            second.allocate(1000, Heap.SRAM)
            check("whether memory is taken", available_bytes(device, Heap.SRAM) < bytes_before, True)
        check("what can be allocated when the device is closed", available_bytes(device, Heap.SRAM), bytes_before)


@case
def tasks_run_in_order(bench: NvdlaBench) -> None:
    """Check that the second task of a submission reads what the first one wrote."""
    with bench.device() as device:
        program, (x, s, y, z, end) = _load_program(bench, device), _allocate_memories(device, 5)
        arrays = random_inputs(3)
        for (_, address, _), value in zip((x, s), arrays, strict=True):
            as_array(address, value.size)[:] = value.ravel()
        tasks = [[program, *map(_handle_and_size, memories)] for memories in ((x, s, y, z), (z, s, y, end))]
        device.submit(*[(3, memories) for memories in tasks])
        first = networks.expected_outputs("pair", *arrays)
        for memory, value in zip(
            (z, y, end), [first[1], *networks.expected_outputs("pair", first[1], arrays[1])], strict=True
        ):
            check_array("an output", as_array(memory[1], value.size).reshape(value.shape), value)


@case
def invalid_tasks_are_rejected(bench: NvdlaBench) -> None:
    """Check that a submission with an invalid task runs no task."""
    with bench.device() as device:
        program, memories = _load_program(bench, device), _allocate_memories(device, 4)
        y = as_array(memories[2][1], WIDTH // 4)
        good = [program, *map(_handle_and_size, memories)]
        lacking, too_small = good[:-1], [*good[:-1], (good[-1][0], 15)]
        large, shared = [*good[:-1], (good[-1][0], WIDTH + 1)], [*good[:-1], good[1]]
        invalid = {
            "a tensor too few": lacking,
            "too small": too_small,
            "beyond their ends": large,
            "for two tensors": shared,
        }
        for subject, list_ in invalid.items():
            with expect_failure(f"memories {subject}", BAD):
                device.submit((1, good), (1, list_))
        for batch in (0, networks.MAX_BATCH + 1):
            with expect_failure(f"a batch of {batch}", BAD):
                device.submit((1, good), (batch, good))
        with expect_failure("no tasks", BAD):
            device.call("NvDlaSubmit", ffi.NULL, 0)
        with expect_failure("a task whose first memory contains no loadable", Error.Error_InvalidFile):
            device.submit((1, [good[1], *good[1:]]))
        check("whether nothing was computed", np.count_nonzero(y), 0)


def _load_program(bench: NvdlaBench, device: DeviceSession) -> tuple[object, int]:
    """Return device memory that contains the loadable `pair`, as a pair of handle and size."""
    data = bench.data()
    handle, address = device.allocate(len(data), Heap.DRAM)
    ffi.memmove(address, data, len(data))
    return handle, len(data)


def _allocate_memories(device: DeviceSession, count: int) -> list[tuple[object, object, int]]:
    """Return `count` zero-initialized memories for tensors, each as handle, address and size."""
    allocations = [(*device.allocate(WIDTH, Heap.DRAM), WIDTH) for _ in range(count)]
    for _, address, _ in allocations:
        as_array(address, WIDTH // 4)[:] = 0
    return allocations


def _handle_and_size(block: tuple[object, object, int]) -> tuple[object, int]:
    """Return the handle and the size of a block of memory."""
    return block[0], block[2]
