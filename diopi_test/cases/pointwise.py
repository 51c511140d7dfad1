"""Unary element-wise functions, and the gradient of tanh."""

from __future__ import annotations

from collections.abc import Iterator

from diopi_proto.prototype import Prototype
from diopi_test.case import Case, cases_for
from diopi_test.cases.elementwise import OUTER, elementwise_cases, special_cases
from diopi_test.domains import between, choice, magnitudes, normal, off_whole, special, whole_range

DOMAINS = {
    "diopiAbs": whole_range,
    "diopiNeg": whole_range,
    "diopiSign": normal(),
    "diopiSgn": normal(),
    "diopiFloor": off_whole(-20, 20),
    "diopiCeil": off_whole(-20, 20),
    "diopiSqrt": magnitudes(-12, 12, signed=False),
    "diopiRsqrt": magnitudes(-12, 12, signed=False),
    "diopiReciprocal": magnitudes(-7, 7),
    "diopiSin": between(-10, 10),
    "diopiCos": between(-10, 10),
    "diopiTan": between(-10, 10),
    "diopiAsin": between(-1, 1),
    "diopiAcos": between(-1, 1),
    "diopiAtan": magnitudes(-6, 6),
    "diopiSinh": between(-5, 5),
    "diopiCosh": between(-5, 5),
    "diopiTanh": between(-4, 4),
    "diopiAsinh": magnitudes(-6, 6),
    "diopiAcosh": between(1, 50),
    "diopiAtanh": between(-1, 1),
    "diopiExp": between(-8, 8),
    "diopiExpm1": between(-4, 4),
    "diopiLog": magnitudes(-12, 12, signed=False),
    "diopiLog2": magnitudes(-12, 12, signed=False),
    "diopiLog10": magnitudes(-12, 12, signed=False),
    "diopiLog1p": between(-0.9, 9),
    "diopiErf": between(-3, 3),
    "diopiErfinv": between(-1, 1),
    "diopiIsNan": normal(),
    "diopiBitwiseNot": whole_range,
    "diopiLogicalNot": between(-1, 1),
}
"""Where each function's values are drawn from: all of its range, and away from where it jumps."""


@cases_for(*DOMAINS)
def unary(prototype: Prototype) -> Iterator[Case]:
    yield from elementwise_cases(prototype, {"input": DOMAINS[prototype.base]})
    yield from special_cases(prototype)


@cases_for("diopiTanhBackward")
def tanh_backward(prototype: Prototype) -> Iterator[Case]:
    yield from elementwise_cases(prototype, {"grad_output": normal(), "output": between(-1, 1)})
    ends = choice([0.0, -0.0, 1.0, -1.0, 0.5, float("nan")])
    yield from elementwise_cases(prototype, {"grad_output": special, "output": ends}, patterns=[OUTER], label="ends")
