"""Adapters for functions of random numbers: they pass the state of a generator as numbers and advance its offset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from threading import RLock
from typing import Any, final

import numpy as np

from diopi_impl.functional import Adapted, Adapter
from diopi_impl.specs import OutSpec, ResultSpec
from diopi_proto.prototype import Prototype


@final
@dataclass
class DefaultGenerator:
    """The generator that a vendor uses if the caller passes none.

    Attributes:
        seed: the seed.
        offset: how far earlier calls have advanced the generator.
    """

    seed: int = 0
    offset: int = 0


def pass_generator_state(adapter: Adapter, generator: str = "generator", probability: str | None = None) -> Adapter:
    """Return an adapter that passes a generator as an array of its state: two uint64, seed and offset.

    A call that draws random numbers advances the generator's offset by the number of elements of the largest result, so
    that no state is used twice. A call whose argument `train` is false draws nothing.

    Args:
        adapter: the adapter of the implementation.
        generator: the name of the generator's argument.
        probability: the name of a probability's argument, if there is one. A call then draws if the probability is not
            0 and requires a generator. Gradients replay the numbers of their forward call and do not advance it.

    Returns:
        The adapter. Functions with an array of generators need `pass_generator_states`.
    """
    default, lock = DefaultGenerator(), RLock()  # a vendor may call itself through a device of PyTorch

    def adapt(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        """Adapt an implementation so that it receives the state of the generator."""
        adapted = adapter(prototype, function)
        names = [parameter.name for parameter in prototype.arguments]
        is_replay = probability is not None and prototype.is_gradient

        def call_with_state(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            """Return the results of the implementation for the state of the generator, and advance the offset.

            Raises:
                ValueError: The call draws random numbers with a probability, but has no generator.
            """
            named_arguments = dict(zip(names, arguments, strict=True))
            draws = named_arguments.get("train", True) if probability is None else named_arguments[probability] != 0
            if probability is not None and draws and named_arguments[generator] is None:
                raise ValueError(f"{generator} is NULL, expected a generator where {probability} is not 0")
            source = default if named_arguments[generator] is None else named_arguments[generator]
            with lock:
                named_arguments[generator] = np.array([source.seed, source.offset], np.uint64)
                results = adapted(list(named_arguments.values()), out)
                if draws and not is_replay:
                    source.offset = (source.offset + _draw_count(out)) % 2**64
            return results

        return call_with_state

    return adapt


def pass_generator_states(adapter: Adapter) -> Adapter:
    """Return an adapter that passes the argument `generators` as an array of states, [n, 2] with seed and offset.

    A call draws one number from each generator and advances its offset by 1. If a generator occurs several times, each
    later row has the state after the earlier ones. A call that fails restores the offsets.

    Args:
        adapter: the adapter of the implementation.

    Returns:
        The adapter.
    """
    lock = RLock()

    def adapt(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        """Adapt an implementation so that it receives the states of its generators."""
        adapted = adapter(prototype, function)
        position = [parameter.name for parameter in prototype.arguments].index("generators")

        def call_with_state(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            """Call the implementation with the states of the generators, and advance their offsets."""
            generators = arguments[position] or []
            with lock:
                states = [_advance(generator, 1) for generator in generators]
                state_arguments = [
                    *arguments[:position],
                    np.array(states, np.uint64).reshape(-1, 2),
                    *arguments[position + 1 :],
                ]
                try:
                    return adapted(state_arguments, out)
                except BaseException:
                    for generator in generators:
                        _advance(generator, -1)
                    raise

        return call_with_state

    return adapt


def _advance(generator: Any, step: int) -> tuple[int, int]:
    """Return a generator's seed and offset, and advance its offset by `step`."""
    state = generator.seed, generator.offset
    generator.offset = (generator.offset + step) % 2**64
    return state


def _draw_count(out: Sequence[OutSpec]) -> int:
    """Return the number of elements of the largest result."""
    return max(prod(spec.shape) for spec in out if isinstance(spec, ResultSpec))
