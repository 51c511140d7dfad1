"""The smoke level kills the same mutants as all cases."""

import json

import pytest
from sampling import sampled

from diopi_proto.interface import lookup
from diopi_test.cases.selection import SMOKE_SELECTION, select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.quality.mutation import run_mutation_tests
from diopi_test.quality.mutation.matrix import generate_mutants, run_mutant

SELECTED = json.loads(SMOKE_SELECTION.read_text("utf-8"))
"""The labels of the selected cases by function."""

pytestmark = pytest.mark.usefixtures("without_soak_tests")


@pytest.mark.parametrize("function", sampled(["diopiAbs", "diopiSub", "diopiSelect"], 1))
def test_smoke_level_kills_the_same_mutants_as_level_full(function: str) -> None:
    cases = {level: select_cases(function, level) for level in ("smoke", "full")}
    baseline_cases = {
        level: [compute_baseline_case(lookup(function), case) for case in selected] for level, selected in cases.items()
    }
    for mutant in generate_mutants(function, baseline_cases["full"]):
        if run_mutant(mutant, baseline_cases["full"]).killed_by:
            assert run_mutant(mutant, baseline_cases["smoke"]).killed_by, mutant.name


def test_smoke_selection_kills_the_mutants_that_the_basic_cases_miss() -> None:
    report = run_mutation_tests("diopiAbs")
    assert report.smoke_selection == SELECTED["diopiAbs"]
    assert not set(report.smoke_selection) & set(report.basic)


@pytest.mark.parametrize("function", sampled(SELECTED, 15, slow=25))
def test_smoke_selection_cases_exist_and_are_not_basic(function: str) -> None:
    labels = {case.label for case in select_cases(function, "full") if not case.smoke}
    assert set(SELECTED[function]) <= labels
