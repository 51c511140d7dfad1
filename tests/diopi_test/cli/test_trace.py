"""`diopi-test trace`, and the networks that `run` accepts."""

import json
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_test.cli import main
from diopi_test.traces.files import read_trace

SCRIPT = "import sys, torch\ntorch.ones(int(sys.argv[sys.argv.index('--size') + 1])).exp().erfc()\n"


def test_trace_passes_options_to_the_program(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script, output = tmp_path / "net.py", tmp_path / "calls.json"
    script.write_text(SCRIPT)
    result = CliRunner().invoke(main, ["trace", str(script), "--size", "7", "-o", str(output), "--name", "tiny"])
    assert result.exit_code == 0, result.output
    model = read_trace(output)
    assert (model.name, dict(model.functions), model.not_mapped) == (
        "tiny",
        {"diopiExp": 1, "diopiOnes": 1},
        {"erfc": 1},
    )
    assert "tiny: 2 calls of 2 functions, 2 of them different" in result.output
    assert "not mapped: erfc, 1 call" in result.output


def test_trace_reports_missing_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "net.py"
    script.write_text("")
    monkeypatch.setattr(import_module("diopi_test.cli.trace"), "find_spec", lambda name: None)
    result = CliRunner().invoke(main, ["trace", str(script), "-o", str(tmp_path / "calls.json")])
    assert result.exit_code == 1
    assert "PyTorch is not installed: pip install 'diopi[torch]'" in result.output


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--level", "models", "--model", "nosuch"], "'nosuch' is not one of "),
        (["--model", "resnet50"], "--model requires --level models"),
    ],
)
def test_run_exits_2_for_an_unknown_model(words: list[str], reason: str) -> None:
    result = CliRunner().invoke(main, ["run", *words])
    assert result.exit_code == 2
    assert reason in result.output


def test_the_report_has_the_coverage_of_a_model(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = ["--level", "models", "--model", "ncf", "--function", "diopiSqrt", "--data", str(tmp_path), "-n", "1"]
    result = CliRunner().invoke(
        main,
        ["run", "--vendor", "small_vendor:vendor", *words, "--json", str(report), "--log", str(tmp_path / "run.log")],
    )
    assert result.exit_code == 0, result.output
    (model,) = json.loads(report.read_text("utf-8"))["models"]
    assert (model["name"], model["wrong"], model["not_mapped"]) == ("ncf", {}, [])
    assert 0 < model["passed"] == model["calls"] - model["not_run"]
    assert "models: 0 of 1 can be trained" in result.output


def test_run_lists_the_cases_of_a_model_without_generating_them() -> None:
    result = CliRunner().invoke(
        main, ["run", "--level", "models", "--model", "ncf", "--list", "--function", "diopiEmbedding"]
    )
    assert result.exit_code == 0, result.output
    assert "diopiEmbedding[float32-4001x64-" in result.output
