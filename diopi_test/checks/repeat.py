"""The same call gives the same result again, wherever in memory its tensors lie."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.prototype import Prototype
from diopi_test.baseline.records import Expected
from diopi_test.checks import where
from diopi_test.execution.call_record import CallRecord, is_same
from diopi_test.execution.call_sequence import SECOND, CallSequence
from diopi_test.execution.difference import Difference, assign_call
from diopi_test.execution.verdict import CheckResult

PROBLEM = "have other bits"


def check(sequence: CallSequence) -> CheckResult | None:
    """A second call with equal inputs gives right results again, and bit for bit the same ones.

    The second call gets new tensors at other offsets in their storages. The offsets differ by multiples of 256 bytes,
    because a sound kernel may work, and so round, in another order if the alignment changes. Some results must be right
    but need not be equal: those of functions that do not guarantee equal bits (`Prototype.repeats_bits`), those that
    a validator decides about, and elements that the standard leaves open.
    """
    if sequence.queued is None or sequence.first.run is None:
        return None
    again = sequence.waited or sequence.queued
    problem, places = again.problem, again.differences
    if again.run is not None and not problem and _repeats_bits(sequence.first.run.prototype):
        places = tuple(_differences(sequence.first.run, again.run))
        problem = "; ".join(map(_describe, places))
    message = f"a second call: {problem}" if problem else ""
    return CheckResult("repeat", not problem, message, differences=assign_call(places[: where.MOST], SECOND))


@cache
def _repeats_bits(prototype: Prototype) -> bool:
    return prototype.repeats_bits  # cached, since all prototypes are gone through for it


def _differences(first: CallRecord, again: CallRecord) -> Iterator[Difference]:
    """Where the bits of the results differ."""
    for (one, expected), (other, _) in zip(first.results(), again.results(), strict=True):
        if expected.needs_validator or is_same(one.values, other.values):
            continue
        if (differ := _differ(one.values, other.values, expected)).any():
            yield where.locate_in(again, other, PROBLEM, differ, one.values)
    for before, after in zip(first.values, again.values, strict=True):
        given, wanted = np.asarray(after.actual), np.asarray(before.actual)
        if (differ := _differ(wanted, given, before.expected)).any():
            dtype = before.expected.dtype
            yield where.locate(again, before.name, PROBLEM, differ, given, wanted, dtype, measured=False)


def _differ(before: NDArray[Any], after: NDArray[Any], expected: Expected) -> NDArray[np.bool_]:
    differ = where.have_other_bits(before, after)
    return differ if expected.specified is None else differ & expected.specified.reshape(differ.shape)


def _describe(place: Difference) -> str:
    """`out: 3 of 15 elements have other bits, the first at (0, 2): 1.25, 1.5 before`."""
    count = f"{place.tensor}: {place.wrong_count} of {place.total} elements {place.problem}"
    return f"{count}, the first at {place.index}: {place.actual}, {place.expected} before{place.common}"
