"""Cases that PyTorch supports, but not with its CPU kernels.

The suite still demands these cases, because other devices of PyTorch support them. Calls that PyTorch rejects on every
device are not listed here: they are in the class `open` (`diopi_test.cases.selection.open_calls`). Kernel defects that
`torch_cpu` shares are among the waivers of `torch_cpu`.
"""

from __future__ import annotations

from diopi_impl.base import Waiver

BOOL = "only accelerators have a kernel for bool"
"""The reason for cases of bool."""

HALF = "only accelerators have a kernel for half precision"
"""The reason for half-precision cases."""

STATISTICS = "the statistics of half-precision inputs are float32 on accelerators, and half precision on the CPU"
"""The reason for cases that return statistics of half-precision inputs."""

CONTIGUOUS = "the kernel reads its tensors as if they were contiguous; callers copy them first"
"""The reason for cases of tensors that are not contiguous."""

LIMITS = (
    Waiver("diopiAbs*[bool-*]", BOOL),
    Waiver("diopiAvgPool3d*[*float16-*]", HALF),
    Waiver("diopiBatchNorm*[*float16-*]", STATISTICS),
    Waiver("diopiLayerNorm*[*float16-*]", STATISTICS),
    Waiver("diopiGroupNorm*[*float16-*]", STATISTICS),
    Waiver("diopiAdaptiveMaxPool3dBackward[float32-channels-last]", CONTIGUOUS),
    Waiver("diopiNLLLoss*[float32-uint8-*]", "only accelerators have a kernel for images and classes of uint8"),
)
"""The limits, as waivers of the vendor."""
