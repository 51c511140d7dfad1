"""What calls of serving kernels share: element types, and numbers for sums that are exact or show their accumulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_proto.dtypes import floating
from diopi_proto.types import Dtype
from diopi_test.cases.domains import choice, integer_values, uniform
from diopi_test.cases.template import TensorTemplate, tensor

Shape = tuple[int, ...]
F16, BF16, F32, F64 = floating
I32, I64 = Dtype.int32, Dtype.int64

POSITIVE = uniform(0.5, 1)
"""Sums of many such numbers show the width of the accumulator."""

HIGH, LOW = uniform(0.9, 1), uniform(0.5, 0.6)
"""Ranges of values that alternate, so that the mean shows which share of the weights each range gets."""

POWERS = 4, 8, 16
"""Lengths of sequences in which every other key has the same weight: weights are powers of two, and means of small
whole numbers are exact."""

FAR = 64.0
"""The distance of a score above others whose weights are then 0."""


def in_pairs(places: Any, *row: int) -> TensorTemplate:
    """Return keys of which each two neighbors have the same score, far above the scores of all earlier keys.

    Of the keys up to its own position, a query of ones attends to the last pair, or to the first key of a pair.

    Args:
        places: the positions of the keys.
        *row: the shape of one key.

    Returns:
        The tensor.
    """
    scores = FAR * (np.asarray(places) // 2)
    rows = np.broadcast_to(scores.reshape(-1, *[1] * len(row)), (len(scores), *row))
    return tensor(*rows.shape, compute=lambda values: rows)


ONES, SMALL = choice([1.0]), integer_values(1, 8)
"""Positive numbers, so that no mean is near 0, where negligible weights would determine the result."""
