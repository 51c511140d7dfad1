"""Cases that are evaluated without a baseline have the data and the result forms of the baseline."""

from __future__ import annotations

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_test.baseline.compaction import argument_digest
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case, draw_case_with_zeros
from diopi_test.oracle.records import expected_arrays


@pytest.mark.parametrize(
    "function",
    [
        "diopiAddScalar",
        "diopiCholesky",  # two results, one of integers
        "diopiLayerNorm",  # results that may be left out
        "diopiMaxPool2dBackward",  # an argument that is another function's result
        "diopiSplitWithSizes",  # an array of results
        "diopiReluInp",  # in place
    ],
)
def test_draw_case_with_zeros_differs_from_the_baseline_only_in_expected_results(function: str) -> None:
    prototype = lookup(function)
    for case in select_cases(function, "smoke")[:6]:
        actual, to_call = compute_baseline_case(prototype, case), draw_case_with_zeros(prototype, case)
        assert argument_digest(to_call.arguments) == argument_digest(actual.arguments)
        assert to_call.expected.keys() == actual.expected.keys()
        for name, value in actual.expected.items():
            results = expected_arrays(to_call.expected[name])
            forms = [(expected.values.shape, expected.dtype, expected.layout) for expected in results]
            assert forms == [
                (expected.values.shape, expected.dtype, expected.layout) for expected in expected_arrays(value)
            ]
            assert not any(np.any(expected.values) for expected in results)
            assert (to_call.expected[name] is None) == (value is None)


def test_a_function_needs_a_reference() -> None:
    (case, *_) = select_cases("diopiRelu", "smoke")
    with pytest.raises(ValueError, match="diopiGetVendorName"):
        draw_case_with_zeros(lookup("diopiGetVendorName"), case)
