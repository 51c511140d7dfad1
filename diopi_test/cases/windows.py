"""Windows from real models for convolutions, transposed convolutions, unfolding and pooling; equal on every axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Window:
    """The same window on three axes; a function uses the last one, two or three axes."""

    kernel: int
    stride: int = 1
    padding: int = 0
    _: KW_ONLY
    dilation: int = 1

    COUNTS: ClassVar = (1, 2, 4)
    """The number of windows that begin on each axis; a transposed convolution has as many input elements."""

    @property
    def attributes(self) -> dict[str, Any]:
        """Return the attributes that convolutions and pooling share, for three axes."""
        return {name: (value,) * 3 for name, value in vars(self).items()}

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Return input sizes with at least `COUNTS` windows, longer than a kernel, and with a remainder."""
        reach = self.dilation * (self.kernel - 1) + 1 - 2 * self.padding
        first, second, third = (
            max(reach + self.stride * (n - 1) + self.stride // 2, self.kernel + n) for n in self.COUNTS
        )
        return first, second, third


WINDOWS: Mapping[str, Window] = {
    "kernel-7": Window(7, padding=3),
    "kernel-7-stride-2": Window(7, 2, 3),
    "kernel-7-stride-4": Window(7, 4, 3),
    "kernel-5-stride-3": Window(5, 3, 2),
    "kernel-4-stride-4": Window(4, 4),
    "dilation-2": Window(3, 1, 1, dilation=2),
    "dilation-4": Window(3, 1, 1, dilation=4),
    "dilation-2-stride-2": Window(3, 2, 1, dilation=2),
    "dilation-4-stride-4": Window(3, 4, 1, dilation=4),
    "dilation-3-stride-2-kernel-5": Window(5, 2, 2, dilation=3),
}
"""Windows by label. Padding is at most half of the kernel, because pooling requires that."""
