"""Faults of what is kept from an earlier call: what shows them, what doesn't, and in which order."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline.evaluate import compute_baseline_case
from diopi_test.baseline.records import BaselineCase
from diopi_test.cases.domains import choice, integer_values
from diopi_test.cases.layouts import Layout, contiguous, transposed
from diopi_test.cases.model import Case, TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.reference import find_reference
from diopi_test.quality.audit.fault import Answer, Effect, Fault
from diopi_test.quality.audit.kept import RESULT, STRIDES, TYPES, Part, keeping, kept_faults
from diopi_test.quality.audit.matrix import FunctionAudit, Trial, audit_function, try_fault

KIND, ORDER = "kind of scalar kept from an earlier call", "order of tensors kept from an earlier call"


def made(function: str, *cases: Case) -> list[BaselineCase]:
    return [compute_baseline_case(lookup(function), case) for case in cases]


def tried(function: str, fault: str, cases: Sequence[BaselineCase]) -> Trial:
    """What becomes of one fault in calls in this order."""
    return try_fault(next(one for one in kept_faults(function) if one.name == fault), cases)


def softmax(label: str, dim: int, dtype: Dtype = Dtype.float32, shape: tuple[int, ...] = (4, 4)) -> Case:
    return Case(f"{dtype.name}-{label}", dtype, {"input": TensorSpec(shape, dtype), "dim": dim})


def power(label: str, exponent: float) -> Case:
    return Case(
        f"int32-{label}",
        Dtype.int32,
        {"input": TensorSpec((5,), Dtype.int32, integer_values(1, 9)), "exponent": exponent},
    )


def product(label: str, *shapes: tuple[int, ...]) -> Case:
    names = ("input", "other")
    tensors = {name: TensorSpec(shape, Dtype.float32) for name, shape in zip(names, shapes, strict=True)}
    return Case(f"float32-{label}", Dtype.float32, tensors)


def difference(label: str, *shapes: tuple[int, ...]) -> Case:
    case = product(label, *shapes)
    return replace(case, arguments={**case.arguments, "alpha": 1})


def floor(label: str, layout: Layout) -> Case:
    input = TensorSpec((3, 4), Dtype.float32, integer_values(-99, 99), layout)
    return Case(f"float32-{label}", Dtype.float32, {"input": input})


def test_an_attribute_is_told_apart_by_two_calls_with_equal_shapes() -> None:
    kept = "dim kept from an earlier call"
    one, other = made("diopiSoftmax", softmax("rows", 1), softmax("columns", 0))
    trial = tried("diopiSoftmax", kept, [one, other])
    assert (trial.caught_by, trial.earlier) == ((other.label, ("values",)), one.label)
    assert not tried("diopiSoftmax", kept, [other]).shown
    elsewhere = made("diopiSoftmax", softmax("columns", 0, shape=(4, 5)))
    assert not tried("diopiSoftmax", kept, [one, *elsewhere]).shown


def test_what_is_kept_shows_in_the_later_call_only() -> None:
    kept = "dim kept from an earlier call"
    one, other = made("diopiSoftmax", softmax("rows", 1), softmax("columns", 0))
    assert tried("diopiSoftmax", kept, [other, one]).caught_by == (one.label, ("values",))


def test_an_element_type_is_told_apart_by_equal_shapes() -> None:
    cases = made("diopiSoftmax", softmax("rows", 1, Dtype.float16), softmax("rows", 1, Dtype.float64))
    assert tried("diopiSoftmax", TYPES, cases).caught_by == ("float64-rows", ("values",))
    assert not tried("diopiSoftmax", TYPES, cases[1:]).shown


def test_a_kind_of_scalar_is_told_apart_by_equal_numbers() -> None:
    """A plan for 2.0 makes floating numbers, which the integers asked for 2 can't hold: the call is refused."""
    floating, whole_number = made("diopiPow", power("as-float", 2.0), power("as-int", 2))
    caught_by = tried("diopiPow", KIND, [floating, whole_number]).caught_by
    assert caught_by is not None
    assert (caught_by[0], caught_by[1][0].partition(":")[0]) == ("int32-as-int", "ErrorOccurred")
    other = made("diopiPow", power("other", 3.0))
    assert not tried("diopiPow", KIND, [*other, whole_number]).shown


def test_strides_are_told_apart_by_two_layouts() -> None:
    cases = made("diopiFloorInp", floor("row-major", contiguous), floor("column-major", transposed))
    assert tried("diopiFloorInp", STRIDES, cases).caught_by == ("float32-column-major", ("values",))
    assert not tried("diopiFloorInp", STRIDES, cases[:1]).shown


def test_strides_are_told_apart_by_the_call_with_another_layout() -> None:
    case = next(case for case in select_cases("diopiSin", "full") if case.label == "float32-matrix")
    assert tried("diopiSin", STRIDES, made("diopiSin", case)).caught_by == ("float32-matrix", ("layout",))


def test_a_result_is_told_apart_by_other_data() -> None:
    cases = made("diopiSoftmax", softmax("rows", 1), softmax("rows-again", 1))
    assert tried("diopiSoftmax", RESULT, cases).caught_by == ("float32-rows-again", ("values",))
    other = made("diopiSoftmax", softmax("columns", 0))
    assert not tried("diopiSoftmax", RESULT, [cases[0], *other]).shown


def test_the_order_of_tensors_is_told_apart_by_shapes_the_other_way_round() -> None:
    one, other = made("diopiSub", difference("row", (4, 5), (5,)), difference("row-by", (5,), (4, 5)))
    assert tried("diopiSub", ORDER, [one, other]).caught_by == ("float32-row-by", ("values",))
    assert not tried("diopiSub", ORDER, [one]).shown
    commuting = made("diopiMul", product("row", (4, 5), (5,)), product("row-by", (5,), (4, 5)))
    assert not tried("diopiMul", ORDER, commuting).shown


@pytest.mark.parametrize(
    ("one", "other"), [("diopiSin", "diopiCos"), ("diopiSqrt", "diopiRsqrt"), ("diopiSum", "diopiMean")]
)
def test_keys_without_the_function_show_wherever_two_functions_get_equal_shapes(one: str, other: str) -> None:
    """A fault of a vendor, not of a function: the reference of the function that was called first answers for both."""

    def other_function(earlier: Answer, answer: Answer) -> Effect:
        answer.reference = find_reference(earlier.case.function)
        return answer.answer_to()

    cases = [compute_baseline_case(lookup(name), case) for name in (one, other) for case in select_cases(name, "smoke")]
    part = Part("function forgotten", lambda case: case.label, other_function)
    trial = try_fault(Fault(part.kind, keep=lambda: keeping(part)), cases)
    assert trial.caught_by == (cases[-len(select_cases(other, "smoke"))].label, ("values",))


def test_a_sequence_begins_anew_each_time() -> None:
    """Nothing is kept from one trial to the next."""
    fault = next(one for one in kept_faults("diopiSoftmax") if one.name == RESULT)
    cases = made("diopiSoftmax", softmax("rows", 1), softmax("rows-again", 1))
    assert try_fault(fault, cases[:1]).shown == 0
    assert try_fault(fault, cases[1:]).shown == 0


def test_the_smoke_level_needs_the_earlier_call_too() -> None:
    trial = Trial("dim kept", "kept", "dim", {Effect.shown: 1}, ("float32-columns", ("values",)), "float32-rows")
    assert FunctionAudit("diopiSoftmax", [trial]).smoke_selection == ["float32-columns", "float32-rows"]
    assert FunctionAudit("diopiSoftmax", [trial], ["float32-rows"]).smoke_selection == ["float32-columns"]


def test_what_no_two_cases_tell_apart_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(function: str, level: str) -> Sequence[Case]:
        return [softmax("rows", 1), softmax("columns", 0, shape=(4, 5))]

    monkeypatch.setattr("diopi_test.quality.audit.matrix.select_cases", chosen)
    indistinct = {trial.fault for trial in audit_function("diopiSoftmax").indistinct}
    assert {"dim kept from an earlier call", RESULT, TYPES, STRIDES} <= indistinct


@pytest.mark.parametrize(
    "function", ["diopiAddScalar", "diopiMulScalar", "diopiPow", "diopiPowScalar", "diopiRemainder", "diopiClampScalar"]
)
def test_kinds_of_scalars_are_told_apart_where_they_decide_the_type(function: str) -> None:
    cases = made(function, *select_cases(function, "full"))
    assert tried(function, KIND, cases).caught_by


@pytest.mark.parametrize("function", ["diopiSin", "diopiFloorInp", "diopiCat", "diopiSgd", "diopiPermute"])
def test_data_and_layouts_are_told_apart(function: str) -> None:
    cases = made(function, *select_cases(function, "full"))
    assert tried(function, RESULT, cases).caught_by
    assert tried(function, STRIDES, cases).caught_by


@pytest.mark.parametrize("function", ["diopiMm", "diopiBmm", "diopiMatmul", "diopiSub", "diopiWhere"])
def test_orders_of_tensors_are_told_apart(function: str) -> None:
    assert tried(function, ORDER, made(function, *select_cases(function, "full"))).caught_by


def test_ones_tell_no_results_apart() -> None:
    ones = TensorSpec((3,), Dtype.float32, choice([1.0]))
    cases = made("diopiSin", *(Case(f"float32-{n}", Dtype.float32, {"input": ones}) for n in ("one", "other")))
    assert tried("diopiSin", RESULT, cases).effects == {Effect.absent: 1, Effect.same: 1}
