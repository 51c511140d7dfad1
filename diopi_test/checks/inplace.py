"""The in-place form gives what the out-of-place form gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.baseline.records import Expected
from diopi_test.cases.data import widen
from diopi_test.cases.formats import is_inexact
from diopi_test.checks import where
from diopi_test.checks.values import compare
from diopi_test.execution.call_sequence import CallSequence
from diopi_test.execution.difference import Difference
from diopi_test.execution.verdict import CheckResult
from lib_rt.dtypes import to_numpy


def check(sequence: CallSequence) -> CheckResult | None:
    """The result of the in-place form agrees with that of the vendor's own out-of-place form for the same arguments.

    Exact results are equal. Rounded ones are as near one another as either has to be to the truth: a vendor may well
    have a kernel of its own for the in-place form, which rounds elsewhere. None where there is no out-of-place
    call to compare with, and where several results are right.
    """
    if sequence.plain is None or sequence.first.run is None:
        return None
    pairs = zip(sequence.first.run.results(), sequence.plain.results(), strict=True)
    problems, places = [], []
    for (inplace, expected), (plain, _) in pairs:
        if plain.values.size != inplace.values.size:
            problems.append(f"{inplace.name} has shape {inplace.shape}, out of place it has {plain.shape}")
            continue
        other = plain.values.reshape(inplace.shape)
        wrong = _apart(inplace.values, other, plain.dtype, expected)
        if wrong.any():
            places.append(where.locate_in(sequence.first.run, inplace, "differ", wrong, other))
            problems.append(_describe(places[-1]))
    return CheckResult("inplace", not problems, "; ".join(problems), differences=tuple(places[: where.MOST]))


def _describe(place: Difference) -> str:
    """`input: 3 of 15 elements differ, the first at (0, 2): 1.25, 1.5 out of place`."""
    count = f"{place.tensor}: {place.wrong_count} of {place.total} elements {place.problem}"
    return f"{count}, the first at {place.index}: {place.actual}, {place.expected} out of place{place.common}"


def _apart(
    inplace: NDArray[np.generic], plain: NDArray[np.generic], plain_dtype: Dtype, expected: Expected
) -> NDArray[np.bool_]:
    """Where two results are further apart than either may be from the truth, whichever is taken for it.

    The plain one may have a wider type: the standard converts the result to the type of the tensor it overwrites.
    """
    with np.errstate(all="ignore"):
        narrow = plain.astype(to_numpy(expected.dtype))
    wide = widen(plain, plain_dtype) if is_inexact(expected.dtype) else narrow
    back = widen(inplace, expected.dtype) if is_inexact(expected.dtype) else inplace
    return _outside(inplace, wide, expected) & _outside(narrow, back, expected)


def _outside(given: NDArray[np.generic], truth: NDArray[np.generic], expected: Expected) -> NDArray[np.bool_]:
    shape = expected.values.shape
    held = Expected(truth.reshape(shape), expected.dtype, expected.layout, expected.unit, None, expected.specified)
    return compare(given.reshape(shape), held).wrong.reshape(given.shape)
