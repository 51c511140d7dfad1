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
from diopi_test.cases.domains import Domain, any_value, choice, half_zeros, normal
from diopi_test.cases.index.common import ALL_FALSE, ALL_TRUE, ONE_DTYPE_PER_KIND, UNLIKE, sized, sums
from diopi_test.cases.index.values import conversions, with_value
from diopi_test.cases.layouts import contiguous, expanded, strided, transposed
from diopi_test.cases.model import Case, TensorSpec, cases_for
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    CaseTemplate,
    Derive,
    DtypeSelection,
    cycle_layouts,
    expand,
    register,
    same_layout,
    tensor,
)
from diopi_test.cases.tensors import arbitrary, constant_mask, derive_single_tensor, literal, mask_values, periodic_mask

Masking = tuple[tuple[int, ...], TensorSpec]
"""Shape of the input, and the mask."""

FITTING: Mapping[str, Masking] = {
    "row": ((4, 6), periodic_mask(6, period=2)),
    "column": ((4, 6), periodic_mask(4, 1, period=2)),
    "number": ((3, 4), constant_mask(True)),
    "of-number": ((), constant_mask(True)),
    "of-number-false": ((), constant_mask(False)),
    "false": ((3, 4), constant_mask(False, 3, 4)),
    "true": ((3, 4), constant_mask(True, 3, 4)),
    "empty": ((0, 3), constant_mask(True, 0, 3)),
    "empty-by-row": ((0, 3), constant_mask(True, 3)),
    "strided-mask": ((5, 3), periodic_mask(5, 3, layout=strided)),
    "transposed-mask": ((5, 3), periodic_mask(5, 3, layout=transposed)),
    "inner": ((3, 4, 2), periodic_mask(4, 1, period=2)),
    "rank-5": ((2, 1, 3, 2, 2), periodic_mask(2, 1, 3, 2, 2)),
    "long": ((1031,), periodic_mask(1031)),
    "irregular": ((4099,), literal(np.arange(4099) ** 2 % 101 < 40, Dtype.bool)),
}
"""Masks that fit an input as it is."""

SPREADING: Mapping[str, Masking] = {
    "input-row": ((3,), periodic_mask(4, 3, period=2)),
    "input-column": ((4, 1), periodic_mask(4, 3, period=2)),
    "input-number": ((), periodic_mask(2, 3, period=2)),
    "outer": ((4, 1), periodic_mask(1, 5, period=2)),
    "to-no-rows": ((3,), constant_mask(True, 0, 3)),
}
"""Masks along which the input is broadcast."""

UNMASKED = {"(of-)?number-false|false": ALL_FALSE, "(of-)?number|true": ALL_TRUE}

PLAIN: Masking = ((4, 6), periodic_mask(4, 6))
HALF = periodic_mask(4, 5, period=2)

MASKED = (
    CaseTemplate("plain", PLAIN, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "cube",
        ((3, 4, 2), periodic_mask(3, 4, 2, period=2, layout=strided)),
        layout=transposed,
        result_layout=strided,
        dtypes=DtypeSelection.all,
    ),
    *cycle_layouts(
        [*sized(FITTING, DtypeSelection.one_per_size), *(t.replace(inplace=False) for t in sized(SPREADING))], *UNLIKE
    ),
)


def masking(domain: Domain = any_value) -> Derive[Any]:
    """Derives arguments from the shape of the input, the mask, and the shape of the source."""

    def arguments(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
        shape, mask, *source = template.sizes
        count = int(np.broadcast_to(mask_values(mask), np.broadcast_shapes(shape, mask.shape)).sum())
        return {
            "grad_output": tensor(count, layout=template.layout),
            "input": tensor(*shape, domain=domain, layout=template.layout),
            "mask": mask,
            "source": arbitrary(*(source[0] if source else (count + 2,)), layout=template.layout),
        }

    return arguments


@cases_for("diopiMaskedFill", non_discriminating=UNMASKED)
def masked_fill(prototype: Prototype) -> Iterator[Case]:
    templates = [*MASKED, *conversions(prototype, ((4, 5), HALF))]
    return expand(prototype, templates, with_value(prototype, masking()))


MASKED_SCATTER = (
    *MASKED,
    CaseTemplate("just-enough", (*PLAIN, (8,)), dtypes=ONE_DTYPE_PER_KIND),
    CaseTemplate("from-transposed-matrix", (*PLAIN, (4, 3)), layout=transposed, dtypes=ONE_DTYPE_PER_KIND),
    CaseTemplate("from-strided-cube", (*PLAIN, (2, 3, 2)), layout=strided),
    CaseTemplate("from-number", ((2, 3), literal([[0, 0, 0], [0, 1, 0]], Dtype.bool), ())),
    CaseTemplate("from-nothing", ((2, 3), constant_mask(False, 2, 3), (0,))),
)

register("diopiMaskedScatter", templates=MASKED_SCATTER, derive=masking(), non_discriminating=UNMASKED)
register(
    "diopiMaskedSelect",
    templates=[template.replace(result_layout=contiguous) for template in MASKED],  # which the callee makes
    derive=masking(),
    non_discriminating={"input-number": "all elements are the one of the input"},
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
    *(CaseTemplate(f"{label}-all", SPREADING[label], dtypes=DtypeSelection.all) for label in ("input-row", "outer")),
    *sums("grad_output", ((3, 1, 5), periodic_mask(3, 67, 5, period=2)), ((3,), _unequally_often(1100))),
    CaseTemplate("equal-sum", ((3,), _unequally_often(4000)), domains={"grad_output": choice([0.1, 0.3])}),
)

register(
    "diopiMaskedSelectBackward", templates=MASKED_SELECT_BACKWARD, derive=masking(normal()), non_discriminating=ADDED_UP
)

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
BYTES = periodic_mask(4, 5, period=2, dtype=Dtype.uint8)

WHERE_TEMPLATES = (
    CaseTemplate("matrix", MATRIX, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "three-ways",
        (periodic_mask(3, 1, period=2), (4, 1, 1), (2,)),
        layout=transposed,
        result_layout=strided,
        dtypes=DtypeSelection.all,
    ),
    CaseTemplate("uint8", (BYTES, (4, 5), (4, 5)), dtypes=ONE_DTYPE_PER_KIND),
    CaseTemplate(
        "uint8-strided", (replace(BYTES, layout=strided), (4, 5), (4, 5)), layout=strided, result_layout=transposed
    ),
    CaseTemplate("condition-row", (periodic_mask(5, period=2), (4, 5), (4, 5)), layout=strided),
    CaseTemplate("number-input", (HALF, (), (4, 5))),
    CaseTemplate("number-other", (HALF, (4, 5), ())),
    CaseTemplate("number-condition", (constant_mask(True), (3, 4), (3, 4))),
    CaseTemplate("number-condition-false", (constant_mask(False), (3, 4), (3, 4))),
    CaseTemplate("all-numbers", (constant_mask(False), (), ())),
    CaseTemplate("all-true", (constant_mask(True, 3, 4), (3, 4), (4,))),
    CaseTemplate("empty", (constant_mask(True, 0, 3), (0, 3), (3,))),
    CaseTemplate("transposed", (periodic_mask(6, 4, layout=transposed), (6, 4), (6, 4)), **same_layout(transposed)),
    CaseTemplate("expanded", MATRIX, layout=expanded),
    CaseTemplate("rank-5", (periodic_mask(2, 1, 3, 1, 2, period=2), (2, 1, 1, 2, 2), (3, 2, 2))),
    CaseTemplate("long", (periodic_mask(1031, period=2), (1031,), (1031,)), dtypes=DtypeSelection.one_per_size),
    *(
        CaseTemplate(
            f"and-{second.name}", MATRIX, {"input": tensor(4, 5), "other": tensor(4, 5, dtype=second)}, dtypes=(first,)
        )
        for first, second in MIXED
    ),
)
"""Sizes are the condition and the shapes of the two tensors."""


def choosing(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiWhere` from the sizes of a template."""
    condition, *shapes = template.sizes
    first, second = (arbitrary(*shape, layout=template.layout) for shape in shapes)
    return {"condition": condition, "input": first, "other": second}


register(
    "diopiWhere",
    templates=WHERE_TEMPLATES,
    derive=choosing,
    non_discriminating={"number-condition-false": ALL_FALSE, "number-condition|all-true": ALL_TRUE},
)

NONZERO = (
    CaseTemplate("matrix", (5, 4), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("cube", (3, 2, 4), layout=transposed, dtypes=DtypeSelection.all),
    CaseTemplate("vector", (9,), layout=strided, dtypes=DtypeSelection.all),
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
    CaseTemplate("long", (1031,), dtypes=(*ONE_DTYPE_PER_KIND, Dtype.int8)),
    CaseTemplate("very-long", (5, 823)),
)

register("diopiNonzero", templates=NONZERO, derive=derive_single_tensor(half_zeros))
