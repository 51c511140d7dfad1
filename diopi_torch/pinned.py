"""Pinned memory: CPU tensors that PyTorch reports as page-locked.

The runtime of the standard copies between the device and any memory of the host, so there are no pages to lock.
Programs for devices with pinned memory must still run, for example a `DataLoader` with `pin_memory=True`. Therefore
`pin_memory` copies a tensor to a block of ordinary memory, and `is_pinned` recognizes tensors in such a block. An
allocator caches these blocks. Copies between these tensors and the device are neither faster nor asynchronous.
"""

from __future__ import annotations

import atexit
import weakref
from functools import cache

import numpy as np
import torch

from diopi_impl.host_runtime import HostRuntime
from diopi_torch.layout import contiguous_strides
from diopi_torch.memory import CachingAllocator, make_allocator
from diopi_torch.pools import MemoryBlock
from diopi_torch.settings import HOST_STRATEGY
from diopi_torch.tensors import is_dense
from lib_rt import Device

_addresses: set[int] = set()
"""The addresses of all blocks that are in use."""


@cache
def host_allocator() -> CachingAllocator:
    """Return the allocator of pinned memory; the first call creates it as the environment says."""
    allocator = make_allocator(HOST_STRATEGY, Device(HostRuntime().functions()), lambda: None)
    atexit.register(allocator.close)
    return allocator


def _release(block: MemoryBlock) -> None:
    """Give the block of a deleted tensor back to the allocator."""
    _addresses.discard(block.address)
    host_allocator().give_back(block)


def pin_memory(self: torch.Tensor, device: torch.device | None = None) -> torch.Tensor:
    """Return a pinned copy of a CPU tensor; it has the same strides if the tensor is dense."""
    block = host_allocator().allocate(self.numel() * self.dtype.itemsize, stream=0)
    memory = np.frombuffer(block.buffer, np.uint8)
    _addresses.add(block.address)
    weakref.finalize(memory, _release, block).atexit = False
    strides = self.stride() if is_dense(self) else contiguous_strides(tuple(self.shape))
    elements = torch.from_numpy(memory)[: self.numel() * self.dtype.itemsize].view(self.dtype)
    return elements.as_strided(self.shape, strides).copy_(self)


def is_pinned(self: torch.Tensor, device: torch.device | None = None) -> bool:
    """Return whether a CPU tensor is in pinned memory."""
    return self.untyped_storage().data_ptr() in _addresses


ON_CPU = {"_pin_memory": pin_memory, "is_pinned": is_pinned}
"""The kernels for CPU tensors, by operator."""
