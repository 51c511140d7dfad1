"""Pooling over the last one, two or three axes, and its gradients.

Windows are static index tables, one per axis. Gathering by them yields all windows along the last axis of one array.
Maxima of sliding windows need no such array: they are reduced along one axis, or by one window position, at a time.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.extremes import from_keys, nan_rank, to_keys, to_ranks
from diopi_impl.jax_cpu.registration import implements_ranks
from diopi_impl.jax_cpu.windows import AxisWindows, SlidingWindows, adaptive_axes, sliding_axes, sliding_windows

F = TypeVar("F", bound=Callable[..., Any])
"""The decorated implementation."""

MAX_UNROLLED = 64
"""The maximum number of window positions that are compared one by one, without gathering the windows."""


def _positions_last(axes: Sequence[Any], leading: int) -> tuple[int, ...]:
    """Return the permutation of (…, windows, positions, windows, positions …) that puts all positions last."""
    rank = len(axes)
    outer = [leading + 2 * axis for axis in range(rank)]
    return (*range(leading), *outer, *[axis + 1 for axis in outer])


def _gather_windows(x: Any, axes: Sequence[AxisWindows], tables: Sequence[NDArray[Any]]) -> Any:
    """Return (…, sizes) as (…, windows, positions in a window), gathered by one table of positions per axis."""
    leading = x.ndim - len(axes)
    for axis in reversed(range(len(axes))):
        x = x.take(tables[axis], axis=leading + axis)
    x = x.transpose(_positions_last(axes, leading))
    counts = x.shape[: leading + len(axes)]
    return x.reshape(*counts, math.prod(x.shape[len(counts) :]))


def _elements(x: Any, axes: Sequence[AxisWindows]) -> Any:
    """Return the elements in each window: (…, windows, positions in a window)."""
    return _gather_windows(x, axes, [axis.positions for axis in axes])


def _is_inside(axes: Sequence[AxisWindows]) -> NDArray[np.bool_]:
    """Return which positions are inside the input: (windows, positions in a window)."""
    product = axes[0].inside
    for axis in axes[1:]:
        product = product[..., None, None] & axis.inside
    product = product.transpose(_positions_last(axes, 0))
    return product.reshape(*product.shape[: len(axes)], math.prod(product.shape[len(axes) :]))


def _gathered_argmax(input: Array, axes: Sequence[AxisWindows]) -> tuple[Array, Array]:
    """Return the first maximum, or the last NaN, of every window, and its flat index in the spatial axes."""
    spatial = input.shape[-len(axes) :]
    offsets = _elements(np.arange(math.prod(spatial)).reshape(spatial), axes)
    candidates = _elements(input, axes)
    is_nan = jnp.isnan(candidates) & _is_inside(axes)
    last_nan = is_nan.shape[-1] - 1 - jnp.argmax(jnp.flip(is_nan, -1), -1)
    winner = jnp.where(is_nan.any(-1), last_nan, jnp.argmax(to_ranks(candidates), -1))[..., None]
    offsets = jnp.broadcast_to(offsets, candidates.shape)
    values, places = (jnp.take_along_axis(array, winner, -1)[..., 0] for array in (candidates, offsets))
    return values, places


def _lowest_key(order: Array) -> Any:
    """Return the smallest integer of the type of `order`, the key of padding."""
    return np.array(jnp.iinfo(order.dtype).min, order.dtype)


def _sliding_max(input: Array, windows: SlidingWindows) -> Array:
    """Return the maximum of every window, reduced along one axis after another."""
    keys, rank = to_keys(input), input.ndim
    first = rank - len(windows.axes)
    sizes = zip(windows.kernel, windows.stride, windows.dilation, windows.margins(input.shape[first:]), strict=True)
    for axis, (*numbers, margin) in enumerate(sizes, first):
        margins = [margin if i == axis else (0, 0) for i in range(rank)]
        window, steps, spreads = ((*[1] * axis, n, *[1] * (rank - axis - 1)) for n in numbers)
        keys = lax.reduce_window(keys, _lowest_key(keys), lax.max, window, steps, margins, window_dilation=spreads)
    return from_keys(keys, input.dtype)


def _sliding_argmax(input: Array, windows: SlidingWindows) -> tuple[Array, Array]:
    """Return the maxima and indices of `_gathered_argmax`, reduced by one window position after another."""
    first, order = input.ndim - len(windows.axes), to_ranks(input)
    spatial = input.shape[first:]
    margins = [*[(0, 0)] * first, *windows.margins(spatial)]
    strides = [math.prod(spatial[axis + 1 :]) for axis in range(len(spatial))]

    def offset(place: tuple[int, ...]) -> Any:
        """Return the flat index of the elements at a position of all windows."""
        axis_offsets = (axis.positions[:, k] * step for axis, k, step in zip(windows.axes, place, strides, strict=True))
        return sum(np.ix_(*axis_offsets))

    counts = [len(axis.positions) for axis in windows.axes]
    shape = (*input.shape[:first], *counts)
    highest, places = jnp.full(shape, _lowest_key(order)), jnp.broadcast_to(offset((0,) * len(counts)), shape)
    values = jnp.zeros(shape, input.dtype)
    padded, ordered = jnp.pad(input, margins), jnp.pad(order, margins, constant_values=_lowest_key(order))
    for (place, candidates), (_, order) in zip(
        windows.iterate_positions(padded), windows.iterate_positions(ordered), strict=True
    ):
        better = (order > highest) | (order == nan_rank(order))
        highest, values = jnp.where(better, order, highest), jnp.where(better, candidates, values)
        places = jnp.where(better, offset(place), places)
    return values, places


def _scatter_to_indices(grad_output: Array, input: Array, indices: Array, rank: int) -> Array:
    """Return zeros of input's shape with grad_output added at `indices`."""
    flat = jnp.zeros((math.prod(input.shape[:-rank]), math.prod(input.shape[-rank:])), grad_output.dtype)
    places = indices.reshape(flat.shape[0], math.prod(indices.shape[-rank:]))
    flat = flat.at[jnp.arange(flat.shape[0])[:, None], places].add(grad_output.reshape(places.shape))
    return flat.reshape(input.shape)


def _means(input: Array, axes: Sequence[AxisWindows], divisor: NDArray[Any] | int) -> Array:
    """Return the sum over each window divided by `divisor`."""
    return jnp.where(_is_inside(axes), _elements(input, axes), 0).sum(-1) / divisor


def _means_gradient(
    grad_output: Array, input: Array, axes: Sequence[AxisWindows], divisor: NDArray[Any] | int
) -> Array:
    """Return the gradient of `_means`."""
    zeros = jnp.zeros(input.shape, grad_output.dtype)
    (grad_input,) = jax.vjp(lambda x: _means(x, axes, divisor), zeros)[1](grad_output)
    return jnp.asarray(grad_input)


def _window_divisor(axes: Sequence[AxisWindows], count_include_pad: bool, override: int | None) -> NDArray[Any] | int:
    """Return the divisor of each window: its number of elements, with padding or without, or `override`."""
    if override is not None:
        if override == 0:
            raise ValueError("divisor_override is 0")
        return override
    return _padded_sizes(axes) if count_include_pad else _is_inside(axes).sum(-1)


def _padded_sizes(axes: Sequence[AxisWindows]) -> NDArray[Any]:
    """Return the number of positions inside the padded input of each window."""
    product = axes[0].padded
    for axis in axes[1:]:
        product = product[..., None] * axis.padded
    return product


@implements_ranks("diopiMaxPool*d")
def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode):
    """Return the maximum of each window."""
    return _sliding_max(input, sliding_windows(input.shape, kernel_size, stride, padding, dilation, ceil_mode))


@implements_ranks("diopiMaxPool*dWithIndices")
def max_pool_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode):
    """Return the maximum of each window and its offset in the spatial axes."""
    windows = sliding_windows(input.shape, kernel_size, stride, padding, dilation, ceil_mode)
    if math.prod(kernel_size) > MAX_UNROLLED:
        return _gathered_argmax(input, windows.axes)
    return _sliding_argmax(input, windows)


@implements_ranks("diopiMaxPool*dBackward")
def max_pool_backward(grad_output, input, kernel_size, indices):
    """Return zeros with grad_output added at the offsets of the maxima."""
    return _scatter_to_indices(grad_output, input, indices, len(kernel_size))


@implements_ranks("diopiAvgPool*d", [1])
def avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad):
    """Return the mean of each window."""
    return avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@implements_ranks("diopiAvgPool*d", [2, 3])
def avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """Return the mean of each window."""
    axes = sliding_axes(input.shape, kernel_size, stride, padding, [1] * len(kernel_size), ceil_mode)
    return _means(input, axes, _window_divisor(axes, count_include_pad, divisor_override))


@implements_ranks("diopiAdaptiveAvgPool*d")
def adaptive_avg_pool(input, output_size):
    """Return the means of windows that cover each axis; `output_size` is the number of windows along each axis."""
    axes = adaptive_axes(input.shape, output_size)
    return _means(input, axes, _window_divisor(axes, False, None))


def _adaptive_avg_pool_backward(grad_output: Array, input: Array, rank: int) -> Array:
    """Return the gradient of adaptive average pooling over `rank` axes."""
    axes = adaptive_axes(input.shape, grad_output.shape[-rank:])
    return _means_gradient(grad_output, input, axes, _window_divisor(axes, False, None))


@implements_ranks("diopiAdaptiveMaxPool*d")
def adaptive_max_pool(input, output_size):
    """Return the maxima of windows that cover each axis; `output_size` is the number of windows along each axis."""
    return _gathered_argmax(input, adaptive_axes(input.shape, output_size))[0]


@implements_ranks("diopiAdaptiveMaxPool*dWithIndices")
def adaptive_max_pool_with_indices(input, output_size):
    """Return the maxima and their offsets in the spatial axes."""
    return _gathered_argmax(input, adaptive_axes(input.shape, output_size))


def _check_mode(mode: str) -> None:
    """Raise ValueError unless the mode is "max" or "avg"."""
    if mode not in ("max", "avg"):
        raise ValueError(f'mode is "{mode}", expected "max" or "avg"')


@implements_ranks("diopiPool*d")
def pool(input, mode, ksize, stride, padding, dilation, ceil_mode, exclusive, adaptive, output_size):
    """Return maximum or average pooling, sliding or adaptive, as the arguments select."""
    _check_mode(mode)
    if adaptive:
        return adaptive_max_pool(input, output_size) if mode == "max" else adaptive_avg_pool(input, output_size)
    if mode == "max":
        return max_pool(input, ksize, stride, padding, dilation, ceil_mode)
    return avg_pool(input, ksize, stride, padding, ceil_mode, not exclusive, None)


def _implement_gradients(rank: int) -> None:
    """Register the gradients for `rank` spatial axes, a number that their arguments do not contain."""

    @vendor.implements(f"diopiAdaptiveAvgPool{rank}dBackward")
    def adaptive_avg_pool_backward(grad_output, input):
        """Return the gradient of the input."""
        return _adaptive_avg_pool_backward(grad_output, input, rank)

    @vendor.implements(f"diopiAdaptiveMaxPool{rank}dBackward")
    def adaptive_max_pool_backward(grad_output, input, indices):
        """Return zeros with grad_output added at the offsets of the maxima."""
        return _scatter_to_indices(grad_output, input, indices, rank)

    @vendor.implements(f"diopiPool{rank}dBackward")
    def pool_backward(grad_output, input, mode, ksize, stride, padding, ceil_mode, exclusive, adaptive, indices):
        """Return the gradient of the input of `pool`."""
        _check_mode(mode)
        if mode == "max":
            if indices is None:
                raise ValueError('indices are required where mode is "max"')
            return _scatter_to_indices(grad_output, input, indices, rank)
        if adaptive:
            return _adaptive_avg_pool_backward(grad_output, input, rank)
        axes = sliding_axes(input.shape, ksize, stride, padding, [1] * rank, ceil_mode)
        return _means_gradient(grad_output, input, axes, _window_divisor(axes, not exclusive, None))


for _rank in (1, 2, 3):
    _implement_gradients(_rank)
