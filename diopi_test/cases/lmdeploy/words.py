"""Tables of words in the format of the kernels that ban words or stop at words. A word is a sequence of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def word_table(width: int, *words: Sequence[int]) -> list[list[int]]:
    """Return a table of words with two rows of `width` numbers.

    The first row contains the tokens of all words one after another, padded with 0. The second row contains the
    position after the last token of each word, padded with −1. For example, `word_table(4, [7], [8, 9])` is `[[7, 8, 9,
    0], [1, 3, -1, -1]]`.

    Args:
        width: The width of the table.
        *words: The tokens of each word.

    Returns:
        The table.

    Raises:
        ValueError: The tokens do not fit in the table.
    """
    tokens = [token for word in words for token in word]
    ends = list(accumulate(map(len, words)))
    if max(len(tokens), len(ends)) > width:
        raise ValueError(f"{len(words)} words of {len(tokens)} tokens don't fit in a table of width {width}")
    return [tokens + [0] * (width - len(tokens)), ends + [-1] * (width - len(ends))]
