"""A configuration from `benchmarks/original_config.py` is translated, and the references accept its cases."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from diopi_proto.interface import lookup
from diopi_test.baseline.descriptions import described_functions
from diopi_test.baseline.on_demand import ComputationOutcome, compute_described
from diopi_test.baseline.parallel import process_map
from diopi_test.execution.listing import list_stored_cases
from diopi_test.original.folder import import_files

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "original_config.py"

FUNCTIONS = (
    *("Convolution2d", "BatchNorm", "GroupNorm", "Softmax", "Gelu", "MaxPool1d", "Pool2d"),
    *("Cat", "Sort", "Norm", "Embedding", "Add", "Cholesky"),
)


@pytest.fixture
def script() -> Iterator[ModuleType]:
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("original_config", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = sys.modules["original_config"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["original_config"]


@pytest.mark.parametrize(
    "cases", [15, pytest.param(40, marks=pytest.mark.slow), pytest.param(120, marks=pytest.mark.exhaustive)]
)
def test_the_cases_of_a_configuration_are_translated_and_the_references_accept_them(
    cases: int, script: ModuleType, tmp_path: Path
) -> None:
    kinds = list(script.entries([lookup(f"diopi{name}") for name in FUNCTIONS]))
    path, folder = tmp_path / "configs.py", tmp_path / "imported"
    path.write_text(script.configuration(kinds, 14, cases))
    imported = import_files([path], folder, lambda *done: None)
    assert imported.not_translated == []
    assert {f"diopi{name}" for name in FUNCTIONS} <= imported.cases.keys() and imported.cases.total() > cases
    translated: list[ComputationOutcome] = []
    functions = described_functions(folder)
    compute_described(
        folder, "smoke", functions, process_map(1), list_stored_cases, lambda name, outcome: translated.append(outcome)
    )
    assert [line for outcome in translated for line in (*outcome.rejected, *outcome.errors)] == []
    assert sum(outcome.cases for outcome in translated) == imported.cases.total()
