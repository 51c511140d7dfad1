"""The results of a target lead to the same verdicts, messages and checks as a run on this machine."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sanitizers
from hostile import BASELINE
from runners import ROOT, build_runner
from sampling import OPERATORS, SEED, draw_sample, sampled
from target_commands import (
    FUNCTIONS_IN_C,
    Bundles,
    compare_findings,
    diopi_test,
    evaluate,
    run_here,
    run_runner,
    select,
)
from toolchain import VENDORS, build

from diopi_test.target.bundle import CASE, BundleWriter
from diopi_test.target.records import FileKind, read_records
from diopi_test.target.results import TargetResults

SOME_FUNCTIONS = ("diopiAbs", "diopiArgmax", "diopiClipGradNorm", "diopiSort")
"""Functions of the vendor in C with one result, with a list of results, and a function that it lacks."""

FAULTS = (
    *("segfault", "abort", "divide", "stack", "exit0", "exit7", "end0", "kill", "terminate", "close", "loud_abort"),
    *("fail", "long", "bytes", "controls", "wrong", "overrun"),
)
"""Faults of the vendor in C whose effects do not depend on earlier calls."""

FUNCTIONS_PER_PART = 4
"""The number of functions in a part of the smoke level, which one test compares."""


@pytest.mark.parametrize(
    "functions", [SOME_FUNCTIONS, pytest.param(FUNCTIONS_IN_C, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_a_vendor_in_c_gets_the_same_verdicts(
    functions: Sequence[str], runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    verdicts = compare_with_run(functions, runner, c_vendor, tmp_path, bundles)
    assert {"passed", "failed", "not_implemented", "unsupported"} <= verdicts


@pytest.mark.slow
def test_an_exported_vendor_gets_the_same_verdicts(
    runner: Path, exported_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    assert "passed" in compare_with_run(draw_sample(OPERATORS, 4), runner, exported_vendor, tmp_path, bundles)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(0, len(OPERATORS), FUNCTIONS_PER_PART))
def test_every_function_of_a_vendor_in_c_gets_the_same_verdicts(
    start: int, runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    functions = OPERATORS[start : start + FUNCTIONS_PER_PART]
    assert compare_with_run(functions, runner, c_vendor, tmp_path, bundles)


def compare_with_run(
    functions: Sequence[str], runner: Path, vendor: Path, folder: Path, bundles: Bundles
) -> AbstractSet[str]:
    """Assert that a bundle of functions leads to the findings of a run, and return the verdicts that occur.

    Args:
        functions: the names of the functions.
        runner: the path of `diopi-runner`.
        vendor: the path of the vendor's library.
        folder: the folder for the results.
        bundles: returns the path of a bundle with the selected cases.
    """
    selection = select(functions)
    cases, results = bundles(*selection), folder / "results.diopi"
    run_runner(runner, cases, vendor, "-o", results)
    evaluated = evaluate(folder, cases, results)
    run_here(folder, vendor, *selection)
    compare_findings(folder)
    return {case["verdict"] for case in evaluated.values()}


@pytest.mark.parametrize("fault", sampled(FAULTS, 1))
def test_a_faulty_vendor_gets_the_same_verdicts(
    fault: str, runner: Path, faulty_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    selection = [*select(("diopiSin", "diopiCos")), "-k", "float32 and not float16"]
    variables = {"DIOPI_TEST_FAULT": f"diopiSin={fault}", "DIOPI_TEST_FOLDER": str(tmp_path)}
    cases, results = bundles(*selection), tmp_path / "results.diopi"
    run_runner(runner, cases, faulty_vendor, "-o", results, **variables)
    evaluated = evaluate(tmp_path, cases, results)
    run_here(tmp_path, faulty_vendor, *selection, **variables)
    compare_findings(tmp_path)
    assert {case["verdict"] for case in evaluated.values()} >= {"passed"}
    assert {case["verdict"] for case in evaluated.values()} & {"crashed", "failed"}


def test_a_process_that_the_vendor_forks_makes_no_further_calls(
    runner: Path, faulty_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    selection = [*select(("diopiSin", "diopiCos")), "-k", "float32 and not float16"]
    cases, results, expected = bundles(*selection), tmp_path / "results.diopi", tmp_path / "expected.diopi"
    run_runner(runner, cases, faulty_vendor, "-o", expected)
    run_runner(runner, cases, faulty_vendor, "-o", results, DIOPI_TEST_FAULT="diopiSin=fork")
    assert results.read_bytes() == expected.read_bytes()


@pytest.mark.slow
def test_a_call_that_hangs_times_out(runner: Path, faulty_vendor: Path, tmp_path: Path, bundles: Bundles) -> None:
    selection = [*select(("diopiSin", "diopiCos")), "-k", "float32 and not float16"]
    cases, results = bundles(*selection), tmp_path / "results.diopi"
    run_runner(runner, cases, faulty_vendor, "-o", results, "--timeout", "0.5", DIOPI_TEST_FAULT="diopiSin=hang")
    evaluated = evaluate(tmp_path, cases, results)
    verdicts = {case["verdict"] for name, case in evaluated.items() if name.startswith("diopiSin")}
    assert verdicts == {"passed", "timed_out"}
    assert {case["verdict"] for name, case in evaluated.items() if name.startswith("diopiCos")} == {"passed"}


@pytest.mark.slow
def test_a_runner_without_fork_resumes_after_a_crash(
    runner_without_fork: Path, faulty_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    selection = [*select(("diopiSin", "diopiCos")), "-k", "float32 and not float16"]
    cases, results = bundles(*selection), tmp_path / "results.diopi"
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


@pytest.mark.slow
def test_a_runner_continues_results_that_are_cut_off_anywhere(
    runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    cases, results = bundles(*select(("diopiAdd",))), tmp_path / "results.diopi"
    run_runner(runner, cases, c_vendor, "-o", results)
    complete = results.read_bytes()
    keys = TargetResults(results).calls.keys()
    for length in sorted({40, len(complete) - 5, *random.Random(36).sample(range(40, len(complete)), 20)}):
        results.write_bytes(complete[:length])
        run_runner(runner, cases, c_vendor, "-o", results, "--resume")
        continued = TargetResults(results)
        assert (continued.is_complete, continued.calls.keys()) == (True, keys), length


@pytest.mark.parametrize("with_fork", sampled([True, False], 1, slow=1, ids=("fork", "no-fork")))
@pytest.mark.parametrize("count", [6, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_a_runner_that_is_killed_at_random_has_the_same_results(
    count: int,
    with_fork: bool,
    runner: Path,
    runner_without_fork: Path,
    c_vendor: Path,
    tmp_path: Path,
    bundles: Bundles,
) -> None:
    cases, results, complete = bundles(*select(("diopiAdd",))), tmp_path / "results.diopi", tmp_path / "complete.diopi"
    command = [str(runner if with_fork else runner_without_fork), str(cases), str(c_vendor), "-o", str(results)]
    run_runner(runner, cases, c_vendor, "-o", complete)
    chooser, kills, options = random.Random(os.environ[SEED]), 0, []
    while kills < count:
        process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(chooser.uniform(0.001, 0.03))
        process.kill()
        kills += process.wait() != 0
        options = ["--resume"] if process.returncode else []  # from the beginning after it has reached the end
    run_runner(Path(command[0]), *command[1:], *options)
    assert calls_of(results) == calls_of(complete)


def calls_of(results: Path) -> Mapping[bytes, Any]:
    """Return the results of the calls by key, with what was lost."""
    found = TargetResults(results)
    assert found.is_complete
    return {
        key: [(bytes(call.result or b""), call.damage, call.loss) for call in calls]
        for key, calls in found.calls.items()
    }


def test_skip_counts_the_calls_during_which_the_runner_ended_as_crashed(
    runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    cases, results = bundles(*select(("diopiAdd",))), tmp_path / "results.diopi"
    run_runner(runner, cases, c_vendor, "-o", results)
    complete = results.read_bytes()
    results.write_bytes(complete[: complete.index(b"RSLT")])
    assert "add --skip" in run_runner(runner, cases, c_vendor, "-o", results, "--resume")
    assert results.read_bytes() == complete
    results.write_bytes(complete[: complete.index(b"RSLT")])
    run_runner(runner, cases, c_vendor, "-o", results, "--resume", "--skip")
    evaluated = evaluate(tmp_path, cases, results)
    crashed = [case["message"] for case in evaluated.values() if case["verdict"] == "crashed"]
    assert crashed == ["the runner on the target ended during the call"]


def test_results_can_be_streamed(runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles) -> None:
    cases, results = bundles(*select(("diopiAdd",))), tmp_path / "results.diopi"
    with results.open("wb") as stream:
        subprocess.run([str(runner), str(cases), str(c_vendor)], stdout=stream, check=True, timeout=60)
    run_runner(runner, cases, c_vendor, "-o", tmp_path / "written.diopi")
    assert results.read_bytes() == (tmp_path / "written.diopi").read_bytes()


@pytest.mark.slow
def test_cases_that_the_target_did_not_run_have_no_verdict(
    runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    selection = select(("diopiAbs", "runtime"))
    cases, results = bundles(*selection), tmp_path / "results.diopi"
    run_runner(runner, cases, c_vendor, "-o", results)
    content = results.read_bytes()
    results.write_bytes(content[: len(content) // 2])
    evaluated = evaluate(tmp_path, cases, results)
    runtime = {case["message"] for name, case in evaluated.items() if name.startswith("runtime")}
    assert runtime == {"not run on the target: the runner does not make cases of the runtime functions"}
    absent = [case for name, case in evaluated.items() if name.startswith("diopiAbs") and case["verdict"] == "not_run"]
    assert absent
    assert all("did not reach the end" in case["message"] for case in absent)


def test_results_of_another_bundle_are_rejected(runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles) -> None:
    results = tmp_path / "results.diopi"
    run_runner(runner, bundles(*select(("diopiAbs",))), c_vendor, "-o", results)
    output = diopi_test("evaluate", bundles(*select(("diopiAdd",))), results, folder=tmp_path, status=3)
    assert "has the results of another bundle" in " ".join(output.split())


def test_a_bundle_of_another_baseline_is_rejected(
    runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    cases, results = tmp_path / "other.diopi", tmp_path / "results.diopi"
    with BundleWriter(cases, {"level": "smoke", "digest": "0123", "options": select(("diopiAbs",))}) as writer:
        for record in read_records(bundles(*select(("diopiAbs",))), FileKind.cases).records:
            if record.tag == CASE:
                writer.write(bytes(record.payload))
    run_runner(runner, cases, c_vendor, "-o", results)
    output = diopi_test("evaluate", cases, results, "--data", BASELINE, folder=tmp_path, status=3)
    assert "was written from another baseline: the digest of level smoke in the bundle is 0123" in output


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
def test_the_runner_rejects_a_damaged_bundle(
    position: int, runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    content = bytearray(bundles(*select(("diopiAbs",))).read_bytes())
    content[position] ^= 1
    cases = tmp_path / "damaged.diopi"
    cases.write_bytes(content)
    output = run_runner(runner, cases, c_vendor, "-o", tmp_path / "results.diopi", status=3)
    assert "has another checksum" in output


def test_the_runner_names_a_library_that_does_not_load(runner: Path, tmp_path: Path, bundles: Bundles) -> None:
    cases = bundles(*select(("diopiAbs",)))
    output = run_runner(runner, cases, tmp_path / "missing.so", "-o", tmp_path / "results.diopi", status=3)
    assert "missing.so can't be loaded" in output


@pytest.mark.slow
def test_a_runner_can_contain_its_vendor(
    static_runner: Path, runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    cases = bundles(*select(("diopiAbs", "diopiAdd", "diopiCat")))
    for name, words in (("static", (static_runner, cases)), ("loaded", (runner, cases, c_vendor))):
        run_runner(*words, "-o", tmp_path / f"{name}.diopi")
    assert (tmp_path / "static.diopi").read_bytes() == (tmp_path / "loaded.diopi").read_bytes()
    assert run_runner(static_runner, "--version") == "diopi-runner, format 2, files\n"


def test_a_runner_without_files_reads_and_writes_streams(
    bare_runner: Path, runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles
) -> None:
    cases, results, expected = bundles(*select(("diopiAdd",))), tmp_path / "results.diopi", tmp_path / "expected.diopi"
    with cases.open("rb") as source, results.open("wb") as stream:
        subprocess.run([str(bare_runner), "-"], stdin=source, stdout=stream, check=True, timeout=60)
    run_runner(runner, cases, c_vendor, "-o", expected)
    assert results.read_bytes() == expected.read_bytes()
    assert run_runner(bare_runner, "--version") == "diopi-runner, format 2\n"
    assert "expected - for standard input in place of cases.diopi" in run_runner(bare_runner, "cases.diopi", status=3)
    with cases.open("rb") as source:
        done = subprocess.run([str(bare_runner), "-", "-o", "x"], stdin=source, capture_output=True, text=True)
    assert (done.returncode, "leave out -o x" in done.stderr) == (3, True)


def test_every_runner_can_read_a_stream(runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles) -> None:
    cases, results, expected = bundles(*select(("diopiAdd",))), tmp_path / "results.diopi", tmp_path / "expected.diopi"
    run_runner(runner, cases, c_vendor, "-o", expected)
    content = cases.read_bytes()
    subprocess.run([str(runner), "-", str(c_vendor), "-o", str(results)], input=content, check=True, timeout=60)
    assert results.read_bytes() == expected.read_bytes()


OPTIONAL_NAMES = {"fork", "waitpid", "mmap", "fopen", "open", "write", "fstat", "ftruncate", "lseek", "dup", "dup2"}
"""Functions of the C library that a runner without processes and files does not need."""


def test_a_runner_without_optional_features_does_not_refer_to_them(bare_runner: Path) -> None:
    done = subprocess.run(["nm", "--undefined-only", bare_runner], capture_output=True, text=True, check=True)
    names = {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}
    assert "fwrite" in names
    assert not {name for name in names if name.startswith(("pthread_", "dl"))} | names & OPTIONAL_NAMES


@pytest.mark.parametrize(
    "part",
    [
        pytest.param("drawn", marks=pytest.mark.sanitizers),
        pytest.param("all", marks=pytest.mark.exhaustive),
    ],
)
def test_the_runner_and_the_vendor_in_c_have_no_memory_errors(part: str, tmp_path: Path, bundles: Bundles) -> None:
    sanitizers.require(sanitizers.ADDRESS)
    checked = build_runner(tmp_path / "checked", *sanitizers.ADDRESS)
    sources = sorted((VENDORS / "c").glob("*.c"))
    vendor = build(tmp_path / "libdiopi_impl.so", "c", sources, "-O1", *sanitizers.ADDRESS)
    selection = [*select(draw_sample(FUNCTIONS_IN_C, 4)), *select(draw_sample(OPERATORS, 4))]
    cases = bundles(*selection) if part == "drawn" else bundles()
    sanitizers.run([checked, cases, vendor, "-o", tmp_path / "results.diopi", "--in-process"])


def test_the_runner_is_small() -> None:
    sources = [path for path in (ROOT / "runner").iterdir() if path.suffix in (".c", ".h")]
    assert sum(path.read_text("utf-8").count("\n") for path in sources) <= 2500
