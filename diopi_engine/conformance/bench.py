"""The fixture of the cases: a library with engines, and checks of its results.

A case receives a bench with all cores free and must leave it so. It raises `NotConformingError` if the library violates
the interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, final

import numpy as np

from diopi_engine.conformance import networks, tensor_networks
from diopi_engine.conformance.client import EngineClient, FailedCallError, ffi
from diopi_engine.proto.declarations import Enumeration
from diopi_engine.proto.hgrt import CoreAllocPolicy, DeviceAttribute, MemFlags
from diopi_engine.sizes import Array
from diopi_proto.messages import pluralize

CASES: dict[str, Callable[[EngineBench], None]] = {}
"""All cases by name."""

GUARD = np.float32(-12345)
"""The value that fills the parts of outputs that a library must not write."""

FILL = 0xA5
"""The value of the bytes of outputs of several types before an execution."""


class NotConformingError(Exception):
    """The library violates the interface; the message says what it did and what was expected."""


class NotApplicableError(Exception):
    """The case can't be run on this library; the message states the reason."""


@final
@dataclass(frozen=True)
class EngineBench:
    """The library under test and the engines that the cases run on it.

    Attributes:
        client: calls the functions of the library.
        folder: the folder with a file per engine, under the engine's name. `networks.compile_engines` writes the
            engines in `networks.NAMES`, and the process `models.making` writes those of the networks of `models`.
    """

    client: EngineClient
    folder: Path

    def data(self, name: str) -> bytes:
        """Return the bytes of the engine `name`."""
        return self.folder.joinpath(name).read_bytes()

    def attribute(self, attribute: DeviceAttribute, device: int = 0) -> int:
        """Return the value of an attribute of a device."""
        return int(self.client.get("hgDeviceGetAttribute", device, attribute))

    @property
    def free_cores(self) -> int:
        """The number of free cores of device 0."""
        return self.attribute(DeviceAttribute.FREE_CORE_COUNT)

    @contextmanager
    def engine(self, name: str = "layer") -> Iterator[Any]:
        """Create an engine in the library, and destroy it at the end of the `with` statement.

        If the statement raises an exception, the engine is not destroyed: the process ends after a failed case, and a
        failing destruction would replace the reason.

        Args:
            name: the name of the engine. The default `layer` is a single layer that is in no group.

        Yields:
            The handle of the engine.
        """
        handle = self.client.engine(self.data(name))
        yield handle
        self.client.call("hgEngineDestroy", handle)

    @contextmanager
    def context(self, engine: Any, policy: CoreAllocPolicy = CoreAllocPolicy.MINIMUM, mask: int = 0) -> Iterator[Any]:
        """Create an execution context, and destroy it at the end of the `with` statement, unless that raises.

        Args:
            engine: the handle of the engine.
            policy: which cores the library allocates.
            mask: for the policy AS_CORE_MASK, a bit mask with a bit per physical core to allocate; 0 for the others.

        Yields:
            The handle of the execution context.
        """
        handle = self.client.context(engine, policy, mask)
        yield handle
        self.client.call("hgExecutionContextDestroy", handle)

    def check_batch(self, context: Any, size: int, name: str = "layer", seed: int = 0) -> None:
        """Execute a batch; check its results, and that the library writes only the output.

        Args:
            context: the handle of an execution context.
            size: the number of samples.
            name: the name of the context's engine, which determines the expected results.
            seed: the seed of the input.

        Raises:
            NotConformingError: if a result is wrong, or if the library wrote beyond the output or changed the input.
        """
        x, y = make_batch(size, seed)
        copy = x.copy()  # the library might change x
        self.client.execute(context, size, [x, y])
        check_array(f"the output for a batch of {size}", y[:size], networks.expected_output(name, copy))
        check_guard("the output", y[size:])
        check_unchanged("the input", x, copy)

    def check_tensors(self, context: Any, name: str, size: int, seed: int = 0, *, in_tensors: bool = False) -> None:
        """Execute a batch of a network with several tensors; check all results, and that only outputs are written.

        Args:
            context: the handle of an execution context.
            name: the name of the network in `tensor_networks`.
            size: the number of samples.
            seed: the seed of the inputs.
            in_tensors: whether the bindings are tensors of the library instead of arrays.

        Raises:
            NotConformingError: if a result is wrong, or if the library wrote beyond an output or changed an input.
        """
        network = tensor_networks.NETWORKS[name]
        inputs = network.random_inputs(size, seed)
        expected = network.expected_outputs(inputs)
        outputs = [filled_array((size + 1, *array.shape[1:]), array.dtype) for array in expected]
        arrays = [*(array.copy() for array in inputs), *outputs]
        if in_tensors:
            self._execute_in_tensors(context, size, arrays)
        else:
            self.client.execute(context, size, arrays)
        for output_name, output, array in zip(network.outputs, outputs, expected, strict=True):
            check_array(f"output {output_name} for a batch of {size}", output[:size], array)
            check(f"the memory behind {output_name}", {*output[size:].tobytes()}, {FILL})
        for array, original in zip(arrays, inputs, strict=False):
            check_unchanged("an input", array, original)

    def _execute_in_tensors(self, context: Any, size: int, arrays: list[Array]) -> None:
        """Execute a batch with tensors of the library, which have the contents of the arrays before and afterwards."""
        tensors = [self.client.tensor(array) for array in arrays]
        self.client.execute(context, size, tensors, ffi.new("hgHostTensorDesc*", (MemFlags.HOST, 0)))
        for tensor, array in zip(tensors, arrays, strict=True):
            ffi.memmove(ffi.from_buffer(array.data), self.client.get("hgTensorMap", tensor), array.nbytes)
            self.client.call("hgTensorUnmap", tensor)
            self.client.call("hgTensorDestroy", tensor)


def filled_array(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array whose bytes are all `FILL`."""
    return np.full(prod(shape) * dtype.itemsize, FILL, np.uint8).view(dtype).reshape(shape)


def make_batch(size: int, seed: int = 0) -> tuple[Array, Array]:
    """Return a random input of `size` samples, and an output of `size` + 1 samples that is filled with `GUARD`."""
    x = np.random.default_rng([size, seed]).standard_normal((size, networks.INPUTS)).astype(np.float32)
    return x, np.full((size + 1, networks.OUTPUTS), GUARD, np.float32)


def case(function: Callable[[EngineBench], None]) -> Callable[[EngineBench], None]:
    """Return the function unchanged, after registering it as a case under its name."""
    CASES[function.__name__] = function
    return function


def check(subject: str, actual: Any, expected: Any) -> None:
    """Raise NotConformingError unless `actual` equals `expected`; the message starts with `subject`."""
    if actual != expected:
        raise NotConformingError(f"{subject} is {actual}, expected {expected}")


def check_guard(subject: str, memory: Array) -> None:
    """Raise NotConformingError unless the memory after the array `subject` still contains only `GUARD`."""
    if not (memory == GUARD).all():
        raise NotConformingError(f"the library wrote beyond {subject}")


def check_unchanged(subject: str, array: Array, original: Array) -> None:
    """Raise NotConformingError unless the array `subject`, which the library may only read, equals the original."""
    if not np.array_equal(array, original):
        raise NotConformingError(f"the library changed {subject}")


def check_array(subject: str, actual: Array, expected: Array) -> None:
    """Compare arrays.

    Args:
        subject: The subject of the message, such as "output 0".
        actual: The actual array.
        expected: The expected array.

    Raises:
        NotConformingError: The arrays differ by more than the rounding of float32 sums of a few terms.
    """
    mismatches = ~np.isclose(actual, expected, rtol=1e-5, atol=1e-6)
    if mismatches.any():
        place = tuple(int(index) for index in np.argwhere(mismatches)[0])
        count = pluralize(int(mismatches.sum()), "wrong element")
        raise NotConformingError(
            f"{subject} has {count} out of {mismatches.size}; the first, at {place}, is {actual[place]}, "
            f"expected {expected[place]}"
        )


@contextmanager
def expect_failure(subject: str, *results: Enumeration) -> Iterator[None]:
    """Check that the library call in the `with` statement fails.

    Args:
        subject: the call, for messages.
        *results: the accepted results, at least one.

    Yields:
        Nothing. The statement must make exactly one call: a failing call ends it.

    Raises:
        NotConformingError: if the call succeeds or fails with another result.
    """
    names = " or ".join(result.name for result in results)
    try:
        yield
    except FailedCallError as error:
        if error.result not in results:
            raise NotConformingError(f"{subject} failed with {error}, expected {names}") from None
        return
    raise NotConformingError(f"{subject} succeeded, expected {names}")
