"""Functions have cases whose rows have a multiple of 16 elements, and cases whose axes have one element."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sampling import sampled

from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.resized import CHANNELS_OF_16, REASON, ROWS_OF_16, ROWS_OF_128, resized_keys, resizings
from diopi_test.cases.selection import LEVELS, select_cases

RESIZED = sorted(resizings())


def shapes_of(case: Case) -> list[tuple[int, ...]]:
    """Return the shapes of all tensor arguments of a case."""
    return [spec.shape for value in case.arguments.values() for spec in TensorSpec.all_in(value)]


def cases_of(function: str, label: str) -> Sequence[Case]:
    """Return the cases of a function at level full that a resizing with this label yields."""
    return [case for case in select_cases(function, "full") if case.label.partition("-")[2] == label]


@pytest.mark.parametrize("function", sampled(RESIZED, 20))
def test_every_resizing_yields_a_case_with_its_sizes(function: str) -> None:
    for resizing in resizings()[function]:
        cases = cases_of(function, resizing.label)
        assert cases, resizing
        assert all(any(set(resizing.sizes.values()) & set(shape) for shape in shapes_of(case)) for case in cases)


@pytest.mark.parametrize(
    "function",
    [
        *("diopiMm", "diopiBmm", "diopiLinear", "diopiConvolution2d", "diopiLayerNorm", "diopiSum", "diopiCumsum"),
        *("diopiRelu", "diopiGelu", "diopiSoftmax", "diopiSort", "diopiCat", "diopiAdd"),
    ],
)
def test_rows_have_a_multiple_of_16_elements_in_small_and_in_larger_cases(function: str) -> None:
    for label in (ROWS_OF_16, ROWS_OF_128):
        for case in cases_of(function, label):
            assert any(shape and shape[-1] % 16 == 0 for shape in shapes_of(case)), case.label
    assert {case.dtype for case in cases_of(function, ROWS_OF_16)} == {Dtype.float32}


def test_larger_cases_also_have_a_half_precision_type() -> None:
    assert [case.dtype for case in cases_of("diopiMm", ROWS_OF_128)] == [Dtype.float32, Dtype.float16]


def test_channels_of_convolutions_are_multiples_of_16() -> None:
    for case in cases_of("diopiConvolution2d", CHANNELS_OF_16):
        assert case.arguments["input"].shape[1] % 16 == case.arguments["weight"].shape[0] % 16 == 0


@pytest.mark.parametrize("function", ["diopiAdd", "diopiSoftmax", "diopiCumsum", "diopiCat", "diopiSum"])
def test_an_axis_has_one_element(function: str) -> None:
    cases = [case for case in select_cases(function, "full") if "-one-" in case.label and "-axis-" in case.label]
    assert cases
    assert all(any(1 in shape for shape in shapes_of(case)) for case in cases)


def test_levels_depend_on_the_resizings() -> None:
    prototype = lookup("diopiMm")
    for level in ("smoke", "full"):
        assert set(resized_keys(prototype)) <= set(LEVELS[level].depends_on(prototype))


def test_functions_with_ordinary_cases_and_determined_results_have_resizings() -> None:
    not_resized = {name for name in prototypes() if name not in resizings() and lookup(name).guarantee != "random"}
    assert not not_resized & {"diopiMm", "diopiAdd", "diopiSum", "diopiConvolution2d", "diopiAdamW", "diopiEmbedding"}


def test_resized_cases_state_why_they_need_not_discriminate() -> None:
    """The softmax of one element does not depend on the input."""
    (case,) = cases_of("diopiSoftmax", "one-input-axis-1")
    assert case.non_discriminating == REASON
