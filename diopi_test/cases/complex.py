"""Cases of functions that combine real numbers into complex numbers, or return parts of complex numbers."""

from __future__ import annotations

from collections.abc import Iterator

from diopi_proto.dtypes import complexes
from diopi_proto.prototype import Prototype
from diopi_test.cases.case import Case, ResultOverride, cases_for
from diopi_test.cases.domains import any_value, log_uniform, uniform
from diopi_test.cases.elementwise import UNIFORM, Elementwise
from diopi_test.cases.template import DtypeSelection

MATRIX = UNIFORM[0]
"""The pattern of a matrix."""


@cases_for("diopiComplex")
def complex_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiComplex`, whose arguments are the real and the imaginary parts."""
    domains = {"real": any_value, "imag": any_value}
    templates = [
        shapes.with_domains(domains, dtypes=DtypeSelection.all) for shapes in Elementwise(prototype).patterns()
    ]
    return Elementwise(prototype).cases([*templates, *Elementwise(prototype).special_value_pairs()])


@cases_for("diopiPolar")
def polar_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiPolar`, whose arguments are the moduli and the angles."""
    domains = {"abs": uniform(-4, 4), "angle": uniform(-10, 10)}
    templates = [
        shapes.with_domains(domains, dtypes=DtypeSelection.all) for shapes in Elementwise(prototype).patterns()
    ]
    small = MATRIX.with_domains(
        {"abs": log_uniform(-8, 8), "angle": log_uniform(-20, 2)}, "magnitudes", dtypes=DtypeSelection.all
    )
    return Elementwise(prototype).cases([*templates, small, *Elementwise(prototype).special_value_pairs()])


@cases_for("diopiConj", "diopiReal", "diopiImag")
def parts_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the conjugate, the real part or the imaginary part."""
    templates = [
        shapes.with_domains({"input": any_value}, dtypes=DtypeSelection.all if shapes.smoke else complexes)
        for shapes in UNIFORM
    ]
    templates += Elementwise(prototype).special_value_pairs(dtypes=complexes)
    if prototype.name != "diopiConj":
        templates += [
            MATRIX.with_domains({"input": any_value}, "to-complex", dtypes=[dtype]).replace(
                results={"out": ResultOverride(dtype)}
            )
            for dtype in complexes
        ]
    return Elementwise(prototype).cases(templates)
