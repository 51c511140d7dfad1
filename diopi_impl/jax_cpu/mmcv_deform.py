"""MMCV's deformable convolutions and multi-scale deformable attention, forward and backward.

Samples are computed for one kernel position or sampling point at a time, and recomputed for the gradient. A call needs
memory for a few arrays of the input's size only.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.sampling import sample_bilinear, zero_padded_cells

Pair = tuple[int, int]
"""Values along H and along W."""


def _check_step(batch: int, im2col_step: int) -> None:
    """Raise ValueError unless steps of im2col_step samples divide the batch evenly."""
    if im2col_step < 1 or batch % min(batch or 1, im2col_step):
        raise ValueError(f"im2col_step is {im2col_step}, expected a divisor of the {batch} samples, or a larger number")


@final
@dataclass(frozen=True, kw_only=True)
class _DeformableConvolution:
    """A deformable convolution with fixed attributes.

    Attributes:
        kernel: the sizes of the kernel along H and W.
        stride: the distances between the positions of the kernel.
        padding: the number of zeros at each end of the axes.
        dilation: the distances between the elements of the kernel.
        groups: the number of groups of channels that are convolved separately.
        deform_groups: the number of groups of input channels that share offsets.
    """

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    deform_groups: int

    def check(self, input: Array, weight: tuple[int, ...], offset: Array, mask: Array | None) -> None:
        """Raise ValueError unless the tensors fit each other and the attributes."""
        if min(*self.kernel, *self.stride, *self.dilation, self.groups, self.deform_groups) < 1:
            raise ValueError(f"sizes, strides, dilations and numbers of groups must be positive, got {self}")
        b, c, *lengths = input.shape
        axes = zip(lengths, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        size = tuple((length + 2 * pad - dilate * (k - 1) - 1) // step + 1 for length, k, step, pad, dilate in axes)
        shifts, channels = 2 * self.deform_groups * self.kernel[0] * self.kernel[1], weight[1] * self.groups
        if min(b, *size) < 1:
            raise ValueError(f"input has shape {input.shape}, which leaves a result of size {size}")
        if c != channels or weight[0] % self.groups or c % self.deform_groups:
            raise ValueError(f"a weight of shape {weight} does not fit {c} channels of input in {self.groups} groups")
        if offset.shape != (b, shifts, *size):
            raise ValueError(f"offset has shape {offset.shape}, expected {(b, shifts, *size)}")
        if mask is not None and mask.shape != (b, shifts // 2, *size):
            raise ValueError(f"mask has shape {mask.shape}, expected {(b, shifts // 2, *size)}")

    def __call__(self, input: Array, weight: Array, offset: Array, mask: Array | None = None) -> Array:
        """Return the convolution, accumulated over the kernel positions."""
        b, c, h, w = input.shape
        in_group, size = c // self.deform_groups, offset.shape[2:]
        rows = input.reshape(b, self.deform_groups, in_group, h * w).swapaxes(2, 3).reshape(-1, in_group)
        first = h * w * jnp.arange(b * self.deform_groups).reshape(b, self.deform_groups, 1, 1)
        steps = [jnp.arange(size[k]) * self.stride[k] - self.padding[k] for k in (0, 1)]

        @jax.checkpoint
        def add(total: Array, tap_inputs: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
            """Add the products for a kernel position to the result."""
            tap, shift, factor, matrix = tap_inputs
            y = zero_padded_cells(steps[0][:, jnp.newaxis] + tap[0] + shift[:, :, 0], h)
            x = zero_padded_cells(steps[1] + tap[1] + shift[:, :, 1], w)
            samples = sample_bilinear(rows, lambda row, column: first + row * w + column, y, x)
            columns = jnp.moveaxis(samples * factor[..., jnp.newaxis], -1, 2)
            columns = columns.reshape(b, self.groups, c // self.groups, size[0] * size[1])
            return total + jnp.einsum("goc,bgcp->bgop", matrix, columns, precision="highest"), None

        outputs = len(weight) // self.groups
        zeros = jnp.zeros((b, self.groups, outputs, size[0] * size[1]), input.dtype)
        return lax.scan(add, zeros, self._per_tap(weight, offset, mask))[0].reshape(b, len(weight), *size)

    def _per_tap(self, weight: Array, offset: Array, mask: Array | None) -> tuple[Array, Array, Array, Array]:
        """Return, for each kernel position, the position, the samples' shifts and factors, and the weight matrices."""
        taps, b, size = self.kernel[0] * self.kernel[1], len(offset), offset.shape[2:]
        factors = jnp.ones((b, offset.shape[1] // 2, *size), offset.dtype) if mask is None else mask
        places = np.indices(self.kernel).reshape(2, taps).T * self.dilation
        shifts = offset.reshape(b, self.deform_groups, taps, 2, *size)
        tap_factors = factors.reshape(b, self.deform_groups, taps, *size)
        matrices = weight.reshape(self.groups, len(weight) // self.groups, weight.shape[1], taps)
        return (
            jnp.asarray(places),
            jnp.moveaxis(shifts, 2, 0),
            jnp.moveaxis(tap_factors, 2, 0),
            jnp.moveaxis(matrices, 3, 0),
        )


def _gradients(function: Callable[..., Array], grad: Array, *primals: Array) -> tuple[Array, ...]:
    """Return the gradients of the arguments of `function` for the gradient of its result."""
    gradients: tuple[Array, ...] = jax.vjp(function, *primals)[1](grad)
    return gradients


@vendor.implements("diopiDeformConvMmcv")
def deform_conv(
    input, weight, offset, kW, kH, dW, dH, padW, padH, dilationW, dilationH, groups, deform_groups, im2col_step
):
    """Return the deformable convolution (Dai et al., 2017)."""
    _check_step(len(input), im2col_step)
    convolution = _DeformableConvolution(
        kernel=(kH, kW),
        stride=(dH, dW),
        padding=(padH, padW),
        dilation=(dilationH, dilationW),
        groups=groups,
        deform_groups=deform_groups,
    )
    convolution.check(input, weight.shape, offset, None)
    return convolution(input, weight, offset)


@vendor.implements("diopiDeformConvBackwardParametersMmcv")
def deform_conv_backward_parameters(
    gradOutput,
    gradWeight,
    input,
    offset,
    kW,
    kH,
    dW,
    dH,
    padW,
    padH,
    dilationW,
    dilationH,
    groups,
    deform_groups,
    im2col_step,
    scale,
):
    """Return the gradient of the weight times `scale`."""
    _check_step(len(input), im2col_step)
    convolution = _DeformableConvolution(
        kernel=(kH, kW),
        stride=(dH, dW),
        padding=(padH, padW),
        dilation=(dilationH, dilationW),
        groups=groups,
        deform_groups=deform_groups,
    )
    convolution.check(input, gradWeight.shape, offset, None)
    (gradient,) = _gradients(lambda kernel: convolution(input, kernel, offset), gradOutput, gradWeight)
    return scale * gradient


@vendor.implements("diopiModulatedDeformConvMmcv")
def modulated_deform_conv(
    input,
    weight,
    bias,
    offset,
    mask,
    kernel_h,
    kernel_w,
    stride_h,
    stride_w,
    pad_h,
    pad_w,
    dilation_h,
    dilation_w,
    group,
    deformable_group,
):
    """Return the modulated deformable convolution (Zhu et al., 2018) plus the bias."""
    convolution = _DeformableConvolution(
        kernel=(kernel_h, kernel_w),
        stride=(stride_h, stride_w),
        padding=(pad_h, pad_w),
        dilation=(dilation_h, dilation_w),
        groups=group,
        deform_groups=deformable_group,
    )
    convolution.check(input, weight.shape, offset, mask)
    result = convolution(input, weight, offset, mask)
    return result if bias is None else result + bias[:, jnp.newaxis, jnp.newaxis]


@vendor.implements("diopiModulatedDeformConvBackwardMmcv")
def modulated_deform_conv_backward(
    grad_bias,
    input,
    weight,
    offset,
    mask,
    grad_output,
    kernel_h,
    kernel_w,
    stride_h,
    stride_w,
    pad_h,
    pad_w,
    dilation_h,
    dilation_w,
    group,
    deformable_group,
    with_bias,
):
    """Return the gradients of input, weight, bias, offset and mask."""
    convolution = _DeformableConvolution(
        kernel=(kernel_h, kernel_w),
        stride=(stride_h, stride_w),
        padding=(pad_h, pad_w),
        dilation=(dilation_h, dilation_w),
        groups=group,
        deform_groups=deformable_group,
    )
    convolution.check(input, weight.shape, offset, mask)
    grad_image, grad_kernel, grad_shifts, grad_factors = _gradients(
        convolution, grad_output, input, weight, offset, mask
    )
    return grad_image, grad_kernel, grad_output.sum((0, 2, 3)) if with_bias else grad_bias, grad_shifts, grad_factors


def _deformable_attention(value: Array, locations: Array, weights: Array, shapes: Array, starts: Array) -> Array:
    """Return the weighted sums of samples of all levels and points: (B, Q, M, D).

    Args:
        value: the features of all levels, (B, cells, M, D), for M heads.
        locations: the points, as x and y from 0 to 1, (B, Q, M, levels, points, 2).
        weights: the weights of the samples, (B, Q, M, levels, points).
        shapes: the height and width of each level, (levels, 2).
        starts: the number of cells before each level, (levels).
    """
    b, s, heads, d = value.shape
    rows = value.reshape(b * s * heads, d)
    image, head = jnp.arange(b)[:, jnp.newaxis, jnp.newaxis], jnp.arange(heads)

    @jax.checkpoint
    def add(total: Array, point_inputs: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        """Add the samples of a point on a level to the result."""
        location, weight, (h, w), start = point_inputs

        def place(row: Array, column: Array) -> Array:
            """Return the row of a cell of the level."""
            return ((image * s + start) + row * w + column) * heads + head

        y = zero_padded_cells(location[..., 1] * h - 0.5, h)
        x = zero_padded_cells(location[..., 0] * w - 0.5, w)
        return total + weight[..., jnp.newaxis] * sample_bilinear(rows, place, y, x), None

    levels, points = weights.shape[3:]
    places = jnp.moveaxis(locations, (3, 4), (0, 1)).reshape(levels * points, b, -1, heads, 2)
    factors = jnp.moveaxis(weights, (3, 4), (0, 1)).reshape(levels * points, b, -1, heads)
    xs = places, factors, jnp.repeat(shapes, points, 0), jnp.repeat(starts, points)
    return lax.scan(add, jnp.zeros((*weights.shape[:3], d), value.dtype), xs)[0]


@vendor.implements("diopiMsDeformAttnMmcv")
def ms_deform_attn(value, spatial_shapes, level_start_index, sampling_loc, attn_weight, im2col_step):
    """Return the weighted sum of bilinear samples on all levels (Zhu et al., "Deformable DETR")."""
    _check_step(len(value), im2col_step)
    b, q, heads, *_ = attn_weight.shape
    if not attn_weight.size:
        return jnp.zeros((b, q, heads * value.shape[3]), value.dtype)
    summed = _deformable_attention(value, sampling_loc, attn_weight, spatial_shapes, level_start_index)
    return summed.reshape(b, q, heads * value.shape[3])
