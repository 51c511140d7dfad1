"""The elementary functions whose errors a vendor may declare, and the largest result of each in a range of arguments.

The names are those of C and PyTorch. `validation` compares a declared absolute error with the largest result, to reject
errors that are too large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist

ELEMENTARY_FUNCTIONS: tuple[str, ...] = (
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "divide",
    "erf",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "pow",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
)
"""The names of the elementary functions.

A vendor declares the error of a function as an `ErrorBound`, which holds for a range of arguments. For functions of two
arguments, it is a range of the divisor of `divide`, the base of `pow`, or the first argument of `atan2`.
"""

_NORMAL = NormalDist()

_FORMULAS: Mapping[str, Callable[[float], float]] = {
    **{
        name: getattr(math, name)
        for name in ELEMENTARY_FUNCTIONS
        if hasattr(math, name) and name not in ("pow", "atan2")
    },
    "erfinv": lambda x: _NORMAL.inv_cdf((1 + x) / 2) / math.sqrt(2),
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sigmoid": lambda x: math.exp(min(x, 0)) / (1 + math.exp(-abs(x))),
}
"""The functions of one argument. Functions of two arguments are missing, because a range of one does not limit them."""

_DOMAINS: Mapping[str, tuple[float, float]] = {
    "acos": (-1, 1),
    "acosh": (1, math.inf),
    "asin": (-1, 1),
    "atanh": (-1, 1),
    "erfinv": (-1, 1),
    "log": (0, math.inf),
    "log10": (0, math.inf),
    "log1p": (-1, math.inf),
    "log2": (0, math.inf),
    "rsqrt": (0, math.inf),
    "sqrt": (0, math.inf),
}
"""The smallest and largest argument of each function that is not defined for all real numbers."""

_PEAKS: Mapping[str, tuple[float, float]] = {
    "cos": (0, math.pi),
    "reciprocal": (0, math.inf),
    "sin": (math.pi / 2, math.pi),
    "tan": (math.pi / 2, math.pi),
}
"""The peaks of functions: maxima of the magnitude, and poles. The magnitude there is 1 or more.

The peaks of a function are all x = first + k · distance with an integer k; the values are (first, distance). If the
distance is infinite, there is only one peak. All other functions are largest in magnitude at an end of a range.
"""


def largest_result(name: str, minimum: float, maximum: float) -> float:
    """Return the largest magnitude of the results of a function for arguments in a range, limited to 1.

    The magnitude is largest at an end of the range or at a peak.

    Args:
        name: The name of the function.
        minimum: The smallest argument.
        maximum: The largest argument.

    Returns:
        The magnitude, or 1 in three cases: it is larger than 1; the function has two arguments; or the function is not
        defined in the range.
    """
    lowest, highest = _DOMAINS.get(name, (-math.inf, math.inf))
    first, last = max(minimum, lowest), min(maximum, highest)
    if name not in _FORMULAS or first > last or _contains_peak(name, first, last):
        return 1.0
    return max(_magnitude(_FORMULAS[name], first), _magnitude(_FORMULAS[name], last))


def _contains_peak(name: str, minimum: float, maximum: float) -> bool:
    """Return whether the range from `minimum` to `maximum` contains a peak of the function `name` (see `_PEAKS`)."""
    if name not in _PEAKS:
        return False
    first, distance = _PEAKS[name]
    if math.isinf(distance):
        return minimum <= first <= maximum
    return math.isinf(minimum) or math.ceil((minimum - first) / distance) * distance + first <= maximum


def _magnitude(formula: Callable[[float], float], x: float) -> float:
    """Return |formula(x)|, limited to 1; an overflow, a pole, or x outside the domain counts as 1."""
    try:
        return min(abs(formula(x)), 1.0)
    except (ArithmeticError, ValueError):
        return 1.0
