"""Windows from real models for convolutions, transposed convolutions, unfolding and pooling; equal on every axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Window:
    """A window with the same size on each axis, for functions with one, two or three spatial axes.

    Attributes:
        kernel: The number of elements of the window along an axis.
        stride: The distance of the beginnings of neighboring windows.
        padding: The number of elements added at either end of an axis.
        dilation: The distance of neighboring elements of the window.
    """

    kernel: int
    stride: int = 1
    padding: int = 0
    _: KW_ONLY
    dilation: int = 1

    COUNTS: ClassVar = (1, 2, 4)
    """The least numbers of windows along the three axes; a transposed convolution has as many input elements."""

    @property
    def attributes(self) -> dict[str, Any]:
        """Return kernel, stride, padding and dilation by name, each as a tuple for three axes."""
        return {name: (value,) * 3 for name, value in vars(self).items()}

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Return the sizes of an input's three axes.

        Each size is larger than the kernel and has room for at least the number of windows in `COUNTS`. With a stride
        above 1, some elements may remain after the last window.
        """
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
