"""Functions that create, rearrange, copy and convert whole tensors, and join, split and pad them.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. With `apply_directly`, the arrays are NumPy's. `out` describes results that
the caller allocates: their shapes and element types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from diopi_impl.functional import Adapted, apply_directly
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.axes import check_axes, normalize_axes
from diopi_impl.jax_cpu.jit import Shortcut, adapt_by_compiling
from diopi_impl.jax_cpu.positions import prepare_on_host
from diopi_impl.jax_cpu.ranges import check_in_range
from diopi_impl.specs import OutSpec, ResultSpec
from diopi_proto.dtypes import category, half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, MemoryFormat
from lib_rt.dtypes import to_numpy


@vendor.implements("diopiCat")
def cat(tensors, dim):
    """Return the tensors joined along axis `dim`; empty vectors are skipped."""
    common = jnp.result_type(*tensors)
    joined = [tensor for tensor in tensors if tensor.shape != (0,)] or tensors[:1]
    return jnp.concatenate([tensor.astype(common) for tensor in joined], dim)


@vendor.implements("diopiStack")
def stack(tensors, dim):
    """Return the tensors stacked along a new axis `dim`."""
    return jnp.stack(tensors, dim)


@vendor.implements("diopiSplitWithSizes")
def split_with_sizes(input, splitSizes, dim):
    """Return parts of these sizes along axis `dim`."""
    check_axes(input, dim)
    if sum(splitSizes) != input.shape[dim] or min(splitSizes) < 0:
        raise ValueError(f"splitSizes {splitSizes} do not make up axis {dim} of shape {input.shape}")
    starts = np.cumsum((0, *splitSizes[:-1]))
    return [
        lax.dynamic_slice_in_dim(input, start, size, dim % input.ndim)
        for start, size in zip(starts, splitSizes, strict=True)
    ]


@vendor.implements("diopiTranspose")
def transpose(input, dim0, dim1):
    """Return the input with two axes swapped."""
    for dim in (dim0, dim1):
        check_axes(input, dim)
    return jnp.swapaxes(input, dim0, dim1) if input.ndim else input


def _permute_as_view(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """Return the adapted form of a permutation.

    If the last axis stays last, the adapted form copies a view of the input to the result, without a program.
    """

    def keeps_rows(arguments: Sequence[Any], out: Sequence[OutSpec]) -> bool:
        """Return whether the last axis stays last."""
        input, dims = arguments
        return bool(input.ndim == len(dims) > 0 and dims[-1] in (-1, input.ndim - 1))

    return Shortcut(apply_directly(prototype, np.transpose), adapt_by_compiling(prototype, function), keeps_rows)


@vendor.implements("diopiPermute", adapt=_permute_as_view)
def permute(input, dims):
    """Return the input with its axes in the order `dims`."""
    return jnp.transpose(input, dims)


@vendor.implements("diopiExpand")
def expand(input, *, out):
    """Return the input, broadcast to the shape of the result."""
    return jnp.broadcast_to(input, out.shape)


@vendor.implements("diopiFlip")
def flip(input, dims):
    """Return the input with the order of elements reversed along the axes."""
    return jnp.flip(input, normalize_axes(input, dims))


@vendor.implements("diopiRoll")
def roll(input, shifts, dims):
    """Return the input with elements shifted along axes, or in the flattened input; they wrap around."""
    if len(shifts) != (len(dims) or 1):
        raise ValueError(f"shifts {shifts} and dims {dims} differ in length")
    return jnp.roll(input, shifts, dims) if dims else jnp.roll(input, shifts[0])


@vendor.implements("diopiRepeat")
def repeat(input, repeats_size):
    """Return the input repeated as a whole along each axis, as by np.tile."""
    if len(repeats_size) < input.ndim or min(repeats_size, default=0) < 0:
        raise ValueError(f"repeats_size {repeats_size} does not fit an input of shape {input.shape}")
    return jnp.tile(input, repeats_size)


def _margin_sources(mode: str, before: int, after: int, length: int) -> NDArray[np.int64]:
    """Return, for each element of the padded axis, the index of the element of the input that it copies.

    Args:
        mode: The mode: reflect, replicate or circular.
        before: The number of elements that are added at the beginning, or removed if it is negative.
        after: The number of elements that are added at the end, or removed if it is negative.
        length: The number of elements of the axis.

    Returns:
        The indices.

    Raises:
        ValueError: the mode is unknown, or it does not permit such margins
    """
    if max(before, after) > {"reflect": length - 1, "circular": length}.get(mode, math.inf):
        raise ValueError(f"margins of {before} and {after} are too wide for mode {mode!r} and an axis of {length}")
    index = np.arange(-before, length + after)
    if mode == "reflect":
        folded = np.abs(index)
        return np.minimum(folded, 2 * (length - 1) - folded)
    if mode == "replicate":
        return np.clip(index, 0, length - 1)
    if mode == "circular":
        first, last = max(0, -before), length + min(0, after)
        if last <= first and index.size:
            raise ValueError(f"margins of {before} and {after} remove all elements of an axis of {length}")
        return first + (index - first) % (last - first)
    raise ValueError(f"mode is {mode!r}, expected constant, reflect, replicate or circular")


def _check_value(arguments: dict[str, Any]) -> None:
    """Raise ValueError if `value` is out of the range of the type of input."""
    check_in_range("value", arguments["value"] or 0.0, arguments["input"])


@vendor.implements("diopiPad", adapt=prepare_on_host(_check_value))
def pad(input, pad, mode, value):
    """Return the input with elements added at both ends of the last axes, or removed where `pad` is negative.

    New elements are a constant, or copies of elements by reflection, replication or wrap-around.
    """
    margins = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    if len(margins) > input.ndim:
        raise ValueError(f"pad {pad} has more than two entries per axis of shape {input.shape}")
    axes = range(input.ndim - len(margins), input.ndim)
    if any(input.shape[axis] + sum(margin) < 0 for axis, margin in zip(axes, margins, strict=True)):
        raise ValueError(f"pad is {pad}, which removes more elements than shape {input.shape} has")
    if mode == "constant":
        element = jnp.asarray(0 if value is None else value).astype(input.dtype)
        spread = [(0, 0, 0)] * axes.start + [(before, after, 0) for before, after in margins]
        return lax.pad(input, element, spread)
    if axes.start not in (1, 2) or not 1 <= len(margins) <= 3:
        raise ValueError(f"mode {mode!r} pads 1 to 3 axes after 1 or 2 others, pad is {pad} and input {input.shape}")
    for axis, margin in zip(axes, margins, strict=True):
        input = jnp.take(input, _margin_sources(mode, *margin, input.shape[axis]), axis)
    return input


@vendor.implements("diopiUnfold")
def unfold(input, dim, size, step):
    """Return windows of `size` elements along axis `dim`, every `step` elements; a new last axis has their elements."""
    row = jnp.moveaxis(jnp.atleast_1d(input), dim, 0)
    if not 0 <= size <= row.shape[0] or step < 1:
        raise ValueError(f"windows of {size} every {step} do not fit axis {dim} of shape {input.shape}")
    starts = np.arange(0, row.shape[0] - size + 1, step)
    windows = row[starts[:, np.newaxis] + np.arange(size)]  # (windows, size, …)
    windows = jnp.moveaxis(windows, 1, -1)
    return jnp.moveaxis(windows, 0, dim % input.ndim) if input.ndim else windows[0]


def _triangle(input: Array, diagonal: int, upper: bool) -> Array:
    """Return the elements on and above a diagonal, or on and below it unless `upper`, and 0 elsewhere."""
    if input.ndim < 2:
        raise ValueError(f"input has shape {input.shape}, expected at least 2 axes")
    rows, columns = input.shape[-2:]
    lower = np.tri(rows, columns, diagonal - upper, bool)
    return jnp.where(lower != upper, input, jnp.zeros_like(input))


@vendor.implements("diopiTril")
def tril(input, diagonal):
    """Return the elements on and below a diagonal, 0 elsewhere."""
    return _triangle(input, diagonal, upper=False)


@vendor.implements("diopiTriu")
def triu(input, diagonal):
    """Return the elements on and above a diagonal, 0 elsewhere."""
    return _triangle(input, diagonal, upper=True)


@vendor.implements("diopiMeshGrid")
def mesh_grid(inputs):
    """Return the coordinate arrays of a grid, as np.meshgrid with matrix indexing."""
    if any(tensor.ndim > 1 or tensor.dtype != inputs[0].dtype for tensor in inputs):
        raise ValueError(
            f"inputs have shapes {[tensor.shape for tensor in inputs]}, expected at most one axis and equal types"
        )
    return list(jnp.meshgrid(*map(jnp.ravel, inputs), indexing="ij"))


def _is_integer(spec: ResultSpec) -> bool:
    """Return whether a result has a Boolean or integer type."""
    return category(spec.dtype) < 2


def _compute_dtype(spec: ResultSpec) -> Any:
    """Return the type in which `arange` and `fill` compute: float64, or the integer type of the result."""
    return to_numpy(spec.dtype) if _is_integer(spec) else jnp.float64


def _convert_scalar(name: str, value: float, dtype: Dtype) -> bool | int | float:
    """Return a number converted to `dtype`, truncated for integer types.

    As in PyTorch, numbers out of the range of half precision become infinite, and unsigned types accept negative
    integers: uint8, for example, accepts −1 … −255 modulo 256.

    Args:
        name: the name of the argument, for the message.
        value: the number.
        dtype: the element type.

    Returns:
        The number as a Python number.

    Raises:
        ValueError: if the number is out of range.
    """
    if dtype is Dtype.bool:
        return bool(value)
    if category(dtype) == 1:
        low, high = (int(end) for end in (np.iinfo(to_numpy(dtype)).min, np.iinfo(to_numpy(dtype)).max))
        if not (low or (-high if isinstance(value, int) else 0)) <= value <= high:
            raise ValueError(f"{name} is {value}, out of the range of {dtype.name}")
        return int(value) % (high + 1) if low == 0 else int(value)
    if dtype not in half and np.isfinite(value) and abs(value) > float(np.finfo(to_numpy(dtype)).max):
        raise ValueError(f"{name} is {value}, out of the range of {dtype.name}")
    return float(value)


@vendor.implements("diopiArange")
def arange(start, end, step, *, out):
    """Return start + i · step; the numbers are truncated first for integers."""
    if not all(map(math.isfinite, (start, end, step))) or (end - start) * step < 0:
        raise ValueError(f"the numbers from {start} to {end} can't be listed in steps of {step}")
    if _is_integer(out):
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise ValueError(f"step is {step}, expected a number that is not 0")
    (length,) = out.shape
    return start + jnp.arange(length, dtype=_compute_dtype(out)) * step


@vendor.implements("diopiLinspace", adapt=apply_directly)
def linspace(start, end, steps, *, out):
    """Return `steps` equally spaced numbers from start to end."""
    if steps < 0:
        raise ValueError(f"steps is {steps}, expected at least 0")
    if not _is_integer(out):
        return np.linspace(start, end, steps, dtype=np.float64)
    first, last = (float(_convert_scalar(name, value, out.dtype)) for name, value in (("start", start), ("end", end)))
    step, number = (last - first) / max(steps - 1, 1), np.arange(float(steps))
    from_end = _fused_multiply_add(steps - 1 - number, -step, last)
    return np.trunc(np.where(number < max(steps // 2, 1), _fused_multiply_add(number, step, first), from_end))


def _fused_multiply_add(a: NDArray[np.float64], b: float, c: float) -> NDArray[np.float64]:
    """Return a · b + c rounded once, like the processor's FMA (Dekker, A floating-point technique, 1971)."""

    def halves(x: Any) -> tuple[Any, Any]:
        """Return two numbers of 26 bits that add up to x."""
        high = (2.0**27 + 1) * x
        high = high - (high - x)
        return high, x - high

    product = a * b
    (a1, a2), (b1, b2) = halves(a), halves(b)
    lost = a1 * b1 - product + a1 * b2 + a2 * b1 + a2 * b2  # the rounding error of the product
    total = product + c
    part = total - product
    return total + (lost + ((product - (total - part)) + (c - part)))


@vendor.implements("diopiFill")
def fill(value, *, out):
    """Return a tensor filled with `value`."""
    return jnp.full(out.shape, _convert_scalar("value", value, out.dtype), _compute_dtype(out))


@vendor.implements("diopiOnes")
def ones(size):
    """Return a tensor whose elements are 1."""
    return jnp.ones(size)


@vendor.implements("diopiZeros")
def zeros(size):
    """Return a tensor whose elements are 0."""
    return jnp.zeros(size)


@vendor.implements("diopiZeroInp")
def zero_(*, out):
    """Return zeros in the shape of the result."""
    return jnp.zeros(out.shape)


@vendor.implements("diopiCastDtype")
def cast_dtype(input):
    """Return the input; the adapter converts it to the element type of the result."""
    return input


def _broadcast(src: NDArray[Any], *, out: ResultSpec) -> NDArray[Any]:
    """Return the source, broadcast to the shape of the result."""
    return np.broadcast_to(src, out.shape)


def _copy_directly(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """Return the adapted form of a copy: if the element type does not change, it copies the elements directly."""

    def keeps_dtype(arguments: Sequence[Any], out: Sequence[OutSpec]) -> bool:
        """Return whether source and result have the same element type."""
        (src,), (dest,) = arguments, out
        assert isinstance(dest, ResultSpec)
        return bool(src.dtype == to_numpy(dest.dtype))

    return Shortcut(apply_directly(prototype, _broadcast), adapt_by_compiling(prototype, function), keeps_dtype)


@vendor.implements("diopiCopyInp", adapt=_copy_directly)
def copy_(src, *, out):
    """Return the source, broadcast to the shape of the result; the adapter converts the element type."""
    return jnp.broadcast_to(src, out.shape)


CHANNELS_LAST_RANK = {MemoryFormat.ChannelsLast1d: 3, MemoryFormat.ChannelsLast: 4, MemoryFormat.ChannelsLast3d: 5}
"""The rank that a tensor must have, by memory format; all other formats are possible for every rank."""


def _is_dense(array: NDArray[Any]) -> bool:
    """Return whether the elements are in memory without gaps or overlaps, in any order of axes."""
    strides = sorted((stride, length) for stride, length in zip(array.strides, array.shape, strict=True) if length != 1)
    step = array.itemsize
    for stride, length in strides:
        if stride != step:
            return False
        step *= length
    return True


def _memory_order(array: NDArray[Any], memory_format: MemoryFormat) -> list[int]:
    """Return the axes in the order of their strides in the result, the outermost first."""
    rank = CHANNELS_LAST_RANK.get(memory_format, array.ndim)
    if rank != array.ndim:
        raise ValueError(f"{memory_format.name} is for inputs of {rank} axes, input has shape {array.shape}")
    axes = list(range(array.ndim))
    if memory_format in CHANNELS_LAST_RANK:
        return [0, *axes[2:], 1]
    if memory_format is MemoryFormat.Preserve and _is_dense(array):
        return sorted(axes, key=lambda axis: -array.strides[axis])
    return axes


@vendor.implements("diopiContiguous", adapt=apply_directly)
def contiguous(input, memoryFormat):
    """Return the input with its elements in the order of the memory format."""
    order = _memory_order(input, memoryFormat)
    return np.ascontiguousarray(input.transpose(order)).transpose(np.argsort(order)) if input.ndim else input


PLAIN = 0
"""The only native layout of this device: the strided layout."""


@vendor.implements_raw("diopiNativeMemoryFormatCast")
def native_memory_format_cast(out, in_, format):
    """Write the input itself to the result handle; raise ValueError for an unknown format."""
    if format != PLAIN:
        raise ValueError(f"format is {format}, this device only knows {PLAIN}")
    out.value = in_


@vendor.implements("diopiGetNativeMemoryFormat", adapt=apply_directly)
def get_native_memory_format():
    """Return the number of the only native format."""
    return PLAIN


@vendor.implements("diopiTensorDestructionHook", adapt=apply_directly)
def tensor_destruction_hook():
    """Return an empty tuple, as there is nothing to do: this device stores no data about memory."""
    return ()
