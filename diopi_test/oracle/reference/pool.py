"""Pooling over the last one, two or three axes, and its gradients, with the same formulas for every rank.

These axes are called spatial axes. A window is the set of input elements of which a result element is the maximum or
the mean. *Adaptive* pooling chooses the windows so that the result has a requested size.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: PyTorch's pooling layers, which define the windows and the choice between equal elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, mark_unspecified, reference
from diopi_test.oracle.reference.sums import accumulation_terms

Array = NDArray[Any]


@final
@dataclass(frozen=True)
class AxisWindow:
    """A window along an axis.

    Attributes:
        inside: the indices of the input elements in the window.
        padded_count: the number of elements of the padded input in the window.
    """

    inside: Sequence[int]
    padded_count: int


AxisWindows = Sequence[AxisWindow]
"""The windows along an axis, in the order of the outputs."""


def _sliding_windows(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> AxisWindows:
    """Return the windows of a kernel that slides along an axis, as torch.nn.functional.max_pool1d counts them.

    Args:
        size: The size of the input.
        kernel: The number of elements of the kernel.
        stride: The distance between windows.
        padding: The number of elements that are added at each end.
        dilation: The distance between the elements of the kernel.
        ceil_mode: Whether the last window may extend beyond the padded input.
    """
    extent = dilation * (kernel - 1) + 1
    steps = (size + 2 * padding - extent) / stride
    count = int(np.ceil(steps) if ceil_mode else np.floor(steps)) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    windows = []
    for o in range(count):
        positions = range(o * stride - padding, o * stride - padding + extent, dilation)
        inside = [i for i in positions if 0 <= i < size]
        windows.append(AxisWindow(inside, sum(i < size + padding for i in positions)))
    return windows


def _adaptive_windows(size: int, count: int) -> AxisWindows:
    """Return `count` windows that cover an axis: window o from ⌊o · size / count⌋ to ⌈(o + 1) · size / count⌉."""
    windows = [range(o * size // count, -(-(o + 1) * size // count)) for o in range(count)]
    return [AxisWindow(window, len(window)) for window in windows]


def _sliding_axes(
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> list[AxisWindows]:
    """Return the windows of a sliding kernel for each spatial axis."""
    sizes = input.shape[-len(kernel_size) :]
    lists = zip(sizes, kernel_size, stride or kernel_size, padding, dilation, strict=True)
    return [_sliding_windows(*numbers, ceil_mode) for numbers in lists]


def _adaptive_axes(input: Array, output_size: Sequence[int]) -> list[AxisWindows]:
    """Return the windows of adaptive pooling for each spatial axis."""
    return [_adaptive_windows(size, n) for size, n in zip(input.shape[-len(output_size) :], output_size, strict=True)]


def _iterate_windows(
    axes: Sequence[AxisWindows],
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...], tuple[AxisWindow, ...]]]:
    """Yield the index of each result element, the index of its window in the input, and its window on each axis."""
    for o in np.ndindex(*[len(axis) for axis in axes]):
        window = tuple(axis[i] for axis, i in zip(axes, o, strict=True))
        yield (..., *o), (..., *np.ix_(*[np.array(w.inside, int) for w in window])), window


def _leading_shape(x: Array, axes: Sequence[AxisWindows]) -> tuple[int, ...]:
    """Return the shape of the axes before the spatial axes."""
    return x.shape[: x.ndim - len(axes)]


def _empty_result(input: Array, axes: Sequence[AxisWindows], dtype: type) -> Array:
    """Return an uninitialized array of type `dtype` in the shape of the pooled result."""
    return np.empty_like(input, dtype, shape=(*_leading_shape(input, axes), *[len(axis) for axis in axes]))


def _window_maxima(input: Array, axes: Sequence[AxisWindows]) -> tuple[Array, Array]:
    """Return the first maximum of each window, or its last NaN, and the position of that element.

    The position is the row-major offset in the spatial axes.
    """
    values, positions = _empty_result(input, axes, float), _empty_result(input, axes, int)
    leading = _leading_shape(input, axes)
    spatial = input.shape[len(leading) :]
    offsets = np.arange(np.prod(spatial, dtype=int)).reshape(spatial)
    for o, elements, _ in _iterate_windows(axes):
        candidates = input[elements].reshape(*leading, offsets[elements].size)
        winner = _last_nan_or_first_largest(candidates)
        values[o] = np.take_along_axis(candidates, winner[..., None], -1)[..., 0]
        positions[o] = offsets[elements].ravel()[winner]
    return values, positions


def _last_nan_or_first_largest(candidates: Array) -> Array:
    """Return the position of the last NaN, else of the first maximum, along the last axis."""
    is_nan = np.isnan(candidates)
    last_nan = candidates.shape[-1] - 1 - np.flip(is_nan, -1).argmax(-1)
    return np.where(is_nan.any(-1), last_nan, candidates.argmax(-1))


def _scatter_add(grad_output: Array, input: Array, indices: Array, rank: int) -> WithTerms:
    """Return the gradient of the input with its terms: each element of grad_output is added at its index.

    The indices are offsets in the last `rank` axes of the input.
    """
    channels = int(np.prod(input.shape[:-rank]))
    positions = indices.reshape(channels, int(np.prod(indices.shape[-rank:])))

    def add_up(values: Array) -> Array:
        """Return the sums of `values` at the positions, in the shape of the input."""
        sums = np.zeros_like(values, shape=(channels, int(np.prod(input.shape[-rank:]))))
        np.add.at(sums, (np.arange(channels)[:, None], positions), values.reshape(positions.shape))
        return sums.reshape(input.shape)

    total, moduli, squares = (add_up(values) for values in (grad_output, np.abs(grad_output), grad_output**2))
    return WithTerms(total, accumulation_terms(add_up(np.ones(grad_output.shape)), moduli, squares, total))


Divisor = Callable[[tuple[AxisWindow, ...]], int]
"""A function that returns the divisor of the mean over a window, from its `AxisWindow` along each axis."""


def _window_divisor(count_include_pad: bool, override: int | None) -> Divisor:
    """Return the function that computes the divisor of the mean over a window.

    Args:
        count_include_pad: Whether elements of the padding count.
        override: A fixed divisor; None or 0 for the number of elements in the window.
    """
    if override:
        return lambda window: override
    if count_include_pad:
        return lambda window: int(np.prod([w.padded_count for w in window]))
    return _inside_size


def _inside_size(window: tuple[AxisWindow, ...]) -> int:
    """Return the number of input elements in a window."""
    return int(np.prod([len(w.inside) for w in window]))


def _divided_window_sums(input: Array, axes: Sequence[AxisWindows], divisor: Divisor) -> WithTerms:
    """Return the sum over each window, divided by `divisor(window)`, with its terms."""
    means, moduli, squares, counts = (_empty_result(input, axes, float) for _ in range(4))
    window_axes = tuple(range(-len(axes), 0))
    for o, elements, window in _iterate_windows(axes):
        values = input[elements]
        means[o] = values.sum(window_axes) / divisor(window)
        moduli[o] = np.abs(values).sum(window_axes) / np.abs(divisor(window))
        squares[o] = (values**2).sum(window_axes) / divisor(window) ** 2
        counts[o] = _inside_size(window)
    return WithTerms(means, accumulation_terms(counts, moduli, squares, means))


def _distribute(grad_output: Array, input: Array, axes: Sequence[AxisWindows], divisor: Divisor) -> WithTerms:
    """Return the adjoint of `_divided_window_sums`: add each grad_output / divisor to all elements of its window."""
    grad_input, moduli, squares, counts = (np.zeros_like(grad_output, shape=input.shape) for _ in range(4))
    for o, elements, window in _iterate_windows(axes):
        share = grad_output[o][(..., *[None] * len(axes))] / divisor(window)
        grad_input[elements] += share
        moduli[elements] += np.abs(share)
        squares[elements] += share**2
        counts[elements] += 1
    return WithTerms(grad_input, accumulation_terms(counts, moduli, squares, grad_input))


def _names_per_rank(pattern: str) -> list[str]:
    """Return the function names with the ranks 1, 2 and 3 in place of `*`."""
    return [pattern.replace("*", str(rank)) for rank in (1, 2, 3)]


@reference(*_names_per_rank("diopiMaxPool*d"))
def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode):
    """Return the maximum of each window."""
    return _window_maxima(input, _sliding_axes(input, kernel_size, stride, padding, dilation, ceil_mode))[0]


@reference("diopiMaxPool1dWithIndices", "diopiMaxPool2dWithIndices")
def max_pool_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode):
    """Return the maximum of each window and its offset in the spatial axes."""
    return _window_maxima(input, _sliding_axes(input, kernel_size, stride, padding, dilation, ceil_mode))


@reference("diopiMaxPool3dWithIndices")
def max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode):
    """Return maxima and offsets; the offset is unspecified where the maximum is −∞."""
    maxima, positions = max_pool_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return maxima, mark_unspecified(maxima == -np.inf, positions)


@reference(*_names_per_rank("diopiMaxPool*dBackward"))
def max_pool_backward(grad_output, input, kernel_size, indices):
    """Return zeros with grad_output added at the offsets of the maxima."""
    return _scatter_add(grad_output, input, indices, len(kernel_size))


@reference("diopiAvgPool1d")
def avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad):
    """Return the mean of each window."""
    return avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@reference("diopiAvgPool1dBackward")
def avg_pool1d_backward(grad_output, input, kernel_size, stride, padding, ceil_mode, count_include_pad):
    """Return the gradient of the input."""
    return avg_pool_backward(grad_output, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@reference("diopiAvgPool2d", "diopiAvgPool3d")
def avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """Return the mean of each window; the divisor may include padding or be fixed."""
    axes = _sliding_axes(input, kernel_size, stride, padding, [1] * len(kernel_size), ceil_mode)
    return _divided_window_sums(input, axes, _window_divisor(count_include_pad, divisor_override))


@reference("diopiAvgPool2dBackward", "diopiAvgPool3dBackward")
def avg_pool_backward(grad_output, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """Return the gradient of the input."""
    axes = _sliding_axes(input, kernel_size, stride, padding, [1] * len(kernel_size), ceil_mode)
    return _distribute(grad_output, input, axes, _window_divisor(count_include_pad, divisor_override))


@reference(*_names_per_rank("diopiAdaptiveAvgPool*d"))
def adaptive_avg_pool(input, output_size):
    """Return the means of `output_size` windows that cover each axis."""
    return _divided_window_sums(input, _adaptive_axes(input, output_size), _inside_size)


def _adaptive_avg_pool_backward(rank: int) -> None:
    """Register the gradient of adaptive average pooling over `rank` axes."""

    @reference(f"diopiAdaptiveAvgPool{rank}dBackward")
    def backward(grad_output, input):
        """Return the gradient of the input."""
        return _distribute(grad_output, input, _adaptive_axes(input, grad_output.shape[-rank:]), _inside_size)


@reference(*_names_per_rank("diopiAdaptiveMaxPool*d"))
def adaptive_max_pool(input, output_size):
    """Return the maxima of `output_size` windows that cover each axis."""
    return _window_maxima(input, _adaptive_axes(input, output_size))[0]


@reference(*_names_per_rank("diopiAdaptiveMaxPool*dWithIndices"))
def adaptive_max_pool_with_indices(input, output_size):
    """Return the maxima and their offsets in the spatial axes."""
    return _window_maxima(input, _adaptive_axes(input, output_size))


def _adaptive_max_pool_backward(rank: int) -> None:
    """Register the gradient of adaptive maximum pooling over `rank` axes."""

    @reference(f"diopiAdaptiveMaxPool{rank}dBackward")
    def backward(grad_output, input, indices):
        """Return zeros with grad_output added at the offsets of the maxima."""
        return _scatter_add(grad_output, input, indices, rank)


for _rank in (1, 2, 3):  # the number of spatial axes can't be read from the arguments
    _adaptive_avg_pool_backward(_rank)
    _adaptive_max_pool_backward(_rank)


@reference(*_names_per_rank("diopiPool*d"))
def pool(input, mode, ksize, stride, padding, dilation, ceil_mode, exclusive, adaptive, output_size):
    """Return maximum or average pooling, sliding or adaptive, as the arguments select."""
    if adaptive:
        return adaptive_max_pool(input, output_size) if mode == "max" else adaptive_avg_pool(input, output_size)
    if mode == "max":
        return max_pool(input, ksize, stride, padding, dilation, ceil_mode)
    return avg_pool(input, ksize, stride, padding, ceil_mode, not exclusive, None)


@reference(*_names_per_rank("diopiPool*dBackward"))
def pool_backward(grad_output, input, mode, ksize, stride, padding, ceil_mode, exclusive, adaptive, indices):
    """Return the gradient of the input of `pool`."""
    if mode == "max":
        assert indices is not None
        return _scatter_add(grad_output, input, indices, len(ksize))
    if adaptive:
        axes = _adaptive_axes(input, grad_output.shape[-len(ksize) :])
        return _distribute(grad_output, input, axes, _inside_size)
    return avg_pool_backward(grad_output, input, ksize, stride, padding, ceil_mode, not exclusive, None)
