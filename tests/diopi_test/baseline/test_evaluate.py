"""Cases that are made to be called: their data and the form of their results are those of the baseline."""

from __future__ import annotations

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_test.baseline.compaction import argument_digest
from diopi_test.baseline.evaluate import compute_baseline_case, draw_case_with_zeros
from diopi_test.baseline.records import expected_arrays
from diopi_test.cases.selection import select_cases


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
def test_it_is_the_case_of_the_baseline_but_for_what_must_come_of_it(function: str) -> None:
    prototype = lookup(function)
    for case in select_cases(function, "smoke")[:6]:
        made, to_call = compute_baseline_case(prototype, case), draw_case_with_zeros(prototype, case)
        assert argument_digest(to_call.arguments) == argument_digest(made.arguments)
        assert to_call.expected.keys() == made.expected.keys()
        for name, value in made.expected.items():
            results = expected_arrays(to_call.expected[name])
            forms = [(one.values.shape, one.dtype, one.layout) for one in results]
            assert forms == [(one.values.shape, one.dtype, one.layout) for one in expected_arrays(value)]
            assert not any(np.any(one.values) for one in results)
            assert (to_call.expected[name] is None) == (value is None)


def test_a_function_needs_a_reference() -> None:
    (case, *_) = select_cases("diopiRelu", "smoke")
    with pytest.raises(ValueError, match="diopiGetVendorName has no reference"):
        draw_case_with_zeros(lookup("diopiGetVendorName"), case)
