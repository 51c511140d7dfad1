"""A watch judges the ATen calls of a program while it runs, and names the operators that are wrong."""

from __future__ import annotations

import importlib
import math
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from planted_faults import FAULTS, Fault, PlantedFaults  # noqa: E402  # behind the check for PyTorch
from small_language_model import train_and_generate  # noqa: E402  # behind the check, too
from torch_devices import AlteredVendor, SpoilingVendor  # noqa: E402  # behind the check, too

import diopi_torch  # noqa: E402  # behind the check, too
from diopi_test.cli import main  # noqa: E402  # behind the check, too
from diopi_torch.compare.watch.command import main as command  # noqa: E402  # behind the check, too
from diopi_torch.compare.watch.session import Watch  # noqa: E402  # behind the check, too
from diopi_torch.settings import SettingError, parse_overhead  # noqa: E402  # behind the check, too

ROOT = Path(__file__).parents[2]


def names(watch: Watch) -> list[str]:
    """Return the names of the wrong operators."""
    return [entry.operator for entry in watch.wrong_operators]


def test_twelve_planted_faults_are_named_and_no_other_operator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases"
    with PlantedFaults(FAULTS) as planted, diopi_torch.watch(overhead=math.inf, cases=cases) as watch:
        train_and_generate()
    assert planted.triggered == set(FAULTS)
    named = {(entry.operator, entry.dtype) for entry in watch.wrong_operators}
    assert named == {(fault.operator, str(fault.dtype).removeprefix("torch.")) for fault in FAULTS}
    printed = capsys.readouterr().err
    assert printed.startswith("12 operators are wrong: ")
    assert "small_language_model.py:" in printed and "(train), gradient AddmmBackward0" in printed
    for entry in watch.wrong_operators:
        assert f"--data {cases}" in entry.worst_form.command
    replayed = CliRunner().invoke(main, ["run", "--data", str(cases), "-k", "Gelu", "-n", "1"])
    assert replayed.exit_code == 0, replayed.output  # the reference vendor computes it correctly
    assert "1 passed" in replayed.output or "1 of 1" in replayed.output


def test_the_page_lists_the_planted_faults() -> None:
    page = (ROOT / "docs" / "find_the_operator.md").read_text("utf-8")
    rows = [line.split(" | ")[:4] for line in page.splitlines() if line.count(" | ") == 6][2:]
    assert rows == [
        [
            f"| {fault.operator}",
            str(fault.dtype).removeprefix("torch."),
            str(list(fault.shape)),
            fault.description,
        ]
        for fault in FAULTS
    ]


@pytest.mark.slow
def test_a_healthy_model_has_no_wrong_operator_and_every_call_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    class Counting(PlantedFaults):  # type: ignore[no-untyped-call]  # PyTorch does not annotate it
        """Counts the calls."""

        calls = 0

        def __torch_dispatch__(self, operator: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
            Counting.calls += 1
            return super().__torch_dispatch__(operator, types, args, kwargs)

    with diopi_torch.watch(overhead=math.inf) as watch, Counting(()):
        train_and_generate()
    assert watch.wrong_operators == []
    assert capsys.readouterr().err.startswith("no operator is wrong in ")
    assert watch.counts.judged.total() + watch.counts.not_judged.total() == Counting.calls


def test_a_wrong_function_of_a_device_is_named(activate_vendor: Callable[[Any], Any], tmp_path: Path) -> None:
    activate_vendor(SpoilingVendor("diopiMm", 0))
    with diopi_torch.watch(device="diopi", overhead=math.inf, cases=tmp_path, quiet=True) as watch:
        x = torch.arange(6.0).reshape(2, 3).to("diopi")
        (x @ x.t() + 1).sum().cpu()
        torch.ones(2) + 1
    (entry,) = watch.wrong_operators
    assert (entry.operator, entry.dtype, str(entry.severity)) == ("mm", "float32", "critical")
    assert "--vendor torch:diopi" in entry.worst_form.command
    assert "calls without a tensor on the watched device" in watch.counts.not_judged


def test_gradients_on_a_device_are_judged(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(AlteredVendor())
    with diopi_torch.watch(overhead=math.inf, quiet=True) as watch:
        x = torch.randn(3, 4).to("diopi").requires_grad_()
        torch.nn.functional.gelu(x).sum().backward()
    assert watch.counts.judged["diopiGeluBackward"] == 1 and names(watch) == []


def test_operators_that_the_standard_lacks_are_compared_in_float64(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.randn(4, 4)
    with diopi_torch.watch(overhead=math.inf) as watch:
        torch.special.bessel_j0(x)
    assert dict(watch.counts.judged) == {"ATen in float64": 1} and names(watch) == []
    assert "in float64 on the CPU, because the standard does not have it: 1" in capsys.readouterr().err


def test_a_wrong_call_that_the_standard_lacks_is_stored_and_replayed(tmp_path: Path) -> None:
    def change(compute: Callable[[], Any], args: Any) -> Any:
        return compute().mul_(1.001)

    names_of_faults = ("special_bessel_j0", "addbmm_", "linalg_matrix_exp")
    shapes = {"special_bessel_j0": (4,), "addbmm_": (2, 2), "linalg_matrix_exp": (2, 2)}
    faults = [
        Fault(operator=name, dtype=torch.float32, shape=shapes[name], change=change, description="")
        for name in names_of_faults
    ]
    with PlantedFaults(faults), diopi_torch.watch(overhead=math.inf, cases=tmp_path, quiet=True) as watch:
        torch.special.bessel_j0(torch.arange(8.0)[::2])
        torch.ones(2, 2).addbmm_(torch.ones(3, 2, 5), torch.ones(3, 5, 2), beta=0.5)
        torch.linalg.matrix_exp(torch.eye(2))
    assert len(watch.wrong_operators) == 3 and set(names(watch)) == set(names_of_faults)
    for entry in watch.wrong_operators:
        words = shlex.split(entry.worst_form.command)
        assert words[:5] == ["python", "-m", "diopi_torch.watch", "--device", "cpu"]
        correct = CliRunner().invoke(command, words[3:])
        assert (correct.exit_code, correct.output) == (0, f"{entry.operator}: right (by ATen in float64)\n")
        with PlantedFaults(faults):
            faulty = CliRunner().invoke(command, words[3:])
        assert faulty.exit_code == 1 and "elements are wrong" in faulty.output


def test_a_file_without_a_call_is_rejected(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.ones(2))
    result = CliRunner().invoke(command, ["--replay", str(tmp_path / "other.npz")])
    assert result.exit_code == 2 and "does not contain a call of an operator" in result.output


def test_the_module_of_the_command_does_not_replace_the_function() -> None:
    with pytest.raises(ImportError, match="is a function"):
        importlib.import_module("diopi_torch.watch")
    assert callable(diopi_torch.watch)


def test_lazily_conjugated_tensors_and_in_place_calls_are_judged() -> None:
    with diopi_torch.watch(overhead=math.inf, quiet=True) as watch:
        z = torch.randn(3, 3, dtype=torch.complex64)
        z.conj() @ z
        z.conj().imag.add_(1)
        z[1:].mul_(2)
    assert names(watch) == []
    assert watch.counts.judged.total() >= 3


def test_random_operators_are_not_judged_and_counted() -> None:
    with diopi_torch.watch(overhead=math.inf, quiet=True) as watch:
        torch.nn.functional.dropout(torch.ones(4))
        torch.rand(3)
    assert watch.counts.not_judged["operators that draw random numbers, which have no single right result"] >= 2


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.exp(x),
        lambda x: x.mul_(0.5),
        lambda x: x + torch.arange(300.0),
        lambda x: x @ torch.ones(300, 7),
        lambda x: torch.softmax(x, -1),
        lambda x: torch.nn.functional.layer_norm(x, (300,)),
        lambda x: torch.nn.functional.linear(x, torch.ones(5, 300), torch.ones(5)),
    ],
)
def test_large_calls_are_judged_on_a_sample(call: Callable[[Any], Any]) -> None:
    x = torch.randn(200, 300)
    with diopi_torch.watch(overhead=math.inf, quiet=True) as watch:
        call(x)
    assert watch.counts.sampled == 1 and names(watch) == []


def test_a_fault_in_a_large_call_is_found_on_a_sample() -> None:
    x = torch.randn(200, 300)

    class Halving(PlantedFaults):  # type: ignore[no-untyped-call]  # PyTorch does not annotate it
        """Computes exp and mul_ in bfloat16."""

        def __torch_dispatch__(self, operator: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
            result = operator(*args, **(kwargs or {}))
            return result.copy_(result.bfloat16()) if operator._schema.name in ("aten::exp", "aten::mul_") else result

    with Halving(()), diopi_torch.watch(overhead=math.inf, quiet=True) as watch:
        x.exp()
        x.mul_(1.1)
    assert sorted(names(watch)) == ["exp", "mul_.Tensor"] and watch.counts.sampled == 2


def test_calls_beyond_the_share_of_time_are_counted() -> None:
    with diopi_torch.watch(overhead=0.0, quiet=True) as watch:
        for size in range(1, 9):
            torch.ones(size).exp()
    (reason,) = [reason for reason in watch.counts.not_judged if "share of time" in reason]
    assert watch.counts.not_judged[reason] >= 8


def test_a_repeated_form_is_not_judged_again_at_once() -> None:
    x = torch.ones(3)
    with diopi_torch.watch(overhead=1e9, quiet=True) as watch:
        x.exp()
    with diopi_torch.watch(overhead=1.0, quiet=True) as watch:
        for _ in range(50):
            x.exp()
    assert watch.counts.judged["diopiExp"] < 50
    assert watch.counts.judged.total() + watch.counts.not_judged.total() == 50


def watch_program(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder."""
    command = [sys.executable, "-m", "diopi_torch.watch", "--overhead", "unlimited", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_command_exits_with_the_status_of_a_program_without_wrong_operators(tmp_path: Path) -> None:
    tmp_path.joinpath("net.py").write_text("import sys, torch\ntorch.ones(3).exp()\nsys.exit(len(sys.argv))\n")
    done = watch_program(tmp_path, "--device", "cpu", "--", "net.py", "--device", "x")
    assert (done.returncode, done.stderr.splitlines()[0]) == (3, "no operator is wrong in 2 judged calls"), done.stderr


@pytest.mark.slow
def test_the_command_exits_with_1_and_stores_a_case_if_an_operator_is_wrong(tmp_path: Path) -> None:
    library = """
import torch
library = torch.library.Library("aten", "IMPL")
library.impl("neg", lambda x: 0.5 - x, "CPU", allow_override=True)
torch.ones(3).neg()
"""
    tmp_path.joinpath("net.py").write_text(library)
    done = watch_program(tmp_path, "--report", "report.txt", "--", "net.py")
    assert done.returncode == 1, done.stderr
    report = tmp_path.joinpath("report.txt").read_text()
    assert report.startswith("1 operator is wrong: neg (float32)\n") and "called at net.py:5 (<module>)" in report
    assert "--data watch.cases --case 'diopiNeg[float32-neg-2]'" in report
    second_process = watch_program(tmp_path, "--", "net.py")
    assert second_process.returncode == 2 and "has a baseline already" in second_process.stderr


def run_program(folder: Path, text: str, setting: str) -> str:
    """Run a program with the environment variable, and return what it prints to stderr."""
    folder.joinpath("net.py").write_text(text)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "DIPU_WATCH": setting, "PYTHONPATH": path}
    words = [sys.executable, "net.py"]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False).stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "expected"),
    [("unlimited", "no operator is wrong in 2 judged calls"), ("some", "DIPU_WATCH: expected a percentage")],
)
def test_an_environment_variable_watches_a_program_that_imports_the_device(
    setting: str, expected: str, tmp_path: Path
) -> None:
    assert expected in run_program(tmp_path, "import diopi_torch, torch\ntorch.ones(3).exp()\n", setting)


@pytest.mark.slow
def test_an_environment_variable_watches_a_program_that_imports_only_pytorch(tmp_path: Path) -> None:
    """The entry point belongs to the installed package; here, another package has the same entry point."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (value,) = configuration["project"]["entry-points"]["torch.backends"].values()
    metadata = tmp_path / "installed-1.dist-info"
    metadata.mkdir()
    metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: installed\nVersion: 1\n")
    metadata.joinpath("entry_points.txt").write_text(f"[torch.backends]\nwatch = {value}\n")
    program = "import torch\ntorch.ones(3).exp()\n"
    assert "no operator is wrong in 2 judged calls" in run_program(tmp_path, program, "unlimited")
    assert run_program(tmp_path, program, "") == ""


@pytest.mark.slow
def test_a_program_on_a_device_of_another_package_is_watched(tmp_path: Path) -> None:
    program = """
import torch
torch.utils.rename_privateuse1_backend("npu")
import diopi_torch
with diopi_torch.watch(overhead=1e9):
    torch.ones(3).exp()
print(torch._C._get_privateuse1_backend_name())
"""
    tmp_path.joinpath("net.py").write_text(program)
    done = subprocess.run([sys.executable, "net.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "no operator is wrong in 2 judged calls" in done.stderr and done.stdout == "npu\n"


def test_the_overhead_is_a_percentage() -> None:
    assert parse_overhead("x", "20%") == 0.2
    assert parse_overhead("x", "unlimited") == math.inf
    with pytest.raises(SettingError, match="--overhead: expected a percentage such as 20%, or unlimited, found '1'"):
        parse_overhead("--overhead", "1")
