"""Windows as models have them, for convolutions, transposed ones, unrolled ones, and pooling: alike on every axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Window:
    """One window for all of three axes, of which a function has the last one, two or three."""

    kernel: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    @property
    def attributes(self) -> dict[str, Any]:
        """What convolutions and pooling have in common, for three axes."""
        return {name: (value,) * 3 for name, value in vars(self).items()}

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Sizes of an input for as many windows as `BEGINNING` says, or more, longer than a kernel, and with a rest."""
        reach = self.dilation * (self.kernel - 1) + 1 - 2 * self.padding
        first, second, third = (
            max(reach + self.stride * (n - 1) + self.stride // 2, self.kernel + n) for n in BEGINNING
        )
        return first, second, third


BEGINNING = (1, 2, 4)
"""How many windows begin on each axis; from so many elements a transposed convolution makes those it is laid over."""

WINDOWS: Mapping[str, Window] = {
    "kernel-7": Window(7, padding=3),
    "kernel-7-stride-2": Window(7, 2, 3),
    "kernel-7-stride-4": Window(7, 4, 3),
    "kernel-5-stride-3": Window(5, 3, 2),
    "kernel-4-stride-4": Window(4, 4),
    "dilation-2": Window(3, 1, 1, 2),
    "dilation-4": Window(3, 1, 1, 4),
    "dilation-2-stride-2": Window(3, 2, 1, 2),
    "dilation-4-stride-4": Window(3, 4, 1, 4),
    "dilation-3-stride-2-kernel-5": Window(5, 2, 2, 3),
}
"""Padding is at most half of the kernel, as pooling takes it."""
