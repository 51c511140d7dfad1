"""Relations that hold in all cases of a function are inferred, and hold in fuzzed calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from diopi_test.cases.case import Case, TensorSpec
from diopi_test.fuzz.knowledge import knowledge_of
from diopi_test.fuzz.relations import relations_of


def holds(function: str, case: Case) -> bool:
    """Return whether a case satisfies all relations of its function."""
    return relations_of(knowledge_of(function)).are_satisfied(case.arguments, [])


def first(function: str) -> Case:
    """Return the first known case of a function."""
    return knowledge_of(function).cases[0]


def reshaped(case: Case, **shapes: tuple[int, ...]) -> Case:
    """Return a case in which these tensors have other shapes."""
    tensors = {name: replace(tensor_of(case.arguments[name]), shape=shape) for name, shape in shapes.items()}
    return replace(case, arguments={**case.arguments, **tensors})


def tensor_of(value: Any) -> TensorSpec:
    assert isinstance(value, TensorSpec)
    return value


@pytest.mark.parametrize(
    "function", ["diopiConvolution2d", "diopiTopk", "diopiSplitWithSizes", "diopiBatchNorm", "diopiCTCLoss"]
)
def test_relations_hold_in_the_cases(function: str) -> None:
    assert len(relations_of(knowledge_of(function))) > 0
    assert all(holds(function, case) for case in knowledge_of(function).cases)


def test_channels_are_the_channels_of_a_group_times_the_groups() -> None:
    case = first("diopiConvolution2d")
    shapes = {"input": (2, 6, 9, 9), "weight": (4, 3, 2, 2), "bias": (4,)}
    attributes = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)}
    grouped = reshaped(case, **shapes)
    legal, illegal = (
        replace(grouped, arguments={**grouped.arguments, **attributes, "groups": groups}) for groups in (2, 1)
    )
    assert holds("diopiConvolution2d", legal)
    assert not holds("diopiConvolution2d", illegal)  # which NumPy would broadcast, were there one channel


def test_a_number_is_bounded_by_the_size_of_a_named_axis() -> None:
    case = first("diopiTopk")
    sized = reshaped(case, input=(3, 5))
    fits, too_many = (replace(sized, arguments={**sized.arguments, "dim": 0, "k": k}) for k in (3, 4))
    assert holds("diopiTopk", fits)
    assert not holds("diopiTopk", too_many)


def test_the_sizes_of_parts_add_up_to_the_axis() -> None:
    case = first("diopiSplitWithSizes")
    sized = reshaped(case, input=(5, 4))
    legal, illegal = (
        replace(sized, arguments={**sized.arguments, "dim": 0, "splitSizes": sizes}) for sizes in ((2, 3), (2, 2))
    )
    assert holds("diopiSplitWithSizes", legal)
    assert not holds("diopiSplitWithSizes", illegal)


def test_a_choice_that_no_case_uses_is_not_a_relation() -> None:
    case = first("diopiGelu")
    assert not holds("diopiGelu", replace(case, arguments={**case.arguments, "approximate": "other"}))
