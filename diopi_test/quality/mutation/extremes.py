"""Mutants of maxima and minima that start from a finite number: numbers beyond it are read as this number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from diopi_proto.interface import lookup
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.mutant import Array, Effect, Mutant, SimulatedCall
from diopi_test.quality.mutation.precision import change_tensors
from diopi_test.quality.mutation.randomness import is_random

START = 10_000
"""The absolute value of the number from which some kernels start, which they take for a large one."""

LOW, HIGH = "numbers below −10,000 read as −10,000", "numbers above 10,000 read as 10,000"
"""The names of the mutants."""


def extreme_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of the largest and smallest numbers, which apply to functions that do not draw numbers.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    if lookup(function).multiplies_matrices:
        yield Mutant(name="results beyond 32,768 rounded to float16", corrupt=_round_large_results)
    if not is_random(function):
        yield Mutant(name=LOW, corrupt=recompute_with(partial(_limit, lambda array: np.maximum(array, -START))))
        yield Mutant(name=HIGH, corrupt=recompute_with(partial(_limit, lambda array: np.minimum(array, START))))


def _round_large_results(call: SimulatedCall) -> Effect:
    """Round the elements beyond 32,768 of results in float32 to float16; return whether a specified element changed."""
    changed = {name: [_round_large(array) for array in arrays] for name, arrays in call.results.items()}
    return call.replace_results(changed)


def _round_large(array: Array) -> Array:
    """Return a float32 array whose elements beyond 32,768 are rounded to float16; other arrays are returned as is."""
    if array.dtype != np.float32:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.abs(array) > 2**15, array.astype(np.float16), array).astype(np.float32)


def _limit(limit: Callable[[Array], Array], case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the floating-point tensors of a case with all elements limited; None if there are none."""
    return change_tensors(case, lambda array: array if array.dtype.kind == "c" else limit(array))
