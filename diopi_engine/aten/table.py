"""The table of operators: a function of arrays for each name in ATen, with the overload unless it is `default`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]

OPERATORS: dict[str, Function] = {}
"""All supported operators; modules register theirs when they are imported."""


def operator(*names: str) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as the implementation of operators."""

    def enter(function: Function) -> Function:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return enter
