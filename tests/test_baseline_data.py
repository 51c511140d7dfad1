"""The shipped baseline matches the cases: every function, every case, within its size, with the right data."""

from pathlib import Path

import numpy as np
import pytest
from sampling import OPERATORS, sampled

from diopi_proto.interface import lookup
from diopi_test.baseline import manifest
from diopi_test.baseline.generate import functions_with_cases
from diopi_test.baseline.index_view import IndexView
from diopi_test.baseline.level import StoredLevel, open_level
from diopi_test.baseline.store import BaselineFile, baseline_file
from diopi_test.cases.selection import select_cases
from diopi_test.execution.listing import list_cases
from diopi_test.oracle.data import widen
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineTensor
from lib_rt.formats import is_inexact, ulp

SMOKE = Path(__file__).parent.parent / "baseline_data" / "smoke"

LIMIT = 12_500_000
"""The maximum total size of the committed files in bytes."""


@pytest.fixture(scope="module")
def level() -> StoredLevel:
    """Return the shipped level; reading its manifest takes half a second."""
    return open_level(SMOKE)


def test_every_function_has_a_file_and_there_are_no_other_files() -> None:
    files = (baseline_file(SMOKE, name).name for name in OPERATORS)
    assert sorted(path.name for path in SMOKE.iterdir()) == sorted([*files, manifest.MANIFEST_NAME])


@pytest.mark.exhaustive
def test_every_operator_has_cases() -> None:
    assert functions_with_cases("full") == functions_with_cases("smoke") == OPERATORS


def test_the_manifest_lists_the_files(level: StoredLevel) -> None:
    level.verify(level.functions)


@pytest.mark.parametrize("function", sampled(OPERATORS, 25, slow=35))
def test_the_manifest_lists_the_cases_of_each_file(function: str, level: StoredLevel) -> None:
    """Derived cases depend on the current sources: run `diopi-test gen-data` to update the list."""
    assert level.cases(function) == list_cases(IndexView(level.path(function)))


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in SMOKE.iterdir()) <= LIMIT


@pytest.mark.parametrize("function", sampled(OPERATORS, 25, slow=35))
def test_a_file_holds_the_cases_of_its_function(function: str) -> None:
    file = BaselineFile(baseline_file(SMOKE, function))
    file.verify()
    assert list(file.labels) == [case.label for case in select_cases(function, "smoke")]


@pytest.mark.parametrize("function", sampled(OPERATORS, 8, slow=12))
def test_regenerated_inputs_equal_stored_inputs(function: str) -> None:
    """They are equal up to the last digit, in which the mathematical library of another machine may differ."""
    file = BaselineFile(baseline_file(SMOKE, function))
    for case in select_cases(function, "smoke"):
        regenerated, stored = compute_baseline_case(lookup(function), case), file.case(case.label)
        for name, value in regenerated.arguments.items():
            if isinstance(value, BaselineTensor):
                assert_same(value, stored.arguments[name])


def assert_same(actual: BaselineTensor, expected: BaselineTensor) -> None:
    """Assert that two tensors are equal, inexact values up to rounding."""
    assert (actual.dtype, actual.layout, actual.values.shape) == (
        expected.dtype,
        expected.layout,
        expected.values.shape,
    )
    if not is_inexact(actual.dtype):
        assert np.array_equal(actual.values, expected.values)
        return
    found, wanted = (widen(tensor.values, tensor.dtype) for tensor in (actual, expected))
    finite = np.isfinite(found)
    assert np.array_equal(found[~finite], wanted[~finite], equal_nan=True)
    assert (np.abs(found[finite] - wanted[finite]) <= ulp(found[finite], actual.dtype)).all()
