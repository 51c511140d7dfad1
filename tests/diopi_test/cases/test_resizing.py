"""Sizes of a case are replaced in its tensors, and in the attributes that are chosen."""

import pytest

from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.cases.resizing import ResizedAttributes, repeats_sizes, replace_sizes


def tensor(*shape: int) -> TensorSpec:
    """Return a float32 tensor of these sizes."""
    return TensorSpec(shape, Dtype.float32)


CASE = Case(
    "float32-made-up",
    Dtype.float32,
    {
        "input": tensor(3, 5),
        "others": [tensor(5), None],
        "shape": (5,),
        "sizes": (7, 5),
        "heads": 5,
        "axis": 1,
        "p": 5.0,
    },
    results={"out": ResultOverride(shape=(5, 3)), "indices": None},
    smoke=True,
)
"""A case with the size 5 in tensors, in lists and as a number."""


@pytest.mark.parametrize(
    ("attributes", "shape", "sizes", "heads"),
    [
        (ResizedAttributes.none, (5,), (7, 5), 5),
        (ResizedAttributes.shapes, (16,), (7, 5), 5),
        (ResizedAttributes.numbers, (16,), (7, 16), 16),
    ],
)
def test_a_size_is_replaced_in_tensors_and_in_the_chosen_attributes(
    attributes: ResizedAttributes, shape: tuple[int, ...], sizes: tuple[int, ...], heads: int
) -> None:
    case = replace_sizes(CASE, {5: 16}, "float32-resized", attributes)
    assert case.arguments["input"].shape == (3, 16)
    assert [entry and entry.shape for entry in case.arguments["others"]] == [(16,), None]
    assert {name: case.arguments[name] for name in ("shape", "sizes", "heads", "axis", "p")} == {
        "shape": shape,
        "sizes": sizes,
        "heads": heads,
        "axis": 1,
        "p": 5.0,
    }
    assert case.results == {"out": ResultOverride(shape=(16, 3)), "indices": None}


def test_a_resized_case_is_an_ordinary_case_that_is_not_a_smoke_case() -> None:
    case = replace_sizes(CASE, {5: 16}, "float32-resized", ResizedAttributes.none)
    assert (case.label, case.smoke, case.case_class) == ("float32-resized", False, CaseClass.basic)


def test_only_lists_that_repeat_the_last_sizes_of_a_tensor_are_shapes() -> None:
    assert repeats_sizes((3, 5), CASE)
    assert not any(repeats_sizes(value, CASE) for value in ((7, 5), (), 5, None))
