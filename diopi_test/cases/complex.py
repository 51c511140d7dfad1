"""Complex numbers from real ones, and their parts."""

from __future__ import annotations

from collections.abc import Iterator

from diopi_proto.dtypes import complexes
from diopi_proto.prototype import Prototype
from diopi_test.cases.domains import anything, between, magnitudes
from diopi_test.cases.elementwise import BROADCAST, MATRIX, UNIFORM, elementwise_cases, on, specials
from diopi_test.cases.model import Case, ResultOverride, cases_for
from diopi_test.cases.template import Types

ALL = [shapes.but(dtypes=Types.every) for shapes in (*UNIFORM, *BROADCAST)]


@cases_for("diopiComplex")
def complex_(prototype: Prototype) -> Iterator[Case]:
    templates = [on(shapes, {"real": anything, "imag": anything}) for shapes in ALL]
    return elementwise_cases(prototype, [*templates, *specials(prototype)])


@cases_for("diopiPolar")
def polar(prototype: Prototype) -> Iterator[Case]:
    templates = [on(shapes, {"abs": between(-4, 4), "angle": between(-10, 10)}) for shapes in ALL]
    small = on(MATRIX, {"abs": magnitudes(-8, 8), "angle": magnitudes(-20, 2)}, "magnitudes", dtypes=Types.every)
    return elementwise_cases(prototype, [*templates, small, *specials(prototype)])


@cases_for("diopiConj", "diopiReal", "diopiImag")
def parts(prototype: Prototype) -> Iterator[Case]:
    templates = [
        on(shapes, {"input": anything}, dtypes=Types.every if shapes.smoke else complexes) for shapes in UNIFORM
    ]
    templates += specials(prototype, dtypes=complexes)
    if prototype.name != "diopiConj":
        templates += [
            on(MATRIX, {"input": anything}, "to-complex", dtypes=[dtype]).but(results={"out": ResultOverride(dtype)})
            for dtype in complexes
        ]
    return elementwise_cases(prototype, templates)
