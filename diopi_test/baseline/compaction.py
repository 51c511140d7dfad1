"""Compact results for levels of large cases: fewer bits per number, and bytes in an order that compresses well.

Rounding does not change a verdict. A reference value in float64 keeps `SPARE_BITS` more bits than the result's type, so
it changes by at most 2^-10 ulp. A budget allows at least 8 ulps. A budget in ulps is rounded up to 8 significant bits,
so it grows by at most 1/128. Exact results are stored in their own type.

The inputs of most large cases repeat a sequence of `sweep.PERIOD` values. If the elements of a result and of its budget
repeat with this period, too, only the first period of the flat arrays is stored.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases import sweep
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.records import Expected, tensors_in
from lib_rt.dtypes import to_numpy
from lib_rt.formats import format_of, is_inexact

Array = NDArray[Any]

SPARE_BITS = 9
"""The number of bits that stored reference values have beyond the precision of the result's type."""

_FLOAT64_PRECISION = 53
"""The number of significant bits of float64."""


def extract_period(expected: Expected) -> Expected:
    """Return an expected result with the first period of its flat arrays if all of them repeat; else unchanged."""
    budget = expected.budget
    arrays = [expected.values, None if budget is None else budget.unit, expected.flushed, expected.specified]
    present = [array for array in arrays if array is not None]
    if expected.values.size <= sweep.PERIOD or not all(map(_repeats, present)):
        return expected

    def shorten(array: Array | None) -> Any:
        return None if array is None else array.reshape(-1)[: sweep.PERIOD]

    return replace(
        expected,
        values=shorten(expected.values),
        budget=None if budget is None else Budget(shorten(budget.unit)),
        flushed=shorten(expected.flushed),
        specified=shorten(expected.specified),
    )


def _repeats(array: Array) -> bool:
    """Return whether the elements of an array repeat bit for bit with the period `sweep.PERIOD`."""
    elements = np.ascontiguousarray(array).reshape(-1)
    content, distance = elements.view(np.uint8), sweep.PERIOD * elements.itemsize
    first, second = content[:distance], content[distance : 2 * distance]
    return np.array_equal(first[: second.size], second) and np.array_equal(content[:-distance], content[distance:])


def compact_expected(expected: Expected) -> Expected:
    """Return an expected result with rounded values, which compress well and lead to the same verdicts."""
    if not is_inexact(expected.dtype):
        return expected
    round_values = _round_to_type if expected.budget is None else _drop_bits
    flushed = None if expected.flushed is None else round_values(expected.flushed, expected.dtype)
    return replace(expected, values=round_values(expected.values, expected.dtype), flushed=flushed)


def _round_to_type(values: Array, dtype: Dtype) -> Array:
    """Round numbers to the result's type; return half-precision numbers in float32, where comparison is faster."""
    with np.errstate(all="ignore"):
        rounded = values.astype(to_numpy(dtype))
    return rounded.astype(np.float32) if dtype in (Dtype.float16, Dtype.bfloat16) else rounded


def _drop_bits(values: Array, dtype: Dtype) -> Array:
    """Return float64 numbers rounded to `SPARE_BITS` more bits than `dtype` has.

    Numbers that would become infinite, NaN or 0 are returned unchanged.
    """
    if np.iscomplexobj(values):
        rounded = np.empty(values.shape, np.complex128)
        rounded.real, rounded.imag = _drop_bits(values.real, dtype), _drop_bits(values.imag, dtype)
        return rounded
    dropped = _FLOAT64_PRECISION - format_of(dtype).precision - SPARE_BITS
    if dropped <= 0:
        return values
    bits = np.asarray(values, np.float64, order="C").view(np.uint64)  # np.ascontiguousarray adds an axis to 0-d
    half, mask = np.uint64(1 << (dropped - 1)), np.uint64(2**64 - (1 << dropped))
    rounded_values = ((bits + half) & mask).view(np.float64)
    is_kept = np.isfinite(values) & np.isfinite(rounded_values) & (rounded_values != 0)
    return np.where(is_kept, rounded_values, values)


def round_up_ulps(ulps: NDArray[np.float32]) -> Array:
    """Round budgets in ulps up to bfloat16; return them unchanged if one of them exceeds the range of bfloat16."""
    bits = np.asarray(ulps, order="C").view(np.uint32)
    rounded = (((bits + np.uint32(0xFFFF)) >> np.uint32(16)).astype(np.uint16)).view(ml_dtypes.bfloat16)
    return rounded if np.isfinite(rounded.astype(np.float32)).all() else ulps


def widen_ulps(ulps: Array) -> Array:
    """Convert budgets in ulps from bfloat16 to float32; return budgets of another type unchanged."""
    return ulps.astype(np.float32) if ulps.dtype == ml_dtypes.bfloat16 else ulps


def to_byte_planes(array: Array) -> bytes:
    """Return the bytes of an array grouped by their position in an element, which puts similar bytes together."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).reshape(-1, flat.dtype.itemsize).T.tobytes()


def from_byte_planes(data: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> Array:
    """Return the array that `to_byte_planes` converted to the bytes in `data` at `offset`."""
    count = math.prod(shape)
    parts = np.frombuffer(data, np.uint8, count * dtype.itemsize, offset).reshape(dtype.itemsize, count)
    return np.ascontiguousarray(parts.T).reshape(-1).view(dtype).reshape(shape)


def argument_digest(arguments: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a case's tensor arguments: names, types, layouts, shapes and elements."""
    digest = hashlib.sha256()
    for name, value in sorted(arguments.items()):
        for tensor in tensors_in(value):
            form = (name, tensor.dtype.name, tensor.layout, tensor.values.shape)
            digest.update(repr(form).encode())
            digest.update(np.ascontiguousarray(tensor.values).tobytes())
    return digest.hexdigest()
