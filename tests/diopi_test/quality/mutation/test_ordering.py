"""Only subnormal numbers kill the mutant that compares subnormal numbers as zeros."""

from typing import Any

import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import Domain, distinct, subnormal
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.quality.mutation.matrix import MutantResult, run_mutant
from diopi_test.quality.mutation.ordering import ordering_mutants

MUTANT = "subnormal numbers compared as zeros"

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "diopiSort": {"dim": 0, "descending": False, "pStable": True},
    "diopiTopk": {"k": 4, "dim": 0, "largest": True, "sorted": True},
    "diopiMax": {"dim": 0},
    "diopiMin": {"dim": 0},
}


def run_on_data(function: str, domain: Domain) -> MutantResult:
    """Run a case with data from this domain against the mutant."""
    mutant = next(mutant for mutant in ordering_mutants(function) if mutant.name == MUTANT)
    input = TensorSpec((9,), Dtype.float32, domain)
    case = Case("float32-made-up", Dtype.float32, {"input": input, **ATTRIBUTES[function]})
    return run_mutant(mutant, [compute_baseline_case(lookup(function), case)])


@pytest.mark.parametrize("function", ATTRIBUTES)
def test_only_subnormal_numbers_kill_their_comparison_as_zeros(function: str) -> None:
    assert run_on_data(function, subnormal).killed_by == ("float32-made-up", ("values",))
    assert not run_on_data(function, distinct).change_count


@pytest.mark.parametrize("function", ["diopiRelu", "diopiArgmax", "diopiSum"])
def test_functions_without_positions_do_not_have_the_mutant(function: str) -> None:
    assert MUTANT not in [mutant.name for mutant in ordering_mutants(function)]
