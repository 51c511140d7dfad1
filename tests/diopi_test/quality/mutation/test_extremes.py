"""Cases with numbers near the ends of the range kill mutants whose maxima or minima start from a finite number."""

import pytest

from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.quality.mutation.extremes import HIGH, LOW, extreme_mutants
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


def test_random_functions_have_no_mutants_of_extremes() -> None:
    assert not list(extreme_mutants("diopiNormal"))
