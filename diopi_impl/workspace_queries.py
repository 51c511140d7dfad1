"""Answers to workspace queries on behalf of implementations that need no workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from diopi_impl.functional import Adapted, Adapter, OutSpec
from diopi_proto.parameters import InOutSize
from diopi_proto.prototype import Prototype


def answer_workspace_queries(adapter: Adapter) -> Adapter:
    """Return `adapter` for functions that need none of their workspaces.

    A call with a negative workspace size is a workspace query: the size becomes 0 and nothing is computed. In other
    calls the sizes keep their values, and `function` returns the other results in their order.

    Args:
        adapter: The adapter that computes the results of calls that are not queries.

    Returns:
        An adapter that answers the queries itself.
    """

    def adapt(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        is_size = [parameter.annotation is InOutSize for parameter in prototype.results]
        names = [parameter.name for parameter in prototype.arguments]
        positions = [names.index(p.name) for p, flag in zip(prototype.results, is_size, strict=True) if flag]

        def with_sizes(*arguments: Any) -> list[Any]:
            results, sizes = iter(function(*arguments)), iter([arguments[position] for position in positions])
            return [next(sizes) if flag else next(results) for flag in is_size]

        computed = adapter(prototype, with_sizes)

        def adapted(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            sizes = [arguments[position] for position in positions]
            if min(sizes) >= 0:
                return computed(arguments, out)
            remaining = iter(sizes)
            return [max(next(remaining), 0) if flag else None for flag in is_size]

        return adapted

    return adapt
