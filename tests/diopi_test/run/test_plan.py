"""Plan files: their runs, relative paths, invalid files, and the summary of several runs."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from case_records import case_record, report_of
from rich.console import Console

from diopi_test.baseline.codec import from_json, to_json
from diopi_test.results.records import SCHEMA_VERSION, PlannedReport, PlanReport
from diopi_test.results.report import show_plan
from diopi_test.results.schema import PLAN_FILE
from diopi_test.run.plan import PlannedRun, read_plan
from diopi_test.waivers.tables import TableError


def read_runs(tmp_path: Path, text: str) -> tuple[PlannedRun, ...]:
    """Return the runs of a plan with this text."""
    path = tmp_path / "plan.toml"
    path.write_text(text, "utf-8")
    return read_plan(path)


def test_omitted_keys_have_the_defaults_of_the_command_line(tmp_path: Path) -> None:
    (run,) = read_runs(tmp_path, '[[run]]\nname = "one"\nvendor = "jax_cpu"')
    assert run == PlannedRun(name="one", vendor="jax_cpu")


def test_paths_are_relative_to_the_plan(tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text('[[waiver]]\npattern = "*"\nreason = "it is early"')
    text = '[[run]]\nname = "one"\nvendor = "build/impl.so"\ndata = "/data"\nwaivers = ["w.toml"]\ntimeout = 2'
    (run,) = read_runs(tmp_path, text)
    assert run.vendor == str(tmp_path / "build" / "impl.so")
    (tmp_path / "n.toml").write_text('float64 = "absent"')
    declared = read_runs(tmp_path, f'{text}\nnumerics = "n.toml"\n[[run]]\nname = "b"\nvendor = "v"\nnumerics = "tf32"')
    assert [run.numerics for run in declared] == [str(tmp_path / "n.toml"), "tf32"]
    assert (run.data, run.waivers, run.timeout) == (Path("/data"), (tmp_path / "w.toml",), 2.0)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ('vendor = "jax_cpu"', "[[run]] 1: name is missing"),
        ('name = "a"', "[[run]] 1 (a): vendor is missing"),
        ('name = ""\nvendor = "jax_cpu"', "[[run]] 1: name: expected a name, found ''"),
        ('name = "a"\nvendor = "v"\nlevel = "fool"', "level: expected one of smoke, full, large, models, found 'fool'"),
        ('name = "a"\nvendor = "v"\ntimeout = 0.5', "timeout: expected at least 1 second, found 0.5"),
        ('name = "a"\nvendor = "v"\ntimeout = inf', "timeout: expected at least 1 second, found inf"),
        ('name = "a"\nvendor = "v"\nsample = 3', "sample: expected shuffle as well"),
        ('name = "a"\nvendor = "v"\nshuffle = 1\nsample = 0', "sample: expected at least 1 function, found 0"),
        ('name = "a"\nvendor = "v"\ndtypes = ["no-float16", "half"]', "such as float16 or no-float16, found 'half'"),
        ('name = "a"\nvendor = "v"\nlevels = "full"', "[[run]] 1 (a): key 'levels' is not one of "),
        ('name = "a"\nvendor = "v"\nwaivers = "w.toml"', "waivers: expected list, found 'w.toml'"),
        ('name = "a"\nvendor = "v"\nwaivers = ["none.toml"]', "none.toml: No such file or directory"),
        ('name = "a"\nvendor = "v"\nnumerics = "tf33"', "run 'a': numerics 'tf33' is not one of 'ieee', "),
        ('name = "a"\nvendor = "v"\nnumerics = "none.toml"', "none.toml"),
        ('name = "a"\nvendor = "v"\n[[run]]\nname = "a"\nvendor = "w"', "2 runs have the name 'a'"),
    ],
)
def test_an_invalid_plan_is_rejected(tmp_path: Path, keys: str, problem: str) -> None:
    with pytest.raises(TableError) as caught:
        read_runs(tmp_path, f"[[run]]\n{keys}")
    (line,) = str(caught.value).splitlines()
    assert line.startswith(str(tmp_path)) and problem in line


def test_a_plan_without_runs_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"plan.toml.*\[\[run\]\]"):
        read_runs(tmp_path, "")


PASSED = report_of([case_record("diopiAdd[float32-a]", "passed")], "right")
FAILED = report_of([case_record("diopiAdd[float32-a]", "failed", "values: out is wrong")], "wrong")
BROKEN = replace(PASSED, errors=("the baseline is damaged",))


def plan_report(**reports: object) -> PlanReport:
    """Return the report of a plan with these reports."""
    return PlanReport(SCHEMA_VERSION, tuple(PlannedReport(name, report) for name, report in reports.items()), 2.5)  # type: ignore[arg-type]  # reports, by name


def test_the_exit_status_is_the_worst_of_all_runs() -> None:
    assert plan_report(a=PASSED, b=PASSED).exit_status == 0
    assert plan_report(a=PASSED, b=FAILED).exit_status == 1
    assert plan_report(a=BROKEN, b=FAILED).exit_status == 3


def test_the_report_of_a_plan_matches_its_schema() -> None:
    plan = plan_report(a=PASSED, b=FAILED)
    content = json.loads(json.dumps(to_json(plan), allow_nan=False))
    jsonschema.Draft202012Validator(json.loads(PLAN_FILE.read_text("utf-8"))).validate(content)
    assert from_json(PlanReport, content) == plan


def test_the_summary_has_every_run() -> None:
    text = StringIO()
    show_plan(plan_report(first=PASSED, second=FAILED), Console(file=text, width=120))
    printed = text.getvalue()
    assert "values: out is wrong" in printed
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert lines[-3:] == [
        "first right 1.0 smoke 1 passed 0",
        "second wrong 1.0 smoke 1 failed 1",
        "2 runs in 2.5 s, status 1",
    ]
