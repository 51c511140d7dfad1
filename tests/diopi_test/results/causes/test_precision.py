"""Only errors that agree with a narrower type in all element types are evidence of arithmetic in that type."""

from __future__ import annotations

import pytest

from diopi_test.results.causes.precision import find_narrow_type

PASSED = ["float16", "bfloat16", "int32", ""]


@pytest.mark.parametrize(
    ("correct_bits", "passed", "narrow"),
    [
        pytest.param([("float64", 25.3)], [*PASSED, "float32"], "float32", id="float64-has-the-bits-of-float32"),
        pytest.param([("float32", 12.0), ("float64", 11.5)], PASSED, "float16", id="wider-types-have-equal-errors"),
        pytest.param(
            [("float16", 9.0), ("float32", 9.2), ("float64", 9.1)], ["bfloat16"], "bfloat16", id="bfloat16-passes"
        ),
        pytest.param(
            [("float16", 6.0), ("bfloat16", 4.6), ("float32", 8.1), ("float64", 7.9)], [], "", id="all-types-fail"
        ),
        pytest.param([("float32", 8.6)], [*PASSED, *["float32"] * 12, "float64"], "", id="most-cases-pass"),
        pytest.param([("float32", 9.0)] * 3, [*PASSED, "float64"], "", id="the-widest-type-passes"),
        pytest.param([("float32", 12.0)], [], "", id="a-single-type-proves-nothing"),
        pytest.param([("float32", 12.0), ("float64", 11.8)], [], "float16", id="two-types-agree"),
        pytest.param([("float32", 12.0), ("float64", 40.0)], PASSED, "", id="wider-types-have-different-errors"),
        pytest.param([("complex128", 25.0)], [*PASSED, "complex64"], "float32", id="complex-numbers-have-parts"),
        pytest.param([("float32", None), ("float64", None)], PASSED, "", id="wrong-values-are-no-rounding"),
    ],
)
def test_the_narrow_type_must_agree_with_all_cases(
    correct_bits: list[tuple[str, float | None]], passed: list[str], narrow: str
) -> None:
    assert find_narrow_type(correct_bits, passed) == narrow
