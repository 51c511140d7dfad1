"""Functions have cases with negative NaNs, zero factors and overflow where their prototypes and cases allow them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from lib_rt.formats import is_inexact


def cases_ending_with(function: str, suffix: str) -> Sequence[Case]:
    """Return the cases of level full whose labels consist of an element type and this suffix."""
    return [case for case in select_cases(function, "full") if case.label == f"{case.dtype.name}-{suffix}"]


def computed_case(function: str, label: str) -> BaselineCase:
    """Return the computed case with this label."""
    case = next(case for case in select_cases(function, "full") if case.label == label)
    return compute_baseline_case(lookup(function), case)


def inputs(case: BaselineCase) -> list[NDArray[Any]]:
    """Return the floating-point tensors of a case as float64."""
    tensors = [tensor for value in case.arguments.values() for tensor in tensors_in(value)]
    return [tensor.values.astype(np.float64) for tensor in tensors if is_inexact(tensor.dtype)]


def result(case: BaselineCase) -> NDArray[Any]:
    """Return the first expected result of a case."""
    return expected_arrays(next(iter(case.expected.values())))[0].values


@pytest.mark.parametrize(
    ("function", "label"),
    [
        ("diopiMax", "float32-negative-nan"),
        ("diopiMaxPool2d", "float16-negative-nan"),
        ("diopiAmax", "bfloat16-negative-nan"),
    ],
)
def test_every_nan_of_a_case_with_negative_nans_has_the_sign_bit_set(function: str, label: str) -> None:
    nans = np.concatenate([array[np.isnan(array)] for array in inputs(computed_case(function, label))])
    assert nans.size > 0
    assert np.signbit(nans).all()


def test_functions_whose_cases_have_nans_have_a_case_with_negative_nans_per_type() -> None:
    found = {case.dtype for case in cases_ending_with("diopiRelu", "negative-nan")}
    assert found == {Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.float64}
    assert not cases_ending_with("diopiBitwiseAnd", "negative-nan")
    assert not cases_ending_with("diopiUniformInp", "negative-nan")


@pytest.mark.parametrize(
    "function", ["diopiMm", "diopiBmm", "diopiLinear", "diopiMatmul", "diopiAddmm", "diopiConvolution2d"]
)
def test_a_product_of_zeros_and_infinities_is_nan(function: str) -> None:
    case = computed_case(function, "float32-zero-factors")
    assert all((array[np.isfinite(array)] == 0).all() for array in inputs(case))
    assert np.isnan(result(case)).any()
    assert (result(case) == 0).any()


@pytest.mark.parametrize(
    "function", ["diopiMm", "diopiLinear", "diopiSum", "diopiExp", "diopiPow", "diopiConvolution2d"]
)
def test_finite_numbers_overflow_to_infinity(function: str) -> None:
    case = computed_case(function, "float16-overflow")
    assert all(np.isfinite(array).all() for array in inputs(case))
    assert (np.abs(result(case)) >= 65_520).any()


def test_only_functions_that_round_have_cases_of_overflow() -> None:
    assert not cases_ending_with("diopiMax", "overflow")
    assert not cases_ending_with("diopiEq", "overflow")
    assert not cases_ending_with("diopiTanhBackward", "overflow")
