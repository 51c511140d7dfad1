"""Storages on the device: saving, loading, pickling, deep copies and resizing.

PyTorch allocates these storages with the C++ allocator of the device. A device without compiled code has none, and the
process would abort. Therefore the Python methods that PyTorch uses for these purposes are replaced here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.storage import _StorageBase

from diopi_torch.settings import NAME
from diopi_torch.tensors import allocate_on_current_stream, copy_bytes


def view_bytes(storage: Any) -> torch.Tensor:
    """Return a tensor over the bytes of a storage."""
    nbytes = storage.nbytes()
    tensor = (
        allocate_on_current_stream([0], torch.uint8)
        if storage.device.type == NAME
        else torch.empty(0, dtype=torch.uint8)
    )
    return tensor.set_(storage, 0, [nbytes], [1])


def _copy_to_device(storage: Any) -> torch.UntypedStorage:
    """Return a new storage on the device with the bytes of a storage, which may be on any device."""
    copy = allocate_on_current_stream([storage.nbytes()], torch.uint8)
    if storage.nbytes():
        copy_bytes(copy, view_bytes(storage))
    return copy.untyped_storage()


def _replace_clone(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of `clone`; for storages on other devices it calls `original`."""

    def clone(self: Any) -> Any:
        """Return a copy of this storage."""
        return _copy_to_device(self) if self.device.type == NAME else original(self)

    return clone


def _replace_to(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of `to`; for other target devices it calls `original`."""

    def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
        """Return this storage if it is on the target device, and otherwise a copy there."""
        if torch.device(device).type != NAME:
            return original(self, device=device, non_blocking=non_blocking)
        return self if self.device.type == NAME else _copy_to_device(self)

    return to


def _replace_cpu(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of `cpu`; for storages on other devices it calls `original`."""

    def cpu(self: Any) -> Any:
        """Return this storage if it is on the CPU, and otherwise a copy there."""
        return view_bytes(self).cpu().untyped_storage() if self.device.type == NAME else original(self)

    return cpu


def _replace_resize(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of `resize_`; for storages on other devices it calls `original`."""

    def resize_(self: Any, size: int) -> Any:
        """Reallocate this storage with `size` bytes and return it; added bytes are undefined."""
        if self.device.type != NAME:
            return original(self, size)
        resized = allocate_on_current_stream([size], torch.uint8)
        if common := min(size, self.nbytes()):
            copy_bytes(resized[:common], view_bytes(self)[:common])
        # PyTorch swaps the memory of two storages only if one of them is empty
        for replacement in (allocate_on_current_stream([0], torch.uint8), resized):
            self._swap_data_ptr_(replacement.untyped_storage())
        return self

    return resize_


def _replace_new(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of the constructor; for other devices it calls `original`."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        """Return a new storage with a number of bytes, or with the elements of a sequence."""
        device = kwargs.get("device")
        if device is None or torch.device(device).type != NAME:
            return original(cls, *args, **kwargs)
        size = args[0] if args else kwargs.get("size", 0)
        if isinstance(size, int):
            return allocate_on_current_stream([size], torch.uint8).untyped_storage()
        return _copy_to_device(original(cls, size))

    return new


def install() -> None:
    """Replace methods of PyTorch. For other devices, the replacements call the original methods."""
    for name, wrap in (("clone", _replace_clone), ("to", _replace_to), ("cpu", _replace_cpu)):
        setattr(_StorageBase, name, wrap(getattr(_StorageBase, name)))
    torch.UntypedStorage.__new__ = _replace_new(torch.UntypedStorage.__new__)  # type: ignore[method-assign]  # the replacement is intended
    torch.UntypedStorage.resize_ = _replace_resize(torch.UntypedStorage.resize_)  # type: ignore[method-assign]  # the replacement is intended
