"""Pooling over the last one, two or three axes, and its gradients: the same formulas for every rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import Reference, WithTerms, reference
from diopi_test.oracle.reference.sums import accumulated

Array = NDArray[Any]
F = TypeVar("F", bound=Reference)


@final
@dataclass(frozen=True)
class Window:
    """One window of one axis: its positions inside the input, and how many it has inside the padded input."""

    inside: Sequence[int]
    padded: int


Axis = Sequence[Window]


def _sliding(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> Axis:
    extent = dilation * (kernel - 1) + 1
    steps = (size + 2 * padding - extent) / stride
    count = int(np.ceil(steps) if ceil_mode else np.floor(steps)) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    windows = []
    for o in range(count):
        positions = range(o * stride - padding, o * stride - padding + extent, dilation)
        inside = [i for i in positions if 0 <= i < size]
        windows.append(Window(inside, sum(i < size + padding for i in positions)))
    return windows


def _adaptive(size: int, count: int) -> Axis:
    windows = [range(o * size // count, -(-(o + 1) * size // count)) for o in range(count)]
    return [Window(window, len(window)) for window in windows]


def _sliding_axes(
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> list[Axis]:
    sizes = input.shape[-len(kernel_size) :]
    lists = zip(sizes, kernel_size, stride or kernel_size, padding, dilation, strict=True)
    return [_sliding(*numbers, ceil_mode) for numbers in lists]


def _adaptive_axes(input: Array, output_size: Sequence[int]) -> list[Axis]:
    return [_adaptive(size, n) for size, n in zip(input.shape[-len(output_size) :], output_size, strict=True)]


def _windows(axes: Sequence[Axis]) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...], tuple[Window, ...]]]:
    """For every result position: its index, that of its window's elements in the input, and its window on each axis."""
    for o in np.ndindex(*[len(axis) for axis in axes]):
        window = tuple(axis[i] for axis, i in zip(axes, o, strict=True))
        yield (..., *o), (..., *np.ix_(*[np.array(w.inside, int) for w in window])), window


def _leading(x: Array, axes: Sequence[Axis]) -> tuple[int, ...]:
    return x.shape[: x.ndim - len(axes)]


def _empty_result(input: Array, axes: Sequence[Axis], dtype: type) -> Array:
    return np.empty((*_leading(input, axes), *[len(axis) for axis in axes]), dtype)


def _maxima(input: Array, axes: Sequence[Axis]) -> tuple[Array, Array]:
    """The first largest element of every window, its last NaN if it has one, and its offset in the spatial axes."""
    values, positions = _empty_result(input, axes, float), _empty_result(input, axes, int)
    leading = _leading(input, axes)
    spatial = input.shape[len(leading) :]
    offsets = np.arange(np.prod(spatial, dtype=int)).reshape(spatial)
    for o, elements, _ in _windows(axes):
        candidates = input[elements].reshape(*leading, offsets[elements].size)
        winner = _last_nan_or_first_largest(candidates)
        values[o] = np.take_along_axis(candidates, winner[..., None], -1)[..., 0]
        positions[o] = offsets[elements].ravel()[winner]
    return values, positions


def _last_nan_or_first_largest(candidates: Array) -> Array:
    """Positions along the last axis."""
    is_nan = np.isnan(candidates)
    last_nan = candidates.shape[-1] - 1 - np.flip(is_nan, -1).argmax(-1)
    return np.where(is_nan.any(-1), last_nan, candidates.argmax(-1))


def _scattered(grad_output: Array, input: Array, indices: Array, rank: int) -> WithTerms:
    """grad_output added up at `indices`, offsets in the last `rank` axes of the result."""
    channels = int(np.prod(input.shape[:-rank]))
    places = indices.reshape(channels, int(np.prod(indices.shape[-rank:])))

    def add_up(values: Array) -> Array:
        sums = np.zeros((channels, int(np.prod(input.shape[-rank:]))))
        np.add.at(sums, (np.arange(channels)[:, None], places), values.reshape(places.shape))
        return sums.reshape(input.shape)

    total, moduli, squares = (add_up(values) for values in (grad_output, np.abs(grad_output), grad_output**2))
    return WithTerms(total, accumulated(add_up(np.ones(grad_output.shape)), moduli, squares, total))


Divisor = Callable[[tuple[Window, ...]], int]


def _divisor(count_include_pad: bool, override: int | None) -> Divisor:
    """What the sum over a window is divided by."""
    if override:
        return lambda window: override
    if count_include_pad:
        return lambda window: int(np.prod([w.padded for w in window]))
    return _inside


def _inside(window: tuple[Window, ...]) -> int:
    return int(np.prod([len(w.inside) for w in window]))


def _means(input: Array, axes: Sequence[Axis], divisor: Divisor) -> WithTerms:
    means, moduli, squares, counts = (_empty_result(input, axes, float) for _ in range(4))
    over = tuple(range(-len(axes), 0))
    for o, elements, window in _windows(axes):
        given = input[elements]
        means[o] = given.sum(over) / divisor(window)
        moduli[o] = np.abs(given).sum(over) / np.abs(divisor(window))
        squares[o] = (given**2).sum(over) / divisor(window) ** 2
        counts[o] = _inside(window)
    return WithTerms(means, accumulated(counts, moduli, squares, means))


def _shared(grad_output: Array, input: Array, axes: Sequence[Axis], divisor: Divisor) -> WithTerms:
    """Every grad_output divided as in `_means` and added to all elements of its window."""
    grad_input, moduli, squares, counts = (np.zeros(input.shape) for _ in range(4))
    for o, elements, window in _windows(axes):
        share = grad_output[o][(..., *[None] * len(axes))] / divisor(window)
        grad_input[elements] += share
        moduli[elements] += np.abs(share)
        squares[elements] += share**2
        counts[elements] += 1
    return WithTerms(grad_input, accumulated(counts, moduli, squares, grad_input))


def _all_ranks(pattern: str) -> Callable[[F], F]:
    """The reference of the functions whose names have 1, 2 and 3 in place of `*`."""
    return reference(*[pattern.replace("*", str(rank)) for rank in (1, 2, 3)])


@_all_ranks("diopiMaxPool*d")
def max_pool(
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Array:
    return _maxima(input, _sliding_axes(input, kernel_size, stride, padding, dilation, ceil_mode))[0]


@_all_ranks("diopiMaxPool*dWithIndices")
def max_pool_with_indices(
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Any:
    return _maxima(input, _sliding_axes(input, kernel_size, stride, padding, dilation, ceil_mode))


@_all_ranks("diopiMaxPool*dBackward")
def max_pool_backward(
    grad_output: Array,
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Array,
) -> WithTerms:
    return _scattered(grad_output, input, indices, len(kernel_size))


@reference("diopiAvgPool1d")
def avg_pool1d(
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
) -> WithTerms:
    return avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@reference("diopiAvgPool1dBackward")
def avg_pool1d_backward(
    grad_output: Array,
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
) -> WithTerms:
    return avg_pool_backward(grad_output, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@reference("diopiAvgPool2d", "diopiAvgPool3d")
def avg_pool(
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> WithTerms:
    axes = _sliding_axes(input, kernel_size, stride, padding, [1] * len(kernel_size), ceil_mode)
    return _means(input, axes, _divisor(count_include_pad, divisor_override))


@reference("diopiAvgPool2dBackward", "diopiAvgPool3dBackward")
def avg_pool_backward(
    grad_output: Array,
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> WithTerms:
    axes = _sliding_axes(input, kernel_size, stride, padding, [1] * len(kernel_size), ceil_mode)
    return _shared(grad_output, input, axes, _divisor(count_include_pad, divisor_override))


@_all_ranks("diopiAdaptiveAvgPool*d")
def adaptive_avg_pool(input: Array, output_size: Sequence[int]) -> WithTerms:
    return _means(input, _adaptive_axes(input, output_size), _inside)


def _adaptive_avg_pool_backward(rank: int) -> None:
    @reference(f"diopiAdaptiveAvgPool{rank}dBackward")
    def backward(grad_output: Array, input: Array) -> WithTerms:
        return _shared(grad_output, input, _adaptive_axes(input, grad_output.shape[-rank:]), _inside)


@_all_ranks("diopiAdaptiveMaxPool*d")
def adaptive_max_pool(input: Array, output_size: Sequence[int]) -> Array:
    return _maxima(input, _adaptive_axes(input, output_size))[0]


@_all_ranks("diopiAdaptiveMaxPool*dWithIndices")
def adaptive_max_pool_with_indices(input: Array, output_size: Sequence[int]) -> Any:
    return _maxima(input, _adaptive_axes(input, output_size))


def _adaptive_max_pool_backward(rank: int) -> None:
    @reference(f"diopiAdaptiveMaxPool{rank}dBackward")
    def backward(grad_output: Array, input: Array, indices: Array) -> WithTerms:
        return _scattered(grad_output, input, indices, rank)


for _rank in (1, 2, 3):  # where no argument gives the number of spatial axes
    _adaptive_avg_pool_backward(_rank)
    _adaptive_max_pool_backward(_rank)


@_all_ranks("diopiPool*d")
def pool(
    input: Array,
    mode: str,
    ksize: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    exclusive: bool,
    adaptive: bool,
    output_size: Sequence[int],
) -> Array | WithTerms:
    if adaptive:
        return adaptive_max_pool(input, output_size) if mode == "max" else adaptive_avg_pool(input, output_size)
    if mode == "max":
        return max_pool(input, ksize, stride, padding, dilation, ceil_mode)
    return avg_pool(input, ksize, stride, padding, ceil_mode, not exclusive, None)


@_all_ranks("diopiPool*dBackward")
def pool_backward(
    grad_output: Array,
    input: Array,
    mode: str,
    ksize: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    exclusive: bool,
    adaptive: bool,
    indices: Array | None,
) -> WithTerms:
    if mode == "max":
        assert indices is not None
        return _scattered(grad_output, input, indices, len(ksize))
    if adaptive:
        axes = _adaptive_axes(input, grad_output.shape[-len(ksize) :])
        return _shared(grad_output, input, axes, _inside)
    return avg_pool_backward(grad_output, input, ksize, stride, padding, ceil_mode, not exclusive, None)
