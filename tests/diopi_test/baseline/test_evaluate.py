"""Cases that are made to be called: their data and the form of their results are those of the baseline."""

from __future__ import annotations

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_test.baseline.compact import digest_of
from diopi_test.baseline.evaluate import make_baseline_case, make_case_to_call
from diopi_test.baseline.records import entries_of
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
        made, to_call = make_baseline_case(prototype, case), make_case_to_call(prototype, case)
        assert digest_of(to_call.arguments) == digest_of(made.arguments)
        assert to_call.expected.keys() == made.expected.keys()
        for name, value in made.expected.items():
            results = entries_of(to_call.expected[name])
            forms = [(one.values.shape, one.dtype, one.layout) for one in results]
            assert forms == [(one.values.shape, one.dtype, one.layout) for one in entries_of(value)]
            assert not any(np.any(one.values) for one in results)
            assert (to_call.expected[name] is None) == (value is None)


def test_a_function_needs_a_reference() -> None:
    (case, *_) = select_cases("diopiRelu", "smoke")
    with pytest.raises(ValueError, match="diopiGetVendorName has no reference"):
        make_case_to_call(lookup("diopiGetVendorName"), case)
