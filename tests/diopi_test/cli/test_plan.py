"""`diopi-test plan` prints what unlocks networks, in order, and suggests names of networks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
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
    assert "1 function unlocks alexnet" in done.output
    assert f"implement {first}: " in done.output and "per step" in done.output
    content = json.loads((tmp_path / "plan.json").read_text())
    assert content["stages"][-1]["obstacles"][0]["obstacle"] == {"kind": "function", "name": first}


def test_networks_that_work_or_need_other_functions_are_named(tmp_path: Path) -> None:
    done = plan(write(tmp_path / "report.json"))
    assert "already working: alexnet" in done.output
    assert "if 1 untested function passes" in done.output or "untested functions pass" in done.output


def test_a_misspelled_network_is_suggested(tmp_path: Path) -> None:
    done = plan(write(tmp_path / "report.json"), "--models", "resnet5")
    assert done.exit_code == 2 and "Did you mean 'resnet50'" in " ".join(done.output.split())


FUNCTIONS = ("diopiSigmoid", "diopiEmbedding", "diopiEmbeddingBackward", "diopiRelu", "diopiThresholdBackward")
"""Functions that both networks of the following test call."""


@pytest.fixture(scope="module")
def logs_of_two_networks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Run calls of two networks on a vendor with failures, and return the logs by network."""
    folder = tmp_path_factory.mktemp("networks")
    logs = {name: folder / f"{name}.jsonl" for name in ("ncf", "wide_and_deep")}
    selection = [word for name in FUNCTIONS for word in ("--function", name)]
    for name, log in logs.items():
        words = ["--vendor", "network_failures:vendor", "--level", "models", "--model", name, "-n", "1", *selection]
        done = CliRunner().invoke(main, ["run", *words, "--data", str(folder), "--log", str(log)])
        assert done.exit_code == 1, done.output
    return logs


def test_the_plan_of_two_runs_names_what_each_network_needs(logs_of_two_networks: Mapping[str, Path]) -> None:
    """Minor failures, such as those of diopiThresholdBackward, do not prevent training."""
    done = plan(*logs_of_two_networks.values())
    assert done.exit_code == 0
    first = done.output.splitlines()[0]
    assert first.startswith("1 function and 1 cause unlock ") and "untested functions pass" in first
    assert "implement diopiEmbeddingBackward: 2 networks" in done.output
    (fix,) = [line for line in done.output.splitlines() if line.startswith("  fix ")]
    assert ": 2 networks, 2 cases, " in fix and "scaled by a constant factor in diopiSigmoid" in fix
    assert "diopiThresholdBackward" not in done.output
    assert done.output.count("commands that reproduce the causes: diopi-test report ") == 2


def test_the_plan_of_a_run_lists_networks_that_are_not_in_the_run(logs_of_two_networks: Mapping[str, Path]) -> None:
    done = plan(logs_of_two_networks["ncf"], "--models", "ncf,lstm")
    assert "not in this run: lstm (diopi-test run --level models --model NAME)" in done.output
    assert "lstm:" not in done.output


def test_the_plan_of_a_run_of_networks_contains_its_networks(logs_of_two_networks: Mapping[str, Path]) -> None:
    done = plan(logs_of_two_networks["wide_and_deep"])
    assert "unlock wide_and_deep" in done.output
    assert "ncf" not in done.output.replace(str(logs_of_two_networks["ncf"].parent), "")
