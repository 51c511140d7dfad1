"""Checks of positions on the host, because JAX clamps positions out of range or drops writes to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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

    def adapt(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        """Adapt an implementation so that `prepare` runs before it."""
        run = adapter(prototype, function)

        def prepare_and_call(arguments: Sequence[Any], out: Sequence[Any]) -> Sequence[Any]:
            """Prepare the arguments, then call the implementation."""
            named_arguments = dict(zip((p.name for p in prototype.arguments), arguments, strict=True))
            prepare(named_arguments)
            return run(list(named_arguments.values()), out)

        return prepare_and_call

    return adapt


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
