"""Runs of faulty libraries: each case has a verdict, whatever the ranks do."""

from __future__ import annotations

from pathlib import Path

import pytest
from toolchain import build

from diopi_proto.headers import INCLUDE_DIR
from diopi_test.collectives.run import run_collective_cases
from diopi_test.device_runtime.run import RuntimeOutcome
from diopi_test.execution.verdict import Verdict
from lib_rt.device_runtime import find_device_runtime
from lib_rt.device_runtime_client import NoDeviceRuntimeError

CASE = "unique_ids_differ"

SOURCE = """
#include <dipu/collectives_c.h>
#include <stdlib.h>
#include <unistd.h>
static const char* last_error_text(void) {{ return "out of order"; }}
static int32_t get_device_count(int32_t* result) {{ *result = 1; return 0; }}
static int32_t set_device(int32_t device) {{ (void)device; return 0; }}
static int32_t get_unique_id(void* unique_id) {{ (void)unique_id; {statements} }}
static const dipuDeviceRuntime runtime = {{
    .size = sizeof runtime, .version = 1, .lastErrorText = last_error_text,
    .getDeviceCount = get_device_count, .setDevice = set_device}};
static const dipuCollectives collectives = {{
    .size = sizeof collectives, .version = {version}, .lastErrorText = last_error_text, .uniqueIdBytes = 8,
    .diclGetUniqueId = {entry}}};
const dipuDeviceRuntime* dipuGetDeviceRuntime(void) {{ return &runtime; }}
const dipuCollectives* dipuGetCollectives(void) {{ return &collectives; }}
"""
"""The C source of a library whose collectives consist of diclGetUniqueId.

The fields are the statements of the function, the entry of the table (0 if the function is missing), and the version of
the table.
"""


def build_library(folder: Path, statements: str = "return 0;", entry: str = "get_unique_id", version: int = 1) -> Path:
    """Build the library with these fields of `SOURCE`, and return its path."""
    source = folder / "library.c"
    source.write_text(SOURCE.format(statements=statements, entry=entry, version=version))
    options = ["-shared", "-fPIC", f"-I{INCLUDE_DIR}", "-Wno-unused-function"]
    return build(folder / "library.so", "c", [source], *options)


def run_case(library: Path, timeout: float = 60.0) -> RuntimeOutcome:
    """Run the case of unique ids on two ranks."""
    [outcome] = run_collective_cases(library, [CASE], 2, timeout)
    return outcome


@pytest.mark.parametrize(
    ("statements", "verdict", "message"),
    [
        ("return 0;", Verdict.failed, "the number of distinct ids among 8: 1, expected 8"),
        ("return 0x1000;", Verdict.failed, "a valid call fails: diclGetUniqueId returned DICL_ERR_UNDEF: out of order"),
        ("return 77;", Verdict.failed, "a valid call fails: diclGetUniqueId returned 77: out of order"),
        ("abort();", Verdict.crashed, "the process ended with signal SIGABRT"),
        ("_exit(0);", Verdict.crashed, "the process ended with exit status 0"),
    ],
)
def test_a_faulty_library_has_a_verdict(statements: str, verdict: Verdict, message: str, tmp_path: Path) -> None:
    outcome = run_case(build_library(tmp_path, statements))
    assert (outcome.verdict, outcome.message) == (verdict, f"rank 0: {message}")


def test_a_hang_of_a_rank_times_out(tmp_path: Path) -> None:
    outcome = run_case(build_library(tmp_path, "sleep(100); return 0;"), timeout=0.5)
    assert (outcome.verdict, outcome.message) == (Verdict.timed_out, "rank 0: it took more than 0.5 s")


def test_a_missing_collective_is_not_implemented(tmp_path: Path) -> None:
    outcome = run_case(build_library(tmp_path, entry="0"))
    assert (outcome.verdict, outcome.message) == (Verdict.not_implemented, "rank 0: diclGetUniqueId is missing")


def test_a_table_of_another_version_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoDeviceRuntimeError, match="the table is not one of version 1 of the collectives"):
        run_case(build_library(tmp_path, version=0))


def test_a_library_without_collectives_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "library.c").write_text(
        SOURCE.format(statements="return 0;", entry="get_unique_id", version=1).replace(
            "dipuGetCollectives", "other_name"
        )
    )
    options = ["-shared", "-fPIC", f"-I{INCLUDE_DIR}", "-Wno-missing-prototypes"]
    library = build(tmp_path / "library.so", "c", [tmp_path / "library.c"], *options)
    with pytest.raises(NoDeviceRuntimeError, match="dipuGetCollectives"):
        run_case(library)


def test_the_case_after_a_rank_has_ended_gets_new_processes() -> None:
    cases = ["survivors_can_create_a_communicator", CASE]
    outcomes = list(run_collective_cases(find_device_runtime(), cases, 2, 60.0))
    assert [outcome.verdict for outcome in outcomes] == [Verdict.passed] * 2
