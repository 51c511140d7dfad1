"""Functions have a case with contiguous tensors at addresses that are no multiples of 16 bytes."""

from __future__ import annotations

import pytest

from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.layouts import contiguous
from diopi_test.cases.selection import select_cases


def misaligned_cases_of(function: str) -> list[Case]:
    """Return the cases of a function with misaligned tensors."""
    return [case for case in select_cases(function, "full") if case.label.endswith("misaligned")]


@pytest.mark.parametrize("function", ["diopiMm", "diopiConvolution2d", "diopiSoftmax", "diopiCat", "diopiAdamW"])
def test_a_function_has_a_case_whose_contiguous_tensors_begin_at_the_second_element(function: str) -> None:
    (case,) = [case for case in misaligned_cases_of(function) if case.label == "float32-misaligned"]
    specs = [spec for value in case.arguments.values() for spec in TensorSpec.all_in(value)]
    assert all(spec.layout(spec.shape).offset == 1 for spec in specs)
    assert all(spec.layout(spec.shape).strides == contiguous(spec.shape).strides for spec in specs)


@pytest.mark.parametrize("function", ["diopiUniformInp", "diopiArange"])
def test_functions_without_inputs_or_with_random_results_have_none(function: str) -> None:
    assert not misaligned_cases_of(function)
