"""The cases with exceptional numbers kill the mutants of NaNs, infinities and overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import choice
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.quality.mutation.matrix import run_mutant
from diopi_test.quality.mutation.mutant import Effect
from diopi_test.quality.mutation.nonfinite import (
    NEGATIVE_NAN,
    SATURATION,
    ZERO_FACTOR,
    ZeroSkippingArray,
    nonfinite_mutants,
)


def skipping(values: Any) -> NDArray[Any]:
    """Return an array that skips products with a factor 0."""
    return np.array(values, np.float64).view(ZeroSkippingArray)


@pytest.mark.parametrize(
    ("function", "name", "suffix"),
    [
        ("diopiMax", NEGATIVE_NAN, "negative-nan"),
        ("diopiArgmax", NEGATIVE_NAN, "negative-nan"),
        ("diopiRelu", NEGATIVE_NAN, "negative-nan"),
        ("diopiMm", ZERO_FACTOR, "zero-factors"),
        ("diopiLinear", ZERO_FACTOR, "zero-factors"),
        ("diopiConvolution2d", ZERO_FACTOR, "zero-factors"),
        ("diopiMm", SATURATION, "overflow"),
        ("diopiSum", SATURATION, "overflow"),
        ("diopiExp", SATURATION, "overflow"),
    ],
)
def test_cases_of_level_full_kill_the_mutants(function: str, name: str, suffix: str) -> None:
    selected = [case for case in select_cases(function, "full") if case.label == f"{case.dtype.name}-{suffix}"]
    cases = [compute_baseline_case(lookup(function), case) for case in selected]
    (mutant,) = [mutant for mutant in nonfinite_mutants(function) if mutant.name == name]
    assert run_mutant(mutant, cases).killed_by is not None


@pytest.mark.parametrize("values", [[1.0, np.nan, np.inf], [1.0, 2.0]])
def test_the_mutants_do_not_apply_to_positive_nans_and_products_within_the_range(values: Sequence[float]) -> None:
    case = Case("float16-made-up", Dtype.float16, {"input": TensorSpec((6,), Dtype.float16, choice(values))})
    computed = [compute_baseline_case(lookup("diopiRelu"), case)]
    for mutant in nonfinite_mutants("diopiRelu"):
        result = run_mutant(mutant, computed)
        assert result.killed_by is None
        assert Effect.changed not in result.effects


def test_random_functions_have_none_of_these_mutants() -> None:
    assert list(nonfinite_mutants("diopiUniformInp")) == []


def test_products_with_a_factor_0_are_skipped_in_every_kind_of_product() -> None:
    matrix, vector = skipping([[0.0, 2.0], [np.inf, 3.0]]), np.array([np.inf, 1.0])
    assert (matrix * 0 == 0).all()
    assert (matrix @ vector).tolist() == [2.0, np.inf]
    assert np.einsum("ij,j->i", matrix, vector).tolist() == [2.0, np.inf]
    assert np.tensordot(matrix, vector, 1).tolist() == [2.0, np.inf]
