"""The rows of each sequence, for batches of equal length and for packed sequences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference.attention.core import Sequences

Array = NDArray[Any]


def batch_sequences(q: Array) -> Sequences:
    """Return the rows of each sequence of a batch [sequences, rows, heads, head size]."""
    return [(number, number) for number in range(len(q))]


def packed_sequences(ends_q: Sequence[int] | Array, ends_k: Sequence[int] | Array) -> Sequences:
    """Return the rows of each sequence in tensors of packed sequences.

    Args:
        ends_q: the first row of each sequence in the query tensor, then the end of the last sequence.
        ends_k: the same for the key and value tensors.
    """
    queries, keys = ([slice(int(a), int(b)) for a, b in pairwise(ends)] for ends in (ends_q, ends_k))
    return list(zip(queries, keys, strict=True))


def checked_packed_sequences(
    ends_q: Sequence[int] | Array, ends_k: Sequence[int] | Array, q: Array, k: Array
) -> Sequences:
    """Return the rows of packed sequences as `packed_sequences`; raise ValueError unless they cover q and k."""
    for ends, rows in ((ends_q, q), (ends_k, k)):
        if ends[0] != 0 or ends[-1] != len(rows) or (np.diff(ends) < 0).any():
            raise ValueError(
                f"sequences begin and end at {list(ends)}, expected numbers that rise from 0 to {len(rows)}"
            )
    return packed_sequences(ends_q, ends_k)
