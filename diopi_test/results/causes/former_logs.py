"""Derive the deviations of incorrect tensors from logs of older versions, which do not contain deviations.

A deviation describes how the wrong elements of a tensor differ from the expected ones. Older logs contain only the
worst element of each tensor and the patterns of wrong elements, as texts.
"""

from __future__ import annotations

import math
import re

from diopi_test.execution.deviation import Deviation, DeviationKind, Region
from diopi_test.execution.difference import Difference, PatternKind

_MAX_ROUNDING = 2.0**-4
"""Largest error relative to the expected value that counts as rounding."""

_SPECIAL_VALUES = re.compile(r"only where (?P<parameter>\S+) is (?P<condition>.+), \d+ of \d+ such$")
"""The text of a pattern of special values."""


def deviation_of(difference: Difference) -> Deviation:
    """Return the deviation of an incorrect tensor; derive it from texts if the log does not contain it."""
    if difference.deviation is not None:
        return difference.deviation
    kind = _kind_of_worst(difference.actual, difference.expected)
    return Deviation(kinds={kind.value: difference.wrong_count}, regions=tuple(_regions(difference)))


def _kind_of_worst(actual_text: str, expected_text: str) -> DeviationKind:
    """Return the kind of the worst element from the texts of its actual and expected value.

    The kind is a wrong value if the texts are not real numbers.
    """
    try:
        actual, expected = float(actual_text), float(expected_text)
    except ValueError:
        return DeviationKind.wrong_value
    if math.isnan(actual) != math.isnan(expected):
        return DeviationKind.invented_nan if math.isnan(actual) else DeviationKind.lost_nan
    if math.isinf(actual) != math.isinf(expected):
        return DeviationKind.invented_infinity if math.isinf(actual) else DeviationKind.lost_infinity
    if actual == expected == 0:
        return DeviationKind.sign_of_zero
    is_real = not (actual_text + expected_text).lstrip("-").isdigit()
    is_near = is_real and abs(actual - expected) <= _MAX_ROUNDING * abs(expected)
    return DeviationKind.rounding if is_near else DeviationKind.wrong_value


def _regions(difference: Difference) -> list[Region]:
    """Return the regions of inputs that the patterns of a tensor state."""
    matches = (
        _SPECIAL_VALUES.match(pattern.text) for pattern in difference.patterns if pattern.kind is PatternKind.values
    )
    return [Region(parameter=match["parameter"], condition=match["condition"]) for match in matches if match]
