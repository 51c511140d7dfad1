"""Correlation of the neighbourhoods of two maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.products import with_terms

Array = NDArray[Any]
Shape = tuple[int, ...]


@final
@dataclass(frozen=True)
class _Correlation:
    """The sums of a correlation; pairs are along H and along W."""

    kernel: Shape
    patch: Shape
    padding: Shape
    dilation: Shape
    dilation_patch: Shape
    stride: Shape

    def __post_init__(self) -> None:
        if not all(size % 2 for size in self.patch):
            raise ValueError(f"the patch has the sizes {self.patch}, expected odd numbers")

    def size(self, shape: Shape) -> Shape:
        """Of the result."""
        axes = zip(shape[2:], self.padding, self.dilation, self.kernel, self.stride, strict=True)
        return tuple((n + 2 * pad - far * (k - 1) - 1) // step + 1 for n, pad, far, k, step in axes)

    def _places(self, axis: int, length: int, count: int, tap: int, shift: int) -> tuple[Array, tuple[Array, Array]]:
        """Along an axis: the results that have a term of this tap and shift, and where its factors are."""
        first = np.arange(count) * self.stride[axis] - self.padding[axis] + tap * self.dilation[axis]
        half = self.dilation_patch[axis] * (self.patch[axis] - 1) // 2
        second = first + shift * self.dilation_patch[axis] - half
        inside = (first >= 0) & (first < length) & (second >= 0) & (second < length)
        return np.flatnonzero(inside), (first[inside], second[inside])

    def terms(self, shape: Shape) -> Iterator[tuple[Any, Any, Any]]:
        """Terms of which no factor is outside: where in the result, in the first and in the second map they are.

        Of one tap and displacement, no two are at one place.
        """
        size = self.size(shape)
        for p, q, i, j in np.ndindex(*self.patch, *self.kernel):
            h, rows = self._places(0, shape[2], size[0], i, p)
            w, columns = self._places(1, shape[3], size[1], j, q)
            first, second = (np.s_[:, :, rows[k][:, np.newaxis], columns[k]] for k in (0, 1))
            yield np.s_[:, p, q, h[:, np.newaxis], w], first, second

    def forward(self, one: Array, other: Array) -> Array:
        sums = np.zeros((len(one), *self.patch, *self.size(one.shape)))
        for where, first, second in self.terms(one.shape):
            sums[where] += (one[first] * other[second]).sum(1)
        return sums

    def to_first(self, grad: Array, other: Array) -> Array:
        sums = np.zeros(other.shape)
        for where, first, second in self.terms(other.shape):
            sums[first] += grad[where][:, np.newaxis] * other[second]
        return sums

    def to_second(self, grad: Array, one: Array) -> Array:
        sums = np.zeros(one.shape)
        for where, first, second in self.terms(one.shape):
            sums[second] += grad[where][:, np.newaxis] * one[first]
        return sums


@reference("diopiCorrelationMmcv")
def correlation(
    input1: Array,
    input2: Array,
    kH: int,
    kW: int,
    patchH: int,
    patchW: int,
    padH: int,
    padW: int,
    dilationH: int,
    dilationW: int,
    dilation_patchH: int,
    dilation_patchW: int,
    dH: int,
    dW: int,
) -> WithTerms:
    dilations = (dilationH, dilationW), (dilation_patchH, dilation_patchW)
    sums = _Correlation((kH, kW), (patchH, patchW), (padH, padW), *dilations, (dH, dW))
    return with_terms(sums.forward, input1, input2)


@reference("diopiCorrelationBackwardMmcv")
def correlation_backward(
    grad_input1: Array,
    grad_input2: Array,
    grad_output: Array,
    input1: Array,
    input2: Array,
    kH: int,
    kW: int,
    patchH: int,
    patchW: int,
    padH: int,
    padW: int,
    dilationH: int,
    dilationW: int,
    dilation_patchH: int,
    dilation_patchW: int,
    dH: int,
    dW: int,
) -> tuple[WithTerms, WithTerms]:
    dilations = (dilationH, dilationW), (dilation_patchH, dilation_patchW)
    sums = _Correlation((kH, kW), (patchH, patchW), (padH, padW), *dilations, (dH, dW))
    return with_terms(sums.to_first, grad_output, input2), with_terms(sums.to_second, grad_output, input1)
