"""Indices of the CPU: PyTorch takes them for tensors of any device, and leaves it to that to bring them there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from diopi_torch.settings import NAME

_INDICES = "List[Optional[Tensor]]"
"""The type of an argument that indexes another, in schemas."""


def with_indices_here(operator: torch._ops.OpOverload, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose indices may be on the CPU; the kernel itself if its operator takes none."""
    places = [place for place, argument in enumerate(operator._schema.arguments) if str(argument.type) == _INDICES]
    if not places:
        return kernel
    (place,) = places

    def brought(*args: Any, **kwargs: Any) -> Any:
        indices = [index if index is None else index.to(NAME) for index in args[place]]
        return kernel(*args[:place], indices, *args[place + 1 :], **kwargs)

    return brought
