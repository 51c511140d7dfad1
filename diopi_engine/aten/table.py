"""The table of operators: by ATen's name, with the overload if that is not `default`, a function of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]

OPERATORS: dict[str, Function] = {}
"""Every operator that is served; modules enter theirs when they are imported."""


def operator(*names: str) -> Callable[[Function], Function]:
    """Enter the decorated function as what operators of these names do."""

    def enter(function: Function) -> Function:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return enter
