"""The references of resizing and grid sampling: what they must reproduce, and gradients by finite differences."""

from fractions import Fraction

import numpy as np
import pytest
from references import call, difference, raw

from diopi_test.cases.selection import select_cases
from diopi_test.oracle.reference import find_reference, strip_remarks

MODES = ["linear", "bilinear", "bicubic", "trilinear"]
SIZES = {"linear": (7,), "bilinear": (5, 2), "bicubic": (5, 2), "trilinear": (3, 4, 2)}
SHAPES = {"linear": (1, 2, 4), "bilinear": (1, 2, 3, 4), "bicubic": (1, 2, 3, 4), "trilinear": (1, 1, 2, 3, 4)}


@pytest.mark.parametrize("mode", ["linear", "bicubic"])
def test_linear_resizing_preserves_a_ramp(mode: str) -> None:
    ramp = np.arange(9.0).reshape(1, 1, 1, 9) if mode == "bicubic" else np.arange(9.0).reshape(1, 1, 9)
    size = (1, 17) if mode == "bicubic" else (17,)
    resized = call("diopiUpsampleLinear", ramp, size, True, mode).ravel()
    inner = slice(3, -3) if mode == "bicubic" else slice(None)  # at the border the cubic kernel sees a plateau
    np.testing.assert_allclose(resized[inner], np.linspace(0, 8, 17)[inner], atol=1e-14)


def test_cubic_kernel_at_a_quarter() -> None:
    impulse = np.zeros((1, 1, 1, 8))
    impulse[..., 3] = 1
    resized = call("diopiUpsampleLinear", impulse, (1, 16), False, "bicubic").ravel()
    # distances 1.75, 1.25, 0.75, 0.25 and back, in the polynomials of Keys with a = -0.75
    quarter = [-0.03515625, -0.10546875, 0.26171875, 0.87890625]
    np.testing.assert_allclose(resized[3:11], [*quarter, *quarter[::-1]], atol=1e-15)
    assert not resized[:3].any()
    assert not resized[11:].any()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("align_corners", [False, True])
def test_resizing_preserves_a_constant(mode: str, align_corners: bool) -> None:
    resized = call("diopiUpsampleLinear", np.full(SHAPES[mode], 3.0), SIZES[mode], align_corners, mode)
    np.testing.assert_allclose(resized, 3.0, atol=1e-14)


@pytest.mark.parametrize(("mode", "reach"), [("bilinear", 1), ("bicubic", 2)])
def test_terms_allow_for_rounding_of_positions_at_elements(mode: str, reach: int) -> None:
    """Of 31 positions in 67 elements the middle one is 33: the elements next to it have the weight 0, but terms."""
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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("align_corners", [False, True])
def test_linear_resizing_gradient_matches_differences(mode: str, align_corners: bool) -> None:
    rng = np.random.default_rng(1)
    shape, size = SHAPES[mode], SIZES[mode]
    x, grad = rng.normal(size=shape), rng.normal(size=(*shape[:2], *size))
    expected = difference(lambda x: call("diopiUpsampleLinear", x, size, align_corners, mode), x, grad)
    actual = call("diopiUpsampleLinearBackward", grad, size, shape, align_corners, mode)
    np.testing.assert_allclose(actual, expected, atol=1e-9)


def test_nearest_resizing_gradient_matches_differences() -> None:
    rng = np.random.default_rng(2)
    x, grad = rng.normal(size=(1, 2, 3, 5)), rng.normal(size=(1, 2, 4, 2))
    expected = difference(lambda x: call("diopiUpsampleNearest", x, (4, 2)), x, grad)
    actual = call("diopiUpsampleNearestBackward", grad, (4, 2), x.shape)
    np.testing.assert_allclose(actual, expected, atol=1e-9)


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


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_sampling_at_the_elements_gives_the_elements(mode: str) -> None:
    volume = np.random.default_rng(4).normal(size=(1, 2, 2, 3, 4))
    centres = [(2 * np.arange(d) + 1) / d - 1 for d in (2, 3, 4)]
    grid = np.stack(np.meshgrid(*centres, indexing="ij")[::-1], -1)[np.newaxis]
    np.testing.assert_allclose(call("diopiGridSample", volume, grid, mode), volume, atol=1e-14)


def test_outside_counts_as_zero_and_halfway_goes_to_the_even_element() -> None:
    line = np.array([[[[1.0, 2.0, 4.0, 8.0]]]])

    def sample(x: float, mode: str) -> float:
        return float(call("diopiGridSample", line, np.array([[[[x, 0.0]]]]), mode).item())

    assert sample(-1.0, "bilinear") == 0.5  # half of element 0, half outside
    assert [sample(x, "nearest") for x in (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0)] == [0, 1, 1, 4, 4, 0]


def test_nonfinite_elements_affect_only_results_with_weight() -> None:
    column = np.array([np.nan, 1.0, 2.0, np.inf]).reshape(1, 1, 4, 1)
    result = raw("diopiUpsampleLinear", column, (8, 1), False, "bilinear")
    assert result.specified.reshape(-1).tolist() == [True, True, True, True, True, False, False, False]
    np.testing.assert_array_equal(strip_remarks(result).reshape(-1)[:5], [np.nan, np.nan, np.nan, 1.25, 1.75])
