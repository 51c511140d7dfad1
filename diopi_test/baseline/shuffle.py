"""Shuffle and sample by a seed, with the same result in every process and on every machine."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from typing import TypeVar

from diopi_proto.interface import lookup

T = TypeVar("T")

RANDOM = "random"
"""The text that stands for a new random seed."""


def parse_seed(text: str) -> int:
    """Return the seed that a user passes: an integer, or `RANDOM` for a new seed; raise ValueError for other text."""
    if text == RANDOM:
        return secrets.randbelow(10**6)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"seed is {text!r}, expected an integer or {RANDOM!r}") from None


def shuffle_by_seed(items: Iterable[T], seed: int | None, name: Callable[[T], str] = str) -> list[T]:
    """Return items in an order that depends only on the seed and their names; unchanged if the seed is None."""
    if seed is None:
        return list(items)
    return sorted(items, key=lambda item: hashlib.sha256(f"{seed}\0{name(item)}".encode()).digest())


def sample_functions(functions: Iterable[str], count: int, seed: int) -> set[str]:
    """Draw a random sample of functions, each together with its in-place and scalar forms.

    The forms of a function stay together, because they share the state that a vendor keeps between calls.

    Args:
        functions: The names to sample from.
        count: The number of functions to sample, where a function and its forms count once.
        seed: The seed.

    Returns:
        The sampled names.
    """
    bases = {function: lookup(function).base for function in functions}
    sampled = set(shuffle_by_seed(set(bases.values()), seed)[:count])
    return {function for function, base in bases.items() if base in sampled}
