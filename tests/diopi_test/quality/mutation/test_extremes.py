"""Cases with numbers near the ends of the range kill mutants whose maxima or minima start from a finite number."""

import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.quality.mutation.extremes import HIGH, LOW, extreme_mutants
from diopi_test.quality.mutation.formula import FINITE_INFINITY, formula_mutants
from diopi_test.quality.mutation.matrix import run_mutant


@pytest.mark.parametrize(
    ("function", "mutant_name", "suffix"),
    [
        ("diopiMax", LOW, "near-lowest"),
        ("diopiMaxAll", LOW, "near-lowest"),
        ("diopiMaxPool2d", LOW, "near-lowest"),
        ("diopiSoftmax", LOW, "near-lowest"),
        ("diopiArgmax", LOW, "near-lowest"),
        ("diopiMin", HIGH, "near-highest"),
        ("diopiTopk", HIGH, "near-highest"),
    ],
)
def test_numbers_near_the_ends_kill_the_mutants(function: str, mutant_name: str, suffix: str) -> None:
    selected = [case for case in select_cases(function, "full") if case.label.endswith(suffix)]
    cases = [compute_baseline_case(lookup(function), case) for case in selected]
    (mutant,) = [mutant for mutant in extreme_mutants(function) if mutant.name == mutant_name]
    assert len(cases) == 2
    assert all(run_mutant(mutant, [case]).killed_by for case in cases)


ATTENTION = [
    f"diopi{kind}{form}"
    for kind in ("FlashAttention", "MultiHeadAttention", "CustomizedFlashAttention")
    for form in ("", "VarLen")
]
"""The functions that compute attention."""


@pytest.mark.parametrize("function", ATTENTION)
def test_extreme_scores_kill_mutants_with_a_finite_number_instead_of_infinity(function: str) -> None:
    """Attention hides scores, and starts the largest score of a query, with −∞."""
    selected = [case for case in select_cases(function, "full") if "-extreme-scores" in case.label]
    cases = [compute_baseline_case(lookup(function), case) for case in selected if case.dtype is Dtype.float32]
    assert all(case.case_class.is_demanded for case in cases)
    mutants = [mutant for mutant in formula_mutants(function) if mutant.kind == FINITE_INFINITY]
    assert len(mutants) == 2
    assert all(run_mutant(mutant, cases).killed_by for mutant in mutants)


def test_random_functions_have_no_mutants_of_extremes() -> None:
    assert not list(extreme_mutants("diopiNormal"))
