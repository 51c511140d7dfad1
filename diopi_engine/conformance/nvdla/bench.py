"""The fixture of the cases: a library with loadables, networks that are loaded and bound, and checks of their results.

A case receives a bench on which nothing is loaded and must leave it so. It raises `NotConformingError` if the library
violates the interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from diopi_engine.conformance import tensor_networks
from diopi_engine.conformance.bench import (
    FILL,
    GUARD,
    NotConformingError,
    check,
    check_array,
    check_guard,
    check_unchanged,
)
from diopi_engine.conformance.client import FailedCallError
from diopi_engine.conformance.nvdla import networks
from diopi_engine.conformance.nvdla.client import DeviceSession, NvdlaClient, RuntimeClient, ffi
from diopi_engine.proto.nvdla import Error, Heap
from diopi_engine.sizes import Array

CASE_PREFIX = "nvdla."
"""The prefix of the names of these cases."""

CASES: dict[str, Callable[[NvdlaBench], None]] = {}
"""All cases by name."""

KINDS = ("Input", "Output")
"""The kinds of tensors, as they occur in the names of methods."""

MAX_HEAP_BYTES = 1 << 36
"""A heap that provides more bytes than this is considered to have no limit."""


@final
@dataclass(frozen=True)
class NvdlaBench:
    """A client of the library under test, and the folder with the files of the loadables."""

    client: NvdlaClient
    folder: Path

    def data(self, name: str = "pair") -> bytes:
        """Return the bytes of the loadable called `name`."""
        return self.folder.joinpath(name).read_bytes()

    @contextmanager
    def runtime(self) -> Iterator[RuntimeClient]:
        """Return a context manager with a new runtime, which is destroyed at its end."""
        runtime = self.client.create_runtime()
        try:
            yield runtime
        finally:
            runtime.destroy()

    @contextmanager
    def loaded(self, name: str = "pair", instance: int = 0) -> Iterator[RuntimeClient]:
        """Return a context manager with a runtime that has loaded a network; the runtime is destroyed at its end."""
        with self.runtime() as runtime:
            runtime.load(self.data(name), instance)
            yield runtime

    @contextmanager
    def device(self, instance: int = 0) -> Iterator[DeviceSession]:
        """Return a context manager with an open device, which is closed at its end."""
        device = self.client.open(instance)
        try:
            yield device
        finally:
            device.close()


@final
class BoundNetwork:
    """A loaded network whose tensors are bound to memory for batches of up to `largest` samples.

    Attributes:
        runtime: the runtime that has loaded the network.
        handles: the handles of the memory of each tensor, by kind (`Input` or `Output`).
        arrays: the memory of each tensor as float32 numbers, by kind; one number more than the tensor needs.
    """

    def __init__(self, runtime: RuntimeClient, largest: int = 1) -> None:
        self.runtime = runtime
        self.handles: dict[str, list[Any]] = {}
        self.arrays: dict[str, list[Array]] = {}
        for kind in KINDS:
            memories = [
                runtime.allocate(tensor.bufferSize * largest + GUARD.nbytes)
                for tensor in runtime.tensor_descriptions(kind)
            ]
            self.handles[kind] = [handle for handle, _ in memories]
            self.arrays[kind] = [
                as_array(address, tensor.bufferSize // 4 * largest + 1)
                for tensor, (_, address) in zip(runtime.tensor_descriptions(kind), memories, strict=True)
            ]
            for number, handle in enumerate(self.handles[kind]):
                runtime.call(f"bind{kind}Tensor", number, handle)

    def check_batch(self, size: int = 1, name: str = "pair", seed: int = 0) -> None:
        """Check that a batch of random inputs is computed correctly and that only the outputs are written."""
        set_batch(self.runtime, size)
        arrays = random_inputs(size, seed)
        for array, value in zip(self.arrays["Input"], arrays, strict=True):
            array[: value.size] = value.ravel()
        for array in self.arrays["Output"]:
            array[:] = GUARD
        self.runtime.call("submit")
        for number, value in enumerate(networks.expected_outputs(name, *arrays)):
            output = self.arrays["Output"][number]
            check_array(f"output {number} for a batch of {size}", output[: value.size].reshape(value.shape), value)
            check_guard(f"output {number}", output[value.size :])
        for number, (array, value) in enumerate(zip(self.arrays["Input"], arrays, strict=True)):
            check_unchanged(f"input {number}", array[: value.size], value.ravel())


@final
class BoundTensors:
    """A loaded network of `tensor_networks` whose tensors are bound to memory for the largest batch.

    Attributes:
        runtime: the runtime that has loaded the network.
        network: the description of the network.
        memories: the memory of each tensor as bytes, by kind (`Input` or `Output`); one byte more than it needs.
    """

    def __init__(self, runtime: RuntimeClient, name: str) -> None:
        self.runtime = runtime
        self.network = tensor_networks.NETWORKS[name]
        self.memories: dict[str, list[Array]] = {}
        set_batch(runtime, tensor_networks.MAX_BATCH)
        for kind in KINDS:
            tensors = runtime.tensor_descriptions(kind)
            blocks = [(*runtime.allocate(tensor.bufferSize + 1), tensor.bufferSize + 1) for tensor in tensors]
            self.memories[kind] = [as_bytes(address, size) for _, address, size in blocks]
            for number, (handle, *_) in enumerate(blocks):
                runtime.call(f"bind{kind}Tensor", number, handle)

    def check_batch(self, size: int, seed: int = 0) -> None:
        """Check that a batch of random inputs is computed correctly and that only the outputs are written."""
        set_batch(self.runtime, size)
        inputs = self.network.random_inputs(size, seed)
        for memory, array in zip(self.memories["Input"], inputs, strict=True):
            memory[: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        for memory in self.memories["Output"]:
            memory[:] = FILL
        self.runtime.call("submit")
        expected = self.network.expected_outputs(inputs)
        for name, memory, array in zip(self.network.outputs, self.memories["Output"], expected, strict=True):
            output = memory[: array.nbytes].view(array.dtype).reshape(array.shape)
            check_array(f"output {name} for a batch of {size}", output, array)
            check(f"the memory behind {name}", {*memory[array.nbytes :].tobytes()}, {FILL})
        for memory, array in zip(self.memories["Input"], inputs, strict=True):
            check_unchanged("an input", memory[: array.nbytes], np.frombuffer(array.tobytes(), np.uint8))


def as_bytes(address: Any, size: int) -> Array:
    """Return the memory at an address as bytes, without a copy."""
    return np.frombuffer(memoryview(ffi.buffer(ffi.cast("char*", address), size)), np.uint8)


def as_array(address: Any, count: int) -> Array:
    """Return the memory at an address as an array of `count` float32 numbers, without a copy."""
    return as_bytes(address, count * 4).view(np.float32)


def random_inputs(size: int, seed: int = 0) -> list[Array]:
    """Return the two random inputs of a batch of `size` samples."""
    generator = np.random.default_rng([size, seed])
    return [generator.standard_normal((size, networks.INPUTS)).astype(np.float32) for _ in range(2)]


def set_batch(runtime: RuntimeClient, size: int, kind: str = "Input", number: int = 0) -> None:
    """Set the batch size of the network through the description of one of its tensors."""
    tensor = runtime.get(f"get{kind}TensorDesc", number)
    tensor.dims[0] = size
    runtime.call(f"set{kind}TensorDesc", number, ffi.addressof(tensor))


Block = tuple[Any, Any, int]
"""A block of memory: handle, address, number of bytes."""


def fill_heap(device: DeviceSession, heap: Heap) -> list[Block]:
    """Allocate all memory of a heap in blocks of at least 64 bytes.

    Args:
        device: the device that has the heap.
        heap: the heap.

    Returns:
        The blocks.

    Raises:
        NotConformingError: if the heap provides more than `MAX_HEAP_BYTES`; all blocks are freed.
        FailedCallError: if an allocation fails for another reason than a full heap.
    """
    blocks: list[Block] = []
    size = 1 << 31
    while size >= 64:
        try:
            blocks.append((*device.allocate(size, heap), size))
        except FailedCallError as error:
            if error.result is not Error.Error_InsufficientMemory:
                raise
            size //= 2
        if total_size(blocks) > MAX_HEAP_BYTES:
            free_blocks(device, blocks)
            raise NotConformingError(f"{heap.name} has no limit: it provides more than {MAX_HEAP_BYTES} bytes")
    return blocks


def free_blocks(device: DeviceSession, blocks: list[Block]) -> None:
    """Free the memory of all blocks; the list itself does not change."""
    for block in blocks:
        device.call("NvDlaFreeMem", *block)


def total_size(blocks: list[Block]) -> int:
    """Return the total size of blocks in bytes."""
    return sum(size for *_, size in blocks)


def available_bytes(device: DeviceSession, heap: Heap) -> int:
    """Return the number of bytes that a heap can still allocate, determined by filling and freeing it."""
    blocks = fill_heap(device, heap)
    free_blocks(device, blocks)
    return total_size(blocks)


def case(function: Callable[[NvdlaBench], None]) -> Callable[[NvdlaBench], None]:
    """Return the function unchanged, after registering it as a case under its name."""
    CASES[f"{CASE_PREFIX}{function.__name__}"] = function
    return function
