"""Relations that hold in all cases of a function are inferred, and hold in fuzzed calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from diopi_test.cases.case import Case, TensorSpec
from diopi_test.fuzz.knowledge import knowledge_of
from diopi_test.fuzz.relations import relations_of


def satisfies_relations(function: str, case: Case) -> bool:
    """Return whether a case satisfies all relations of its function."""
    return relations_of(knowledge_of(function)).are_satisfied(case.arguments, [])


def first_case(function: str) -> Case:
    """Return the first known case of a function."""
    return knowledge_of(function).cases[0]


def reshape_tensors(case: Case, **shapes: tuple[int, ...]) -> Case:
    """Return a case in which these tensors have other shapes."""
    tensors = {name: replace(tensor_of(case.arguments[name]), shape=shape) for name, shape in shapes.items()}
    return replace(case, arguments={**case.arguments, **tensors})


def tensor_of(value: Any) -> TensorSpec:
    """Return an argument that must be a tensor."""
    assert isinstance(value, TensorSpec)
    return value


@pytest.mark.parametrize(
    "function", ["diopiConvolution2d", "diopiTopk", "diopiSplitWithSizes", "diopiBatchNorm", "diopiCTCLoss"]
)
def test_relations_hold_in_the_cases(function: str) -> None:
    assert len(relations_of(knowledge_of(function))) > 0
    assert all(satisfies_relations(function, case) for case in knowledge_of(function).cases)


def test_channels_are_the_channels_of_a_group_times_the_groups() -> None:
    case = first_case("diopiConvolution2d")
    shapes = {"input": (2, 6, 9, 9), "weight": (4, 3, 2, 2), "bias": (4,)}
    attributes = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)}
    grouped = reshape_tensors(case, **shapes)
    legal, illegal = (
        replace(grouped, arguments={**grouped.arguments, **attributes, "groups": groups}) for groups in (2, 1)
    )
    assert satisfies_relations("diopiConvolution2d", legal)
    assert not satisfies_relations("diopiConvolution2d", illegal)  # which NumPy would broadcast, were there one channel


def test_a_number_is_bounded_by_the_size_of_a_named_axis() -> None:
    case = first_case("diopiTopk")
    sized = reshape_tensors(case, input=(3, 5))
    fits, too_many = (replace(sized, arguments={**sized.arguments, "dim": 0, "k": k}) for k in (3, 4))
    assert satisfies_relations("diopiTopk", fits)
    assert not satisfies_relations("diopiTopk", too_many)


def test_the_sizes_of_parts_add_up_to_the_axis() -> None:
    case = first_case("diopiSplitWithSizes")
    sized = reshape_tensors(case, input=(5, 4))
    legal, illegal = (
        replace(sized, arguments={**sized.arguments, "dim": 0, "splitSizes": sizes}) for sizes in ((2, 3), (2, 2))
    )
    assert satisfies_relations("diopiSplitWithSizes", legal)
    assert not satisfies_relations("diopiSplitWithSizes", illegal)


def test_a_choice_that_no_case_uses_is_not_a_relation() -> None:
    case = first_case("diopiGelu")
    assert not satisfies_relations("diopiGelu", replace(case, arguments={**case.arguments, "approximate": "other"}))
