"""Underflow mutants: subnormal differences become zero before they are used, and subnormal numbers when they are moved.

The standard accepts a zero in place of a subnormal result. It does not accept a result of normal size that is wrong
because an intermediate subnormal difference was lost. An example is a distance of an order below 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.oracle.records import Expected, expected_arrays
from diopi_test.oracle.subnormals import must_keep_subnormals
from diopi_test.quality.mutation.mutant import Array, Effect, Mutant, SimulatedCall
from diopi_test.quality.mutation.precision import change_tensors
from lib_rt.dtypes import from_numpy
from lib_rt.formats import flush_to_zero, format_of, is_inexact

FLUSHED_MOVES = "subnormal numbers flushed to zero when they are moved"
"""The name of the mutant of functions that move numbers."""


@final
class FlushedDifferences(np.ndarray[Any, Any]):
    """An array whose differences are zero if their absolute value is less than `least`."""

    least: float = 0.0

    def __array_finalize__(self, source: Any) -> None:
        self.least = getattr(source, "least", 0.0)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **keywords: Any) -> Any:
        if "out" in keywords:
            keywords["out"] = tuple(map(_as_plain_array, keywords["out"]))
        value = getattr(ufunc, method)(*map(_as_plain_array, operands), **keywords)
        if not isinstance(value, np.ndarray | np.floating) or value.dtype.kind != "f":
            return value
        array: Array = np.asarray(value)
        if ufunc is np.subtract and method == "__call__":
            array = np.where(np.abs(array) < self.least, 0.0, array)
        return flush_differences(array, self.least)


def _as_plain_array(value: Any) -> Any:
    """Return `FlushedDifferences` as a plain NumPy array, and other values unchanged."""
    return value.view(np.ndarray) if isinstance(value, FlushedDifferences) else value


def flush_differences(array: Array, least: float) -> Array:
    """Return an array of real numbers as `FlushedDifferences` with this `least`; return other arrays unchanged."""
    if array.dtype.kind != "f":
        return array
    view = np.asarray(array).view(FlushedDifferences)
    view.least = least
    return view


def underflow_mutants(function: str) -> Iterator[Mutant]:
    """Yield the underflow mutants of a function.

    Args:
        function: the name of the function.

    Yields:
        The mutant of differences, and the mutant of moved numbers if the function only moves numbers.
    """
    yield Mutant(name="subnormal differences flushed to zero", corrupt=_flush_differences)
    if lookup(function).moves_numbers:
        yield Mutant(name=FLUSHED_MOVES, corrupt=_flush_moved_numbers)


def _flush_moved_numbers(call: SimulatedCall) -> Effect:
    """Replace subnormal results by zeros of the same sign, if the call does not convert them.

    Returns:
        `not_applicable` if the standard lets the function flush them, else whether a specified result changed.
    """
    if not must_keep_subnormals(call.case):
        return Effect.not_applicable
    return call.replace_results({name: list(map(_flush_array, arrays)) for name, arrays in call.results.items()})


def _flush_array(array: Array) -> Array:
    """Return an array with zeros in place of subnormal numbers, also in the parts of complex numbers."""
    dtype = from_numpy(array.dtype)
    return flush_to_zero(array, dtype) if is_inexact(dtype) else array


def _flush_differences(call: SimulatedCall) -> Effect:
    """Compute the results with flushed differences; results that the standard accepts as flushed stay as they are.

    Returns:
        `not_applicable` if no result changes, else whether a result changed that the standard does not accept.
    """
    dtypes = [entry.dtype for value in call.case.expected.values() for entry in expected_arrays(value)]
    widest = Dtype.float64 if {Dtype.float64, Dtype.complex128} & set(dtypes) else Dtype.float32
    changed = change_tensors(call.case, partial(flush_differences, least=format_of(widest).tiny))
    correct = call.results
    if changed is None or call.recompute(**changed) is not Effect.changed:
        return Effect.not_applicable
    results = {
        name: [
            _accept_flushed(array, first, entry)
            for array, first, entry in zip(
                arrays, correct[name], expected_arrays(call.case.expected[name]), strict=True
            )
        ]
        for name, arrays in call.results.items()
    }
    call.results = correct
    return call.replace_results(results)


def _accept_flushed(array: Array, correct: Array, expected: Expected) -> Array:
    """Return a result with the correct elements where the standard accepts its elements as flushed to zero.

    Args:
        array: the result of the mutant.
        correct: the correct result.
        expected: the stored result, with the values that the standard also accepts for subnormal numbers.
    """
    if array.shape != correct.shape or not is_inexact(expected.dtype):
        return array
    accepted: NDArray[np.bool_] = (array == 0) & (np.abs(correct) < format_of(expected.dtype).tiny)
    if expected.flushed is not None:
        with np.errstate(all="ignore"):
            flushed = expected.flushed.astype(array.dtype)
        accepted |= (array == flushed) | (np.isnan(array) & np.isnan(flushed))
    return np.where(accepted, correct, array)
