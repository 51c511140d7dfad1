"""The device runtime of the built-in device passes all cases, and a case detects each injected fault."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from device_runtime_mutants import MUTANTS, RuntimeMutant, build_mutant, compile_objects
from sampling import sampled

from diopi_proto.device_runtime import RUNTIME_FUNCTIONS
from diopi_proto.device_runtime.headers import C_SOURCE
from diopi_proto.headers import INCLUDE_DIR
from diopi_test.device_runtime.all_cases import CASES
from diopi_test.device_runtime.bench import RuntimeBench
from diopi_test.device_runtime.run import RuntimeOutcome, run_cases
from diopi_test.device_runtime.worker import run_case
from diopi_test.execution.verdict import Verdict
from lib_rt.device_runtime import find_device_runtime
from lib_rt.device_runtime_client import DeviceRuntimeClient

TIMEOUT = 60.0
EXAMPLE = Path(__file__).parents[3] / "examples" / "device_runtime" / "device_runtime.cpp"

REPETITIONS = 5
"""How often the reference runs all cases in the exhaustive test, because faults of order depend on chance."""

RUNS = 3
"""How often a case runs on a mutant until it detects the fault.

More than once, because on a busy machine the host can be suspended for so long that a device need not be waited for.
"""

RACE_RUNS = 20
"""How often a case runs on a mutant whose fault depends on the order of threads, until it detects the fault."""


def failures(library: Path) -> list[RuntimeOutcome]:
    """Run all cases and return the outcomes of those that do not pass."""
    return [outcome for outcome in run_cases(library, list(CASES), TIMEOUT) if outcome.verdict is not Verdict.passed]


@pytest.mark.slow  # a faster test runs all cases in this process
def test_the_reference_passes_all_cases() -> None:
    assert failures(find_device_runtime()) == []


@pytest.mark.exhaustive
def test_the_reference_passes_all_cases_repeatedly() -> None:
    assert [failure for _ in range(REPETITIONS) for failure in failures(find_device_runtime())] == []


def test_a_slow_reference_passes_the_cases_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIOPI_DEVICE_DELAY", "300")
    names = [name for name in CASES if "order" in name or "wait" in name]
    outcomes = list(run_cases(find_device_runtime(), names, TIMEOUT))
    assert [outcome for outcome in outcomes if outcome.verdict is not Verdict.passed] == []


def test_a_single_device_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIOPI_DEVICE_COUNT", "1")
    outcomes = failures(find_device_runtime())
    assert {outcome.verdict for outcome in outcomes} == {Verdict.unsupported}
    assert {outcome.message for outcome in outcomes} == {"needs 2 devices; the runtime has 1"}
    assert len(outcomes) < len(CASES) / 4


@pytest.mark.slow
def test_a_vendor_without_asynchronous_work_passes(tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler here")
    library = tmp_path / "vendor.so"
    sources = [str(EXAMPLE), str(INCLUDE_DIR / C_SOURCE)]
    options = ["-std=c++17", "-O1", "-shared", "-fPIC", f"-I{INCLUDE_DIR}", f"-I{EXAMPLE.parent}"]
    subprocess.run(["c++", *options, *sources, "-o", str(library)], check=True)
    assert failures(library) == []


class RecordingClient(DeviceRuntimeClient):
    """A client that records the names of the functions that it calls."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.called: set[str] = set()

    def call(self, name: str, *inputs: Any) -> Any:
        """Call a function and record its name."""
        self.called.add(name)
        return super().call(name, *inputs)


def free_memory(bench: RuntimeBench) -> list[int]:
    """Return the number of free bytes of each device."""
    return [bench.call("getDeviceStatus", device).freeGlobalMem for device in range(bench.device_count)]


def is_lifetime_case(name: str) -> bool:
    """Return whether a case resets or finalizes devices, which releases what other cases keep."""
    return CASES[name].__module__ == "diopi_test.device_runtime.lifetime_cases"


def test_cases_release_what_they_allocate_and_call_every_function() -> None:
    client = RecordingClient(find_device_runtime())
    bench = RuntimeBench(client)
    for device in range(bench.device_count):
        with bench.on_device(device):
            bench.occupy(0)  # allocates memory that the bench keeps
            bench.call("syncDevice")
    before = free_memory(bench)
    for name in sorted(CASES, key=is_lifetime_case):
        if is_lifetime_case(name):
            assert run_case(name, RuntimeBench(client)) == (Verdict.passed, ""), name
        else:
            assert run_case(name, bench) == (Verdict.passed, ""), name
            assert free_memory(bench) == before, name
    assert {function.table_entry for function in RUNTIME_FUNCTIONS} <= client.called


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """Compile the sources of the device runtime."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    yield compile_objects(tmp_path_factory.mktemp("objects"))


def is_detected(mutant: RuntimeMutant, library: Path) -> bool:
    """Run the case that must detect the fault, repeatedly until it does, and return whether it detects the fault."""
    for _ in range(RACE_RUNS if mutant.is_race else RUNS):
        [outcome] = run_cases(library, [mutant.detected_by], TIMEOUT)
        # a race can damage a list so that a search in the list never ends
        if outcome.verdict in (Verdict.failed, Verdict.crashed) or (
            mutant.is_race and outcome.verdict is Verdict.timed_out
        ):
            assert outcome.message
            return True
    return False


@pytest.mark.parametrize("mutant", sampled(MUTANTS, 4, slow=8), ids=lambda mutant: mutant.name)
def test_a_case_detects_each_fault(mutant: RuntimeMutant, objects: list[Path], tmp_path: Path) -> None:
    assert is_detected(mutant, build_mutant(mutant, objects, tmp_path))


def test_mutants_have_distinct_names_and_existing_cases() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) > 100
    assert {mutant.detected_by for mutant in MUTANTS} <= set(CASES)
