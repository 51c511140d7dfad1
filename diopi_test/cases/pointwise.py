"""Cases of element-wise functions of one tensor, and of the gradient of tanh.

A pattern is a template that has only the shapes and layouts of operands. A domain is a distribution or a set of values,
from which the elements of a tensor are drawn. A case is non-discriminating if an implementation with a coarse error
passes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category, complexes, floating, half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, cases_for
from diopi_test.cases.domains import (
    Domain,
    choice,
    full_range,
    integer_values,
    log_uniform,
    non_integers,
    normal,
    special,
    uniform,
)
from diopi_test.cases.elementwise import UNIFORM, Elementwise, pattern_template
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.template import DtypeSelection
from lib_rt.formats import format_of


def _with_half_replaced(*values: float) -> Domain:
    """Return a domain of numbers in [−1, 1], about half of which are replaced by random choices from `values`.

    In bool and integer types, no number is replaced.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        uniform_values = uniform(-1, 1)(rng, count, dtype)
        return (
            uniform_values
            if category(dtype) < 2
            else np.where(rng.random(count) < 0.5, rng.choice(values, count), uniform_values)
        )

    return draw


DOMAINS = {
    "diopiAbs": full_range,
    "diopiNeg": full_range,
    "diopiSign": normal(),
    "diopiSgn": normal(),
    "diopiFloor": non_integers(-20, 20),
    "diopiCeil": non_integers(-20, 20),
    "diopiSqrt": log_uniform(-12, 12, signed=False),
    "diopiRsqrt": log_uniform(-12, 12, signed=False),
    "diopiReciprocal": log_uniform(-7, 7),
    "diopiSin": uniform(-10, 10),
    "diopiCos": uniform(-10, 10),
    "diopiTan": uniform(-10, 10),
    "diopiAsin": uniform(-1, 1),
    "diopiAcos": uniform(-1, 1),
    "diopiAtan": log_uniform(-6, 6),
    "diopiSinh": uniform(-5, 5),
    "diopiCosh": uniform(-5, 5),
    "diopiTanh": uniform(-4, 4),
    "diopiAsinh": log_uniform(-6, 6),
    "diopiAcosh": uniform(1, 50),
    "diopiAtanh": uniform(-1, 1),
    "diopiExp": uniform(-8, 8),
    "diopiExpm1": uniform(-4, 4),
    "diopiLog": log_uniform(-12, 12, signed=False),
    "diopiLog2": log_uniform(-12, 12, signed=False),
    "diopiLog10": log_uniform(-12, 12, signed=False),
    "diopiLog1p": uniform(-0.9, 9),
    "diopiErf": uniform(-3, 3),
    "diopiErfinv": uniform(-1, 1),
    "diopiIsNan": _with_half_replaced(float("nan"), -float("nan")),
    "diopiBitwiseNot": full_range,
    "diopiLogicalNot": _with_half_replaced(0.0, -0.0),
}
"""The domain of the input by function: numbers for which the function is defined, away from most discontinuities."""


def _draw_exponents_to_overflow(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw numbers x of any magnitude for which exp(x) does not overflow.

    Args:
        rng: The random generator.
        count: The number of values.
        dtype: The element type, which has a largest finite number.

    Returns:
        Numbers from [−ln m, ln m) for the largest finite number m.
    """
    largest = np.log(format_of(dtype).largest)
    return rng.uniform(-largest, largest, count)


def _draw_many_periods(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw numbers far from 0, where sine and cosine must reduce their argument to one period.

    Args:
        rng: The random generator.
        count: The number of values.
        dtype: The element type.

    Returns:
        Numbers of magnitude 16 to 4096; 1 to 8 for float16 and bfloat16, whose neighboring numbers would otherwise be
        too far apart.
    """
    return log_uniform(*((0, 3) if dtype in half else (4, 12)))(rng, count, dtype)


def _draw_nans(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw infinities and NaNs of both signs, as float64; the NaNs have different bits."""
    encodings = [0x7FF0, 0x7FF8, 0x7FFC, 0x7FFA, 0xFFF0, 0xFFF8, 0xFFFC, 0xFFFA]  # the leading 16 bits
    return rng.permutation(np.resize(np.array(encodings, np.uint64) << np.uint64(48), count)).view(np.float64)


ROUNDED_DTYPES = (*floating, *complexes)
"""The floating-point and complex element types, whose results are rounded."""

ALL_EXPONENTS = (-1100, 1100)
"""The base-2 exponents of a range that exceeds the range of every type; `log_uniform` limits it to the type."""

ADDITIONAL_DOMAINS: dict[str, tuple[Domain, str]] = {
    "small": (log_uniform(-24, -3), "Sin Tan Asin Atan Sinh Tanh Asinh Atanh Expm1 Log1p Erf Erfinv"),
    "near-one": (uniform(0.9, 1.1), "Log Log2 Log10"),
    "above-one": (uniform(1, 1.1), "Acosh"),
    "far": (_draw_many_periods, "Sin Cos Tan"),
    "nearly-saturated": (uniform(1, 4), "Tanh Erf"),
    "saturated": (uniform(-20, 20), "Tanh Erf"),
    "to-overflow": (_draw_exponents_to_overflow, "Exp Expm1 Sinh Cosh"),
    "wide": (log_uniform(*ALL_EXPONENTS), "Abs Neg Sign Sgn Floor Ceil Reciprocal Atan Asinh"),
    "wide-positive": (log_uniform(*ALL_EXPONENTS, signed=False), "Sqrt Rsqrt Log Log2 Log10 Log1p"),
    "wide-above-one": (log_uniform(0, ALL_EXPONENTS[1], signed=False), "Acosh"),
    "fractions": (log_uniform(-2, 26), "Floor Ceil"),
}
"""By the start of the label, a further domain, and the names (without `diopi`) of the functions tested with it.

Functions often fail in these domains: near 0, near saturation, or far from 0.
"""

PATTERNS_IN_ALL_DTYPES = [pattern.replace(dtypes=DtypeSelection.all) for pattern in UNIFORM]
"""The patterns `UNIFORM`, each in all element types of the function."""

LONG_VECTOR = pattern_template("row", (137,))
"""A pattern of a vector of 137 elements, for domains with which only some functions are tested."""


@cases_for(*DOMAINS)
def unary_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of an element-wise function of one tensor."""
    additional_templates = [
        LONG_VECTOR.with_domains({"input": domain}, label, dtypes=ROUNDED_DTYPES)
        for label, (domain, functions) in ADDITIONAL_DOMAINS.items()
        if prototype.base.removeprefix("diopi") in functions.split()
    ]
    if prototype.base == "diopiIsNan":
        additional_templates.append(LONG_VECTOR.with_domains({"input": _draw_nans}, "encodings", dtypes=floating))
    usual = (pattern.with_domains({"input": DOMAINS[prototype.base]}) for pattern in PATTERNS_IN_ALL_DTYPES)
    cases = Elementwise(prototype).cases([*usual, *Elementwise(prototype).special_value_pairs(), *additional_templates])
    return (_annotate(prototype.base, case) for case in cases)


def _annotate(function: str, case: Case) -> Case:
    """Return a copy of the case with its class or the reason why it is non-discriminating; most cases have neither.

    Args:
        function: The name of the function.
        case: The case.

    Returns:
        The copy.
    """
    is_inexact = category(case.dtype) > 1
    if function == "diopiAbs" and case.dtype is Dtype.bool:
        return replace(case, case_class=CaseClass.callers)
    if function == "diopiIsNan" and not is_inexact:
        return replace(case, non_discriminating="no integer is NaN")
    if function == "diopiIsNan" and case.label.endswith("special"):
        return replace(case, non_discriminating="only one of the special values is NaN")
    if function == "diopiAcosh" and case.dtype is Dtype.bool:
        return replace(case, non_discriminating="of the truth values, only 1 has a finite result, which is 0")
    return case


TANH_RESULTS = choice([0.0, -0.0, 1.0, -1.0, 0.5, float("nan")])
"""A domain of results of tanh: 0, values at the ends of its range, ½ and NaN."""

SPECIAL_GRADIENTS = pattern_template("ends", (6, 19), smoke=True, dtypes=DtypeSelection.all)
"""A pattern of six rows, each of which contains all 19 special values of grad_output.

The results of tanh differ between the rows, so that special values meet different results.
"""

EXACT_TANH_RESULTS = choice([0.0, 0.5, -0.5, 0.25, 1.0, -1.0])
"""A domain of results y of tanh for which 1 − y² has no rounding error."""

TANH_BACKWARD = (
    *(pattern.with_domains({"grad_output": normal(), "output": uniform(-1, 1)}) for pattern in PATTERNS_IN_ALL_DTYPES),
    SPECIAL_GRADIENTS.with_domains({"grad_output": special, "output": TANH_RESULTS}),
    LONG_VECTOR.with_domains(
        {"grad_output": integer_values(-8, 8), "output": EXACT_TANH_RESULTS},
        "exact",
        dtypes=DtypeSelection.all,
        exact=True,
    ),
)
"""The templates of the gradient of tanh, whose arguments are grad_output and the result of tanh."""


@cases_for("diopiTanhBackward")
def tanh_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradient of tanh, which is computed from the result of tanh."""
    return Elementwise(prototype).cases(TANH_BACKWARD)


CaseFacts(huge_form="plain").declare("diopiAbs")
