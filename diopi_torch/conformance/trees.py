"""Change and list the tensors in the arguments and results of a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

TensorChange = Callable[[torch.Tensor], torch.Tensor]
"""A function that returns a replacement for a tensor."""


def map_tensors(change: TensorChange, value: Any) -> Any:
    """Return a value in which each tensor is replaced by `change(tensor)`, also in lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(change, entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        entries = [map_tensors(change, entry) for entry in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    return value


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a value, also those in lists, tuples and the values of dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from tensors_of(entry)


class TensorCopies:
    """Copies the tensors of one call to a device, with their strides and with the memory that they share.

    Args:
        device: the device of the copies.
        change: a change of each copy, for example to a noncontiguous tensor.

    Attributes:
        leaves: the copies that require gradients, before the change.
    """

    def __init__(self, device: str, change: TensorChange | None = None) -> None:
        self._device = device
        self._change = change
        self._storages: dict[Any, torch.Tensor] = {}
        self.leaves: list[torch.Tensor] = []

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy of a CPU tensor on the device, changed by the function `change`."""
        source = tensor.detach().resolve_conj().resolve_neg()
        copied = self._copy_strided(source) if source.layout is torch.strided else source.to(self._device, copy=True)
        if tensor.requires_grad:
            self.leaves.append(copied.requires_grad_())
        return copied if self._change is None else self._change(copied)

    def _copy_strided(self, source: torch.Tensor) -> torch.Tensor:
        """Return a copy within a copy of the whole storage, which other tensors of the call may share."""
        storage = source.untyped_storage()
        key = storage.data_ptr(), source.dtype
        if not storage.nbytes():
            return source.to(self._device, copy=True)
        if key not in self._storages:
            self._storages[key] = torch.empty(0, dtype=source.dtype).set_(storage).to(self._device, copy=True)
        return self._storages[key].as_strided(source.shape, source.stride(), source.storage_offset())
