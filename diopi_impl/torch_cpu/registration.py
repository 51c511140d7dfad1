"""Decorators that register operators of torch_cpu with a special adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from diopi_impl.generators import pass_generator_state
from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.adapter import adapt_to_tensors

F = TypeVar("F", bound=Callable[..., Any])
"""The type of a decorated function, which a decorator returns unchanged."""

implements_random = partial(vendor.implements, adapt=pass_generator_state(adapt_to_tensors))
"""Registers a function that draws random numbers from its argument `generator`."""

implements_flash = partial(vendor.implements, adapt=pass_generator_state(adapt_to_tensors, "gen", "p_dropout"))
"""Registers a form of flash attention, which draws its dropout from the argument `gen`."""

implements_multi_head = partial(vendor.implements, adapt=pass_generator_state(adapt_to_tensors, "gen", "dropout_p"))
"""Registers a form of multi-head attention, which draws its dropout from the argument `gen`."""


def implements_ranks(pattern: str, ranks: Sequence[int] = (1, 2, 3)) -> Callable[[F], F]:
    """Return a decorator that registers a function for several numbers of spatial axes.

    Args:
        pattern: the names, with `*` in place of the number of spatial axes.
        ranks: the numbers of spatial axes.

    Returns:
        A decorator that returns the function unchanged.
    """
    return vendor.implements(*(pattern.replace("*", str(rank)) for rank in ranks))
