"""Shared parts of the cases for serving language models: element types, domains, and keys with exact weights.

A domain draws the values of a tensor (`diopi_test.cases.domains`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_proto.dtypes import floating
from diopi_proto.types import Dtype
from diopi_test.cases.domains import choice, integer_values, uniform
from diopi_test.cases.template import TensorTemplate, tensor

Shape = tuple[int, ...]
"""The sizes of a tensor."""

F16, BF16, F32, F64 = floating
"""Short names for the floating-point types."""

I32, I64 = Dtype.int32, Dtype.int64
"""Short names for the element types of indices and tables."""

POSITIVE = uniform(0.5, 1)
"""A domain of positive numbers. Their long sums grow, so that the result shows in which precision a vendor accumulates.
"""

HIGH_VALUES, LOW_VALUES = uniform(0.9, 1), uniform(0.5, 0.6)
"""Domains of values near 1 and near 0.55.

A mean of values from both domains shows how the attention weights are distributed between the two groups.
"""

POWER_OF_TWO_LENGTHS = 4, 8, 16
"""Lengths of sequences in which one half of the keys has equal scores and the other half has weight 0.

The numbers of keys with equal scores are 2, 4 and 8. Each weight is therefore a power of two, and the weighted sums of
small integers are exact.
"""

SCORE_GAP = 64.0
"""A difference of two scores for which the softmax weight of the lower score is exactly 0 in every floating-point type.

The difference is applied to each element of a key, so that the scores differ by a multiple of it.
"""


def paired_keys(positions: Any, *row: int) -> TensorTemplate:
    """Return keys in pairs with equal scores: each pair has a much higher score than all earlier pairs.

    Every element of the keys at the positions 2n and 2n + 1 is n · `SCORE_GAP`.

    With causal attention, a query of ones attends only to the last pair up to its own position. At an even position, it
    therefore attends only to its own key. The weights are then 1, or 1/2 and 1/2, and the results are exact.

    Args:
        positions: The position of each key in its sequence, a vector of integers.
        *row: The shape of one key.

    Returns:
        The tensor of keys, with the shape (number of positions, *row).
    """
    scores = SCORE_GAP * (np.asarray(positions) // 2)
    rows = np.broadcast_to(scores.reshape(-1, *[1] * len(row)), (len(scores), *row))
    return tensor(*rows.shape, compute=lambda values: rows)


ONES, SMALL_INTEGERS = choice([1.0]), integer_values(1, 8)
"""Domains of the number 1 and of the integers from 1 to 8. They are positive, so that their means are not near 0."""
