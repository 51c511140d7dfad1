"""The cases of IRuntime about memory: sizes, handles, limits, and release."""

from __future__ import annotations

from diopi_engine.conformance.bench import GUARD, check, expect_failure
from diopi_engine.conformance.nvdla import networks
from diopi_engine.conformance.nvdla.bench import KINDS, Bound, NvdlaBench, as_array, case, empty, fill, room, set_batch
from diopi_engine.conformance.nvdla.client import ffi
from diopi_engine.proto.nvdla import Error, Heap

BAD, UNKNOWN, BUSY = Error.Error_BadParameter, Error.Error_BadValue, Error.Error_Busy
NOTHING, NO_MEMORY = Error.Error_NotInitialized, Error.Error_InsufficientMemory


@case
def memory_that_is_too_small(bench: NvdlaBench) -> None:
    with bench.loaded() as runtime:
        x, y = (runtime.get(f"get{kind}TensorDesc", 0).bufferSize for kind in KINDS)
        for kind, size in (("Input", x), ("Output", y)):
            handle, _ = runtime.allocate(size - 1)
            with expect_failure(f"memory of {size - 1} bytes for {size}", BAD):
                runtime.call(f"bind{kind}Tensor", 0, handle)
        bound = Bound(runtime, 2)
        with expect_failure("a batch for which memory that is bound is too small", BAD):
            set_batch(runtime, networks.MAX_BATCH)
        bound.check_batch(2)


@case
def one_memory_for_two_tensors(bench: NvdlaBench) -> None:
    with bench.loaded() as runtime:
        bound = Bound(runtime)
        for kind, number in (("Input", 0), ("Output", 1)):
            runtime.call("bindOutputTensor", 0, bound.handles[kind][number])
            bound.arrays["Output"][1][:] = GUARD
            with expect_failure(f"an output in the memory of {kind} {number}", BAD):
                runtime.call("submit")
            check("whether nothing was computed", bool((bound.arrays["Output"][1] == GUARD).all()), True)
        runtime.call("bindOutputTensor", 0, bound.handles["Output"][0])
        bound.check_batch()


@case
def handles_of_nothing(bench: NvdlaBench) -> None:
    with bench.loaded() as runtime, bench.loaded("other") as second:
        theirs, _ = second.allocate(1000)
        for subject, handle in {"of another runtime": theirs, "of nothing": ffi.cast("void*", 8)}.items():
            for kind in KINDS:
                with expect_failure(f"binding memory {subject}", UNKNOWN):
                    runtime.call(f"bind{kind}Tensor", 0, handle)
            with expect_failure(f"freeing memory {subject}", UNKNOWN):
                runtime.call("freeSystemMemory", handle, 1000)
        second.call("freeSystemMemory", theirs, 1000)


@case
def memory_is_freed_once(bench: NvdlaBench) -> None:
    with bench.loaded() as runtime:
        handle, _ = runtime.allocate(1000)
        with expect_failure("freeing another size", BAD):
            runtime.call("freeSystemMemory", handle, 999)
        runtime.call("bindInputTensor", 0, handle)
        with expect_failure("freeing memory that is bound", BUSY):
            runtime.call("freeSystemMemory", handle, 1000)
        bound = Bound(runtime)
        runtime.call("freeSystemMemory", handle, 1000)
        with expect_failure("freeing memory twice", UNKNOWN):
            runtime.call("freeSystemMemory", handle, 1000)
        with expect_failure("binding memory that is freed", UNKNOWN):
            runtime.call("bindInputTensor", 0, handle)
        bound.check_batch()


@case
def memory_stays_when_its_network_goes(bench: NvdlaBench) -> None:
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
def more_memory_than_there_is(bench: NvdlaBench) -> None:
    with bench.loaded() as runtime, bench.device() as device:
        before = room(device, Heap.DRAM)
        for size in (1 << 60, (1 << 64) - 1):
            with expect_failure(f"{size} bytes", NO_MEMORY):
                runtime.allocate(size)
        with expect_failure("0 bytes", BAD):
            runtime.allocate(0)
        check("what can be allocated after that", room(device, Heap.DRAM), before)


@case
def networks_that_have_no_room(bench: NvdlaBench) -> None:
    with bench.runtime() as runtime, bench.device() as device:
        blocks = fill(device, Heap.DRAM)
        with expect_failure("loading without memory", NO_MEMORY):
            runtime.load(bench.data())
        with expect_failure("the number of tensors then", NOTHING):
            runtime.get("getNumInputTensors")
        empty(device, blocks)
        runtime.load(bench.data())
        Bound(runtime).check_batch()


@case
def memory_comes_back(bench: NvdlaBench) -> None:
    with bench.device() as device:
        before = room(device, Heap.DRAM)
        with bench.loaded() as runtime:
            check("whether a loaded network takes memory", room(device, Heap.DRAM) < before, True)
            Bound(runtime).check_batch()
            bound = room(device, Heap.DRAM)
            runtime.call("unload", 0)
            check("whether unloading gives memory back", room(device, Heap.DRAM) > bound, True)
        check("what can be allocated when the runtime is destroyed", room(device, Heap.DRAM), before)


@case
def loading_again_and_again(bench: NvdlaBench) -> None:
    with bench.runtime() as runtime, bench.device() as device:
        left = []
        for _ in range(3):
            runtime.load(bench.data())
            runtime.call("unload", 0)
            left.append(room(device, Heap.DRAM))
        check("what can be allocated after each unload", left, left[:1] * 3)
