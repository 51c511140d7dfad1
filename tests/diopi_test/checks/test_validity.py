"""Functions with several valid results: every valid result passes, and each kind of invalid result is rejected."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diopi_impl import Numerics
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Error
from diopi_test.baseline import store
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.arithmetic.declared_case import derive_declared_case
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, Expected
from diopi_test.quality.diagnoses import run_cases_on_mutant
from diopi_test.quality.mutation.matrix import generate_mutants
from diopi_test.quality.stub_vendor import StubVendor
from diopi_test.run.run_case import run_case
from lib_rt import Context
from lib_rt.dtypes import to_numpy
from tests.helpers.faulty import FaultyVendor

nan = float("nan")

Array = np.ndarray[Any, Any]
Results = dict[str, Any]


def literal(values: Any, dtype: Dtype = Dtype.float32) -> TensorSpec:
    """Return a tensor argument with these values."""
    array = np.array(values)
    return TensorSpec(array.shape, dtype, compute=lambda _: array)


def case_of(function: str, **arguments: Any) -> BaselineCase:
    """Return a computed case with these arguments."""
    return compute_baseline_case(lookup(function), Case("float32-ties", Dtype.float32, arguments))


def results_needing_validator(case: BaselineCase) -> list[str]:
    """Return the names of the results that need a validator."""
    return [
        name for name, expected in case.expected.items() if isinstance(expected, Expected) and expected.needs_validator
    ]


def outcome_of(case: BaselineCase, **results: Any) -> Outcome:
    """Return the outcome if a vendor returns these results, and the expected ones for the others."""

    def write_results(arguments: dict[str, Any]) -> None:
        for name, value in results.items():
            target = arguments[name]
            tensor = target.value if hasattr(target, "value") else target
            tensor.write(np.array(value, to_numpy(tensor.dtype)))

    vendor = FaultyVendor("answering", write_results)
    with vendor.open_device() as device:
        return run_case(vendor, device, case)


def assert_accepted(case: BaselineCase, **results: Any) -> None:
    """Assert that a case passes if the vendor returns these results."""
    outcome = outcome_of(case, **results)
    assert outcome.verdict is Verdict.passed, outcome.message


def assert_rejected(case: BaselineCase, words: str, **results: Any) -> None:
    """Assert that a case fails with these words if the vendor returns these results."""
    outcome = outcome_of(case, **results)
    assert outcome.verdict is Verdict.failed
    assert words in outcome.message


TIES = [3.0, 1.0, 3.0, nan, 1.0, 2.0]


def sort(values: Any = TIES, descending: bool = False, stable: bool | None = None) -> BaselineCase:
    """Return a case of `diopiSort`."""
    return case_of("diopiSort", input=literal(values), dim=0, descending=descending, pStable=stable)


def test_only_sorts_with_ties_need_the_validator() -> None:
    assert results_needing_validator(sort()) == ["values", "indices"]
    assert results_needing_validator(sort(stable=True)) == results_needing_validator(sort([3.0, 1.0, nan, 2.0])) == []


def test_equal_elements_may_have_any_order() -> None:
    assert_accepted(sort(), indices=[1, 4, 5, 0, 2, 3])
    assert_accepted(sort(), indices=[4, 1, 5, 2, 0, 3])
    assert_accepted(sort(descending=True), indices=[3, 2, 0, 5, 4, 1])
    assert_accepted(sort([nan, 1.0, nan]), indices=[1, 2, 0])
    assert_rejected(sort(stable=True), "values: indices", indices=[4, 1, 5, 0, 2, 3])


WRONG_SORTS: list[tuple[str, Results]] = [
    ("not the elements of input at the positions in indices", {"indices": [1, 4, 0, 5, 2, 3]}),
    ("not the elements of input at the positions in indices", {"values": [1, 1, 2, 3, 3.5, nan]}),
    ("occurs more than once", {"indices": [1, 1, 5, 0, 2, 3]}),
    ("expected a position from 0 to 5", {"indices": [1, 4, 5, 0, 2, -3]}),
    ("expected a position from 0 to 5", {"indices": [1, 4, 5, 0, 2, 6]}),
    ("not in order", {"values": [1, 1, 3, 2, 3, nan], "indices": [1, 4, 0, 5, 2, 3]}),
    ("not in order", {"values": [nan, 1, 1, 2, 3, 3], "indices": [3, 1, 4, 5, 0, 2]}),
    ("not in order", {"values": [nan, 3, 3, 2, 1, 1], "indices": [3, 2, 0, 5, 4, 1]}),
]


@pytest.mark.parametrize(("words", "results"), WRONG_SORTS)
def test_wrong_sorts_are_rejected(words: str, results: Results) -> None:
    assert_rejected(sort(), words, **results)


def test_zeros_of_both_signs_may_have_any_order_but_keep_their_signs() -> None:
    case = sort([0.0, -1.0, -0.0])
    assert_accepted(case, values=[-1.0, -0.0, 0.0], indices=[1, 2, 0])
    assert_rejected(case, "at the positions in indices", values=[-1.0, 0.0, 0.0], indices=[1, 2, 0])


def test_zeros_of_a_vendor_without_signed_zeros_may_lose_their_signs() -> None:
    case = derive_declared_case(sort([0.0, -1.0, -0.0]), Numerics(name="no-signs", signed_zeros="ignore"))
    assert_accepted(case, values=[-1.0, 0.0, 0.0], indices=[1, 2, 0])
    assert_rejected(case, "at the positions in indices", values=[-1.0, 0.0, 1.0], indices=[1, 2, 0])


def test_sorts_of_a_matrix_are_validated_row_by_row() -> None:
    case = case_of("diopiSort", input=literal([[2, 2], [1, 2], [2, 1]]), dim=-2, descending=False, pStable=False)
    assert_accepted(case, indices=[[1, 2], [2, 1], [0, 0]])
    assert_rejected(case, "occurs more than once along axis -2", indices=[[1, 2], [2, 1], [2, 0]])


def argsort(stable: bool = False) -> BaselineCase:
    """Return a case of `diopiArgsort`."""
    return case_of("diopiArgsort", input=literal([2.0, 1.0, 2.0]), stable=stable, dim=None, descending=True)


def test_argsort_may_return_equal_elements_in_any_order() -> None:
    assert_accepted(argsort(), out=[2, 0, 1])
    assert_accepted(argsort(), out=[0, 2, 1])
    assert_rejected(argsort(), "not in order", out=[2, 1, 0])
    assert_rejected(argsort(), "occurs more than once", out=[0, 0, 1])
    assert_rejected(argsort(stable=True), "values", out=[2, 0, 1])


def topk(k: int, sorted: bool = True, largest: bool = True, values: Any = TIES) -> BaselineCase:
    """Return a case of `diopiTopk`."""
    return case_of("diopiTopk", input=literal(values), k=k, dim=0, largest=largest, sorted=sorted)


def test_topk_may_select_any_of_equal_elements() -> None:
    case = topk(2)
    assert_accepted(case, indices=[3, 0])
    assert_accepted(case, indices=[3, 2])
    assert_rejected(case, "the elements along axis 0 differ", values=[nan, 2], indices=[3, 5])
    assert_rejected(case, "not in order", values=[3, nan], indices=[0, 3])
    assert_rejected(case, "not the elements of input at the positions in indices", indices=[3, 4])
    assert_rejected(topk(3), "occurs more than once", values=[nan, 3, 3], indices=[3, 0, 0])


def test_an_unsorted_topk_may_have_any_order() -> None:
    distinct = [3.0, 1.0, 2.0, 5.0]
    case = topk(2, sorted=False, values=distinct)
    assert_accepted(case, values=[5, 3], indices=[3, 0])
    assert_accepted(case, values=[3, 5], indices=[0, 3])
    assert_rejected(case, "differ", values=[2, 5], indices=[2, 3])
    smallest = topk(2, sorted=False, largest=False, values=distinct)
    assert_accepted(smallest, values=[2, 1], indices=[2, 1])
    assert_rejected(topk(2, values=distinct), "values: values", values=[3, 5], indices=[0, 3])


def unique(values: Any, dim: int | None = None) -> BaselineCase:
    """Return a case of `diopiUnique`."""
    arguments = {"input": literal(values), "dim": dim, "sorted": True, "return_counts": True}
    return case_of("diopiUnique", **arguments)


def test_unique_may_return_a_zero_of_either_sign() -> None:
    case = unique([0.0, 2.0, -0.0])
    assert results_needing_validator(case) == ["out"]
    assert_accepted(case, out=[0.0, 2.0])
    assert_accepted(case, out=[-0.0, 2.0])
    assert_rejected(case, "not the distinct values in order", out=[2.0, 0.0])
    assert_rejected(case, "not the distinct values in order", out=[0.0, 2.5])
    assert_rejected(case, "values: counts", counts=[1, 2])
    assert_rejected(case, "values: indices", indices=[0, 1, 1])
    assert results_needing_validator(unique([-0.0, 2.0, -0.0])) == []


def test_distinct_slices_are_slices_of_the_input() -> None:
    case = unique([[0.0, -0.0], [1.0, 2.0], [-0.0, 0.0]], 0)
    assert_accepted(case, out=[[0.0, -0.0], [1.0, 2.0]])
    assert_accepted(case, out=[[-0.0, 0.0], [1.0, 2.0]])
    assert_rejected(case, "not elements of the input", out=[[0.0, 0.0], [1.0, 2.0]])


def index_put(index: Any) -> BaselineCase:
    """Return a case of `diopiIndexPut`."""
    values, indices = literal([1.0, 2.0, 3.0]), [literal(index, Dtype.int64)]
    return case_of("diopiIndexPut", input=literal([7.0] * 4), values=values, indices=indices, accumulate=False)


def test_any_of_several_values_for_a_position_may_be_written_last() -> None:
    case = index_put([2, 0, -2])
    assert_accepted(case, out=[2, 7, 1, 7])
    assert_accepted(case, out=[2, 7, 3, 7])
    for invalid in ([2, 7, 2, 7], [2, 7, 7, 7], [7, 7, 1, 7], [2, 1, 1, 7], [2, 7, 4, 7]):
        assert_rejected(case, "one of the values written there", out=invalid)
    assert results_needing_validator(index_put([2, 0, 1])) == []


def test_derived_functions_share_the_validator_of_their_base() -> None:
    index, src = literal([[0, 0, 1]], Dtype.int64), literal([[1.0, 2.0, 3.0, 4.0]])
    arguments = {"input": literal([[7.0, 8.0, 9.0]]), "dim": 1, "src": src, "index": index, "reduce": None}
    case = case_of("diopiScatterInp", **arguments)
    assert_accepted(case, input=[[1, 3, 9]])
    assert_accepted(case, input=[[2, 3, 9]])
    for invalid in ([[3, 3, 9]], [[1, 3, 4]], [[7, 3, 9]]):
        assert_rejected(case, "one of the values written there", input=invalid)


def test_validator_ignores_results_with_only_one_valid_value() -> None:
    case = sort()
    findings = {finding.check: finding for finding in outcome_of(case, indices=[0] * 6).check_results}
    assert findings["values"].passed and not findings["validity"].passed
    findings = {finding.check: finding for finding in outcome_of(sort(stable=True), indices=[0] * 6).check_results}
    assert not findings["values"].passed and "validity" not in findings


@pytest.mark.parametrize(
    ("kind", "problems"),
    [("all elements zero", ("zeros",)), ("state not updated", ("unchanged",)), ("every element repeated", ())],
)
def test_random_numbers_that_are_not_drawn_are_named(kind: str, problems: tuple[str, ...]) -> None:
    (selected,) = (case for case in select_cases("diopiBernoulliInp", "smoke") if case.label == "float32-sample")
    case = compute_baseline_case(lookup("diopiBernoulliInp"), selected)
    mutant = next(
        mutant for mutant in generate_mutants("diopiBernoulliInp", [case]) if kind in (mutant.kind, mutant.name)
    )
    (record,) = run_cases_on_mutant(mutant, [case])
    (validity,) = (check for check in record.checks if check.check == "validity")
    assert (validity.passed, validity.problems) == (False, problems)


def test_stored_case_keeps_needs_validator(tmp_path: Path) -> None:
    path = tmp_path / "diopiSort.h5"
    store.write_baseline_file(path, "diopiSort", [sort()], store.Provenance("full", "key", {}))
    (stored_case,) = store.BaselineFile(path)
    assert results_needing_validator(stored_case) == ["values", "indices"]


class Idle(StubVendor):
    """A vendor that returns success without computing anything."""

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        return Error.Success


@pytest.mark.parametrize("case", [sort(), sort(descending=True), argsort(), topk(2), index_put([2, 0, 2])])
def test_unwritten_results_are_rejected(case: BaselineCase) -> None:
    vendor = Idle("idle", "1", HostRuntime().functions(), host_addressable=True)
    with vendor.open_device() as device:
        assert run_case(vendor, device, case).verdict is Verdict.failed
