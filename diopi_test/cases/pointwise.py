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
"""By function, the domain of the values: the whole range of the function, without its discontinuities."""


def _draw_exponents_to_overflow(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw arguments whose exponential ranges from the smallest normal to the largest number."""
    largest = np.log(format_of(dtype).largest)
    return rng.uniform(-largest, largest, count)


def _draw_many_periods(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw arguments many periods from 0, up to where neighboring numbers of the type are still close together."""
    return log_uniform(*((0, 3) if dtype in half else (4, 12)))(rng, count, dtype)


INEXACT = (*floating, *complexes)

ALL_EXPONENTS = (-1100, 1100)
"""A range of exponents that exceeds that of every type."""

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
"""More domains in which floating functions often fail, with these functions: near 0, near saturation, far away."""

ALL = [shapes.replace(dtypes=DtypeSelection.all) for shapes in UNIFORM]
LINE = pattern_template("row", (137,))

OUTER = pattern_template("all-by-all", (6, 19), (6, 1), smoke=True, dtypes=DtypeSelection.all)
"""Shapes that combine every value of the first tensor, one per special value, with every value of the second."""


@cases_for(*DOMAINS)
def unary_cases(prototype: Prototype) -> Iterator[Case]:
    further = [
        LINE.with_domains({"input": domain}, label, dtypes=INEXACT)
        for label, (domain, functions) in ADDITIONAL_DOMAINS.items()
        if prototype.base.removeprefix("diopi") in functions.split()
    ]
    usual = (shapes.with_domains({"input": DOMAINS[prototype.base]}) for shapes in ALL)
    cases = Elementwise(prototype).cases([*usual, *Elementwise(prototype).special_value_pairs(), *further])
    return (_annotate(prototype.base, case) for case in cases)


def _annotate(function: str, case: Case) -> Case:
    """Return the case with its class, and with the reason if it cannot discriminate better."""
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
"""Special values of a result, and values at the ends of its range."""

ENDS_BY_SPECIAL = pattern_template("ends", (6, 19), smoke=True, dtypes=DtypeSelection.all)
HALVES = choice([0.0, 0.5, -0.5, 0.25, 1.0, -1.0])

TANH_BACKWARD = (
    *(shapes.with_domains({"grad_output": normal(), "output": uniform(-1, 1)}) for shapes in ALL),
    ENDS_BY_SPECIAL.with_domains({"grad_output": special, "output": ENDS}),
    LINE.with_domains(
        {"grad_output": integer_values(-8, 8), "output": HALVES}, "exact", dtypes=DtypeSelection.all, exact=True
    ),
)


@cases_for("diopiTanhBackward")
def tanh_backward_cases(prototype: Prototype) -> Iterator[Case]:
    return Elementwise(prototype).cases(TANH_BACKWARD)


CaseFacts(huge_form="plain").declare("diopiAbs")
