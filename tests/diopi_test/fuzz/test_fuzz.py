"""The fuzzer finds defects that no stored case detects, and writes minimized calls. A seed repeats a search."""

from __future__ import annotations

import importlib
import math
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import narrow
import pytest
from click.testing import CliRunner, Result

from diopi_test.baseline.level import open_level
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.cli import main
from diopi_test.fuzz.changes.sizes import EDGES, MAX_GROWN_ELEMENTS
from diopi_test.oracle.records import BaselineCase, tensors_in

FUNCTION = "diopiNeg"
HELPERS = Path(narrow.__file__).parent
WORDS = ("--function", FUNCTION, "--rounds", 3, "--seed", 3)
RANK_SIX_WORDS = (*WORDS[:-1], 1)
"""The words of a search that finds a failure of tensors of rank six; one of 20 calls of the function has this rank."""


@pytest.fixture(scope="module", autouse=True)
def small_calls() -> Iterator[None]:
    """Let the searches draw calls of at most 2^16 instead of 2^22 elements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diopi_test.fuzz.changes.sizes.MAX_GROWN_ELEMENTS", 2**16)
        yield


def fuzz(vendor: str, folder: Path, *words: object) -> Result:
    """Fuzz a faulty vendor and write the minimized failures to a folder."""
    command = ("fuzz", "--vendor", f"narrow:{vendor}", "--output", folder, *(words or WORDS))
    return CliRunner().invoke(main, [str(word) for word in command])


@pytest.fixture(scope="module")
def rank_six_findings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the minimized failure of a vendor that is wrong for tensors of rank six."""
    folder = tmp_path_factory.mktemp("findings")
    done = fuzz("of_rank_six", folder, *RANK_SIX_WORDS)
    assert done.exit_code == 1, done.output
    return folder


@pytest.fixture(scope="module")
def beyond(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """Return the result of a search on the vendor that is wrong for large tensors, and the folder with its findings."""
    folder = tmp_path_factory.mktemp("beyond")
    return fuzz("beyond", folder), folder


def read_failures(folder: Path) -> list[BaselineCase]:
    """Return the minimized failures in a folder."""
    return list(open_level(folder / "smoke").open(FUNCTION))


def shapes(case: BaselineCase) -> list[tuple[int, ...]]:
    """Return the shapes of all tensor arguments of a case."""
    return [tensor.values.shape for value in case.arguments.values() for tensor in tensors_in(value)]


def test_a_correct_vendor_has_no_findings(tmp_path: Path) -> None:
    done = fuzz("correct", tmp_path / "found")
    assert done.exit_code == 0, done.output
    assert " calls generated for 1 function, " in done.output
    assert "0 findings; repeat with --seed 3" in done.output
    assert not (tmp_path / "found").exists()


def assert_is_minimal(done: Result, folder: Path) -> None:
    """Assert that a search on the vendor `beyond` has minimized its finding."""
    assert done.exit_code == 1, done.output
    assert shapes(read_failures(folder)[0]) == [(narrow.MAX_ELEMENTS + 1,)]
    assert done.output.splitlines()[-1] == f"diopi-test run --vendor narrow:beyond --data {folder}"


def test_a_failure_of_large_tensors_is_shrunk_to_the_smallest_size(beyond: tuple[Result, Path]) -> None:
    stored = [
        spec.shape
        for case in select_cases(FUNCTION, "full")
        for v in case.arguments.values()
        for spec in TensorSpec.all_in(v)
    ]
    assert max(map(math.prod, stored)) <= narrow.MAX_ELEMENTS  # no stored case shows it
    assert_is_minimal(*beyond)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 8])  # found in tensors of 5 and of 3 axes, with seed 3 in one of 1 axis
def test_a_failure_of_large_tensors_of_several_axes_is_shrunk(seed: int, tmp_path: Path) -> None:
    assert_is_minimal(fuzz("beyond", tmp_path, *WORDS[:-1], seed), tmp_path)


def test_a_failure_of_one_rank_is_shrunk_to_one_element(rank_six_findings: Path) -> None:
    assert shapes(read_failures(rank_six_findings)[0]) == [(1,) * 6]


@pytest.mark.slow
def test_a_failure_after_another_call_is_shrunk_to_two_calls(tmp_path: Path) -> None:
    done = fuzz("forgetful", tmp_path, *WORDS[:-1], 6)
    assert done.exit_code == 1, done.output
    first, second = read_failures(tmp_path)
    assert "after 1 other call:" in done.output
    assert shapes(first) == shapes(second)
    assert first.dtype is not second.dtype
    assert math.prod(shapes(second)[0]) == 1
    assert CliRunner().invoke(main, command_that_runs("forgetful", tmp_path)).exit_code == 1  # shows it again


@pytest.mark.slow
def test_the_search_continues_after_a_crash(tmp_path: Path) -> None:
    done = fuzz("aborting", tmp_path, *WORDS[:2], "--function", "diopiAbs", *WORDS[2:])
    assert done.exit_code == 1, done.output
    assert set(open_level(tmp_path / "smoke").functions) == {"diopiNeg", "diopiAbs"}
    assert 0 in shapes(read_failures(tmp_path)[0])[0]
    assert "crashed" in done.output


@pytest.mark.exhaustive  # each search makes many calls
@pytest.mark.parametrize(
    ("vendor", "label"), [("sharing", "aliased-other-is-input"), ("scratch", "in-flight-two-streams")]
)
def test_calls_that_share_memory_or_are_in_flight_are_found(vendor: str, label: str, tmp_path: Path) -> None:
    words = ("--function", "diopiMul", "--seed", 1, "--rounds", 8)
    done = fuzz(vendor, tmp_path, *words)
    assert done.exit_code == 1, done.output
    assert f"diopiMul[{label}], from " in done.output
    listed = {case.label: case for case in open_level(tmp_path / "smoke").cases("diopiMul")}
    assert listed[label].base in listed
    repeated = ["run", "--vendor", f"narrow:{vendor}", "--data", str(tmp_path), "--case", f"diopiMul[{label}]", "-n1"]
    assert CliRunner().invoke(main, repeated).exit_code == 1


def test_known_failures_are_no_findings(rank_six_findings: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = ["run", "--vendor", "narrow:of_rank_six", "--data", rank_six_findings, "--json", report, "-n", 1]
    assert CliRunner().invoke(main, [str(word) for word in words]).exit_code == 1
    done = fuzz("of_rank_six", tmp_path / "second", *RANK_SIX_WORDS, "--failed-in", report)
    assert done.exit_code in (0, 3), done.output  # the search skips the function in its first rounds
    assert not (tmp_path / "second").exists()


def test_a_report_of_known_failures_must_be_a_report(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("[]", "utf-8")
    done = fuzz("correct", tmp_path / "found", *WORDS, "--failed-in", tmp_path / "report.json")
    assert done.exit_code == 2
    assert "is no report" in done.output


def test_long_sizes_are_near_powers_of_two_and_the_largest_grid() -> None:
    assert {65_534, 65_535, 65_536, 65_537, 2**20 - 1, 2**20 + 1, 2**22} <= {*EDGES}
    assert max(size for size in EDGES if size <= MAX_GROWN_ELEMENTS) == 2**22


def command_that_runs(vendor: str, folder: Path) -> list[str]:
    """Return the words of the command that runs the failures of a folder."""
    words = ["run", "--vendor", f"narrow:{vendor}", "--data", folder, "--function", FUNCTION, "-n", 1]
    return [str(word) for word in words]


def test_a_finding_can_be_run_and_shown_like_a_case(rank_six_findings: Path) -> None:
    run_result = CliRunner().invoke(main, command_that_runs("of_rank_six", rank_six_findings))
    assert run_result.exit_code == 1, run_result.output
    assert CliRunner().invoke(main, command_that_runs("correct", rank_six_findings)).exit_code == 0
    result = CliRunner().invoke(main, ["show", "fuzz-1", "--data", str(rank_six_findings)])
    assert result.exit_code == 0, result.output
    assert "(1, 1, 1, 1, 1, 1)" in result.output


@pytest.mark.slow
def test_a_seed_repeats_the_search(
    beyond: tuple[Result, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, first_folder = beyond
    (tmp_path / "numbers_of_the_user.py").write_text(f"NUMBERS = [{', '.join(map(str, range(1000, 1300)))}]\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("numbers_of_the_user")  # Hypothesis takes numbers from modules such as this one
    second = fuzz("beyond", tmp_path)
    assert first.output.replace(str(first_folder), "") == second.output.replace(str(tmp_path), "")
    first_case, second_case = (read_failures(folder)[0] for folder in (first_folder, tmp_path))
    assert first_case.label == second_case.label
    assert [a.tobytes() for a in arrays(first_case)] == [b.tobytes() for b in arrays(second_case)]


def arrays(case: BaselineCase) -> list[Any]:
    """Return the values of all tensor arguments of a case."""
    return [tensor.values for value in case.arguments.values() for tensor in tensors_in(value)]


@pytest.mark.slow
def test_waived_calls_are_not_findings(tmp_path: Path) -> None:
    file = tmp_path / "waivers.toml"
    file.write_text(f'[[waiver]]\npattern = "{FUNCTION}[*"\nreason = "known"\n', "utf-8")
    done = fuzz("beyond", tmp_path / "found", *WORDS, "--waivers", file)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--minutes", 0, "--function", FUNCTION], 3, "no call was run"),
        (["--vendor", "narrow:missing", "--function", FUNCTION], 2, "missing"),
        (["--function", "diopiNothing"], 2, "diopiNothing"),
    ],
)
def test_a_search_without_calls_does_not_succeed(
    words: list[object], status: int, message: str, tmp_path: Path
) -> None:
    done = fuzz("correct", tmp_path, *words)
    assert done.exit_code == status, done.output
    assert message in done.output


def test_findings_of_an_earlier_search_are_not_overwritten(rank_six_findings: Path) -> None:
    done = fuzz("of_rank_six", rank_six_findings, *RANK_SIX_WORDS)
    assert done.exit_code == 2
    assert "name another folder with --output" in done.output


@pytest.mark.slow
def test_an_interrupted_search_reports_its_findings(tmp_path: Path) -> None:
    words = ["diopi-test", "fuzz", "--vendor", "narrow:of_rank_six", "--output", str(tmp_path), "--seed", "3"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])}
    with Popen([*words, "--function", FUNCTION, "--minutes", "9"], stdout=PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "fuzz-1]" in line:
                break
        time.sleep(0.1)
        process.terminate()  # SIGINT is ignored where the tests are run in the background of a shell
        remaining_output = process.stdout.read()
        assert process.wait(60) == 1, remaining_output
    assert re.search(r"\d+ findings?; repeat with --seed 3", remaining_output)
    assert "interrupted by SIGTERM" in remaining_output
    assert read_failures(tmp_path)


def test_a_missing_hypothesis_package_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = importlib.import_module("diopi_test.cli.fuzz")  # the package has the command itself under this name
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    done = fuzz("correct", tmp_path)
    assert done.exit_code == 2
    assert "pip install 'diopi[fuzz]'" in done.output


def test_an_error_in_the_fuzzer_is_not_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("out of ideas")

    monkeypatch.setattr("diopi_test.fuzz.search.compute_legal_case", broken)
    done = fuzz("correct", tmp_path)
    assert done.exit_code == 3
    assert "out of ideas" in done.output


def test_the_search_ends_early_if_the_vendor_implements_nothing(tmp_path: Path) -> None:
    words = ("fuzz", "--vendor", "small_vendor:vendor", *WORDS, "--statistics", "--output", str(tmp_path / "found"))
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert "not_implemented" in done.output.replace("\n", "")
