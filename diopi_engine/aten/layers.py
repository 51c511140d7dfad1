"""Core ATen operators that are layers: convolution, pooling, normalization, interpolation.

Each function implements the ATen operator that its decorator names, for JAX arrays. Its parameters are those of the
operator: tensors have the shape (batch, channels, spatial axes …), and sizes have one number per spatial axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from diopi_engine.aten.operators import reduction_axes
from diopi_engine.aten.table import operator
from diopi_impl.jax_cpu.extremes import elementwise_maximum

Sizes = Sequence[int]
"""One number per spatial axis."""


@operator("convolution")
def convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
) -> Array:
    """Return the convolution, or the transposed convolution, of x with a kernel, plus the bias."""
    rank = len(stride)
    pads = [(pad, pad) for pad in padding]
    spread = [1] * rank
    if transposed:
        kernel, weight = weight.shape[2:], _transpose_kernel(weight, groups)
        reach = [spacing * (size - 1) for spacing, size in zip(dilation, kernel, strict=True)]
        pads = [
            (distance - pad, distance - pad + output_pad)
            for distance, pad, output_pad in zip(reach, padding, output_padding, strict=True)
        ]
        stride, spread = [1] * rank, list(stride)
    result = lax.conv_general_dilated(x, weight, stride, pads, spread, dilation, feature_group_count=groups)
    return result if bias is None else result + bias.reshape(-1, *[1] * rank)


def _transpose_kernel(weight: Array, groups: int) -> Array:
    """Return a transposed convolution's kernel (in, out/groups, sizes…) as a convolution's (out, in/groups, …)."""
    channels, outputs, *sizes = weight.shape
    parts = weight.reshape(groups, channels // groups, outputs, *sizes).swapaxes(1, 2)
    return jnp.flip(parts.reshape(groups * outputs, channels // groups, *sizes), tuple(range(2, weight.ndim)))


def _window_arguments(x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool) -> Any:
    """Return the sizes, strides, dilations and padding that `lax.reduce_window` needs for windows over x.

    Args:
        x: The array, whose last axes are those of the windows.
        kernel: The size of a window along each of these axes.
        stride: The distance between windows; empty for the size of a window.
        padding: The padding before and after the array.
        dilation: The distance between the elements of a window.
        ceil_mode: Whether a last window may extend beyond the padded array.
    """
    rank, lead = len(kernel), x.ndim - len(kernel)
    padding, dilation = _per_axis(padding, rank), _per_axis(dilation, rank)
    stride = _per_axis(stride or kernel, rank)
    pads = []
    for size, k, step, pad, spacing in zip(x.shape[lead:], kernel, stride, padding, dilation, strict=True):
        remainder = size + 2 * pad - spacing * (k - 1) - 1
        count = -(-remainder // step) if ceil_mode else remainder // step
        count -= ceil_mode and count * step >= size + pad  # no window begins in the padding after the end
        pads.append((pad, max(count * step - remainder, 0) + pad))
    return (1,) * lead + tuple(kernel), (1,) * lead + stride, (1,) * lead + dilation, [(0, 0)] * lead + pads


def _per_axis(sizes: Sizes, rank: int) -> tuple[int, ...]:
    """Return one size per axis; a single size applies to all axes."""
    return tuple(sizes) * rank if len(sizes) == 1 else tuple(sizes)


@operator("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(
    x: Array, kernel: Sizes, stride: Sizes = (), padding: Sizes = (0,), dilation: Sizes = (1,), ceil_mode: bool = False
) -> tuple[Array, None]:
    """Return the maximum of each window, and None instead of the positions of the maxima."""
    kernel = _per_axis(kernel, x.ndim - 2)
    sizes, strides, dilations, pads = _window_arguments(x, kernel, stride, padding, dilation, ceil_mode)
    least = -jnp.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    return lax.reduce_window(
        x, jnp.asarray(least, x.dtype), elementwise_maximum, sizes, strides, pads, None, dilations
    ), None


@operator("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    x: Array,
    kernel: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Return the mean of each window; padding counts as elements unless `count_include_pad` is False."""
    kernel = _per_axis(kernel, x.ndim - 2)
    sizes, strides, _, pads = _window_arguments(x, kernel, stride, padding, (1,), ceil_mode)
    sums = lax.reduce_window(x, jnp.asarray(0, x.dtype), lax.add, sizes, strides, pads)
    if divisor_override:
        return sums / divisor_override
    counted = _per_axis(padding, len(kernel)) if count_include_pad else (0,) * len(kernel)
    spatial = x.shape[x.ndim - len(kernel) :]
    ones = np.pad(np.ones(spatial, x.dtype), [(pad, pad) for pad in counted], constant_values=1)
    lead = x.ndim - len(kernel)
    beyond = [(low - pad, high - pad) for (low, high), pad in zip(pads[lead:], counted, strict=True)]
    counts = lax.reduce_window(ones, np.asarray(0, x.dtype), lax.add, sizes[lead:], strides[lead:], beyond)
    return sums / counts


@operator("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def adaptive_avg_pool(x: Array, output_size: Sizes) -> Array:
    """Return the means of `output_size` parts of each spatial axis; the parts may overlap by an element."""
    return _multiply_axes(
        x,
        [
            _averaging_matrix(input_size, result_size)
            for input_size, result_size in zip(x.shape[-len(output_size) :], output_size, strict=True)
        ],
    )


def _averaging_matrix(input_size: int, result_size: int) -> np.ndarray[Any, Any]:
    """Return the matrix (result_size, input_size) that averages `result_size` parts of an axis."""
    matrix = np.zeros((result_size, input_size))
    for n in range(result_size):
        start, end = n * input_size // result_size, -(-(n + 1) * input_size // result_size)
        matrix[n, start:end] = 1 / (end - start)
    return matrix


def _multiply_axes(x: Array, matrices: Sequence[np.ndarray[Any, Any]]) -> Array:
    """Return x with its last axes multiplied by matrices of shape (result, axis), one matrix per axis."""
    for axis, matrix in enumerate(matrices, x.ndim - len(matrices)):
        x = jnp.moveaxis(jnp.tensordot(x, jnp.asarray(matrix, x.dtype), ((axis,), (1,))), -1, axis)
    return x


@operator("upsample_bilinear2d.vec", "upsample_linear1d.vec", "upsample_trilinear3d.vec")
def upsample_linear(x: Array, output_size: Sizes | None, align_corners: bool, scales: Sequence[float] | None) -> Array:
    """Return x, resized by linear interpolation along each spatial axis."""
    sizes = _output_sizes(x, output_size, scales)
    steps = scales if scales and output_size is None else [None] * len(sizes)
    axes_of = zip(x.shape[2:], sizes, steps, strict=True)
    return _multiply_axes(
        x,
        [
            _interpolation_matrix(input_size, result_size, align_corners, scale)
            for input_size, result_size, scale in axes_of
        ],
    )


def _output_sizes(x: Array, output_size: Sizes | None, scales: Sequence[float] | None) -> Sizes:
    """Return the output sizes: those that the call passes, or the input sizes times the scales."""
    if output_size is not None:
        return output_size
    return [int(size * scale) for size, scale in zip(x.shape[2:], scales or (), strict=True)]


def _interpolation_matrix(
    input_size: int, result_size: int, align_corners: bool, scale: float | None
) -> np.ndarray[Any, Any]:
    """Return the matrix (result_size, input_size) that interpolates an axis linearly.

    Args:
        input_size: The number of elements of the axis.
        result_size: The number of elements of the result.
        align_corners: Whether the first and last elements of both axes coincide.
        scale: The number of result elements per element; None for result_size / input_size. Not used if align_corners
            is true.
    """
    positions = np.arange(result_size, dtype=np.float64)
    if align_corners:
        positions *= (input_size - 1) / max(result_size - 1, 1)
    else:
        positions = np.maximum((positions + 0.5) * (1 / scale if scale else input_size / result_size) - 0.5, 0)
    lower = np.minimum(positions.astype(int), input_size - 1)
    matrix, rows, part = np.zeros((result_size, input_size)), np.arange(result_size), positions - lower
    np.add.at(matrix, (rows, lower), 1 - part)
    np.add.at(matrix, (rows, np.minimum(lower + 1, input_size - 1)), part)
    return matrix


@operator("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def upsample_nearest(x: Array, output_size: Sizes | None, scales: Sequence[float] | None) -> Array:
    """Return x, resized along each spatial axis: element n of the result is element ⌊n · step⌋ of x.

    The step is 1 / scale if scales are passed, otherwise the old size / the new size.
    """
    sizes = _output_sizes(x, output_size, scales)
    for axis, (input_size, result_size) in enumerate(zip(x.shape[2:], sizes, strict=True), 2):
        step = 1 / scales[axis - 2] if scales and output_size is None else input_size / result_size
        positions = np.minimum(
            (np.arange(result_size, dtype=np.float32) * np.float32(step)).astype(int), input_size - 1
        )
        x = jnp.take(x, positions, axis)
    return x


@operator("_native_batch_norm_legit_no_training")
def batch_norm(
    x: Array, weight: Array | None, bias: Array | None, mean: Array, variance: Array, momentum: float, eps: float
) -> tuple[Array, None, None]:
    """Return x, normalized by the running mean and variance of each channel; nothing is saved for a gradient."""
    shape = (1, -1, *[1] * (x.ndim - 2))
    scale = (1 if weight is None else weight) / jnp.sqrt(variance + eps)
    shift = (0 if bias is None else bias) - mean * scale
    return x * scale.reshape(shape) + shift.reshape(shape), None, None


@operator("native_layer_norm")
def layer_norm(
    x: Array, shape: Sizes, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return x, normalized over its last axes, with the mean and the inverse standard deviation."""
    normal, mean, scale = _normalize(x, range(-len(shape), 0), eps)
    return _scale_and_shift(normal, weight, bias), mean, scale


@operator("native_group_norm")
def group_norm(
    x: Array, weight: Array | None, bias: Array | None, n: Any, channels: int, size: Any, groups: int, eps: float
) -> tuple[Array, None, None]:
    """Return x, normalized over the elements of each group of channels; nothing is saved for a gradient."""
    parts = x.reshape(x.shape[0], groups, channels // groups, *x.shape[2:])
    normal = _normalize(parts, range(2, parts.ndim), eps)[0].reshape(x.shape)
    shape = (1, -1, *[1] * (x.ndim - 2))
    return (
        _scale_and_shift(
            normal, *(None if parameter is None else parameter.reshape(shape) for parameter in (weight, bias))
        ),
        None,
        None,
    )


@operator("_native_batch_norm_legit.no_stats")
def instance_norm(
    x: Array, weight: Array | None, bias: Array | None, training: bool, momentum: float, eps: float
) -> tuple[Array, None, None]:
    """Return x, normalized over the batch and the spatial axes of each channel; nothing is saved for a gradient.

    PyTorch's instance norm calls this operator with the channels of all samples as channels of one sample.
    """
    normal = _normalize(x, [0, *range(2, x.ndim)], eps)[0]
    shape = (1, -1, *[1] * (x.ndim - 2))
    return (
        _scale_and_shift(
            normal, *(None if parameter is None else parameter.reshape(shape) for parameter in (weight, bias))
        ),
        None,
        None,
    )


def _normalize(x: Array, dims: Sequence[int], eps: float) -> tuple[Array, Array, Array]:
    """Return x normalized along `dims`, its mean and 1 / √(variance + eps). Half precision is computed in float32."""
    x = x.astype(jnp.float32) if x.dtype in (jnp.float16, jnp.bfloat16) else x
    mean = jnp.mean(x, reduction_axes(list(dims)), keepdims=True)
    scale = lax.rsqrt(jnp.var(x, reduction_axes(list(dims)), keepdims=True) + eps)
    return (x - mean) * scale, mean, scale


def _scale_and_shift(x: Array, weight: Array | None, bias: Array | None) -> Array:
    """Return x · weight + bias; None stands for weight 1 or bias 0."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias
