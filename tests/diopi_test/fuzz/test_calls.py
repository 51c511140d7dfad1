"""Fuzzed calls of every function: a share of them is valid, and they vary."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from sampling import OPERATORS, sampled

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, MemoryFormat
from diopi_test.baseline import stability
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import choice
from diopi_test.cases.layouts import Strides
from diopi_test.fuzz.calls import cases
from diopi_test.fuzz.changes.element_types import change_types
from diopi_test.fuzz.changes.sizes import resize_case
from diopi_test.fuzz.knowledge import ValidCallKnowledge, knowledge_of
from diopi_test.fuzz.legal import IllegalError, compute_legal_case
from diopi_test.fuzz.search import deterministic_hypothesis
from diopi_test.fuzz.statistics import SearchStatistics
from diopi_test.oracle import amplification

CALLS = 16
SHARE = 8
"""At least one of this number of calls is valid. For most functions, more than half of the calls are."""

SEVERAL_CALLS = 48
"""The number of calls that vary in most of their properties."""

MANY_CALLS = 96
"""The number of calls of functions whose first calls have too few valid ones or vary too little."""


@pytest.fixture(autouse=True)
def cheap_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw calls of at most 2^14 instead of 2^22 elements, with simple budgets, because the calls are not made."""
    monkeypatch.setattr("diopi_test.fuzz.changes.sizes.MAX_GROWN_ELEMENTS", 2**14)
    monkeypatch.setattr(amplification, "ROUNDS", 1)
    monkeypatch.setattr(stability, "ROUNDS", 1)


def draw_statistics(function: str, count: int = CALLS) -> SearchStatistics:
    """Return the statistics of some calls of a function."""
    statistics, knowledge = SearchStatistics(), knowledge_of(function)

    @seed(5)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def draw(data: DataObject) -> None:
        try:
            statistics.count_legal(compute_legal_case(knowledge, data.draw(cases(knowledge))))
        except IllegalError as error:
            statistics.discarded[str(error)] += 1

    with deterministic_hypothesis():
        draw()
    return statistics


def has_tensors(function: str) -> bool:
    """Return whether a function has an argument that is a tensor or a list of tensors."""
    return any(p.is_argument and (p.is_tensor or p.is_tensor_array) for p in lookup(function).parameters)


def constant_properties(function: str, found: SearchStatistics) -> list[str]:
    """Return what is equal in all valid calls of a function although it should vary."""
    has_several_dtypes = len({case.dtype for case in knowledge_of(function).cases}) > 1
    varies = {"shapes": found.shapes, **({"dtypes": found.dtypes} if has_several_dtypes else {})}
    return [name for name, seen in varies.items() if len(seen) < 2] if has_tensors(function) else []


def is_poor(function: str, found: SearchStatistics, count: int) -> bool:
    """Return whether too few of the calls are valid, or all of them are alike."""
    return found.legal * SHARE < count or bool(constant_properties(function, found))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # domains and references at the ends of formats
@pytest.mark.parametrize("function", sampled(OPERATORS, 8, slow=17))
def test_fuzzed_calls_are_valid_and_vary(function: str) -> None:
    if is_poor(function, draw_statistics(function), CALLS):
        found = draw_statistics(function, MANY_CALLS)
        assert not is_poor(function, found, MANY_CALLS), (
            found.legal,
            constant_properties(function, found),
            dict(found.discarded),
        )


@pytest.mark.parametrize(
    "function",
    [
        pytest.param("diopiConvolution2d", marks=pytest.mark.slow),
        *("diopiAdaptiveAvgPool2d", "diopiSoftmax", "diopiTopk", "diopiLayerNorm"),
    ],
)
def test_attributes_and_layouts_vary(function: str) -> None:
    found = draw_statistics(function, SEVERAL_CALLS)
    assert len(found.attributes) > 2
    assert len(found.layouts) > 2


def test_an_element_wise_call_has_any_rank_and_promotable_types() -> None:
    found = draw_statistics("diopiAdd", SEVERAL_CALLS)
    ranks = {max(len(shape) for shape in shapes) for shapes in found.shapes}
    assert len(ranks) > 3
    assert any(len(set(dtypes)) > 1 for dtypes in found.dtypes)


@seed(7)
@settings(
    max_examples=60, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(st.data())
def test_results_with_the_layout_of_the_input_get_no_other_layout(data: DataObject) -> None:
    try:
        case = data.draw(cases(knowledge_of("diopiContiguous")))
    except IllegalError:
        return
    assert not case.smoke or case.arguments["memoryFormat"] != MemoryFormat.Preserve


@seed(7)
@settings(
    max_examples=40, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(st.data())
def test_only_half_precision_is_drawn_beside_arguments_of_higher_precision(data: DataObject) -> None:
    knowledge = knowledge_of("diopiLayerNormBackward")
    mixed = next(case for case in knowledge.cases if case.label == "float16-mixed")
    assert change_types(data.draw, knowledge, mixed).dtype in (Dtype.float16, Dtype.bfloat16)


def test_a_call_with_numbers_of_another_type_is_resized() -> None:
    spec = TensorSpec((3,), Dtype.int8, choice([float("nan"), 1.0]))
    case = Case("int8-nan", Dtype.int8, {"input": spec, "other": spec})
    assert resize_case(knowledge_of("diopiEqual"), case, {3: 5}).arguments["input"].shape == (5,)


def knowledge_with_shapes(function: str, shapes: list[tuple[int, ...]]) -> ValidCallKnowledge:
    """Return the knowledge about a function whose input has these shapes in its cases."""
    knowledge = ValidCallKnowledge(lookup(function))
    inputs = [TensorSpec(shape, Dtype.float32) for shape in shapes]
    vars(knowledge)["cases"] = [Case(str(spec.shape), Dtype.float32, {"input": spec}) for spec in inputs]
    return knowledge


def test_axes_of_elementwise_functions_are_not_fixed() -> None:
    assert not knowledge_with_shapes("diopiNeg", [(2, size) for size in range(3, 9)]).fixed_axes


def test_axes_that_few_cases_have_are_not_fixed_if_any_rank_is_accepted() -> None:
    matrices: list[tuple[int, ...]] = [(size, 5) for size in range(2, 9)]
    shapes = [(5,), *matrices, (2, 3, 5), (2, 2, 3, 5)]
    assert knowledge_with_shapes("diopiTril", shapes).fixed_axes == {("input", -1)}
    assert knowledge_with_shapes("diopiTril", matrices).fixed_axes == {("input", -1)}
    assert knowledge_with_shapes("diopiTril", [(4,), *shapes]).fixed_axes == set()


@pytest.mark.parametrize("function", ["diopiNeg", "diopiMm"])
def test_seeds_of_the_search_have_no_strides_that_fit_only_some_shapes(function: str) -> None:
    cases = knowledge_of(function).cases
    assert any("misaligned" in case.label for case in cases)
    layouts = [spec.layout for case in cases for value in case.arguments.values() for spec in TensorSpec.all_in(value)]
    layouts += [result.layout for case in cases for result in case.results.values() if result is not None]
    assert not any(isinstance(layout, Strides) for layout in layouts)
