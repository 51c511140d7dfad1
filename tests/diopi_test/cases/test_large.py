"""Large cases: every function has some that are hostile, or says why not."""

import math

import numpy as np
import pytest

from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype
from diopi_test.baseline.evaluate import draw_arguments
from diopi_test.cases.large import reason_without_large
from diopi_test.cases.large.makers import EXEMPT, ONE_OPERAND, SEVERAL_OPERANDS, PlacedShape, grow
from diopi_test.cases.layouts import strides
from diopi_test.cases.model import Case, ResultOf, is_huge, registered_cases, tensor_specs
from diopi_test.cases.selection import select_cases

MANY, MOST = 2**16, 2**22
"""Elements that a large case has more than, and at most."""

FUNCTIONS = [name for name in prototypes() if select_cases(name, "full")]

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
"""Functions whose arguments all have fewer elements than `MANY`, and why that is right."""


def elements(case: Case) -> int:
    """Of the largest tensor, as far as it is known without its results."""
    specs = [spec.shape for value in case.arguments.values() for spec in tensor_specs(value)]
    results = [result.shape for result in case.results.values() if result is not None and result.shape is not None]
    return max((math.prod(shape) for shape in (*specs, *results)), default=0)


def test_every_function_has_large_cases_or_says_why_not() -> None:
    without = [name for name in FUNCTIONS if not select_cases(name, "large")]
    assert without == list(EXEMPT)
    assert all(reason_without_large(name) for name in without)


@pytest.mark.parametrize("family", sorted({lookup(name).family for name in FUNCTIONS}))
def test_large_cases_are_large(family: str) -> None:
    for name in (name for name in FUNCTIONS if lookup(name).family == family):
        for case in select_cases(name, "large"):
            assert elements(case) <= MOST, case.label
            assert is_huge(case) == case.label.endswith("huge")
            assert not case.smoke
    least = {
        name: max((elements(case) for case in select_cases(name, "large")), default=0)
        for name in FUNCTIONS
        if lookup(name).family == family
    }
    assert {name for name, most in least.items() if most <= MANY} <= {*EXEMPT, *FEWER}


def test_what_is_computed_from_other_arguments_has_the_size_of_the_case() -> None:
    """Small cases that are made larger take along how arguments are computed."""
    for prototype in (lookup(name) for name in FUNCTIONS):
        for case in select_cases(prototype.name, "large"):
            how = [spec.compute for value in case.arguments.values() for spec in tensor_specs(value)]
            is_quick = not any(isinstance(one, ResultOf) for one in how)
            if is_quick and any(how) and not is_huge(case):
                assert draw_arguments(prototype, case).keys() <= case.arguments.keys()


@pytest.mark.parametrize(
    ("function", "argument", "least"),
    [
        ("diopiMaxAll", "input", 2),
        ("diopiMaxPool2d", "input", 2),
        ("diopiUnique", "input", 1),
    ],
)
def test_what_may_be_nan_is_among_many_elements(function: str, argument: str, least: int) -> None:
    (case,) = (one for one in select_cases(function, "large") if one.label.endswith("few-nans"))
    values = draw_arguments(lookup(function), case)[argument].values
    assert values.size > MANY
    assert least <= np.isnan(values.astype(np.float64)).sum() <= values.size / 10_000


def test_what_small_cases_have_no_nans_of_has_none_when_large() -> None:
    for function in ("diopiBitwiseNot", "diopiLinalgQR", "diopiNms"):
        assert not any(one.label.endswith("few-nans") for one in select_cases(function, "large"))


def test_sizes_are_multiples_of_nothing() -> None:
    for stretch in (*ONE_OPERAND, *SEVERAL_OPERANDS):
        assert all(math.prod(stretch.shapes[0]) % block for block in (4, 16, 32, 256, 1024, 2000, 4096, 65_536))


def test_operands_of_gradients_have_one_shape() -> None:
    for case in select_cases("diopiGeluBackward", "large"):
        assert len({spec.shape for value in case.arguments.values() for spec in tensor_specs(value)}) == 1


def test_a_case_grows_with_the_tensors_that_had_its_shape() -> None:
    prototype = lookup("diopiSoftmaxBackward")
    own = registered_cases(prototype)
    grown = grow("rows", "far", Dtype.float16, output=PlacedShape((5, 70), strides(100, 1)), dim=0).apply(
        prototype, own
    )
    assert grown.label == "float16-far"
    assert {spec.shape for value in grown.arguments.values() for spec in tensor_specs(value)} == {(5, 70)}
    assert grown.arguments["output"].layout == strides(100, 1)
    assert grown.arguments["dim"] == 0
    with pytest.raises(ValueError, match="diopiSoftmaxBackward has no case float32-nothing that far could be made of"):
        grow("nothing", "far", output=(5, 70)).apply(prototype, own)
