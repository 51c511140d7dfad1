"""Pinned memory: CPU tensors that PyTorch reports as page-locked.

The runtime of the standard copies between the device and any memory of the host, so there are no pages to lock.
Programs for devices with pinned memory must still run, for example a `DataLoader` with `pin_memory=True`. Therefore
`pin_memory` copies a tensor to a new block of ordinary memory, and `is_pinned` recognizes tensors in such a block.
Copies between these tensors and the device are neither faster nor asynchronous.
"""

from __future__ import annotations

import weakref

import numpy as np
import torch

from diopi_torch.layout import contiguous_strides
from diopi_torch.tensors import is_dense

_addresses: set[int] = set()
"""The addresses of all blocks that are in use."""


def pin_memory(self: torch.Tensor, device: torch.device | None = None) -> torch.Tensor:
    """Return a pinned copy of a CPU tensor; it has the same strides if the tensor is dense."""
    block = np.empty(max(self.numel() * self.dtype.itemsize, 1), np.uint8)
    address = block.ctypes.data
    _addresses.add(address)
    weakref.finalize(block, _addresses.discard, address).atexit = False
    strides = self.stride() if is_dense(self) else contiguous_strides(tuple(self.shape))
    elements = torch.from_numpy(block)[: self.numel() * self.dtype.itemsize].view(self.dtype)
    return elements.as_strided(self.shape, strides).copy_(self)


def is_pinned(self: torch.Tensor, device: torch.device | None = None) -> bool:
    """Return whether a CPU tensor is in pinned memory."""
    return self.untyped_storage().data_ptr() in _addresses


ON_CPU = {"_pin_memory": pin_memory, "is_pinned": is_pinned}
"""The kernels for CPU tensors, by operator."""
