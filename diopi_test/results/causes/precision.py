"""Find out whether a function computes in a narrower type than the element type of its tensors.

The evidence is the errors of the function in cases of several element types. For example, arithmetic in float16 leaves
about eleven correct bits in cases of every wider type, and cases of float16 pass. A wrong formula can leave as many
correct bits, but it fails in all types.
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
"""The number of significant bits by element type; for complex types, the bits of the real and imaginary parts."""

LARGEST: Mapping[str, float] = {
    **{dtype.name: number_format.largest for dtype, number_format in FORMATS.items()},
    **{dtype.name: FORMATS[component].largest for dtype, component in COMPONENT.items()},
}
"""The largest finite number by element type; for complex types, the largest real or imaginary part."""

NARROW_TYPES: Mapping[str, tuple[float, float]] = {
    Dtype.float32.name: (-2.0, 8.0),
    Dtype.float16.name: (-2.0, 6.0),
    Dtype.bfloat16.name: (-2.0, 6.0),
}
"""The narrower types that are considered, with the accepted range of (correct bits − significant bits of the type).

The difference is negative for long sums, which lose bits. It is positive for results to which rounded terms contribute
little.
"""

_MIN_SHARE_CONSISTENT = 0.8
"""The share of the failed cases of a function whose correct bits must lie in the range of the narrower type."""

_MIN_SHARE_FAILED = 1 / 3
"""The share of the cases of wider types that must fail. In the other cases, the numbers can be exact in both types."""


def count_correct_bits(difference: Difference, deviation: Deviation) -> float | None:
    """Return the number of correct leading bits of a tensor with rounding errors; None for integers, or if unknown.

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
    if not difference.error or not size or not math.isfinite(difference.error) or not math.isfinite(size):
        return None
    return math.log2(size) - math.log2(difference.error)


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
    """Return whether all evidence agrees with arithmetic in a narrower type.

    Args:
        name: the narrower type.
        correct_bits: as in `find_narrow_type`.
        failed_types: the number of failed cases by the significant bits of their element type.
        passed_types: the number of passed cases by the significant bits of their element type.

    Returns:
        Whether the type fits.
    """
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
