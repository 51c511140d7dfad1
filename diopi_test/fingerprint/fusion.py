"""Probes of multiply-add: whether a product or quotient is rounded before a number is added to it.

Each probe lets a function compute f(x) − r, where f(x) is a product or quotient and r is f(x) rounded to the element
type. The result is 0 if the function rounds f(x) before the subtraction, and otherwise the rounding error of r.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import floating
from diopi_proto.types import Dtype
from diopi_test.fingerprint.probe import Observations, Probe, ProbedOperator, single_variants, yes_or_no
from lib_rt.dtypes import Array, to_numpy
from lib_rt.formats import FORMATS

Floats = NDArray[np.float64]

SCALE = 16.0
"""The factor of products and quotients, which is so large that their rounding error is a normal number in float16."""


def numbers_with_inexact_squares(dtype: Dtype) -> Floats:
    """Return two numbers 1 + 2^−k that the type represents exactly, whereas their squares and inverses are rounded."""
    least = (FORMATS[dtype].precision + 1) // 2
    return 1 + np.ldexp(1.0, -np.arange(least, least + 2))


def scale(x: Array) -> Any:
    """Return x times `SCALE`, in the type of x."""
    return x * np.asarray(SCALE, x.dtype)


def _rounded_product(x: Array) -> Any:
    """Return `SCALE` times x², rounded to the type of x."""
    return scale(x) * x


def _rounded_quotient(x: Array) -> Any:
    """Return `SCALE` divided by x, rounded to the type of x."""
    return scale(np.ones_like(x)) / x


Arguments = Callable[[Array, Array], tuple[Any, ...]]
"""A function that returns all arguments of a call; it receives two arrays: the number that is added, and x."""


def measure(
    operator: ProbedOperator, dtype: Dtype, *, rounded: Callable[[Array], Array], arguments: Arguments
) -> Observations:
    """Observe whether an operator rounds a product or quotient before it adds a number.

    Args:
        operator: the operator.
        dtype: the element type.
        rounded: returns the product or quotient of x after rounding to the element type; the call subtracts it.
        arguments: returns the arguments of the call.

    Returns:
        The observation `added`: "unrounded" if the operator adds the unrounded product or quotient, or "rounded".
    """
    numbers = numbers_with_inexact_squares(dtype).astype(to_numpy(dtype))
    residues = np.concatenate([operator(*arguments(-rounded(x), x), shape=(1,), dtype=dtype) for x in numbers[:, None]])
    if not np.isfinite(residues).all():
        return {"added": ", ".join(str(residue) for residue in residues)}
    return {"added": yes_or_no(residues != 0, "unrounded", "rounded")}


def _probe(function: str, rounded: Callable[[Array], Array], arguments: Arguments) -> Probe:
    """Return the probe of a function; `measure` describes the parameters `rounded` and `arguments`."""
    return Probe(
        function=function,
        measure=partial(measure, rounded=rounded, arguments=arguments),
        variants=single_variants(*floating),
    )


PROBES = (
    _probe("diopiAddcmul", _rounded_product, lambda addend, x: (addend, scale(x), x, 1)),
    _probe("diopiAdd", _rounded_product, lambda addend, x: (addend, scale(x), float(x[0]))),
    _probe("diopiAddcdiv", _rounded_quotient, lambda addend, x: (addend, scale(np.ones_like(x)), x, 1)),
)
