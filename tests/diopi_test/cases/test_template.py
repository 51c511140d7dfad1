"""Templates can be changed, and select element types that a function accepts."""

from dataclasses import dataclass

import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.template import CaseTemplate, DtypeSelection, expand, tensor


@dataclass(frozen=True)
class Window:
    """Sizes of a template."""

    size: int = 3
    step: int = 1


def test_replace_changes_attributes_and_with_sizes_changes_sizes() -> None:
    first = CaseTemplate("first", Window(), {"a": 1})
    second = first.with_sizes(step=4).replace("second", {"b": 2}, exact=True)
    assert second == CaseTemplate("second", Window(3, 4), {"a": 1, "b": 2}, exact=True)
    assert first == CaseTemplate("first", Window(), {"a": 1})


def test_replace_rejects_unknown_attributes() -> None:
    with pytest.raises(TypeError):
        CaseTemplate("label", Window()).replace(stride=2)


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (DtypeSelection.leading, ["float32"]),
        ((Dtype.bool, Dtype.int32), ["int32"]),
        (DtypeSelection.all, [dtype.name for dtype in lookup("diopiMm").dtypes]),
    ],
)
def test_templates_expand_to_the_selected_element_types(dtypes: DtypeSelection, expected: list[str]) -> None:
    template = CaseTemplate("square", arguments={"input": tensor(2, 2), "mat2": tensor(2, 2)}, dtypes=dtypes)
    cases = list(expand(lookup("diopiMm"), [template]))
    assert [case.label for case in cases] == [f"{name}-square" for name in expected]
    assert all(case.arguments["input"].dtype is case.dtype for case in cases)


def test_a_tensor_is_of_its_own_type_or_of_the_one_under_test() -> None:
    assert tensor(3).resolve(Dtype.float16).dtype is Dtype.float16
    assert {tensor(3, dtype=dtype).resolve(Dtype.float16).dtype for dtype in Dtype} == set(Dtype)
