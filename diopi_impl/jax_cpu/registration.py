"""Decorators that register operators of jax_cpu with a special adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from diopi_impl.generators import pass_generator_state, pass_generator_states
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.jit import adapt_by_compiling
from diopi_impl.jax_cpu.programs import PRODUCTS_BY_EIGEN
from diopi_impl.workspace_queries import answer_workspace_queries

F = TypeVar("F", bound=Callable[..., Any])
"""The type of a decorated function, which a decorator returns unchanged."""

compile_product = partial(adapt_by_compiling, options=PRODUCTS_BY_EIGEN)
"""The adapter of functions that spend nearly all their time in a matrix product."""

compile_for_all_steps = partial(adapt_by_compiling, traced=["step"])
"""The adapter of functions whose `step` is an input of their program: all steps share one program."""

implements_product = partial(vendor.implements, adapt=compile_product)
"""Registers a function that spends nearly all its time in a matrix product."""

implements_optimizer = partial(vendor.implements, adapt=partial(adapt_by_compiling, traced=["lr", "step"]))
"""Registers an optimizer, whose learning rate and step change from call to call."""

implements_random = partial(
    vendor.implements, adapt=pass_generator_state(partial(adapt_by_compiling, traced=["generator"]))
)
"""Registers a function that draws random numbers from its argument `generator`."""

implements_flash = partial(
    vendor.implements, adapt=pass_generator_state(partial(adapt_by_compiling, traced=["gen"]), "gen", "p_dropout")
)
"""Registers a form of flash attention, which draws its dropout from the argument `gen`."""

implements_multi_head = partial(
    vendor.implements, adapt=pass_generator_state(partial(adapt_by_compiling, traced=["gen"]), "gen", "dropout_p")
)
"""Registers a form of multi-head attention, which draws its dropout from the argument `gen`."""

implements_step = partial(vendor.implements, adapt=compile_for_all_steps)
"""Registers a function with a `step`."""

implements_workspace_free = partial(vendor.implements, adapt=answer_workspace_queries(adapt_by_compiling))
"""Registers a function with workspace queries; the implementation needs no workspace and returns no sizes."""

implements_workspace_free_step = partial(vendor.implements, adapt=answer_workspace_queries(compile_for_all_steps))
"""Registers a function with workspace queries and a `step`."""

implements_sampling = partial(
    vendor.implements,
    adapt=answer_workspace_queries(pass_generator_states(partial(adapt_by_compiling, traced=["step", "generators"]))),
)
"""Registers a function that samples tokens, drawing one number from each of its `generators`."""


def implements_ranks(pattern: str, ranks: Sequence[int] = (1, 2, 3)) -> Callable[[F], F]:
    """Return a decorator that registers a function for several numbers of spatial axes.

    Args:
        pattern: the names, with `*` in place of the number of spatial axes.
        ranks: the numbers of spatial axes.

    Returns:
        A decorator that returns the function unchanged.
    """
    return vendor.implements(*(pattern.replace("*", str(rank)) for rank in ranks))
