"""Results made small for levels of large cases: fewer bits of each number, and bytes in an order that compresses.

What is rounded, and why that can't change a verdict: a reference value in float64 keeps `SPARE` bits more than the
result's type has, so it moves by 2^-10 of an ulp at most, where a budget allows 8 ulps or more. A budget in ulps is
rounded up, to 8 significant bits: it grows by 1/128 at most, and none shrinks. Exact results are stored in their own
type.
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
from diopi_test.baseline.records import Expected, tensors_in
from diopi_test.cases.formats import format_of, is_inexact
from lib_rt.dtypes import to_numpy

Array = NDArray[Any]

SPARE_BITS = 9
"""Bits that reference values have more than results."""

_FLOAT64_PRECISION = 53
"""The significant bits of float64."""


def compact_expected(expected: Expected) -> Expected:
    """The expectation with values that compress; compared with it, a result has the same verdict."""
    if not is_inexact(expected.dtype):
        return expected
    shorter = _round_to_type if expected.unit is None else _drop_bits
    flushed = None if expected.flushed is None else shorter(expected.flushed, expected.dtype)
    return replace(expected, values=shorter(expected.values, expected.dtype), flushed=flushed)


def _round_to_type(values: Array, dtype: Dtype) -> Array:
    """Numbers rounded to the result's type; those of half precision in float32, as comparing is quicker there."""
    with np.errstate(all="ignore"):
        rounded = values.astype(to_numpy(dtype))
    return rounded.astype(np.float32) if dtype in (Dtype.float16, Dtype.bfloat16) else rounded


def _drop_bits(values: Array, dtype: Dtype) -> Array:
    """float64 numbers rounded to the nearest with `SPARE` bits more than `dtype`; those that are not finite as such."""
    if np.iscomplexobj(values):
        rounded = np.empty(values.shape, np.complex128)
        rounded.real, rounded.imag = _drop_bits(values.real, dtype), _drop_bits(values.imag, dtype)
        return rounded
    dropped = _FLOAT64_PRECISION - format_of(dtype).precision - SPARE_BITS
    if dropped <= 0:
        return values
    bits = np.asarray(values, np.float64, order="C").view(np.uint64)  # np.ascontiguousarray adds an axis to 0-d
    half, mask = np.uint64(1 << (dropped - 1)), np.uint64(2**64 - (1 << dropped))
    short = ((bits + half) & mask).view(np.float64)
    is_kept = np.isfinite(values) & np.isfinite(short) & (short != 0)
    return np.where(is_kept, short, values)


def round_up_ulps(ulps: NDArray[np.float32]) -> Array:
    """Units in ulps with the 8 significant bits of bfloat16; as they are where one is beyond its range."""
    bits = np.asarray(ulps, order="C").view(np.uint32)
    short = (((bits + np.uint32(0xFFFF)) >> np.uint32(16)).astype(np.uint16)).view(ml_dtypes.bfloat16)
    return short if np.isfinite(short.astype(np.float32)).all() else ulps


def widen_ulps(ulps: Array) -> Array:
    """Units in ulps as they are computed with."""
    return ulps.astype(np.float32) if ulps.dtype == ml_dtypes.bfloat16 else ulps


def to_byte_planes(array: Array) -> bytes:
    """The bytes of an array, the first of each element, then the second of each, and so on: alike ones are together."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).reshape(-1, flat.dtype.itemsize).T.tobytes()


def from_byte_planes(data: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> Array:
    """The array of which `planes` lie in `data` at `offset`."""
    count = math.prod(shape)
    parts = np.frombuffer(data, np.uint8, count * dtype.itemsize, offset).reshape(dtype.itemsize, count)
    return np.ascontiguousarray(parts.T).reshape(-1).view(dtype).reshape(shape)


def argument_digest(arguments: Mapping[str, Any]) -> str:
    """The SHA-256 of a case's tensor arguments: names, types, layouts, shapes and elements."""
    digest = hashlib.sha256()
    for name, value in sorted(arguments.items()):
        for tensor in tensors_in(value):
            form = (name, tensor.dtype.name, tensor.layout, tensor.values.shape)
            digest.update(repr(form).encode())
            digest.update(np.ascontiguousarray(tensor.values).tobytes())
    return digest.hexdigest()
