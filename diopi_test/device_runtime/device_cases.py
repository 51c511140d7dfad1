"""Cases of devices: their number, properties and memory, the current device, and errors.

Each case receives the bench (`RuntimeBench`), through which it calls the runtime. The name of a case states what must
be true; the case raises `RuntimeViolationError` otherwise.
"""

from __future__ import annotations

from typing import Any

from diopi_test.device_runtime.bench import (
    RuntimeBench,
    case,
    check,
    check_bytes,
    check_that,
    expect_rejection,
    pattern,
)
from lib_rt.device_runtime_client import RuntimeCallError, ffi

MIB = 1 << 20


def _invalid_devices(bench: RuntimeBench) -> list[int]:
    """Return indices of devices that do not exist, near the valid indices and far away."""
    return [-1, bench.device_count, 127, -128]


def _list_fields(properties: Any) -> list[object]:
    """Return the values of the properties of a device."""
    return [ffi.string(properties.name), properties.totalGlobalMem, properties.major, properties.multiProcessorCount]


@case
def the_number_of_devices_and_the_versions_are_positive(bench: RuntimeBench) -> None:
    check_that(1 <= bench.device_count <= 127, f"the number of devices is {bench.device_count}, expected 1 to 127")
    check("the number of devices in a second call", bench.device_count, bench.call("getDeviceCount"))
    for name in ("getDriverVersion", "getRuntimeVersion"):
        check_that(bench.call(name) > 0, f"{name}: {bench.call(name)}, expected a positive number")


@case
def every_device_has_properties(bench: RuntimeBench) -> None:
    for device in range(bench.device_count):
        first, second = bench.call("getDeviceProperties", device), bench.call("getDeviceProperties", device)
        check_that(bool(ffi.string(first.name)), f"device {device} has no name")
        check_that(first.totalGlobalMem > 0, f"device {device} has {first.totalGlobalMem} bytes of memory")
        check_that(
            first.multiProcessorCount > 0, f"device {device} has {first.multiProcessorCount} processors, expected some"
        )
        check(f"the properties of device {device} in a second call", _list_fields(second), _list_fields(first))


@case
def the_status_counts_allocated_memory(bench: RuntimeBench) -> None:
    total = bench.call("getDeviceProperties", 0).totalGlobalMem
    before = bench.call("getDeviceStatus", 0)
    check("the total memory of the status", before.totalGlobalMem, total)
    check_that(before.freeGlobalMem <= total, f"{before.freeGlobalMem} bytes are free of {total}")
    size = max(total // 2, 1)
    with bench.memory(size):
        free = bench.call("getDeviceStatus", 0).freeGlobalMem
        check_that(free <= total - size, f"{free} bytes are free of {total} while {size} are allocated")


@case
def the_status_belongs_to_its_device(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    before = bench.call("getDeviceStatus", 0).freeGlobalMem
    size = bench.call("getDeviceProperties", 1).totalGlobalMem // 2
    with bench.on_device(1), bench.memory(size):
        free = bench.call("getDeviceStatus", 1)
        check_that(
            free.freeGlobalMem <= free.totalGlobalMem - size,
            f"{free.freeGlobalMem} bytes of device 1 are free while {size} of {free.totalGlobalMem} are allocated",
        )
        lost = before - bench.call("getDeviceStatus", 0).freeGlobalMem
        check_that(lost < size, f"an allocation of {size} bytes on device 1 takes {lost} bytes of device 0")


@case
def a_device_can_be_made_the_current_one(bench: RuntimeBench) -> None:
    check("the current device at first", bench.call("current_device"), 0)
    for device in [*range(bench.device_count), 0]:
        bench.call("setDevice", device)
        check("the current device after setDevice", bench.call("current_device"), device)


@case
def unknown_devices_are_rejected(bench: RuntimeBench) -> None:
    with bench.memory(8) as memory, bench.stream() as stream:
        for device in _invalid_devices(bench):
            for name in ("setDevice", "getDeviceProperties", "resetDevice"):
                with expect_rejection(f"{name} with device {device}"):
                    bench.call(name, device)
            with expect_rejection(f"memCopyD2D to device {device}"):
                bench.call("memCopyD2D", 4, device, memory, 0, memory + 4)
            with expect_rejection(f"memCopyD2DAsync from device {device}"):
                bench.call("memCopyD2DAsync", stream, 4, 0, memory, device, memory + 4)
            check("the current device after the rejected calls", bench.call("current_device"), 0)
        bench.call("syncStream", stream)


@case
def the_status_of_unknown_devices_is_rejected(bench: RuntimeBench) -> None:
    for device in _invalid_devices(bench):
        with expect_rejection(f"getDeviceStatus with device {device}"):
            bench.call("getDeviceStatus", device)


@case
def the_stream_of_an_unknown_device_is_not_destroyed(bench: RuntimeBench) -> None:
    with bench.stream() as stream, bench.memory(8) as memory:
        with expect_rejection("destroyStream with a device that does not exist"):
            bench.call("destroyStreamOfDevice", stream, bench.device_count)
        bench.call("memSetAsync", stream, memory, 7, 8)
        bench.call("syncStream", stream)
        check_bytes("memory that the stream fills after the rejected call", bench.download(memory, 8), 7)


@case
def an_error_is_reported_once(bench: RuntimeBench) -> None:
    bench.call("checkLastError")
    with expect_rejection("setDevice with a device that does not exist"):
        bench.call("setDevice", bench.device_count)
    try:
        bench.call("checkLastError")
    except RuntimeCallError:
        bench.call("checkLastError")
    bench.call("syncDevice")


@case
def errors_have_a_text(bench: RuntimeBench) -> None:
    try:
        bench.call("setDevice", bench.device_count)
    except RuntimeCallError as error:
        check_that(bool(error.text.strip()), "the exception of setDevice has no text")


@case
def starting_twice_changes_nothing(bench: RuntimeBench) -> None:
    values = pattern(1000)
    with bench.memory(1000) as memory:
        bench.upload(memory, values)
        bench.call("initializeVendor")
        check_bytes("memory after a second call of initializeVendor", bench.download(memory, 1000), values)


@case
def memory_of_devices_is_separate(bench: RuntimeBench) -> None:
    bench.require_devices(2)
    size = MIB + 5
    with bench.memory(size, 1) as first, bench.on_device(1), bench.memory(size, 2) as second:
        check_that(
            first + size <= second or second + size <= first,
            f"memory of two devices overlaps: {size} bytes at {first:#x} and at {second:#x}",
        )
        check_bytes("memory of device 1", bench.download(second, size), 2)
        with bench.on_device(0):
            check_bytes("memory of device 0", bench.download(first, size), 1)
