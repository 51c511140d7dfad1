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
from diopi_test.cases.elementwise import UNIFORM, elementwise_cases, pattern, special_value_pairs, with_domains
from diopi_test.cases.formats import format_of
from diopi_test.cases.model import Case, CaseClass, cases_for
from diopi_test.cases.template import DtypeSelection


def _half_of(*values: float) -> Domain:
    """Numbers in [−1, 1], of the floating ones about half replaced by these values."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        others = uniform(-1, 1)(rng, count, dtype)
        return others if category(dtype) < 2 else np.where(rng.random(count) < 0.5, rng.choice(values, count), others)

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
    "diopiIsNan": _half_of(float("nan"), -float("nan")),
    "diopiBitwiseNot": full_range,
    "diopiLogicalNot": _half_of(0.0, -0.0),
}
"""Where each function's values are drawn from: all of its range, and away from where it jumps."""


def _to_overflow(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Arguments whose exponential reaches from the smallest normal number to the largest number."""
    largest = np.log(format_of(dtype).largest)
    return rng.uniform(-largest, largest, count)


def _far(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Many periods from 0, as far as the numbers of the type are close together there."""
    return log_uniform(*((0, 3) if dtype in half else (4, 12)))(rng, count, dtype)


INEXACT = (*floating, *complexes)

EVERYWHERE = (-1100, 1100)
"""Exponents beyond those of every type."""

FURTHER: dict[str, tuple[Domain, str]] = {
    "small": (log_uniform(-24, -3), "Sin Tan Asin Atan Sinh Tanh Asinh Atanh Expm1 Log1p Erf Erfinv"),
    "near-one": (uniform(0.9, 1.1), "Log Log2 Log10"),
    "above-one": (uniform(1, 1.1), "Acosh"),
    "far": (_far, "Sin Cos Tan"),
    "nearly-saturated": (uniform(1, 4), "Tanh Erf"),
    "saturated": (uniform(-20, 20), "Tanh Erf"),
    "to-overflow": (_to_overflow, "Exp Expm1 Sinh Cosh"),
    "wide": (log_uniform(*EVERYWHERE), "Abs Neg Sign Sgn Floor Ceil Reciprocal Atan Asinh"),
    "wide-positive": (log_uniform(*EVERYWHERE, signed=False), "Sqrt Rsqrt Log Log2 Log10 Log1p"),
    "wide-above-one": (log_uniform(0, EVERYWHERE[1], signed=False), "Acosh"),
    "fractions": (log_uniform(-2, 26), "Floor Ceil"),
}
"""Where else floating functions go wrong, and which: near their zeros, where they saturate, far out, everywhere."""

ALL = [shapes.replace(dtypes=DtypeSelection.all) for shapes in UNIFORM]
LINE = pattern("row", (137,))

OUTER = pattern("all-by-all", (6, 19), (6, 1), smoke=True, dtypes=DtypeSelection.all)
"""All values of the first tensor, as many as floating types have special ones, with all of the second."""


@cases_for(*DOMAINS)
def unary(prototype: Prototype) -> Iterator[Case]:
    further = [
        with_domains(LINE, {"input": domain}, label, dtypes=INEXACT)
        for label, (domain, functions) in FURTHER.items()
        if prototype.base.removeprefix("diopi") in functions.split()
    ]
    usual = (with_domains(shapes, {"input": DOMAINS[prototype.base]}) for shapes in ALL)
    cases = elementwise_cases(prototype, [*usual, *special_value_pairs(prototype), *further])
    return (_classified(prototype.base, case) for case in cases)


def _classified(function: str, case: Case) -> Case:
    """The case with its class, and the reason if it does not discriminate."""
    is_inexact = category(case.dtype) > 1
    if function == "diopiAbs" and case.dtype is Dtype.bool:
        return replace(case, case_class=CaseClass.callers)
    if function == "diopiIsNan" and not is_inexact:
        return replace(case, non_discriminating="no integer is NaN")
    if function == "diopiIsNan" and case.label.endswith("special"):
        return replace(case, non_discriminating="one of the special values is NaN")
    if function == "diopiAcosh" and case.dtype is Dtype.bool:
        return replace(case, non_discriminating="the only truth value with a result is 1, whose result is 0")
    return case


ENDS = choice([0.0, -0.0, 1.0, -1.0, 0.5, float("nan")])
EVERY_END = pattern("ends", (6, 19), smoke=True, dtypes=DtypeSelection.all)
HALVES = choice([0.0, 0.5, -0.5, 0.25, 1.0, -1.0])

TANH_BACKWARD = (
    *(with_domains(shapes, {"grad_output": normal(), "output": uniform(-1, 1)}) for shapes in ALL),
    with_domains(EVERY_END, {"grad_output": special, "output": ENDS}),
    with_domains(
        LINE, {"grad_output": integer_values(-8, 8), "output": HALVES}, "exact", dtypes=DtypeSelection.all, exact=True
    ),
)


@cases_for("diopiTanhBackward")
def tanh_backward(prototype: Prototype) -> Iterator[Case]:
    return elementwise_cases(prototype, TANH_BACKWARD)
