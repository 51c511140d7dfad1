"""Runs of faulty libraries: each case has a verdict, whatever the library does."""

from __future__ import annotations

from pathlib import Path

import pytest
from toolchain import build

from diopi_proto.headers import INCLUDE_DIR
from diopi_test.device_runtime.run import RuntimeOutcome, run_cases
from diopi_test.device_runtime.worker import start
from diopi_test.execution.verdict import Verdict
from lib_rt.device_runtime import find_device_runtime
from lib_rt.device_runtime_client import NoDeviceRuntimeError, RuntimeCallError

CASES = ["the_number_of_devices_and_the_versions_are_positive", "a_device_can_be_made_the_current_one"]

SOURCE = """
#include <dipu/device_runtime_c.h>
#include <stdlib.h>
#include <unistd.h>
static const char* text(void) {{ return "out of order"; }}
static int32_t count(int32_t* result) {{ (void)result; {count} }}
static int32_t version(int32_t* result) {{ (void)result; {version} }}
static const dipuDeviceRuntime table = {{
    .size = sizeof table, .version = {number}, .lastErrorText = text,
    .getDeviceCount = count, .getDriverVersion = version, .getRuntimeVersion = version}};
const dipuDeviceRuntime* dipuGetDeviceRuntime(void) {{ return &table; }}
"""
"""A device runtime with three functions."""

WORKING = "*result = 1; return 0;"


def build_library(folder: Path, count: str = WORKING, version: str = WORKING, number: int = 1) -> Path:
    """Build a library whose functions have these bodies."""
    source = folder / "library.c"
    source.write_text(SOURCE.format(count=count, version=version, number=number))
    return build(folder / "library.so", "c", [source], "-shared", "-fPIC", f"-I{INCLUDE_DIR}")


def run_first_case(library: Path, timeout: float = 60.0) -> RuntimeOutcome:
    """Run the case of the number of devices."""
    [outcome] = run_cases(library, CASES[:1], timeout)
    return outcome


def test_a_missing_function_is_not_implemented(tmp_path: Path) -> None:
    first, second = run_cases(build_library(tmp_path), CASES, 60.0)
    assert first.verdict is Verdict.passed
    assert (second.verdict, second.message) == (Verdict.not_implemented, "current_device is missing")


def test_a_crash_is_the_verdict_of_its_case_only(tmp_path: Path) -> None:
    first, second = run_cases(build_library(tmp_path, version="abort();"), CASES, 60.0)
    assert (first.verdict, first.message) == (Verdict.crashed, "the process ended with signal SIGABRT")
    assert second.verdict is Verdict.not_implemented


def test_an_exit_is_a_crash(tmp_path: Path) -> None:
    outcome = run_first_case(build_library(tmp_path, version="_exit(0);"))
    assert (outcome.verdict, outcome.message) == (Verdict.crashed, "the process ended with exit status 0")


def test_a_hang_times_out(tmp_path: Path) -> None:
    outcome = run_first_case(build_library(tmp_path, version="sleep(100); return 0;"), timeout=0.5)
    assert (outcome.verdict, outcome.message) == (Verdict.timed_out, "it took more than 0.5 s")


def test_a_failing_valid_call_fails_with_the_text_of_the_vendor(tmp_path: Path) -> None:
    outcome = run_first_case(build_library(tmp_path, version="return 3;"))
    assert outcome.verdict is Verdict.failed
    assert outcome.message == "a valid call fails: getDriverVersion returned DIPU_EXCEPTION: out of order"


def test_an_unknown_status_is_a_failure(tmp_path: Path) -> None:
    outcome = run_first_case(build_library(tmp_path, version="return 77;"))
    assert outcome.message == "a valid call fails: getDriverVersion returned 77: out of order"


@pytest.mark.parametrize(
    ("count", "number", "message"),
    [
        ("*result = 0; return 0;", 1, "has no device"),
        ("return 3;", 1, "does not start: getDeviceCount returned DIPU_EXCEPTION: out of order"),
        ("_exit(1);", 1, "ends the process"),
        (WORKING, 0, "the table is not one of version 1"),
    ],
)
def test_a_library_that_does_not_start_is_an_error(count: str, number: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(NoDeviceRuntimeError, match=message):
        run_first_case(build_library(tmp_path, count=count, number=number))


def test_a_library_without_a_table_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.c").write_text("int unused;\n")
    library = build(tmp_path / "empty.so", "c", [tmp_path / "empty.c"], "-shared", "-fPIC")
    with pytest.raises(NoDeviceRuntimeError, match="dipuGetDeviceRuntime"):
        run_first_case(library)


def test_a_file_that_is_no_library_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("text")
    with pytest.raises(NoDeviceRuntimeError, match="can't be used"):
        run_first_case(tmp_path / "text.so")


def test_a_call_with_text_and_a_missing_function_are_converted() -> None:
    bench = start(find_device_runtime())
    assert not bench.client.has("enableProfiler")
    with pytest.raises(RuntimeCallError, match="memCopyD2H: 3 bytes do not lie in an allocation of device memory"):
        bench.call("memCopyD2H", 3, 1, 1)
