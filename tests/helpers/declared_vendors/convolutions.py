"""Convolutions of images by the algorithms of Winograd and by Fourier transforms, in float32.

A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, has the matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

Convolve = Callable[[Tensor, Tensor], Tensor]
"""Convolves a padded image with a kernel at every position."""

_WINOGRAD = {
    2: (
        [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
        [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
        [[1, 1, 1, 0], [0, 1, -1, -1]],
    ),
    4: (
        [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ],
        [
            [1 / 4, 0, 0],
            [-1 / 6, -1 / 6, -1 / 6],
            [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6],
            [1 / 24, -1 / 12, 1 / 6],
            [0, 0, 1],
        ],
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
    ),
}
"""The transforms of the image, of the kernel, and of the result for F(m × m, 3 × 3), by m.

F(m × m, 3 × 3) computes m × m results of a kernel of 3 × 3 from a tile of (m + 2) × (m + 2) elements of the image.
"""


RoundFactor = Callable[[Tensor], Tensor]
"""Rounds a factor of products, in float32 or complex64, to the format in which a device multiplies."""


def _by_winograd(size: int, round_factor: RoundFactor, x: Tensor, w: Tensor) -> Tensor:
    """Return the convolution of padded images x (N, C, H, W) and kernels w (O, C, 3, 3) by F(size × size, 3 × 3).

    There is one group. `round_factor` rounds the factors of the products.
    """
    image, kernel, result = (torch.tensor(matrix, dtype=torch.float32) for matrix in _WINOGRAD[size])
    tile = size + 2
    rows, columns = (-(-(length - 2) // size) for length in x.shape[-2:])
    filled = pad(x, [0, columns * size + 2 - x.shape[-1], 0, rows * size + 2 - x.shape[-2]])
    tiles = image @ filled.unfold(2, tile, size).unfold(3, tile, size) @ image.mT
    kernels = kernel @ w @ kernel.mT
    products = torch.einsum("ncijab,ocab->noijab", round_factor(tiles), round_factor(kernels))
    joined = (result @ products @ result.mT).movedim(4, 3).reshape(*products.shape[:2], rows * size, columns * size)
    return joined[..., : x.shape[-2] - 2, : x.shape[-1] - 2]


def _by_fft(x: Tensor, w: Tensor) -> Tensor:
    """Return the convolution of padded images x (N, C, H, W) and kernels w (O, C, kH, kW) by Fourier transforms."""
    sizes = list(x.shape[-2:])
    # below autograd, arithmetic on a lazily conjugated tensor would ignore the conjugation
    kernel = torch.fft.rfft2(w, s=sizes).conj_physical()
    spectrum = torch.einsum("nc...,oc...->no...", torch.fft.rfft2(x), kernel)
    rows, columns = (length - reach + 1 for length, reach in zip(sizes, w.shape[-2:], strict=True))
    return torch.fft.irfft2(spectrum, s=sizes)[..., :rows, :columns]


def _convolution(
    convolve: Convolve, is_supported: Callable[[Tensor], bool], func: Any, x: Tensor, w: Tensor, *attributes: Any
) -> Any:
    """Replace ATen's `convolution`; only float32 images with stride and dilation 1 are computed by `convolve`.

    Args:
        convolve: the algorithm.
        is_supported: whether the algorithm can use this kernel.
        func: ATen's operator.
        x: the images.
        w: the kernels.
        attributes: the operator's other arguments.

    Returns:
        The result; for an unsupported convolution, that of ATen.
    """
    exact = func(x, w, *attributes)  # rejects invalid arguments
    bias, stride, padding, dilation, is_transposed, _, groups = attributes
    is_dense = x.ndim == 4 and not is_transposed and {*stride, *dilation} == {1} and x.dtype is torch.float32
    if not (is_dense and is_supported(w) and x.numel() and w.numel() and torch.isfinite(x).all()):
        return exact
    padded = pad(x, [padding[-1], padding[-1], padding[0], padding[0]])
    parts = zip(padded.chunk(groups, 1), w.chunk(groups), strict=True)
    result = torch.cat([convolve(image, kernel) for image, kernel in parts], 1)
    return result if bias is None else result + bias.view(-1, 1, 1)


def _keep_factor(factor: Tensor) -> Tensor:
    """Return a factor as it is."""
    return factor


def winograd_replacements(size: int, round_factor: RoundFactor = _keep_factor) -> dict[str, Callable[..., Any]]:
    """Return the replacements by which convolutions with kernels of 3 × 3 use F(size × size, 3 × 3).

    Args:
        size: the size of a tile of the result.
        round_factor: rounds the transformed images and kernels before they are multiplied.
    """

    def is_supported(w: Tensor) -> bool:
        return tuple(w.shape[-2:]) == (3, 3)

    return {"convolution": partial(_convolution, partial(_by_winograd, size, round_factor), is_supported)}


def fft_replacements() -> dict[str, Callable[..., Any]]:
    """Return the replacements by which convolutions use the fast Fourier transform."""
    return {"convolution": partial(_convolution, _by_fft, lambda w: w.numel() > 0)}
