"""Convolutions over two and three spatial axes, transposed ones, their gradients, and their unrolled form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor

Sizes = Sequence[int]


def _check_least(name: str, sizes: Sizes, least: int) -> None:
    if min(sizes) < least:
        raise ValueError(f"{name} is {list(sizes)}, expected {least} or more along every axis")


def _convolve(input: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    """The convolution without bias; `input` may lack its batch axis."""
    if input.ndim == weight.ndim - 1:
        return _convolve(input[None], weight, stride, padding, dilation, groups)[0]
    for name, sizes, least in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        _check_least(name, sizes, least)
    result = lax.conv_general_dilated(
        input,
        weight,
        window_strides=stride,
        padding=[(size, size) for size in padding],
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    _check_least("the result's size", result.shape[2:], 1)
    return result


def _convolve_transposed(
    input: Array,
    weight: Array,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Array:
    """The transpose of the convolution that would give `input`, or a little more along axes of output padding."""
    positions = input.shape[2 - weight.ndim :]
    axes = zip(positions, weight.shape[2:], stride, padding, dilation, output_padding, strict=True)
    sizes = [(count - 1) * step - 2 * pad + far * (k - 1) + more + 1 for count, k, step, pad, far, more in axes]
    _check_least("the result's size", sizes, 1)
    _check_least("output_padding", output_padding, 0)
    if any(more >= max(step, far) for more, step, far in zip(output_padding, stride, dilation, strict=True)):
        raise ValueError(
            f"output_padding is {list(output_padding)}, expected less than the larger of stride and dilation"
        )
    shape = (*input.shape[: 1 - weight.ndim], weight.shape[1] * groups, *sizes)

    def convolve(image: Array) -> Array:
        result = _convolve(image, weight, stride, padding, dilation, groups)
        return result[(..., *(slice(count) for count in positions))]

    (image,) = jax.linear_transpose(convolve, jax.ShapeDtypeStruct(shape, input.dtype))(input)
    return jnp.asarray(image)


def _add_bias(result: Array, bias: Array | None, rank: int) -> Array:
    return result if bias is None else result + bias.reshape(-1, *[1] * rank)


def _gradients(
    forward: Callable[[Array, Array], Array], grad_output: Array, input: Array, weight: Array, bias_sizes: Sizes | None
) -> tuple[Array, Array, Array | None]:
    _, pull = jax.vjp(forward, input, weight)
    channels = grad_output.ndim - weight.ndim + 1
    others = [axis for axis in range(grad_output.ndim) if axis != channels]
    return *pull(grad_output), None if bias_sizes is None else jnp.sum(grad_output, others)


def _enter_convolutions(rank: int) -> None:
    """Register the four functions over `rank` spatial axes."""

    @vendor.implements(f"diopiConvolution{rank}d")
    def convolution(
        input: Array, weight: Array, bias: Array | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
    ) -> Array:
        return _add_bias(_convolve(input, weight, stride, padding, dilation, groups), bias, rank)

    @vendor.implements(f"diopiConvolution{rank}dBackward")
    def convolution_backward(
        grad_output: Array,
        input: Array,
        weight: Array,
        bias_sizes: Sizes | None,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        groups: int,
    ) -> tuple[Array, Array, Array | None]:
        def forward(x: Array, w: Array) -> Array:
            return _convolve(x, w, stride, padding, dilation, groups)

        return _gradients(forward, grad_output, input, weight, bias_sizes)

    @vendor.implements(f"diopiConvTranspose{rank}d")
    def transposed(
        input: Array,
        weight: Array,
        bias: Array | None,
        stride: Sizes,
        padding: Sizes,
        output_padding: Sizes,
        groups: int,
        dilation: Sizes,
    ) -> Array:
        result = _convolve_transposed(input, weight, stride, padding, output_padding, groups, dilation)
        return _add_bias(result, bias, rank)

    @vendor.implements(f"diopiConvTranspose{rank}dBackward")
    def transposed_backward(
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
        def forward(x: Array, w: Array) -> Array:
            return _convolve_transposed(x, w, stride, padding, output_padding, groups, dilation)

        return _gradients(forward, grad_output, input, weight, bias_sizes)


for _rank in (2, 3):
    _enter_convolutions(_rank)


@vendor.implements("diopiIm2Col")
def im2col(input: Array, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Array:
    if min(padding) < 0:
        raise ValueError(f"padding is {padding}, expected 0 or more along every axis")
    pads = [(0, 0)] * (input.ndim - 2) + [(size, size) for size in padding]
    padded = jnp.pad(input, pads)
    rows, columns = (
        _taken(size, kernel, spread, step)
        for size, kernel, spread, step in zip(padded.shape[-2:], kernel_size, dilation, stride, strict=True)
    )
    patches = padded[..., rows[:, None, :, None], columns[None, :, None, :]]
    *batch, channels, kh, kw, lh, lw = patches.shape
    return patches.reshape(*batch, channels * kh * kw, lh * lw)


def _taken(size: int, kernel: int, dilation: int, stride: int) -> Array:
    """Along one axis of the padded image, where element i of the kernel lies at position o, as a matrix [i, o]."""
    if min(kernel, dilation, stride) < 1:
        raise ValueError(f"kernel {kernel}, dilation {dilation} and stride {stride} must be positive")
    positions = (size - dilation * (kernel - 1) - 1) // stride + 1
    if positions < 1:
        raise ValueError(f"a kernel of {kernel} elements {dilation} apart does not fit into {size} with the padding")
    return dilation * jnp.arange(kernel)[:, None] + stride * jnp.arange(positions)


@vendor.implements("diopiCol2Im")
def col2im(
    input: Array, output_size: Sizes, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Array:
    if min(output_size) < 0 or min(kernel_size) < 1:
        raise ValueError(f"output_size {output_size} or kernel_size {kernel_size} is too small")
    shape = (*input.shape[:-2], input.shape[-2] // (kernel_size[0] * kernel_size[1]), *output_size)

    def unroll(image: Array) -> Array:
        return im2col(image, kernel_size, dilation, padding, stride)

    (image,) = jax.linear_transpose(unroll, jax.ShapeDtypeStruct(shape, input.dtype))(input)
    return jnp.asarray(image)
