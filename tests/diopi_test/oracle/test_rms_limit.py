"""The limit of the root mean square of errors: correct vendors stay below it, narrow arithmetic exceeds it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.reference import find_reference
from diopi_test.oracle.rms_limit import FALSE_FAILURE, FUNCTION_ERROR, HALF_LIMIT, MIN_ELEMENTS, rms_limit

NUMBERS = (MIN_ELEMENTS, 100, 1000, 100_000)


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.bfloat16])
@pytest.mark.parametrize("elements", NUMBERS)
def test_the_limit_of_half_precision_does_not_depend_on_the_number_of_elements(dtype: Dtype, elements: int) -> None:
    assert rms_limit(dtype, elements) == HALF_LIMIT


@pytest.mark.parametrize("dtype", [Dtype.float32, Dtype.float64, Dtype.complex64])
def test_the_limit_decreases_to_the_root_mean_square_of_uniform_errors(dtype: Dtype) -> None:
    limits = [rms_limit(dtype, elements) for elements in NUMBERS]
    assert limits == sorted(limits, reverse=True)
    assert limits[0] == FUNCTION_ERROR
    assert rms_limit(dtype, 10**9) == pytest.approx(FUNCTION_ERROR / math.sqrt(3), rel=1e-3)


def test_functions_within_two_ulps_never_exceed_the_limit() -> None:
    assert rms_limit(Dtype.float32, 10**12) > 2
    errors_in_half_precision = [0.5 + 2 * 2.0 ** (11 - 24), 0.5 + 2 * 2.0 ** (8 - 24)]  # in ulps of the result
    assert max(errors_in_half_precision) < HALF_LIMIT


@pytest.mark.exhaustive
def test_a_full_run_of_a_correct_vendor_fails_with_a_probability_below_one_in_a_million() -> None:
    cases = {name: len(list(select_cases(name, "full"))) for name in prototypes() if find_reference(name)}
    results = sum(count * len(lookup(name).results) for name, count in cases.items())
    pools = len(cases) * len(Dtype)
    assert results > 10_000
    assert (10 * results + pools) * FALSE_FAILURE < 1e-6  # a result may be an array of tensors, of which few have ten


@pytest.mark.parametrize("elements", NUMBERS)
def test_uniform_errors_within_four_ulps_exceed_the_limit_with_at_most_the_stated_probability(elements: int) -> None:
    limit = rms_limit(Dtype.float32, elements)
    # Markov's inequality for exp(θ · the sum of the squares), with the best θ on a grid, is another upper bound.
    squares = np.linspace(0, FUNCTION_ERROR, 20_001) ** 2
    exponents = np.linspace(0, 3, 601)[1:]
    logarithms = [
        elements * (math.log(np.mean(np.exp(theta * (squares - squares[-1])))) + theta * (squares[-1] - limit**2))
        for theta in exponents
    ]
    is_impossible = limit >= FUNCTION_ERROR
    assert is_impossible or min(logarithms) <= math.log(FALSE_FAILURE)
