"""The error budget of a result element, derived only from the reference: K · (s + ulp(ref) + eps · m).

s is the amplification of rounding by the problem itself: the largest change of the reference when its floating-point
inputs are perturbed by half an ulp, in eight rounds. m is the size of intermediate terms that a sound algorithm may
cancel. The reference declares m, which is zero for most functions. docs/budgets.md explains the choice of K, R and m.
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
from diopi_test.oracle.perturbation import ROUNDS, exact_value, make_movers, step

K = 8.0
"""Largest accepted ratio of an element's error to s + ulp + eps · m."""

R = 1.0
"""Largest accepted root mean square of these ratios over a result of at least `R_ELEMENTS` elements."""

R_ELEMENTS = 20

EXACT = 2.0**-10
"""Unit, in ulps, of an exact element in a result with rounded elements: no other number is within K units."""

NEAR = 2.0**-20
"""Relative difference of squared distances below which rounding may decide which point is the nearest."""

Evaluate = Callable[[Mapping[str, Any]], list[NDArray[Any]]]
"""Maps argument values to the reference's result arrays."""


def amplification(
    evaluate: Evaluate,
    values: Mapping[str, Any],
    results: Sequence[NDArray[Any]],
    dtypes: Sequence[Dtype],
    tested: Dtype,
    seed: Callable[[], Generator],
) -> list[FloatArray]:
    """Return the amplification s of every element of every result.

    Args:
        evaluate: the reference.
        values: the materialised arguments.
        results: the reference's results for the unperturbed arguments.
        dtypes: the element types of the results.
        tested: the element type under test.
        seed: returns a generator for the signs of the perturbations, with the same seed at every call.

    Returns:
        For each result an array of its shape, in the unit of the result. It is zero for exact results.
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
    """Return the largest change of each result if the inputs are perturbed in `dtype`, or in their own finer type."""
    largest = [np.zeros(result.shape) for result in results]
    moves = make_movers(values, tested, dtype, rng)
    if not any(moves.values()) or not any(result.dtype.kind in "fc" for result in results):
        return largest
    # attributes may hide the change of an operand that they cancel, so one more round leaves them unperturbed
    tensors = {name: None if isinstance(values[name], float) else move for name, move in moves.items()}
    for number, moving in [*((n, moves) for n in range(ROUNDS)), *([(0, tensors)] if tensors != moves else [])]:
        moved = evaluate({name: move(number) if move else exact_value(values[name]) for name, move in moving.items()})
        largest = [
            np.maximum(maximum, _absolute_change(a, b)) for maximum, a, b in zip(largest, results, moved, strict=True)
        ]
    return [0.5 / step(dtype) * maximum for maximum in largest]


def _precision(dtype: Dtype) -> int:
    return format_of(dtype).precision


def _absolute_change(result: NDArray[Any], moved: NDArray[Any]) -> FloatArray:
    """Return |moved − result|; 0 where either number or a part of it is not finite, and for exact results."""
    if result.dtype.kind not in "fc" or result.shape != moved.shape:
        return np.zeros(result.shape)
    with np.errstate(all="ignore"):
        change = np.asarray(moved - result)
    if change.dtype.kind == "c":
        return np.hypot(*(np.where(np.isfinite(part), part, 0) for part in (change.real, change.imag)))
    return np.where(np.isfinite(change), np.abs(change), 0)


def with_unsigned_zeros(reference: NDArray[Any], amplified: FloatArray, dtype: Dtype) -> FloatArray:
    """Return the amplification of sums: the budget of a 0 allows any subnormal number, and so a 0 of either sign.

    The sign of a sum of zeros depends on the order of additions, and on whether an accumulator starts at +0.

    Args:
        reference: the reference's result.
        amplified: the amplification of its elements, of the same shape.
        dtype: the element type of the result.

    Returns:
        The amplification, raised where the reference is 0.
    """
    return np.where(reference == 0, np.maximum(amplified, 2 / K * format_of(dtype).tiny), amplified)


def error_unit(reference: NDArray[Any], amplified: FloatArray, terms: Any, stored: Any, dtype: Dtype) -> FloatArray:
    """Return s + ulp + eps · m for each element, at least an ulp; NaN where the reference is not finite.

    Args:
        reference: the reference's result.
        amplified: s, of the shape of the result.
        terms: intermediate terms that are rounded to float32 or to a finer type; broadcasts to the result.
        stored: intermediate terms that are rounded to the result's type; broadcasts to the result.
        dtype: the element type of the result.

    Returns:
        The unit of the error of each element. NaN terms count as no terms.
    """
    spacing, epsilon = ulp(reference, dtype), format_of(dtype).epsilon
    finer = min(epsilon, format_of(Dtype.float32).epsilon)
    with np.errstate(all="ignore"):
        units = amplified + spacing + finer * np.asarray(terms) + epsilon * np.asarray(stored)
        return np.where(np.isnan(units), spacing, np.minimum(units, np.finfo(np.float64).max))


def flush_subnormals(value: Any, number_dtype: Dtype = Dtype.float32) -> Any:
    """Return an argument with subnormal numbers, or subnormal parts of complex numbers, flushed to zero.

    Args:
        value: The argument: a tensor, a list of arguments, or a plain value.
        number_dtype: The element type that plain floating-point numbers are computed in.
    """
    if isinstance(value, list):
        return [flush_subnormals(entry, number_dtype) for entry in value]
    exact = exact_value(value)
    if isinstance(exact, float):
        return float(_flush(np.asarray(exact), number_dtype))
    if not isinstance(value, TensorData) or not is_inexact(value.spec.dtype):
        return exact
    if not np.iscomplexobj(exact):
        return _flush(exact, value.spec.dtype)
    parts = exact.copy()
    parts.real, parts.imag = _flush(exact.real, value.spec.dtype), _flush(exact.imag, value.spec.dtype)
    return parts


def _flush(numbers: NDArray[Any], dtype: Dtype) -> NDArray[Any]:
    return np.where(is_subnormal(numbers, dtype), np.copysign(0.0, numbers), numbers)


def has_subnormals(value: Any, number_dtype: Dtype = Dtype.float32) -> bool:
    """Return whether an argument contains subnormal numbers of its element type, or complex numbers with such parts.

    Args:
        value: The argument: a tensor, a list of arguments, or a plain value.
        number_dtype: The element type that plain floating-point numbers are computed in.
    """
    if isinstance(value, list):
        return any(has_subnormals(entry, number_dtype) for entry in value)
    if isinstance(value, float):
        return bool(is_subnormal(np.asarray(value), number_dtype))
    if not isinstance(value, TensorData) or not is_inexact(value.spec.dtype):
        return False
    return any(bool(is_subnormal(part, value.spec.dtype).any()) for part in (value.exact.real, value.exact.imag))
