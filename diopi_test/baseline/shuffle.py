"""Drawing by a seed: in which order things are done, and which ones. The same in every process and on every machine."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from typing import TypeVar

from diopi_proto.interface import lookup

T = TypeVar("T")

RANDOM = "random"
"""Given in place of a seed: a new one is drawn."""


def parse_seed(text: str) -> int:
    """The seed a user gives: an integer, or `RANDOM` for a new one. ValueError for anything else."""
    if text == RANDOM:
        return secrets.randbelow(10**6)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no seed: expected an integer or {RANDOM!r}") from None


def shuffle_by_seed(items: Iterable[T], seed: int | None, name: Callable[[T], str] = str) -> list[T]:
    """`items` in an order that follows from the seed and their names alone; unchanged if there is no seed."""
    if seed is None:
        return list(items)
    return sorted(items, key=lambda item: hashlib.sha256(f"{seed}\0{name(item)}".encode()).digest())


def sample_functions(functions: Iterable[str], count: int, seed: int) -> set[str]:
    """Those of `functions` that `number` drawn ones stand for: each with the forms derived from it.

    Forms of one function share what a vendor keeps between calls.
    """
    bases = {function: lookup(function).base for function in functions}
    sampled = set(shuffle_by_seed(set(bases.values()), seed)[:count])
    return {function for function, base in bases.items() if base in sampled}
