"""The error budget of a result element, derived from the reference alone: K · (s + ulp(ref) + eps · m).

s is how much the problem itself amplifies rounding: the largest change of the reference when its floating inputs are
moved by half an ulp, eight times. m is the size of intermediate terms that a sound algorithm may cancel, declared
by the reference and zero nearly everywhere. docs/budgets.md says how K, R and each m were found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.data import TensorData
from diopi_test.cases.formats import FloatArray, format_of, is_inexact, is_subnormal, ulp
from diopi_test.oracle.perturbation import ROUNDS, movers, plain, step

K = 8.0
"""Largest accepted ratio of an element's error to s + ulp + eps · m."""

R = 1.0
"""Largest accepted root mean square of those ratios over a result of at least `R_ELEMENTS` elements."""

R_ELEMENTS = 20

EXACT = 2.0**-10
"""Unit, in ulps, of an element that must be exact beside others that need not: no other number is within K."""

NEAR = 2.0**-20
"""Relative difference of squared distances within which the nearest point is for the judge to say."""

Evaluate = Callable[[Mapping[str, Any]], list[NDArray[Any]]]
"""From argument values to the reference's result arrays."""


def amplification(
    evaluate: Evaluate,
    values: Mapping[str, Any],
    results: Sequence[NDArray[Any]],
    dtypes: Sequence[Dtype],
    tested: Dtype,
    seed: Callable[[], Generator],
) -> list[FloatArray]:
    """s of every element of every result.

    Args:
        evaluate: the reference.
        values: materialised arguments.
        results: the reference's results for them.
        dtypes: the element types of the results.
        tested: the element type under test.
        seed: makes the source of the perturbations' signs, the same each time.
    """
    amplified = [np.zeros(result.shape) for result in results]
    for dtype in dict.fromkeys(dtype for dtype in dtypes if is_inexact(dtype)):
        finer = dtype if not is_inexact(tested) or _precision(dtype) >= _precision(tested) else tested
        for i, change in enumerate(_largest_changes(evaluate, values, results, tested, finer, seed())):
            if dtypes[i] is dtype:
                amplified[i] = change
    return amplified


def _largest_changes(
    evaluate: Evaluate,
    values: Mapping[str, Any],
    results: Sequence[NDArray[Any]],
    tested: Dtype,
    dtype: Dtype,
    rng: Generator,
) -> list[FloatArray]:
    """The largest change of each result when the inputs are moved in `dtype`, or their own type if that is finer."""
    largest = [np.zeros(result.shape) for result in results]
    moves = movers(values, tested, dtype, rng)
    if not any(moves.values()) or not any(result.dtype.kind in "fc" for result in results):
        return largest
    # attributes may undo what moves an operand that they cancel: one more round without them
    tensors = {name: None if isinstance(values[name], float) else move for name, move in moves.items()}
    for number, moving in [*((n, moves) for n in range(ROUNDS)), *([(0, tensors)] if tensors != moves else [])]:
        moved = evaluate({name: move(number) if move else plain(values[name]) for name, move in moving.items()})
        largest = [np.maximum(most, _change(a, b)) for most, a, b in zip(largest, results, moved, strict=True)]
    return [0.5 / step(dtype) * most for most in largest]


def _precision(dtype: Dtype) -> int:
    return format_of(dtype).precision


def _change(result: NDArray[Any], moved: NDArray[Any]) -> FloatArray:
    """|moved − result|, 0 where either, or a part of either, is not finite, and for exact results."""
    if result.dtype.kind not in "fc" or result.shape != moved.shape:
        return np.zeros(result.shape)
    with np.errstate(all="ignore"):
        change = np.asarray(moved - result)
    if change.dtype.kind == "c":
        return np.hypot(*(np.where(np.isfinite(part), part, 0) for part in (change.real, change.imag)))
    return np.where(np.isfinite(change), np.abs(change), 0)


def with_unsigned_zeros(reference: NDArray[Any], amplified: FloatArray, dtype: Dtype) -> FloatArray:
    """The amplification of sums: a 0 may be any number below the normal ones, and so have either sign.

    The sign of a sum of zeros depends on what is added to what, and on whether an accumulator starts at +0.
    """
    return np.where(reference == 0, np.maximum(amplified, 2 / K * format_of(dtype).tiny), amplified)


def unit(reference: NDArray[Any], amplified: FloatArray, terms: Any, stored: Any, dtype: Dtype) -> FloatArray:
    """s + ulp + eps · m for each element, at least an ulp; NaN where the reference is not finite.

    eps · m is made of `terms`, rounded to float32 or finer, and of those `stored` in the result's own type; none where
    that is no number.
    """
    spacing, own = ulp(reference, dtype), format_of(dtype).epsilon
    finer = min(own, format_of(Dtype.float32).epsilon)
    with np.errstate(all="ignore"):
        units = amplified + spacing + finer * np.asarray(terms) + own * np.asarray(stored)
        return np.where(np.isnan(units), spacing, np.minimum(units, np.finfo(np.float64).max))


def flushed(value: Any) -> Any:
    """An argument as an implementation sees it that takes subnormal numbers, or parts of them, for zero."""
    if isinstance(value, list):
        return [flushed(entry) for entry in value]
    exact = plain(value)
    if not isinstance(value, TensorData) or not is_inexact(value.spec.dtype):
        return exact
    if not np.iscomplexobj(exact):
        return _flushed(exact, value.spec.dtype)
    parts = exact.copy()
    parts.real, parts.imag = _flushed(exact.real, value.spec.dtype), _flushed(exact.imag, value.spec.dtype)
    return parts


def _flushed(numbers: NDArray[Any], dtype: Dtype) -> NDArray[Any]:
    return np.where(is_subnormal(numbers, dtype), np.copysign(0.0, numbers), numbers)


def has_subnormals(value: Any) -> bool:
    """Whether an argument holds subnormal numbers of its element type, or complex numbers with such parts."""
    if isinstance(value, list):
        return any(has_subnormals(entry) for entry in value)
    if not isinstance(value, TensorData) or not is_inexact(value.spec.dtype):
        return False
    return any(bool(is_subnormal(part, value.spec.dtype).any()) for part in (value.exact.real, value.exact.imag))
