"""Functions that draw random numbers: what they draw from goes in as numbers, and an advanced offset is put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from threading import Lock
from typing import Any, final

import numpy as np

from diopi_impl.functional import Adapted, Adapter, OutSpec, ResultSpec
from diopi_proto.prototype import Prototype


@final
@dataclass
class OwnGenerator:
    """What a vendor draws from where the caller gives no generator."""

    seed: int = 0
    offset: int = 0


def drawing(adapter: Adapter, generator: str = "generator", probability: str | None = None) -> Adapter:
    """`adapter` for functions that draw: their argument `generator` is an array of two uint64, seed and offset.

    After a call the offset has advanced by the number of elements of the largest result, so that no state comes
    twice; where an argument `train` is false, nothing is drawn. With `probability`, the name of an argument, something
    is drawn where that is not 0; the caller must then give a generator, which gradients leave as their forward call
    found it. For functions with `generators` see `drawing_each`.
    """
    own, lock = OwnGenerator(), Lock()

    def adapt(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        adapted = adapter(prototype, function)
        names = [parameter.name for parameter in prototype.arguments]
        again = probability is not None and prototype.is_gradient

        def draw(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            given = dict(zip(names, arguments, strict=True))
            draws = given.get("train", True) if probability is None else given[probability] != 0
            if probability is not None and draws and given[generator] is None:
                raise ValueError(f"{generator} is NULL, expected a generator where {probability} is not 0")
            source = own if given[generator] is None else given[generator]
            with lock:
                given[generator] = np.array([source.seed, source.offset], np.uint64)
                results = adapted(list(given.values()), out)
                if draws and not again:
                    source.offset = (source.offset + _draws(out)) % 2**64
            return results

        return draw

    return adapt


def drawing_each(adapter: Adapter) -> Adapter:
    """`adapter` for functions that draw one number from each of their `generators`, an array of a row [seed, offset]
    a generator; where one stands several times, later rows have what earlier ones leave.

    After a call each offset has advanced by 1.
    """
    lock = Lock()

    def adapt(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        adapted = adapter(prototype, function)
        place = [parameter.name for parameter in prototype.arguments].index("generators")

        def draw(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            generators = arguments[place] or []
            with lock:
                states = [_advanced(generator, 1) for generator in generators]
                given = [*arguments[:place], np.array(states, np.uint64).reshape(-1, 2), *arguments[place + 1 :]]
                try:
                    return adapted(given, out)
                except BaseException:
                    for generator in generators:
                        _advanced(generator, -1)
                    raise

        return draw

    return adapt


def _advanced(generator: Any, by: int) -> tuple[int, int]:
    """Seed and offset of a generator, whose offset then advances."""
    state = generator.seed, generator.offset
    generator.offset = (generator.offset + by) % 2**64
    return state


def _draws(out: Sequence[OutSpec]) -> int:
    """The number of elements of the largest result."""
    return max(prod(spec.shape) for spec in out if isinstance(spec, ResultSpec))
