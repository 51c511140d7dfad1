"""Convolutions and transposed convolutions over two and three spatial axes, their gradients, im2col and col2im.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.conv_form import derive_form, derive_transposed_form
from diopi_impl.jax_cpu.registration import compile_product
from diopi_impl.jax_cpu.sizes import check_shapes

Sizes = Sequence[int]
"""One number per spatial axis, or the shape of a tensor."""


def _add_batch_axis(array: Array, rank: int) -> Array:
    """Return a tensor with `rank` spatial axes as (N, C, sizes…); raise ValueError unless it is this or (C, sizes…)."""
    if array.ndim not in (rank + 1, rank + 2):
        raise ValueError(f"a tensor has shape {array.shape}, expected {rank + 1} or {rank + 2} axes")
    return array if array.ndim == rank + 2 else array[None]


def _add_bias(result: Array, bias: Array | None, like: Array) -> Array:
    """Return `result` (N, C, sizes…) plus the bias of each channel, without the batch axis if `like` has none."""
    channels, rank = result.shape[1], result.ndim - 2
    check_shapes((channels,), bias=bias)
    total = result if bias is None else result + bias.reshape(channels, *[1] * rank)
    return total if like.ndim == rank + 2 else total[0]


def _bias_gradient(y: Array, bias_sizes: Sizes | None) -> Array | None:
    """Return the gradient of the bias: the sum of y, the gradient of the result, over all axes except the channels.

    It is None if `bias_sizes` is None. Otherwise these sizes must be the number of channels.

    Raises:
        ValueError: if `bias_sizes` is another size.
    """
    if bias_sizes is not None and tuple(bias_sizes) != y.shape[1:2]:
        raise ValueError(f"bias_sizes is {list(bias_sizes)}, grad_output has {y.shape[1]} channels")
    return None if bias_sizes is None else y.sum((0, *range(2, y.ndim)))


def convolution(
    rank: int,
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Array:
    """Return the convolution over `rank` spatial axes; the prototype documents all other arguments."""
    x = _add_batch_axis(input, rank)
    result = derive_form(x.shape, weight.shape, stride, padding, dilation, groups).result(x, weight)
    return _add_bias(result, bias, input)


def convolution_backward(
    rank: int,
    grad_output: Array,
    input: Array,
    weight: Array,
    bias_sizes: Sizes | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> tuple[Array, Array, Array | None]:
    """Return the gradients of input, weight and bias; the prototype documents the arguments after `rank`."""
    x, y = _add_batch_axis(input, rank), _add_batch_axis(grad_output, rank)
    form = derive_form(x.shape, weight.shape, stride, padding, dilation, groups)
    check_shapes(form.result_shape, grad_output=y)
    grad_input = form.image_gradient(y, weight).reshape(input.shape)
    return grad_input, form.kernel_gradient(x, y), _bias_gradient(y, bias_sizes)


def transposed_convolution(
    rank: int,
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Array:
    """Return the transposed convolution over `rank` spatial axes; the prototype documents all other arguments."""
    y = _add_batch_axis(input, rank)
    form = derive_transposed_form(y.shape, weight.shape, stride, padding, output_padding, groups, dilation)
    return _add_bias(form.image_gradient(y, weight), bias, input)


def transposed_convolution_backward(
    rank: int,
    grad_output: Array,
    input: Array,
    weight: Array,
    bias_sizes: Sizes | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    output_padding: Sizes,
    groups: int,
) -> tuple[Array, Array, Array | None]:
    """Return the gradients of input, weight and bias; the prototype documents the arguments after `rank`."""
    y, x = _add_batch_axis(input, rank), _add_batch_axis(grad_output, rank)
    form = derive_transposed_form(y.shape, weight.shape, stride, padding, output_padding, groups, dilation)
    check_shapes(form.image_shape, grad_output=x)
    grad_input = form.result(x, weight).reshape(input.shape)
    return grad_input, form.kernel_gradient(x, y), _bias_gradient(x, bias_sizes)


for _rank in (2, 3):
    vendor.implements(f"diopiConvolution{_rank}d", adapt=compile_product)(partial(convolution, _rank))
    vendor.implements(f"diopiConvolution{_rank}dBackward")(partial(convolution_backward, _rank))
    vendor.implements(f"diopiConvTranspose{_rank}d")(partial(transposed_convolution, _rank))
    vendor.implements(f"diopiConvTranspose{_rank}dBackward")(partial(transposed_convolution_backward, _rank))


@vendor.implements("diopiIm2Col")
def im2col(input, kernel_size, dilation, padding, stride):
    """Return the patches of images (…, C, H, W) as columns: (…, C · kernel elements, positions of the kernel)."""
    if min(padding) < 0:
        raise ValueError(f"padding is {padding}, expected 0 or more along every axis")
    pads = [(0, 0)] * (input.ndim - 2) + [(size, size) for size in padding]
    padded = jnp.pad(input, pads)
    rows, columns = (
        _window_positions(size, kernel, dilate, step)
        for size, kernel, dilate, step in zip(padded.shape[-2:], kernel_size, dilation, stride, strict=True)
    )
    patches = padded[..., rows[:, None, :, None], columns[None, :, None, :]]
    *batch, channels, kh, kw, lh, lw = patches.shape
    return patches.reshape(*batch, channels * kh * kw, lh * lw)


def _window_positions(size: int, kernel: int, dilation: int, stride: int) -> Array:
    """Return a matrix [i, o]: the index along an axis of the padded image for kernel element i at position o.

    Args:
        size: the size of the axis of the padded image.
        kernel: the number of elements of the kernel along the axis.
        dilation: the distance between elements of the kernel.
        stride: the distance between positions of the kernel.

    Raises:
        ValueError: if a number is not positive, or if the kernel does not fit into the axis.
    """
    if min(kernel, dilation, stride) < 1:
        raise ValueError(f"kernel {kernel}, dilation {dilation} and stride {stride} must be positive")
    positions = (size - dilation * (kernel - 1) - 1) // stride + 1
    if positions < 1:
        raise ValueError(
            f"a kernel of {kernel} elements with dilation {dilation} does not fit into a padded axis of {size}"
        )
    return dilation * jnp.arange(kernel)[:, None] + stride * jnp.arange(positions)


@vendor.implements("diopiCol2Im")
def col2im(input, output_size, kernel_size, dilation, padding, stride):
    """Return the images (…, C, *output_size) to whose patches the columns are added: the adjoint of `im2col`."""
    if min(output_size) < 0 or min(kernel_size) < 1:
        raise ValueError(f"output_size {output_size} or kernel_size {kernel_size} is too small")
    shape = (*input.shape[:-2], input.shape[-2] // (kernel_size[0] * kernel_size[1]), *output_size)

    def unroll(image: Array) -> Array:
        """Return the columns of an image."""
        return im2col(image, kernel_size, dilation, padding, stride)

    (image,) = jax.linear_transpose(unroll, jax.ShapeDtypeStruct(shape, input.dtype))(input)
    return jnp.asarray(image)
