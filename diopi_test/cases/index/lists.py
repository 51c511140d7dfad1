"""Cases of functions that read or write the elements that a list of index tensors and masks selects (`x[a, :, b]`).

The list has one entry per axis from the first axis on. A template describes cases that differ only in their element
type. A domain is a distribution or a set of values, from which the elements of a tensor are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.dtypes import floating, half
from diopi_proto.types import Dtype
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.domains import Domain, any_value, choice, full_range, normal
from diopi_test.cases.index.positions import (
    ALL_TRUE_REASON,
    EQUAL_LAYOUTS,
    EXACT_SUMMANDS,
    FAR_APART_FIELDS,
    LARGE_FLOAT16_FIELDS,
    LONG_REPEATED_INDEX,
    NEIGHBORING_INTEGERS,
    ONE_DTYPE_PER_KIND,
    POSITIVE_SUMMANDS,
    REPEATED_INDEX,
    ROUNDED_DTYPES,
    Shape,
    mask_values,
    sized_templates,
    sum_templates,
)
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import literal, mask, positions

Indices = list[TensorSpec | None]
"""One entry per axis from the first axis on: an index tensor, or None for all positions of the axis.

A mask, which is true for the selected positions, stands for as many axes as it has itself.
"""


@dataclass(frozen=True)
class IndexedElements:
    """The sizes of a template of a call that reads or writes elements that a list selects.

    Attributes:
        shape: The shape of the tensor.
        indices: The list.
        values_shape: The shape of the values to write; None for the shape of the selected elements.
    """

    shape: Shape
    indices: Indices
    values_shape: Shape | None = None

    @property
    def selected_shape(self) -> Shape:
        """Return the shape of the selected elements."""

        def key(spec: TensorSpec | None) -> Any:
            if spec is None:
                return slice(None)
            return mask_values(spec) if spec.dtype in (Dtype.bool, Dtype.uint8) else np.zeros(spec.shape, int)

        return tuple(np.empty(self.shape)[tuple(key(spec) for spec in self.indices)].shape)


INDEX_LISTS: Mapping[str, IndexedElements] = {
    "pair": IndexedElements((4, 5, 2), [positions(3, 1, end=4, low=-4), positions(4, end=5, low=-5)]),
    "apart": IndexedElements((4, 3, 5), [positions(3, end=4), None, positions(3, end=5, low=-5)]),
    "apart-broadcast": IndexedElements((4, 3, 5), [positions(2, 1, end=4), None, positions(3, end=5)]),
    "inner-pair": IndexedElements(
        (2, 4, 5, 3),
        [None, positions(2, 3, end=4), positions(3, end=5, dtype=Dtype.int32)],
    ),
    "last-axis": IndexedElements((2, 3, 4), [None, None, positions(5, end=4, low=-4, layout=strided)]),
    "three": IndexedElements(
        (3, 4, 2),
        [positions(9, end=3), positions(9, end=4, low=-4), positions(1, end=2)],
    ),
    "matrix-of-indices": IndexedElements((6, 2), [positions(4, 3, end=6, low=-6, layout=transposed)]),
    "number": IndexedElements((4, 3), [positions(end=4, low=-4)]),
    "number-apart": IndexedElements((2, 3, 4), [positions(end=2), None, positions(2, end=4)]),
    "all-numbers": IndexedElements((2, 3), [literal(-1), literal(2)]),
    "cube": IndexedElements((4, 4, 4), [positions(4, end=4), None, positions(4, end=4)]),
    "no-indices": IndexedElements((4, 3), [positions(0, end=4)]),
    "no-columns": IndexedElements((4, 0), [positions(2, end=4)]),
    "rank-5": IndexedElements((2, 3, 2, 4, 2), [None, positions(4, end=3), None, positions(4, end=4)]),
    "long": IndexedElements((257,), [positions(1031, end=257, low=-257)]),
    "mask": IndexedElements((4, 5, 3), [mask(4, 5)]),
    "mask-of-rows": IndexedElements((7, 3), [mask(7, period=2)]),
    "mask-of-all": IndexedElements((3, 4), [mask(3, 4, layout=transposed)]),
    "inner-mask": IndexedElements((3, 5, 2), [None, mask(5, period=2, layout=strided)]),
    "mask-uint8": IndexedElements((4, 5), [mask(4, 5, period=2, dtype=Dtype.uint8)]),
    "inner-mask-uint8": IndexedElements((3, 4, 2), [None, mask(4, period=2, dtype=Dtype.uint8)]),
    "mask-and-index": IndexedElements(
        (2, 3, 4), [literal([[1, 0, 0], [0, 1, 1]], Dtype.bool), positions(3, end=4, low=-4)]
    ),
    "mask-index-apart": IndexedElements((4, 3, 5), [literal([1, 0, 1, 1], Dtype.bool), None, literal([-2])]),
    "mask-true": IndexedElements((3, 2), [mask(3, fill=True)]),
    "mask-false": IndexedElements((3, 2), [mask(3, 2, fill=False)]),
}
"""Sizes of templates by label."""

ROWS = CaseTemplate("rows", IndexedElements((5, 4), [positions(6, end=5, low=-5)]), **SMOKE_IN_ALL_DTYPES)
"""A template that selects rows, with smoke cases in every element type."""

MIDDLE_AXIS = CaseTemplate(
    "middle",
    IndexedElements((3, 4, 5), [None, positions(2, 3, end=4, dtype=Dtype.int32), None]),
    layout=transposed,
    dtypes=DtypeSelection.all,
)
"""A template that selects positions along a middle axis, in every element type."""

INDEX_TEMPLATES = (
    ROWS,
    MIDDLE_AXIS,
    *CaseTemplate.cycle_layouts(
        sized_templates(INDEX_LISTS, DtypeSelection.one_per_size),
        *((layout, contiguous) for layout, _ in EQUAL_LAYOUTS),
    ),
    *(
        CaseTemplate(f"{label}-few", INDEX_LISTS[label], layout=strided, dtypes=ONE_DTYPE_PER_KIND[1:])
        for label in ("mask", "apart")
    ),
)
"""The small templates of `diopiIndex`."""


LARGE_ROWS = CaseTemplate("rows", IndexedElements((32_003, 3), [positions(32_005, end=32_003)]), large=True)
"""A template that selects rows of a large matrix."""

FAR_ROWS = CaseTemplate("half-far-apart", IndexedElements((131, 517), [positions(263, end=131)]), **FAR_APART_FIELDS)
"""A template that selects rows of a large matrix in float16 with gaps between all elements."""


def index_arguments(template: CaseTemplate[IndexedElements], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiIndex` for the sizes of a template."""
    return {
        "input": tensor(*template.sizes.shape, domain=any_value, layout=template.layout),
        "indices": template.sizes.indices,
    }


register("diopiIndex", templates=(*INDEX_TEMPLATES, LARGE_ROWS, FAR_ROWS), derive=index_arguments)

INDEX_BACKWARD = (
    ROWS,
    MIDDLE_AXIS.replace(result_layout=transposed),
    CaseTemplate("mask-common", INDEX_LISTS["mask"], **same_layout(strided), dtypes=DtypeSelection.all),
    *CaseTemplate.cycle_layouts(sized_templates(INDEX_LISTS), *EQUAL_LAYOUTS),
    *sum_templates(
        "grad_output",
        IndexedElements((6, 5), [positions(67, end=6)]),
        IndexedElements((3, 2), [REPEATED_INDEX]),
        floating,
    ),
    LARGE_ROWS,
    CaseTemplate("crowded", IndexedElements((131, 67), [positions(1031, end=131)]), **LARGE_FLOAT16_FIELDS),
)
"""The templates of `diopiIndexBackward`, which adds up the gradients of all reads of one element."""


def index_backward_arguments(template: CaseTemplate[IndexedElements], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiIndexBackward` for the sizes of a template."""
    sizes = template.sizes
    return {
        "zeros_like_input": tensor(*sizes.shape, domain=choice([0.0]), layout=template.layout),
        "indices": sizes.indices,
        "grad_output": tensor(*sizes.selected_shape, layout=template.layout),
    }


register(
    "diopiIndexBackward",
    templates=INDEX_BACKWARD,
    derive=index_backward_arguments,
    non_discriminating={"mask-true": ALL_TRUE_REASON},
)

REPLACE: Mapping[str, Any] = {"accumulate": False}
"""The argument with which `diopiIndexPut` replaces elements."""

ACCUMULATE: Mapping[str, Any] = {"accumulate": True}
"""The argument with which `diopiIndexPut` adds to elements."""

DISTINCT_ROWS: Indices = [positions(4, end=6, distinct_along=0)]
"""A list that selects four different rows of six."""

REPEATED_ROWS: Indices = [positions(9, end=4, low=-4)]
"""A list that selects nine rows of four, some of them several times."""

NINE_OF_THREE: Indices = [positions(9, end=3)]
"""A list that selects nine rows of three, some of them several times."""

DISTINCT_COLUMNS: Indices = [None, positions(3, end=5, distinct_along=0)]
"""A list that selects three different columns of five."""


def input_and_values(domain: Domain) -> Mapping[str, Domain]:
    """Return `domain` as the domain of both the input and the values to write."""
    return {"input": domain, "values": domain}


INDEX_PUT = (
    CaseTemplate("put", IndexedElements((6, 3), DISTINCT_ROWS), REPLACE, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("add", IndexedElements((4, 3), REPEATED_ROWS), ACCUMULATE, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "put-strided",
        IndexedElements((4, 5), DISTINCT_COLUMNS),
        REPLACE,
        **same_layout(strided),
        dtypes=ONE_DTYPE_PER_KIND,
    ),
    CaseTemplate(
        "put-int32",
        IndexedElements((4, 5), [None, positions(3, end=5, distinct_along=0, dtype=Dtype.int32)]),
        REPLACE,
        **same_layout(transposed),
    ),
    CaseTemplate(
        "any-of-several",
        IndexedElements((9, 3), [positions(7, end=9, low=-9)]),
        REPLACE,
        dtypes=(*ONE_DTYPE_PER_KIND, Dtype.bool, Dtype.float64),
    ),
    CaseTemplate(
        "wrap",
        IndexedElements((3, 2), NINE_OF_THREE),
        ACCUMULATE,
        domains=input_and_values(full_range),
        dtypes=(Dtype.int8, Dtype.uint8),
    ),
    CaseTemplate(
        "exact",
        IndexedElements((6, 5), [positions(67, end=6)]),
        ACCUMULATE,
        domains=input_and_values(EXACT_SUMMANDS),
        dtypes=ROUNDED_DTYPES,
        exact=True,
    ),
    CaseTemplate(
        "long-sum",
        IndexedElements((3, 2), [REPEATED_INDEX]),
        ACCUMULATE,
        domains=input_and_values(POSITIVE_SUMMANDS),
        dtypes=half,
    ),
    CaseTemplate(
        "equal-sum",
        IndexedElements((3, 2), [LONG_REPEATED_INDEX]),
        ACCUMULATE,
        domains=input_and_values(choice([0.1, 0.3])),
        dtypes=(Dtype.float32,),
    ),
    CaseTemplate(
        "add-neighbors",
        IndexedElements((3, 2), NINE_OF_THREE),
        ACCUMULATE,
        domains=input_and_values(NEIGHBORING_INTEGERS),
        dtypes=(Dtype.int64,),
    ),
    *CaseTemplate.cycle_layouts(
        [
            *(
                template.replace(f"{template.label}-add", ACCUMULATE)
                for template in sized_templates(INDEX_LISTS, DtypeSelection.one_per_size)
            ),
            *(
                t.replace(f"{t.label}-put", REPLACE)
                for t in sized_templates(INDEX_LISTS)
                if t.label.startswith(("mask", "no-"))
            ),
        ],
        *EQUAL_LAYOUTS,
    ),
    CaseTemplate("one-for-all", IndexedElements((4, 5), DISTINCT_COLUMNS, ()), REPLACE),
    CaseTemplate("one-of-vector-for-all", IndexedElements((4, 5), [mask(4, 5)], (1,)), REPLACE),
    CaseTemplate("row-for-all", IndexedElements((6, 3), DISTINCT_ROWS, (3,)), REPLACE),
    CaseTemplate("column-for-all", IndexedElements((6, 3), DISTINCT_ROWS, (4, 1)), REPLACE),
    CaseTemplate("add-one-for-all", IndexedElements((4, 3), REPEATED_ROWS, ()), ACCUMULATE),
    CaseTemplate("add-row-for-mask", IndexedElements((4, 5, 3), [mask(4, 5)], (3,)), ACCUMULATE),
    CaseTemplate("add-row-for-all", IndexedElements((4, 3), REPEATED_ROWS, (3,)), ACCUMULATE),
    CaseTemplate(
        "rows", IndexedElements((32_003, 3), [positions(4097, end=32_003, distinct_along=0)]), REPLACE, large=True
    ),
    CaseTemplate(
        "half",
        IndexedElements((131, 517), [positions(67, end=131, distinct_along=0)]),
        REPLACE,
        **LARGE_FLOAT16_FIELDS,
    ),
)
"""The templates of `diopiIndexPut`, which replaces elements ("put") or adds to them ("add").

If it replaces an element several times ("any-of-several"), any of the written values is a valid result.
"""


def index_put_arguments(template: CaseTemplate[IndexedElements], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiIndexPut` for the sizes of a template.

    The input and the values are normally distributed if they are added, and otherwise drawn from `any_value`.
    """
    sizes = template.sizes
    domain = normal() if template.argument("accumulate") else any_value
    values_shape = sizes.selected_shape if sizes.values_shape is None else sizes.values_shape
    return {
        "input": tensor(*sizes.shape, domain=domain, layout=template.layout),
        "values": tensor(*values_shape, domain=domain, layout=template.layout),
        "indices": sizes.indices,
    }


register(
    "diopiIndexPut", templates=INDEX_PUT, derive=index_put_arguments, non_discriminating={"mask-true": ALL_TRUE_REASON}
)
