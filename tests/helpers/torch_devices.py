"""Vendors for tests of the PyTorch device (`diopi_torch`): the vendor `jax_cpu` with a modification."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Collection
from typing import Any

from diopi_impl.base import BaseVendor
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.jax_cpu import vendor as jax_cpu
from diopi_proto.interface import prototypes
from diopi_proto.types import Error
from lib_rt import Context, Device


class Limited(HostRuntime):
    """A runtime whose device memory is limited to `nbytes` bytes; requested sizes count, without padding."""

    def __init__(self, nbytes: int) -> None:
        super().__init__()
        self.available = nbytes
        self.sizes: dict[int, int] = {}  # the sizes of the allocated blocks by address

    def malloc(self, nbytes: int) -> int:
        if nbytes > self.available:
            raise MemoryError(f"only {self.available} bytes are left")
        self.available -= nbytes
        address = super().malloc(nbytes)
        self.sizes[address] = nbytes
        return address

    def free(self, address: int) -> None:
        self.available += self.sizes.pop(address)
        super().free(address)


class AlteredVendor(BaseVendor):
    """The vendor `jax_cpu` with other memory, without some functions, or with failing functions.

    Attributes:
        called: the names of the functions that were called, in order.

    Args:
        runtime: the memory and streams; memory of the host by default.
        host_addressable: whether the vendor states that the host can address its memory.
        lacks: the names of functions that the vendor does not implement.
        error_codes: for functions that fail, the error code that they return without computing anything.
    """

    def __init__(
        self,
        runtime: HostRuntime | None = None,
        *,
        host_addressable: bool = True,
        lacks: Collection[str] = (),
        error_codes: dict[str, Error] | None = None,
    ) -> None:
        super().__init__("altered_vendor", "1")
        self.runtime = runtime or HostRuntime()
        self.host_addressable = host_addressable
        self.lacks = lacks
        self.error_codes = error_codes or {}
        self.called: list[str] = []
        self._fails = False

    def has(self, name: str) -> bool:
        return name not in self.lacks and jax_cpu.has(name)

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        self.called.append(name)
        self._fails = name in self.error_codes
        return self.error_codes[name] if self._fails else jax_cpu.call(name, context, *arguments)

    def last_error(self) -> str:
        return "no reason" if self._fails else jax_cpu.last_error()

    def open_device(self) -> Device:
        return Device(self.runtime.functions(), host_addressable=self.host_addressable)


class SpoilingVendor(AlteredVendor):
    """The vendor `jax_cpu`, with one function that also adds 1 to the first element of one of its float32 tensors.

    Args:
        function: the name of the function.
        tensor: the position of the tensor among the arguments after the context.
    """

    def __init__(self, function: str, tensor: int) -> None:
        super().__init__()
        self.function = function
        self.tensor = tensor

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        code = super().call(name, context, *arguments)
        if name == self.function:
            context.stream.synchronize()
            ctypes.c_float.from_address(arguments[self.tensor].data_ptr).value += 1
        return code


limited = AlteredVendor(Limited(2**20))
"""A vendor with 1 MiB of memory, which separate processes name as `torch_devices:limited`."""


class Halved(AlteredVendor):
    """A vendor without half of its functions, drawn with the seed of drawn tests."""

    def __init__(self) -> None:
        names = sorted(prototypes())
        super().__init__(lacks=random.Random(os.environ.get("DIOPI_SAMPLE_SEED")).sample(names, len(names) // 2))


halved = Halved()
"""A vendor without half of the functions, which separate processes name as `torch_devices:halved`."""
