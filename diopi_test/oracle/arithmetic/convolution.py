"""The rules of convolutions by other algorithms than direct sums: Winograd's minimal filtering, and Fourier transforms.

The rules concern convolutions with stride 1 and dilation 1, forward and with respect to the image (the gradient of the
input, and transposed convolutions). All other convolutions, and the gradient of the weight, count as direct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import log2, prod
from typing import Any, final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from diopi_impl.numerics.declaration import Convolution
from diopi_proto.types import Dtype
from diopi_test.oracle.arithmetic.array import Arithmetic, Array, Operation, Rule
from diopi_test.oracle.arithmetic.products import move_unrepresentable, round_to, spacing
from diopi_test.oracle.arithmetic.signs import Signs
from diopi_test.oracle.reference.conv import SlidingKernel
from diopi_test.oracle.reference.sums import accumulation_terms
from lib_rt.formats import Format, format_of

SINGLE = format_of(Dtype.float32)
"""The format in which sums of products, and transforms, are computed."""


@final
@dataclass(frozen=True)
class WinogradTransforms:
    """The transforms of F(m × m, 3 × 3): an m × m tile of the result is Aᵀ [(G w Gᵀ) ⊙ (Bᵀ x B)] A.

    Attributes:
        image: Bᵀ.
        kernel: G.
        result: Aᵀ.
    """

    image: Array
    kernel: Array
    result: Array

    @property
    def tile(self) -> int:
        """The size m of a tile of the result."""
        return len(self.result)


WINOGRAD: Mapping[str, WinogradTransforms] = {
    "winograd-f2": WinogradTransforms(
        np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.float64),
        np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
        np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.float64),
    ),
    "winograd-f4": WinogradTransforms(
        np.array(
            [
                [4, 0, -5, 0, 1, 0],
                [0, -4, -4, 1, 1, 0],
                [0, 4, -4, -1, 1, 0],
                [0, -2, -1, 2, 1, 0],
                [0, 2, -1, -2, 1, 0],
                [0, 4, 0, -5, 0, 1],
            ],
            np.float64,
        ),
        np.array(
            [
                [1 / 4, 0, 0],
                *([-1 / 6, s / 6, -1 / 6] for s in (-1, 1)),
                *([1 / 24, s / 12, 1 / 6] for s in (1, -1)),
                [0, 0, 1],
            ]
        ),
        np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]], np.float64),
    ),
}
"""The transforms of A. Lavin and S. Gray, "Fast algorithms for convolutional neural networks", 2016, section 4."""


def make_convolution_rules(
    algorithm: Convolution, stored: Format, signs: Signs, products: Mapping[Operation, Rule]
) -> dict[Operation, Rule]:
    """Return the rules of convolutions that an algorithm computes.

    Args:
        algorithm: The algorithm.
        stored: The format in which transformed images and kernels are stored: that of the tested element type.
        signs: The directions of the round.
        products: The rules of products whose factors are rounded; empty if they are not. They apply to the products
            of transformed images and kernels.

    Returns:
        The rules; none for direct sums.
    """
    if algorithm == "direct":
        return {}
    if algorithm == "fft":
        return replace_convolutions(partial(_convolve_by_fourier, products, signs), has_unit_steps)
    convolve = partial(_convolve_by_winograd, WINOGRAD[algorithm], stored, products, signs)
    return replace_convolutions(convolve, _is_three_by_three)


def replace_convolutions(convolve: Convolve, accepts: Callable[[SlidingKernel], bool]) -> dict[Operation, Rule]:
    """Return rules that compute `SlidingKernel.result` and `SlidingKernel.image_of` with `convolve`.

    Args:
        convolve: Computes a correlation without padding.
        accepts: Returns whether `convolve` computes the convolution of a kernel; others are computed as usual.

    Returns:
        The rules.
    """
    computed = {SlidingKernel.result: _compute_result, SlidingKernel.image_of: _compute_image}
    return {(method, ""): partial(_compute_accepted, partial(f, convolve), accepts) for method, f in computed.items()}


Convolve = Callable[[Array, Array], Array]
"""Returns y[n, g, c] = Σ x[n, g, j] * w[g, c, j] over j, where * correlates the last axes without padding."""


def has_unit_steps(sliding: SlidingKernel) -> bool:
    """Return whether stride and dilation are 1, and the kernel has a position on every axis."""
    return all(step == 1 for step in (*sliding.stride, *sliding.dilation)) and 0 not in (*sliding.positions,)


def _is_three_by_three(sliding: SlidingKernel) -> bool:
    """Return whether the kernel has 3 × 3 elements, and stride and dilation are 1."""
    return tuple(sliding.kernel) == (3, 3) and has_unit_steps(sliding)


def _compute_accepted(
    compute: Callable[[SlidingKernel, Array, Array], Array],
    accepts: Callable[[SlidingKernel], bool],
    function: Callable[..., Any],
    operands: list[Any],
    keywords: dict[str, Any],
) -> Any:
    """Return the result of `compute`; NotImplemented if the kernel is not accepted, or if an operand is empty."""
    sliding, numbers, w = operands
    if not accepts(sliding) or not (numbers.size and w.size):
        return NotImplemented
    return compute(sliding, numbers, w)


def _compute_result(convolve: Convolve, sliding: SlidingKernel, x: Array, w: Array) -> Array:
    """Return `sliding.result(x, w)`, computed with `convolve`."""
    margins = [(0, 0)] * (x.ndim - len(sliding.kernel)) + [(size, size) for size in sliding.padding]
    images = np.pad(x, margins, constant_values=sliding.margin)
    return _convolve_groups(convolve, images, w.reshape(sliding.groups, -1, *w.shape[1:]), sliding)


def _compute_image(convolve: Convolve, sliding: SlidingKernel, y: Array, w: Array) -> Array:
    """Return `sliding.image_of(y, w)`, computed with `convolve`."""
    rank = len(sliding.kernel)
    padded = np.pad(y, [(0, 0)] * (y.ndim - rank) + [(size - 1, size - 1) for size in sliding.kernel])
    flipped = np.flip(w.reshape(sliding.groups, -1, *w.shape[1:]), tuple(range(-rank, 0)))
    image = _convolve_groups(convolve, padded, np.swapaxes(flipped, 1, 2), sliding)
    sizes = zip(sliding.padding, sliding.image, strict=True)
    inside: tuple[Any, ...] = (..., *(slice(pad, pad + size) for pad, size in sizes))
    return np.asarray(image[inside])


def _convolve_groups(convolve: Convolve, images: Array, kernels: Array, sliding: SlidingKernel) -> Array:
    """Return the correlation of images with the kernels of each group, with the channels of all groups on one axis."""
    spatial = images.shape[-len(sliding.kernel) :]
    lead = images.shape[: -len(spatial) - 1]
    grouped = images.reshape(prod(lead), sliding.groups, images.shape[-len(spatial) - 1] // sliding.groups, *spatial)
    sums = convolve(grouped, kernels)
    return sums.reshape(*lead, sums.shape[1] * sums.shape[2], *sums.shape[3:])


def _convolve_by_winograd(
    transforms: WinogradTransforms,
    stored: Format,
    products: Mapping[Operation, Rule],
    signs: Signs,
    images: Array,
    kernels: Array,
) -> Array:
    """Return a correlation with 3 × 3 kernels through Winograd's transforms, each of whose steps is rounded.

    Products of transformed images and kernels follow the rules `products`. The size of the errors of float32 agrees
    with the analysis of B. Barabasz et al., "Error analysis and improving the accuracy of Winograd convolution for deep
    neural networks", 2020.
    """
    m, sizes = transforms.tile, [size - 2 for size in images.shape[-2:]]
    counts = [-(-size // m) for size in sizes]
    padded = np.pad(
        images, [(0, 0)] * 3 + [(0, count * m + 2 - n) for count, n in zip(counts, images.shape[-2:], strict=True)]
    )
    tiles = sliding_window_view(padded, (m + 2, m + 2), (-2, -1))[..., ::m, ::m, :, :]
    u = _move_stored(_transform(transforms.image, tiles, signs), stored, signs)
    v = _move_stored(_transform(transforms.kernel, kernels, signs), stored, signs)
    u, v = np.moveaxis(u, (-2, -1, 1, 2), (0, 1, 2, 3)), np.moveaxis(v, (-2, -1), (0, 1))
    columns = u.reshape(*u.shape[:4], -1)  # (a, b, group, channel, tile) and (a, b, group, kernel, channel)
    sums = Arithmetic(products).compute((np.matmul, "__call__"), np.matmul, [v, columns], {})
    terms = accumulation_terms(u.shape[3], np.abs(v) @ np.abs(columns), v**2 @ columns**2, sums)
    sums = _move_inexact(sums, SINGLE.epsilon * terms, signs)
    grid = np.moveaxis(sums.reshape(*sums.shape[:4], len(images), *counts), (4, 2, 3, 5, 6, 0, 1), range(7))
    tiles_of_result = _transform(transforms.result, grid, signs)  # (sample, group, kernel, row, column, m, m)
    joined = np.moveaxis(tiles_of_result, -2, -3).reshape(*grid.shape[:3], counts[0] * m, counts[1] * m)
    return np.asarray(joined[..., : sizes[0], : sizes[1]])


def _transform(matrix: Array, tiles: Array, signs: Signs) -> Array:
    """Return matrix · tile · matrixᵀ for each tile; both products are rounded."""
    for _ in range(2):
        sizes = np.abs(tiles) @ np.abs(matrix).T
        tiles = np.swapaxes(_move_inexact(tiles @ matrix.T, spacing(sizes, SINGLE) / 2, signs), -1, -2)
    return tiles


def _move_inexact(numbers: Array, size: Array, signs: Signs) -> Array:
    """Return numbers moved by `size` up or down, unless float32 represents them."""
    return np.where(round_to(numbers, SINGLE) == numbers, numbers, numbers + signs.draw(numbers.shape) * size)


def _move_stored(numbers: Array, stored: Format, signs: Signs) -> Array:
    """Return transformed numbers moved by half an ulp of the format in which they are stored, if it is narrower."""
    if stored.precision >= SINGLE.precision:
        return numbers  # they are rounded already
    return move_unrepresentable(numbers, stored, signs.draw(numbers.shape))


def convolve_directly(images: Array, kernels: Array) -> Array:
    """Return y[n, g, c] = Σ x[n, g, j] * w[g, c, j] over j, where * correlates the last axes without padding."""
    rank = kernels.ndim - 3
    windows = sliding_window_view(images, kernels.shape[-rank:], tuple(range(-rank, 0)))
    letters = "xyz"[:rank], "abd"[:rank]
    formula = f"ngj{letters[0]}{letters[1]},gcj{letters[1]}->ngc{letters[0]}"
    return np.asarray(np.einsum(formula, windows, kernels))


def _convolve_by_fourier(products: Mapping[Operation, Rule], signs: Signs, images: Array, kernels: Array) -> Array:
    """Return a correlation through Fourier transforms, whose errors are relative to the norms of image and kernel.

    The root mean square error of a fast Fourier transform of N numbers is about 0.6 eps √log₂N relative to their norm
    (J. C. Schatzman, "Accuracy of the discrete Fourier transform and the fast Fourier transform", 1996). The errors
    move each result by eps · log₂N times the root mean square of the image times the norm of the kernel. Products of
    the spectra of image and kernel follow the rules `products`.
    """
    rank = kernels.ndim - 3
    axes = tuple(range(-rank, 0))
    with np.errstate(all="ignore"):
        sums = convolve_directly(images, kernels) + _move_spectra(products, images, kernels)
        power = np.einsum("ngj,gcj->ngc", np.mean(images**2, axes), np.sum(kernels**2, axes))
    size = SINGLE.epsilon * max(log2(max(prod(images.shape[-rank:]), 2)), 1.0) * np.sqrt(power)
    return np.asarray(sums + signs.draw(sums.shape) * size[(..., *[np.newaxis] * rank)])


def _move_spectra(products: Mapping[Operation, Rule], images: Array, kernels: Array) -> Array:
    """Return how much the rules of products change a correlation through Fourier transforms.

    Args:
        products: The rules of products of the complex spectra.
        images: The images, (n, g, j, *spatial).
        kernels: The kernels, (g, c, j, *spatial).

    Returns:
        The change of each result, (n, g, c, *positions); a single 0 without rules.
    """
    if not products:
        return np.zeros(())
    sizes = images.shape[3:]
    axes = tuple(range(-len(sizes), 0))
    spectra = [np.fft.rfftn(images, sizes, axes), np.fft.rfftn(kernels, sizes, axes).conj()]
    formula = "ngj...,gcj...->ngc..."
    moved = Arithmetic(products).compute((np.einsum, ""), np.einsum, [formula, *spectra], {})
    change = np.fft.irfftn(moved - np.einsum(formula, *spectra), sizes, axes)
    positions = (slice(size - reach + 1) for size, reach in zip(sizes, kernels.shape[3:], strict=True))
    inside: tuple[Any, ...] = (..., *positions)
    return np.asarray(change[inside])
