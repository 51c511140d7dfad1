"""Deformable convolutions, plain and modulated, and their gradients.

In a deformable convolution, an offset shifts the position at which each kernel element samples the image. In a
modulated one, a mask multiplies the samples. The channels of an image are split into G deformable groups with their own
offsets, (B, G, C/G, H·W). *Columns* are the samples at each kernel position, (B, C, K, P), for K positions in the
kernel and P positions in the result.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Sources: J. Dai et al., "Deformable Convolutional Networks", 2017; X. Zhu et al., "Deformable ConvNets v2", 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.mmcv_deform.steps import check_step_divides_batch
from diopi_test.oracle.reference.products import add_rounded, scale_result
from diopi_test.oracle.reference.sampling import (
    BilinearSamples,
    Coordinate,
    bilinear_samples,
    make_gather,
    make_scatter,
    stack_results,
    sum_rounded_products,
    with_zero_terms,
    zero_padded_cells,
)
from diopi_test.oracle.reference.sums import sum_terms

Array = NDArray[Any]
Pair = tuple[int, int]
"""Two values: one for H and one for W."""


class _Sizes(TypedDict):
    """The sizes of a convolution that are attributes of the call."""

    stride: Pair
    padding: Pair
    dilation: Pair


@final
@dataclass(frozen=True, kw_only=True)
class _Convolution:
    """A deformable convolution.

    Attributes:
        input: The images, (B, C, H, W).
        weight: The kernels, (output channels, C / groups, kernel height, kernel width).
        offset: The offsets of the samples along y and x in turn, (B, G · K · 2, height, width of the result).
        mask: The factors of the samples, (B, G · K, height, width of the result); None without modulation.
        stride, padding, dilation: The geometry along H and W.
        groups: The number of groups of channels.
        deform_groups: The number G of deformable groups.
    """

    input: Array
    weight: Array
    offset: Array
    mask: Array | None
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    deform_groups: int

    def __post_init__(self) -> None:
        axes = zip(self.input.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True)
        size = tuple((length + 2 * pad - far * (k - 1) - 1) // step + 1 for length, k, step, pad, far in axes)
        if size != self.size:
            raise ValueError(f"offset has shape {self.offset.shape}, expected {size} in the last two axes")

    @property
    def size(self) -> Pair:
        """Return the size of the result along H and W."""
        return self.offset.shape[2], self.offset.shape[3]

    @property
    def kernel(self) -> Pair:
        """Return the size of the kernel along H and W."""
        return self.weight.shape[2], self.weight.shape[3]

    @cached_property
    def coordinates(self) -> list[list[tuple[Coordinate, Coordinate]]]:
        """Return the coordinates of the samples along H and W, (K, P) each, by image and deformable group."""
        shape = (len(self.input), self.deform_groups, self.kernel[0] * self.kernel[1], 2, self.size[0] * self.size[1])
        shifts = np.moveaxis(self.offset.reshape(shape), 3, 2)
        (i, j), (h, w) = (np.indices(sizes).reshape(2, -1) for sizes in (self.kernel, self.size))
        indices = (i, h), (j, w)
        return [
            [
                (self._coordinate(0, *indices[0], rows), self._coordinate(1, *indices[1], columns))
                for rows, columns in image_shifts
            ]
            for image_shifts in shifts
        ]

    def _coordinate(self, axis: int, taps: Array, positions: Array, shifts: Array) -> Coordinate:
        """Return the coordinates of samples along an axis: grid position plus kernel position plus offset."""
        start = positions * self.stride[axis] - self.padding[axis]
        value = start + taps[:, np.newaxis] * self.dilation[axis] + shifts
        return Coordinate(value, np.abs(value))

    @cached_property
    def samples(self) -> list[list[BilinearSamples]]:
        """Return the samples, (4, K, P), by image and deformable group."""
        h, w = self.input.shape[2:]
        return [
            [bilinear_samples(zero_padded_cells(y, h), zero_padded_cells(x, w), w) for y, x in image_places]
            for image_places in self.coordinates
        ]

    def columns(self, select: Callable[[BilinearSamples], WithTerms]) -> WithTerms:
        """Return the samples of the images, or their derivatives, (B, C, K, P); `select` returns weights or slopes."""
        b, c, h, w = self.input.shape
        planes = self.input.reshape(b, self.deform_groups, c // self.deform_groups, h * w)
        parts = [
            sum_rounded_products(make_gather(samples.index), select(samples), with_zero_terms(planes[image, group]))
            for image, image_samples in enumerate(self.samples)
            for group, samples in enumerate(image_samples)
        ]
        return stack_results(parts, (b, c, *self._column_shape))

    @property
    def _column_shape(self) -> Pair:
        """Return the number of kernel positions and of result positions."""
        return self.kernel[0] * self.kernel[1], self.size[0] * self.size[1]

    def apply_mask(self, columns: WithTerms) -> WithTerms:
        """Return columns multiplied by the mask, if there is one."""
        return columns if self.mask is None else scale_result(self._factors, columns)

    @property
    def _factors(self) -> Array:
        """Return the mask of each channel: (B, C, K, P)."""
        assert self.mask is not None
        factors = self.mask.reshape(len(self.mask), self.deform_groups, *self._column_shape)
        return np.repeat(factors, self.input.shape[1] // self.deform_groups, 1)

    def _split_groups(self, array: Array) -> Array:
        """Return (B, channels, …) as (B, groups, channels per group, …)."""
        return array.reshape(len(array), self.groups, array.shape[1] // self.groups, *array.shape[2:])

    @property
    def _matrices(self) -> Array:
        """Return the weights as (groups, outputs per group, inputs per group, K)."""
        co, ci, *_ = self.weight.shape
        return self.weight.reshape(self.groups, co // self.groups, ci, self._column_shape[0])

    def result(self) -> WithTerms:
        """Return the result of the convolution."""

        def sums(weight: Array, columns: Array) -> Array:
            """Return the sums over input channels and kernel positions."""
            return np.einsum("gock,bgckp->bgop", weight, self._split_groups(columns)).reshape(shape)

        shape = (len(self.input), len(self.weight), *self.size)
        return sum_rounded_products(
            sums, with_zero_terms(self._matrices), self.apply_mask(self.columns(lambda samples: samples.weight))
        )

    def masked_column_gradient(self, grad: Array) -> WithTerms:
        """Return the gradient of the masked columns: (B, C, K, P)."""

        def sums(weight: Array, grad: Array) -> Array:
            """Return the sums over output channels."""
            return np.einsum("gock,bgop->bgckp", weight, grad).reshape(*self.input.shape[:2], *self._column_shape)

        return sum_rounded_products(
            sums, with_zero_terms(self._matrices), with_zero_terms(self._flatten_positions(grad))
        )

    def _flatten_positions(self, grad: Array) -> Array:
        """Return grad as (B, groups, outputs per group, P)."""
        return self._split_groups(grad.reshape(*grad.shape[:2], self._column_shape[1]))

    def weight_gradient(self, grad: Array) -> WithTerms:
        """Return the gradient of the weights."""

        def sums(grad: Array, columns: Array) -> Array:
            """Return the sums over samples and positions."""
            return np.einsum("bgop,bgckp->gock", grad, self._split_groups(columns)).reshape(self.weight.shape)

        return sum_rounded_products(
            sums,
            with_zero_terms(self._flatten_positions(grad)),
            self.apply_mask(self.columns(lambda samples: samples.weight)),
        )

    def input_gradient(self, column_gradient: WithTerms) -> WithTerms:
        """Return the gradient of the input from the gradient of the columns before masking."""
        b, c, h, w = self.input.shape
        shape = (b, self.deform_groups, c // self.deform_groups, *self._column_shape)
        values, terms = column_gradient.value.reshape(shape), column_gradient.terms.reshape(shape)
        parts = [
            sum_rounded_products(
                make_scatter(samples.index, h * w), samples.weight, WithTerms(values[image, group], terms[image, group])
            )
            for image, image_samples in enumerate(self.samples)
            for group, samples in enumerate(image_samples)
        ]
        return stack_results(parts, self.input.shape)

    def sum_group_products(self, columns_a: WithTerms, columns_b: WithTerms) -> WithTerms:
        """Return the sums of columns_a · columns_b over the channels of each deformable group: (B, G·K, *size)."""
        shape = (len(self.input), self.deform_groups, self.input.shape[1] // self.deform_groups, *self._column_shape)
        result = (len(self.input), self.deform_groups * self._column_shape[0], *self.size)

        def sums(a: Array, b: Array) -> Array:
            """Return the sums over the channels of a group."""
            return np.einsum("bgckp,bgckp->bgkp", a.reshape(shape), b.reshape(shape)).reshape(result)

        return sum_rounded_products(sums, columns_a, columns_b)

    def offset_gradient(self, column_gradient: WithTerms) -> PartlySpecified:
        """Return the gradient of the offsets from the gradient of unmasked columns; unspecified where it jumps.

        The gradients by Δy and Δx alternate.
        """
        slopes = [self.columns(lambda samples: samples.slope_y), self.columns(lambda samples: samples.slope_x)]
        products = [self.sum_group_products(column_gradient, slope) for slope in slopes]
        values, terms = (np.stack([getattr(product, name) for product in products], 2) for name in ("value", "terms"))
        gradient = WithTerms(values.reshape(self.offset.shape), terms.reshape(self.offset.shape))
        stays_in_cell = np.array(
            [
                [[coordinate.stays_in_cell for coordinate in group_places] for group_places in image]
                for image in self.coordinates
            ]
        )
        return PartlySpecified(gradient, np.moveaxis(stays_in_cell, 2, 3).reshape(self.offset.shape))


@reference("diopiDeformConvMmcv")
def deform_conv(input, weight, offset, dW, dH, padW, padH, dilationW, dilationH, groups, deform_groups, im2col_step):
    """Return the deformable convolution."""
    check_step_divides_batch(len(input), im2col_step)
    sizes: _Sizes = {"stride": (dH, dW), "padding": (padH, padW), "dilation": (dilationH, dilationW)}
    return _Convolution(
        input=input, weight=weight, offset=offset, mask=None, **sizes, groups=groups, deform_groups=deform_groups
    ).result()


@reference("diopiDeformConvBackwardInputMmcv")
def deform_conv_backward_input(
    input, offset, gradOutput, weight, dW, dH, padW, padH, dilationW, dilationH, groups, deform_groups, im2col_step
):
    """Return the gradients of input and offset."""
    check_step_divides_batch(len(input), im2col_step)
    sizes: _Sizes = {"stride": (dH, dW), "padding": (padH, padW), "dilation": (dilationH, dilationW)}
    convolution = _Convolution(
        input=input, weight=weight, offset=offset, mask=None, **sizes, groups=groups, deform_groups=deform_groups
    )
    column_gradient = convolution.masked_column_gradient(gradOutput)
    return convolution.input_gradient(column_gradient), convolution.offset_gradient(column_gradient)


@reference("diopiDeformConvBackwardParametersMmcv")
def deform_conv_backward_parameters(
    gradOutput,
    gradWeight,
    input,
    offset,
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
    check_step_divides_batch(len(input), im2col_step)
    sizes: _Sizes = {"stride": (dH, dW), "padding": (padH, padW), "dilation": (dilationH, dilationW)}
    convolution = _Convolution(
        input=input, weight=gradWeight, offset=offset, mask=None, **sizes, groups=groups, deform_groups=deform_groups
    )
    return scale_result(scale, convolution.weight_gradient(gradOutput))


@reference("diopiModulatedDeformConvMmcv")
def modulated_deform_conv(
    input,
    weight,
    bias,
    offset,
    mask,
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
    """Return the modulated deformable convolution, plus the bias if `with_bias`."""
    sizes: _Sizes = {"stride": (stride_h, stride_w), "padding": (pad_h, pad_w), "dilation": (dilation_h, dilation_w)}
    product = _Convolution(
        input=input, weight=weight, offset=offset, mask=mask, **sizes, groups=group, deform_groups=deformable_group
    ).result()
    return add_rounded(product, bias[:, np.newaxis, np.newaxis]) if with_bias else product


@reference("diopiModulatedDeformConvBackwardMmcv")
def modulated_deform_conv_backward(
    grad_bias,
    input,
    weight,
    offset,
    mask,
    grad_output,
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
    sizes: _Sizes = {"stride": (stride_h, stride_w), "padding": (pad_h, pad_w), "dilation": (dilation_h, dilation_w)}
    convolution = _Convolution(
        input=input, weight=weight, offset=offset, mask=mask, **sizes, groups=group, deform_groups=deformable_group
    )
    masked_gradient = convolution.masked_column_gradient(grad_output)
    column_gradient = convolution.apply_mask(masked_gradient)
    sum_axes = (0, 2, 3)
    bias_gradient = WithTerms(grad_output.sum(sum_axes), sum_terms(grad_output, sum_axes))
    return (
        convolution.input_gradient(column_gradient),
        convolution.weight_gradient(grad_output),
        bias_gradient if with_bias else with_zero_terms(np.zeros(grad_bias.shape)),
        convolution.offset_gradient(column_gradient),
        convolution.sum_group_products(masked_gradient, convolution.columns(lambda samples: samples.weight)),
    )
