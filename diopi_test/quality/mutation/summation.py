"""Arrays that accumulate sums in a narrower type, so that references written for NumPy compute with this defect.

The arrays replace NumPy's functions that add terms, such as `np.add.reduce`, `np.matmul` and `np.einsum`. Each method
named after such a function takes its arguments and returns a result of the same shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import COMPLEX
from diopi_proto.types import Dtype
from diopi_test.oracle.budget import K
from lib_rt.dtypes import to_numpy

Array = NDArray[Any]

NARROW = (Dtype.bfloat16, Dtype.float16, Dtype.float32)
"""The floating-point types that are narrower than float64, in which the reference computes."""


def round_sums_to(dtype: Dtype, array: Array) -> Array:
    """Return an array whose sums are rounded to `dtype` after each term."""
    return array.view(_SUMMING[dtype])


def round_long_sums_to(dtype: Dtype, array: Array) -> Array:
    """Return an array whose sums of more than `budget.K` terms are rounded to `dtype` after each term.

    The errors of shorter sums stay within K units of the type, which the error budget permits. Scattered sums stay
    exact, because a function may accumulate any number of terms in the memory of the result, in its type.

    Args:
        dtype: the type of partial sums.
        array: the array.

    Returns:
        The array with the changed sums.
    """
    return array.view(_SUMMING_LONG_ONES[dtype])


def add_first_block_only(array: Array) -> Array:
    """Return the array as a `FirstBlockSumArray`, whose sums add only the first `BLOCK` terms."""
    return array.view(FirstBlockSumArray)


def round_block_sums_to(dtype: Dtype, array: Array) -> Array:
    """Return the array as a `ChunkedSumArray`, which rounds long sums to `dtype`."""
    return array.view(_SUMMING_IN_CHUNKS[dtype])


def narrow_type(dtype: Dtype, array: Array) -> np.dtype[Any]:
    """Return the NumPy type of `dtype`; for an array of complex numbers, the complex type whose parts have `dtype`.

    There is such a complex type only for float32. For other types, return the type of the array of complex numbers.
    """
    if array.dtype.kind != "c":
        return to_numpy(dtype)
    return to_numpy(COMPLEX[dtype]) if dtype is Dtype.float32 else array.dtype


class NarrowSumArray(np.ndarray[Any, Any]):
    """An array that adds one term after the other and rounds each partial sum to `narrow`."""

    narrow: Dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [_as_plain_array(value) for value in inputs]
        if "out" in keywords:
            keywords["out"] = tuple(_as_plain_array(out) for out in keywords["out"])
        special = {
            (np.add, "reduce"): self._add_reduce,
            (np.add, "accumulate"): self._add_accumulate,
            (np.add, "at"): self._add_at,
            (np.matmul, "__call__"): self._matmul,
        }
        compute: Any = special.get((ufunc, method)) or getattr(ufunc, method)
        with np.errstate(all="ignore"):
            return self._wrap(compute(*plain, **keywords))

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        special = {np.einsum: self._einsum, np.tensordot: self._tensordot, np.linalg.norm: self._norm}
        compute: Any = special.get(function)
        if compute is None:
            return super().__array_function__(function, types, arguments, keywords)
        return self._wrap(compute(*(_as_plain_array(value) for value in arguments), **keywords))

    def _wrap(self, result: Any) -> Any:
        """Return a floating-point result as an array of this class."""
        if isinstance(result, np.ndarray | np.floating | np.complexfloating) and result.dtype.kind in "fc":
            return np.asarray(result).view(type(self))
        return result

    def _running_sums(self, values: Array, axis: int) -> Array:
        """Return the running sums of `values` along an axis, each rounded to the narrow type."""
        narrow = np.add.accumulate(values.astype(narrow_type(self.narrow, values)), axis)
        return narrow.astype(np.complex128 if values.dtype.kind == "c" else np.float64)

    def _add_accumulate(self, values: Array, axis: int = 0, *_: Any, **__: Any) -> Array:
        """Implement `np.add.accumulate`."""
        return self._running_sums(values, axis)

    def _add_reduce(self, values: Array, axis: Any = 0, *_: Any, keepdims: bool = False, **__: Any) -> Any:
        """Implement `np.add.reduce`: add one term after the other.

        Args:
            values: the array.
            axis: the index of an axis, a tuple of indices, or None for all axes.
            keepdims: whether the result keeps these axes, with size 1.

        Returns:
            The sums.
        """
        if values.dtype.kind not in "fc":
            return np.sum(values, axis, keepdims=keepdims)
        axes = tuple(range(values.ndim)) if axis is None else np.atleast_1d(axis) % values.ndim
        remaining_shape = tuple(length for i, length in enumerate(values.shape) if i not in axes)
        rows = np.moveaxis(values, axes, range(len(axes))).reshape(-1, *remaining_shape)
        total = self._running_sums(rows, 0)[-1] if len(rows) > 1 else rows.sum(0)
        shape = tuple(1 if i in axes else length for i, length in enumerate(values.shape))
        return total.reshape(shape) if keepdims else total

    def _add_at(self, totals: Array, places: Any, values: Any) -> None:
        """Implement `np.add.at` with totals of the narrow type: add `values` at the indices `places`."""
        narrow_totals = totals.astype(narrow_type(self.narrow, totals))
        np.add.at(narrow_totals, places, np.asarray(values).astype(narrow_totals.dtype))
        totals[...] = narrow_totals

    def _matmul(self, a: Array, b: Array, *_: Any, **__: Any) -> Any:
        """Implement `np.matmul`."""
        first, second = np.atleast_2d(a), b[:, np.newaxis] if b.ndim == 1 else b
        product = self._add_reduce(self._multiply(first[..., np.newaxis], second[..., np.newaxis, :, :]), -2)
        product = product[..., 0] if b.ndim == 1 else product
        return product[..., 0, :] if a.ndim == 1 and b.ndim > 1 else product[..., 0] if a.ndim == 1 else product

    def _multiply(self, first: Array, second: Array) -> Array:
        """Return the products of two arrays, the terms of a matrix product."""
        return np.asarray(first * second)

    def _einsum(self, formula: str, *operands: Array) -> Any:
        """Implement `np.einsum` for formulas with an explicit output."""
        inputs, output = formula.split("->")
        summed = "".join(sorted(set(inputs) - set(output) - {","}))
        products = np.einsum(f"{inputs}->{output}{summed}", *operands)
        return self._add_reduce(products, tuple(range(len(output), products.ndim))) if summed else products

    def _tensordot(self, a: Array, b: Array, axes: Any = 2) -> Any:
        """Implement `np.tensordot`."""
        count = axes if isinstance(axes, int) else np.size(axes[0])
        if not isinstance(axes, int):
            a = np.moveaxis(a, axes[0], range(-count, 0))
            b = np.moveaxis(b, axes[1], range(count))
        first, second = a.reshape(*a.shape[: a.ndim - count], -1), b.reshape(-1, *b.shape[count:])
        flat = self._matmul(first.reshape(-1, first.shape[-1]), second.reshape(len(second), -1))
        return flat.reshape(*first.shape[:-1], *second.shape[1:])

    def _norm(self, values: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
        """Implement `np.linalg.norm`."""
        order = 2 if ord is None else ord
        if order == 0 or not np.isfinite(order):
            return np.linalg.norm(values, ord, axis, keepdims)
        return self._add_reduce(np.abs(values) ** order, axis, keepdims=keepdims) ** (1 / order)


def _as_plain_array(value: Any) -> Any:
    """Return a `NarrowSumArray` as a plain NumPy array, and other values unchanged."""
    return value.view(np.ndarray) if isinstance(value, NarrowSumArray) else value


BLOCK, CHUNK = 512, 32
"""The number of terms in one block of a sum, and the number of products that a kernel adds before it rounds the sum."""


class FirstBlockSumArray(NarrowSumArray):
    """An array whose sums add only the first `BLOCK` terms.

    Running sums restart in each block, and scattered sums are exact. An einsum adds the first half of the longest axis
    that it sums over.
    """

    def _add_reduce(self, values: Array, axis: Any = 0, *_: Any, keepdims: bool = False, **__: Any) -> Any:
        """Implement `np.add.reduce` with only the first `BLOCK` terms of each sum."""
        axes = tuple(range(values.ndim)) if axis is None else tuple(np.atleast_1d(axis) % max(values.ndim, 1))
        if values.dtype.kind not in "fc" or not axes:
            return np.sum(values, axis, keepdims=keepdims)
        remaining_shape = tuple(length for i, length in enumerate(values.shape) if i not in axes)
        total = np.moveaxis(values, axes, range(len(axes))).reshape(-1, *remaining_shape)[:BLOCK].sum(0)
        shape = tuple(1 if i in axes else length for i, length in enumerate(values.shape))
        return total.reshape(shape) if keepdims else total

    def _running_sums(self, values: Array, axis: int) -> Array:
        """Return running sums of `values` along an axis that restart after every `BLOCK` elements."""
        starts = np.arange(BLOCK, values.shape[axis], BLOCK)
        return np.concatenate([np.add.accumulate(block, axis) for block in np.split(values, starts, axis)], axis)

    def _add_at(self, totals: Array, places: Any, values: Any) -> None:
        """Implement `np.add.at` exactly."""
        np.add.at(totals, places, values)

    def _matmul(self, a: Array, b: Array, *_: Any, **__: Any) -> Any:
        """Implement `np.matmul` with only the first `BLOCK` products of each sum."""
        return np.matmul(a[..., :BLOCK], b[:BLOCK] if b.ndim == 1 else b[..., :BLOCK, :])

    def _einsum(self, formula: str, *operands: Array) -> Any:
        """Implement `np.einsum` with the first half of the longest summed axis, as `_cut_longest_axis` returns it."""
        return np.einsum(formula, *_cut_longest_axis(formula, operands))


class ChunkedSumArray(FirstBlockSumArray):
    """An array whose sums of more than `BLOCK` terms are rounded to `narrow`.

    Sums of products are rounded after each `CHUNK` of terms, and other sums after each term.
    """

    def _add_reduce(self, values: Array, axis: Any = 0, *_: Any, keepdims: bool = False, **__: Any) -> Any:
        """Implement `np.add.reduce`; sums of more than `BLOCK` real numbers are rounded after each term."""
        axes = tuple(range(values.ndim)) if axis is None else tuple(np.atleast_1d(axis) % max(values.ndim, 1))
        terms = np.prod([values.shape[i] for i in axes], dtype=int)
        if values.dtype.kind != "f" or terms <= BLOCK:
            return np.sum(values, axis, keepdims=keepdims)
        return NarrowSumArray._add_reduce(self, values, axis, keepdims=keepdims)

    def _running_sums(self, values: Array, axis: int) -> Array:
        """Return the running sums of `values` along an axis; more than `BLOCK` terms are rounded after each term."""
        if values.dtype.kind != "f" or values.shape[axis] <= BLOCK:
            return np.add.accumulate(values, axis)
        return NarrowSumArray._running_sums(self, values, axis)

    def _matmul(self, a: Array, b: Array, *_: Any, **__: Any) -> Any:
        """Implement `np.matmul`; sums of more than `BLOCK` products are rounded after each `CHUNK` products."""
        length = a.shape[-1]
        if a.dtype.kind != "f" or length <= BLOCK:
            return np.matmul(a, b)
        chunks = [slice(start, start + CHUNK) for start in range(0, length, CHUNK)]
        products = (np.matmul(a[..., chunk], b[chunk] if b.ndim == 1 else b[..., chunk, :]) for chunk in chunks)
        return _add_rounded(to_numpy(self.narrow), products)

    def _einsum(self, formula: str, *operands: Array) -> Any:
        """Implement `np.einsum` exactly."""
        return np.einsum(formula, *operands)


def _add_rounded(narrow: np.dtype[Any], arrays: Iterable[Array]) -> Array:
    """Return the sum of arrays of equal shape in float64, rounded to the type `narrow` after each addition."""
    total: Array | None = None
    for array in arrays:
        total = np.asarray(array if total is None else total + array).astype(narrow).astype(np.float64)
    assert total is not None
    return total


def _cut_longest_axis(formula: str, operands: Sequence[Array]) -> list[Array]:
    """Return the operands with only the first half of the longest axis that the einsum `formula` sums over.

    If that axis has fewer than `CHUNK` elements, return the operands unchanged.
    """
    inputs, output = formula.replace("...", "").split("->")
    axes = [{label: axis - len(labels) for axis, label in enumerate(labels)} for labels in inputs.split(",")]
    lengths = {
        n: operand.shape[axis]
        for operand, axis_of_label in zip(operands, axes, strict=True)
        for n, axis in axis_of_label.items()
    }
    summed = [label for label in lengths if label not in output]
    longest = max(summed, key=lambda label: lengths[label], default=None)
    if longest is None or lengths[longest] < CHUNK:
        return list(operands)
    indices = np.arange((lengths[longest] + 1) // 2)
    return [
        operand.take(indices, axis_of_label[longest]) if longest in axis_of_label else operand
        for operand, axis_of_label in zip(operands, axes, strict=True)
    ]


class LongSumArray(NarrowSumArray):
    """An array like `NarrowSumArray`, except that sums of at most `budget.K` terms and scattered sums are exact.

    Terms that are 0 do not count.
    """

    def _running_sums(self, values: Array, axis: int) -> Array:
        """Return the running sums of `values` along an axis.

        Round each sum to the narrow type if more than `K` elements along the axis differ from 0 in any row.
        """
        if np.count_nonzero(values, axis).max(initial=0) <= K:
            return np.add.accumulate(values, axis)
        return super()._running_sums(values, axis)

    def _add_at(self, totals: Array, places: Any, values: Any) -> None:
        """Implement `np.add.at` exactly."""
        np.add.at(totals, places, values)


def _subclasses_by_type(base: type[NarrowSumArray]) -> dict[Dtype, type[NarrowSumArray]]:
    """Return a subclass of the array class `base` for each narrow type."""
    return {dtype: type(f"{base.__name__}In{dtype.name.title()}", (base,), {"narrow": dtype}) for dtype in NARROW}


_SUMMING = _subclasses_by_type(NarrowSumArray)
"""The classes of arrays that round every partial sum, by the type to which they round."""

_SUMMING_LONG_ONES = _subclasses_by_type(LongSumArray)
"""The classes of arrays that round the partial sums of sums of more than K terms, by the type to which they round."""

_SUMMING_IN_CHUNKS = _subclasses_by_type(ChunkedSumArray)
"""The classes of arrays that round sums of more than `BLOCK` terms, by the type to which they round."""
