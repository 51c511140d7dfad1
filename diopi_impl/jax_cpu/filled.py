"""Large results that NumPy writes directly into the caller's tensor.

XLA writes a result into its own memory, from which it is copied to the tensor. For cheap functions the copy takes as
long as the computation. Such functions have a second implementation in NumPy, which writes to the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_impl.functional import Adapted, Adapter, Compute, OutSpec, PreparesCalls, ResultSpec
from diopi_impl.jax_cpu.jit import compiled
from diopi_impl.results import DeferredResult
from diopi_proto.prototype import Prototype
from lib_rt.dtypes import to_numpy

HostArray = NDArray[Any]

LARGE = 2**16
"""Results with more elements than this are computed by NumPy; for smaller ones the copy is cheap."""

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
"""The element types in which NumPy computes the same results as XLA."""

Fill = Callable[[Sequence[Any], HostArray], object]
"""Writes the result of a call with these arguments to an array, which may share the memory of an argument."""

Fits = Callable[[Sequence[Any], tuple[int, ...], np.dtype[Any]], bool]
"""Returns whether NumPy can compute the result of this shape and element type for these arguments."""


def fill_large_results(fits: Fits, fill: Fill) -> Adapter:
    """Return the adapter for functions of one result: `fill` computes it if it is large and fits, else a program."""

    def adapter(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        return _FillsLargeResults(compiled(prototype, function), fits, fill)

    return adapter


@final
class _FillsLargeResults:
    def __init__(self, run: PreparesCalls, fits: Fits, fill: Fill) -> None:
        self._run, self._fits, self._fill = run, fits, fill

    def __call__(self, arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        return self.prepare(arguments, out)(arguments)

    def prepare(self, arguments: Sequence[Any], out: Sequence[OutSpec]) -> Compute:
        compute, spec = self._run.prepare(arguments, out), out[0]
        if not isinstance(spec, ResultSpec) or prod(spec.shape) <= LARGE:
            return compute
        shape, dtype = spec.shape, to_numpy(spec.dtype)

        def defer(arguments: Sequence[Any]) -> Sequence[Any]:
            if not self._fits(arguments, shape, dtype):
                return compute(arguments)
            return [DeferredResult(shape, dtype, lambda target: self._fill(arguments, target))]

        return defer


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the broadcast shape; None if the shapes do not broadcast."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def binary_ufunc(ufunc: np.ufunc, *neutral: object) -> Adapter:
    """Return the adapter for functions that `ufunc` computes if the arguments after the operands are `neutral`."""

    def fits(arguments: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        operands, options = arguments[:2], arguments[2:]
        shapes = [np.shape(operand) for operand in operands]
        return (
            dtype in FLOATS
            and tuple(options) == neutral
            and all(operand.dtype == dtype if np.ndim(operand) else isinstance(operand, float) for operand in operands)
            and _broadcast(shapes) == shape
        )

    def fill(arguments: Sequence[Any], target: HostArray) -> None:
        with np.errstate(all="ignore"):
            ufunc(*arguments[:2], out=target)

    return fill_large_results(fits, fill)


def _are_rows(arguments: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Return whether a result of this shape and element type consists of rows of the table."""
    table, indices = arguments[:2]
    return table.ndim == 2 and table.dtype == dtype and shape == (*indices.shape, table.shape[1])


def _take_rows(arguments: Sequence[Any], target: HostArray) -> None:
    table, indices = arguments[:2]
    if np.may_share_memory(target, table) or np.may_share_memory(target, indices):
        target[...] = table[indices]
    else:
        np.take(table, indices, 0, out=target, mode="clip")  # in this mode it allocates no buffer


table_rows = fill_large_results(_are_rows, _take_rows)
"""The adapter for taking rows of a table: the arguments begin with the table and valid row indices."""
