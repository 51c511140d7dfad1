"""Elements where a mask is true, or that are not zero: filling, writing, selecting, choosing between two tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np

from diopi_proto.dtypes import complexes, floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, anything, choice, normal, with_zeros
from diopi_test.cases.index.common import ALL_FALSE, ALL_TRUE, FEW, UNLIKE, sized, sums
from diopi_test.cases.index.values import conversions, with_value
from diopi_test.cases.layouts import contiguous, expanded, strided, transposed
from diopi_test.cases.model import Case, TensorSpec, cases_for
from diopi_test.cases.template import BASIC, CaseTemplate, Derive, Types, by_turns, expand, register, tensor, throughout
from diopi_test.cases.tensors import arbitrary, constant, literal, one_tensor, pattern, truth

Masking = tuple[tuple[int, ...], TensorSpec]
"""Shape of the input, and the mask."""

FITTING: Mapping[str, Masking] = {
    "row": ((4, 6), pattern(6, every=2)),
    "column": ((4, 6), pattern(4, 1, every=2)),
    "number": ((3, 4), constant(True)),
    "of-number": ((), constant(True)),
    "of-number-false": ((), constant(False)),
    "false": ((3, 4), constant(False, 3, 4)),
    "true": ((3, 4), constant(True, 3, 4)),
    "empty": ((0, 3), constant(True, 0, 3)),
    "empty-by-row": ((0, 3), constant(True, 3)),
    "strided-mask": ((5, 3), pattern(5, 3, layout=strided)),
    "transposed-mask": ((5, 3), pattern(5, 3, layout=transposed)),
    "inner": ((3, 4, 2), pattern(4, 1, every=2)),
    "rank-5": ((2, 1, 3, 2, 2), pattern(2, 1, 3, 2, 2)),
    "long": ((1031,), pattern(1031)),
    "irregular": ((4099,), literal(np.arange(4099) ** 2 % 101 < 40, Dtype.bool)),
}
"""Masks that fit an input as it is."""

SPREADING: Mapping[str, Masking] = {
    "input-row": ((3,), pattern(4, 3, every=2)),
    "input-column": ((4, 1), pattern(4, 3, every=2)),
    "input-number": ((), pattern(2, 3, every=2)),
    "outer": ((4, 1), pattern(1, 5, every=2)),
    "to-no-rows": ((3,), constant(True, 0, 3)),
}
"""Masks along which the input is broadcast."""

UNMASKED = {"(of-)?number-false|false": ALL_FALSE, "(of-)?number|true": ALL_TRUE}

PLAIN: Masking = ((4, 6), pattern(4, 6))
HALF = pattern(4, 5, every=2)

MASKED = (
    CaseTemplate("plain", PLAIN, **BASIC),
    CaseTemplate(
        "cube",
        ((3, 4, 2), pattern(3, 4, 2, every=2, layout=strided)),
        layout=transposed,
        result=strided,
        dtypes=Types.every,
    ),
    *by_turns([*sized(FITTING, Types.widths), *(t.but(inplace=False) for t in sized(SPREADING))], *UNLIKE),
)


def masking(domain: Domain = anything) -> Derive:
    """Derives arguments from the shape of the input, the mask, and the shape of the source."""

    def arguments(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
        shape, mask, *source = template.sizes
        count = int(np.broadcast_to(truth(mask), np.broadcast_shapes(shape, mask.shape)).sum())
        return {
            "grad_output": tensor(count, layout=template.layout),
            "input": tensor(*shape, domain=domain, layout=template.layout),
            "mask": mask,
            "source": arbitrary(*(source[0] if source else (count + 2,)), layout=template.layout),
        }

    return arguments


@cases_for("diopiMaskedFill", weak=UNMASKED)
def masked_fill(prototype: Prototype) -> Iterator[Case]:
    templates = [*MASKED, *conversions(prototype, ((4, 5), HALF))]
    return expand(prototype, templates, with_value(prototype, masking()))


MASKED_SCATTER = (
    *MASKED,
    CaseTemplate("just-enough", (*PLAIN, (8,)), dtypes=FEW),
    CaseTemplate("from-transposed-matrix", (*PLAIN, (4, 3)), layout=transposed, dtypes=FEW),
    CaseTemplate("from-strided-cube", (*PLAIN, (2, 3, 2)), layout=strided),
    CaseTemplate("from-number", ((2, 3), literal([[0, 0, 0], [0, 1, 0]], Dtype.bool), ())),
    CaseTemplate("from-nothing", ((2, 3), constant(False, 2, 3), (0,))),
)

register("diopiMaskedScatter", templates=MASKED_SCATTER, derive=masking(), weak=UNMASKED)
register(
    "diopiMaskedSelect",
    templates=[template.but(result=contiguous) for template in MASKED],  # which the callee makes
    derive=masking(),
    weak={"input-number": "all elements are the one of the input"},
)

ADDED_UP = {
    **UNMASKED,
    "input-number": "whatever is selected is added up",
    "outer": "as much is added up in every row, wherever the mask is true",
}


def _unequally_often(rows: int) -> TensorSpec:
    return literal(np.arange(rows)[:, np.newaxis] % 4 < [4, 3, 1], Dtype.bool)


MASKED_SELECT_BACKWARD = (
    *MASKED,
    *(CaseTemplate(f"{label}-all", SPREADING[label], dtypes=Types.every) for label in ("input-row", "outer")),
    *sums("grad_output", ((3, 1, 5), pattern(3, 67, 5, every=2)), ((3,), _unequally_often(1100))),
    CaseTemplate("equal-sum", ((3,), _unequally_often(4000)), domains={"grad_output": choice([0.1, 0.3])}),
)

register("diopiMaskedSelectBackward", templates=MASKED_SELECT_BACKWARD, derive=masking(normal()), weak=ADDED_UP)

MIXED = (
    (Dtype.float32, Dtype.int32),
    (Dtype.int64, Dtype.float16),
    (Dtype.bool, Dtype.int64),
    (Dtype.bool, Dtype.float32),
    (Dtype.float16, Dtype.float32),
    (Dtype.float16, Dtype.bfloat16),
    (Dtype.float64, Dtype.float32),
    (Dtype.uint8, Dtype.int8),
    (Dtype.uint8, Dtype.int16),
    (Dtype.int32, Dtype.int64),
    (Dtype.float32, Dtype.complex64),
    (Dtype.complex64, Dtype.float64),
    (Dtype.complex128, Dtype.complex64),
)
"""Element types of the two tensors that are chosen between."""

MATRIX = (HALF, (4, 5), (4, 5))
BYTES = pattern(4, 5, every=2, dtype=Dtype.uint8)

WHERE = (
    CaseTemplate("matrix", MATRIX, **BASIC),
    CaseTemplate(
        "three-ways", (pattern(3, 1, every=2), (4, 1, 1), (2,)), layout=transposed, result=strided, dtypes=Types.every
    ),
    CaseTemplate("uint8", (BYTES, (4, 5), (4, 5)), dtypes=FEW),
    CaseTemplate("uint8-strided", (replace(BYTES, layout=strided), (4, 5), (4, 5)), layout=strided, result=transposed),
    CaseTemplate("condition-row", (pattern(5, every=2), (4, 5), (4, 5)), layout=strided),
    CaseTemplate("number-input", (HALF, (), (4, 5))),
    CaseTemplate("number-other", (HALF, (4, 5), ())),
    CaseTemplate("number-condition", (constant(True), (3, 4), (3, 4))),
    CaseTemplate("number-condition-false", (constant(False), (3, 4), (3, 4))),
    CaseTemplate("all-numbers", (constant(False), (), ())),
    CaseTemplate("all-true", (constant(True, 3, 4), (3, 4), (4,))),
    CaseTemplate("empty", (constant(True, 0, 3), (0, 3), (3,))),
    CaseTemplate("transposed", (pattern(6, 4, layout=transposed), (6, 4), (6, 4)), **throughout(transposed)),
    CaseTemplate("expanded", MATRIX, layout=expanded),
    CaseTemplate("rank-5", (pattern(2, 1, 3, 1, 2, every=2), (2, 1, 1, 2, 2), (3, 2, 2))),
    CaseTemplate("long", (pattern(1031, every=2), (1031,), (1031,)), dtypes=Types.widths),
    *(
        CaseTemplate(
            f"and-{two.name}", MATRIX, {"input": tensor(4, 5), "other": tensor(4, 5, dtype=two)}, dtypes=(one,)
        )
        for one, two in MIXED
    ),
)
"""Sizes are the condition and the shapes of the two tensors."""


def choosing(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    condition, *shapes = template.sizes
    one, other = (arbitrary(*shape, layout=template.layout) for shape in shapes)
    return {"condition": condition, "input": one, "other": other}


register(
    "diopiWhere",
    templates=WHERE,
    derive=choosing,
    weak={"number-condition-false": ALL_FALSE, "number-condition|all-true": ALL_TRUE},
)

NONZERO = (
    CaseTemplate("matrix", (5, 4), **BASIC),
    CaseTemplate("cube", (3, 2, 4), layout=transposed, dtypes=Types.every),
    CaseTemplate("vector", (9,), layout=strided, dtypes=Types.every),
    CaseTemplate("number", (), domains={"input": choice([1])}, dtypes=(Dtype.float32, Dtype.bool)),
    CaseTemplate("number-zero", (), domains={"input": choice([0])}),
    CaseTemplate("zeros", (3, 4), domains={"input": choice([0.0, -0.0])}),
    CaseTemplate("no-zeros", (3, 4), domains={"input": choice([1, 2, 3])}),
    CaseTemplate("not-a-number", (6,), domains={"input": choice([nan, 0.0, inf, -inf, 0.25, -0.0])}, dtypes=floating),
    CaseTemplate(
        "imaginary",
        (6,),
        domains={"input": choice([1j, 0, -0.5j, complex(0, nan), 1, complex(-0.0, -0.0)])},
        dtypes=complexes,
    ),
    CaseTemplate("high-bits", (6,), domains={"input": choice([0, 2**8])}, dtypes=(Dtype.int16, Dtype.int32)),
    CaseTemplate("highest-bits", (6,), domains={"input": choice([0, 2**32, -(2**63)])}, dtypes=(Dtype.int64,)),
    CaseTemplate("no-rows", (0, 3)),
    CaseTemplate("no-columns", (3, 0)),
    CaseTemplate("rank-5", (2, 1, 3, 2, 2)),
    CaseTemplate("long", (1031,), dtypes=(*FEW, Dtype.int8)),
    CaseTemplate("very-long", (5, 823)),
)

register("diopiNonzero", templates=NONZERO, derive=one_tensor(with_zeros))
