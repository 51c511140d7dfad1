"""Checks of positions on the host, because JAX clamps positions out of range or drops writes to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from numpy.typing import NDArray

from diopi_impl.functional import Adapted, Adapter
from diopi_impl.jax_cpu.jit import adapt_by_compiling
from diopi_proto.prototype import Prototype

HostArray = NDArray[Any]
"""An array of NumPy, whose elements the host can read before the program runs."""

PrepareArguments = Callable[[dict[str, Any]], None]
"""Checks the named arguments on the host, and may replace them."""


def prepare_on_host(prepare: PrepareArguments, adapter: Adapter = adapt_by_compiling) -> Adapter:
    """Return an adapter that calls `prepare`, which checks or replaces the arguments on the host, before the call."""
    return lambda prototype, function: PreparedOnHost(prototype, prepare, adapter(prototype, function))


@final
class PreparedOnHost:
    """An implementation whose arguments are checked or replaced on the host before the call.

    Args:
        prototype: the standard function.
        prepare: checks or replaces the arguments.
        adapted: the implementation.
    """

    def __init__(self, prototype: Prototype, prepare: PrepareArguments, adapted: Adapted) -> None:
        self.adapted = adapted
        self._names = [p.name for p in prototype.arguments]
        self._prepare = prepare

    def __call__(self, arguments: Sequence[Any], out: Sequence[Any]) -> Sequence[Any]:
        """Prepare the arguments, then call the implementation."""
        return self.adapted(self.prepare_arguments(arguments), out)

    def prepare_arguments(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments with which the implementation is called."""
        named_arguments = dict(zip(self._names, arguments, strict=True))
        self._prepare(named_arguments)
        return list(named_arguments.values())


def check_positions(name: str, positions: HostArray, low: int, high: int) -> None:
    """Raise IndexError unless all positions are in [low, high)."""
    invalid = positions[(positions < low) | (positions >= high)]
    if invalid.size:
        raise IndexError(f"{name} contains {invalid[0]}, expected positions from {low} to {high - 1}")


def axis_length(shape: Sequence[int], dim: int) -> int:
    """Return the length of axis `dim`; a 0-d shape counts as (1,). Raise IndexError if there is no such axis."""
    sizes = tuple(shape) or (1,)
    if not -len(sizes) <= dim < len(sizes):
        raise IndexError(f"dim {dim} is out of range for shape {tuple(shape)}")
    return sizes[dim]
