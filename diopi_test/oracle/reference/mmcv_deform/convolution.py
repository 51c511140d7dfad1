"""Deformable convolutions, plain and modulated, and their gradients.

Images are cut into deformable groups, (B, G, C/G, H·W); columns, the samples a kernel position meets, are (B, C, K, P)
with K positions in the kernel and P in the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.mmcv_deform.steps import check_step
from diopi_test.oracle.reference.products import plus, times
from diopi_test.oracle.reference.sampling import (
    Coordinate,
    Samples,
    combined,
    exact,
    put,
    samples,
    scaled,
    stacked,
    taken,
    zero_padded,
)
from diopi_test.oracle.reference.sums import sum_terms

Array = NDArray[Any]
Pair = tuple[int, int]
"""Along H and along W."""


@final
@dataclass(frozen=True)
class _Convolution:
    """A deformable convolution of these tensors; `mask` is None where samples have no factors."""

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
            raise ValueError(f"offset has shape {self.offset.shape}, expected places of a result of size {size}")

    @property
    def size(self) -> Pair:
        """Of the result, along H and W."""
        return self.offset.shape[2], self.offset.shape[3]

    @property
    def kernel(self) -> Pair:
        """The size of the kernel."""
        return self.weight.shape[2], self.weight.shape[3]

    @cached_property
    def places(self) -> list[list[tuple[Coordinate, Coordinate]]]:
        """Where samples lie along H and W, of each image and deformable group: (K, P) each."""
        shape = (len(self.input), self.deform_groups, self.kernel[0] * self.kernel[1], 2, self.size[0] * self.size[1])
        shifts = np.moveaxis(self.offset.reshape(shape), 3, 2)
        (i, j), (h, w) = (np.indices(sizes).reshape(2, -1) for sizes in (self.kernel, self.size))
        ends = (i, h), (j, w)
        return [
            [(self._place(0, *ends[0], rows), self._place(1, *ends[1], columns)) for rows, columns in of_image]
            for of_image in shifts
        ]

    def _place(self, axis: int, taps: Array, positions: Array, shifts: Array) -> Coordinate:
        start = positions * self.stride[axis] - self.padding[axis]
        at = start + taps[:, np.newaxis] * self.dilation[axis] + shifts
        return Coordinate(at, np.abs(at))

    @cached_property
    def samples(self) -> list[list[Samples]]:
        """Of each image and deformable group: (4, K, P)."""
        h, w = self.input.shape[2:]
        return [[samples(zero_padded(y, h), zero_padded(x, w), w) for y, x in of_image] for of_image in self.places]

    def columns(self, which: Callable[[Samples], WithTerms]) -> WithTerms:
        """Samples of the image, or their derivatives: (B, C, K, P)."""
        b, c, h, w = self.input.shape
        planes = self.input.reshape(b, self.deform_groups, c // self.deform_groups, h * w)
        parts = [
            combined(taken(its.index), which(its), exact(planes[image, group]))
            for image, of_image in enumerate(self.samples)
            for group, its in enumerate(of_image)
        ]
        return stacked(parts, (b, c, *self._ends))

    @property
    def _ends(self) -> Pair:
        return self.kernel[0] * self.kernel[1], self.size[0] * self.size[1]

    def masked(self, columns: WithTerms) -> WithTerms:
        """Columns times their factors, if they have any."""
        return columns if self.mask is None else scaled(self._factors, columns)

    @property
    def _factors(self) -> Array:
        assert self.mask is not None
        factors = self.mask.reshape(len(self.mask), self.deform_groups, *self._ends)
        return np.repeat(factors, self.input.shape[1] // self.deform_groups, 1)

    def _grouped(self, array: Array) -> Array:
        """(B, channels, …) as (B, groups, channels of one, …)."""
        return array.reshape(len(array), self.groups, array.shape[1] // self.groups, *array.shape[2:])

    @property
    def _matrices(self) -> Array:
        """The weights as (groups, outputs of one, inputs of one, K)."""
        co, ci, *_ = self.weight.shape
        return self.weight.reshape(self.groups, co // self.groups, ci, self._ends[0])

    def result(self) -> WithTerms:
        def sums(weight: Array, columns: Array) -> Array:
            return np.einsum("gock,bgckp->bgop", weight, self._grouped(columns)).reshape(shape)

        shape = (len(self.input), len(self.weight), *self.size)
        return combined(sums, exact(self._matrices), self.masked(self.columns(lambda its: its.weight)))

    def gradient_of_columns(self, grad: Array) -> WithTerms:
        """What each masked sample gets: (B, C, K, P)."""

        def sums(weight: Array, given: Array) -> Array:
            return np.einsum("gock,bgop->bgckp", weight, given).reshape(*self.input.shape[:2], *self._ends)

        return combined(sums, exact(self._matrices), exact(self._flat(grad)))

    def _flat(self, grad: Array) -> Array:
        """(B, groups, outputs of one, P)."""
        return self._grouped(grad.reshape(*grad.shape[:2], self._ends[1]))

    def weight_gradient(self, grad: Array) -> WithTerms:
        def sums(given: Array, columns: Array) -> Array:
            return np.einsum("bgop,bgckp->gock", given, self._grouped(columns)).reshape(self.weight.shape)

        return combined(sums, exact(self._flat(grad)), self.masked(self.columns(lambda its: its.weight)))

    def input_gradient(self, of_columns: WithTerms) -> WithTerms:
        """From the gradient of the columns without factors."""
        b, c, h, w = self.input.shape
        shape = (b, self.deform_groups, c // self.deform_groups, *self._ends)
        values, terms = of_columns.value.reshape(shape), of_columns.terms.reshape(shape)
        parts = [
            combined(put(its.index, h * w), its.weight, WithTerms(values[image, group], terms[image, group]))
            for image, of_image in enumerate(self.samples)
            for group, its in enumerate(of_image)
        ]
        return stacked(parts, self.input.shape)

    def per_group(self, one: WithTerms, other: WithTerms) -> WithTerms:
        """Sums of products of columns over the channels of a deformable group: (B, G·K, size)."""
        shape = (len(self.input), self.deform_groups, self.input.shape[1] // self.deform_groups, *self._ends)
        result = (len(self.input), self.deform_groups * self._ends[0], *self.size)

        def sums(a: Array, b: Array) -> Array:
            return np.einsum("bgckp,bgckp->bgkp", a.reshape(shape), b.reshape(shape)).reshape(result)

        return combined(sums, one, other)

    def offset_gradient(self, of_columns: WithTerms) -> PartlySpecified:
        """From the gradient of the columns without factors: Δy and Δx by turns. Open where it jumps."""
        slopes = [self.columns(lambda its: its.by_y), self.columns(lambda its: its.by_x)]
        both = [self.per_group(of_columns, slope) for slope in slopes]
        values, terms = (np.stack([getattr(one, name) for one in both], 2) for name in ("value", "terms"))
        gradient = WithTerms(values.reshape(self.offset.shape), terms.reshape(self.offset.shape))
        is_between = np.array([[[at.is_between for at in of_group] for of_group in image] for image in self.places])
        return PartlySpecified(gradient, np.moveaxis(is_between, 2, 3).reshape(self.offset.shape))


@reference("diopiDeformConvMmcv")
def deform_conv(
    columns: Array,
    ones: Array,
    input: Array,
    weight: Array,
    offset: Array,
    kW: int,
    kH: int,
    dW: int,
    dH: int,
    padW: int,
    padH: int,
    dilationW: int,
    dilationH: int,
    groups: int,
    deform_groups: int,
    im2col_step: int,
) -> WithTerms:
    check_step(len(input), im2col_step)
    sizes = (dH, dW), (padH, padW), (dilationH, dilationW)
    return _Convolution(input, weight, offset, None, *sizes, groups, deform_groups).result()


@reference("diopiDeformConvBackwardInputMmcv")
def deform_conv_backward_input(
    gradInput: Array,
    gradOffset: Array,
    input: Array,
    offset: Array,
    gradOutput: Array,
    weight: Array,
    columns: Array,
    kW: int,
    kH: int,
    dW: int,
    dH: int,
    padW: int,
    padH: int,
    dilationW: int,
    dilationH: int,
    groups: int,
    deform_groups: int,
    im2col_step: int,
) -> tuple[WithTerms, PartlySpecified]:
    check_step(len(input), im2col_step)
    sizes = (dH, dW), (padH, padW), (dilationH, dilationW)
    convolution = _Convolution(input, weight, offset, None, *sizes, groups, deform_groups)
    of_columns = convolution.gradient_of_columns(gradOutput)
    return convolution.input_gradient(of_columns), convolution.offset_gradient(of_columns)


@reference("diopiDeformConvBackwardParametersMmcv")
def deform_conv_backward_parameters(
    gradOutput: Array,
    gradWeight: Array,
    input: Array,
    offset: Array,
    columns: Array,
    ones: Array,
    kW: int,
    kH: int,
    dW: int,
    dH: int,
    padW: int,
    padH: int,
    dilationW: int,
    dilationH: int,
    groups: int,
    deform_groups: int,
    im2col_step: int,
    scale: float,
) -> WithTerms:
    check_step(len(input), im2col_step)
    sizes = (dH, dW), (padH, padW), (dilationH, dilationW)
    convolution = _Convolution(input, gradWeight, offset, None, *sizes, groups, deform_groups)
    return times(scale, convolution.weight_gradient(gradOutput))


@reference("diopiModulatedDeformConvMmcv")
def modulated_deform_conv(
    columns: Array,
    ones: Array,
    input: Array,
    weight: Array,
    bias: Array,
    offset: Array,
    mask: Array,
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    group: int,
    deformable_group: int,
    with_bias: bool,
) -> WithTerms:
    sizes = (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w)
    product = _Convolution(input, weight, offset, mask, *sizes, group, deformable_group).result()
    return plus(product, bias[:, np.newaxis, np.newaxis]) if with_bias else product


@reference("diopiModulatedDeformConvBackwardMmcv")
def modulated_deform_conv_backward(
    grad_input: Array,
    grad_weight: Array,
    grad_bias: Array,
    grad_offset: Array,
    grad_mask: Array,
    input: Array,
    weight: Array,
    bias: Array,
    ones: Array,
    offset: Array,
    mask: Array,
    columns: Array,
    grad_output: Array,
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    group: int,
    deformable_group: int,
    with_bias: bool,
) -> tuple[WithTerms | PartlySpecified, ...]:
    sizes = (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w)
    convolution = _Convolution(input, weight, offset, mask, *sizes, group, deformable_group)
    of_masked = convolution.gradient_of_columns(grad_output)
    of_columns = convolution.masked(of_masked)
    over = (0, 2, 3)
    summed = WithTerms(grad_output.sum(over), sum_terms(grad_output, over))
    return (
        convolution.input_gradient(of_columns),
        convolution.weight_gradient(grad_output),
        summed if with_bias else exact(np.zeros(grad_bias.shape)),
        convolution.offset_gradient(of_columns),
        convolution.per_group(of_masked, convolution.columns(lambda its: its.weight)),
    )
