"""Elements by lists of index tensors and masks, one for each of the first axes: reading, its gradient, writing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diopi_proto.dtypes import floating, half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, any_value, choice, full_range, normal
from diopi_test.cases.index.common import (
    ALIKE,
    ALL_TRUE,
    INEXACT,
    LARGE,
    MOST_OFTEN,
    OFTEN,
    ONE_DTYPE_PER_KIND,
    POSITIVE,
    SUMMANDS,
    sized,
    sums,
)
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.model import TensorSpec
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    CaseTemplate,
    DtypeSelection,
    cycle_layouts,
    register,
    same_layout,
    tensor,
)
from diopi_test.cases.tensors import (
    arbitrary,
    constant_mask,
    distinct_positions,
    literal,
    mask_values,
    periodic_mask,
    random_positions,
)

Shape = tuple[int, ...]
Indices = list[TensorSpec | None]

INDEXING: Mapping[str, tuple[Shape, Indices]] = {
    "pair": ((4, 5, 2), [random_positions(3, 1, below=4, low=-4), random_positions(4, below=5, low=-5)]),
    "apart": ((4, 3, 5), [random_positions(3, below=4), None, random_positions(3, below=5, low=-5)]),
    "apart-broadcast": ((4, 3, 5), [random_positions(2, 1, below=4), None, random_positions(3, below=5)]),
    "inner-pair": (
        (2, 4, 5, 3),
        [None, random_positions(2, 3, below=4), random_positions(3, below=5, dtype=Dtype.int32)],
    ),
    "last-axis": ((2, 3, 4), [None, None, random_positions(5, below=4, low=-4, layout=strided)]),
    "three": (
        (3, 4, 2),
        [random_positions(9, below=3), random_positions(9, below=4, low=-4), random_positions(1, below=2)],
    ),
    "matrix-of-indices": ((6, 2), [random_positions(4, 3, below=6, low=-6, layout=transposed)]),
    "number": ((4, 3), [random_positions(below=4, low=-4)]),
    "number-apart": ((2, 3, 4), [random_positions(below=2), None, random_positions(2, below=4)]),
    "all-numbers": ((2, 3), [literal(-1), literal(2)]),
    "cube": ((4, 4, 4), [random_positions(4, below=4), None, random_positions(4, below=4)]),
    "no-indices": ((4, 3), [random_positions(0, below=4)]),
    "no-columns": ((4, 0), [random_positions(2, below=4)]),
    "rank-5": ((2, 3, 2, 4, 2), [None, random_positions(4, below=3), None, random_positions(4, below=4)]),
    "long": ((257,), [random_positions(1031, below=257, low=-257)]),
    "mask": ((4, 5, 3), [periodic_mask(4, 5)]),
    "mask-of-rows": ((7, 3), [periodic_mask(7, period=2)]),
    "mask-of-all": ((3, 4), [periodic_mask(3, 4, layout=transposed)]),
    "inner-mask": ((3, 5, 2), [None, periodic_mask(5, period=2, layout=strided)]),
    "mask-uint8": ((4, 5), [periodic_mask(4, 5, period=2, dtype=Dtype.uint8)]),
    "inner-mask-uint8": ((3, 4, 2), [None, periodic_mask(4, period=2, dtype=Dtype.uint8)]),
    "mask-and-index": ((2, 3, 4), [literal([[1, 0, 0], [0, 1, 1]], Dtype.bool), random_positions(3, below=4, low=-4)]),
    "mask-index-apart": ((4, 3, 5), [literal([1, 0, 1, 1], Dtype.bool), None, literal([-2])]),
    "mask-true": ((3, 2), [constant_mask(True, 3)]),
    "mask-false": ((3, 2), [constant_mask(False, 3, 2)]),
}
"""Shapes of the input, and lists of index tensors and masks for it."""

ROWS = CaseTemplate("rows", ((5, 4), [random_positions(6, below=5, low=-5)]), **SMOKE_IN_ALL_DTYPES)
MIDDLE = CaseTemplate(
    "middle",
    ((3, 4, 5), [None, random_positions(2, 3, below=4, dtype=Dtype.int32), None]),
    layout=transposed,
    dtypes=DtypeSelection.all,
)


def selected(shape: Shape, indices: Indices) -> Shape:
    """Shape of what a list of index tensors and masks selects."""

    def key(spec: TensorSpec | None) -> Any:
        if spec is None:
            return slice(None)
        return mask_values(spec) if spec.dtype in (Dtype.bool, Dtype.uint8) else np.zeros(spec.shape, int)

    return tuple(np.empty(shape)[tuple(key(spec) for spec in indices)].shape)


INDEX = (
    ROWS,
    MIDDLE,
    *cycle_layouts(sized(INDEXING, DtypeSelection.one_per_size), *((layout, contiguous) for layout, _ in ALIKE)),
    *(
        CaseTemplate(f"{label}-few", INDEXING[label], layout=strided, dtypes=ONE_DTYPE_PER_KIND[1:])
        for label in ("mask", "apart")
    ),
)


def reading(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiIndex` from the sizes of a template."""
    shape, indices = template.sizes
    return {"input": arbitrary(*shape, layout=template.layout), "indices": indices}


register("diopiIndex", templates=INDEX, derive=reading)

INDEX_BACKWARD = (
    ROWS,
    MIDDLE.replace(result_layout=transposed),
    CaseTemplate("mask-common", INDEXING["mask"], **same_layout(strided), dtypes=DtypeSelection.all),
    *cycle_layouts(sized(INDEXING), *ALIKE),
    *sums("grad_output", ((6, 5), [random_positions(67, below=6)]), ((3, 2), [OFTEN]), floating),
)


def gradient(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiIndexBackward` from the sizes of a template."""
    shape, indices = template.sizes
    return {
        "zeros_like_input": tensor(*shape, domain=choice([0.0]), layout=template.layout),
        "indices": indices,
        "grad_output": tensor(*selected(shape, indices), layout=template.layout),
    }


register("diopiIndexBackward", templates=INDEX_BACKWARD, derive=gradient, non_discriminating={"mask-true": ALL_TRUE})

PUT: Mapping[str, Any] = {"accumulate": False}
ADD: Mapping[str, Any] = {"accumulate": True}

ONCE: Indices = [distinct_positions(4, below=6)]
REPEATED: Indices = [random_positions(9, below=4, low=-4)]
NINE_OF_THREE: Indices = [random_positions(9, below=3)]
COLUMNS: Indices = [None, distinct_positions(3, below=5)]


def input_and_values(domain: Domain) -> Mapping[str, Domain]:
    """The domain of the input and of what is written to it."""
    return {"input": domain, "values": domain}


INDEX_PUT = (
    CaseTemplate("put", ((6, 3), ONCE), PUT, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("add", ((4, 3), REPEATED), ADD, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("put-strided", ((4, 5), COLUMNS), PUT, **same_layout(strided), dtypes=ONE_DTYPE_PER_KIND),
    CaseTemplate(
        "put-int32", ((4, 5), [None, distinct_positions(3, below=5, dtype=Dtype.int32)]), PUT, **same_layout(transposed)
    ),
    CaseTemplate(
        "any-of-several",
        ((9, 3), [random_positions(7, below=9, low=-9)]),
        PUT,
        dtypes=(*ONE_DTYPE_PER_KIND, Dtype.bool, Dtype.float64),
    ),
    CaseTemplate("wrap", ((3, 2), NINE_OF_THREE), ADD, input_and_values(full_range), dtypes=(Dtype.int8, Dtype.uint8)),
    CaseTemplate(
        "exact", ((6, 5), [random_positions(67, below=6)]), ADD, input_and_values(SUMMANDS), dtypes=INEXACT, exact=True
    ),
    CaseTemplate("long-sum", ((3, 2), [OFTEN]), ADD, input_and_values(POSITIVE), dtypes=half),
    CaseTemplate(
        "equal-sum", ((3, 2), [MOST_OFTEN]), ADD, input_and_values(choice([0.1, 0.3])), dtypes=(Dtype.float32,)
    ),
    CaseTemplate("add-neighbours", ((3, 2), NINE_OF_THREE), ADD, input_and_values(LARGE), dtypes=(Dtype.int64,)),
    *cycle_layouts(
        [
            *(
                template.replace(f"{template.label}-add", ADD)
                for template in sized(INDEXING, DtypeSelection.one_per_size)
            ),
            *(t.replace(f"{t.label}-put", PUT) for t in sized(INDEXING) if t.label.startswith(("mask", "no-"))),
        ],
        *ALIKE,
    ),
    CaseTemplate("one-for-all", ((4, 5), COLUMNS, ()), PUT),
    CaseTemplate("one-of-vector-for-all", ((4, 5), [periodic_mask(4, 5)], (1,)), PUT),
    CaseTemplate("row-for-all", ((6, 3), ONCE, (3,)), PUT),
    CaseTemplate("column-for-all", ((6, 3), ONCE, (4, 1)), PUT),
    CaseTemplate("add-one-for-all", ((4, 3), REPEATED, ()), ADD),
    CaseTemplate("add-row-for-mask", ((4, 5, 3), [periodic_mask(4, 5)], (3,)), ADD),
    CaseTemplate("add-row-for-all", ((4, 3), REPEATED, (3,)), ADD),
)
"""Sizes are the shape of the input, the indices, and the shape of the values, by default that of what is selected."""


def writing(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiIndexPut` from the sizes of a template."""
    shape, indices, *values = template.sizes
    domain = normal() if template.argument("accumulate") else any_value
    written = values[0] if values else selected(shape, indices)
    return {
        "input": tensor(*shape, domain=domain, layout=template.layout),
        "values": tensor(*written, domain=domain, layout=template.layout),
        "indices": indices,
    }


register("diopiIndexPut", templates=INDEX_PUT, derive=writing, non_discriminating={"mask-true": ALL_TRUE})
