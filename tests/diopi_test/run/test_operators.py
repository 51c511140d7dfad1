"""Runs with a library of operators: the log has the operators that the calls of the workers ran."""

from pathlib import Path

import pytest
from rich.console import Console

from diopi_test.results.operators import list_operators
from diopi_test.run.options import RunOptions
from diopi_test.run.recorder import LogContent
from diopi_test.run.runner import run
from diopi_test.run.selection import Selection

pytest.importorskip("torch", reason="torch:DEVICE needs PyTorch: pip install 'diopi[torch]'")


def test_the_log_has_the_operators_that_a_library_served(tmp_path: Path) -> None:
    selection = Selection(functions=("diopiNeg",), dtypes=("float32",), classes=("basic",))
    options = RunOptions(vendor="torch:cpu+my_kernels:enable", selection=selection)
    run(options, tmp_path / "log", Console(quiet=True))
    report = LogContent.read(tmp_path / "log").report()
    assert report.vendor.name == "torch:cpu+my_kernels:enable"
    assert [entry.cells for entry in list_operators(report)] == [("diopiNeg", "aten::neg", "")]
    assert [override.operator for override in report.vendor.overrides] == ["aten::neg", "aten::tanh"]
