"""Mutants that depend on the size: which elements they change, and that large cases kill them."""

import numpy as np
import pytest
from sampling import sampled

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation import run_mutation_tests
from diopi_test.quality.mutation.mutant import Effect, SimulatedCall
from diopi_test.quality.mutation.size import COLUMNS, MATRIX_ROWS, ROWS, TILE, size_mutants
from diopi_test.quality.mutation.summation import BLOCK, add_first_block_only, round_block_sums_to


def make_case(function: str, shape: tuple[int, ...], layout: Layout = contiguous, **attributes: object) -> BaselineCase:
    """Compute a float32 case of a function with one tensor of this shape."""
    case = Case("float32", Dtype.float32, {"input": TensorSpec(shape, Dtype.float32, layout=layout), **attributes})
    return compute_baseline_case(lookup(function), case)


def find_changed_places(mutant: str, case: BaselineCase) -> tuple[Effect, list[int]]:
    """Return the effect of a mutant and the places of the result's elements that it changes."""
    call, expected = SimulatedCall.from_expected(case), SimulatedCall.from_expected(case)
    effect = {m.name: m for m in size_mutants(case.function)}[mutant].corrupt(call)
    ((changed,),) = call.results.values()
    ((array,),) = expected.results.values()
    bits = np.dtype(f"u{array.dtype.itemsize}")
    return effect, np.flatnonzero(changed.view(bits).reshape(-1) != array.view(bits).reshape(-1)).tolist()


@pytest.mark.parametrize(
    ("mutant", "shape", "places"),
    [
        ("one element at k · 2000 − 1 wrong", (4500,), [3999]),
        ("one element at k · 2000 − 1 wrong", (1999,), []),
        ("one element at k · 4096 − 1 wrong", (2, 4096), [8191]),
        ("one element at k · 65536 wrong", (65_537,), [65_536]),
        ("one element at k · 65536 wrong", (65_536,), []),
        ("last partial tile not written", (TILE + 3,), [TILE, TILE + 1, TILE + 2]),
        ("last partial tile not written", (2 * TILE,), []),
        (f"rows from {ROWS} on not written", (ROWS + 1, 2), [2 * ROWS, 2 * ROWS + 1]),
        (f"rows from {ROWS} on not written", (ROWS, 2), []),
        (f"columns from {COLUMNS} on not written", (2, COLUMNS + 1), [COLUMNS, 2 * COLUMNS + 1]),
        (f"columns from {COLUMNS} on not written", (COLUMNS,), []),
        (f"matrix rows from {MATRIX_ROWS} on not written", (2, 4097, 1), [MATRIX_ROWS, 8193]),
        (f"matrix rows from {MATRIX_ROWS} on not written", (MATRIX_ROWS, 2), []),
        ("offsets of the result stored in 20 bits", (2**20 + 1,), [0, 2**20]),
        ("offsets of the result stored in uint16", (65_536,), []),
    ],
)
def test_mutant_changes_these_elements_of_a_result(mutant: str, shape: tuple[int, ...], places: list[int]) -> None:
    effect, found = find_changed_places(mutant, make_case("diopiSin", shape))
    assert found == places
    assert (effect is Effect.changed) == bool(places)


def test_offsets_that_wrap_around_overwrite_the_first_elements() -> None:
    effect, found = find_changed_places("offsets of the result stored in uint16", make_case("diopiSin", (65_540,)))
    assert effect is Effect.changed
    assert found == [0, 1, 2, 3, *range(65_536, 65_540)]


@pytest.mark.parametrize(("step", "effect"), [(2**22, Effect.not_applicable), (2**23, Effect.changed)])
def test_offsets_that_float32_can_not_represent_read_other_inputs(step: int, effect: Effect) -> None:
    case = make_case("diopiSin", (3, 2), strides(step, 1))
    mutant = {m.name: m for m in size_mutants("diopiSin")}["offsets of inputs stored in float32"]
    assert mutant.corrupt(SimulatedCall.from_expected(case)) is effect


@pytest.mark.parametrize(("count", "effect"), [(TILE, Effect.not_applicable), (TILE + 1, Effect.changed)])
def test_nans_are_replaced_in_large_tensors_only(count: int, effect: Effect) -> None:
    values = np.where(np.arange(count) == 7, np.nan, 1.0)
    spec = TensorSpec((count,), Dtype.float32, lambda rng, count, dtype: values)
    case = compute_baseline_case(lookup("diopiSin"), Case("float32", Dtype.float32, {"input": spec}))
    mutant = {m.name: m for m in size_mutants("diopiSin")}["NaNs in large tensors replaced by 0"]
    assert mutant.corrupt(SimulatedCall.from_expected(case)) is effect


def test_first_block_mutant_adds_only_the_first_block() -> None:
    ones = np.ones((3, BLOCK + 5))
    assert np.asarray(add_first_block_only(ones).sum(1)).tolist() == [BLOCK] * 3
    assert np.asarray(add_first_block_only(ones) @ ones.T).tolist() == [[BLOCK] * 3] * 3
    assert np.asarray(add_first_block_only(np.ones((3, BLOCK))).sum(1)).tolist() == [BLOCK] * 3


def test_long_sums_stop_growing_in_half_precision() -> None:
    ones = np.ones((2, 5000))
    assert np.asarray(round_block_sums_to(Dtype.float16, ones).sum(1)).tolist() == [2048.0] * 2
    assert np.asarray(round_block_sums_to(Dtype.float16, np.ones((2, BLOCK))).sum(1)).tolist() == [BLOCK] * 2
    assert float(np.asarray(round_block_sums_to(Dtype.bfloat16, ones) @ ones.T)[0, 0]) < 5000


@pytest.mark.parametrize(
    "function",
    [
        *sampled(["diopiNegInp", "diopiMean"], 0, slow=1),
        pytest.param("diopiBernoulli", marks=pytest.mark.exhaustive),  # twenty times the time of the others
    ],
)
def test_large_cases_kill_all_mutants_that_depend_on_the_size(function: str) -> None:
    report = run_mutation_tests(function, "large")
    assert [result.mutant for result in report.survivors] == []
    assert report.applicable
