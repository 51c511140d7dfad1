"""`diopi-test run --family device-runtime` and `--family collectives`: cases, verdicts, reports and wrong usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from toolchain import build

from diopi_proto.headers import INCLUDE_DIR
from diopi_test.cli import main
from diopi_test.collectives.all_cases import CASES as COLLECTIVE_CASES
from diopi_test.collectives.all_cases import LARGE_CASES
from diopi_test.device_runtime.all_cases import CASES
from lib_rt.device_runtime import find_device_runtime

DEVICES = "devices_and_the_versions or made_the_current"
"""An expression that selects two cases."""

EMPTY = """
#include <dipu/device_runtime_c.h>
static int32_t get_number(int32_t* result) { *result = 1; return 0; }
static int32_t get_version(int32_t* result) { *result = VERSION; return 0; }
static const dipuDeviceRuntime table = {
    .size = sizeof table, .version = 1, .getDeviceCount = get_number,
    .getDriverVersion = get_version, .getRuntimeVersion = get_version};
const dipuDeviceRuntime* dipuGetDeviceRuntime(void) { return &table; }
"""
"""A device runtime with three functions."""


def run(*words: object, family: str = "device-runtime") -> Result:
    """Run the command with further words."""
    return CliRunner().invoke(main, ["run", "--family", family, *map(str, words)])


def build_library(folder: Path, version: int) -> Path:
    """Build a library that reports this version and lacks most functions."""
    (folder / "library.c").write_text(EMPTY)
    options = ["-shared", "-fPIC", f"-I{INCLUDE_DIR}", f"-DVERSION={version}"]
    return build(folder / "library.so", "c", [folder / "library.c"], *options)


def test_the_reference_is_tested_by_default(tmp_path: Path) -> None:
    done = run("-k", DEVICES, "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("2 cases in ") and done.output.endswith(": 2 passed\n")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["library"] == str(find_device_runtime())
    assert [case["verdict"] for case in report["cases"]] == ["passed", "passed"]


def test_a_missing_function_does_not_fail_the_run(tmp_path: Path) -> None:
    done = run("--vendor", build_library(tmp_path, 1), "-k", DEVICES)
    assert done.exit_code == 0, done.output
    assert "not_implemented  a_device_can_be_made_the_current_one: current_device is missing\n" in done.output
    assert done.output.endswith(": 1 passed, 1 not_implemented\n")


def test_a_failed_case_fails_the_run(tmp_path: Path) -> None:
    done = run("--vendor", build_library(tmp_path, 0), "-k", DEVICES)
    assert done.exit_code == 1
    assert "getDriverVersion: 0, expected a positive number\n" in done.output


def test_a_run_in_which_nothing_passes_has_status_3(tmp_path: Path) -> None:
    assert run("--vendor", build_library(tmp_path, 1), "-k", "made_the_current").exit_code == 3
    assert run("-k", "no_such_case").exit_code == 3


def test_list_prints_the_cases() -> None:
    lines = run("--list").output.splitlines()
    assert lines == [*CASES, f"{len(CASES)} cases"]
    assert run("--list", "-k", "made_the_current").output == "a_device_can_be_made_the_current_one\n1 case\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--family", "conv"], "--family device-runtime can't be combined with other families"),
        (["--level", "full"], "--level does not apply to --family device-runtime"),
        (["--strict"], "--strict does not apply to --family device-runtime"),
        (["--ranks", "2"], "--ranks does not apply to --family device-runtime"),
        (["--vendor", "jax_cpu"], "--vendor is jax_cpu; --family device-runtime expects the path of a library"),
        (["-k", "and"], "and"),
    ],
)
def test_wrong_usage_is_rejected(words: list[str], message: str) -> None:
    done = run(*words)
    assert (done.exit_code, message in done.output) == (2, True), done.output


def test_a_library_without_a_table_has_status_3(tmp_path: Path) -> None:
    (tmp_path / "empty.c").write_text("int unused;\n")
    library = build(tmp_path / "empty.so", "c", [tmp_path / "empty.c"], "-shared", "-fPIC")
    done = run("--vendor", library)
    assert done.exit_code == 3
    assert "dipuGetDeviceRuntime" in done.output


def test_collectives_run_with_the_number_of_ranks(tmp_path: Path) -> None:
    done = run("--ranks", 2, "-k", "unique_ids", "--json", tmp_path / "report.json", family="collectives")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("1 case in ") and done.output.endswith(": 1 passed\n")
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["family"], report["ranks"]) == ("collectives", 2)
    assert report["cases"] == [{"case": "unique_ids_differ", "verdict": "passed", "message": ""}]


def test_large_cases_of_collectives_belong_to_level_full() -> None:
    all_ids = run("--list", "--level", "full", family="collectives").output.splitlines()
    assert all_ids == [*COLLECTIVE_CASES, f"{len(COLLECTIVE_CASES)} cases"]
    assert set(all_ids[:-1]) - set(run("--list", family="collectives").output.splitlines()) == LARGE_CASES


def test_a_library_without_collectives_has_status_3(tmp_path: Path) -> None:
    done = run("--vendor", build_library(tmp_path, 1), "--ranks", 1, family="collectives")
    assert done.exit_code == 3
    assert "dipuGetCollectives" in done.output


def test_ranks_apply_only_to_collectives() -> None:
    done = CliRunner().invoke(main, ["run", "--ranks", "2", "-k", "no_such_case"])
    assert (done.exit_code, "--ranks applies only to --family collectives" in done.output) == (2, True)
