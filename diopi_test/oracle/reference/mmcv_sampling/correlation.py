"""Correlation of neighborhoods in two maps, as in FlowNet (Dosovitskiy et al., 2015), and its gradient.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import reference
from diopi_test.oracle.reference.products import sum_products

Array = NDArray[Any]
Shape = tuple[int, ...]
"""The sizes of a tensor."""


@final
@dataclass(frozen=True, kw_only=True)
class _Correlation:
    """The correlation of two maps: Σ map1[c, p] · map2[c, p + d] over channels c and a kernel, for each displacement d.

    Attributes, each a pair of values for H and W:
        kernel: the size of the kernel, over which products are summed.
        patch: the number of displacements d, which are centered at 0.
        padding: the number of zeros around the maps.
        dilation: the distance of neighboring kernel elements.
        dilation_patch: the distance of neighboring displacements.
        stride: the distance of neighboring positions p.
    """

    kernel: Shape
    patch: Shape
    padding: Shape
    dilation: Shape
    dilation_patch: Shape
    stride: Shape

    def __post_init__(self) -> None:
        if not all(size % 2 for size in self.patch):
            raise ValueError(f"the patch sizes are {self.patch}, expected odd numbers")

    def size(self, shape: Shape) -> Shape:
        """Return the size of the result along H and W for inputs of this shape."""
        axes = zip(shape[2:], self.padding, self.dilation, self.kernel, self.stride, strict=True)
        return tuple((n + 2 * pad - far * (k - 1) - 1) // step + 1 for n, pad, far, k, step in axes)

    def _axis_indices(
        self, axis: int, length: int, count: int, tap: int, shift: int
    ) -> tuple[Array, tuple[Array, Array]]:
        """Return the indices along an axis of the products for one kernel position and one displacement.

        Args:
            axis: 0 for H, 1 for W.
            length: the size of the maps.
            count: the size of the result.
            tap: the position in the kernel.
            shift: the position in the patch of displacements.

        Returns:
            The indices in the result, and the indices in the first and in the second map. Products with a factor
            outside of its map are omitted.
        """
        first = np.arange(count) * self.stride[axis] - self.padding[axis] + tap * self.dilation[axis]
        half = self.dilation_patch[axis] * (self.patch[axis] - 1) // 2
        second = first + shift * self.dilation_patch[axis] - half
        inside = (first >= 0) & (first < length) & (second >= 0) & (second < length)
        return np.flatnonzero(inside), (first[inside], second[inside])

    def products(self, shape: Shape) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the indices of products in the result, in the first map and in the second map.

        Each item contains the products for one kernel position and one displacement. In one item, no two products have
        the same index, so `+=` adds all products. Products with a factor outside of its map are omitted.
        """
        size = self.size(shape)
        for p, q, i, j in np.ndindex(*self.patch, *self.kernel):
            h, rows = self._axis_indices(0, shape[2], size[0], i, p)
            w, columns = self._axis_indices(1, shape[3], size[1], j, q)
            first, second = (np.s_[:, :, rows[k][:, np.newaxis], columns[k]] for k in (0, 1))
            yield np.s_[:, p, q, h[:, np.newaxis], w], first, second

    def forward(self, map1: Array, map2: Array) -> Array:
        """Return the correlation of two maps."""
        sums = np.zeros_like(map1, shape=(len(map1), *self.patch, *self.size(map1.shape)))
        for result_index, first, second in self.products(map1.shape):
            sums[result_index] += (map1[first] * map2[second]).sum(1)
        return sums

    def map1_gradient(self, grad: Array, map2: Array) -> Array:
        """Return the gradient of the first map."""
        sums = np.zeros_like(map2)
        for result_index, first, second in self.products(map2.shape):
            sums[first] += grad[result_index][:, np.newaxis] * map2[second]
        return sums

    def map2_gradient(self, grad: Array, map1: Array) -> Array:
        """Return the gradient of the second map."""
        sums = np.zeros_like(map1)
        for result_index, first, second in self.products(map1.shape):
            sums[second] += grad[result_index][:, np.newaxis] * map1[first]
        return sums


@reference("diopiCorrelationMmcv")
def correlation(
    input1, input2, kH, kW, patchH, patchW, padH, padW, dilationH, dilationW, dilation_patchH, dilation_patchW, dH, dW
):
    """Return the correlation of two maps: (N, patch H, patch W, H, W)."""
    sums = _Correlation(
        kernel=(kH, kW),
        patch=(patchH, patchW),
        padding=(padH, padW),
        dilation=(dilationH, dilationW),
        dilation_patch=(dilation_patchH, dilation_patchW),
        stride=(dH, dW),
    )
    return sum_products(sums.forward, input1, input2)


@reference("diopiCorrelationBackwardMmcv")
def correlation_backward(
    grad_output,
    input1,
    input2,
    kH,
    kW,
    patchH,
    patchW,
    padH,
    padW,
    dilationH,
    dilationW,
    dilation_patchH,
    dilation_patchW,
    dH,
    dW,
):
    """Return the gradients of both maps."""
    sums = _Correlation(
        kernel=(kH, kW),
        patch=(patchH, patchW),
        padding=(padH, padW),
        dilation=(dilationH, dilationW),
        dilation_patch=(dilation_patchH, dilation_patchW),
        stride=(dH, dW),
    )
    return sum_products(sums.map1_gradient, grad_output, input2), sum_products(sums.map2_gradient, grad_output, input1)
