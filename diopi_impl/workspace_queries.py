"""Calls that only ask for a size: what they are answered with, so that implementations see none of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from diopi_impl.functional import Adapted, Adapter, OutSpec
from diopi_proto.parameters import InOutSize
from diopi_proto.prototype import Prototype


def answer_workspace_queries(adapter: Adapter) -> Adapter:
    """`adapter` for functions that need none of the workspaces they are offered.

    A size that is asked for is 0, and nothing else happens then; a size that is given stays. `function` returns the
    other results alone, in their order.
    """

    def adapt(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        is_size = [parameter.annotation is InOutSize for parameter in prototype.results]
        names = [parameter.name for parameter in prototype.arguments]
        sizes = [names.index(p.name) for p, flag in zip(prototype.results, is_size, strict=True) if flag]

        def with_sizes(*arguments: Any) -> list[Any]:
            others, given = iter(function(*arguments)), iter([arguments[place] for place in sizes])
            return [next(given) if flag else next(others) for flag in is_size]

        computed = adapter(prototype, with_sizes)

        def adapted(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            asked = iter([arguments[place] for place in sizes])
            if min(arguments[place] for place in sizes) >= 0:
                return computed(arguments, out)
            return [max(next(asked), 0) if flag else None for flag in is_size]

        return adapted

    return adapt
