"""Every function has large cases with difficult sizes, or a reason for having none."""

import math

import numpy as np
import pytest
from sampling import OPERATORS, sampled

from diopi_proto.interface import lookup
from diopi_test.cases.case import Case, ResultOf, TensorSpec
from diopi_test.cases.elementwise import Elementwise
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import draw_arguments

MANY_ELEMENTS, ELEMENT_LIMIT = 2**16, 2**22
"""The number of elements that a large case exceeds, and the maximum if the reference evaluates more than one period."""

WITHOUT_LARGE_CASES = {"diopiAmpUpdateScaleInp": "all its tensors have one element"}
"""Functions without large cases, with the reason."""

FEWER = {
    **dict.fromkeys(
        ("diopiNms", "diopiNmsMmcv", "diopiNmsRotatedMmcv", "diopiIou3dNms3dMmcv", "diopiIou3dNms3dNormalMmcv"),
        "each box is compared with all others",
    ),
    **dict.fromkeys(("diopiConvexIouMmcv", "diopiIou3dBoxesOverlapBevMmcv"), "each is compared with all of the others"),
    "diopiPointsInPolygonsMmcv": "its result is large",
    "diopiCTCLoss": "what it saves for its gradient is large",
    "diopiIm2Col": "its result is large",
    "diopiMeshGrid": "its results are large",
    "diopiRepeat": "its result is large",
}
"""Functions whose arguments all have fewer elements than `MANY_ELEMENTS`, with the reason."""


def elements(case: Case) -> int:
    """Return the number of elements of the largest tensor whose shape is known without the reference."""
    specs = [spec.shape for value in case.arguments.values() for spec in TensorSpec.all_in(value)]
    results = [result.shape for result in case.results.values() if result is not None and result.shape is not None]
    return max((math.prod(shape) for shape in (*specs, *results)), default=0)


@pytest.mark.parametrize("function", sampled(OPERATORS, 15, slow=25))
def test_a_function_has_large_cases_or_a_reason(function: str) -> None:
    assert bool(select_cases(function, "large")) is (function not in WITHOUT_LARGE_CASES)


@pytest.mark.parametrize("function", sampled(OPERATORS, 15, slow=25))
def test_large_cases_are_large(function: str) -> None:
    cases = select_cases(function, "large")
    for case in cases:
        assert case.period or elements(case) <= ELEMENT_LIMIT, case.label
        assert case.is_huge == case.label.endswith("huge")
        assert not case.smoke
    assert max(map(elements, cases), default=0) > MANY_ELEMENTS or function in {*WITHOUT_LARGE_CASES, *FEWER}


@pytest.mark.parametrize("function", sampled(OPERATORS, 15, slow=25))
def test_computed_arguments_grow_with_the_case(function: str) -> None:
    """Large cases keep the functions that compute arguments."""
    for case in select_cases(function, "large"):
        computes = [spec.compute for value in case.arguments.values() for spec in TensorSpec.all_in(value)]
        is_quick = not any(isinstance(compute, ResultOf) for compute in computes)
        if is_quick and any(computes) and not case.is_giant:
            assert draw_arguments(lookup(function), case).keys() <= case.arguments.keys()


@pytest.mark.parametrize(
    ("function", "argument", "least"),
    [
        ("diopiMaxAll", "input", 2),
        ("diopiMaxPool2d", "input", 2),
        ("diopiUnique", "input", 1),
    ],
)
def test_few_nans_case_has_nans_among_many_elements(function: str, argument: str, least: int) -> None:
    (case,) = (case for case in select_cases(function, "large") if case.label.endswith("few-nans"))
    values = draw_arguments(lookup(function), case)[argument].values
    assert values.size > MANY_ELEMENTS
    assert least <= np.isnan(values.astype(np.float64)).sum() <= values.size / 10_000


def test_functions_without_small_nan_cases_have_no_large_ones() -> None:
    for function in ("diopiBitwiseNot", "diopiLinalgQR", "diopiNms"):
        assert not any(case.label.endswith("few-nans") for case in select_cases(function, "large"))


@pytest.mark.parametrize("function", ["diopiAdd", "diopiAbs"])
def test_large_operands_are_no_multiples_of_block_sizes(function: str) -> None:
    for pattern in Elementwise(lookup(function)).large_patterns():
        size = math.prod(pattern.sizes[0].shape)
        assert all(size % block for block in (4, 16, 32, 256, 1024, 2000, 4096, 65_536))


def test_operands_of_gradients_have_one_shape() -> None:
    for case in select_cases("diopiGeluBackward", "large"):
        assert len({spec.shape for value in case.arguments.values() for spec in TensorSpec.all_in(value)}) == 1
