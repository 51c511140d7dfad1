"""The in-place form gives what the out-of-place form gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.baseline import Expected
from diopi_test.checks.values import compare
from diopi_test.data import widen
from diopi_test.formats import is_inexact
from diopi_test.run import TensorRecord
from diopi_test.series import Series
from diopi_test.verdict import Finding
from lib_rt.dtypes import to_numpy


def check(series: Series) -> Finding | None:
    """The result of the in-place form agrees with that of the vendor's own out-of-place form for the same arguments.

    Exact results are equal. Rounded ones are as near one another as either has to be to the truth: a vendor may well
    have a kernel of its own for the in-place form, which rounds elsewhere. None where there is no out-of-place
    call to compare with, and where several results are right.
    """
    if series.plain is None or series.first.run is None:
        return None
    pairs = zip(series.first.run.results(), series.plain.results(), strict=True)
    problems = [text for (inplace, expected), (plain, _) in pairs if (text := _describe(inplace, expected, plain))]
    return Finding("inplace", not problems, "; ".join(problems))


def _describe(inplace: TensorRecord, expected: Expected, plain: TensorRecord) -> str:
    """How an in-place result differs from the plain one; empty if it agrees."""
    if plain.values.size != inplace.values.size:
        return f"{inplace.name} has shape {inplace.shape}, out of place it has {plain.shape}"
    other = plain.values.reshape(inplace.shape)
    wrong = _apart(inplace.values, other, plain.dtype, expected)
    if not wrong.any():
        return ""
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    count = f"{int(wrong.sum())} of {wrong.size} elements"
    return f"{inplace.name}: {count} differ, the first at {first}: {inplace.values[first]}, {other[first]} out of place"


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
    held = Expected(truth.reshape(shape), expected.dtype, expected.layout, expected.blur, None, expected.specified)
    return compare(given.reshape(shape), held).wrong.reshape(given.shape)
