"""Adapters that let NumPy write large results directly to the caller's tensor.

XLA writes a result into its own memory, from which it is copied to the tensor. For cheap functions the copy takes as
long as the computation. Such functions have a second implementation in NumPy, which writes to the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_impl.functional import Adapted, Adapter, Compute
from diopi_impl.jax_cpu.jit import Compiled, adapt_by_compiling
from diopi_impl.jax_cpu.placement import current_device
from diopi_impl.results import DeferredResult
from diopi_impl.specs import OutSpec, ResultSpec
from diopi_proto.prototype import Prototype
from lib_rt.dtypes import to_numpy

HostArray = NDArray[Any]
"""An array of NumPy over the memory of a tensor."""

LARGE = 2**16
"""NumPy computes results with more elements than this. The copy of a smaller result is cheap."""

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
"""The element types in which NumPy computes the same results as XLA."""

Fill = Callable[[Sequence[Any], HostArray], object]
"""Writes the result of a call with these arguments to an array, which may share the memory of an argument."""

CanFill = Callable[[Sequence[Any], tuple[int, ...], np.dtype[Any]], bool]
"""Returns whether NumPy can compute the result of this shape and element type for these arguments."""


def fill_large_results(can_fill: CanFill, fill: Fill) -> Adapter:
    """Return an adapter for functions with one result.

    If the result is large and `can_fill` returns True, `fill` writes it. Otherwise the compiled program computes it.

    Args:
        can_fill: returns whether `fill` supports a call.
        fill: writes the result.

    Returns:
        The adapter.
    """

    def adapter(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        """Adapt an implementation so that `fill` writes its large results."""
        return LargeResultImplementation(adapt_by_compiling(prototype, function), can_fill, fill)

    return adapter


@final
class LargeResultImplementation:
    """Writes large results with `fill` and computes all others with `compiled`, the compiled program.

    `can_fill` returns whether `fill` computes a call.
    """

    def __init__(self, compiled: Compiled, can_fill: CanFill, fill: Fill) -> None:
        self.compiled, self._can_fill, self._fill = compiled, can_fill, fill

    def __call__(self, arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Return the results of a call."""
        return self.prepare(arguments, out)(arguments)

    def prepare(self, arguments: Sequence[Any], out: Sequence[OutSpec]) -> Compute:
        """Return the function that computes the results of all calls of a form."""
        compute, spec = self.compiled.prepare(arguments, out), out[0]
        if not isinstance(spec, ResultSpec) or prod(spec.shape) <= LARGE:
            return compute
        shape, dtype = spec.shape, to_numpy(spec.dtype)

        def defer(arguments: Sequence[Any]) -> Sequence[Any]:
            """Return a result that `fill` writes later, or the computed results if `fill` can't compute the call."""
            if current_device() is not None or not self._can_fill(arguments, shape, dtype):
                return compute(arguments)
            return [DeferredResult(shape, dtype, lambda target: self._fill(arguments, target))]

        return defer


def _broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the broadcast shape; None if the shapes do not broadcast."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def binary_ufunc(ufunc: np.ufunc, *neutral: object) -> Adapter:
    """Return the adapter for functions of two operands that a NumPy ufunc can compute.

    Args:
        ufunc: takes the two operands and no other argument.
        *neutral: the values of the arguments after the operands for which `ufunc` computes the function, for example
            the factor 1 for `numpy.add`. With other values the compiled program computes the result.

    Returns:
        The adapter.
    """

    def can_fill(arguments: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        """Return whether the operands have the element type and the shape of the result, and options are neutral."""
        operands, options = arguments[:2], arguments[2:]
        shapes = [np.shape(operand) for operand in operands]
        return (
            dtype in FLOATS
            and tuple(options) == neutral
            and all(operand.dtype == dtype if np.ndim(operand) else isinstance(operand, float) for operand in operands)
            and _broadcast_shape(shapes) == shape
        )

    def fill(arguments: Sequence[Any], target: HostArray) -> None:
        """Write the result of the ufunc to `target`."""
        with np.errstate(all="ignore"):
            ufunc(*arguments[:2], out=target)

    return fill_large_results(can_fill, fill)


def _is_table_lookup(arguments: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Return whether a result of this shape and element type consists of rows of the first argument, a table."""
    table, indices = arguments[:2]
    return table.ndim == 2 and table.dtype == dtype and shape == (*indices.shape, table.shape[1])


def _write_rows(arguments: Sequence[Any], target: HostArray) -> None:
    """Write the rows of a table (the first argument) that the indices (the second argument) select."""
    table, indices = arguments[:2]
    if np.may_share_memory(target, table) or np.may_share_memory(target, indices):
        target[...] = table[indices]
    else:
        np.take(table, indices, 0, out=target, mode="clip")  # in this mode it allocates no buffer


table_rows = fill_large_results(_is_table_lookup, _write_rows)
"""The adapter for functions that take rows of a table; the first two arguments are the table and valid row indices."""
