"""Functions that create, rearrange, convert and copy tensors.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import category
from diopi_proto.types import Dtype, MemoryFormat
from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.conversion import convert, reference_dtype
from diopi_test.oracle.reference.sums import scale_sum_terms

Array = NDArray[Any]


@reference("diopiCat")
def cat(tensors, dim):
    """Return the tensors joined along axis `dim`; empty vectors are skipped."""
    joined = [tensor for tensor in tensors if tensor.shape != (0,)] or tensors[:1]
    common = np.result_type(*tensors)
    return np.concatenate([tensor.astype(common) for tensor in joined], dim)


@reference("diopiStack")
def stack(tensors, dim):
    """Return the tensors stacked along a new axis `dim`."""
    return np.stack(tensors, dim)


@reference("diopiSplitWithSizes")
def split_with_sizes(input, splitSizes, dim):
    """Return parts of these sizes along axis `dim`."""
    return np.split(input, np.cumsum(splitSizes)[:-1], dim)


@reference("diopiTranspose")
def transpose(input, dim0, dim1):
    """Return the input with two axes swapped."""
    return np.swapaxes(input, dim0, dim1) if input.ndim else input


@reference("diopiPermute")
def permute(input, dims):
    """Return the input with its axes in the order `dims`."""
    return np.transpose(input, dims)


@reference("diopiExpand")
def expand(input, *, out):
    """Return the input broadcast to the shape of the result."""
    return np.broadcast_to(input, out.shape or ())


@reference("diopiFlip")
def flip(input, dims):
    """Return the input with the order of elements reversed along the axes."""
    return np.flip(input, dims) if input.ndim else input


@reference("diopiRoll")
def roll(input, shifts, dims):
    """Return the input with elements shifted along axes, or in the flattened input; they wrap around."""
    return np.roll(input, shifts, dims) if dims else np.roll(input, shifts[0])


@reference("diopiRepeat")
def repeat(input, repeats_size):
    """Return the input repeated as a whole along each axis, as np.tile does."""
    return np.tile(input, repeats_size)


def _crop(input: Array, margins: Array) -> Array:
    """Return the input without `margins` = (before, after) elements of each axis."""
    return input[tuple(slice(before, n - after) for n, (before, after) in zip(input.shape, margins, strict=True))]


@reference("diopiPad")
def pad(input, pad, mode, value):
    """Return the input with elements added at both ends of the last axes.

    They are a constant, or copies by reflection, replication or wrap-around. `pad` has the numbers of elements before
    and after each axis, the last axis first. Negative numbers remove elements.
    """
    margins = np.zeros((input.ndim, 2), int)
    margins[input.ndim - len(pad) // 2 :] = np.reshape(pad, (-1, 2))[::-1]
    added, cut = np.maximum(margins, 0), np.maximum(-margins, 0)
    if (cut.sum(1) > input.shape).any():
        raise ValueError(
            f"pad is {pad} for shape {input.shape}, expected to remove at most as many elements as an axis has"
        )
    available = np.maximum(np.array(input.shape)[:, np.newaxis] - (mode == "reflect"), 0)  # a batch may be empty
    if mode in ("reflect", "circular") and (added > available).any():
        raise ValueError(
            f"pad is {pad} for shape {input.shape}, expected at most as many elements as {mode} padding can copy"
        )
    if mode == "constant":
        element = np.array(0 if value is None else value).astype(input.dtype)
        return _crop(np.pad(input, added, constant_values=element), cut)
    if mode == "circular":
        return np.pad(_crop(input, cut), added, "wrap")
    return _crop(np.pad(input, added, "edge" if mode == "replicate" else "reflect"), cut)


def _window_indices(length: int, size: int, step: int) -> Array:
    """Return the indices of the elements in each window of an axis: (windows, size)."""
    if size > length:
        raise ValueError(f"size is {size}, expected at most {length}, the length of the axis")
    starts = np.arange(0, length - size + 1, step)
    return starts[:, np.newaxis] + np.arange(size)


@reference("diopiUnfold")
def unfold(input, dim, size, step):
    """Return windows of `size` elements along axis `dim`, every `step` elements; a new last axis has their elements."""
    if input.ndim == 0:
        return input[np.newaxis][_window_indices(1, size, step)[0]]
    rows = np.moveaxis(input, dim, -1)[..., _window_indices(input.shape[dim], size, step)]
    return np.moveaxis(rows, -2, dim % input.ndim)


def _add_windows(rows: Array, windows: Array, length: int) -> Array:
    """Return the adjoint of taking windows: add windows (…, windows, size) to an axis (…, length)."""
    total = np.zeros_like(rows, shape=(*rows.shape[:-2], length))
    for number, window in enumerate(windows):
        total[..., window] += rows[..., number, :]
    return total


@reference("diopiUnfoldBackward")
def unfold_backward(grad_output, input_sizes, dim, size, step):
    """Return zeros with each window of grad_output added to its place."""
    if not input_sizes:
        _window_indices(1, size, step)  # raises ValueError if the window does not fit
        return np.sum(grad_output)
    length = input_sizes[dim]
    rows, windows = np.moveaxis(grad_output, dim % len(input_sizes), -2), _window_indices(length, size, step)
    if rows.shape[-2:] != windows.shape:
        raise ValueError(f"grad_output has (windows, elements) {rows.shape[-2:]}, expected {windows.shape}")
    counts = np.maximum(_add_windows(np.ones(windows.shape), windows, length), 1)  # n, or 1 where n is 0
    # the rounding errors of n addends of similar size add up like a random walk
    terms = scale_sum_terms(_add_windows(np.abs(rows), windows, length) / np.sqrt(counts))
    return WithTerms(np.moveaxis(_add_windows(rows, windows, length), -1, dim), np.moveaxis(terms, -1, dim))


def _diagonal_offsets(input: Array) -> Array:
    """Return j − i for each element (i, j) of a matrix."""
    rows, columns = input.shape[-2:]
    return np.arange(columns) - np.arange(rows)[:, np.newaxis]


@reference("diopiTril")
def tril(input, diagonal):
    """Return the elements on and below a diagonal, 0 elsewhere."""
    return np.where(_diagonal_offsets(input) <= diagonal, input, np.zeros_like(input))


@reference("diopiTriu")
def triu(input, diagonal):
    """Return the elements on and above a diagonal, 0 elsewhere."""
    return np.where(_diagonal_offsets(input) >= diagonal, input, np.zeros_like(input))


@reference("diopiMeshGrid")
def mesh_grid(inputs):
    """Return the coordinate arrays of a grid, as np.meshgrid with matrix indexing."""
    return list(np.meshgrid(*inputs, indexing="ij"))


def _dtype(out: ResultOverride) -> Dtype:
    """Return the element type of the result; float32 by default."""
    return Dtype.float32 if out.dtype is None else out.dtype


def _is_integer(out: ResultOverride) -> bool:
    """Return whether the result has a Boolean or integer type."""
    return category(_dtype(out)) < 2


@reference("diopiArange")
def arange(start, end, step, *, out):
    """Return start + i · step for as many i as the result has elements; for integers, all arguments are truncated."""
    if _is_integer(out):
        start, end, step = int(start), int(end), int(step)
    steps = np.arange(*(out.shape or ())) * step
    # start and i · step may cancel
    return WithTerms(start + steps, 0.0, abs(start) + np.abs(steps))


@reference("diopiLinspace")
def linspace(start, end, steps, *, out):
    """Return `steps` equally spaced numbers from start to end."""
    if _is_integer(out):
        return _integer_linspace(int(start), int(end), steps)
    distances = np.arange(steps) * (end - start) / max(steps - 1, 1)
    # start and i · step may cancel
    return WithTerms(start + distances, 0.0, abs(start) + np.abs(distances))


def _integer_linspace(start: int, end: int, steps: int) -> PartlySpecified:
    """Return integers computed in float64 from the nearer end.

    Elements that depend on whether start + i · step is rounded once or twice are unspecified.
    """
    step = (float(end) - float(start)) / max(steps - 1, 1)
    nearer = [(start, i, step) if i < max(steps // 2, 1) else (end, steps - 1 - i, -step) for i in range(steps)]
    rounded_once = [
        int(float(Fraction(float(start_or_end)) + i * Fraction(signed_step))) for start_or_end, i, signed_step in nearer
    ]
    rounded_twice = [int(start_or_end + i * signed_step) for start_or_end, i, signed_step in nearer]
    return PartlySpecified(np.array(rounded_once, np.int64), np.equal(rounded_once, rounded_twice))


@reference("diopiFill")
def fill(value, *, out):
    """Return a tensor filled with `value`."""
    return np.full(out.shape or (), value).astype(reference_dtype(_dtype(out)))


@reference("diopiOnes")
def ones(size):
    """Return an array whose elements are 1."""
    return np.ones(size)


@reference("diopiZeros")
def zeros(size):
    """Return zeros."""
    return np.zeros(size)


@reference("diopiZeroInp")
def zero_(*, out):
    """Return zeros in the shape of the result."""
    return np.zeros(out.shape or ())


@reference("diopiCastDtype")
def cast_dtype(input, *, out):
    """Return the input converted to the element type of the result."""
    return convert(input, _dtype(out))


@reference("diopiCopyInp")
def copy_(src, *, out):
    """Return the source broadcast and converted to the shape and type of the result."""
    return convert(np.broadcast_to(src, out.shape or ()), _dtype(out))


CHANNELS_LAST_RANKS: dict[int, int] = {
    MemoryFormat.ChannelsLast1d: 3,
    MemoryFormat.ChannelsLast: 4,
    MemoryFormat.ChannelsLast3d: 5,
}
"""The number of axes that each channels-last memory format requires."""


@reference("diopiContiguous")
def contiguous(input, memoryFormat):
    """Return the input; raise ValueError if its rank does not fit the memory format."""
    if input.ndim != CHANNELS_LAST_RANKS.get(memoryFormat, input.ndim):
        raise ValueError(
            f"input has {input.ndim} axes, expected {CHANNELS_LAST_RANKS[memoryFormat]} for memoryFormat {memoryFormat}"
        )
    return input


@reference("diopiNativeMemoryFormatCast")
def native_memory_format_cast(in_):
    """Return the input: only its layout may change."""
    return in_


@reference("diopiGetNativeMemoryFormat")
def get_native_memory_format():
    """Return an unspecified number, which the device chooses."""
    return PartlySpecified(0, False)  # the format is a number that the device chooses


@reference("diopiTensorDestructionHook")
def tensor_destruction_hook():
    """Return an empty tuple, because the function has no results."""
    return ()
