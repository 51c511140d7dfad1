"""The elementary functions whose errors a vendor may declare, by the names that C and PyTorch give them."""

from __future__ import annotations

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

The range of an `ErrorBound` is that of the only argument, of the divisor in `divide`, of the base in `pow`, and of the
first argument in `atan2`.
"""
