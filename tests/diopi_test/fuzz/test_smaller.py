"""Smaller calls have fewer elements or axes and preserve the relations between tensor sizes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from diopi_test.cases.case import Case
from diopi_test.cases.layouts import contiguous, strided
from diopi_test.fuzz.knowledge import count_elements, knowledge_of, largest_rank
from diopi_test.fuzz.smaller import smaller_calls, smaller_sizes


@pytest.mark.parametrize(("size", "sizes"), [(1, []), (2, [1]), (5, [1, 3, 4]), (3006, [1, 1504, 2255, 2631])])
def test_sizes_approach_the_smallest_size_that_fails(size: int, sizes: list[int]) -> None:
    assert list(smaller_sizes(size))[: len(sizes)] == sizes


def first_of(function: str, least_rank: int) -> Case:
    """Return the first known case with at least this rank."""
    return next(
        case
        for case in knowledge_of(function).cases
        if largest_rank(case) >= least_rank and count_elements(case) > least_rank
    )


@pytest.mark.parametrize("function", ["diopiNeg", "diopiMatmul", "diopiConvolution2d", "diopiSoftmax"])
def test_each_candidate_is_smaller(function: str) -> None:
    case = first_of(function, 2)
    calls = list(smaller_calls(knowledge_of(function), case))
    assert calls
    for call in calls:
        assert (count_elements(call), largest_rank(call)) < (count_elements(case), largest_rank(case) + 1)
        assert call != case


def test_an_element_wise_call_is_reduced_to_one_axis() -> None:
    case = first_of("diopiNeg", 2)
    flat = next(smaller_calls(knowledge_of("diopiNeg"), case))
    assert flat.shapes == [(math.prod(case.shapes[0]),)]


def test_tensors_become_contiguous() -> None:
    case = first_of("diopiNeg", 1)
    strided_case = replace(case, arguments=case.map_tensors(lambda _, spec: replace(spec, layout=strided)))
    *_, last = smaller_calls(knowledge_of("diopiNeg"), strided_case)
    assert {spec.layout for _, spec in last.tensors} == {contiguous}
