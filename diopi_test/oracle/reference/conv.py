"""Convolutions over two and three spatial axes, transposed convolutions, their gradients, and their unrolled form.

Every function here sums products of elements of three arrays: an image x[n, j, p], a kernel w[c, j, i], and the result
y[n, c, o] of the kernel at each position o. The indices are n for the sample, j for the input channel, c for the output
channel, p for the image element, i for the kernel element and o for the position. At position o, kernel element i is
multiplied by the image element p = o · stride + i · dilation − padding. A convolution computes y from x and w. A
transposed convolution computes x from y and w. The gradient of the weight computes w from x and y.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep learning", 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, overridable, reference
from diopi_test.oracle.reference.products import add_rounded, sum_products
from diopi_test.oracle.reference.sums import scale_sum_terms, sum_terms

Array = NDArray[Any]
Sizes = Sequence[int]
"""One number per spatial axis, or the shape of a tensor."""


@final
@dataclass(frozen=True, kw_only=True)
class SlidingKernel:
    """The geometry of a kernel that slides over an image. Each `Sizes` has one number per spatial axis.

    The batch axis of images and results may be absent.

    Attributes:
        image: the size of the image without padding.
        kernel: the size of the kernel.
        positions: the number of positions of the kernel.
        stride: the distance between positions.
        padding: the number of elements that are added at each end.
        dilation: the distance between the elements of the kernel.
        groups: the number of groups of channels.
        margin: the value of the padding.
    """

    image: Sizes
    kernel: Sizes
    positions: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int = 1
    margin: float = 0.0

    @overridable
    def result(self, x: Array, w: Array) -> Array:
        """Return y[n, c, o] = Σ w[c, j, i] · x[n, j, p] over j and i."""
        sums = self._kernels(w) @ self._columns(self.windows(x))
        return self._join_groups(sums.reshape(*sums.shape[:-1], *self.positions))

    @overridable
    def image_of(self, y: Array, w: Array) -> Array:
        """Return x[n, j, p] = Σ w[c, j, i] · y[n, c, o] over c and all pairs of o and i that belong to p."""
        columns = self._kernels(w).mT @ self._rows(y)
        windows = columns.reshape(*columns.shape[:-2], w.shape[1], *self.kernel, *self.positions)
        return self._join_groups(self.add_windows(windows))

    def kernel_of(self, x: Array, y: Array) -> Array:
        """Return w[c, j, i] = Σ y[n, c, o] · x[n, j, p] over n and o."""
        windows = self.windows(x)
        kernels = _concatenate_columns(self._rows(y)) @ _concatenate_columns(self._columns(windows)).mT
        groups, of_group, _ = kernels.shape
        channels = windows.shape[-2 * len(self.kernel) - 1]
        return kernels.reshape(groups * of_group, channels, *self.kernel)

    def windows(self, x: Array) -> Array:
        """Return the image under the kernel at each position, (…, groups, channels, *kernel, *positions)."""
        rank = len(self.kernel)
        spatial = tuple(range(-rank, 0))
        margins = [(0, 0)] * (x.ndim - rank) + [(size, size) for size in self.padding]
        padded = np.pad(x, margins, constant_values=self.margin)
        reach = [(size - 1) * step + 1 for size, step in zip(self.kernel, self.dilation, strict=True)]
        windows = sliding_window_view(padded, reach, spatial)
        starts = [slice(0, count * step, step) for count, step in zip(self.positions, self.stride, strict=True)]
        window_slices: tuple[Any, ...] = (..., *starts, *(slice(None, None, step) for step in self.dilation))
        return self._split_groups(np.moveaxis(windows[window_slices], spatial, range(-2 * rank, -rank)), 2 * rank)

    def add_windows(self, windows: Array) -> Array:
        """Apply the adjoint of `windows`: add every element to the image element that `windows` copies it from."""
        padded_sizes = [size + 2 * pad for size, pad in zip(self.image, self.padding, strict=True)]
        padded = np.zeros_like(windows, shape=(*windows.shape[: -2 * len(self.image)], *padded_sizes))
        for tap in np.ndindex(*self.kernel):
            firsts = [i * dilation for i, dilation in zip(tap, self.dilation, strict=True)]
            axes = zip(firsts, self.positions, self.stride, strict=True)
            window_slices: tuple[Any, ...] = (
                ...,
                *(slice(first, first + count * step, step) for first, count, step in axes),
            )
            padded[window_slices] += windows[(..., *tap, *[slice(None)] * len(tap))]
        sizes = zip(self.padding, self.image, strict=True)
        inside: tuple[Any, ...] = (..., *(slice(pad, pad + size) for pad, size in sizes))
        return padded[inside]

    def _columns(self, windows: Array) -> Array:
        """Return `windows` as matrices with a row per kernel element and a column per position."""
        lead = windows.shape[: -2 * len(self.kernel) - 1]
        rows = windows.shape[len(lead)] * prod(self.kernel)
        return windows.reshape(*lead, rows, prod(self.positions))

    def _rows(self, y: Array) -> Array:
        """Return results as matrices, (…, groups, rows, columns), with a row per kernel and a column per position."""
        split = self._split_groups(y)
        return split.reshape(*split.shape[: -len(self.kernel)], prod(self.positions))

    def _kernels(self, w: Array) -> Array:
        """Return kernels as matrices, (groups, rows, columns), with a row per kernel and a column per element."""
        return w.reshape(self.groups, len(w) // self.groups, prod(w.shape[1:]))

    def _split_groups(self, array: Array, spatial: int | None = None) -> Array:
        """Split the channels, before the last axes, into groups and the channels of each group."""
        axis = array.ndim - (spatial or len(self.kernel)) - 1
        channels = array.shape[axis] // self.groups
        return array.reshape(*array.shape[:axis], self.groups, channels, *array.shape[axis + 1 :])

    def _join_groups(self, array: Array, spatial: int | None = None) -> Array:
        """Apply the adjoint of `_split_groups`."""
        axis = array.ndim - (spatial or len(self.kernel)) - 2
        channels = array.shape[axis] * array.shape[axis + 1]
        return array.reshape(*array.shape[:axis], channels, *array.shape[axis + 2 :])


def _concatenate_columns(matrices: Array) -> Array:
    """Join the matrices (…, groups, rows, columns) of all samples into one matrix per group, side by side."""
    samples, (groups, rows, columns) = prod(matrices.shape[:-3]), matrices.shape[-3:]
    matrices = np.moveaxis(matrices.reshape(samples, groups, rows, columns), 0, -2)
    return matrices.reshape(groups, rows, samples * columns)


def _count_positions(image: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> tuple[int, ...]:
    """Return the number of positions of a kernel in a padded image, for each spatial axis."""
    axes = zip(image, kernel, stride, padding, dilation, strict=True)
    return tuple((size + 2 * pad - spread * (k - 1) - 1) // step + 1 for size, k, step, pad, spread in axes)


def _convolution(
    input: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> SlidingKernel:
    """Return the geometry of a kernel with the shape of `weight` that slides over the image `input`."""
    image, kernel = input.shape[2 - weight.ndim :], weight.shape[2:]
    positions = _count_positions(image, kernel, stride, padding, dilation)
    return SlidingKernel(
        image=image,
        kernel=kernel,
        positions=positions,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def _transposed_convolution(
    input: Array, weight: Array, stride: Sizes, padding: Sizes, output_padding: Sizes, groups: int, dilation: Sizes
) -> SlidingKernel:
    """Return the geometry of a transposed convolution: `input` has the values at the positions of the kernel."""
    positions, kernel = input.shape[2 - weight.ndim :], weight.shape[2:]
    axes = zip(positions, kernel, stride, padding, dilation, output_padding, strict=True)
    image = [(count - 1) * step - 2 * pad + spread * (k - 1) + extra + 1 for count, k, step, pad, spread, extra in axes]
    return SlidingKernel(
        image=image,
        kernel=kernel,
        positions=positions,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def _image_sums(
    sliding: SlidingKernel, sums: Callable[[SlidingKernel, Array, Array], Array], x: Array, operand: Array
) -> WithTerms | PartlySpecified:
    """Return sums of products of the image x and another operand.

    Some implementations multiply the padding of x by infinities and NaN in the operand; others skip these products.
    Sums with such products are therefore unspecified.

    Args:
        sliding: the geometry.
        sums: `SlidingKernel.result` if the operand is a kernel, `SlidingKernel.kernel_of` if it is a result.
        x: the image.
        operand: the kernel or the result.
    """
    product = sum_products(partial(sums, sliding), x, operand)
    if np.isfinite(operand).all():
        return product
    uses_padding = sums(replace(sliding, margin=1.0), np.zeros(x.shape), np.where(np.isfinite(operand), 0.0, 1.0)) > 0
    has_nan = sums(sliding, np.ones(x.shape), np.isnan(operand) * 1.0) > 0
    return PartlySpecified(product, has_nan | ~uses_padding) if (uses_padding & ~has_nan).any() else product


def _with_bias(product: Any, bias: Array | None, spatial: int) -> Any:
    """Return the product plus the bias of each channel, if there is one; `spatial` is the number of spatial axes."""
    if bias is None:
        return product
    if isinstance(product, PartlySpecified):
        return PartlySpecified(_with_bias(product.value, bias, spatial), product.specified)
    return add_rounded(product, bias.reshape(-1, *[1] * spatial))


def _sum_over_bias_axes(grad_output: Array, bias_sizes: Sizes | None, spatial: int) -> WithTerms | None:
    """Return the sum over all axes except the channels; None if there is no bias."""
    if bias_sizes is None:
        return None
    channels = grad_output.ndim - spatial - 1
    axes = tuple(axis for axis in range(grad_output.ndim) if axis != channels)
    return WithTerms(grad_output.sum(axes), sum_terms(grad_output, axes))


@reference("diopiConvolution2d", "diopiConvolution3d")
def convolution(input, weight, bias, stride, padding, dilation, groups):
    """Return the convolution y of the image `input` and the kernel `weight`, plus the bias, if there is one."""
    sliding = _convolution(input, weight, stride, padding, dilation, groups)
    return _with_bias(_image_sums(sliding, SlidingKernel.result, input, weight), bias, weight.ndim - 2)


@reference("diopiConvolution2dBackward", "diopiConvolution3dBackward")
def convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, groups):
    """Return the gradients of input, weight and bias."""
    sliding = _convolution(input, weight, stride, padding, dilation, groups)
    return (
        sum_products(sliding.image_of, grad_output, weight),
        _image_sums(sliding, SlidingKernel.kernel_of, input, grad_output),
        _sum_over_bias_axes(grad_output, bias_sizes, weight.ndim - 2),
    )


@reference("diopiConvTranspose2d", "diopiConvTranspose3d")
def conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation):
    """Return the transposed convolution of `input`, plus the bias, if there is one."""
    if any(extra >= max(step, spread) for extra, step, spread in zip(output_padding, stride, dilation, strict=True)):
        raise ValueError(f"output_padding is {output_padding}, expected less than the larger of stride and dilation")
    sliding = _transposed_convolution(input, weight, stride, padding, output_padding, groups, dilation)
    return _with_bias(sum_products(sliding.image_of, input, weight), bias, weight.ndim - 2)


@reference("diopiConvTranspose2dBackward", "diopiConvTranspose3dBackward")
def conv_transpose_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, output_padding, groups):
    """Return the gradients of input, weight and bias."""
    sliding = _transposed_convolution(input, weight, stride, padding, output_padding, groups, dilation)
    return (
        _image_sums(sliding, SlidingKernel.result, grad_output, weight),
        _image_sums(sliding, SlidingKernel.kernel_of, grad_output, input),
        _sum_over_bias_axes(grad_output, bias_sizes, weight.ndim - 2),
    )


def _image_patches(image: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> SlidingKernel:
    """Return the geometry of windows of this size on an image: the windows are the patches."""
    return SlidingKernel(
        image=image,
        kernel=kernel,
        positions=_count_positions(image, kernel, stride, padding, dilation),
        stride=stride,
        padding=padding,
        dilation=dilation,
    )


@reference("diopiIm2Col")
def im2col(input, kernel_size, dilation, padding, stride):
    """Return the patches of an image as columns: (…, channels · kernel elements, positions)."""
    windows = _image_patches(input.shape[-2:], kernel_size, dilation, padding, stride).windows(input)
    channels, kh, kw, lh, lw = windows.shape[-5:]
    return windows.reshape(*input.shape[:-3], channels * kh * kw, lh * lw)


@reference("diopiCol2Im")
def col2im(input, output_size, kernel_size, dilation, padding, stride):
    """Return an image with the elements of each column added to their places in its patch: the adjoint of im2col."""
    sliding = _image_patches(output_size, kernel_size, dilation, padding, stride)
    channels = input.shape[-2] // (kernel_size[0] * kernel_size[1])
    windows = input.reshape(*input.shape[:-2], channels, *kernel_size, *sliding.positions)
    count = np.maximum(sliding.add_windows(np.ones(windows.shape)), 1)
    return WithTerms(
        sliding.add_windows(windows), scale_sum_terms(sliding.add_windows(np.abs(windows)) / np.sqrt(count))
    )
