"""Soak tests: results and memory over many calls."""

import ctypes
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from baselines import make_level

from diopi_impl import BaseVendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Error
from diopi_test.baseline.store import BaselineFile
from diopi_test.cases.case import CaseClass
from diopi_test.checks.growth import TOLERATED_BYTES, find_growth
from diopi_test.checks.in_flight import find_failures
from diopi_test.execution.process_memory import ALLOCATED, DEVICE_BLOCKS, RESIDENT, WRITABLE
from diopi_test.execution.soak import WINDOWS, MemorySample, choose_soak_cases, sampling_points
from diopi_test.execution.verdict import CheckResult, Outcome, Verdict
from diopi_test.results.causes.finding import find_main_finding
from diopi_test.run.call_text import case_text
from diopi_test.run.collection import Collected, collect_file
from diopi_test.run.limits import CaseOptions
from diopi_test.run.lookup import LoadedCase, load_case
from diopi_test.run.options import RunOptions
from diopi_test.run.run_soak import make_call, run_soak
from diopi_test.run.target import LocalTarget
from lib_rt import Context, Device

MIB, KIB = 2**20, 2**10

_C = ctypes.CDLL(None)
_C.malloc.restype = ctypes.c_void_p
_C.malloc.argtypes = [ctypes.c_size_t]
_C.free.argtypes = [ctypes.c_void_p]

has_process_status = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not report the memory of a process"
)


class MultiplyingVendor(BaseVendor):
    """A correct vendor that can multiply; subclasses add defects.

    Attributes:
        calls: the number of calls so far.
    """

    def __init__(self) -> None:
        super().__init__("multiplying", "1")
        self.calls = 0

    def has(self, name: str) -> bool:
        return name == "diopiMul"

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        self.calls += 1
        out, first, second = arguments
        with np.errstate(all="ignore"):
            out.view()[...] = first.view() * second.view()
        return Error.Success

    def last_error(self) -> str:
        return "out of plans"

    def open_device(self) -> Device:
        return Device(HostRuntime().functions(), host_addressable=True)


class MallocLeakVendor(MultiplyingVendor):
    """Allocates memory with malloc in every call and never frees it.

    Args:
        size: the number of bytes per call; the memory is never written.
        period: leak in every call whose number this number divides.
    """

    def __init__(self, size: int, period: int = 1) -> None:
        super().__init__()
        self._size, self._period = size, period
        self._blocks: list[int] = []

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        if self.calls % self._period == 0:
            self._blocks.append(_C.malloc(self._size))
        return super().call(name, context, *arguments)

    def free(self) -> None:
        for block in self._blocks:
            _C.free(block)


class MapLeakVendor(MultiplyingVendor):
    """Maps a page in every call, which malloc does not see, and never unmaps it."""

    def __init__(self, flags: int) -> None:
        super().__init__()
        self._flags = flags
        self._pages: list[mmap.mmap] = []

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        self._pages.append(mmap.mmap(-1, mmap.PAGESIZE, flags=self._flags))
        self._pages[-1][0] = 1
        return super().call(name, context, *arguments)


class DeviceLeakVendor(MultiplyingVendor):
    """Allocates 16 bytes of device memory in every call."""

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        self._blocks = [*getattr(self, "_blocks", []), context.device.malloc(16)]
        self.context = context
        return super().call(name, context, *arguments)

    def free(self, device: Device) -> None:
        for block in self._blocks:
            device.free(block)


class CachingVendor(MultiplyingVendor):
    """Caches the latest results, at most `limit` of them, and allocates a large table in a late call."""

    def __init__(self, limit: int, late: int) -> None:
        super().__init__()
        self._limit, self._late = limit, late
        self._cache: list[Any] = []
        self._table: Any = None

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        code = super().call(name, context, *arguments)
        self._cache = [*self._cache, np.full(4 * KIB, self.calls)][-self._limit :]
        if self.calls == self._late:
            self._table = np.ones(MIB)
        return code


class PeriodicallyWrongVendor(MultiplyingVendor):
    """Writes a wrong element in every call whose number `period` divides, or returns an error if `fails`."""

    def __init__(self, period: int, *, fails: bool = False) -> None:
        super().__init__()
        self._period, self._fails = period, fails

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        code = super().call(name, context, *arguments)
        if self.calls % self._period == 0:
            arguments[0].view().flat[-1] += 1
            return Error.ErrorOccurred if self._fails else code
        return code


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a level of one function."""
    level: Path = make_level(tmp_path_factory.mktemp("levels") / "full", "diopiMul")
    return level


def collected_soak_test(folder: Path) -> Collected:
    """Return the collected soak test of the level."""
    return next(case for case in collect_file(folder / "diopiMul.h5") if case.case_class is CaseClass.soak)


def load_soak_test(folder: Path, count: int, seconds: float = 100.0) -> LoadedCase:
    """Load the soak test with a limited number of calls and seconds."""
    options = CaseOptions(soak_calls=count, soak_seconds=seconds)
    return load_case(BaselineFile(folder / "diopiMul.h5"), collected_soak_test(folder), options)


def run_vendor(vendor: BaseVendor, folder: Path, count: int, seconds: float = 100.0) -> Outcome:
    """Run a soak test of `diopiMul` on a vendor."""
    test = load_soak_test(folder, count, seconds).soak
    assert test is not None
    with vendor.open_device() as device:
        return run_soak(vendor, device, test)


def count_correct_cases(folder: Path) -> int:
    """Return the number of cases of the soak test that the vendors of this module compute correctly.

    They don't round to float16 as required.
    """
    vendor = MultiplyingVendor()
    with vendor.open_device() as device:
        target = LocalTarget(vendor, device)
        cases = choose_soak_cases(BaselineFile(folder / "diopiMul.h5"))
        return sum(not find_failures(make_call(target, case)[0]) for case in cases)


def failed_check(outcome: Outcome) -> CheckResult:
    """Return the only failed check of a failed case."""
    assert outcome.verdict is Verdict.failed
    (failed,) = (result for result in outcome.check_results if not result.passed)
    return failed


@pytest.mark.parametrize("count", [200, 2000])
def test_a_correct_vendor_passes(folder: Path, count: int) -> None:
    vendor = MultiplyingVendor()
    outcome = run_vendor(vendor, folder, count)
    assert (outcome.verdict, outcome.message) == (Verdict.passed, "")
    assert [result.check for result in outcome.check_results] == ["soak", "growth", "guards"]
    assert vendor.calls >= count


@has_process_status
def test_a_bounded_cache_and_a_late_table_are_no_leaks(folder: Path) -> None:
    outcome = run_vendor(CachingVendor(limit=600, late=1500), folder, 2000)
    assert (outcome.verdict, outcome.message) == (Verdict.passed, "")


@has_process_status
@pytest.mark.parametrize(("size", "count"), [(MIB, 200), (16 * KIB, 200), (KIB, 2000)])
def test_memory_that_malloc_leaks_is_found_with_its_rate(folder: Path, size: int, count: int) -> None:
    vendor = MallocLeakVendor(size)
    failed = failed_check(run_vendor(vendor, folder, count))
    vendor.free()
    assert failed.check == "growth"
    (growth,) = (part for part in failed.message.split("; ") if part.startswith(ALLOCATED))
    rate = int(growth.partition("grows by ")[2].partition(" bytes per call")[0].replace(",", ""))
    assert size <= rate <= 1.1 * size + 64
    first, last = sampling_points(count, count_correct_cases(folder))[::WINDOWS]
    assert f"between call {first:,} and call {last:,} of {count:,}" in growth
    assert "; calls of diopiMul[" in failed.message


@has_process_status
def test_a_leak_in_every_third_call_has_a_third_of_the_rate(folder: Path) -> None:
    vendor = MallocLeakVendor(48 * KIB, period=3)
    failed = failed_check(run_vendor(vendor, folder, 400))
    vendor.free()
    assert f"{ALLOCATED} grows by 16," in failed.message


@has_process_status
@pytest.mark.parametrize("flags", [mmap.MAP_SHARED, mmap.MAP_PRIVATE])
def test_mapped_pages_that_malloc_does_not_see_are_found(flags: int, folder: Path) -> None:
    message = failed_check(run_vendor(MapLeakVendor(flags), folder, 1000)).message
    assert RESIDENT in message
    assert (WRITABLE in message) == (flags == mmap.MAP_PRIVATE)
    assert ALLOCATED not in message


def test_leaked_device_memory_is_found(folder: Path) -> None:
    vendor = DeviceLeakVendor()
    test = load_soak_test(folder, 200).soak
    assert test is not None
    with vendor.open_device() as device:
        failed = failed_check(run_soak(vendor, device, test))
        vendor.free(device)
    assert f"{DEVICE_BLOCKS} grows by 1 blocks per call" in failed.message


def test_every_500th_call_that_is_wrong_is_found(folder: Path) -> None:
    failed = failed_check(run_vendor(PeriodicallyWrongVendor(500), folder, 2000))
    assert failed.check == "soak"
    first, *_ = failed.message.split(": ")
    assert first.startswith("call 492 of 2,000, diopiMul[")  # the first calls of the eight cases come before
    assert " (" in first
    assert "3 further calls with wrong results: 992, 1,492, 1,992" in failed.message
    assert failed.differences[0].call == "call 492 of 2,000"


def test_an_error_of_a_later_call_is_found(folder: Path) -> None:
    failed = failed_check(run_vendor(PeriodicallyWrongVendor(150, fails=True), folder, 200))
    assert "ErrorOccurred: out of plans" in failed.message


def test_the_time_limit_ends_a_soak_test(folder: Path) -> None:
    outcome = run_vendor(MultiplyingVendor(), folder, 10**6, seconds=0.2)
    assert outcome.verdict is Verdict.passed
    messages = {result.check: result.message for result in outcome.check_results}
    assert messages["soak"].startswith("stopped by the time limit after ")
    assert messages["growth"].startswith("not checked: ")


def test_a_function_without_a_correct_first_call_is_not_checked(folder: Path) -> None:
    outcome = run_vendor(PeriodicallyWrongVendor(1), folder, 200)
    assert outcome.verdict is Verdict.passed
    assert outcome.check_results[0].message == "not checked: 0 of 8 calls pass at first"
    vendor = MultiplyingVendor()
    vendor.has = lambda name: False
    assert run_vendor(vendor, folder, 200).verdict is Verdict.not_implemented


def test_the_cases_have_different_sizes_and_element_types(folder: Path) -> None:
    loaded = load_soak_test(folder, 200)
    assert len(loaded.calls) == 8
    assert len({case.dtype for case in loaded.calls}) > 2
    assert len({case.arguments["input"].values.shape for case in loaded.calls}) > 2
    text = "\n".join(case_text(loaded))
    assert "200 calls, in which these cases take turns" in text


@pytest.mark.parametrize(("count", "cases"), [(200, 8), (200, 5), (2000, 8), (2000, 3), (16, 1)])
def test_windows_of_memory_begin_after_half_of_the_calls(count: int, cases: int) -> None:
    points = sampling_points(count, cases)
    assert len(points) == len(set(points)) == WINDOWS + 1
    assert all(point % cases == 0 for point in points)
    assert count / 2 - cases <= points[0] <= count / 2
    assert count - cases < points[-1] <= count


def test_too_few_calls_have_no_windows() -> None:
    assert sampling_points(100, 8) == []


def samples_of(amounts: list[int]) -> list[MemorySample]:
    """Return memory samples, one after every hundred calls."""
    return [MemorySample(calls=100 * number, memory={RESIDENT: amount}) for number, amount in enumerate(amounts)]


def test_up_to_four_jumps_of_any_size_are_no_growth() -> None:
    assert find_growth(samples_of([0, 0, MIB, MIB, 9 * MIB, 9 * MIB, 70 * MIB, 70 * MIB, 99 * MIB])) == []


def test_memory_that_moves_back_and_forth_is_no_growth() -> None:
    assert find_growth(samples_of([0, MIB, 0, MIB, 0, MIB, 0, MIB, 0])) == []


def test_growth_in_five_of_eight_windows_is_found() -> None:
    size = TOLERATED_BYTES + 1
    (growth,) = find_growth(samples_of([0, size, 2 * size, 2 * size, 2 * size, 3 * size, 4 * size, 5 * size, 5 * size]))
    assert growth.rate == size / 100
    assert find_growth(samples_of([number * TOLERATED_BYTES for number in range(9)])) == []


def iterate_outcomes(folder: Path) -> Iterator[tuple[str, Outcome]]:
    """Yield a failed check and the outcome of a vendor that fails it."""
    leak = DeviceLeakVendor()
    test = load_soak_test(folder, 200).soak
    assert test is not None
    with leak.open_device() as device:
        yield "growth", run_soak(leak, device, test)
        leak.free(device)
    yield "soak", run_vendor(PeriodicallyWrongVendor(100), folder, 200)


def test_a_cause_names_the_symptom(folder: Path) -> None:
    for symptom, outcome in iterate_outcomes(folder):
        finding = find_main_finding(collected_soak_test(folder).record(outcome, 1.0))
        assert finding.symptom == symptom


def test_options_select_and_repeat_soak_tests(folder: Path) -> None:
    def classes(soak: int) -> set[CaseClass]:
        source = RunOptions(vendor="jax_cpu", level="full", data=folder.parent, soak=soak).source
        return {case.case_class for case in source.list_cases()}

    assert CaseClass.soak in classes(200)
    assert CaseClass.soak not in classes(0)
    command = RunOptions(vendor="jax_cpu", level="full", soak=2000).command_of("diopiMul[soak]")
    assert command.endswith("--level full --soak 2000 --case 'diopiMul[soak]'")
