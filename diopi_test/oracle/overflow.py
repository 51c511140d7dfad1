"""Find results that a correct algorithm may lose because an intermediate value overflows the type of the computation.

The reference computes in float64, where the sum of the two largest float32 numbers is finite. In float32 this sum is
infinite, and so is a mean that is computed from the sum, although the mean itself is a float32 number. The standard
does not prescribe the intermediate values. A result element is *lost*, and therefore unspecified, if the reference
gets another value for it when it computes within the range of the type (docs/budgets.md). `RangedArray` makes any
reference compute so: it rounds like float64, but has the range of a narrower type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.oracle.amplification import Evaluate
from diopi_test.oracle.budget import Budget
from lib_rt.formats import Format, format_of, is_inexact

Array = NDArray[Any]
Mask = NDArray[np.bool_]
"""A bool array of the shape of a result."""


PRODUCTS = (np.matmul, np.einsum, np.tensordot, np.dot)
"""Functions whose results are sums of products, one factor from each operand."""


@final
class RangedArray(np.ndarray[Any, np.dtype[Any]]):
    """An array of float64 or complex128 in which numbers whose magnitude is at least `bound` become infinite.

    A finite sum becomes NaN if the sum of its positive addends or the sum of its negative addends reaches the bound: in
    some order of additions, an intermediate sum overflows.
    """

    bound: float = np.inf

    def __array_finalize__(self, source: Any) -> None:
        self.bound = getattr(source, "bound", np.inf)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **keywords: Any) -> Any:
        """Compute on the bare arrays, then limit the range of the results."""
        bare = [_to_ndarray(operand) for operand in operands]
        if "out" in keywords:
            keywords["out"] = tuple(_to_ndarray(array) for array in keywords["out"])
        overflowed = self._find_overflowing_sums(ufunc, method, bare, keywords)
        result = getattr(ufunc, method)(*bare, **keywords)
        if method == "at":
            self._limit_in_place(bare[0], overflowed)
            return None
        if isinstance(result, tuple):
            return tuple(self._to_range(array) for array in result)
        if "out" in keywords:
            self._limit_in_place(keywords["out"][0], overflowed)
            return operands[0] if operands[0] is keywords["out"][0] else self._wrap(keywords["out"][0])
        return self._to_range(result, overflowed)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        """Limit sums of products; all other NumPy functions consist of ufuncs, or only move numbers."""
        if function not in PRODUCTS:
            return super().__array_function__(function, types, arguments, keywords)
        bare = [_to_ndarray(argument) for argument in arguments]
        return self._to_range(
            function(*bare, **keywords), _find_overflowing_products(function, bare, keywords, self.bound)
        )

    def _find_overflowing_sums(
        self, ufunc: np.ufunc, method: str, operands: list[Any], keywords: dict[str, Any]
    ) -> Any:
        """Return a mask of the results that are sums whose partial sums may overflow; False for other ufuncs.

        Args:
            ufunc: The ufunc.
            method: The name of its method, such as "reduce".
            operands: The operands as plain arrays.
            keywords: The keyword arguments.

        Returns:
            The mask, in the shape of the result.
        """
        if ufunc is np.matmul:
            return _find_overflowing_products(np.matmul, operands, {}, self.bound)
        if ufunc is not np.add or method not in ("reduce", "accumulate", "reduceat", "at"):
            return False
        options = {name: value for name, value in keywords.items() if name != "out"}
        if method == "at":
            return self._find_overflowing_additions(*operands)
        parts = _split_by_sign(operands[0])
        sums = [getattr(np.add, method)(part, *operands[1:], **options) for part in parts]
        return np.any([np.abs(total) >= self.bound for total in sums], axis=0)

    def _find_overflowing_additions(self, sums: Array, places: Any, terms: Any) -> Any:
        """Return where `sums` may overflow while the addends `terms` are added at the indices `places`."""
        totals = [np.zeros(sums.shape) for _ in range(4)]
        for total, start, part in zip(totals, _split_by_sign(sums), _split_by_sign(terms), strict=False):
            total += start
            np.add.at(total, places, part)
        return np.any([np.abs(total) >= self.bound for total in totals], axis=0)

    def _to_range(self, result: Any, overflowed: Any = False) -> Any:
        """Return a result limited to the range; finite elements for which `overflowed` is true become NaN."""
        array = np.asarray(result)
        if array.dtype.kind not in "fc":
            return result
        array = array if array.flags.writeable and array.ndim else array.copy()
        self._limit_in_place(array, overflowed)
        return self._wrap(array)

    def _limit_in_place(self, array: Array, overflowed: Any) -> None:
        """Limit an array to the range in place; finite elements for which `overflowed` is true become NaN."""
        if array.dtype.kind not in "fc":
            return
        finite = np.abs(array) < self.bound
        parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
        for part in parts:
            part[...] = np.where(np.abs(part) >= self.bound, np.copysign(np.inf, part), part)
        array[...] = np.where(finite & overflowed, np.nan, array)

    def _wrap(self, array: Array) -> RangedArray:
        """Return a view of `array` as a `RangedArray` with the same bound."""
        view = array.view(RangedArray)
        view.bound = self.bound
        return view


def _to_ndarray(value: Any) -> Any:
    """Return a `RangedArray` as a plain NumPy array; return any other value unchanged."""
    return value.view(np.ndarray) if isinstance(value, RangedArray) else value


def _split_by_sign(terms: Any) -> list[Array]:
    """Return the positive and the negative finite addends `terms`, with 0 elsewhere.

    Returns:
        Two arrays of the shape of `terms`; for complex addends four arrays, two of the real and two of the imaginary
        parts.
    """
    array = np.asarray(terms)
    if array.dtype.kind == "c":
        return [*_split_by_sign(array.real), *_split_by_sign(array.imag)]
    finite = np.where(np.isfinite(array), array, 0.0)
    return [np.maximum(finite, 0), np.minimum(finite, 0)]


def _find_overflowing_products(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Any, bound: float
) -> Any:
    """Return a mask of the results whose positive products, or whose negative products, have a sum of at least `bound`.

    Each result of `function` is a sum of products. For complex operands, the sum of the magnitudes of the products is
    compared with `bound`. The return value is False unless exactly two of the arguments are arrays.
    """
    positions = [i for i, value in enumerate(arguments) if isinstance(value, np.ndarray)]
    if len(positions) != 2:
        return False

    def product(first: Array, second: Array) -> Array:
        """Return the result of `function` with the two array operands replaced."""
        operands = list(arguments)
        operands[positions[0]], operands[positions[1]] = first, second
        return np.asarray(function(*operands, **keywords))

    a, b = (arguments[i] for i in positions)
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        return product(*(np.where(np.isfinite(x), np.abs(x), 0) for x in (a, b))) >= bound
    (a_up, a_down), (b_up, b_down) = _split_by_sign(a), _split_by_sign(b)
    sums = product(a_up, b_up) + product(a_down, b_down), product(a_up, b_down) + product(a_down, b_up)
    return (np.abs(sums[0]) >= bound) | (np.abs(sums[1]) >= bound)


def select_range_format(values: Mapping[str, Any], dtypes: Sequence[Dtype]) -> Format | None:
    """Return the format in whose range a call is computed: the widest of its arguments and results, at least float32.

    Args:
        values: the materialized arguments.
        dtypes: the element types of the results.

    Returns:
        The format; None if the evaluation in its range is unnecessary. This holds if no type is floating-point or
        complex. It also holds if the fourth powers of all input elements other than 0, and their inverses, are in the
        range: then the suite assumes that no intermediate value overflows.
    """
    tensors = [tensor for value in values.values() for tensor in (value if isinstance(value, list) else [value])]
    tensors = [tensor for tensor in tensors if hasattr(tensor, "exact")]
    formats = [format_of(dtype) for dtype in (*(tensor.dtype for tensor in tensors), *dtypes) if is_inexact(dtype)]
    if not formats:
        return None
    widest = max([*formats, format_of(Dtype.float32)], key=lambda form: form.max_exponent)
    limit = 2.0 ** (widest.max_exponent // 4)
    return widest if any(_has_extreme_value(tensor.exact, limit) for tensor in tensors) else None


def _has_extreme_value(numbers: Array, limit: float) -> bool:
    """Return whether the magnitude of a finite number is at least `limit`, or at most 1 / `limit` but not 0."""
    sizes = np.abs(numbers[np.isfinite(numbers)])
    return bool(((sizes >= limit) | ((sizes > 0) & (sizes <= 1 / limit))).any())


def evaluate_in_range(evaluate: Evaluate, plain: Mapping[str, Any], form: Format) -> list[Array]:
    """Evaluate a reference within the range of a format.

    Args:
        evaluate: the reference.
        plain: the arguments as the reference takes them.
        form: the format. For float64, the reference computes with long double numbers, whose range is larger: a
            different result shows that the float64 reference overflows or underflows itself.

    Returns:
        The results in the order of the prototype, as float64, complex128, integer or bool arrays. For float64, they are
        those of the plain evaluation if the reference uses a function that does not support long double.
    """
    if form.overflow == np.inf:
        try:
            results = evaluate({name: _map_arrays(value, _to_long_double) for name, value in plain.items()})
        except TypeError:  # SciPy and LAPACK have no kernels for long double
            return evaluate(plain)
        with np.errstate(all="ignore"):
            return [_map_arrays(array, _to_double) for array in results]

    def to_ranged(array: Array) -> Any:
        """Return a copy of `array` as a `RangedArray` with the bound of the format."""
        view = array.copy().view(RangedArray)
        view.bound = form.overflow
        return view

    return [
        _to_ndarray(np.asarray(array))
        for array in evaluate({name: _map_arrays(v, to_ranged) for name, v in plain.items()})
    ]


def _map_arrays(value: Any, change: Callable[[Array], Any]) -> Any:
    """Apply `change` to a floating-point or complex array, or to every such array in a list; keep other values."""
    if isinstance(value, list):
        return [_map_arrays(entry, change) for entry in value]
    return change(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value


def _to_long_double(array: Array) -> Array:
    """Return an array in long double precision."""
    return array.astype(np.clongdouble if array.dtype.kind == "c" else np.longdouble)


def _to_double(array: Array) -> Array:
    """Return an array as float64 or complex128."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def is_lost_to_overflow(reference: Array, in_range: Array, budget: Budget | None, dtype: Dtype) -> Mask:
    """Return a mask of the elements that are lost: their result within the range differs by more than the budget.

    Args:
        reference: the result in float64.
        in_range: the result of `evaluate_in_range`, of the same shape.
        budget: the error budget of each element; None for exact results.
        dtype: the element type of the result.

    Returns:
        A mask of the shape of the result; False everywhere if the shapes differ. An element is not lost if both results
        overflow the element type. It is also not lost if the reference is below the normal numbers of the type and the
        other result is 0.
    """
    if reference.shape != in_range.shape:
        return np.zeros(reference.shape, bool)
    if reference.dtype.kind not in "fc":
        return np.asarray(reference != in_range)
    form = format_of(dtype)
    with np.errstate(all="ignore"):
        near = np.abs(in_range - reference) <= (0 if budget is None else budget.limit)
        infinite = (np.abs(reference) >= form.overflow) & (np.abs(in_range) >= form.overflow)
        same = (reference == in_range) | (np.isnan(reference) & np.isnan(in_range))
        vanished = (np.abs(reference) < form.tiny) & (in_range == 0)
    return np.asarray(~(near | infinite | same | vanished))
