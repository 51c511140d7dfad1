"""Shared parts of the cases of kernels for serving language models: element types, and domains of numbers."""

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
"""The floating-point types."""

I32, I64 = Dtype.int32, Dtype.int64
"""The element types of indices and tables."""

POSITIVE = uniform(0.5, 1)
"""Numbers whose long sums show in which precision a vendor accumulates."""

HIGH, LOW = uniform(0.9, 1), uniform(0.5, 0.6)
"""Domains of high and of low values. The weighted mean of both shows the share of the weights that each gets."""

POWERS = 4, 8, 16
"""Lengths of sequences in which every other key has the same weight.

Weights are powers of two, and means of small integers are exact.
"""

FAR = 64.0
"""A difference of scores that is so large that the softmax weight of the lower score is 0."""


def in_pairs(positions: Any, *row: int) -> TensorTemplate:
    """Return keys of which each two neighbors have the same score, far above the scores of all earlier keys.

    A query of ones attends to the last pair of the keys up to its own position, or to the first key of a pair.

    Args:
        positions: The positions of the keys in their sequence.
        *row: The shape of one key.

    Returns:
        The tensor.
    """
    scores = FAR * (np.asarray(positions) // 2)
    rows = np.broadcast_to(scores.reshape(-1, *[1] * len(row)), (len(scores), *row))
    return tensor(*rows.shape, compute=lambda values: rows)


ONES, SMALL = choice([1.0]), integer_values(1, 8)
"""Domains of the number 1 and of the integers from 1 to 8. Means of positive numbers are not near 0."""
