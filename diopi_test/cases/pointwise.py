"""Unary element-wise functions, and the gradient of tanh."""

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
    """Return a domain of numbers in [−1, 1] in which about half of the floating numbers are replaced by `values`."""

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
"""By function, the domain of the input: numbers for which the function is defined, mostly without discontinuities."""


def _draw_exponents_to_overflow(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw x from [−ln(largest), ln(largest)), so that exp(x) does not overflow, for the largest number of the type."""
    largest = np.log(format_of(dtype).largest)
    return rng.uniform(-largest, largest, count)


def _draw_many_periods(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw numbers many periods of sine and cosine from 0, at which neighboring numbers are still close together."""
    return log_uniform(*((0, 3) if dtype in half else (4, 12)))(rng, count, dtype)


def _draw_nans(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw infinities and NaNs of either sign; the bits of the NaNs differ."""
    encodings = [0x7FF0, 0x7FF8, 0x7FFC, 0x7FFA, 0xFFF0, 0xFFF8, 0xFFFC, 0xFFFA]  # the leading 16 bits
    return rng.permutation(np.resize(np.array(encodings, np.uint64) << np.uint64(48), count)).view(np.float64)


INEXACT = (*floating, *complexes)
"""The element types whose results are rounded."""

ALL_EXPONENTS = (-1100, 1100)
"""A range of exponents that exceeds the range of every type."""

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
"""By the start of labels, a further domain, and the functions (without `diopi`) that are tested with it.

Functions often fail in these domains: near 0, near saturation, or far from 0.
"""

PATTERNS_IN_ALL_DTYPES = [shapes.replace(dtypes=DtypeSelection.all) for shapes in UNIFORM]
"""The patterns `UNIFORM`, each for all element types of the function."""

LINE = pattern_template("row", (137,))
"""The pattern of a vector, for the domains of a few functions."""


@cases_for(*DOMAINS)
def unary_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of an element-wise function of one tensor."""
    further = [
        LINE.with_domains({"input": domain}, label, dtypes=INEXACT)
        for label, (domain, functions) in ADDITIONAL_DOMAINS.items()
        if prototype.base.removeprefix("diopi") in functions.split()
    ]
    if prototype.base == "diopiIsNan":
        further.append(LINE.with_domains({"input": _draw_nans}, "encodings", dtypes=floating))
    usual = (shapes.with_domains({"input": DOMAINS[prototype.base]}) for shapes in PATTERNS_IN_ALL_DTYPES)
    cases = Elementwise(prototype).cases([*usual, *Elementwise(prototype).special_value_pairs(), *further])
    return (_annotate(prototype.base, case) for case in cases)


def _annotate(function: str, case: Case) -> Case:
    """Return the case, with the class `callers` or the reason why it does not discriminate where one applies."""
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


ENDS = choice([0.0, -0.0, 1.0, -1.0, 0.5, float("nan")])
"""Special values of the result of tanh, and values at the ends of its range."""

ENDS_BY_SPECIAL = pattern_template("ends", (6, 19), smoke=True, dtypes=DtypeSelection.all)
"""A pattern of all pairs of special values of grad_output and results at the ends of the range of tanh."""

HALVES = choice([0.0, 0.5, -0.5, 0.25, 1.0, -1.0])
"""Results of tanh for which 1 − y² is exact."""

TANH_BACKWARD = (
    *(shapes.with_domains({"grad_output": normal(), "output": uniform(-1, 1)}) for shapes in PATTERNS_IN_ALL_DTYPES),
    ENDS_BY_SPECIAL.with_domains({"grad_output": special, "output": ENDS}),
    LINE.with_domains(
        {"grad_output": integer_values(-8, 8), "output": HALVES}, "exact", dtypes=DtypeSelection.all, exact=True
    ),
)
"""The templates of the gradient of tanh."""


@cases_for("diopiTanhBackward")
def tanh_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradient of tanh, which is computed from the result of tanh."""
    return Elementwise(prototype).cases(TANH_BACKWARD)


CaseFacts(huge_form="plain").declare("diopiAbs")
