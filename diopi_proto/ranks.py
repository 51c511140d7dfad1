"""`@prototype_per_rank`: one declaration for functions that differ only in their number of spatial axes.

    @prototype_per_rank("diopiFold1d", "diopiFold2d", dtypes=floating, backward="diopiFold{rank}dBackward")
    def diopiFold(ctx: Context, out: Out, input: In):
        "Folds (N, C, {axes}) over {rank} axes. ..."

This declares `diopiFold1d` and `diopiFold2d`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from diopi_proto.declaration import prototype
from diopi_proto.prototype import Prototype, PrototypeError

AXES = {1: "L", 2: "H, W", 3: "D, H, W"}
"""The usual letters for one, two and three spatial axes, by their number."""


def prototype_per_rank(
    *names: str, backward: str | None = None, **facts: Any
) -> Callable[[Callable[..., Any]], list[Prototype]]:
    """Declare the decorated function once under each of `names`.

    In the docstring and in `backward`, `{rank}` stands for the number of spatial axes and `{axes}` for their letters.

    Args:
        names: the names of the functions; each contains its rank as "1d", "2d" or "3d".
        backward: template of the name of the gradient function, if there is one.
        facts: the remaining arguments of `prototype`.

    Returns:
        A decorator that replaces the function with the list of its prototypes, in the order of `names`.
    """

    def declare(function: Callable[..., Any]) -> list[Prototype]:
        template = inspect.getdoc(function) or ""
        declared = []
        for name in names:
            words = {"rank": _rank(name), "axes": AXES[_rank(name)]}
            function.__name__, function.__doc__ = name, template.format(**words)  # read at once by `prototype`
            declared.append(prototype(backward=backward and backward.format(**words), **facts)(function))
        return declared

    return declare


def _rank(name: str) -> int:
    """Return the number of spatial axes that a function's name contains."""
    match = re.search(r"([123])d", name)
    if not match:
        raise PrototypeError(f"the name {name} does not contain a rank; include 1d, 2d or 3d")
    return int(match[1])
