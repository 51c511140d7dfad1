"""Cases that differ from another case in one respect: what changes, what stays, and their order."""

from collections.abc import Sequence

import pytest

from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype
from diopi_test.cases.arithmetic.kinds import UNUSED_SHAPE
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import Expected


def cases(function: str, *labels: str) -> list[Case]:
    """Return the cases of a function with these labels."""
    return [next(case for case in select_cases(function, "full") if case.label == label) for label in labels]


def result_types(function: str, chosen: Sequence[Case]) -> list[Dtype]:
    """Return the element types of the results of these cases."""
    results = [compute_baseline_case(lookup(function), case).expected["out"] for case in chosen]
    return [result.dtype for result in results if isinstance(result, Expected)]


def test_smoke_case_is_repeated_with_other_data() -> None:
    case, repeated_case = cases("diopiSin", "float32-matrix", "float32-matrix-again")
    assert {**repeated_case.arguments} == {**case.arguments}
    first, second = (
        compute_baseline_case(lookup("diopiSin"), repetition).arguments["input"].values
        for repetition in (case, repeated_case)
    )
    assert (first != second).any()


def test_repetition_of_an_in_place_case_changes_the_layout() -> None:
    case, repetition = cases("diopiSinInp", "float32-matrix", "float32-matrix-again")
    assert case.arguments["input"].layout is not repetition.arguments["input"].layout
    assert case.arguments["input"].shape == repetition.arguments["input"].shape


def test_random_functions_have_no_repetition() -> None:
    assert not [case for case in select_cases("diopiNormal", "full") if case.label.endswith("-again")]


@pytest.mark.parametrize("function", ["diopiPow", "diopiPowScalar", "diopiMulScalar", "diopiRemainder"])
def test_floats_come_before_equal_integers(function: str) -> None:
    labels = [case.label for case in select_cases(function, "full")]
    pair = ["int32-number-as-float", "int32-number-as-int"]
    assert labels.index(pair[0]) < labels.index(pair[1])
    floats, integers = cases(function, *pair)
    numbers = [name for name, value in floats.arguments.items() if not isinstance(value, TensorSpec)]
    assert [floats.arguments[name] for name in numbers] == [integers.arguments[name] for name in numbers]
    assert result_types(function, [floats, integers]) == [Dtype.float32, Dtype.int32]


def test_integers_come_before_equal_truth_values() -> None:
    pair = cases("diopiMulScalar", "bool-number-as-int", "bool-number-as-bool")
    assert result_types("diopiMulScalar", pair) == [Dtype.int64, Dtype.bool]


@pytest.mark.parametrize("function", ["diopiMulInpScalar", "diopiEqScalar", "diopiSoftmax"])
def test_scalar_kinds_are_not_varied_if_they_do_not_affect_the_type(function: str) -> None:
    assert not [case for case in select_cases(function, "full") if "number-as" in case.label]


def test_unused_shape_occurs_only_in_cases_with_both_kinds() -> None:
    remaining = [case for case in select_cases("diopiMulScalar", "full") if "number-as" not in case.label]
    assert all(case.arguments["input"].shape != UNUSED_SHAPE for case in remaining)


CHANGED = [name for name, prototype in prototypes().items() if CaseFacts.declared_for(prototype).attribute_changes]


@pytest.mark.parametrize("function", CHANGED)
def test_changed_attributes_leave_the_tensors_unchanged(function: str) -> None:
    for label, changes in CaseFacts.declared_for(lookup(function)).attribute_changes.items():
        for change in changes:
            case, changed = cases(function, label, f"{label}-other-{'-and-'.join(change)}")
            assert {name for name, value in case.arguments.items() if value != changed.arguments[name]} == set(change)
