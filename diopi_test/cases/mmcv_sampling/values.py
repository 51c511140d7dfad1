"""Values and sizes of resampling and rearranging, whatever the operator."""

from __future__ import annotations

from diopi_proto.types import Dtype
from diopi_test.cases.domains import choice, integer_values, uniform

F32, I32, I64 = Dtype.float32, Dtype.int32, Dtype.int64
F16 = (Dtype.float16,)

Pair = tuple[int, int]
"""Sizes along H and along W."""

Shape4 = tuple[int, int, int, int]

GROWING = {
    **dict.fromkeys(("input", "features", "rfeatures", "top_grad"), uniform(0.7, 0.74)),
    **dict.fromkeys(("kernel", "masks"), choice([1.0])),
}
"""Numbers whose running sum grows until half precision rounds every summand in the same direction."""

EQUAL_ELEMENTS_REASONS = {"growing-sum": "all weights are alike, so that the sum grows"}
WHOLE = integer_values(-2, 2)
"""Small integers, whose sums of products are exact."""
