"""Storages on the device: saving, loading, pickling, deep copies, and other sizes.

PyTorch makes storages for these by its C++ allocator of the device, of which a device without compiled code has none;
asking for it ends the process. So the methods of Python through which all of this goes make them here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.storage import _StorageBase

from diopi_torch.settings import NAME
from diopi_torch.tensors import copy_bytes, new


def _bytes_of(storage: Any) -> torch.Tensor:
    """The bytes of a storage as a tensor over them."""
    nbytes = storage.nbytes()
    tensor = new([0], torch.uint8) if storage.device.type == NAME else torch.empty(0, dtype=torch.uint8)
    return tensor.set_(storage, 0, [nbytes], [1])


def _copied(storage: Any) -> torch.UntypedStorage:
    """A copy of a storage on the device."""
    copy = new([storage.nbytes()], torch.uint8)
    if storage.nbytes():
        copy_bytes(copy, _bytes_of(storage))
    return copy.untyped_storage()


def _clone(original: Callable[..., Any]) -> Callable[..., Any]:
    def clone(self: Any) -> Any:
        """Return a copy of this storage."""
        return _copied(self) if self.device.type == NAME else original(self)

    return clone


def _to(original: Callable[..., Any]) -> Callable[..., Any]:
    def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
        """Return this storage on a device; itself if it is there."""
        if torch.device(device).type != NAME:
            return original(self, device=device, non_blocking=non_blocking)
        return self if self.device.type == NAME else _copied(self)

    return to


def _cpu(original: Callable[..., Any]) -> Callable[..., Any]:
    def cpu(self: Any) -> Any:
        """Return a CPU copy of this storage if it is not on the CPU."""
        return _bytes_of(self).cpu().untyped_storage() if self.device.type == NAME else original(self)

    return cpu


def _resize(original: Callable[..., Any]) -> Callable[..., Any]:
    def resize_(self: Any, size: int) -> Any:
        """Change the size of this storage to so many bytes; the first ones stay as they are."""
        if self.device.type != NAME:
            return original(self, size)
        resized = new([size], torch.uint8)
        if common := min(size, self.nbytes()):
            copy_bytes(resized[:common], _bytes_of(self)[:common])
        for replacement in (new([0], torch.uint8), resized):  # one of two storages that are swapped has to be empty
            self._swap_data_ptr_(replacement.untyped_storage())
        return self

    return resize_


def install() -> None:
    """Put the methods in the place of PyTorch's, which go on for other devices."""
    for name, wrap in (("clone", _clone), ("to", _to), ("cpu", _cpu)):
        setattr(_StorageBase, name, wrap(getattr(_StorageBase, name)))
    torch.UntypedStorage.resize_ = _resize(torch.UntypedStorage.resize_)  # type: ignore[method-assign]  # as said above
