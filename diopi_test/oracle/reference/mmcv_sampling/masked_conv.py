"""Masked convolution: windows at selected positions (im2col), and results written to these positions (col2im).

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import reference

Array = NDArray[Any]


@reference("diopiMaskedIm2colMmcv")
def masked_im2col(im, mask_h_idx, mask_w_idx, kernel_h, kernel_w, pad_h, pad_w):
    """Return the window around each selected position as a column; 0 outside the image."""
    c, h, w = im.shape[1:]
    col = np.zeros((c, kernel_h, kernel_w, len(mask_h_idx)))
    for i, j, m in np.ndindex(*col.shape[1:]):
        y, x = mask_h_idx[m] - pad_h + i, mask_w_idx[m] - pad_w + j
        if 0 <= y < h and 0 <= x < w:
            col[:, i, j, m] = im[0, :, y, x]
    return col.reshape(c * kernel_h * kernel_w, len(mask_h_idx))


@reference("diopiMaskedCol2imMmcv")
def masked_col2im(col, mask_h_idx, mask_w_idx, height, width, channels):
    """Return zeros with each column written to its selected position."""
    result = np.zeros((1, channels, height, width))
    result[0, :, mask_h_idx, mask_w_idx] = col.T
    return result
