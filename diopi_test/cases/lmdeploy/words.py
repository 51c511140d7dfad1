"""Tables of words, as the kernels that ban words and stop at them read them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def joined(width: int, *words: Sequence[int]) -> list[list[int]]:
    """Return a table [2, width] of words: their joined tokens, padded with 0, and their ends, padded with −1."""
    tokens = [token for word in words for token in word]
    ends = list(accumulate(map(len, words)))
    if max(len(tokens), len(ends)) > width:
        raise ValueError(f"{len(words)} words of {len(tokens)} tokens don't fit in a table of width {width}")
    return [tokens + [0] * (width - len(tokens)), ends + [-1] * (width - len(ends))]
