"""Caching mutants: which calls reveal them, and in which order."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import choice, integer_values
from diopi_test.cases.layouts import Layout, contiguous, transposed
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.oracle.reference import find_reference
from diopi_test.quality.mutation.caching import (
    RESULT,
    STRIDES,
    TYPES,
    CachedValue,
    caching_mutants,
    remember_first_call,
)
from diopi_test.quality.mutation.matrix import MutantResult, MutationReport, run_mutant, run_mutation_tests
from diopi_test.quality.mutation.mutant import Effect, Mutant, SimulatedCall

pytestmark = pytest.mark.usefixtures("without_soak_tests")

KIND, ORDER = "kind of scalar cached from an earlier call", "order of tensors cached from an earlier call"


def make_cases(function: str, *cases: Case) -> list[BaselineCase]:
    """Return computed cases of a function."""
    return [compute_baseline_case(lookup(function), case) for case in cases]


def run_caching_mutant(function: str, name: str, cases: Sequence[BaselineCase]) -> MutantResult:
    """Return the result of the mutant of this name in calls in this order."""
    return run_mutant(next(mutant for mutant in caching_mutants(function) if mutant.name == name), cases)


def softmax(label: str, dim: int, dtype: Dtype = Dtype.float32, shape: tuple[int, ...] = (4, 4)) -> Case:
    """Return a case of softmax along an axis."""
    return Case(f"{dtype.name}-{label}", dtype, {"input": TensorSpec(shape, dtype), "dim": dim})


def power(label: str, exponent: float) -> Case:
    """Return a case of a power with an integer base."""
    return Case(
        f"int32-{label}",
        Dtype.int32,
        {"input": TensorSpec((5,), Dtype.int32, integer_values(1, 9)), "exponent": exponent},
    )


def product(label: str, *shapes: tuple[int, ...]) -> Case:
    """Return a case of a product of two tensors."""
    names = ("input", "other")
    tensors = {name: TensorSpec(shape, Dtype.float32) for name, shape in zip(names, shapes, strict=True)}
    return Case(f"float32-{label}", Dtype.float32, tensors)


def difference(label: str, *shapes: tuple[int, ...]) -> Case:
    """Return a case of a difference of two tensors."""
    case = product(label, *shapes)
    return replace(case, arguments={**case.arguments, "alpha": 1})


def floor(label: str, layout: Layout) -> Case:
    """Return a case of floor with this layout."""
    input = TensorSpec((3, 4), Dtype.float32, integer_values(-99, 99), layout=layout)
    return Case(f"float32-{label}", Dtype.float32, {"input": input})


def test_two_calls_with_equal_shapes_reveal_a_cached_attribute() -> None:
    mutant = "dim cached from an earlier call"
    first, second = make_cases("diopiSoftmax", softmax("rows", 1), softmax("columns", 0))
    result = run_caching_mutant("diopiSoftmax", mutant, [first, second])
    assert (result.killed_by, result.earlier) == ((second.label, ("values",)), first.label)
    assert not run_caching_mutant("diopiSoftmax", mutant, [second]).change_count
    other_shape = make_cases("diopiSoftmax", softmax("columns", 0, shape=(4, 5)))
    assert not run_caching_mutant("diopiSoftmax", mutant, [first, *other_shape]).change_count


def test_only_the_later_call_reveals_a_cached_attribute() -> None:
    mutant = "dim cached from an earlier call"
    first, second = make_cases("diopiSoftmax", softmax("rows", 1), softmax("columns", 0))
    assert run_caching_mutant("diopiSoftmax", mutant, [second, first]).killed_by == (first.label, ("values",))


def test_two_calls_with_equal_shapes_reveal_a_cached_element_type() -> None:
    cases = make_cases("diopiSoftmax", softmax("rows", 1, Dtype.float16), softmax("rows", 1, Dtype.float64))
    assert run_caching_mutant("diopiSoftmax", TYPES, cases).killed_by == ("float64-rows", ("values",))
    assert not run_caching_mutant("diopiSoftmax", TYPES, cases[1:]).change_count


def test_two_calls_with_equal_numbers_reveal_a_cached_kind_of_scalar() -> None:
    """A plan for 2.0 computes floating-point numbers, which the integer result for 2 can't store: the call fails."""
    floating, integral = make_cases("diopiPow", power("as-float", 2.0), power("as-int", 2))
    killed_by = run_caching_mutant("diopiPow", KIND, [floating, integral]).killed_by
    assert killed_by is not None
    assert (killed_by[0], killed_by[1][0].partition(":")[0]) == ("int32-as-int", "ErrorOccurred")
    cubes = make_cases("diopiPow", power("cube", 3.0))
    assert not run_caching_mutant("diopiPow", KIND, [*cubes, integral]).change_count


def test_two_layouts_reveal_cached_strides() -> None:
    cases = make_cases("diopiFloorInp", floor("row-major", contiguous), floor("column-major", transposed))
    assert run_caching_mutant("diopiFloorInp", STRIDES, cases).killed_by == ("float32-column-major", ("values",))
    assert not run_caching_mutant("diopiFloorInp", STRIDES, cases[:1]).change_count


def test_layout_check_reveals_cached_strides() -> None:
    case = next(case for case in select_cases("diopiSin", "full") if case.label == "float32-matrix")
    assert run_caching_mutant("diopiSin", STRIDES, make_cases("diopiSin", case)).killed_by == (
        "float32-matrix",
        ("layout",),
    )


def test_other_data_reveals_a_cached_result() -> None:
    cases = make_cases("diopiSoftmax", softmax("rows", 1), softmax("rows-again", 1))
    assert run_caching_mutant("diopiSoftmax", RESULT, cases).killed_by == ("float32-rows-again", ("values",))
    columns = make_cases("diopiSoftmax", softmax("columns", 0))
    assert not run_caching_mutant("diopiSoftmax", RESULT, [cases[0], *columns]).change_count


def test_swapped_shapes_reveal_a_cached_order_of_tensors() -> None:
    first, second = make_cases("diopiSub", difference("row", (4, 5), (5,)), difference("row-by", (5,), (4, 5)))
    assert run_caching_mutant("diopiSub", ORDER, [first, second]).killed_by == ("float32-row-by", ("values",))
    assert not run_caching_mutant("diopiSub", ORDER, [first]).change_count
    commuting = make_cases("diopiMul", product("row", (4, 5), (5,)), product("row-by", (5,), (4, 5)))
    assert not run_caching_mutant("diopiMul", ORDER, commuting).change_count


@pytest.mark.parametrize(
    ("first", "second"), [("diopiSin", "diopiCos"), ("diopiSqrt", "diopiRsqrt"), ("diopiSum", "diopiMean")]
)
def test_two_functions_with_equal_shapes_reveal_a_key_without_the_function(first: str, second: str) -> None:
    """The mutant computes both functions with the reference of the function that was called first."""

    def other_function(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
        call.reference = find_reference(earlier.case.function)
        return call.recompute()

    cases = [
        compute_baseline_case(lookup(name), case) for name in (first, second) for case in select_cases(name, "smoke")
    ]
    part = CachedValue("function forgotten", lambda case: case.label, other_function)
    result = run_mutant(Mutant(name=part.kind, make_caching=lambda: remember_first_call(part)), cases)
    assert result.killed_by == (cases[-len(select_cases(second, "smoke"))].label, ("values",))


def test_cache_is_empty_at_the_start_of_each_run() -> None:
    mutant = next(mutant for mutant in caching_mutants("diopiSoftmax") if mutant.name == RESULT)
    cases = make_cases("diopiSoftmax", softmax("rows", 1), softmax("rows-again", 1))
    assert run_mutant(mutant, cases[:1]).change_count == 0
    assert run_mutant(mutant, cases[1:]).change_count == 0


def test_smoke_selection_includes_the_earlier_call() -> None:
    result = MutantResult(
        mutant="dim cached",
        kind="cached",
        parameter="dim",
        effects={Effect.changed: 1},
        killed_by=("float32-columns", ("values",)),
        earlier="float32-rows",
    )
    assert MutationReport("diopiSoftmax", [result]).smoke_selection == ["float32-columns", "float32-rows"]
    assert MutationReport("diopiSoftmax", [result], ["float32-rows"]).smoke_selection == ["float32-columns"]


def test_values_that_no_two_cases_distinguish_are_reported_as_not_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    def select(function: str, level: str) -> Sequence[Case]:
        return [softmax("rows", 1), softmax("columns", 0, shape=(4, 5))]

    monkeypatch.setattr("diopi_test.quality.mutation.matrix.select_cases", select)
    not_covered = {result.mutant for result in run_mutation_tests("diopiSoftmax").not_covered}
    assert {"dim cached from an earlier call", RESULT, TYPES, STRIDES} <= not_covered


@pytest.mark.parametrize(
    "function", ["diopiAddScalar", "diopiMulScalar", "diopiPow", "diopiPowScalar", "diopiRemainder", "diopiClampScalar"]
)
def test_cases_kill_cached_kind_of_scalar_where_it_determines_the_type(function: str) -> None:
    cases = make_cases(function, *select_cases(function, "full"))
    assert run_caching_mutant(function, KIND, cases).killed_by


@pytest.mark.parametrize("function", ["diopiSin", "diopiFloorInp", "diopiCat", "diopiSgd", "diopiPermute"])
def test_cases_kill_cached_results_and_strides(function: str) -> None:
    cases = make_cases(function, *select_cases(function, "full"))
    assert run_caching_mutant(function, RESULT, cases).killed_by
    assert run_caching_mutant(function, STRIDES, cases).killed_by


@pytest.mark.parametrize("function", ["diopiMm", "diopiBmm", "diopiMatmul", "diopiSub", "diopiWhere"])
def test_cases_kill_cached_order_of_tensors(function: str) -> None:
    assert run_caching_mutant(function, ORDER, make_cases(function, *select_cases(function, "full"))).killed_by


def test_equal_data_do_not_reveal_a_cached_result() -> None:
    ones = TensorSpec((3,), Dtype.float32, choice([1.0]))
    cases = make_cases("diopiSin", *(Case(f"float32-{n}", Dtype.float32, {"input": ones}) for n in ("one", "other")))
    assert run_caching_mutant("diopiSin", RESULT, cases).effects == {Effect.not_applicable: 1, Effect.equivalent: 1}
