"""Cases in the forms in which known programs call a function."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diopi_proto.callers import CallForm
from diopi_proto.functions.llm import diopiPagedAttention, diopiPromptFlashAttention
from diopi_proto.interface import prototypes
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, TensorSpec
from diopi_test.cases.layouts import transposed
from diopi_test.cases.selection import select_cases
from diopi_test.cases.selection.callers import caller_cases
from diopi_test.cases.tensors import literal

F32 = Dtype.float32
WITH_FORMS = [name for name, prototype in prototypes().items() if prototype.call_forms]


def prompt(batch: int = 2, rows: int = 3, **changes: Any) -> Case:
    """Return a case of diopiPromptFlashAttention with sequences of equal lengths."""
    arguments: dict[str, Any] = {
        "query": TensorSpec((batch * rows, 8), F32),
        "key": TensorSpec((batch * rows, 4), F32),
        "value": TensorSpec((batch * rows, 4), F32),
        "atten_mask": None,
        "actual_seq_lengths": (rows,) * batch,
        **{"max_input_len": rows, "num_heads": 4, "num_kv_heads": 2, "dim": 2},
    }
    return Case(f"float32-{batch}x{rows}", F32, {**arguments, **changes})


def cases_in_form(cases: Sequence[Case], **form: Any) -> list[Case]:
    """Return the cases in the call form with these fields."""
    described = CallForm(name="somebody", caller="Somebody", **form)
    return list(caller_cases(replace(diopiPromptFlashAttention, call_forms=(described,)), cases))


def shapes(case: Case) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensor arguments by name."""
    return {name: value.shape for name, value in case.arguments.items() if isinstance(value, TensorSpec)}


@pytest.mark.parametrize("function", WITH_FORMS)
def test_every_form_has_a_float32_case(function: str) -> None:
    labels = {case.label for case in select_cases(function, "full") if case.case_class is CaseClass.callers}
    assert {f"float32-called-by-{form.name}" for form in prototypes()[function].call_forms} <= labels


@pytest.mark.parametrize("function", WITH_FORMS)
def test_docstring_names_the_caller(function: str) -> None:
    doc = inspect.cleandoc(prototypes()[function].doc).replace("\n", " ")
    assert all(f"{form.caller} passes" in doc for form in prototypes()[function].call_forms)


def test_names_in_shapes_stand_for_attributes_and_their_products() -> None:
    (case,) = cases_in_form([prompt()], shapes={"query": ("B", "max_input_len", "num_heads·dim")}, missing=("key",))
    assert (shapes(case)["query"], case.arguments["key"]) == ((2, 3, 8), None)
    assert (case.label, case.case_class, case.smoke) == ("float32-called-by-somebody", CaseClass.callers, True)


def test_missing_lists_are_empty() -> None:
    (case,) = cases_in_form([prompt()], missing=("actual_seq_lengths",))
    assert case.arguments["actual_seq_lengths"] == ()


def test_cases_without_sizes_of_1_go_first() -> None:
    form = {"query": ("B", "max_input_len", "num_heads·dim")}
    (case,) = cases_in_form([prompt(batch=1), prompt()], shapes=form)
    assert shapes(case)["query"] == (2, 3, 8)
    (case,) = cases_in_form([prompt(batch=1)], shapes=form)
    assert shapes(case)["query"] == (1, 3, 8)


def unfitting_cases() -> Iterator[Any]:
    """Yield cases with shapes of a caller that do not fit the case."""
    yield pytest.param(prompt(), {"query": (1, 1, "num_heads·dim")}, id="other number of elements")
    yield pytest.param(prompt(), {"query": ("A", "B", "C")}, id="several open names")
    yield pytest.param(prompt(), {"query": ("B", "dim")}, id="contradicts an attribute")
    yield pytest.param(prompt(), {"atten_mask": ("B", 1, "S", "S")}, id="no tensor")
    yield pytest.param(replace(prompt(), case_class=CaseClass.open), {"query": ("B", 8)}, id="class of its own")
    yield pytest.param(prompt(query=TensorSpec((6, 8), F32, layout=transposed)), {"query": ("B", 8)}, id="layout")


@pytest.mark.parametrize(("case", "form"), list(unfitting_cases()))
def test_call_form_is_skipped_if_it_does_not_fit(case: Case, form: Any) -> None:
    assert cases_in_form([case], shapes=form) == []


def test_values_keep_their_order_or_are_broadcast() -> None:
    mask = np.arange(9).reshape(3, 3) % 2 == 1
    with_mask = prompt(query=TensorSpec((2, 3, 8), F32), atten_mask=literal(mask, Dtype.bool))
    for sizes, expected in (
        ((1, 1, "S", "S"), mask[None, None]),
        (("B", 1, "S", "S"), np.broadcast_to(mask, (2, 1, 3, 3))),
        ((9,), mask.reshape(9)),
    ):
        (case,) = cases_in_form([with_mask], shapes={"query": ("B", "S", "H"), "atten_mask": sizes})
        spec = case.arguments["atten_mask"]
        assert callable(spec.compute)
        np.testing.assert_array_equal(spec.compute({}), expected)
        assert spec.shape == expected.shape


def test_table_is_omitted_only_for_a_single_sequence() -> None:
    cases_without_table = [
        case for case in select_cases("diopiPagedAttention", "full") if "without-table" in case.label
    ]
    called = [case for case in cases_without_table if case.case_class is CaseClass.callers]
    assert {len(case.arguments["actual_seq_lengths"]) for case in called} == {1}
    assert all(case.case_class is CaseClass.open for case in cases_without_table if case not in called)
    assert diopiPagedAttention.parameter("block_table").optional
