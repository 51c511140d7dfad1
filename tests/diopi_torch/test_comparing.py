"""Comparisons while a program runs, and calls that are stored as cases."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from reports import read_report
from torch_devices import AlteredVendor, SpoilingVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_test.cli import main  # noqa: E402  # behind the check, too
from diopi_torch.comparing import compare_from_environment  # noqa: E402  # behind the check, too
from diopi_torch.operators import OperatorKernel, kernels, overload  # noqa: E402  # behind the check, too
from diopi_torch.settings import AUTOCOMPARE  # noqa: E402  # behind the check, too

X = torch.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
REFUSED = "PyTorch rejects an element type, see `Prototype.beyond_pytorch`"


def step() -> None:
    """Make a forward and backward pass of a network with random functions and functions with several valid results."""
    layers = torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.GELU(), torch.nn.Dropout(0.5)
    model = torch.nn.Sequential(*layers).to("diopi")
    torch.nn.functional.cross_entropy(model(X.to("diopi")), torch.tensor([1, 3], device="diopi")).backward()
    X.to("diopi").sort(1)


def test_a_correct_vendor_passes_with_its_gradients(
    activate_vendor: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    activate_vendor(AlteredVendor())
    with diopi_torch.autocompare() as comparison:
        step()
    assert {"addmm", "gelu_backward", "native_layer_norm_backward", "native_dropout", "sort"} <= set(comparison.counts)
    assert sum(counts["wrong"] for counts in comparison.counts.values()) == 0
    printed = capsys.readouterr().err
    assert "addmm (diopiAddmm): right\n  result: allclose\n  self: untouched\n  mat1: untouched\n" in printed
    assert "native_dropout (diopiDropout): right\n  result.0: drawn at random, of the same form\n" in printed
    X.to("diopi") + 1
    assert "add.Tensor" not in comparison.counts  # it has ended


def test_a_wrong_result_is_reported_and_stored_as_a_case(
    activate_vendor: Callable[[Any], Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    activate_vendor(SpoilingVendor("diopiMm", 0))
    comparison = diopi_torch.autocompare("mm, add.*", report=tmp_path / "r.json")
    X.to("diopi") @ X.t().to("diopi") + 1
    comparison.close()
    assert {name: dict(counts) for name, counts in comparison.counts.items()} == {
        "mm": {"compared": 1, "wrong": 1},
        "add.Tensor": {"compared": 1, "wrong": 0},
    }
    printed = capsys.readouterr().err
    assert "1 of 4 elements differ, most at (0, 0): 15.0 and 14.0, by 1; mean absolute error 0.25" in printed
    assert "device: float32[2, 2] strides [2, 1]: 15, -6.5, -6.5, 20.25" in printed
    assert "CPU: float32[2, 2] strides [2, 1]: 14, -6.5, -6.5, 20.25" in printed
    report = read_report(tmp_path / "r.json")
    verdicts = {case["id"]: case["verdict"] for case in report["cases"]}
    assert verdicts == {"diopiMm[float32-mm-1]": "failed", "diopiAddScalar[float32-add.Tensor-2]": "passed"}
    commands = {case["id"]: case["command"] for case in report["cases"]}
    assert f"--data {tmp_path / 'r.cases'} --case 'diopiMm[float32-mm-1]'" in commands["diopiMm[float32-mm-1]"]
    run(tmp_path / "r.cases", "diopiMm[float32-mm-1]")  # passes on a vendor that is right


def run(folder: Path, *expected: str) -> None:
    """Run the cases of a folder on the reference vendor, and show them."""
    report = folder / "again.json"
    done = CliRunner().invoke(main, ["run", "--data", str(folder), "--json", str(report), "-n", "1"])
    assert done.exit_code == 0, done.output
    assert {case["id"] for case in read_report(report)["cases"] if case["function"] != "runtime"} == set(expected)
    result = CliRunner().invoke(main, ["show", "--data", str(folder), expected[0]])
    assert result.exit_code == 0 and expected[0] in result.output


def test_a_written_input_is_reported(activate_vendor: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]) -> None:
    activate_vendor(SpoilingVendor("diopiMm", 2))
    with diopi_torch.autocompare("mm") as comparison:
        X.to("diopi") @ X.t().to("diopi")
    assert comparison.counts["mm"]["wrong"] == 1
    printed = capsys.readouterr().err
    assert "mat2: was written, though the operator's schema does not say so" in printed
    assert "inputs: " in printed and "of mat2 changed" in printed


def test_a_wrong_gradient_of_a_composite_operator_is_reported(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(SpoilingVendor("diopiLayerNormBackward", 0))
    with diopi_torch.autocompare(quiet=True) as comparison:
        step()
    failed = {name for name, counts in comparison.counts.items() if counts["wrong"]}
    assert failed == {"native_layer_norm_backward"}


def test_a_wrong_mapping_of_an_operator_is_reported(
    activate_vendor: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    activate_vendor(AlteredVendor())
    monkeypatch.setitem(kernels(), "sin", OperatorKernel(overload("sin"), kernels()["cos"].row))
    with diopi_torch.autocompare("sin") as comparison:
        X.to("diopi").sin()
    assert comparison.counts["sin"]["wrong"] == 1
    printed = capsys.readouterr().err
    assert "diopiCos[float32-sin-1]: operator: result: 6 of 6 elements differ" in printed and "values" not in printed


def test_results_that_the_vendor_allocates_are_compared(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(AlteredVendor())
    x = X.to("diopi")
    with diopi_torch.autocompare("nonzero, equal", quiet=True) as comparison:
        assert torch.equal((x > 1).nonzero().cpu(), (X > 1).nonzero())
        assert torch.equal(x, x)
    assert {name: dict(counts) for name, counts in comparison.counts.items()} == {
        "nonzero": {"compared": 1, "wrong": 0},
        "equal": {"compared": 1, "wrong": 0},
    }


def test_calls_that_can_not_be_compared_are_reported(
    activate_vendor: Callable[[Any], Any], tmp_path: Path, capsys: Any
) -> None:
    activate_vendor(AlteredVendor())
    with diopi_torch.autocompare("argmax", report=tmp_path / "r.json"):
        (X > 1).to("diopi").argmax()
    assert (
        "result: not compared: the CPU can't run the operator: argmax(): does not support bool input"
        in capsys.readouterr().err
    )
    (case,) = read_report(tmp_path / "r.json")["cases"]
    assert case["verdict"] == "passed"
    assert {"check": "reference", "passed": True, "message": f"not compared: {REFUSED}"} in case["checks"]


def test_an_operator_of_several_calls_has_one_budget(
    activate_vendor: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    activate_vendor(SpoilingVendor("diopiSqrt", 0))
    x = X.abs().to("diopi")
    with diopi_torch.autocompare("_foreach_sqrt") as comparison:
        torch._foreach_sqrt([x, x + 1])
    assert comparison.counts["_foreach_sqrt"]["wrong"] == 1
    printed = capsys.readouterr().err
    assert "  result.0: 1 of 6 elements differ" in printed and "  result.1: 1 of 6 elements differ" in printed
    assert "diopiSqrt[float32-_foreach_sqrt-1]: values: " in printed
    assert "diopiSqrt[float32-_foreach_sqrt-1.1]: values: " in printed


def test_fallbacks_are_not_compared(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(AlteredVendor(lacks={"diopiMm"}))
    with diopi_torch.autocompare("mm", quiet=True) as comparison:
        assert torch.equal((X.to("diopi") @ X.t().to("diopi")).cpu(), X @ X.t())
    assert comparison.counts == {}
    assert diopi_torch.fallbacks() == {"mm": 1}


def test_in_place_results_and_output_arguments_are_compared(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(AlteredVendor())
    x, out = X.to("diopi"), torch.empty(0, device="diopi")
    with diopi_torch.autocompare(quiet=True) as comparison:
        x[:, ::2].mul_(x[:, 1:2])  # between whose elements the others lie
        torch.add(x, x, out=out)
        torch.linalg.cholesky(torch.eye(2, device="diopi"), out=torch.empty(0, device="diopi"))  # it gets a size
        torch._foreach_add([x, out], 1)
        x.to(torch.bfloat16).softmax(0)
        x.add_(x)  # an input that may change
    written = {"mul_.Tensor", "add.out", "linalg_cholesky_ex.L", "_foreach_add.Scalar"}
    assert {*written, "_softmax"} <= set(comparison.counts)
    assert sum(counts["wrong"] for counts in comparison.counts.values()) == 0


@pytest.mark.parametrize(
    ("operators", "message"), [("(", "not a regular expression"), ("linear", "'linear' does not match")]
)
def test_an_invalid_operator_pattern_is_an_error(
    activate_vendor: Callable[[Any], Any], operators: str, message: str
) -> None:
    with pytest.raises(diopi_torch.SettingError, match=f"operators: .*{message}"):
        diopi_torch.autocompare(operators)


def test_existing_cases_are_not_overwritten(activate_vendor: Callable[[Any], Any], tmp_path: Path) -> None:
    activate_vendor(AlteredVendor())
    with diopi_torch.capture(tmp_path, "mm"):
        X.to("diopi") @ X.t().to("diopi")
    with pytest.raises(FileExistsError, match="folder"):
        diopi_torch.capture(tmp_path)
    with pytest.raises(FileNotFoundError):
        diopi_torch.autocompare(report=tmp_path / "none" / "r.json")


@pytest.mark.slow
def test_captured_calls_are_cases(activate_vendor: Callable[[Any], Any], tmp_path: Path) -> None:
    activate_vendor(AlteredVendor())
    x = X.to("diopi")
    with diopi_torch.capture(tmp_path) as captured:
        torch.softmax(x[:, ::2], 1)
        x += 1
        torch.softmax(x[:, ::2], 1)  # as the first, but for its values
        torch.softmax(x, 0)
        torch.cat([x, x])
        x.exponential_()  # runs on the CPU
        (x > 0).argmax()
        captured.close()  # which may come twice
    assert dict(captured.left_out) == {f"diopiArgmax: {REFUSED}": 1}
    run(
        tmp_path,
        "diopiSoftmax[float32-_softmax-0]",
        "diopiAddInpScalar[float32-add_.Tensor-1]",
        "diopiSoftmax[float32-_softmax-2]",
        "diopiCat[float32-cat-3]",
        "diopiGtScalar[float32-gt.Scalar-4]",
    )


def test_the_environment_starts_a_comparison(
    activate_vendor: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    activate_vendor(AlteredVendor())
    assert compare_from_environment() is None
    monkeypatch.setenv(AUTOCOMPARE, " add.Tensor ,mm")
    comparison = compare_from_environment()
    assert comparison is not None
    X.to("diopi") + 1
    X.to("diopi").exp()
    comparison.close()
    assert capsys.readouterr().err == "add.Tensor (diopiAddScalar): right\n  result: allclose\n  self: untouched\n"
    monkeypatch.setenv(AUTOCOMPARE, "conv2d")
    with pytest.raises(diopi_torch.SettingError, match="DIPU_AUTOCOMPARE_OPS_LIST: 'conv2d'"):
        compare_from_environment()


@pytest.mark.slow
def test_the_suite_is_imported_only_when_needed() -> None:
    program = "import sys, diopi_torch; print('diopi_test' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"
