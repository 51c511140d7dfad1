"""`diopi-test plan` prints what unlocks networks, in order, and suggests names of networks."""

from __future__ import annotations

import json
from pathlib import Path

from case_records import case_record, report_of
from click.testing import CliRunner, Result

from diopi_test.baseline.codec import to_json
from diopi_test.cli import main
from diopi_test.traces.files import load_shipped_trace


def write(path: Path, **verdicts: str) -> Path:
    """Write a report in which all functions of two networks have a case, and return its path."""
    functions = sorted({*load_shipped_trace("alexnet").functions, *load_shipped_trace("vgg16").functions})
    records = [case_record(f"{name}[float32-a]", verdicts.get(name, "passed")) for name in functions]
    path.write_text(json.dumps(to_json(report_of(records))))
    return path


def plan(*words: str | Path) -> Result:
    """Run `diopi-test plan` and return its result."""
    return CliRunner().invoke(main, ["plan", *map(str, words)])


def test_the_plan_names_functions_networks_and_calls(tmp_path: Path) -> None:
    first = sorted(load_shipped_trace("alexnet").functions)[0]
    report = write(tmp_path / "report.json", **{first: "not_implemented"})
    done = plan(report, "--models", "alexnet,vgg16", "--json", tmp_path / "plan.json")
    assert done.exit_code == 0
    assert "this 1 function unlocks alexnet" in done.output
    assert f"implement {first}: " in done.output and "per step" in done.output
    content = json.loads((tmp_path / "plan.json").read_text())
    assert content["stages"][-1]["obstacles"][0]["obstacle"] == {"kind": "function", "name": first}


def test_networks_that_work_or_need_other_functions_are_named(tmp_path: Path) -> None:
    done = plan(write(tmp_path / "report.json"))
    assert "already working: alexnet" in done.output
    assert "untested function" in done.output


def test_a_misspelled_network_is_suggested(tmp_path: Path) -> None:
    done = plan(write(tmp_path / "report.json"), "--models", "resnet5")
    assert done.exit_code == 2 and "Did you mean 'resnet50'" in " ".join(done.output.split())
