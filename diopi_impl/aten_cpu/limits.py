"""Cases that PyTorch serves, but not by the kernels that it has for the CPU.

They stay demanded: other devices of PyTorch serve them. What PyTorch refuses on every device is no matter of these
limits; such cases are of the class `open` (`diopi_test.cases.open_calls`). Defects of kernels that `torch_cpu` shares
are among its waivers.
"""

from __future__ import annotations

from diopi_impl.base import Waiver

BOOL = "only accelerators have a kernel for bool"
HALF = "only accelerators have a kernel for half precision"
STATISTICS = "statistics beside half precision are float32 on accelerators, and half precision on the CPU"
CONTIGUOUS = "the kernel reads its tensors as if they were contiguous; callers copy them first"

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
