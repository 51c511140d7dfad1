"""Workspace queries: calls that only request the size of a workspace. The adapter here answers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from diopi_impl.functional import Adapted, Adapter
from diopi_impl.specs import OutSpec
from diopi_proto.parameters import InOutSize
from diopi_proto.prototype import Prototype


def answer_workspace_queries(adapter: Adapter) -> Adapter:
    """Return an adapter for functions that need no workspace and answer every workspace query with the size 0.

    A query computes nothing else. In other calls the sizes that the caller passed are returned unchanged.

    Args:
        adapter: the adapter of the implementation, which returns the results except the sizes, in order.

    Returns:
        The adapter that adds the sizes to the results.
    """

    def adapt(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        """Adapt an implementation so that workspace queries do not reach it."""
        is_size = [parameter.annotation is InOutSize for parameter in prototype.results]
        names = [parameter.name for parameter in prototype.arguments]
        size_positions = [names.index(p.name) for p, flag in zip(prototype.results, is_size, strict=True) if flag]

        def add_sizes(*arguments: Any) -> list[Any]:
            """Return the results with the sizes that the caller passed."""
            results, passed_sizes = iter(function(*arguments)), iter([arguments[place] for place in size_positions])
            return [next(passed_sizes) if flag else next(results) for flag in is_size]

        computed = adapter(prototype, add_sizes)

        def answer_or_call(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            """Answer a workspace query, or call the implementation."""
            queried_sizes = iter([arguments[position] for position in size_positions])
            if min(arguments[position] for position in size_positions) >= 0:
                return computed(arguments, out)
            return [max(next(queried_sizes), 0) if flag else None for flag in is_size]

        return answer_or_call

    return adapt
