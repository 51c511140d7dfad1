"""Measure the width of the partial sums of half-precision terms: the number of their significant bits.

Most vendors accumulate half-precision terms in float32, others in half precision. Sums, matrix products and
convolutions are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.fingerprint.accumulation import (
    TERMS,
    RowSum,
    Sums,
    find_top,
    sum_by_matrix_products,
    sum_matrix_rows,
    width,
)
from diopi_test.fingerprint.numerics.operators import Operators
from diopi_test.fingerprint.probe import ProbedOperator, ProbeFailedError
from lib_rt.dtypes import Array, from_numpy

MIN_BITS = 20
"""Partial sums with at least this many significant bits do not count as half precision. Those of float32 have 24."""


@final
@dataclass(frozen=True)
class AccumulatorWidth:
    """The width of the partial sums of an operator.

    Attributes:
        operator: the operator, in words.
        dtype: the element type of the terms.
        bits: the significant bits of the narrowest partial sum.
    """

    operator: str
    dtype: Dtype
    bits: int

    @property
    def is_half(self) -> bool:
        """Whether sums are accumulated in half precision."""
        return self.bits < MIN_BITS

    def __str__(self) -> str:
        return f"{self.operator}: partial sums of {self.dtype.name} have {self.bits} significant bits"


def _sum_by_convolution(operator: ProbedOperator, rows: Array) -> Array:
    """Return the sum of each row by a convolution with ones; a row is a 1 × 1 image with a channel per term."""
    images, kernel = rows[..., None, None], np.ones((1, TERMS, 1, 1), rows.dtype)
    shape = (len(rows), 1, 1, 1)
    result = operator(images, kernel, None, (1, 1), (0, 0), (1, 1), 1, shape=shape, dtype=from_numpy(rows.dtype))
    return result.reshape(len(rows))


_PROBES: Sequence[tuple[str, str, RowSum]] = (
    ("sums", "diopiSum", sum_matrix_rows),
    ("matrix products", "diopiMm", sum_by_matrix_products),
    ("convolutions", "diopiConvolution2d", _sum_by_convolution),
)
"""The probed operators: the name in words, the standard function, and the function that calls it to sum rows."""


def measure_half_sums(operators: Operators) -> list[AccumulatorWidth]:
    """Return the widths of partial sums; operators and element types that the vendor lacks are left out."""
    widths = []
    for name, function, row_sum in _PROBES:
        for dtype in half:
            try:
                bits = _measure_width(Sums(operators[function], row_sum, dtype))
            except ProbeFailedError:
                continue
            if bits is not None:
                widths.append(AccumulatorWidth(name, dtype, bits))
    return widths


def _measure_width(sums: Sums) -> int | None:
    """Return the number of significant bits of partial sums; None if the probe finds no limit, or if sums are wrong."""
    top = find_top(sums)
    return None if top is None else width(sums, top)
