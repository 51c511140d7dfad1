"""The options of `diopi-test run` that do more than run cases: lists, resumed logs, `--debug`, plans, dumps."""

import json
import os
from pathlib import Path

import pytest
from baselines import make_level
from click.testing import CliRunner, Result

from diopi_test.baseline.codec import to_json
from diopi_test.cli import main
from diopi_test.results.log import LogRecord, read_log, seal
from diopi_test.run.options import RunOptions

STUB_VENDOR = "diopi_test.quality.stub_vendor:vendor"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a level of one function."""
    return make_level(tmp_path_factory.mktemp("baseline") / "smoke", "diopiSqrt").parent


@pytest.fixture(autouse=True)
def use_temporary_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands store their state in a temporary folder, and print lines of 200 characters."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")


def invoke(data: Path, *words: object) -> Result:
    """Run `diopi-test run` on the stub vendor with further words of the command line."""
    return CliRunner().invoke(main, ["run", "--vendor", STUB_VENDOR, "--data", str(data), "-n", "1", *map(str, words)])


def resume(log: Path, *words: str) -> Result:
    """Resume the run of a log, and return to the current folder."""
    folder = os.getcwd()
    try:
        return CliRunner().invoke(main, ["run", "--resume", str(log), "-n", "1", *words])
    finally:
        os.chdir(folder)


def test_run_list_needs_no_vendor(data: Path) -> None:
    done = invoke(data, "--vendor", "nobody", "--list", "--dtype", "float64")
    lines = done.output.splitlines()
    assert done.exit_code == 0
    assert lines[-1] == f"{len(lines) - 1} cases"
    assert "diopiSqrt[float64-matrix]" in lines


def test_numerics_must_be_declared(data: Path, tmp_path: Path) -> None:
    unknown = invoke(data, "--numerics", "tf33")
    assert unknown.exit_code == 2
    assert "Invalid value for '--numerics': numerics 'tf33' is not one of 'ieee', " in unknown.output
    path = tmp_path / "chip.toml"
    path.write_text("[elementary]\nexp = { relative = 0.5 }")
    wide = invoke(data, "--numerics", path)
    assert wide.exit_code == 2
    assert "elementary.exp.ulp, relative and absolute: the permitted error is 0.5" in wide.output


def test_resume_continues_an_interrupted_run(data: Path, tmp_path: Path) -> None:
    log, report = tmp_path / "run.log", tmp_path / "report.json"
    assert invoke(data, "--log", log).exit_code == 0
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:12]) + lines[12][:20])  # killed in the middle of a line
    finished = sum(entry.kind == "case" for entry in read_log(log))
    done = resume(log, "--json", str(report))
    summary = json.loads(report.read_text())["summary"]
    assert done.exit_code == 0, done.output
    assert summary["total"] == summary["passed"] == summary["collected"] > finished > 0
    kinds = [entry.kind for entry in read_log(log)]
    assert kinds.count("case") == summary["total"]
    assert kinds.count("resumed") == 1


def test_run_does_not_append_to_an_existing_log(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    words = ("--log", log, "--case", "diopiSqrt[float32-matrix]")
    assert invoke(data, *words).exit_code == 0
    before = log.read_bytes()
    done = invoke(data, "--vendor", "faulty:failing", *words)
    assert done.exit_code == 2
    assert "exists; name a new file" in " ".join(done.output.split())
    assert log.read_bytes() == before


def test_a_run_that_cannot_start_leaves_no_log(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    for invalid in (("--vendor", "nobody"), ("--case", "diopiSqrt[float32-matrx]")):
        assert invoke(data, *invalid, "--log", log).exit_code == 2
        assert not log.exists()


def test_resume_continues_a_run_whose_log_has_no_cases(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    words = ("--case", "diopiSqrt[float32-matrix]", "--log", log)
    assert invoke(data, *words).exit_code == 0
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0] + lines[1][:20])
    assert json.loads(lines[1])["kind"] == "due"
    done = resume(log)
    assert done.exit_code == 0, done.output
    assert [entry.kind for entry in read_log(log)][:3] == ["run", "resumed", "due"]


def test_resume_shows_the_command_of_the_log_before_it_runs(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    assert invoke(data, "--case", "diopiSqrt[float32-matrix]", "--log", log).exit_code == 0
    command = json.loads(log.read_bytes().splitlines()[0])["content"]["command"]
    assert resume(log).output.startswith(f"resuming in {os.getcwd()}: {command}\n")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"folder": "/elsewhere"}, "would run this command in /elsewhere: diopi-test run --vendor evil:vendor"),
        (
            {"command": "diopi-test run --vendor evil:vendor --dump /etc"},
            "is not a command that a run writes to its log",
        ),
        (
            {"command": "diopi-test run --vendor evil:vendor --log=/etc/passwd"},
            "is not a command that a run writes to its log",
        ),
        ({"command": "sh -c 'do evil'"}, "is not a command that a run writes to its log"),
        ({"command": "diopi-test"}, "can't be parsed"),
        ({"command": "diopi-test run 'evil"}, "can't be parsed"),
    ],
)
def test_resume_does_not_run_the_command_of_a_foreign_log(
    header: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('evil was done')")
    monkeypatch.syspath_prepend(tmp_path)
    begun = to_json(RunOptions(vendor="evil:vendor").header("")) | header
    log = tmp_path / "run.log"
    log.write_bytes(seal(LogRecord("run", begun)))
    done = resume(log)
    assert done.exit_code == 3
    assert message in " ".join(done.output.split())
    assert "evil was done" not in done.output and "resuming" not in done.output


def test_an_unusable_log_folder_causes_a_single_message(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    done = invoke(data, "--case", "diopiSqrt[float32-matrix]")
    assert done.exit_code == 3
    assert "can't be used for logs" in done.output


def test_run_measures_calls_with_perf(data: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = invoke(data, "--perf", "--dtype", "float32", "--json", report, "--durations", 2)
    assert done.exit_code == 0, done.output
    assert "farthest from memory bandwidth" in done.output
    cases = json.loads(report.read_text())["cases"]
    assert {case["verdict"] for case in cases} == {"passed"}
    timed = [case["timing"] for case in cases if case["class"] != "negative" and not case["base"]]
    assert timed and all(timing["seconds"] > 0 and timing["bytes"] > 0 and timing["bandwidth"] > 0 for timing in timed)
    assert {"--perf" in case["command"] for case in cases} == {True}


def test_resume_rejects_a_log_of_another_baseline(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    assert invoke(data, "--log", log).exit_code == 0
    other_data = make_level(tmp_path / "other" / "smoke", "diopiSqrt", "diopiNeg").parent
    done = invoke(other_data, "--log", log, "--resumed")
    assert done.exit_code == 3
    assert "is of a run on another baseline" in done.output


def test_run_exits_2_for_an_unknown_case(data: Path) -> None:
    done = invoke(data, "--case", "diopiSqrt[float32-matrx]")
    assert done.exit_code == 2
    assert "there is no case diopiSqrt[float32-matrx]" in done.output
    assert "Did you mean 'diopiSqrt[float32-matrix]'" in done.output


@pytest.mark.parametrize(("vendor", "status"), [(STUB_VENDOR, 0), ("faulty:failing", 1)])
def test_debug_runs_a_case_in_this_process(
    data: Path, monkeypatch: pytest.MonkeyPatch, vendor: str, status: int
) -> None:
    monkeypatch.setattr("faulthandler.enable", lambda **_: None)  # pytest has its own
    done = invoke(data, "--vendor", vendor, "--case", "diopiSqrt[float32-matrix]", "--debug")
    assert done.exit_code == status
    assert f"runs in this process, {os.getpid()}" in done.output
    assert invoke(data, "--debug").exit_code == 2


def test_run_performs_the_runs_of_a_plan_in_order(data: Path, tmp_path: Path) -> None:
    plan, report = tmp_path / "plan.toml", tmp_path / "plan.json"
    runs = (("good", STUB_VENDOR), ("bad", "faulty:failing"), ("none", "nobody"))
    tables = [
        f'[[run]]\nname = "{name}"\nvendor = "{vendor}"\ndata = "{data}"\ndtypes = ["float64"]\n'
        for name, vendor in runs
    ]
    plan.write_text("\n".join(tables))
    done = invoke(data, "--plan", plan, "--json", report)
    assert done.exit_code == 3, done.output
    found = json.loads(report.read_text())["runs"]
    assert [run["name"] for run in found] == ["good", "bad", "none"]
    assert found[0]["report"]["summary"]["passed"] > 0
    assert found[1]["report"]["summary"]["failed"] > 0
    assert "'nobody' is not one of" in found[2]["report"]["errors"][0]


def test_run_dumps_failed_cases(data: Path, tmp_path: Path) -> None:
    done = invoke(
        data, "--vendor", "faulty:failing", "--case", "diopiSqrt[float32-matrix]", "--dump", tmp_path / "dump"
    )
    assert done.exit_code == 1
    assert len(list((tmp_path / "dump").glob("*.npz"))) == 1
    done = invoke(
        data, "--vendor", "faulty:crashing", "--case", "diopiSqrt[float64-matrix]", "--dump", tmp_path / "dump"
    )
    assert done.exit_code == 1
    assert len(list((tmp_path / "dump").glob("*.npz"))) == 2


def test_level_soak_selects_the_soak_tests_of_level_full(tmp_path: Path) -> None:
    make_level(tmp_path / "full", "diopiSqrt")
    report = tmp_path / "report.json"
    words = ["run", "--vendor", "jax_cpu", "--level", "soak", "--soak", "300", "--data", str(tmp_path)]
    done = CliRunner().invoke(main, [*words, "-n", "1", "--json", str(report), "--log", str(tmp_path / "log")])
    assert done.exit_code == 0, done.output
    (case,) = json.loads(report.read_text("utf-8"))["cases"]
    assert (case["id"], case["class"], case["verdict"]) == ("diopiSqrt[soak]", "soak", "passed")
    assert "--level full" in case["command"] and "--soak 300" in case["command"]
    assert [check["check"] for check in case["checks"]] == ["soak", "growth", "guards"]


def test_huge_cases_need_a_machine_with_much_memory(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diopi_test.cli.run.HUGE_MEMORY", 2**60)
    result = invoke(data, "--huge")
    assert result.exit_code == 2
    assert "--huge with 1 worker needs 1073741824 GiB of memory" in result.output
    assert invoke(data, "--huge", "--list").exit_code == 0


def test_affected_by_runs_the_functions_that_depend_on_a_changed_one(data: Path) -> None:
    done = invoke(data, "--affected-by", "diopiSqrt", "--case", "diopiSqrt[float32-matrix]")
    assert done.exit_code == 0, done.output
    assert "functions to run (" in done.output
    assert "1 passed" in done.output


def test_affected_by_requires_known_functions(data: Path) -> None:
    unknown = invoke(data, "--affected-by", "diopiSqrd")
    assert unknown.exit_code == 2
    assert "--affected-by: 'diopiSqrd' is not one of the 541 functions. Did you mean 'diopiSqrt'?" in unknown.output


def test_affected_by_and_since_exclude_each_other(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.touch()
    done = invoke(data, "--affected-by", "diopiSqrt", "--since", log)
    assert done.exit_code == 2
    assert "--affected-by and --since exclude each other" in done.output


def test_since_repeats_the_cases_of_a_changed_vendor(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    selected = ("--case", "diopiSqrt[float32-matrix]")
    assert invoke(data, "--log", log, *selected).exit_code == 0
    changed = invoke(data, "--vendor", "faulty:failing", "--since", log, *selected)
    assert changed.exit_code == 1, changed.output
    assert "1 function to run (" in changed.output


def test_since_requires_a_log_of_the_same_level(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    assert invoke(data, "--log", log, "--case", "diopiSqrt[float32-matrix]").exit_code == 0
    make_level(tmp_path / "baseline" / "full", "diopiSqrt")
    other_level = invoke(tmp_path / "baseline", "--level", "full", "--since", log)
    assert other_level.exit_code == 2, other_level.output
    assert "is of level smoke, and this run is of level full: add --level smoke" in other_level.output


def test_since_requires_an_existing_log(data: Path, tmp_path: Path) -> None:
    missing = invoke(data, "--since", tmp_path / "missing.log")
    assert missing.exit_code == 2
    assert "missing.log" in missing.output
