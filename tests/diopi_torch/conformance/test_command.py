"""The command that holds the device to PyTorch's own samples, with a drawn sample of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from sampling import SEED

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")
pytest.importorskip("expecttest", reason="pip install 'diopi[test]'")

from diopi_impl.export import export  # noqa: E402  # behind the check for PyTorch
from diopi_torch.conformance import command, pool  # noqa: E402  # behind the check for PyTorch
from diopi_torch.conformance.samples import SampleGroup  # noqa: E402  # behind the check, too

ROOT = Path(__file__).parents[3]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run the command; return its exit status and what it printed."""
    status = command.main(arguments)
    return status, capsys.readouterr().out


def run_drawn_sample(
    vendor: str, groups: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Assert that a drawn sample agrees with the CPU on a vendor."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests" / "helpers")]))
    draw = ("--sample", str(groups), "--limit", "3", "--seed", os.environ[SEED])
    status, printed = run(capsys, "--vendor", vendor, *draw)
    assert printed.startswith(f"{groups} groups of samples, seed {os.environ[SEED]}\n")
    assert status == 0, printed


@pytest.mark.parametrize(
    ("vendor", "groups"),
    [
        ("torch_cpu", 15),
        *(
            pytest.param(*values, marks=pytest.mark.slow)
            for values in [("torch_cpu", 60), ("torch_devices:halved", 20)]
        ),
    ],
)
def test_a_drawn_sample_agrees_with_the_cpu(
    vendor: str, groups: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_drawn_sample(vendor, groups, capsys, monkeypatch)


@pytest.mark.slow
def test_a_drawn_sample_agrees_with_the_cpu_on_an_exported_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = export("diopi_impl.jax_cpu:vendor", tmp_path)
    run_drawn_sample(str(library), 20, capsys, monkeypatch)


def test_a_vendor_that_does_not_exist_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match=r"worker process.*no_such_vendor"):
        run(capsys, "--vendor", "no_such_vendor", "--database", "optim", "-k", "SGD", "--dtype", "float32")


def test_an_unknown_difference_is_printed_and_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    group = SampleGroup(database="op", entry="abs", form="plain", dtype="float32")
    outcome = pool.GroupOutcome(group=group, samples=4, differences={2: "values differ"})
    monkeypatch.setattr(command, "choose_groups", lambda options: [group])
    monkeypatch.setattr(pool.WorkerPool, "run", lambda self, processes: iter([outcome]))
    status, printed = run(capsys, "--output", str(tmp_path / "outcomes"))
    assert status == 1
    assert "op abs plain float32 2: values differ" in printed
    assert "float32           4        1    75.00%" in printed
    assert '"differences": {"2": "values differ"}' in tmp_path.joinpath("outcomes").read_text()


def test_the_seed_determines_the_groups() -> None:
    def draw(seed: int) -> list[Any]:
        return command.choose_groups(command.parse_arguments(["--sample", "8", "--seed", str(seed)]))

    assert draw(1) == draw(1) != draw(2)
    assert len({*draw(1)}) == 8


def test_options_select_groups() -> None:
    options = command.parse_arguments(["--dtype", "int64", "--database", "op", "-k", "fft.fft"])
    assert {str(group) for group in command.choose_groups(options)} == {
        "op fft.fft plain int64",
        "op fft.fft noncontiguous int64",
    }
    options = command.parse_arguments(["--dtype", "float32", "--form", "error", "-k", "nn.Linear"])
    assert [str(group) for group in command.choose_groups(options)] == ["module nn.Linear error float32"]
