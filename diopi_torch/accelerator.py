"""Support for `torch.accelerator`: its functions call those of `torch.diopi`.

These are the functions for synchronization, streams and memory. For other accelerators they still call PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import torch

from diopi_torch import device
from diopi_torch.settings import NAME

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "device_count": device.device_count,
    "current_device_index": device.current_device,
    "current_device_idx": device.current_device,
    "set_device_index": device.set_device,
    "set_device_idx": device.set_device,
    "device_index": device.device,
    "synchronize": device.synchronize,
    "current_stream": device.current_stream,
    "set_stream": device.set_stream,
    "empty_cache": device.empty_cache,
    "empty_host_cache": device.empty_host_cache,
    "get_device_capability": device.get_device_capability,
    "get_memory_info": device.mem_get_info,
    "memory_allocated": device.memory_allocated,
    "max_memory_allocated": device.max_memory_allocated,
    "memory_reserved": device.memory_reserved,
    "max_memory_reserved": device.max_memory_reserved,
    "memory_stats": device.memory_stats,
    "reset_accumulated_memory_stats": device.reset_accumulated_memory_stats,
    "reset_peak_memory_stats": device.reset_peak_memory_stats,
}
"""The implementations, by the name of the function in PyTorch."""


def _dispatch_by_device(original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper that calls `replacement` if this device is PyTorch's current accelerator, else `original`."""

    @wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        """Call `replacement` or `original`, depending on the current accelerator."""
        if torch.compiler.is_compiling():  # the tracer supports only the original functions
            return original(*args, **kwargs)
        accelerator = torch.accelerator.current_accelerator()
        return (replacement if accelerator is not None and accelerator.type == NAME else original)(*args, **kwargs)

    return function


def install() -> None:
    """Replace the functions of `torch.accelerator` by wrappers that support the device."""
    for module in (torch.accelerator, torch.accelerator.memory):
        for name, replacement in FUNCTIONS.items():
            if hasattr(module, name):
                setattr(module, name, _dispatch_by_device(getattr(module, name), replacement))
