"""The check that a repeated call with tensors at other addresses has equal results."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.prototype import Prototype
from diopi_test.checks import location
from diopi_test.execution.call_record import CallRecord, are_bits_equal
from diopi_test.execution.call_sequence import SECOND_CALL, CallSequence
from diopi_test.execution.difference import Difference, assign_call
from diopi_test.execution.verdict import CheckResult
from diopi_test.oracle.records import Expected

PROBLEM = "have other bits"
"""The predicate in the message about results that differ: "3 of 15 elements have other bits"."""


def check(sequence: CallSequence) -> CheckResult | None:
    """Check that a second call with equal inputs has correct results that are equal bit for bit.

    The second call gets new tensors at other offsets in their storages. The offsets differ by multiples of 256 bytes,
    because a correct kernel may add, and so round, in another order if the alignment changes. Some results must be
    correct but need not be equal:

    - results of functions that don't guarantee equal bits (`Prototype.repeats_bits`)
    - results that a validator checks, and elements that the standard doesn't specify
    - rounded results, if the vendor declares that the order of its sums varies

    Args:
        sequence: the calls of a case.

    Returns:
        The result of the check; None if there was no second call, or if the first call returned an error.
    """
    if sequence.queued is None or sequence.first.run is None:
        return None
    second_attempt = sequence.waited or sequence.queued
    problem, places = second_attempt.problem, second_attempt.differences
    if second_attempt.run is not None and not problem and _must_repeat_bits(sequence.first.run):
        places = tuple(find_bit_differences(sequence.first.run, second_attempt.run))
        problem = "; ".join(map(describe_bits, places))
    message = f"a second call: {problem}" if problem else ""
    return CheckResult(
        check="repeat",
        passed=not problem,
        message=message,
        differences=assign_call(places[: location.MAX_LOCATIONS], SECOND_CALL),
    )


def _must_repeat_bits(run: CallRecord) -> bool:
    """Return whether an equal call must return equal bits, with the arithmetic that the vendor declares."""
    is_exempt = run.case.has_unordered_sums and run.prototype.guarantee == "rounded"
    return not is_exempt and _repeats_bits(run.prototype)


@cache
def _repeats_bits(prototype: Prototype) -> bool:
    """Return whether a function guarantees equal bits for equal calls; cached, because it searches all prototypes."""
    return prototype.repeats_bits


def find_bit_differences(first: CallRecord, second: CallRecord) -> Iterator[Difference]:
    """Yield a difference for each result of two equal calls whose specified elements differ in a bit.

    Results that need a validator are skipped.

    Args:
        first: the record of the first call, whose elements are the expected ones in the difference.
        second: the record of the repeated call.
    """
    for (first_record, expected), (second_record, _) in zip(first.results(), second.results(), strict=True):
        if expected.needs_validator or are_bits_equal(first_record.values, second_record.values):
            continue
        if (differ := _differing_elements(first_record.values, second_record.values, expected)).any():
            yield location.locate_in_record(second, second_record, PROBLEM, differ, first_record.values)
    for first_value, second_value in zip(first.values, second.values, strict=True):
        actual, previous = np.asarray(second_value.actual), np.asarray(first_value.actual)
        if (differ := _differing_elements(previous, actual, first_value.expected)).any():
            dtype = first_value.expected.dtype
            yield location.locate(second, first_value.name, PROBLEM, differ, actual, previous, dtype, measured=False)


def _differing_elements(
    first_elements: NDArray[Any], second_elements: NDArray[Any], expected: Expected
) -> NDArray[np.bool_]:
    """Return a mask of the specified elements whose bits differ between two calls."""
    differ = location.bits_differ(first_elements, second_elements)
    return differ if expected.specified is None else differ & expected.specified.reshape(differ.shape)


def describe_bits(place: Difference) -> str:
    """Return a description such as `out: 3 of 15 elements have other bits, the first at (0, 2): 1.25, 1.5 before`."""
    count = f"{place.tensor}: {place.wrong_count} of {place.total} elements {place.problem}"
    return f"{count}, the first at {place.index}: {place.actual}, {place.expected} before{place.pattern_suffix}"
