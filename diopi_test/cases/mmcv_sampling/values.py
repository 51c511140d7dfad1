"""Domains and types that the cases of resampling share.

A domain draws the values of a tensor (`diopi_test.cases.domains`). `Case.non_discriminating` is the reason why a wrong
result can pass a case.
"""

from __future__ import annotations

from diopi_proto.types import Dtype
from diopi_test.cases.domains import choice, integer_values, uniform

F32, I32, I64 = Dtype.float32, Dtype.int32, Dtype.int64
"""Short names for element types."""

F16 = (Dtype.float16,)
"""The element types of large half-precision cases."""

Pair = tuple[int, int]
"""Two sizes: the height and the width."""

Shape4 = tuple[int, int, int, int]
"""The shape of a tensor with four axes."""

GROWING_SUM_DOMAINS = {
    **dict.fromkeys(("input", "features", "rfeatures", "top_grad"), uniform(0.7, 0.74)),
    **dict.fromkeys(("kernel", "masks"), choice([1.0])),
}
"""Domains by argument name: numbers whose running sum grows until half precision rounds each term in one direction."""

EQUAL_ELEMENTS_REASONS = {"growing-sum": "all weights are alike, so that the sum grows"}
"""Why some wrong results can pass a case (`Case.non_discriminating`), by the start of the label."""

SMALL_INTEGERS = integer_values(-2, 2)
"""A domain of small integers, whose sums of products are exact."""
