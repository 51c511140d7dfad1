"""Sums of half-precision numbers that are accumulated in half precision.

A reference declares terms for its sums (`accumulation_terms`). They are the standard deviation of the error of a sum in
units of eps, averaged over all orders of addition. If partial sums are rounded to half precision, the eps is that of
the half type. Other terms that a reference declares, such as the terms of a difference of two products, are still
multiplied by the eps of float32. A partial sum can also overflow the range of the half type although the sum does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.oracle.arithmetic.array import Arithmetic, Array
from diopi_test.oracle.arithmetic.change import Evaluate, carry_arrays
from diopi_test.oracle.overflow import evaluate_in_range
from diopi_test.oracle.reference.sums import scale_sum_terms
from lib_rt.formats import FORMATS, FloatArray, Format

SINGLE = FORMATS[Dtype.float32]
"""The format in which sums are accumulated unless the vendor declares half precision."""

DeriveTerms = Callable[[Mapping[str, Any]], Sequence[Array]]
"""Returns the terms of each result of a reference, from its arguments."""


def accumulation_errors(
    terms: Sequence[Array], derive_terms: DeriveTerms, arguments: Mapping[str, Any], half: Format
) -> list[FloatArray]:
    """Return the additional error of each result element, an absolute number, if sums are accumulated in a half type.

    Args:
        terms: The terms of each result of the reference.
        derive_terms: The reference, evaluated for its terms.
        arguments: The arguments of the reference.
        half: The format of the half type.

    Returns:
        The errors of each result; 0 for elements without a sum, and for elements whose terms are not finite.
    """

    def scale(function: Callable[..., Any], operands: list[Any], keywords: dict[str, Any]) -> Any:
        """Return the terms of sums with the eps of the half type, in units of the eps of float32."""
        return half.epsilon / SINGLE.epsilon * function(*operands, **keywords)

    arithmetic = Arithmetic({(scale_sum_terms, ""): scale})
    carried = {name: carry_arrays(value, arithmetic, "fc") for name, value in arguments.items()}
    with np.errstate(all="ignore"):
        coarser = derive_terms(carried)
        errors = [SINGLE.epsilon * (b - a) for a, b in zip(terms, coarser, strict=True)]
    return [np.where(np.isfinite(error), error, 0.0) for error in errors]


def find_overflowing_sums(
    results: Sequence[Array], evaluate: Evaluate, arguments: Mapping[str, Any], half: Format
) -> list[Array]:
    """Return which result elements have a finite half-precision value, but may overflow while they are computed.

    Args:
        results: The results of the reference.
        evaluate: The reference.
        arguments: The arguments of the reference.
        half: The format of the half type.

    Returns:
        For each result, a bool array of its shape. It is also true for elements that depend on other intermediate
        values than sums.
    """
    with np.errstate(all="ignore"):
        limited = evaluate_in_range(lambda values: list(evaluate(values)), arguments, half)
    return [(np.abs(a) < half.overflow) & ~np.isfinite(b) for a, b in zip(results, limited, strict=True)]
