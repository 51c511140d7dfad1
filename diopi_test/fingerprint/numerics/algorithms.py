"""The algorithms of convolutions, revealed by elements that a direct convolution does not touch.

Each image contains a single 1, and the last row and the last column of each kernel are zero. A direct convolution
leaves exact zeros beyond the reach of the other elements of the kernel. The transforms of Winograd spread rounding
errors over a tile of the result, and a Fourier transform spreads them over the image.

A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from diopi_impl.numerics.declaration import Convolution
from diopi_test.fingerprint.numerics.operators import Operators, random_normal
from diopi_test.fingerprint.probe import ProbeFailedError
from lib_rt.dtypes import Array

LENGTH = 32
"""Rows and columns of the images."""

POSITIONS = range(12, 20)
"""Rows and columns of the single 1, in all positions relative to tiles of up to eight elements."""

CHANNELS = 16
"""Channels of the images and of the results."""

KERNELS = (3, 5)
"""Sizes of kernels."""

ALGORITHM_OF_REACH: Mapping[int, Convolution] = {0: "direct", 1: "winograd-f2", 3: "winograd-f4"}
"""The algorithm by the largest distance of a changed element from the elements that the kernel reaches.

F(m × m, 3 × 3) changes elements of the same tile, m − 1 elements beyond the kernel's reach.
"""

TILE_OF_SIX = 5
"""The distance for F(6 × 6, 3 × 3), which can't be declared."""


@final
@dataclass(frozen=True)
class ConvolutionReach:
    """How far a convolution changes elements that its kernel does not reach.

    Attributes:
        kernel: the size of the kernel.
        reach: the largest distance from the elements that the kernel reaches.
    """

    kernel: int
    reach: int

    @property
    def algorithm(self) -> Convolution | None:
        """The algorithm that has this effect; None if it can't be declared."""
        if self.reach in ALGORITHM_OF_REACH:
            return ALGORITHM_OF_REACH[self.reach]
        if self.reach > TILE_OF_SIX:
            return "fft"
        return "winograd-f4" if self.reach < TILE_OF_SIX else None

    def __str__(self) -> str:
        kernel = f"convolutions with kernels of {self.kernel} × {self.kernel}"
        if self.reach == 0:
            return f"{kernel}: direct"
        names: Mapping[Convolution | None, str] = {
            "winograd-f2": "Winograd F(2 × 2, 3 × 3)",
            "winograd-f4": "Winograd F(4 × 4, 3 × 3)",
            "fft": "a Fourier transform",
            None: "Winograd F(6 × 6, 3 × 3), which can't be declared",
        }
        return f"{kernel}: rounding errors up to {self.reach} elements beyond the kernel: {names[self.algorithm]}"


def measure_algorithms(operators: Operators) -> list[ConvolutionReach]:
    """Return the effect of convolutions by size of the kernel; empty if the vendor has no convolution."""
    try:
        return [ConvolutionReach(kernel, _measure_reach(operators, kernel)) for kernel in KERNELS]
    except ProbeFailedError:
        return []


def _measure_reach(operators: Operators, kernel: int) -> int:
    images = np.zeros((len(POSITIONS), CHANNELS, LENGTH, LENGTH), np.float32)
    for number, position in enumerate(POSITIONS):
        images[number, number, position, position] = 1
    kernels = random_normal(5, CHANNELS, CHANNELS, kernel, kernel)
    kernels[..., -1, :] = kernels[..., -1] = 0
    result = operators.convolve(images, kernels, padding=kernel // 2)
    return max(_distance(image, position, kernel // 2) for image, position in zip(result, POSITIONS, strict=True))


def _distance(result: Array, position: int, half: int) -> int:
    """Return how far beyond the elements that a kernel of size 2 · half + 1 reaches an element is not zero."""
    places = np.concatenate(np.nonzero(result.any(0)))
    before, after = position - (half - 1) - places, places - (position + half)
    return int(np.maximum(before, after).max(initial=0))
