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
IMPORT = f"import diopi_torch, runpy; runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"


def run_program(switch: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process with this value of the switch; the device is imported first."""
    environment = {**os.environ, MOCK_CUDA: switch, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", IMPORT]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_a_program_for_cuda_trains_on_the_device() -> None:
    done = run_program("1")
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.startswith("done on jax_cpu")


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has a CUDA device here")
def test_cuda_stays_unavailable_without_the_switch() -> None:
    done = run_program("0")
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
