"""Mutants that are wrong for NaNs, infinities and overflow: negative NaNs, skipped factors of 0, and saturation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from diopi_proto.dtypes import half
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.mutant import Array, Effect, Mutant, SimulatedCall, changed_if
from diopi_test.quality.mutation.precision import change_tensors
from diopi_test.quality.mutation.randomness import is_random
from diopi_test.quality.mutation.summation import NarrowSumArray
from lib_rt.formats import is_inexact

NEGATIVE_NAN, ZERO_FACTOR, SATURATION = (
    "negative NaN read as −∞",
    "products with a factor 0 skipped",
    "overflow saturates in half precision",
)
"""The names of the mutants."""


def nonfinite_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of NaNs, infinities and overflow, which apply to every function that does not draw numbers.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    if is_random(function):
        return
    yield Mutant(name=NEGATIVE_NAN, corrupt=recompute_with(_read_negative_nans_as_infinity))
    yield Mutant(name=ZERO_FACTOR, corrupt=recompute_with(_skip_zero_factors))
    yield Mutant(name=SATURATION, corrupt=_saturate)


def _read_negative_nans_as_infinity(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the arguments with −∞ in place of NaNs whose sign bit is set; None if there are none."""
    if not any(
        _is_negative_nan(tensor.values).any() for value in case.arguments.values() for tensor in tensors_in(value)
    ):
        return None
    return change_tensors(case, lambda array: np.where(_is_negative_nan(array), -np.inf, array))


def _is_negative_nan(array: Array) -> Array:
    """Return a Boolean array: whether each element is a NaN whose sign bit is set. Complex numbers never are."""
    if array.dtype.kind in "biuc":
        return np.zeros(array.shape, bool)
    return np.asarray(np.isnan(array) & np.signbit(array))


class ZeroSkippingArray(NarrowSumArray):
    """An array whose products are 0 if a factor is 0, also within sums of products; sums are not rounded."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if ufunc is np.multiply and method == "__call__" and not keywords:
            return self._wrap(self._multiply(*map(np.asarray, inputs)))
        return super().__array_ufunc__(ufunc, method, *inputs, **keywords)

    def _multiply(self, first: Array, second: Array) -> Array:
        """Return the products, 0 where a factor is 0."""
        with np.errstate(all="ignore"):
            return _skip(first * second, (first == 0) | (second == 0))

    def _einsum(self, formula: str, *operands: Array) -> Any:
        """Return what `np.einsum` returns, without terms that have a factor 0; the formula must contain `->`."""
        inputs, output = formula.split("->")
        summed = "".join(sorted(set(inputs) - set(output) - {",", "."}))
        terms = f"{inputs}->{output}{summed}"
        counts = np.einsum(terms, *((operand != 0).astype(np.float64) for operand in operands))
        products = _skip(np.einsum(terms, *operands), counts == 0)
        return products.sum(tuple(range(products.ndim - len(summed), products.ndim)))

    def _running_sums(self, values: Array, axis: int) -> Array:
        """Return the running sums of `values` along an axis."""
        return np.asarray(np.add.accumulate(values, axis))

    def _add_at(self, totals: Array, places: Any, values: Any) -> None:
        """Implement `np.add.at`: add `values` to the elements of `totals` at the indices `places`."""
        np.add.at(totals, places, values)


def _skip(products: Array, is_skipped: Array) -> Array:
    """Return products with 0 in place of NaN where they are skipped; finite products are 0 there in any case."""
    return np.where(is_skipped & np.isnan(products), np.zeros((), products.dtype), products)


def _skip_zero_factors(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the arguments as arrays that skip products with a factor 0; None if all numbers are finite."""
    tensors = [tensor for value in case.arguments.values() for tensor in tensors_in(value)]
    if all(np.isfinite(tensor.values).all() for tensor in tensors if is_inexact(tensor.dtype)):
        return None
    return change_tensors(case, lambda array: array.view(ZeroSkippingArray))


def _saturate(call: SimulatedCall) -> Effect:
    """Replace infinite results of a half-precision type by the largest finite number, if all arguments are finite.

    Returns:
        `changed` if a specified result was infinite, else `not_applicable`.
    """
    tensors = [tensor for value in call.case.arguments.values() for tensor in tensors_in(value)]
    if not all(np.isfinite(tensor.values).all() for tensor in tensors if is_inexact(tensor.dtype)):
        return Effect.not_applicable
    is_changed = False
    for name, arrays in call.results.items():
        for number, expected in enumerate(expected_arrays(call.case.expected[name])):
            if expected.dtype in half and not expected.needs_validator:
                infinite = np.isinf(arrays[number])
                is_changed |= bool((infinite if expected.specified is None else infinite & expected.specified).any())
                largest = np.copysign(ml_dtypes.finfo(arrays[number].dtype).max, arrays[number])
                arrays[number] = np.where(infinite, largest, arrays[number]).astype(arrays[number].dtype)
    return changed_if(is_changed)
