"""References reject invalid calls that no relation between sizes reveals, because the fuzzer relies on them."""

from typing import Any

import numpy as np
import pytest
from references import call_reference, call_with_remarks

from diopi_proto.types import Dtype, RoundMode
from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import strip_remarks


def counts(*numbers: int) -> Any:
    """Return these numbers as an array."""
    return np.array(numbers)


ONES = np.ones
IMAGE = np.ones((1, 1, 2, 2))
CTC = (ONES((1, 1, 3)), counts(1, 2)[np.newaxis], counts(5), counts(2), 0, 1, False)
VARIABLE = (None, 2, 2, 0.0, 1.0, False, -1, -1)
"""Arguments without slopes and dropout: lengths of at most two, all scores."""
CROSSED = counts(0, 0, 1, 1, 1, 0, 0, 1)[np.newaxis] * 1.0
"""A quadrilateral with two sides that cross."""
CORRELATION = (1, 1, 2, 1, 0, 0, 1, 1, 1, 1, 1, 1)
"""Arguments with a patch of two rows."""


@pytest.mark.parametrize(
    ("function", "arguments", "keyword"),
    [
        ("diopiUnfoldBackward", (ONES((5, 2)), (6,), 0, 2, 2), "windows"),
        ("diopiTinShiftMmcv", (ONES((1, 2, 3, 1)), ONES((1, 2, 3, 1)), counts(1, 1).reshape(1, 2)), "groups"),
        ("diopiCorrelationMmcv", (ONES((1, 1, 3, 3)), ONES((1, 1, 3, 3)), *CORRELATION), "odd"),
        ("diopiActiveRotatedFilterBackwardMmcv", (ONES((0, 1, 2, 3)), np.ones((2, 2, 3, 3), int)), "rotations"),
        ("diopiHardtanh", (ONES(2), 0.5, 0.0), "max_val"),
        ("diopiFusedBiasLeakyreluMmcv", (ONES((2, 3, 2)), ONES(2), ONES((2, 3, 2)), 3, 2, 0.2, 1.0), "bias has 2"),
        ("diopiConvTranspose2d", (IMAGE, IMAGE, None, (1, 1), (0, 0), (0, 1), 1, (1, 1)), "output_padding"),
        ("diopiCTCLossBackward", (ONES(1), *CTC[:4], ONES(1), ONES((1, 1, 5)), *CTC[4:]), r"input_lengths are \[5\]"),
        ("diopiIndexSelectBackward", (ONES((1, 1)), (5, 3), 0, counts(2)), "grad has shape"),
        ("diopiGatherBackward", (ONES((1, 2)), ONES((3, 2)), 0, np.zeros((3, 2), int)), r"expected \(3, 2\)"),
        ("diopiSliceScatter", (ONES(5), ONES(1), 0, 0, 5, 1), "src has shape"),
        ("diopiContextAttentionInference", (*[ONES((3, 1, 1))] * 4, counts(0, 2), counts(2, 2), 2), "rows"),
        ("diopiIndexSelect", (ONES((0, 1)), 1, counts(4)), "axis of length 1"),
        (
            "diopiFlashAttentionVarLen",
            (None, *[ONES((3, 1, 1))] * 3, *[counts(0, 2)] * 2, *VARIABLE),
            "rise from 0 to 3",
        ),
        ("diopiIndexFill", (ONES((1, 1)), 0, counts(0)[np.newaxis], 1.0), "index has shape"),
        ("diopiMaskedScatter", (ONES(3), ONES(3, bool), ONES(2)), "source has 2 elements for 3"),
        ("diopiTopk", (ONES(()), 2, 0, True, True), "k is 2"),
        ("diopiPad", (ONES((1, 7)), (7, 4), "reflect", None), "pad"),
        ("diopiPad", (ONES((1, 7)), (8, 4), "circular", None), "pad"),
        ("diopiPad", (ONES((1, 1)), (-2, -3), "constant", 1.5), "remove"),
        (
            "diopiRotaryEmbedding",
            (ONES((1, 4)), ONES((1, 1)), ONES((1, 1)), False, False),
            "expected 2 in the last axis",
        ),
        (
            "diopiRoipointPool3dMmcv",
            (ONES((1, 1, 1, 1)), counts(0)[np.newaxis], ONES((1, 20, 3)), ONES((1, 1, 7)), ONES((1, 20, 1))),
            "expected 4 in the last axis",
        ),
        (
            "diopiPagedAttention",
            (ONES((1, 32)), *[ONES((4, 32))] * 2, None, (3,), 4, 1, 8, counts(0, 1), 2),
            "1 heads of 8",
        ),
        ("diopiClipGradNorm", ([np.full(2, np.inf)], 1.0, 2.0, True), "norm of the gradients is inf"),
        ("diopiMultinomial", (np.zeros(1), 2, True, None), "not a distribution"),
        ("diopiDiv", (counts(1), counts(0), RoundMode.trunc), "divided by 0"),
        ("diopiRemainderTensor", (counts(1), counts(0)), "divided by 0"),
        ("diopiClipGradNorm", ([np.zeros(0), ONES(1)], 1.0, -np.inf, False), "norm_type"),
        ("diopiLayerNormGB", (ONES((1, 1, 1)), ONES((1, 1)), None, 0.0, 0), "weight has shape"),
        ("diopiUnique", (np.full(2, np.nan), None, True, True), "NaNs"),
        ("diopiNLLLoss", (ONES((2, 3)), counts(0, 3), None, 0, -100), "classes"),
        ("diopiBoxIouQuadriMmcv", (CROSSED, ONES((0, 8)), 0, False), "convex"),
        ("diopiConvexIouMmcv", (ONES((1, 18)), CROSSED), "convex"),
        ("diopiConvexGiouMmcv", (ONES((1, 18)), CROSSED), "convex"),
        (
            "diopiStackGroupPointsMmcv",
            (ONES((3, 1, 1)), ONES((4, 1)), counts(4), np.zeros((3, 1), int), counts(2), 1, 1, 3, 1),
            "add up to 3",
        ),
    ],
)
def test_reference_rejects_invalid_calls(function: str, arguments: tuple[Any, ...], keyword: str) -> None:
    with pytest.raises(ValueError, match=keyword):
        call_reference(function, *arguments)


def test_infinite_element_without_weight_is_ignored() -> None:
    row, middle_of_first = np.array([[[[2.0, 1.0, np.inf]]]]), np.array([[[[-2 / 3, 0.0]]]])
    assert call_reference("diopiGridSample", row, middle_of_first, "bilinear").item() == 2


def test_samples_within_rounding_of_an_infinite_element_are_open() -> None:
    row = np.array([[[[2.0, 1.0, 5.0, np.inf]]]])
    nearly_on_the_third = np.array([[[[0.25 - 1e-9, 0.0]], [[0.2, 0.0]], [[0.3, 0.0]]]])
    result = call_with_remarks("diopiGridSample", row, nearly_on_the_third, "bilinear")
    assert result.specified.ravel().tolist() == [False, True, True]


def test_complex_sigmoid_is_open_where_its_exponential_overflows() -> None:
    input = np.array([-1000 - 3j, -700, -80, 0j])
    for dtype, specified_count in ((Dtype.complex64, 2), (Dtype.complex128, 3)):
        result = call_with_remarks("diopiSigmoid", input, out=ResultOverride(dtype))
        assert result.specified.tolist() == [False] * (4 - specified_count) + [True] * specified_count
        assert (result.value[0], result.value[-1]) == (0, 0.5)


def test_products_with_partial_overflow_are_open() -> None:
    rows = [[1e30, 1e30, 1e-30], [1e30, 1e30, 2.0], [1e-30, 1e-30, 1e30], [1e-30, 0.0, 1e-30], [np.inf, 2.0, 3.0]]
    factors, specified = np.array(rows), [False, True, False, True, True]
    for_float32 = {"out": ResultOverride(Dtype.float32)}
    assert call_with_remarks("diopiProd", factors, 1, **for_float32).specified.tolist() == specified
    assert call_with_remarks("diopiProd", factors, 1, out=ResultOverride(Dtype.float64)).specified.all()
    column, index = ONES((5, 1)), np.zeros((5, 3), int)
    assert (
        call_with_remarks("diopiScatter", column, 1, factors, index, "multiply", **for_float32).specified[:, 0].tolist()
        == specified
    )


def test_numbers_out_of_integer_range_are_open() -> None:
    base, for_int32 = counts(1, 2, 3), {"out": ResultOverride(Dtype.int32)}
    result = call_with_remarks("diopiSliceScatter", base, np.array([np.nan, 7.5]), 0, 0, 3, 2, **for_int32)
    assert (result.specified.tolist(), strip_remarks(result)[1:].tolist()) == ([False, True, True], [2, 7])
    assert call_with_remarks("diopiIndexFill", base, 0, counts(1), 1e10, **for_int32).specified.tolist() == [
        True,
        False,
        True,
    ]
