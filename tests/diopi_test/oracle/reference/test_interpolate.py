"""The references of interpolation: error terms, and what rounding decides.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

from fractions import Fraction

import numpy as np
import pytest
from references import call_reference, call_with_remarks

from diopi_test.cases.selection import select_cases
from diopi_test.oracle.reference import find_reference, strip_remarks


@pytest.mark.parametrize(("mode", "reach"), [("bilinear", 1), ("bicubic", 2)])
def test_terms_allow_for_rounding_of_positions_at_elements(mode: str, reach: int) -> None:
    """The middle one of 31 positions in 67 elements is 33: the adjacent elements have weight 0 but enter the budget."""
    resize = find_reference("diopiUpsampleLinear")
    assert resize is not None
    touched = []
    for element in range(30, 37):
        impulse = np.zeros((1, 1, 1, 67))
        impulse[..., element] = 1
        result = resize(impulse, (1, 31), False, mode)
        assert result.value[0, 0, 0, 15] == pytest.approx(float(element == 33), abs=1e-14)
        touched += [element] if result.terms[0, 0, 0, 15] else []
    assert touched == list(range(33 - reach, 34 + reach))


def test_no_nearest_case_depends_on_the_arithmetic_of_the_index() -> None:
    for case in select_cases("diopiUpsampleNearest", "full"):
        for d, size in zip(case.arguments["input"].shape[2:], case.arguments["size"], strict=True):
            exact = np.arange(size) * d // size
            in_float32 = np.floor(np.arange(size, dtype=np.float32) * (np.float32(d) / np.float32(size)))
            assert in_float32.tolist() == exact.tolist(), (case.label, d, size)


@pytest.mark.parametrize(("d", "size"), [(39, 3), (3, 39), (3, 21), (7, 112), (119, 9), (5, 25), (33, 44)])
def test_nearest_resizing_is_open_where_rounding_decides(d: int, size: int) -> None:
    line = np.arange(float(d)).reshape(1, 1, d)
    result = find_reference("diopiUpsampleNearest")(line, (size,))
    errors = [0.0] if Fraction(d, size).denominator in (1, 2, 4, 8, 16) else [0.0, 2.0**-24, -(2.0**-24)]
    found = [np.minimum(np.floor(np.arange(size) * (d / size) * (1 + error)), d - 1) for error in errors]
    assert result.specified[0, 0].tolist() == (np.ptp(found, axis=0) == 0).tolist()
    copies = find_reference("diopiUpsampleNearestBackward")(np.ones((1, 1, size)), (size,), (1, 1, d))
    moved = result.value[~result.specified].astype(int)
    assert np.flatnonzero(~copies.specified[0, 0]).tolist() == sorted({*moved, *(moved - 1)})


def test_outside_is_zero_and_halfway_positions_select_the_even_element() -> None:
    line = np.array([[[[1.0, 2.0, 4.0, 8.0]]]])

    def sample(x: float, mode: str) -> float:
        return float(call_reference("diopiGridSample", line, np.array([[[[x, 0.0]]]]), mode).item())

    assert sample(-1.0, "bilinear") == 0.5  # half of element 0, half outside
    assert [sample(x, "nearest") for x in (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0)] == [0, 1, 1, 4, 4, 0]


def test_nonfinite_elements_affect_only_results_with_weight() -> None:
    column = np.array([np.nan, 1.0, 2.0, np.inf]).reshape(1, 1, 4, 1)
    result = call_with_remarks("diopiUpsampleLinear", column, (8, 1), False, "bilinear")
    assert result.specified.reshape(-1).tolist() == [True, True, True, True, True, False, False, False]
    np.testing.assert_array_equal(strip_remarks(result).reshape(-1)[:5], [np.nan, np.nan, np.nan, 1.25, 1.75])
