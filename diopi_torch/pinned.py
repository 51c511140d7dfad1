"""Pinned memory: CPU tensors that PyTorch reports as page-locked.

`pin_memory` copies a tensor to a block of pinned memory, and `is_pinned` recognizes tensors in such a block. An
allocator caches these blocks. With a device runtime of the vendor, the device can access the memory directly. Copies
with `non_blocking=True` then do not wait.

Without a device runtime, copies use any memory of the host, so there are no pages to lock. Programs for devices with
pinned memory must still run, for example a `DataLoader` with `pin_memory=True`. The blocks are then ordinary memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np
import torch

from diopi_torch.backend import backend
from diopi_torch.layout import contiguous_strides
from diopi_torch.pools import MemoryBlock
from diopi_torch.tensors import is_dense, pinned_addresses, pinned_block


def _release(block: MemoryBlock, give_back: Callable[[MemoryBlock], None]) -> None:
    """Give the block of a deleted tensor back to its allocator."""
    pinned_addresses.discard(block.address)
    give_back(block)


def pin_memory(self: torch.Tensor, device: torch.device | None = None) -> torch.Tensor:
    """Return a pinned copy of a CPU tensor; it has the same strides if the tensor is dense."""
    allocator = backend().host_allocator
    block = allocator.allocate(self.numel() * self.dtype.itemsize, stream=0)
    memory = np.frombuffer(block.buffer, np.uint8)
    pinned_addresses.add(block.address)
    weakref.finalize(memory, _release, block, allocator.give_back).atexit = False
    strides = self.stride() if is_dense(self) else contiguous_strides(tuple(self.shape))
    elements = torch.from_numpy(memory)[: self.numel() * self.dtype.itemsize].view(self.dtype)
    return elements.as_strided(self.shape, strides).copy_(self)


def is_pinned(self: torch.Tensor, device: torch.device | None = None) -> bool:
    """Return whether a CPU tensor is in pinned memory."""
    return pinned_block(self) is not None


ON_CPU = {"_pin_memory": pin_memory, "is_pinned": is_pinned}
"""The kernels for CPU tensors, by operator."""
