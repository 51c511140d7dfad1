"""Programs that were written for CUDA run on the device."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_torch.cuda_programs import translate  # noqa: E402 - behind the check, too
from diopi_torch.settings import MOCK_CUDA, SettingError, parse_switch  # noqa: E402 - behind the check, too

PROGRAM = Path(__file__).parents[1] / "helpers" / "cuda_program.py"
IMPORT = "import sys, runpy, diopi_torch; runpy.run_path(sys.argv[1], run_name='__main__')"
WALK_THROUGH = PROGRAM.with_name("extension_walkthrough.py")


def run_program(program: Path = PROGRAM, **switches: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process with these environment variables; the device is imported first."""
    environment = {**os.environ, **switches, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", IMPORT, str(program)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.slow
@pytest.mark.parametrize(("reported", "name"), [("0", "diopi"), ("1", "cuda")])
def test_a_program_for_cuda_trains_on_the_device(reported: str, name: str) -> None:
    done = run_program(DIPU_MOCK_CUDA="1", DIPU_PYTHON_DEVICE_AS_CUDA=reported)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.startswith("done on jax_cpu")
    assert done.stdout.endswith(f" {name}:0 '{name}:0')\n")


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has a CUDA device here")
def test_cuda_stays_unavailable_without_the_switch() -> None:
    done = run_program(DIPU_MOCK_CUDA="0")
    assert "assert torch.cuda.is_available()" in done.stderr


@pytest.mark.parametrize(
    ("value", "translated"),
    [
        ("cuda", "diopi"),
        ("cuda:1", "diopi:1"),
        (torch.device("cuda"), torch.device("diopi")),
        (torch.device("cuda", 2), torch.device("diopi", 2)),
        ("cpu", "cpu"),
        ("cuda_kernels", "cuda_kernels"),
        (torch.device("cpu"), torch.device("cpu")),
        (3, 3),
        (None, None),
    ],
)
def test_only_cuda_devices_are_translated(value: Any, translated: Any) -> None:
    assert translate(value) == translated
    assert type(translate(value)) is type(value)


@pytest.mark.parametrize("platform", ["cuda", "hip"])
def test_a_pytorch_with_cuda_devices_is_refused(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, platform, "12.6")
    with pytest.raises(RuntimeError, match=r"12\.6"):
        diopi_torch.as_cuda()


def test_a_switch_has_one_of_seven_values() -> None:
    assert [parse_switch(MOCK_CUDA, text) for text in ("1", " True ", "on", "", "0", "false", "OFF")] == [True] * 3 + [
        False
    ] * 4
    with pytest.raises(SettingError, match="yes"):
        parse_switch(MOCK_CUDA, "yes")


def walk_through(**switches: str) -> dict[str, list[str]]:
    """Return what the steps of the walk-through print to stderr, by the title of the step."""
    done = run_program(WALK_THROUGH, DIPU_MOCK_CUDA="1", DIPU_LOG_FALLBACK_INFO="1", **switches)
    assert done.returncode == 0, done.stderr
    steps = [step.splitlines() for step in done.stderr.split("# ")[1:]]
    return {step[0]: step[1:] for step in steps}


def operators_on_cpu(lines: list[str]) -> list[str]:
    """Return the operators that the lines report as executed by the CPU."""
    return [line.partition(" runs on the CPU: ")[0] for line in lines if " runs on the CPU: " in line]


@pytest.mark.slow
def test_the_walk_through_dumps_levels_that_the_program_switches() -> None:
    steps = walk_through()
    assert operators_on_cpu(steps["compute"]) == []
    assert steps["dump level 0"] == []
    assert steps["dump level 1"] == ["add.Tensor: diopiAdd"]
    assert [line.split()[0] for line in steps["dump level 2"]] == ["add.Tensor:", "self:", "other:"]
    assert "    tensor([[1., 2., 3.]," in steps["dump level 3"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ("add.out,conv2d", ["add.Tensor", "conv2d", "add_.Tensor"]),
        (".*.Scalar", ["fill_.Scalar", "eq.Scalar"]),
        ("eq.Scalar_out", ["eq.Scalar"]),
    ],
)
def test_the_walk_through_forces_operators_to_the_cpu(expressions: str, expected: list[str]) -> None:
    steps = walk_through(DIPU_FORCE_FALLBACK_OPS_LIST=expressions)
    assert operators_on_cpu(steps["compute"]) == expected


@pytest.mark.slow
def test_the_walk_through_forces_all_operators_to_the_cpu() -> None:
    steps = walk_through(DIPU_FORCE_FALLBACK_OPS_LIST=".*")
    assert {"add.Tensor", "add_.Tensor", "eq.Scalar"} < set(operators_on_cpu(steps["compute"]))
    assert not any("diopi" in line for line in steps["dump level 1"])


@pytest.mark.slow
def test_the_walk_through_compares_operators_with_the_cpu() -> None:
    steps = walk_through(DIPU_AUTOCOMPARE_OPS_LIST="add.*")
    verdicts = [line for line in steps["compute"] if not line.startswith(" ")]
    assert verdicts == ["add.Tensor (diopiAdd): right", "add_.Tensor (diopiAddInpScalar): right"]
