"""Complex numbers from real ones, and their parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from diopi_proto.dtypes import is_complex
from diopi_proto.prototype import Prototype
from diopi_test.case import Case, ResultOverride, cases_for
from diopi_test.cases.elementwise import BROADCAST, UNIFORM, elementwise_cases, special_cases
from diopi_test.domains import anything, between, magnitudes


@cases_for("diopiComplex")
def complex_(prototype: Prototype) -> Iterator[Case]:
    parts = {"real": anything, "imag": anything}
    yield from elementwise_cases(prototype, parts, patterns=(*UNIFORM, *BROADCAST))
    yield from special_cases(prototype)


@cases_for("diopiPolar")
def polar(prototype: Prototype) -> Iterator[Case]:
    around = {"abs": between(-4, 4), "angle": between(-10, 10)}
    yield from elementwise_cases(prototype, around, patterns=(*UNIFORM, *BROADCAST))
    small = {"abs": magnitudes(-8, 8), "angle": magnitudes(-20, 2)}
    yield from elementwise_cases(prototype, small, patterns=UNIFORM[:1], label="magnitudes")
    yield from special_cases(prototype)


@cases_for("diopiConj", "diopiReal", "diopiImag")
def parts(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        patterns = [pattern for pattern in UNIFORM if pattern.smoke or is_complex(dtype)]
        yield from elementwise_cases(prototype, {"input": anything}, patterns=patterns, dtypes=[dtype])
    complexes = [dtype for dtype in prototype.dtypes if is_complex(dtype)]
    yield from special_cases(prototype, dtypes=complexes)
    if prototype.name != "diopiConj":
        for case in elementwise_cases(prototype, {"input": anything}, None, UNIFORM[:1], complexes, "to-complex"):
            yield replace(case, results={"out": ResultOverride(case.dtype)})
