"""The objects behind handles: engines, their schemes and contexts, and tensors."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from math import prod
from typing import Any, final

import numpy as np

from diopi_engine.engine import Engine
from diopi_engine.proto.hgrt import DataType, MemFlags, Result
from diopi_engine.runtime.allocation import Allocation
from diopi_engine.runtime.devices import DeviceDescription
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.execution import Execution
from diopi_engine.sizes import Array, numpy_type

ALIGNMENT = 64
"""Default alignment of a tensor's memory in bytes, with which XLA needs no copy."""


@final
@dataclass(eq=False, kw_only=True)
class LoadedEngine:
    """An engine that a program has created on a device.

    Attributes:
        engine: the engine.
        device: the device.
        scheme: the handle of its scheme.
        context: the execution context of the engine; None if there is none.
        c_strings: strings to which C has pointers; they exist as long as the engine.
    """

    engine: Engine
    device: DeviceDescription
    scheme: int = 0
    context: ExecutionContext | None = None
    c_strings: dict[Any, Any] = field(default_factory=dict)


@final
@dataclass(eq=False)
class SchemeHandle:
    """The object behind a scheme's handle; `owner` is the engine that contains the scheme."""

    owner: LoadedEngine

    @property
    def device(self) -> DeviceDescription:
        """The device of the engine."""
        return self.owner.device


@final
@dataclass(eq=False)
class ExecutionContext:
    """The execution context of an engine.

    Attributes:
        owner: the engine.
        allocation: the cores that are allocated.
        execution: the execution on these cores.
    """

    owner: LoadedEngine
    allocation: Allocation
    execution: Execution

    @property
    def device(self) -> DeviceDescription:
        """The device of the engine."""
        return self.owner.device


@final
class RuntimeTensor:
    """A tensor in memory of the runtime, which is page-locked if the process is allowed to."""

    def __init__(self, device: DeviceDescription, location: MemFlags, alignment: int, lock: Any) -> None:
        self.device = device
        self.location = location
        self.mapped = False
        self.described: tuple[DataType, int, tuple[int, ...]] | None = None  # type, layout, sizes
        self._alignment = max(alignment, ALIGNMENT)
        self._lock_pages = lock
        self._memory: Array = np.empty(0, np.uint8)

    def describe(self, dtype: DataType, layout: int, shape: tuple[int, ...]) -> None:
        """Set the element type, layout and shape, and allocate the memory that they require."""
        size = prod(shape) * numpy_type(dtype.name.lower()).itemsize
        if size > len(self._memory):
            self._memory = self._allocate_aligned(size)
        self.described = dtype, layout, shape

    def _allocate_aligned(self, size: int) -> Array:
        """Return newly mapped memory of at least `size` bytes, aligned, and page-locked for host tensors.

        Args:
            size: the number of bytes.

        Returns:
            The memory.

        Raises:
            InterfaceError: HG_ERROR_OUT_OF_MEMORY if the system has less memory, or no addresses for so much.
        """
        padded_size = -(-size // self._alignment) * self._alignment
        try:
            mapping: Any = mmap.mmap(-1, padded_size + self._alignment)
        except (OSError, OverflowError) as error:
            reason = f"a tensor needs {size} bytes, aligned to {self._alignment}: {error}"
            raise InterfaceError(Result.ERROR_OUT_OF_MEMORY, reason) from None
        memory = np.frombuffer(mapping, np.uint8)
        if self.location is MemFlags.HOST:
            self._lock_pages(memory.ctypes.data, len(memory))
        start = -memory.ctypes.data % self._alignment
        return memory[start : start + padded_size]

    @property
    def size(self) -> int:
        """The size of the elements in bytes."""
        dtype, _, shape = self.description
        return prod(shape) * numpy_type(dtype.name.lower()).itemsize

    @property
    def aligned_size(self) -> int:
        """The size of the memory in bytes."""
        return len(self._memory)

    @property
    def address(self) -> int:
        """The address of the memory."""
        return int(self._memory.ctypes.data)

    @property
    def bytes(self) -> Array:
        """The elements as bytes."""
        return self._memory[: self.size]

    @property
    def description(self) -> tuple[DataType, int, tuple[int, ...]]:
        """Type, layout and sizes; raises HG_ERROR_INVALID_ARGUMENT if the tensor has no description."""
        if self.described is None:
            raise InterfaceError(Result.ERROR_INVALID_ARGUMENT, "the tensor has no description yet")
        return self.described
