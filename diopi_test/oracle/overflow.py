"""Results that a sound algorithm may lose because numbers on its way leave the range of the type it computes in.

A reference computes in float64, where the sum of two largest float32 numbers is a number like any other. In float32 it
is infinite, and the mean of the two numbers too, although it is one of them. How an algorithm gets to a result is its
own business, so where a reference that computes within the range of the type gets another result, the standard leaves
the result open (docs/budgets.md). Arrays of `Ranged` numbers find these elements for any reference: they are rounded
as float64 numbers are, but have the range of a narrower type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.formats import FloatArray, Format, format_of, is_inexact
from diopi_test.oracle.budget import Evaluate, K

Array = NDArray[Any]
Mask = NDArray[np.bool_]

SUMS = (np.add, np.subtract)
PRODUCTS = (np.matmul, np.einsum, np.tensordot, np.dot)
"""Functions whose results are sums of products, one factor from each operand."""


@final
class Ranged(np.ndarray[Any, np.dtype[Any]]):
    """Numbers of float64 or complex128 that are infinite from `bound` on.

    A sum is NaN if it is finite, but the sum of its positive or of its negative terms is not: in some order it
    overflows on the way.
    """

    bound: float = np.inf

    def __array_finalize__(self, source: Any) -> None:
        self.bound = getattr(source, "bound", np.inf)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **keywords: Any) -> Any:
        """Compute on the bare arrays, then limit the range of the results."""
        bare = [_bare(operand) for operand in operands]
        if "out" in keywords:
            keywords["out"] = tuple(_bare(array) for array in keywords["out"])
        lost = self._lost_sums(ufunc, method, bare, keywords)
        result = getattr(ufunc, method)(*bare, **keywords)
        if method == "at":
            self._limit(bare[0], lost)
            return None
        if isinstance(result, tuple):
            return tuple(self._limited(one) for one in result)
        if "out" in keywords:
            self._limit(keywords["out"][0], lost)
            return operands[0] if operands[0] is keywords["out"][0] else self._ranged(keywords["out"][0])
        return self._limited(result, lost)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        """Limit sums of products; everything else is made of ufuncs, or moves numbers."""
        if function not in PRODUCTS:
            return super().__array_function__(function, types, arguments, keywords)
        bare = [_bare(argument) for argument in arguments]
        return self._limited(function(*bare, **keywords), _lost_products(function, bare, keywords, self.bound))

    def _lost_sums(self, ufunc: np.ufunc, method: str, operands: list[Any], keywords: dict[str, Any]) -> Any:
        """Where a reduction, or a product of matrices, may overflow on the way to its result."""
        if ufunc is np.matmul:
            return _lost_products(np.matmul, operands, {}, self.bound)
        if ufunc is not np.add or method not in ("reduce", "accumulate", "reduceat", "at"):
            return False
        where = {name: value for name, value in keywords.items() if name != "out"}
        if method == "at":
            return self._lost_at(*operands)
        parts = _parts(operands[0])
        sums = [getattr(np.add, method)(part, *operands[1:], **where) for part in parts]
        return np.any([np.abs(one) >= self.bound for one in sums], axis=0)

    def _lost_at(self, sums: Array, places: Any, terms: Any) -> Any:
        """Where adding terms to sums at some places overflows on the way."""
        totals = [np.zeros(sums.shape) for _ in range(4)]
        for total, start, part in zip(totals, _parts(sums), _parts(terms), strict=False):
            total += start
            np.add.at(total, places, part)
        return np.any([np.abs(total) >= self.bound for total in totals], axis=0)

    def _limited(self, result: Any, lost: Any = False) -> Any:
        """A new result in the range."""
        array = np.asarray(result)
        if array.dtype.kind not in "fc":
            return result
        array = array if array.flags.writeable and array.ndim else array.copy()
        self._limit(array, lost)
        return self._ranged(array)

    def _limit(self, array: Array, lost: Any) -> None:
        """Limit the range of an array where it is; what is `lost` on the way, but would be finite, becomes NaN."""
        if array.dtype.kind not in "fc":
            return
        finite = np.abs(array) < self.bound
        parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
        for part in parts:
            part[...] = np.where(np.abs(part) >= self.bound, np.copysign(np.inf, part), part)
        array[...] = np.where(finite & lost, np.nan, array)

    def _ranged(self, array: Array) -> Ranged:
        view = array.view(Ranged)
        view.bound = self.bound
        return view


def _bare(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Ranged) else value


def _parts(terms: Any) -> list[Array]:
    """The positive finite terms and the negative ones, with 0 for all others; of complex ones, those of both parts."""
    array = np.asarray(terms)
    if array.dtype.kind == "c":
        return [*_parts(array.real), *_parts(array.imag)]
    finite = np.where(np.isfinite(array), array, 0.0)
    return [np.maximum(finite, 0), np.minimum(finite, 0)]


def _lost_products(function: Callable[..., Any], arguments: Sequence[Any], keywords: Any, bound: float) -> Any:
    """Where the positive products alone, or the negative ones, overflow; of complex ones, all of them together."""
    at = [i for i, value in enumerate(arguments) if isinstance(value, np.ndarray)]
    if len(at) != 2:
        return False

    def of(one: Array, other: Array) -> Array:
        operands = list(arguments)
        operands[at[0]], operands[at[1]] = one, other
        return np.asarray(function(*operands, **keywords))

    a, b = (arguments[i] for i in at)
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        return of(*(np.where(np.isfinite(x), np.abs(x), 0) for x in (a, b))) >= bound
    (a_up, a_down), (b_up, b_down) = _parts(a), _parts(b)
    sums = of(a_up, b_up) + of(a_down, b_down), of(a_up, b_down) + of(a_down, b_up)
    return (np.abs(sums[0]) >= bound) | (np.abs(sums[1]) >= bound)


def range_of(values: Mapping[str, Any], dtypes: Sequence[Dtype]) -> Format | None:
    """The format whose range a call computes in: the widest of its arguments and results, float32 at least.

    None where the numbers are so moderate that nothing overflows on the way: their fourth powers are in the range.

    Args:
        values: materialised arguments.
        dtypes: the element types of the results.
    """
    tensors = [one for value in values.values() for one in (value if isinstance(value, list) else [value])]
    tensors = [one for one in tensors if hasattr(one, "exact")]
    formats = [format_of(dtype) for dtype in (*(one.dtype for one in tensors), *dtypes) if is_inexact(dtype)]
    if not formats:
        return None
    widest = max([*formats, format_of(Dtype.float32)], key=lambda form: form.max_exponent)
    limit = 2.0 ** (widest.max_exponent // 4)
    return widest if any(_is_far(one.exact, limit) for one in tensors) else None


def _is_far(numbers: Array, limit: float) -> bool:
    """Whether a finite number is as large as the limit, or nonzero and as small as its inverse."""
    sizes = np.abs(numbers[np.isfinite(numbers)])
    return bool(((sizes >= limit) | ((sizes > 0) & (sizes <= 1 / limit))).any())


def results_in_range(evaluate: Evaluate, plain: Mapping[str, Any], form: Format) -> list[Array]:
    """The results of a reference that computes within the range of a format.

    Args:
        evaluate: the reference.
        plain: the arguments as it takes them.
        form: the format; for the widest one, longer numbers show what overflows in the reference itself.
    """
    if form.overflow == np.inf:
        try:
            results = evaluate({name: _each(value, _longer) for name, value in plain.items()})
        except TypeError:  # SciPy and LAPACK have no kernels for longer numbers
            return evaluate(plain)
        with np.errstate(all="ignore"):
            return [_each(one, _as_long_as_others) for one in results]

    def ranged(array: Array) -> Any:
        view = array.copy().view(Ranged)
        view.bound = form.overflow
        return view

    return [_bare(np.asarray(one)) for one in evaluate({name: _each(v, ranged) for name, v in plain.items()})]


def _each(value: Any, change: Callable[[Array], Any]) -> Any:
    if isinstance(value, list):
        return [_each(one, change) for one in value]
    return change(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value


def _longer(array: Array) -> Array:
    return array.astype(np.clongdouble if array.dtype.kind == "c" else np.longdouble)


def _as_long_as_others(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def is_lost(reference: Array, in_range: Array, unit: FloatArray | None, dtype: Dtype) -> Mask:
    """Where a result in the range of the type is another than the reference's, by more than rounding explains.

    Args:
        reference: the result in float64.
        in_range: the result of `results_in_range`.
        unit: that of the budget; None of exact results.
        dtype: the element type of the result.
    """
    if reference.shape != in_range.shape:
        return np.zeros(reference.shape, bool)
    if reference.dtype.kind not in "fc":
        return np.asarray(reference != in_range)
    form = format_of(dtype)
    with np.errstate(all="ignore"):
        near = np.abs(in_range - reference) <= (0 if unit is None else K * unit)
        infinite = (np.abs(reference) >= form.overflow) & (np.abs(in_range) >= form.overflow)
        same = (reference == in_range) | (np.isnan(reference) & np.isnan(in_range))
        vanished = (np.abs(reference) < form.tiny) & (in_range == 0)
    return np.asarray(~(near | infinite | same | vanished))
