"""Find the algorithm with which a vendor computes convolutions: direct, Winograd's or a Fourier transform.

Each probed image contains a single 1, and all its other elements are 0. Where the kernel does not reach the 1, a direct
convolution returns exact zeros. Winograd's algorithm F(m × m, 3 × 3) computes tiles of m × m elements and spreads
rounding errors over a tile. A Fourier transform spreads them over the whole image. The largest distance of a nonzero
element therefore shows the algorithm. The last row and column of each kernel are 0, so that the kernel reaches fewer
elements than a tile has.

Source: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, section 4.
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
"""The row of the single 1 in each image, which is also its column.

Eight successive positions are all positions relative to tiles of up to 8 × 8 elements.
"""

CHANNELS = 16
"""The number of channels of the images and of the results."""

KERNELS = (3, 5)
"""The heights, which are also the widths, of the kernels."""

ALGORITHM_OF_REACH: Mapping[int, Convolution] = {0: "direct", 1: "winograd-f2", 3: "winograd-f4"}
"""The algorithm by its reach: the largest distance of a nonzero element from the elements that the kernel reaches.

For F(m × m, 3 × 3), the reach is m − 1.
"""

TILE_OF_SIX = 5
"""The reach of F(6 × 6, 3 × 3), which a vendor can't declare."""


@final
@dataclass(frozen=True)
class ConvolutionReach:
    """How far from the elements that the kernel reaches a convolution returns nonzero elements.

    Attributes:
        kernel: the height and width of the kernel.
        reach: the distance in elements; 0 for a direct convolution.
    """

    kernel: int
    reach: int

    @property
    def algorithm(self) -> Convolution | None:
        """The algorithm with this reach; None if it can't be declared.

        Between two reaches of `ALGORITHM_OF_REACH`, and below `TILE_OF_SIX`, it is Winograd's with tiles of 4 × 4.
        """
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
    """Return the reach of convolutions for each size of `KERNELS`; empty if the vendor has no convolution."""
    try:
        return [ConvolutionReach(kernel, _measure_reach(operators, kernel)) for kernel in KERNELS]
    except ProbeFailedError:
        return []


def _measure_reach(operators: Operators, kernel: int) -> int:
    """Return the largest reach of convolutions with random `kernel` × `kernel` kernels, over all `POSITIONS`."""
    images = np.zeros((len(POSITIONS), CHANNELS, LENGTH, LENGTH), np.float32)
    for number, position in enumerate(POSITIONS):
        images[number, number, position, position] = 1
    kernels = random_normal(5, CHANNELS, CHANNELS, kernel, kernel)
    kernels[..., -1, :] = kernels[..., -1] = 0
    result = operators.convolve(images, kernels, padding=kernel // 2)
    return max(_distance(image, position, kernel // 2) for image, position in zip(result, POSITIONS, strict=True))


def _distance(result: Array, position: int, half: int) -> int:
    """Return the reach in one result.

    Args:
        result: the result of the convolution, of shape (channels, rows, columns).
        position: the row and column of the single 1 in the image.
        half: half of the size of the kernel, rounded down.

    Returns:
        The largest distance of a nonzero element from the elements that the kernel reaches; 0 if no other element is
        nonzero.
    """
    places = np.concatenate(np.nonzero(result.any(0)))
    elements_before, elements_after = position - (half - 1) - places, places - (position + half)
    return int(np.maximum(elements_before, elements_after).max(initial=0))
