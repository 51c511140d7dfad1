"""The runtime functions on a device of PyTorch: memory, streams and copies.

The host never addresses the memory. Addresses are numbers that stand for bytes of blocks, which are tensors of PyTorch.
No two blocks ever have a common address, and an address is never reused, so that a wrong access raises an exception.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from typing import Any, final

import torch

from diopi_impl.errors import UnsupportedDtypeError
from lib_rt import Context, Device, RuntimeFunctions
from lib_rt.layout import TensorMetadata, extent
from lib_rt.library import ffi, pointer

FIRST_ADDRESS = 2**44
"""The address of the first block, far from all memory of the host."""

ALIGNMENT = 512
"""Every block begins at a multiple of this number. At least as many addresses follow a block before the next one."""


@final
class TorchDevice(Device):
    """A device of the runtime whose memory consists of tensors on a device of PyTorch.

    Args:
        runtime: The functions that allocate and copy the memory.
    """

    __slots__ = ("runtime",)

    def __init__(self, runtime: TorchRuntime) -> None:
        self.runtime = runtime
        super().__init__(runtime.functions())


@final
class TorchRuntime:
    """The nine runtime functions on a device of PyTorch.

    Args:
        device: The device of PyTorch.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._module: Any = torch.get_device_module(device)
        self._blocks: dict[int, torch.Tensor] = {}
        self._addresses: list[int] = []
        self._next_address = FIRST_ADDRESS
        self._streams: dict[int, Any] = {}
        self._stream_numbers = count(1)
        self._supported: dict[torch.dtype, str] = {}

    def functions(self) -> RuntimeFunctions:
        """Return the nine functions, ready to be registered."""
        return RuntimeFunctions(
            stream_create=self.create_stream,
            stream_destroy=self.destroy_stream,
            stream_sync=self.synchronize,
            malloc=self.malloc,
            free=self.free,
            h2d=self._copy_function(self._bytes, _host_bytes),
            d2h=self._copy_function(_host_bytes, self._bytes),
            d2d=self._copy_function(self._bytes, self._bytes),
            last_error=lambda: "",
        )

    def malloc(self, nbytes: int) -> int:
        """Allocate a block of `nbytes` bytes and return its address; 0 if there is not enough memory."""
        try:
            block = torch.empty(nbytes, dtype=torch.uint8, device=self.device)
        except (MemoryError, torch.OutOfMemoryError):
            return 0
        address = self._next_address
        self._next_address += (nbytes // ALIGNMENT + 2) * ALIGNMENT
        self._blocks[address] = block
        insort(self._addresses, address)
        return address

    def free(self, address: int) -> None:
        """Release the block that begins at an address; raise KeyError if there is none."""
        del self._blocks[address]
        self._addresses.remove(address)

    def create_stream(self) -> int:
        """Create a stream and return its handle."""
        handle = next(self._stream_numbers)
        self._streams[handle] = self._module.Stream(self.device) if self._has_streams else None
        return handle

    def destroy_stream(self, handle: int) -> None:
        """Destroy a stream."""
        del self._streams[handle]

    def synchronize(self, handle: int) -> None:
        """Wait for a stream; if the device has none, wait for all work."""
        stream = self._streams[handle]
        if stream is not None:
            stream.synchronize()
        else:
            self._module.synchronize()

    @contextmanager
    def use(self, context: Context) -> Iterator[None]:
        """Let PyTorch create tensors on this device and enqueue work on the stream of a context."""
        with self.device, self._use_stream(context.stream.native):
            yield

    def tensor_over(self, address: int, layout: TensorMetadata, dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor with this layout over the memory at an address.

        Raises:
            UnsupportedDtypeError: the device can't have tensors of this element type
            ValueError: the tensor is not inside one block
        """
        self._check_dtype(dtype)
        nbytes = extent(layout.shape, layout.strides) * dtype.itemsize
        if not nbytes:
            return torch.empty(layout.shape, dtype=dtype, device=self.device)
        return self._bytes(address, nbytes).view(dtype).as_strided(layout.shape, layout.strides)

    @property
    def _has_streams(self) -> bool:
        """Whether PyTorch can create streams of the device and wait for them."""
        return hasattr(getattr(self._module, "Stream", None), "synchronize") and hasattr(self._module, "stream")

    def _use_stream(self, handle: int) -> AbstractContextManager[Any]:
        """Return a context manager that makes a stream the current one."""
        stream = self._streams[handle]
        return nullcontext() if stream is None else self._module.stream(stream)

    def _copy_function(
        self, target: Callable[[int, int], torch.Tensor], source: Callable[[int, int], torch.Tensor]
    ) -> Callable[[int, int, int, int], None]:
        """Return a function that enqueues a copy; `target` and `source` return the bytes at an address."""

        def copy(stream: int, to: int, from_: int, nbytes: int) -> None:
            """Enqueue a copy on a stream."""
            if nbytes:
                with self._use_stream(stream):
                    target(to, nbytes).copy_(source(from_, nbytes), non_blocking=True)

        return copy

    def _bytes(self, address: int, nbytes: int) -> torch.Tensor:
        """Return the `nbytes` bytes at an address as a uint8 tensor; raise ValueError unless they are in one block."""
        position = bisect_right(self._addresses, address) - 1
        start = self._addresses[position] if position >= 0 else 0
        block = self._blocks.get(start)
        if block is None or address + nbytes > start + len(block):
            raise ValueError(f"there are no {nbytes} bytes at address {address:#x} of {self.device}")
        return block[address - start : address - start + nbytes]

    def _check_dtype(self, dtype: torch.dtype) -> None:
        """Raise UnsupportedDtypeError if the device can't have tensors of an element type."""
        if dtype not in self._supported:
            try:
                torch.empty(1, dtype=dtype, device=self.device).zero_()
                self._supported[dtype] = ""
            except (RuntimeError, TypeError) as error:  # PyTorch raises TypeError for types that MPS does not have
                self._supported[dtype] = f"{self.device}: {error}"
        if reason := self._supported[dtype]:
            raise UnsupportedDtypeError(reason)


def _host_bytes(address: int, nbytes: int) -> torch.Tensor:
    """Return the `nbytes` bytes at an address of the host as a uint8 tensor."""
    return torch.frombuffer(ffi.buffer(pointer(address), nbytes), dtype=torch.uint8)
