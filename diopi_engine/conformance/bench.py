"""The fixture of the cases: a library with engines, and checks of its results.

A case receives a bench with all cores free and must leave it so. It raises `NotConformingError` if the library violates
the interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from diopi_engine.conformance import networks
from diopi_engine.conformance.client import EngineClient, FailedCallError
from diopi_engine.engine import Array
from diopi_engine.proto.declarations import Enumeration
from diopi_engine.proto.hgrt import CoreAllocPolicy, DeviceAttribute

CASES: dict[str, Callable[[EngineBench], None]] = {}
"""All cases by name."""

GUARD = np.float32(-12345)
"""The value that fills the parts of outputs that a library must not write."""


class NotConformingError(Exception):
    """The library violates the interface; the message says what it did and what was expected."""


class NotApplicableError(Exception):
    """The case can't be run on this library; the message states the reason."""


@final
@dataclass(frozen=True)
class EngineBench:
    """A library and the files of the engines."""

    client: EngineClient
    folder: Path

    def data(self, name: str) -> bytes:
        """Return the bytes of an engine."""
        return self.folder.joinpath(name).read_bytes()

    def attribute(self, attribute: DeviceAttribute, device: int = 0) -> int:
        """Return an attribute of a device."""
        return int(self.client.get("hgDeviceGetAttribute", device, attribute))

    @property
    def free(self) -> int:
        """Free cores of device 0."""
        return self.attribute(DeviceAttribute.FREE_CORE_COUNT)

    @contextmanager
    def engine(self, name: str = "layer") -> Iterator[Any]:
        """Create an engine, which is destroyed at the end of the context."""
        handle = self.client.engine(self.data(name))
        yield handle
        self.client.call("hgEngineDestroy", handle)

    @contextmanager
    def context(self, engine: Any, policy: CoreAllocPolicy = CoreAllocPolicy.MINIMUM, mask: int = 0) -> Iterator[Any]:
        """Create an execution context, which is destroyed at the end of the context manager."""
        handle = self.client.context(engine, policy, mask)
        yield handle
        self.client.call("hgExecutionContextDestroy", handle)

    def check_batch(self, context: Any, size: int, name: str = "layer", seed: int = 0) -> None:
        """Check that a batch is computed correctly and that only its outputs are written."""
        x, y = batch(size, seed)
        copy = x.copy()
        self.client.execute(context, size, [x, y])
        check_array(f"the output for a batch of {size}", y[:size], networks.expected(name, x))
        check("what lies behind the output", bool((y[size:] == GUARD).all()), True)
        check("whether the input is as it was", np.array_equal(x, copy), True)


def batch(size: int, seed: int = 0) -> tuple[Array, Array]:
    """Return an input, and an output with room for one more sample."""
    x = np.random.default_rng([size, seed]).standard_normal((size, networks.INPUTS)).astype(np.float32)
    return x, np.full((size + 1, networks.OUTPUTS), GUARD, np.float32)


def case(function: Callable[[EngineBench], None]) -> Callable[[EngineBench], None]:
    """Register a case under the name of its function."""
    CASES[function.__name__] = function
    return function


def check(subject: str, found: Any, expected: Any) -> None:
    """Raise NotConformingError unless `found` equals `expected`."""
    if found != expected:
        raise NotConformingError(f"{subject} is {found}, expected {expected}")


def check_array(subject: str, found: Array, expected: Array) -> None:
    """Raise NotConformingError unless the arrays agree within the rounding of float32 sums of a few terms."""
    mismatches = ~np.isclose(found, expected, rtol=1e-5, atol=1e-6)
    if mismatches.any():
        place = tuple(int(index) for index in np.argwhere(mismatches)[0])
        raise NotConformingError(
            f"{subject} has {int(mismatches.sum())} wrong elements of {mismatches.size}: at {place} {found[place]}, "
            f"expected {expected[place]}"
        )


@contextmanager
def expect_failure(subject: str, *results: Enumeration) -> Iterator[None]:
    """Check that the calls in this context fail with one of these results."""
    try:
        yield
    except FailedCallError as error:
        if error.result not in results:
            names = " or ".join(result.name for result in results)
            raise NotConformingError(f"{subject} answers {error}, expected {names}") from None
        return
    raise NotConformingError(f"{subject} is done, expected {results[0].name}")
