"""Support for CPU tensors as indices; PyTorch accepts them for all devices and lets the device copy them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from diopi_torch.settings import NAME

_INDICES = "List[Optional[Tensor]]"
"""The type of index arguments in schemas."""


def accept_cpu_indices(operator: torch._ops.OpOverload, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that also accepts indices on the CPU, or `kernel` itself if the operator has no indices."""
    places = [place for place, argument in enumerate(operator._schema.arguments) if str(argument.type) == _INDICES]
    if not places:
        return kernel
    (place,) = places

    def move_indices(*args: Any, **kwargs: Any) -> Any:
        """Copy the indices to the device and call the kernel."""
        indices = [index if index is None else index.to(NAME) for index in args[place]]
        return kernel(*args[:place], indices, *args[place + 1 :], **kwargs)

    return move_indices
