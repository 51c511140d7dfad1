"""Only numbers near the least normal number kill the mutant that flushes subnormal differences to zero."""

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import Domain, normal, tiny_multiples
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.quality.mutation.matrix import MutantResult, run_mutant
from diopi_test.quality.mutation.mutant import Effect
from diopi_test.quality.mutation.underflow import FLUSHED_MOVES, flush_differences, underflow_mutants


def run_on_distances(p: float, first: Domain, second: Domain) -> MutantResult:
    """Run a case of `diopiCdist` with data from these domains against the mutant."""
    rows = {name: TensorSpec((4, 5), Dtype.float32, domain) for name, domain in (("input1", first), ("input2", second))}
    case = Case("float32-made-up", Dtype.float32, {**rows, "p": p, "compute_mode": None})
    (mutant,) = underflow_mutants("diopiCdist")
    return run_mutant(mutant, [compute_baseline_case(lookup("diopiCdist"), case)])


def test_a_sum_of_lost_differences_kills_the_mutant() -> None:
    near_least = tiny_multiples(2.0, 2.5), tiny_multiples(2.25, 2.75)
    assert run_on_distances(0.5, *near_least).killed_by == ("float32-made-up", ("values",))
    assert not run_on_distances(0.5, normal(), normal()).change_count


def test_a_flushed_result_does_not_count_as_changed() -> None:
    """The largest of the subnormal differences is the distance itself, which may be returned as zero."""
    assert not run_on_distances(np.inf, tiny_multiples(2.0), tiny_multiples(2.25)).change_count


def test_only_small_differences_are_flushed() -> None:
    array = flush_differences(np.array([3.0, 1.5, -1.0]), 1.0)
    assert (array - np.array([2.5, 0.5, 1.0])).tolist() == [0.0, 1.0, -2.0]
    assert (array * 0.25).tolist() == [0.75, 0.375, -0.25]
    assert (array.sum() - 3.0).tolist() == 0.0


@pytest.mark.parametrize(
    "function", ["diopiCat", "diopiTranspose", "diopiWhere", "diopiPad", "diopiGather", "diopiCopyInp"]
)
def test_subnormal_numbers_that_are_only_moved_kill_the_mutant_of_moves(function: str) -> None:
    selected = [case for case in select_cases(function, "full") if case.label.endswith("all-subnormal")]
    cases = [compute_baseline_case(lookup(function), case) for case in selected]
    (mutant,) = [mutant for mutant in underflow_mutants(function) if mutant.name == FLUSHED_MOVES]
    assert {case.dtype for case in cases} >= {Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.float64}
    assert all(run_mutant(mutant, [case]).killed_by == (case.label, ("values",)) for case in cases)


def test_the_mutant_of_moves_does_not_concern_conversions_and_functions_that_compute() -> None:
    assert FLUSHED_MOVES not in [mutant.name for mutant in underflow_mutants("diopiAdd")]
    (case,) = [case for case in select_cases("diopiCopyInp", "full") if case.label == "float32-to-float16"]
    (mutant,) = [mutant for mutant in underflow_mutants("diopiCopyInp") if mutant.name == FLUSHED_MOVES]
    result = run_mutant(mutant, [compute_baseline_case(lookup("diopiCopyInp"), case)])
    assert result.effects == {Effect.not_applicable: 1}
