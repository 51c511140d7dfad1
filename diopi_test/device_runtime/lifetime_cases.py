"""Cases of resetting a device and of ending and restarting the runtime; they come last.

Each case receives the bench (`RuntimeBench`), through which it calls the runtime. The name of a case states what must
be true; the case raises `RuntimeViolationError` otherwise.
"""

from __future__ import annotations

from diopi_test.device_runtime.bench import RuntimeBench, address_of, case, check, check_bytes, check_that, pattern

SIZE = 4097
"""The size of the copies in bytes."""


def _use_device(bench: RuntimeBench, subject: str) -> None:
    """Check that memory, streams and events of the current device work."""
    values = pattern(SIZE)
    with (
        bench.memory(SIZE, 0) as memory,
        bench.stream() as stream,
        bench.events(1) as [event],
        bench.pinned(SIZE) as array,
    ):
        array[:] = values
        bench.call("memCopyH2DAsync", stream, SIZE, memory, address_of(array))
        bench.call("recordEvent", event, stream)
        bench.call("waitEvent", event)
        check_bytes(f"a copy {subject}", bench.download(memory, SIZE), values)


@case
def a_reset_device_can_be_used_again(bench: RuntimeBench) -> None:
    total = bench.call("getDeviceProperties", 0).totalGlobalMem
    for _ in range(3):
        bench.call("mallocDevice", total // 2, True)
        bench.call("createStream", False)
        bench.call("createEvent")
        bench.call("resetDevice", 0)
        bench.forget_device(0)
        _use_device(bench, "after resetDevice")


@case
def resetting_a_device_waits_for_its_work(bench: RuntimeBench) -> None:
    with bench.pinned(SIZE) as array:
        stream, memory = bench.call("createStream", False), bench.call("mallocDevice", SIZE, True)
        bench.occupy(stream)
        bench.call("memSetAsync", stream, memory, 7, SIZE)
        bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
        bench.call("resetDevice", 0)
        bench.forget_device(0)
        check_bytes("a copy that was enqueued before resetDevice", array, 7)
        check_that(bench.call("isPinnedPtr", address_of(array)), "resetDevice frees pinned memory")


@case
def resetting_a_device_leaves_others_unchanged(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    with bench.on_device(1), bench.memory(SIZE, 3) as memory, bench.stream() as stream, bench.events(1) as [event]:
        bench.call("resetDevice", 0)
        bench.forget_device(0)
        check("the current device after resetDevice", bench.call("current_device"), 1)
        check_bytes("memory of device 1 after a reset of device 0", bench.download(memory, SIZE), 3)
        bench.call("memSetAsync", stream, memory, 4, SIZE)
        bench.call("recordEvent", event, stream)
        bench.call("waitEvent", event)
        check_bytes("a fill on device 1 after a reset of device 0", bench.download(memory, SIZE), 4)
    _use_device(bench, "after resetDevice")


@case
def the_runtime_can_be_ended_and_started_again(bench: RuntimeBench) -> None:
    with bench.pinned(SIZE) as array, bench.stream() as stream, bench.memory(SIZE, 7) as memory:
        bench.occupy(stream)
        bench.call("memCopyD2HAsync", stream, SIZE, address_of(array), memory)
        bench.call("syncStream", stream)
    for device in range(bench.device_count):
        bench.call("resetDevice", device)
        bench.forget_device(device)
    bench.call("finalizeVendor")
    bench.call("initializeVendor")
    check_that(bench.device_count >= 1, "there is no device after finalizeVendor and initializeVendor")
    _use_device(bench, "after finalizeVendor and initializeVendor")
