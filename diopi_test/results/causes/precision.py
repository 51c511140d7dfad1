"""Evidence of arithmetic in a narrower type: the errors of a function in cases of several element types.

Arithmetic in float16 leaves about eleven correct bits in every wider type, and cases of float16 pass. A wrong formula
leaves as many correct bits, but it fails in all types.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from diopi_proto.dtypes import COMPONENT
from diopi_proto.types import Dtype
from diopi_test.execution.deviation import Deviation, DeviationKind
from diopi_test.execution.difference import Difference
from lib_rt.formats import FORMATS

PRECISION: Mapping[str, int] = {
    **{dtype.name: number_format.precision for dtype, number_format in FORMATS.items()},
    **{dtype.name: FORMATS[component].precision for dtype, component in COMPONENT.items()},
}
"""Significant bits by element type; of complex types, those of their parts."""

LARGEST: Mapping[str, float] = {
    **{dtype.name: number_format.largest for dtype, number_format in FORMATS.items()},
    **{dtype.name: FORMATS[component].largest for dtype, component in COMPONENT.items()},
}
"""The largest finite number by element type; of complex types, that of their parts."""

NARROW_TYPES: Mapping[str, tuple[float, float]] = {
    Dtype.float32.name: (-2.0, 8.0),
    Dtype.float16.name: (-2.0, 6.0),
    Dtype.bfloat16.name: (-2.0, 6.0),
}
"""Narrower types, with the range of the correct bits minus the bits of the type. Long sums lose bits, and results to
which only some rounded terms contribute keep more."""

_MIN_SHARE_CONSISTENT = 0.8
"""Share of the findings of a function whose errors must be those of the narrower type."""

_MIN_SHARE_FAILED = 1 / 3
"""Share of the cases of wider types that must fail. The numbers of the remaining cases can be exact in both types."""


def count_correct_bits(difference: Difference, deviation: Deviation) -> float | None:
    """Return the number of correct leading bits of rounding errors; None for integers and without evidence.

    Args:
        difference: an incorrect tensor.
        deviation: how it differs.
    """
    dtype = difference.arguments.get(difference.tensor, "").partition(" ")[0]
    if dtype not in PRECISION or deviation.has(DeviationKind.wrong_value):
        return None
    if deviation.units is not None:
        return PRECISION[dtype] - math.log2(max(deviation.units, 1.0))
    try:
        size = abs(complex(difference.expected))
    except ValueError:
        return None
    return -math.log2(difference.error / size) if difference.error and size else None


def find_narrow_type(correct_bits: Sequence[tuple[str, float | None]], passed: Sequence[str]) -> str:
    """Return the type in which a function most likely computes; empty if the evidence speaks against all of them.

    Args:
        correct_bits: the element type and the number of correct bits of each case with wrong numbers.
        passed: the element type of each case that passed.
    """
    failed_types = Counter(PRECISION[dtype] for dtype, _ in correct_bits if dtype in PRECISION)
    passed_types = Counter(PRECISION[dtype] for dtype in passed if dtype in PRECISION)
    return next((name for name in NARROW_TYPES if _fits(name, correct_bits, failed_types, passed_types)), "")


def _fits(
    name: str,
    correct_bits: Sequence[tuple[str, float | None]],
    failed_types: Mapping[int, int],
    passed_types: Mapping[int, int],
) -> bool:
    """Return whether all evidence agrees with arithmetic in a type."""
    limit, (lower, upper) = PRECISION[name], NARROW_TYPES[name]
    if any(precision <= limit for precision in failed_types):
        return False
    passed_wider = {precision: number for precision, number in passed_types.items() if precision > limit}
    if not passed_wider.keys() <= failed_types.keys():
        return False
    failed = sum(failed_types.values())
    if failed < _MIN_SHARE_FAILED * (failed + sum(passed_wider.values())):
        return False
    if len(passed_wider) == len(passed_types) and len(failed_types) < 2:
        return False  # no case of the narrow type shows that it passes, and no two types agree
    consistent = sum(bits is not None and lower <= bits - limit <= upper for _, bits in correct_bits)
    return consistent >= _MIN_SHARE_CONSISTENT * len(correct_bits)
