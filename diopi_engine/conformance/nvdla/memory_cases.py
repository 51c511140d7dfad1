"""The cases of IRuntime about memory: sizes, handles, limits, and release."""

from __future__ import annotations

from diopi_engine.conformance.bench import GUARD, check, expect_failure
from diopi_engine.conformance.nvdla import networks
from diopi_engine.conformance.nvdla.bench import (
    KINDS,
    BoundNetwork,
    NvdlaBench,
    as_array,
    available_bytes,
    case,
    fill_heap,
    free_blocks,
    set_batch,
)
from diopi_engine.conformance.nvdla.client import ffi
from diopi_engine.proto.nvdla import Error, Heap

BAD, UNKNOWN, BUSY = Error.Error_BadParameter, Error.Error_BadValue, Error.Error_Busy
"""Errors for an invalid argument, an invalid handle, and an object in use."""

NOT_INITIALIZED, NO_MEMORY = Error.Error_NotInitialized, Error.Error_InsufficientMemory
"""Errors for a missing network or binding, and for a full heap."""


@case
def memory_that_is_too_small_is_rejected(bench: NvdlaBench) -> None:
    """Check that memory must be large enough for the batch when it is bound and when the batch grows."""
    with bench.loaded() as runtime:
        x, y = (runtime.get(f"get{kind}TensorDesc", 0).bufferSize for kind in KINDS)
        for kind, size in (("Input", x), ("Output", y)):
            handle, _ = runtime.allocate(size - 1)
            with expect_failure(f"memory of {size - 1} bytes for {size}", BAD):
                runtime.call(f"bind{kind}Tensor", 0, handle)
        bound = BoundNetwork(runtime, 2)
        with expect_failure("a batch for which memory that is bound is too small", BAD):
            set_batch(runtime, networks.MAX_BATCH)
        bound.check_batch(2)


@case
def overlapping_outputs_are_rejected(bench: NvdlaBench) -> None:
    """Check that an output can't share memory with another tensor."""
    with bench.loaded() as runtime:
        bound = BoundNetwork(runtime)
        for kind, number in (("Input", 0), ("Output", 1)):
            runtime.call("bindOutputTensor", 0, bound.handles[kind][number])
            bound.arrays["Output"][1][:] = GUARD
            with expect_failure(f"an output in the memory of {kind} {number}", BAD):
                runtime.call("submit")
            check("whether nothing was computed", bool((bound.arrays["Output"][1] == GUARD).all()), True)
        runtime.call("bindOutputTensor", 0, bound.handles["Output"][0])
        bound.check_batch()


@case
def unknown_memory_handles_are_rejected(bench: NvdlaBench) -> None:
    """Check that a runtime uses only memory that it allocated."""
    with bench.loaded() as runtime, bench.loaded("other") as second:
        foreign_handle, _ = second.allocate(1000)
        for subject, handle in {"of another runtime": foreign_handle, "of nothing": ffi.cast("void*", 8)}.items():
            for kind in KINDS:
                with expect_failure(f"binding memory {subject}", UNKNOWN):
                    runtime.call(f"bind{kind}Tensor", 0, handle)
            with expect_failure(f"freeing memory {subject}", UNKNOWN):
                runtime.call("freeSystemMemory", handle, 1000)
        second.call("freeSystemMemory", foreign_handle, 1000)


@case
def freeing_memory_twice_is_rejected(bench: NvdlaBench) -> None:
    """Check that memory can be freed once, with its size, while it is not bound."""
    with bench.loaded() as runtime:
        handle, _ = runtime.allocate(1000)
        with expect_failure("freeing another size", BAD):
            runtime.call("freeSystemMemory", handle, 999)
        runtime.call("bindInputTensor", 0, handle)
        with expect_failure("freeing memory that is bound", BUSY):
            runtime.call("freeSystemMemory", handle, 1000)
        bound = BoundNetwork(runtime)
        runtime.call("freeSystemMemory", handle, 1000)
        with expect_failure("freeing memory twice", UNKNOWN):
            runtime.call("freeSystemMemory", handle, 1000)
        with expect_failure("binding memory that is freed", UNKNOWN):
            runtime.call("bindInputTensor", 0, handle)
        bound.check_batch()


@case
def memory_outlives_its_network(bench: NvdlaBench) -> None:
    """Check that memory keeps its contents when the network is unloaded."""
    with bench.loaded() as runtime:
        handle, address = runtime.allocate(1000)
        runtime.call("bindInputTensor", 0, handle)
        memory = as_array(address, 250)
        memory[:] = 7
        runtime.call("unload", 0)
        check("the sum of what is in the memory", memory.sum(), 7 * 250)
        runtime.call("freeSystemMemory", handle, 1000)
        with expect_failure("binding it to the next network", UNKNOWN):
            runtime.load(bench.data("other"))
            runtime.call("bindInputTensor", 0, handle)


@case
def impossible_allocations_are_rejected(bench: NvdlaBench) -> None:
    """Check that allocations of 0 bytes and of more than the heap are rejected."""
    with bench.loaded() as runtime, bench.device() as device:
        bytes_before = available_bytes(device, Heap.DRAM)
        for size in (1 << 60, (1 << 64) - 1):
            with expect_failure(f"{size} bytes", NO_MEMORY):
                runtime.allocate(size)
        with expect_failure("0 bytes", BAD):
            runtime.allocate(0)
        check("what can be allocated after that", available_bytes(device, Heap.DRAM), bytes_before)


@case
def loading_without_memory_is_rejected(bench: NvdlaBench) -> None:
    """Check that no network can be loaded while the heap is full."""
    with bench.runtime() as runtime, bench.device() as device:
        blocks = fill_heap(device, Heap.DRAM)
        with expect_failure("loading without memory", NO_MEMORY):
            runtime.load(bench.data())
        with expect_failure("the number of tensors then", NOT_INITIALIZED):
            runtime.get("getNumInputTensors")
        free_blocks(device, blocks)
        runtime.load(bench.data())
        BoundNetwork(runtime).check_batch()


@case
def unloading_and_destroying_free_memory(bench: NvdlaBench) -> None:
    """Check that unloading frees the network's memory, and destroying the runtime the rest."""
    with bench.device() as device:
        bytes_before = available_bytes(device, Heap.DRAM)
        with bench.loaded() as runtime:
            check("whether a loaded network takes memory", available_bytes(device, Heap.DRAM) < bytes_before, True)
            BoundNetwork(runtime).check_batch()
            bound = available_bytes(device, Heap.DRAM)
            runtime.call("unload", 0)
            check("whether unloading gives memory back", available_bytes(device, Heap.DRAM) > bound, True)
        check("what can be allocated when the runtime is destroyed", available_bytes(device, Heap.DRAM), bytes_before)


@case
def repeated_loading_frees_all_memory(bench: NvdlaBench) -> None:
    """Check that each unloading frees all memory that loading allocated."""
    with bench.runtime() as runtime, bench.device() as device:
        left = []
        for _ in range(3):
            runtime.load(bench.data())
            runtime.call("unload", 0)
            left.append(available_bytes(device, Heap.DRAM))
        check("what can be allocated after each unload", left, left[:1] * 3)
