"""Faults of size: what they do, and that large cases catch them."""

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline.evaluate import compute_baseline_case
from diopi_test.baseline.records import BaselineCase
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.cases.model import Case, TensorSpec
from diopi_test.quality.audit import audit_function
from diopi_test.quality.audit.fault import Answer, Effect
from diopi_test.quality.audit.size import ROWS, TILE, size_faults
from diopi_test.quality.audit.summing import BLOCK, of_first_block, of_long_sums_in


def made(function: str, shape: tuple[int, ...], layout: Layout = contiguous, **attributes: object) -> BaselineCase:
    case = Case("float32", Dtype.float32, {"input": TensorSpec(shape, Dtype.float32, layout=layout), **attributes})
    return compute_baseline_case(lookup(function), case)


def wrong_places(fault: str, case: BaselineCase) -> tuple[Effect, list[int]]:
    """What a fault does, and which elements of the result it changes."""
    answer, right = Answer.right(case), Answer.right(case)
    effect = {one.name: one for one in size_faults(case.function)}[fault].corrupt(answer)
    ((wrong,),) = answer.results.values()
    ((array,),) = right.results.values()
    bits = np.dtype(f"u{array.dtype.itemsize}")
    return effect, np.flatnonzero(wrong.view(bits).reshape(-1) != array.view(bits).reshape(-1)).tolist()


@pytest.mark.parametrize(
    ("fault", "shape", "places"),
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
        ("offsets of the result through uint16", (65_536,), []),
    ],
)
def test_which_elements_of_a_result_are_wrong(fault: str, shape: tuple[int, ...], places: list[int]) -> None:
    effect, found = wrong_places(fault, made("diopiSin", shape))
    assert found == places
    assert (effect is Effect.shown) == bool(places)


def test_what_is_beyond_an_offset_is_not_written_and_what_it_wraps_to_is_wrong() -> None:
    effect, found = wrong_places("offsets of the result through uint16", made("diopiSin", (65_540,)))
    assert effect is Effect.shown
    assert found == [0, 1, 2, 3, *range(65_536, 65_540)]


@pytest.mark.parametrize(("step", "effect"), [(2**22, Effect.absent), (2**23, Effect.shown)])
def test_offsets_of_inputs_that_float32_does_not_hold(step: int, effect: Effect) -> None:
    case = made("diopiSin", (3, 2), strides(step, 1))
    fault = {one.name: one for one in size_faults("diopiSin")}["offsets of inputs through float32"]
    assert fault.corrupt(Answer.right(case)) is effect


@pytest.mark.parametrize(("count", "effect"), [(TILE, Effect.absent), (TILE + 1, Effect.shown)])
def test_nans_are_lost_where_there_are_many_elements(count: int, effect: Effect) -> None:
    values = np.where(np.arange(count) == 7, np.nan, 1.0)
    spec = TensorSpec((count,), Dtype.float32, lambda rng, count, dtype: values)
    case = compute_baseline_case(lookup("diopiSin"), Case("float32", Dtype.float32, {"input": spec}))
    fault = {one.name: one for one in size_faults("diopiSin")}["NaNs among many elements lost"]
    assert fault.corrupt(Answer.right(case)) is effect


def test_sums_of_which_only_a_block_is_added() -> None:
    ones = np.ones((3, BLOCK + 5))
    assert np.asarray(of_first_block(ones).sum(1)).tolist() == [BLOCK] * 3
    assert np.asarray(of_first_block(ones) @ ones.T).tolist() == [[BLOCK] * 3] * 3
    assert np.asarray(of_first_block(np.ones((3, BLOCK))).sum(1)).tolist() == [BLOCK] * 3


def test_long_sums_stop_growing_in_half_precision() -> None:
    ones = np.ones((2, 5000))
    assert np.asarray(of_long_sums_in(Dtype.float16, ones).sum(1)).tolist() == [2048.0] * 2
    assert np.asarray(of_long_sums_in(Dtype.float16, np.ones((2, BLOCK))).sum(1)).tolist() == [BLOCK] * 2
    assert float(np.asarray(of_long_sums_in(Dtype.bfloat16, ones) @ ones.T)[0, 0]) < 5000


@pytest.mark.parametrize("function", ["diopiNegInp", "diopiMean", "diopiBernoulli"])
def test_large_cases_catch_all_faults_of_size(function: str) -> None:
    audit = audit_function(function, "large")
    assert [trial.fault for trial in audit.survivors] == []
    assert audit.applicable
