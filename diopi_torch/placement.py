"""Run each kernel on the device of its tensors.

PyTorch's compiled code selects the device before it calls a kernel. For devices in Python, this code knows only device
0. Therefore the kernels select the device themselves, if the vendor has several devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch

from diopi_torch.backend import backend, has_several_devices
from diopi_torch.settings import NAME


def run_on_device_of_tensors(kernel: Callable[..., Any], *, copies_between_devices: bool = False) -> Callable[..., Any]:
    """Return a kernel that runs on the device of its tensors, or on the device in the argument `device`.

    A kernel without both runs on the current device of the thread.

    Args:
        kernel: the kernel.
        copies_between_devices: whether the tensors may be on different devices; the last one determines the device.

    Returns:
        The kernel. It raises RuntimeError if the tensors are on different devices although they must not.
    """

    @wraps(kernel)
    def run(*args: Any, **kwargs: Any) -> Any:
        """Select the device and run the kernel."""
        if not has_several_devices():
            return kernel(*args, **kwargs)
        indices = list(_tensor_devices((*args, *kwargs.values())))
        if len(set(indices)) > 1 and not copies_between_devices:
            first, second = list(dict.fromkeys(indices))[:2]
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{NAME}:{first} and {NAME}:{second}!"
            )
        requested = kwargs.get("device")
        if isinstance(requested, torch.device) and requested.type == NAME and requested.index is not None:
            indices.append(requested.index)
        device = backend().device_at(indices[-1]) if indices else backend()
        with device.runtime.on_device(device.index):
            return kernel(*args, **kwargs)

    return run


def _tensor_devices(value: Any) -> Iterator[int]:
    """Yield the numbers of the devices of all tensors in nested lists; tensors that are not on a device are ignored."""
    if isinstance(value, torch.Tensor):
        if value.device.type == NAME:
            yield value.device.index
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _tensor_devices(entry)
