"""CARAFE: upsampling of feature maps in which each result position has its own kernel.

The kernels are called masks. A result element is the sum of the elements around its cell, weighted with the mask.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: J. Wang et al., "CARAFE: Content-Aware ReAssembly of FEatures", 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, reference
from diopi_test.oracle.reference.products import sum_products

Array = NDArray[Any]
Shape = tuple[int, ...]
"""The sizes of a tensor."""


@final
@dataclass(frozen=True, kw_only=True)
class _Reassembly:
    """The weighted sums of CARAFE.

    Attributes:
        shape: the shape of the feature maps, (N, C, H, W).
        k: the height and width of the kernels.
        g: the number of groups of channels, which have their own kernels.
        s: the upsampling factor along both axes.
    """

    shape: Shape
    k: int
    g: int
    s: int

    @property
    def _margins(self) -> Any:
        """Return the padding of feature maps for k × k windows."""
        return [(0, 0), (0, 0), *[(self.k // 2, self.k // 2)] * 2]

    def _split_groups(self, maps: Array) -> Array:
        """Return maps (N, C, …) as (N, g, C/g, …)."""
        n, c = maps.shape[:2]
        return maps.reshape(n, self.g, c // self.g, *maps.shape[2:])

    def _kernels(self, masks: Array) -> Array:
        """Return the masks as (N, g, k, k, s·H, s·W)."""
        return masks.reshape(len(masks), self.g, self.k, self.k, *masks.shape[2:])

    def _neighborhoods(self, features: Array) -> Array:
        """Return the k × k cells around the cell of each result, zeros outside: (N, g, C/g, k, k, s·H, s·W)."""
        windows = sliding_window_view(np.pad(features, self._margins), (self.k, self.k), (2, 3))
        cells = np.moveaxis(windows, (4, 5), (2, 3)).repeat(self.s, 4).repeat(self.s, 5)
        return self._split_groups(cells)

    def _scatter_neighborhoods(self, neighborhoods: Array) -> Array:
        """Apply the adjoint of `_neighborhoods`: add each element to the cell from which it was copied."""
        n, c, h, w = self.shape
        cell_sums = neighborhoods.reshape(n, c, self.k, self.k, h, self.s, w, self.s).sum((5, 7))
        sums, margin = np.pad(np.zeros_like(neighborhoods, shape=self.shape), self._margins), self.k // 2
        for i, j in np.ndindex(self.k, self.k):
            sums[:, :, i : i + h, j : j + w] += cell_sums[:, :, i, j]
        return sums[:, :, margin : margin + h, margin : margin + w]

    def forward(self, features: Array, masks: Array) -> Array:
        """Return the upsampled features (N, C, s·H, s·W)."""
        sums = np.einsum("ngcijyx,ngijyx->ngcyx", self._neighborhoods(features), self._kernels(masks))
        return sums.reshape(*features.shape[:2], *masks.shape[2:])

    def features_gradient(self, grad: Array, masks: Array) -> Array:
        """Return the gradient of the features."""
        return self._scatter_neighborhoods(
            np.einsum("ngcyx,ngijyx->ngcijyx", self._split_groups(grad), self._kernels(masks))
        )

    def masks_gradient(self, grad: Array, features: Array) -> Array:
        """Return the gradient of the masks."""
        sums = np.einsum("ngcyx,ngcijyx->ngijyx", self._split_groups(grad), self._neighborhoods(features))
        return sums.reshape(len(grad), self.g * self.k**2, *grad.shape[2:])


@reference("diopiCarafeMmcv")
def carafe(features, masks, kernel_size, group_size, scale_factor):
    """Return the features with channels last, which the gradient needs, and the upsampled features."""
    output = carafe_naive(features, masks, kernel_size, group_size, scale_factor)
    return Exact(np.moveaxis(features, 1, 3)), output


@reference("diopiCarafeNaiveMmcv")
def carafe_naive(features, masks, kernel_size, group_size, scale_factor):
    """Return the upsampled features."""
    reassembly = _Reassembly(shape=features.shape, k=kernel_size, g=group_size, s=scale_factor)
    return sum_products(reassembly.forward, features, masks)


@reference("diopiCarafeBackwardMmcv")
def carafe_backward(bottom_grad, top_grad, rfeatures, masks, kernel_size, group_size, scale_factor):
    """Return the gradients of features and masks, from features with channels last."""
    n, c, h, w = bottom_grad.shape
    features = np.moveaxis(rfeatures.reshape(n, h, w, c), 3, 1)
    sizes = kernel_size, group_size, scale_factor
    return carafe_naive_backward(bottom_grad, top_grad, features, masks, *sizes)


@reference("diopiCarafeNaiveBackwardMmcv")
def carafe_naive_backward(bottom_grad, top_grad, features, masks, kernel_size, group_size, scale_factor):
    """Return the gradients of features and masks."""
    reassembly = _Reassembly(shape=bottom_grad.shape, k=kernel_size, g=group_size, s=scale_factor)
    return (
        sum_products(reassembly.features_gradient, top_grad, masks),
        sum_products(reassembly.masks_gradient, top_grad, features),
    )
