"""The results of a target lead to the same verdicts, messages and checks as a run on this machine."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sanitizers
from runners import ROOT, build_runner
from sampling import sampled
from target_commands import FUNCTIONS_IN_C, bundle, diopi_test, evaluate, run_here, run_runner, select

from diopi_test.target.results import TargetResults

COMPARED = ("verdict", "message", "checks", "error_code")
"""The fields of a case that must be equal. Others depend on the machine, such as the duration."""

UNCHECKED_IN_C = ("diopiArgmax", "diopiCat", "diopiNormal", "diopiSort", "diopiSplitWithSizes", "diopiSum")
"""Functions of the vendor in C that use memory outside of their tensors if an axis or a size is invalid."""

FAULTS = ("segfault", "abort", "divide", "exit0", "exit7", "end0", "kill", "fail", "wrong", "overrun")
"""Faults of the vendor in C whose effects do not depend on earlier calls."""


def without_output(message: str) -> str:
    """Return a message without the output of the vendor's process, which a target does not record."""
    return message.partition("; its output: ")[0]


def compare(direct: Mapping[str, Mapping[str, Any]], evaluated: Mapping[str, Mapping[str, Any]]) -> None:
    """Fail if a case has other findings."""
    assert direct.keys() == evaluated.keys()
    for name, case in direct.items():
        found = evaluated[name]
        assert without_output(case["message"]) == found["message"], name
        assert {key: case.get(key) for key in COMPARED if key != "message"} == {
            key: found.get(key) for key in COMPARED if key != "message"
        }, name


def test_a_vendor_in_c_gets_the_same_verdicts(runner: Path, c_vendor: Path, tmp_path: Path) -> None:
    # without invalid calls in which this vendor uses undefined memory, so that no two runs have the same results
    undefined = f"(diopiSpMM and null) or (negative and ({' or '.join(UNCHECKED_IN_C)}))"
    selection = [*select(FUNCTIONS_IN_C), "-k", f"not ({undefined})"]
    cases, results = bundle(tmp_path, *selection), tmp_path / "results.diopi"
    run_runner(runner, cases, c_vendor, "-o", results)
    evaluated = evaluate(tmp_path, cases, results)
    compare(run_here(tmp_path, c_vendor, *selection), evaluated)
    assert {"passed", "failed", "not_implemented", "unsupported"} <= {case["verdict"] for case in evaluated.values()}


@pytest.mark.parametrize("fault", sampled(FAULTS, 3))
def test_a_faulty_vendor_gets_the_same_verdicts(fault: str, runner: Path, faulty_vendor: Path, tmp_path: Path) -> None:
    selection = [*select(("diopiSin", "diopiCos")), "-k", "float32 and not float16"]
    variables = {"DIOPI_TEST_FAULT": f"diopiSin={fault}", "DIOPI_TEST_FOLDER": str(tmp_path)}
    cases, results = bundle(tmp_path, *selection), tmp_path / "results.diopi"
    run_runner(runner, cases, faulty_vendor, "-o", results, **variables)
    evaluated = evaluate(tmp_path, cases, results)
    compare(run_here(tmp_path, faulty_vendor, *selection, **variables), evaluated)
    assert {case["verdict"] for case in evaluated.values()} >= {"passed"}
    assert {case["verdict"] for case in evaluated.values()} & {"crashed", "failed"}


def test_a_call_that_hangs_times_out(runner: Path, faulty_vendor: Path, tmp_path: Path) -> None:
    selection = [*select(("diopiSin", "diopiCos")), "-k", "float32 and not float16"]
    cases, results = bundle(tmp_path, *selection), tmp_path / "results.diopi"
    run_runner(runner, cases, faulty_vendor, "-o", results, "--timeout", "0.5", DIOPI_TEST_FAULT="diopiSin=hang")
    evaluated = evaluate(tmp_path, cases, results)
    verdicts = {case["verdict"] for name, case in evaluated.items() if name.startswith("diopiSin")}
    assert verdicts == {"passed", "timed_out"}
    assert {case["verdict"] for name, case in evaluated.items() if name.startswith("diopiCos")} == {"passed"}


def test_a_runner_without_fork_resumes_after_a_crash(
    runner_without_fork: Path, faulty_vendor: Path, tmp_path: Path
) -> None:
    selection = [*select(("diopiSin", "diopiCos")), "-k", "float32 and not float16"]
    cases, results = bundle(tmp_path, *selection), tmp_path / "results.diopi"
    words, variables = (cases, faulty_vendor, "-o", results), {"DIOPI_TEST_FAULT": "diopiSin=segfault"}
    run_runner(runner_without_fork, *words, status=-11, **variables)
    starts = 1
    while starts < 10 and "is incomplete" in diopi_test("evaluate", cases, results, "--list", folder=tmp_path):
        run_runner(runner_without_fork, *words, "--resume", status=None, **variables)
        starts += 1
    assert starts < 10
    evaluated = evaluate(tmp_path, cases, results)
    verdicts = {case["verdict"] for name, case in evaluated.items() if name.startswith("diopiSin")}
    assert verdicts == {"passed", "crashed"}
    assert {case["verdict"] for name, case in evaluated.items() if name.startswith("diopiCos")} == {"passed"}


def test_a_runner_continues_results_that_are_cut_off_anywhere(runner: Path, c_vendor: Path, tmp_path: Path) -> None:
    cases, results = bundle(tmp_path, *select(("diopiAdd",))), tmp_path / "results.diopi"
    run_runner(runner, cases, c_vendor, "-o", results)
    complete = results.read_bytes()
    keys = TargetResults(results).calls.keys()
    for length in sorted({40, len(complete) - 5, *random.Random(36).sample(range(40, len(complete)), 20)}):
        results.write_bytes(complete[:length])
        run_runner(runner, cases, c_vendor, "-o", results, "--resume")
        continued = TargetResults(results)
        assert (continued.is_complete, continued.calls.keys()) == (True, keys), length


def test_results_can_be_streamed(runner: Path, c_vendor: Path, tmp_path: Path) -> None:
    cases, results = bundle(tmp_path, *select(("diopiAdd",))), tmp_path / "results.diopi"
    with results.open("wb") as stream:
        subprocess.run([str(runner), str(cases), str(c_vendor)], stdout=stream, check=True, timeout=60)
    run_runner(runner, cases, c_vendor, "-o", tmp_path / "written.diopi")
    assert results.read_bytes() == (tmp_path / "written.diopi").read_bytes()


def test_cases_that_the_target_did_not_run_have_no_verdict(runner: Path, c_vendor: Path, tmp_path: Path) -> None:
    selection = select(("diopiAbs", "runtime"))
    cases, results = bundle(tmp_path, *selection), tmp_path / "results.diopi"
    run_runner(runner, cases, c_vendor, "-o", results)
    content = results.read_bytes()
    results.write_bytes(content[: len(content) // 2])
    evaluated = evaluate(tmp_path, cases, results)
    runtime = {case["message"] for name, case in evaluated.items() if name.startswith("runtime")}
    assert runtime == {"not run on the target: the runner does not make cases of the runtime functions"}
    absent = [case for name, case in evaluated.items() if name.startswith("diopiAbs") and case["verdict"] == "not_run"]
    assert absent
    assert all("did not reach the end" in case["message"] for case in absent)


def test_results_of_another_bundle_are_rejected(runner: Path, c_vendor: Path, tmp_path: Path) -> None:
    results = tmp_path / "results.diopi"
    run_runner(runner, bundle(tmp_path, *select(("diopiAbs",))), c_vendor, "-o", results)
    output = diopi_test("evaluate", bundle(tmp_path, *select(("diopiAdd",))), results, folder=tmp_path, status=3)
    assert "has the results of another bundle" in " ".join(output.split())


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"PK\3\4", "it begins otherwise"), (b"\xd1DIOPI\r\n" + b"\2" * 24, "has version 33686018 of the format")],
)
def test_the_runner_rejects_a_foreign_bundle(
    content: bytes, message: str, runner: Path, c_vendor: Path, tmp_path: Path
) -> None:
    path = tmp_path / "foreign.diopi"
    path.write_bytes(content)
    assert message in run_runner(runner, path, c_vendor, status=3)


@pytest.mark.parametrize("position", [-100, -1])
def test_the_runner_rejects_a_damaged_bundle(position: int, runner: Path, c_vendor: Path, tmp_path: Path) -> None:
    cases = bundle(tmp_path, *select(("diopiAbs",)))
    content = bytearray(cases.read_bytes())
    content[position] ^= 1
    cases.write_bytes(content)
    output = run_runner(runner, cases, c_vendor, "-o", tmp_path / "results.diopi", status=3)
    assert "has another checksum" in output


def test_the_runner_names_a_library_that_does_not_load(runner: Path, tmp_path: Path) -> None:
    cases = bundle(tmp_path, *select(("diopiAbs",)))
    output = run_runner(runner, cases, tmp_path / "missing.so", "-o", tmp_path / "results.diopi", status=3)
    assert "missing.so can't be loaded" in output


def test_a_runner_can_contain_its_vendor(
    board_vendor: tuple[Path, Path], runner: Path, c_vendor: Path, tmp_path: Path
) -> None:
    cases = bundle(tmp_path, *select(("diopiAbs", "diopiAdd", "diopiCat")))
    for name, words in (("static", (board_vendor[0], cases)), ("loaded", (runner, cases, c_vendor))):
        run_runner(*words, "-o", tmp_path / f"{name}.diopi")
    assert (tmp_path / "static.diopi").read_bytes() == (tmp_path / "loaded.diopi").read_bytes()


@pytest.mark.sanitizers
def test_the_runner_has_no_memory_errors(c_vendor: Path, tmp_path: Path) -> None:
    sanitizers.require(sanitizers.ADDRESS)
    checked = build_runner(tmp_path / "checked", *sanitizers.ADDRESS)
    # without invalid calls, after some of which this vendor writes beyond its tensors
    cases = bundle(tmp_path, *select(FUNCTIONS_IN_C), "--class", "no-negative")
    sanitizers.run([checked, cases, c_vendor, "-o", tmp_path / "results.diopi", "--in-process"])


def test_the_runner_is_small() -> None:
    sources = [path for path in (ROOT / "runner").iterdir() if path.suffix in (".c", ".h")]
    assert sum(path.read_text("utf-8").count("\n") for path in sources) <= 2500
