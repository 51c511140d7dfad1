"""The runtime cases: a correct runtime passes them all, and each kind of defect is detected."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from late_runtime import LateRuntime

from diopi_impl import Vendor, find_vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Error
from diopi_test.execution.runtime_cases import RUNTIME, RUNTIME_CASES, RuntimeCase, RuntimeCaseError
from diopi_test.execution.verdict import Verdict
from diopi_test.run.collection import Collected
from diopi_test.run.limits import CaseOptions
from diopi_test.run.session import Session
from diopi_test.run.target import LocalTarget
from lib_rt import CallError, Context, Device, RuntimeFunctions, Tensor
from lib_rt.library import ffi

CASES = {case.name: case for case in RUNTIME_CASES}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def vendor_with(functions: RuntimeFunctions, name: str = "test", version: str = "1") -> Vendor:
    """Return a vendor with these runtime functions and no operators."""
    return Vendor(name, version, functions, host_addressable=True)


# Sound runtimes.


class CountingRuntime(HostRuntime):
    """A runtime that records which memory and streams are in use."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: set[int] = set()
        self.streams: set[int] = set()

    def stream_create(self) -> int:
        stream = super().stream_create()
        self.streams.add(stream)
        return stream

    def stream_destroy(self, stream: int) -> int:
        self.streams.remove(stream)
        return super().stream_destroy(stream)

    def malloc(self, nbytes: int) -> int:
        address = super().malloc(nbytes)
        self.alive.add(address)
        return address

    def free(self, address: int) -> None:
        self.alive.remove(address)
        super().free(address)

    @property
    def in_use(self) -> tuple[set[int], set[int]]:
        """The addresses of allocated blocks, and the existing streams."""
        return self.alive - {0}, set(self.streams)


class PromptRuntime(HostRuntime):
    """A runtime that copies at once."""

    def copy(self, stream: int, destination: int, source: int, nbytes: int) -> int:
        super().copy(stream, destination, source, nbytes)
        return super().stream_sync(stream)


@pytest.fixture(scope="module")
def jax_cpu() -> Vendor:
    """Return the reference vendor."""
    return find_vendor("jax_cpu")


@every_case
def test_jax_cpu_passes_the_runtime_cases(case: RuntimeCase, jax_cpu: Vendor) -> None:
    case.run(jax_cpu)


@every_case
@pytest.mark.parametrize("runtime", [LateRuntime, PromptRuntime])
def test_a_vendor_may_copy_late(case: RuntimeCase, runtime: type[HostRuntime]) -> None:
    case.run(vendor_with(runtime().functions()))


@every_case
def test_runtime_cases_leave_no_memory_and_disturb_no_stream(case: RuntimeCase) -> None:
    runtime = CountingRuntime()
    vendor = vendor_with(runtime.functions())
    values = np.arange(1000.0)
    with vendor.open_device() as device, Context(device) as context:
        tensor = Tensor.from_numpy(context, values)
        context.stream.synchronize()
        before = runtime.in_use
        case.run(vendor)
        assert runtime.in_use == before
        assert device.live_blocks == 1
        np.testing.assert_array_equal(tensor.numpy(), values)


# Defective ones, each with the case that finds it out and what it says.


class Overlapping(HostRuntime):
    """A runtime whose blocks of equal size share memory."""

    def __init__(self) -> None:
        super().__init__()
        self.shared: dict[int, int] = {}

    def malloc(self, nbytes: int) -> int:
        if nbytes not in self.shared:
            self.shared[nbytes] = super().malloc(nbytes)
        return self.shared[nbytes]

    def free(self, address: int) -> None:
        """Do nothing: another block may share this memory."""


class Leaking(HostRuntime):
    """A runtime that never frees memory; `clean` does."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[int] = []

    def free(self, address: int) -> None:
        self.addresses.append(address)

    def clean(self) -> None:
        """Free the memory that programs wanted to free."""
        for address in self.addresses:
            super().free(address)


class Wrapping(HostRuntime):
    """A runtime that rounds sizes up to whole kilobytes in 62 bits, so that huge sizes become small."""

    def malloc(self, nbytes: int) -> int:
        return super().malloc(-(-nbytes // 1024) * 1024 % 2**62)


class Speechless(HostRuntime):
    """A runtime that gives no reason for a failure."""

    def last_error(self) -> str:
        return ""


class Backwards(LateRuntime):
    """A runtime that executes the last copy first."""

    def stream_sync(self, stream: int) -> Error:
        self.queued.get(stream, []).reverse()
        return super().stream_sync(stream)


class SmallFirst(LateRuntime):
    """A runtime that executes large copies after small ones."""

    def stream_sync(self, stream: int) -> Error:
        self.queued.get(stream, []).sort(key=lambda task: task[2] > 4096)
        return super().stream_sync(stream)


class Impatient(HostRuntime):
    """A runtime that returns from a synchronization without waiting."""

    def stream_sync(self, stream: int) -> Error:
        return Error.Success


class OneStream(LateRuntime):
    """A runtime that synchronizes only the oldest stream."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: list[int] = []

    def stream_create(self) -> int:
        self.streams.append(super().stream_create())
        return self.streams[-1]

    def stream_destroy(self, stream: int) -> int:
        self.streams.remove(stream)
        return super().stream_destroy(stream)

    def stream_sync(self, stream: int) -> int:
        return super().stream_sync(stream) if stream == self.streams[0] else Error.Success


class Forgetful(LateRuntime):
    """A runtime whose streams forget their work when another stream copies."""

    def copy(self, stream: int, destination: int, source: int, nbytes: int) -> Error:
        self.queued = {number: tasks for number, tasks in self.queued.items() if number == stream}
        return super().copy(stream, destination, source, nbytes)


class FewStreams(HostRuntime):
    """A runtime with 50 streams that never reuses a destroyed stream."""

    def __init__(self) -> None:
        super().__init__()
        self.allocations = 0

    def stream_create(self) -> int:
        self.allocations += 1
        if self.allocations > 50:
            raise RuntimeError("no stream is left")
        return super().stream_create()


class OneThread(HostRuntime):
    """A runtime that works only in the thread that created it."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.get_ident()

    def stream_create(self) -> int:
        if threading.get_ident() != self.thread:
            raise RuntimeError("called from another thread")
        return super().stream_create()


def misaligned_functions() -> RuntimeFunctions:
    """Return runtime functions whose addresses are not aligned to 16 bytes."""
    runtime = HostRuntime()
    return replace(
        runtime.functions(),
        malloc=lambda nbytes: runtime.malloc(nbytes) + 8,
        free=lambda address: runtime.free(address - 8),
    )


Copy = Callable[[int, int, int, int], int | None]
DIRECTIONS = {
    "h2d": "copies_to_the_device_are_exact",
    "d2h": "copies_from_the_device_are_exact",
    "d2d": "copies_within_the_device_are_exact",
}
COPYING: dict[str, Callable[[Copy], Copy]] = {
    "does not copy": lambda copy: lambda stream, end, start, nbytes: 0,
    "loses the last byte": lambda copy: lambda stream, end, start, nbytes: copy(stream, end, start, max(nbytes - 1, 0)),
    "copies a byte too many": lambda copy: lambda stream, end, start, nbytes: copy(stream, end, start, nbytes + 1),
    "aligns where it copies to": lambda copy: lambda stream, end, *arguments: copy(stream, end - end % 16, *arguments),
    "aligns where it copies from": lambda copy: lambda stream, end, start, n: copy(stream, end, start - start % 16, n),
    "refuses no bytes": lambda copy: (
        lambda stream, end, start, nbytes: copy(stream, end, start, nbytes) if nbytes else 1
    ),
}


def replace_copy(direction: str, change: Callable[[Copy], Copy]) -> RuntimeFunctions:
    """Return runtime functions in which one copy function is changed."""
    runtime = HostRuntime()
    return replace(runtime.functions(), **{direction: change(runtime.copy)})


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("defect", COPYING)
def test_a_wrong_copy_is_detected(direction: str, defect: str) -> None:
    vendor = vendor_with(replace_copy(direction, COPYING[defect]))
    with pytest.raises((RuntimeCaseError, CallError), match=r"bytes|copy"):
        CASES[DIRECTIONS[direction]].run(vendor)


def small_only(copy: Copy) -> Copy:
    """Copy at most 1 MiB."""
    return lambda stream, end, start, nbytes: copy(stream, end, start, min(nbytes, 2**20))


DEFECTS: dict[str, tuple[Callable[[], RuntimeFunctions], str, str]] = {
    "misaligned memory": (misaligned_functions, "memory_is_aligned", "is not a multiple of 16"),
    "overlapping blocks": (lambda: Overlapping().functions(), "blocks_do_not_overlap", "overlap"),
    "exhaustion gives garbage": (lambda: Wrapping().functions(), "exhaustion_is_reported", "gave the address"),
    "exhaustion without a word": (lambda: Speechless().functions(), "exhaustion_is_reported", "is empty"),
    "large copies cut": (lambda: replace_copy("d2d", small_only), "large_copies_are_exact", "bytes are wrong"),
    "large block cut": (
        lambda: replace_copy("h2d", lambda copy: lambda *_: 0),
        "both_ends_of_a_large_block_are_writable",
        "the first",
    ),
    "order reversed": (lambda: Backwards().functions(), "a_stream_keeps_the_order_of_copies", "dependent copies"),
    "small copies first": (lambda: SmallFirst().functions(), "a_stream_keeps_the_order_of_copies", "dependent copies"),
    "order of writes": (lambda: Backwards().functions(), "writes_take_effect_in_order", "read after each"),
    "sync does not wait": (lambda: Impatient().functions(), "synchronization_waits_for_all_copies", "then a wait"),
    "work lost with its stream": (
        lambda: replace(LateRuntime().functions(), stream_sync=lambda stream: 0),
        "destroying_a_stream_completes_its_copies",
        "that was destroyed",
    ),
    "one stream is waited for": (lambda: OneStream().functions(), "several_streams_work_concurrently", "stream 7 of 8"),
    "one stream forgets": (lambda: Forgetful().functions(), "several_streams_work_concurrently", "of 8"),
    "write on another stream": (
        lambda: OneStream().functions(),
        "a_stream_reads_what_a_synchronized_stream_wrote",
        "read on another",
    ),
    "few streams": (lambda: FewStreams().functions(), "many_streams_can_be_created_in_turn", "no stream is left"),
    "thread-bound": (
        lambda: OneThread().functions(),
        "several_threads_work_concurrently",
        "called from another thread",
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_detected(defect: str) -> None:
    functions, case, message = DEFECTS[defect]
    with pytest.raises((RuntimeCaseError, CallError), match=message):
        CASES[case].run(vendor_with(functions()))


def test_a_leak_is_detected() -> None:
    runtime = Leaking()
    with pytest.raises(RuntimeCaseError, match="grew"):
        CASES["freed_memory_can_be_allocated_again"].run(vendor_with(runtime.functions()))
    runtime.clean()


def test_exhausted_memory_is_detected() -> None:
    """The runtime frees nothing, as on some chips."""
    runtime, left = HostRuntime(), 80 * 2**30

    def malloc(nbytes: int) -> int:
        nonlocal left
        left -= nbytes
        return runtime.malloc(nbytes) if left > 0 else 0

    with pytest.raises(CallError, match="allocate"):
        CASES["freed_memory_can_be_allocated_again"].run(vendor_with(replace(runtime.functions(), malloc=malloc)))


@pytest.mark.parametrize("missing", [field.name for field in fields(RuntimeFunctions)])
def test_a_runtime_that_lacks_a_function_fails(missing: str) -> None:
    vendor = vendor_with(replace(HostRuntime().functions(), **{missing: None}))
    with pytest.raises(CallError, match="registered"):
        CASES["each_missing_function_has_its_own_error"].run(vendor)


@pytest.mark.parametrize("texts", [{"name": ""}, {"version": " "}])
def test_missing_texts_are_detected(texts: dict[str, str]) -> None:
    with pytest.raises(RuntimeCaseError, match="empty"):
        CASES["name_and_version_are_text"].run(vendor_with(HostRuntime().functions(), **texts))


class Mute(Vendor):
    """A vendor that explains no failure."""

    def last_error(self) -> str:
        return ""


def test_a_failure_without_explanation_is_detected() -> None:
    with pytest.raises(RuntimeCaseError, match="last error"):
        CASES["a_failing_call_sets_the_last_error"].run(Mute("mute", "1", HostRuntime().functions()))


class Latin(Vendor):
    """A vendor whose runtime, in C, returns messages in Latin-1."""

    def open_device(self) -> Device:
        device = super().open_device()
        self.text = ffi.new("char[]", "Gerät verloren".encode("latin-1"))
        self.callback = ffi.callback("char const*(void)", lambda: self.text)
        device._replace_service("last_error", self.callback)
        return device


def test_a_text_that_is_not_utf8_is_detected() -> None:
    with pytest.raises(RuntimeCaseError, match="UTF-8"):
        CASES["the_last_error_is_readable_before_any_failure"].run(Latin("latin", "1", HostRuntime().functions()))


def test_the_session_reports_the_result_of_a_case() -> None:
    vendor = vendor_with(misaligned_functions())
    session = Session(LocalTarget(vendor, vendor.open_device()), CaseOptions())
    outcome = session.run(Path(), Collected(function=RUNTIME, label="memory_is_aligned"))
    session.close()
    assert outcome.verdict is Verdict.failed
    assert outcome.message.startswith("RuntimeCaseError: address 0x")
