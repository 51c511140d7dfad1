"""Pooling windows: static tables of each window's positions along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jax import Array, lax
from numpy.typing import NDArray


@final
@dataclass(frozen=True)
class AxisWindows:
    """The windows along one axis.

    Attributes:
        positions: (windows, positions in a window); positions outside the input repeat the first one inside.
        inside: which positions are inside the input, in the same shape.
        padded: the number of positions inside the padded input, for every window.
    """

    positions: NDArray[np.int64]
    inside: NDArray[np.bool_]
    padded: NDArray[np.int64]


def _make_axis_windows(
    positions: NDArray[np.int64], in_window: NDArray[np.bool_], size: int, padding: int
) -> AxisWindows:
    """Return the windows with these positions, of which those where `in_window` is false are unused.

    Args:
        positions: the positions of the windows, (windows, positions in a window).
        in_window: which positions belong to their window, in the same shape.
        size: the size of the axis.
        padding: the padding of the axis.

    Raises:
        ValueError: if a window contains no element of the input.
    """
    inside = in_window & (positions >= 0) & (positions < size)
    if not inside.any(1).all():
        raise ValueError(f"an axis of size {size} with padding {padding} has windows without any element")
    first = np.take_along_axis(positions, inside.argmax(1)[:, None], 1)
    padded = (in_window & (positions < size + padding)).sum(1)
    return AxisWindows(np.where(inside, positions, first), inside, padded)


def _sliding_axis(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> AxisWindows:
    """Return the windows of a kernel that slides along an axis; raise ValueError for invalid sizes."""
    if min(kernel, stride, dilation) < 1:
        raise ValueError(f"kernel {kernel}, stride {stride} and dilation {dilation} must be positive")
    if not 0 <= padding <= kernel // 2:
        raise ValueError(f"padding {padding} is not from 0 to half of kernel {kernel}")
    extent = dilation * (kernel - 1) + 1
    room = size + 2 * padding - extent
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    if count < 1:
        raise ValueError(f"an axis of size {size} with padding {padding} has no window of extent {extent}")
    positions = np.arange(count)[:, None] * stride - padding + np.arange(kernel) * dilation
    return _make_axis_windows(positions, np.ones(positions.shape, bool), size, padding)


def _adaptive_axis(size: int, count: int) -> AxisWindows:
    """Return `count` windows that cover an axis, as adaptive pooling defines them."""
    if count < 0:
        raise ValueError(f"output_size contains {count}, expected 0 or more")
    start = np.arange(count) * size // max(count, 1)
    end = -(-(np.arange(count) + 1) * size // max(count, 1))
    positions = start[:, None] + np.arange(max(end - start, default=1))
    return _make_axis_windows(positions, positions < end[:, None], size, 0)


def sliding_axes(
    shape: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> list[AxisWindows]:
    """Return the sliding windows along the last axes of an input.

    Args:
        shape: The shape of the input, which has one or two axes before those of the windows.
        kernel_size: The number of elements of a window along each axis.
        stride: The distance between windows along each axis; empty for `kernel_size`.
        padding: The padding at both ends of each axis.
        dilation: The distance between the elements of a window along each axis.
        ceil_mode: Whether a last window may extend beyond the padded input.

    Raises:
        ValueError: an argument is invalid
    """
    rank = len(kernel_size)
    if not rank < len(shape) <= rank + 2:
        raise ValueError(f"a {len(shape)}-d input has no {rank} spatial axes")
    numbers = zip(shape[-rank:], kernel_size, stride or kernel_size, padding, dilation, strict=True)
    return [_sliding_axis(*axis_numbers, ceil_mode) for axis_numbers in numbers]


def adaptive_axes(shape: Sequence[int], output_size: Sequence[int]) -> list[AxisWindows]:
    """Return the adaptive windows along the last axes of an input of this shape."""
    return [_adaptive_axis(size, n) for size, n in zip(shape[-len(output_size) :], output_size, strict=True)]


@final
@dataclass(frozen=True, kw_only=True)
class SlidingWindows:
    """Sliding windows along the last axes of an input; each attribute has one entry per axis.

    Attributes:
        axes: the tables of the positions in each window.
        kernel: the number of positions in a window.
        stride: the distance between two windows.
        padding: the number of positions before the input.
        dilation: the distance between two positions in a window.
    """

    axes: Sequence[AxisWindows]
    kernel: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]

    def margins(self, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """Return the padding before and after each axis that contains all windows."""
        return [
            (pad, max((len(axis.positions) - 1) * step + dilate * (kernel - 1) + 1 - pad - size, 0))
            for axis, kernel, step, pad, dilate, size in zip(
                self.axes, self.kernel, self.stride, self.padding, self.dilation, sizes, strict=True
            )
        ]

    def iterate_positions(self, padded: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
        """Yield each position in a window with the elements of all windows at this position."""
        first = padded.ndim - len(self.axes)
        for place in np.ndindex(*self.kernel):
            starts = [dilate * k for dilate, k in zip(self.dilation, place, strict=True)]
            steps = zip(starts, self.axes, self.stride, strict=True)
            ends = [start + (len(axis.positions) - 1) * step + 1 for start, axis, step in steps]
            yield (
                place,
                lax.slice(padded, [0] * first + starts, [*padded.shape[:first], *ends], [*[1] * first, *self.stride]),
            )


def sliding_windows(
    shape: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> SlidingWindows:
    """Return the sliding windows along the last axes of an input; `sliding_axes` describes the arguments."""
    axes = sliding_axes(shape, kernel_size, stride, padding, dilation, ceil_mode)
    return SlidingWindows(
        axes=axes, kernel=kernel_size, stride=stride or kernel_size, padding=padding, dilation=dilation
    )
