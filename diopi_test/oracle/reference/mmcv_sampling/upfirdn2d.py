"""Filtering of images with a finite impulse response (FIR) between upsampling and downsampling.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: T. Karras et al., "Analyzing and Improving the Image Quality of StyleGAN", 2020.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from diopi_test.oracle.reference import reference
from diopi_test.oracle.reference.products import sum_products

Array = NDArray[Any]


@reference("diopiUpfirdn2dOpMmcv")
def upfirdn2d(input, kernel, up_x, up_y, down_x, down_y, pad_x0, pad_x1, pad_y0, pad_y1):
    """Return images (major, H, W, minor) after upsampling, filtering and downsampling.

    Zeros are inserted between elements, the images are padded (or cropped for negative padding), convolved with
    `kernel`, and every down-th element is kept.
    """
    major, h, w, minor = input.shape
    margins = (pad_y0, pad_y1), (pad_x0, pad_x1)
    ends = h * up_y, w * up_x
    crop = tuple(slice(max(-a, 0), end - max(-b, 0)) for (a, b), end in zip(margins, ends, strict=True))

    def filter_planes(planes: Array, factors: Array) -> Array:
        """Return the filtered planes, linear in planes and in filter factors."""
        upsampled = np.zeros((major, *ends, minor))
        upsampled[:, ::up_y, ::up_x] = planes
        padded = np.pad(upsampled[:, *crop], [(0, 0), *((max(a, 0), max(b, 0)) for a, b in margins), (0, 0)])
        windows = sliding_window_view(padded, kernel.shape, (1, 2))[:, ::down_y, ::down_x]
        return np.asanyarray(np.einsum("mhwkij,ij->mhwk", windows, factors[::-1, ::-1]))

    return sum_products(filter_planes, input, kernel)
