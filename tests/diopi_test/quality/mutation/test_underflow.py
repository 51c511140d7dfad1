"""Only numbers near the least normal number kill the mutant that flushes subnormal differences to zero."""

import numpy as np

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import Domain, normal, tiny_multiples
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.quality.mutation.matrix import MutantResult, run_mutant
from diopi_test.quality.mutation.underflow import flush_differences, underflow_mutants


def run_on_distances(p: float, first: Domain, second: Domain) -> MutantResult:
    """Run a case of `diopiCdist` with data from these domains against the mutant."""
    rows = {name: TensorSpec((4, 5), Dtype.float32, domain) for name, domain in (("input1", first), ("input2", second))}
    case = Case("float32-made-up", Dtype.float32, {**rows, "p": p, "compute_mode": None})
    (mutant,) = underflow_mutants()
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
