"""Whole runs with `diopi-test run`, on correct and faulty vendors."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from baselines import make_level
from commands import run_here
from reports import read_report

STUB_VENDOR = "diopi_test.quality.stub_vendor:vendor"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a level of two functions."""
    folder = tmp_path_factory.mktemp("baseline")
    make_level(folder / "smoke", "diopiSqrt", "diopiNeg")
    return folder


def run(data: Path, vendor: str, tmp_path: Path, *more: object) -> tuple[int, dict[str, Any]]:
    """Run the suite with two workers and return its exit status and JSON report."""
    report = tmp_path / "report.json"
    done = run_here("run", "--data", data, "--vendor", vendor, "--json", report, "-n", 2, *more)
    assert report.exists(), done.stdout + done.stderr
    return done.returncode, read_report(report)


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    """Return the verdicts of a report by case ID."""
    return {case["id"]: case["verdict"] for case in report["cases"]}


def test_a_correct_vendor_passes(data: Path, tmp_path: Path) -> None:
    status, report = run(data, STUB_VENDOR, tmp_path)
    assert status == 0
    assert report["vendor"] == {"name": "stub", "version": "1", "receives_cases": True}
    assert report["proto_version"] == "1.0.0"
    assert report["baseline"]["level"] == "smoke"
    assert len(report["baseline"]["digest"]) == 64
    summary = report["summary"]
    assert summary["total"] == summary["passed"] == summary["collected"] == len(report["cases"]) > 20
    assert (summary["incomplete"], summary["not_run"], report["shuffle"]) == (False, 0, None)
    case = next(case for case in report["cases"] if case["id"] == "diopiSqrt[float32-matrix]")
    assert (case["function"], case["dtype"]) == ("diopiSqrt", "float32")
    assert {check["check"] for check in case["checks"]} >= {"values", "inputs", "guards"}


def test_the_command_of_a_case_repeats_only_that_case(data: Path, tmp_path: Path) -> None:
    _, report = run(data, STUB_VENDOR, tmp_path)
    command = next(case["command"] for case in report["cases"] if case["id"] == "diopiSqrt[float32-matrix]")
    import shlex

    words = shlex.split(command)
    assert words[:2] == ["diopi-test", "run"]
    second_report = tmp_path / "again.json"
    assert run_here(*words[1:], "--json", second_report).returncode == 0
    assert list(verdicts(read_report(second_report))) == ["diopiSqrt[float32-matrix]"]


def test_every_case_that_crashes_is_reported(data: Path, tmp_path: Path) -> None:
    status, report = run(data, "faulty:crashing", tmp_path, "-k", "diopiSqrt[float32-matrix] or diopiNeg[int8-matrix]")
    assert status == 1
    assert verdicts(report) == {"diopiNeg[int8-matrix]": "crashed", "diopiSqrt[float32-matrix]": "crashed"}
    classes = report["summary"]["classes"]
    assert report["summary"]["crashed"] == classes["basic"]["crashed"] + classes["types"]["crashed"] == 2
    facts = {(case["function"], case["dtype"], case["class"]) for case in report["cases"]}
    assert facts == {("diopiNeg", "int8", "types"), ("diopiSqrt", "float32", "basic")}


NEGATIVE_SQRT_CASES = {
    f"diopiSqrt[negative-{change}]" for change in ("out-null", "input-null", "input-dtype", "out-shape", "out-dtype")
}


def test_negative_cases_are_separate_items(data: Path, tmp_path: Path) -> None:
    status, report = run(data, STUB_VENDOR, tmp_path, "-k", "diopiSqrt[negative")
    assert status == 0
    assert set(verdicts(report)) == NEGATIVE_SQRT_CASES
    case = report["cases"][0]
    assert (case["function"], case["dtype"], case["verdict"]) == ("diopiSqrt", "", "passed")
    assert [check["check"] for check in case["checks"]] == ["refused", "untouched", "inputs", "guards"]
    _, report = run(data, STUB_VENDOR, tmp_path, "-k", "diopiSqrt[negative-out-shape]")
    assert list(verdicts(report)) == ["diopiSqrt[negative-out-shape]"]


def test_cases_with_ignored_arguments_are_separate_items(tmp_path: Path) -> None:
    make_level(tmp_path / "smoke", "diopiLayerNormBackward")
    status, report = run(tmp_path, STUB_VENDOR, tmp_path, "-k", "diopiLayerNormBackward[callers")
    assert status == 0
    changes = ("null", "dtype", "shape")
    assert set(verdicts(report)) == {f"diopiLayerNormBackward[callers-bias-{change}]" for change in changes}
    assert {(case["dtype"], case["class"], case["verdict"]) for case in report["cases"]} == {
        ("float32", "callers", "passed")
    }
    _, report = run(tmp_path, STUB_VENDOR, tmp_path, "-k", "diopiLayerNormBackward[callers-bias-dtype]")
    assert list(verdicts(report)) == ["diopiLayerNormBackward[callers-bias-dtype]"]


def test_negative_cases_are_in_both_levels(tmp_path: Path) -> None:
    make_level(tmp_path / "full", "diopiSqrt")
    _, report = run(tmp_path, STUB_VENDOR, tmp_path, "--level", "full", "-k", "diopiSqrt[negative")
    assert set(verdicts(report)) == NEGATIVE_SQRT_CASES


def test_a_crash_on_null_affects_only_its_case(data: Path, tmp_path: Path) -> None:
    status, report = run(data, "negative_test_vendors:crashing", tmp_path, "-k", "diopiSqrt[negative", "--strict")
    assert status == 1
    crashed = {"diopiSqrt[negative-out-null]", "diopiSqrt[negative-input-null]"}
    assert {case for case, verdict in verdicts(report).items() if verdict == "crashed"} == crashed
    assert {case for case, verdict in verdicts(report).items() if verdict == "passed"} == NEGATIVE_SQRT_CASES - crashed
    assert {(case["dtype"], case["class"]) for case in report["cases"]} == {("", "negative")}
    assert report["summary"]["classes"]["negative"]["crashed"] == 2
    assert report["strict"]

    status, report = run(
        data, "negative_test_vendors:crashing", tmp_path, "-k", "diopiSqrt[negative", "--max-crashes", 1
    )
    assert (status, report["summary"]["incomplete"]) == (0, False), "negative tests do not decide without --strict"
    assert report["summary"]["classes"]["negative"]["crashed"] == 1
    assert {case.partition("[")[2][:8] for case in report["summary"]["first_not_run"]} == {"negative"}


def test_accepting_a_negative_case_fails_with_the_reason(data: Path) -> None:
    trusting = (
        "run",
        "--data",
        data,
        "--vendor",
        "negative_test_vendors:trusting",
        "-k",
        "diopiSqrt[negative-out-shape",
    )
    done = run_here(*trusting)
    assert done.returncode == 0
    assert "negative tests: 0 of 1 invalid calls rejected\n" in done.stdout
    done = run_here(*trusting, "--strict")
    assert done.returncode == 1
    assert "failed diopiSqrt[negative-out-shape]" in done.stdout
    assert "refused: Success was returned although out has shape (7, 6) instead of (7, 5)" in done.stdout


def test_a_case_that_hangs_has_timed_out(data: Path, tmp_path: Path) -> None:
    status, report = run(data, "faulty:hanging", tmp_path, "-k", "diopiSqrt[float32-matrix]", "--timeout", 2)
    assert status == 1
    assert verdicts(report) == {"diopiSqrt[float32-matrix]": "timed_out"}


def test_failures_are_shown_with_their_reason(data: Path) -> None:
    done = run_here("run", "--data", data, "--vendor", "faulty:failing", "-k", "diopiSqrt[float32-matrix]")
    assert done.returncode == 1
    assert "failed diopiSqrt[float32-matrix]" in done.stdout
    assert "ErrorOccurred: corrupted" in done.stdout
    assert "1 failed" in done.stdout


def test_not_implemented_is_not_passed(data: Path, tmp_path: Path) -> None:
    status, report = run(data, "faulty:declining", tmp_path, "-k", "diopiSqrt")
    assert status == 3
    assert set(verdicts(report).values()) == {"not_implemented"}


def test_an_empty_selection_is_an_error(data: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = run_here("run", "--data", data, "--vendor", STUB_VENDOR, "-k", "nothing", "--json", report)
    assert done.returncode == 3
    assert "no case matches -k 'nothing'" in done.stdout
    summary = read_report(report)["summary"]
    assert (summary["collected"], summary["incomplete"]) == (0, True)
    assert "'nothing'" in summary["reason"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["run", "--vendor", "nobody"], 2, "'nobody' is not one of"),
        (["run", "--vendor", "no.module:vendor"], 2, "module no.module can't be imported"),
        (["run", "--vendor", "faulty:missing"], 2, "has no attribute 'missing'"),
        (["run", "--vendor", "faulty:HostRuntime"], 2, "expected a diopi_impl.Vendor"),
        (["run", "--level", "huge"], 2, "'huge' is not one of 'smoke', 'full'"),
        (["run", "--json", "/nowhere/report.json"], 2, "folder /nowhere does not exist"),
        (["mutation-test", "--choose", "/nowhere/selection.json"], 2, "folder /nowhere does not exist"),
        (["fingerprint", "--json", "/nowhere/one.json"], 2, "folder /nowhere does not exist"),
        (["run", "-k", "not not ("], 2, "-k 'not not ('"),
        (["run", "--shuffle", "soon"], 2, "seed is 'soon', expected an integer or 'random'"),
        (["run", "--sample", "3"], 2, "--sample goes with --shuffle"),
        (["run", "--data", "/nowhere"], 3, "there is no baseline in /nowhere/smoke"),
        (["gen-data", "-k", "diopiNothing"], 2, "matches none of"),
        (["gen-data", "-k", "not not ("], 2, "-k 'not not ('"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_invalid_options_are_named(arguments: list[str], status: int, message: str) -> None:
    done = run_here(*arguments)
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_baseline_is_unusable(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "smoke"
    shutil.copytree(data / "smoke", folder)
    good = (data / "smoke" / "diopiSqrt.h5").read_bytes()
    (folder / "diopiSqrt.h5").write_bytes(good[: len(good) // 2])
    done = run_here("run", "--data", tmp_path, "--vendor", STUB_VENDOR)
    assert done.returncode == 3
    assert str(folder / "diopiSqrt.h5") in done.stderr


def test_run_uses_a_generated_baseline(tmp_path: Path) -> None:
    assert run_here("gen-data", "--data", tmp_path, "-k", "diopiFloor", "-n", 1).returncode == 0
    names = {path.name for path in (tmp_path / "smoke").iterdir()}
    assert names == {"diopiFloor.h5", "diopiFloorInp.h5", "manifest.json"}
    status, report = run(tmp_path, STUB_VENDOR, tmp_path, "-k", "diopiFloor")
    assert (status, report["summary"]["failed"]) == (0, 0)


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path) -> None:
    """A limit on the size of files simulates a full disk: writing beyond it fails in the same way."""
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "sys.dont_write_bytecode = True;"  # Python would store truncated modules
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        f"from diopi_test.baseline import generate, store; from pathlib import Path; folder = Path({str(tmp_path)!r})\n"
        "try: generate.generate_function('diopiFloor', 'smoke', folder)\n"
        "except store.BaselineError as error: print('refused', error); sys.exit(5)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 5, done.stderr
    assert "diopiFloor.h5 can't be written" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_list_shows_functions_with_their_properties() -> None:
    (sin,) = json.loads(run_here("list", "--json", "--function", "diopiSin").stdout)
    assert (sin["header"], sin["family"], sin["reference"]) == ("functions.h", "pointwise", True)
    assert sin["cases"]["full"] > sin["cases"]["smoke"] >= len(["float16", "bfloat16", "float32", "float64"])
    assert sin["vendors"]["jax_cpu"] is True


@pytest.mark.slow
def test_missing_results_of_a_level_with_generated_inputs_are_computed(tmp_path: Path) -> None:
    vendor, level = STUB_VENDOR, ("--level", "large", "--function", "diopiNeg")
    listed = run_here("run", "--data", tmp_path / "data", "--vendor", vendor, *level, "--list").stdout.split()
    assert not (tmp_path / "data").exists()
    status, report = run(tmp_path / "data", vendor, tmp_path, *level)
    assert status == 0
    assert sorted(verdicts(report)) == sorted(listed[:-2])
    assert [path.name for path in (tmp_path / "data" / "large").glob("*.h5")] == ["diopiNeg.h5"]
    assert {verdict for _, verdict in verdicts(report).items()} == {"passed"}
