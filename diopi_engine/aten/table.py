"""The table of operators: a function of JAX arrays for each ATen name, with the overload unless it is `default`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
"""The implementation of an operator for JAX arrays."""

OPERATORS: dict[str, Function] = {}
"""All supported operators; modules register theirs when they are imported."""


def operator(*names: str) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as the implementation of the ATen operators with these names."""

    def register(function: Function) -> Function:
        """Add the function to the table under all names and return it."""
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register
