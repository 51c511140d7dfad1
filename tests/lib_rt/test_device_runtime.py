"""The built-in device runtime: its settings, its error messages, and behavior that the interface leaves open."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from sampling import sampled

from diopi_test.device_runtime.bench import RuntimeBench, expect_rejection
from diopi_test.device_runtime.worker import start
from lib_rt.device_runtime import find_device_runtime
from lib_rt.device_runtime_client import RuntimeCallError

PROGRAM = """
from lib_rt.device_runtime_client import DeviceRuntimeClient
from lib_rt.device_runtime import find_device_runtime
client = DeviceRuntimeClient(find_device_runtime())
count = client.call("getDeviceCount")
print(count, *(client.call("getDeviceProperties", n).totalGlobalMem >> 20 for n in range(count)))
"""


@pytest.fixture
def bench() -> RuntimeBench:
    """Return a client of the built-in device runtime, with helpers that create streams, events and memory."""
    return start(find_device_runtime())


def describe_devices(monkeypatch: pytest.MonkeyPatch, **settings: str) -> tuple[str, str]:
    """Return what a new process, which describes the devices, prints to standard output and standard error.

    Args:
        monkeypatch: the fixture that restores the environment.
        settings: the environment variables DIOPI_DEVICE_NAME, by NAME; COUNT and MEMORY are unset if they are missing.

    Returns:
        The number of devices, followed by the memory of each device in MiB; and the messages.
    """
    for name in ("COUNT", "MEMORY"):
        monkeypatch.delenv(f"DIOPI_DEVICE_{name}", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(f"DIOPI_DEVICE_{name}", value)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr


def test_environment_variables_set_devices_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe_devices(monkeypatch) == ("2 2048 2048", "")
    assert describe_devices(monkeypatch, COUNT="3", MEMORY="5") == ("3 5 5 5", "")
    assert describe_devices(monkeypatch, COUNT="0", MEMORY="5") == ("0", "")


@pytest.mark.parametrize("value", sampled(["17", "-1", "two", "", "2 "], 2))
def test_an_invalid_setting_is_reported_and_ignored(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    output, errors = describe_devices(monkeypatch, COUNT=value)
    assert (output, errors) == ("2 2048 2048", f"DIOPI_DEVICE_COUNT is {value}, expected 0 to 16; using 2\n")


def test_only_the_two_functions_that_return_tables_are_exported() -> None:
    if shutil.which("nm") is None:
        pytest.skip("there is no nm here")
    command = ["nm", "-D", "--defined-only", str(find_device_runtime())]
    names = [line.split()[-1] for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]
    assert sorted(names) == ["dipuGetCollectives", "dipuGetDeviceRuntime"]


def test_freeing_memory_before_a_fill_runs_is_an_asynchronous_error(bench: RuntimeBench) -> None:
    memory = bench.call("mallocDevice", 100, True)
    with bench.stream() as stream:
        bench.occupy(stream)
        bench.call("memSetAsync", stream, memory, 1, 100)
        bench.call("freeDevice", memory)
        with pytest.raises(RuntimeCallError, match=r"syncStream: .* copy or fill was freed"):
            bench.call("syncStream", stream)
        bench.call("syncStream", stream)


@pytest.mark.parametrize("report", ["checkLastError", "syncDevice"])
def test_an_asynchronous_error_is_reported_once(report: str, bench: RuntimeBench) -> None:
    memory = bench.call("mallocDevice", 100, True)
    with bench.stream() as stream:
        bench.occupy(stream)
        bench.call("memSetAsync", stream, memory, 1, 100)
        bench.call("freeDevice", memory)
        bench.wait_until("an empty stream", lambda: bool(bench.call("isStreamEmpty", stream)))
        with pytest.raises(RuntimeCallError, match=report):
            bench.call(report)
        bench.call(report)


def test_copies_outside_of_an_allocation_are_rejected(bench: RuntimeBench) -> None:
    with bench.memory(100) as memory, bench.pinned(200) as array, bench.stream() as stream:
        host = array.ctypes.data
        for offset, size in ((0, 101), (1, 100), (100, 1), (-1, 2), (50, 2**63)):
            with expect_rejection(f"{size} bytes at offset {offset}"):
                bench.call("memSetAsync", stream, memory + offset, 0, size)
            with expect_rejection(f"{size} bytes at offset {offset}"):
                bench.call("memCopyH2DAsync", stream, size, memory + offset, host)
            with expect_rejection(f"{size} bytes at offset {offset}"):
                bench.call("memCopyD2H", size, host, memory + offset)


def test_wrong_kinds_of_memory_are_named(bench: RuntimeBench) -> None:
    with bench.memory(100) as memory, bench.pinned(100) as array, bench.stream() as stream:
        host = array.ctypes.data
        with pytest.raises(RuntimeCallError, match="memCopyH2DAsync: the memory belongs to the host, not to device 0"):
            bench.call("memCopyH2DAsync", stream, 10, host, host)
        with pytest.raises(RuntimeCallError, match="memCopyD2H: device memory where host memory is expected"):
            bench.call("memCopyD2H", 10, memory + 20, memory)
        with bench.on_device(1), bench.stream() as second, bench.memory(10) as peer:
            with pytest.raises(RuntimeCallError, match="the memory belongs to another device, not to device 1"):
                bench.call("memSetAsync", second, memory, 0, 10)
            with pytest.raises(RuntimeCallError, match="the stream belongs to neither device"):
                bench.call("memCopyD2DAsync", stream, 10, 1, peer, 1, peer)


def test_unknown_handles_and_handles_of_another_kind_are_rejected(bench: RuntimeBench) -> None:
    with bench.stream() as stream, bench.events(1) as [event]:
        for handle in (event, 12345):
            with pytest.raises(RuntimeCallError, match="syncStream: there is no stream with this handle"):
                bench.call("syncStream", handle)
        for handle in (stream, 0):
            with pytest.raises(RuntimeCallError, match="waitEvent: there is no event with this handle"):
                bench.call("waitEvent", handle)
    for name, handle in (("destroyStream", stream), ("destroyEvent", event), ("destroyStream", 0)):
        with expect_rejection(f"{name} of a handle that does not exist"):
            bench.call(name, handle)


def test_events_of_another_device_are_not_recorded(bench: RuntimeBench) -> None:
    with bench.stream() as stream, bench.on_device(1), bench.events(1) as [event]:
        with pytest.raises(RuntimeCallError, match="the event and the stream belong to different devices"):
            bench.call("recordEvent", event, stream)
        assert bench.is_ready(event)


def test_an_event_and_its_stream_are_complete_at_once(bench: RuntimeBench) -> None:
    with bench.stream() as stream, bench.events(1) as [event]:
        for _ in range(2000):
            bench.call("recordEvent", event, stream)
            bench.call("waitEvent", event)
            assert bench.call("isStreamEmpty", stream)
            bench.call("recordEvent", event, stream)
            bench.call("syncStream", stream)
            assert bench.is_ready(event)


def test_work_with_priority_overtakes_the_same_work_that_was_enqueued_before(bench: RuntimeBench) -> None:
    size, fills = 64 << 20, 20  # the host enqueues these fills much faster than the device performs them
    with (
        bench.memory(size) as memory,
        bench.stream() as plain,
        bench.stream(prior=True) as urgent,
        bench.events(2) as [plain_end, urgent_end],
    ):
        for stream, end in ((plain, plain_end), (urgent, urgent_end)):
            for _ in range(fills):
                bench.call("memSetAsync", stream, memory, 0, size)
            bench.call("recordEvent", end, stream)
        bench.call("syncDevice")
        assert bench.call("eventElapsedTime", urgent_end, plain_end) > 0
