"""Measure the time of a short call in many short rounds, because other processes do not disturb every short round."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

ROUNDS = 400
"""The number of rounds."""


def microseconds(call: Callable[[], object], calls: int) -> float:
    """Return the time of one call in microseconds, the best of `ROUNDS` rounds of `calls` calls."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(calls):
            call()
        best = min(best, perf_counter() - start)
    return best / calls * 1e6
