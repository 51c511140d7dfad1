"""Test the cache of cases for a declared arithmetic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diopi_impl import Numerics
from diopi_proto.interface import lookup
from diopi_test.baseline.declared import DeclaredCases
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, Expected

TF32 = Numerics(name="tf32", float32_products="tf32")
FILE = "0" * 64


@pytest.fixture(scope="module")
def case() -> BaselineCase:
    """Return a float32 case of a matrix product."""
    described = next(case for case in select_cases("diopiMm", "smoke") if case.dtype.name == "float32")
    return compute_baseline_case(lookup("diopiMm"), described)


def unit(case: BaselineCase) -> np.ndarray:
    """Return the budget units of the result."""
    expected = case.expected["out"]
    assert isinstance(expected, Expected)
    assert expected.budget is not None
    return expected.budget.unit


def test_a_cached_case_equals_the_computed_case(
    case: BaselineCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = DeclaredCases(TF32, tmp_path).derive(case, FILE)
    assert (unit(computed) > unit(case)).all()
    monkeypatch.setattr("diopi_test.baseline.declared.measure_case", None)  # calling it would raise
    assert np.array_equal(unit(DeclaredCases(TF32, tmp_path).derive(case, FILE)), unit(computed))


def test_a_damaged_file_is_computed_again(case: BaselineCase, tmp_path: Path) -> None:
    computed = DeclaredCases(TF32, tmp_path).derive(case, FILE)
    (path,) = tmp_path.rglob("*.npz")
    intact = path.read_bytes()
    for content in (intact[:-1], b"", intact[:40] + b"x" + intact[41:]):
        path.write_bytes(content)
        assert np.array_equal(unit(DeclaredCases(TF32, tmp_path).derive(case, FILE)), unit(computed))
        assert path.read_bytes() == intact


def test_a_cache_that_cannot_be_written_does_not_matter(case: BaselineCase, tmp_path: Path) -> None:
    (tmp_path / TF32.digest).write_text("a file where the folder of the cache would be")
    assert (unit(DeclaredCases(TF32, tmp_path).derive(case, FILE)) > unit(case)).all()


def test_each_declaration_file_and_call_has_its_cache(case: BaselineCase, tmp_path: Path) -> None:
    DeclaredCases(TF32, tmp_path).derive(case, FILE)
    DeclaredCases(Numerics(name="hf32", float32_products="hf32"), tmp_path).derive(case, FILE)
    DeclaredCases(TF32, tmp_path).derive(case, "1" * 64)
    DeclaredCases(TF32, tmp_path).derive(replace(case, label="float32-derived"), FILE)
    assert len(list(tmp_path.rglob("*.npz"))) == 4


def test_cases_that_the_arithmetic_does_not_affect_are_not_cached(tmp_path: Path) -> None:
    described = next(iter(select_cases("diopiAdd", "smoke")))
    case = compute_baseline_case(lookup("diopiAdd"), described)
    assert DeclaredCases(TF32, tmp_path).derive(case, FILE) is case
    assert list(tmp_path.iterdir()) == []
