"""Mutants with known defects measure the diagnoses."""

from __future__ import annotations

from pathlib import Path

import pytest

from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.quality import diagnoses
from diopi_test.quality.diagnoses import assign_groups, diagnose_mutants, render_matrix, run_cases_on_mutant
from diopi_test.quality.mutation.matrix import generate_mutants
from diopi_test.quality.mutation.nonfinite import NEGATIVE_NAN, SATURATION, ZERO_FACTOR, nonfinite_mutants
from diopi_test.results.causes.diagnosis import catalog


def test_most_mutants_of_addition_are_diagnosed_correctly() -> None:
    diagnosed = diagnose_mutants("diopiAdd", 25, seed=3)
    assert len(diagnosed) == 25
    assert sum(bool(mutant.is_correct) for mutant in diagnosed) >= 20, render_matrix(diagnosed)


def test_the_matrix_lists_every_kind_of_mutant() -> None:
    diagnosed = diagnose_mutants("diopiMax", 5, seed=3)
    lines = render_matrix(diagnosed).splitlines()
    assert lines[0].startswith("5 mutants: ")
    assert {line.partition(":")[0] for line in lines[1:]} == {mutant.kind for mutant in diagnosed}


def test_stored_records_have_the_same_diagnoses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second measurement reads the records of the first one and runs no mutant."""
    measured = diagnose_mutants("diopiNeg", 4, seed=3, folder=tmp_path / "records")
    monkeypatch.delattr(diagnoses, "run_mutants")
    assert diagnose_mutants("diopiNeg", 4, seed=3, folder=tmp_path / "records") == measured
    assert len(measured) == 4


def test_the_catalog_names_kinds_of_mutants_that_exist() -> None:
    known = {mutant.kind or mutant.name for mutant in generate_mutants("diopiAdd", [])}
    named = {kind for diagnosis in catalog() for kind in diagnosis.mutants}
    assert {"input overwritten", "NaN replaced by 0", "strides of a tensor ignored"} <= known & named


@pytest.mark.parametrize(
    ("function", "name", "diagnosis"),
    [
        ("diopiIndex", NEGATIVE_NAN, "negative-nan-misread"),
        ("diopiConvolution2d", ZERO_FACTOR, "zero-factors-skipped"),
        ("diopiAdd", SATURATION, "accumulator-starts-at-lowest"),
    ],
)
def test_mutants_of_nonfinite_numbers_are_diagnosed(function: str, name: str, diagnosis: str) -> None:
    mutant = next(mutant for mutant in nonfinite_mutants(function) if mutant.name == name)
    cases = [compute_baseline_case(lookup(function), case) for case in select_cases(function, "full")]
    records = list(run_cases_on_mutant(mutant, cases))
    assert {cause.diagnosis for cause in assign_groups(records)[1]} == {diagnosis}
