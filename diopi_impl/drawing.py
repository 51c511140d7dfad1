"""Functions that draw random numbers: what they draw from goes in as numbers, and an advanced offset is put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from threading import Lock
from typing import Any

import numpy as np

from diopi_impl.functional import Adapted, Adapter, OutSpec, ResultSpec
from diopi_proto.prototype import Prototype


@dataclass
class OwnGenerator:
    """What a vendor draws from where the caller gives no generator."""

    seed: int = 0
    offset: int = 0


def drawing(adapter: Adapter) -> Adapter:
    """`adapter` for functions that draw: their `generator` is an array of two uint64, seed and offset.

    After a call the offset has advanced by the number of elements of the largest result, so that no state comes
    twice; an argument `train` that is false tells that nothing is drawn.
    """
    own, lock = OwnGenerator(), Lock()

    def adapt(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        adapted = adapter(prototype, function)
        names = [parameter.name for parameter in prototype.arguments]

        def draw(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            given = dict(zip(names, arguments, strict=True))
            generator = own if given["generator"] is None else given["generator"]
            with lock:
                given["generator"] = np.array([generator.seed, generator.offset], np.uint64)
                results = adapted(list(given.values()), out)
                if given.get("train", True):
                    generator.offset = (generator.offset + _draws(out)) % 2**64
            return results

        return draw

    return adapt


def _draws(out: Sequence[OutSpec]) -> int:
    """The number of elements of the largest result."""
    return max(prod(spec.shape) for spec in out if isinstance(spec, ResultSpec))
