"""The check that the in-place form has the same results as the out-of-place form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.checks import location
from diopi_test.checks.values import compare
from diopi_test.execution.call_sequence import CallSequence
from diopi_test.execution.difference import Difference
from diopi_test.execution.verdict import CheckResult
from diopi_test.oracle.data import widen
from diopi_test.oracle.records import Expected
from lib_rt.dtypes import to_numpy
from lib_rt.formats import is_inexact


def check(sequence: CallSequence) -> CheckResult | None:
    """Check that the in-place form's result agrees with the result of the vendor's out-of-place form.

    Exact results must be equal. Rounded results may differ from each other by the error budget, because a vendor may
    have a separate kernel for the in-place form that rounds differently.

    Args:
        sequence: the calls of a case.

    Returns:
        The result of the check; None if there is no out-of-place call.
    """
    if sequence.plain is None or sequence.first.run is None:
        return None
    pairs = zip(sequence.first.run.results(), sequence.plain.results(), strict=True)
    problems, places = [], []
    for (inplace, expected), (plain, _) in pairs:
        if plain.values.size != inplace.values.size:
            problems.append(f"{inplace.name} has shape {inplace.shape}, out of place it has {plain.shape}")
            continue
        plain_values = plain.values.reshape(inplace.shape)
        is_wrong = _exceeds_budget(inplace.values, plain_values, plain.dtype, expected)
        if is_wrong.any():
            places.append(location.locate_in_record(sequence.first.run, inplace, "differ", is_wrong, plain_values))
            problems.append(_describe(places[-1]))
    return CheckResult(
        check="inplace",
        passed=not problems,
        message="; ".join(problems),
        differences=tuple(places[: location.MAX_LOCATIONS]),
    )


def _describe(place: Difference) -> str:
    """Return a description such as `input: 3 of 15 elements differ, the first at (0, 2): 1.25, 1.5 out of place`."""
    count = f"{place.tensor}: {place.wrong_count} of {place.total} elements {place.problem}"
    return f"{count}, the first at {place.index}: {place.actual}, {place.expected} out of place{place.pattern_suffix}"


def _exceeds_budget(
    inplace: NDArray[np.generic], plain: NDArray[np.generic], plain_dtype: Dtype, expected: Expected
) -> NDArray[np.bool_]:
    """Return a mask of the elements whose two results differ by more than the error budget.

    The out-of-place result may have a wider type, because the standard converts the in-place result to the type of the
    tensor that it overwrites. Therefore, an element is correct if the in-place result is near the out-of-place result.
    It is also correct if the out-of-place result, converted to the narrower type, is near the in-place result.

    Args:
        inplace: The elements of the in-place result.
        plain: The elements of the out-of-place result, in the same shape.
        plain_dtype: The element type of the out-of-place result.
        expected: The expected in-place result, with its budget.
    """
    with np.errstate(all="ignore"):
        plain_result = plain.astype(to_numpy(expected.dtype))
    exact_values = widen(plain, plain_dtype) if is_inexact(expected.dtype) else plain_result
    back = widen(inplace, expected.dtype) if is_inexact(expected.dtype) else inplace
    return _outside_budget(inplace, exact_values, expected) & _outside_budget(plain_result, back, expected)


def _outside_budget(actual: NDArray[np.generic], truth: NDArray[np.generic], expected: Expected) -> NDArray[np.bool_]:
    """Return a mask of the specified elements that differ from `truth` by more than the expected result's budget."""
    shape = expected.values.shape
    truth_with_budget = Expected(
        values=truth.reshape(shape),
        dtype=expected.dtype,
        layout=expected.layout,
        budget=expected.budget,
        flushed=None,
        specified=expected.specified,
    )
    return compare(actual.reshape(shape), truth_with_budget).is_wrong.reshape(actual.shape)
