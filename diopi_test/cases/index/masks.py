"""Cases of functions that fill, write, select or choose elements where a mask is true, and of `diopiNonzero`.

A template describes cases that differ only in their element type. A domain is a distribution or a set of values, from
which the elements of a tensor are drawn. A case is non-discriminating if an implementation with a coarse error passes
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

import numpy as np

from diopi_proto.dtypes import complexes, floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec, cases_for
from diopi_test.cases.domains import Domain, any_value, choice, half_zeros, normal
from diopi_test.cases.index.positions import (
    ALL_FALSE_REASON,
    ALL_TRUE_REASON,
    DIFFERENT_LAYOUTS,
    FAR_APART_FIELDS,
    LARGE_FLOAT16_FIELDS,
    ONE_DTYPE_PER_KIND,
    Shape,
    mask_values,
    sized_templates,
    sum_templates,
)
from diopi_test.cases.index.values import conversion_templates, derive_with_value
from diopi_test.cases.layouts import contiguous, expanded, strided, strides, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    CaseTemplate,
    Derive,
    DtypeSelection,
    expand,
    register,
    same_layout,
    tensor,
)
from diopi_test.cases.tensors import derive_single_tensor, literal, mask


@dataclass(frozen=True)
class MaskedElements:
    """The sizes of a template of a call that reads or writes the elements where a mask is true.

    Attributes:
        shape: The shape of the tensor.
        mask: The mask. The shapes of tensor and mask are broadcast to one shape.
        source: The shape of the source of `diopiMaskedScatter`; None for a vector with two elements more than the mask
            selects.
    """

    shape: Shape
    mask: TensorSpec
    source: Shape | None = None

    @property
    def count(self) -> int:
        """Return the number of selected elements."""
        shape = np.broadcast_shapes(self.shape, self.mask.shape)
        return int(np.broadcast_to(mask_values(self.mask), shape).sum())


BROADCAST_MASKS: Mapping[str, MaskedElements] = {
    "row": MaskedElements((4, 6), mask(6, period=2)),
    "column": MaskedElements((4, 6), mask(4, 1, period=2)),
    "number": MaskedElements((3, 4), mask(fill=True)),
    "of-number": MaskedElements((), mask(fill=True)),
    "of-number-false": MaskedElements((), mask(fill=False)),
    "false": MaskedElements((3, 4), mask(3, 4, fill=False)),
    "true": MaskedElements((3, 4), mask(3, 4, fill=True)),
    "empty": MaskedElements((0, 3), mask(0, 3, fill=True)),
    "empty-by-row": MaskedElements((0, 3), mask(3, fill=True)),
    "strided-mask": MaskedElements((5, 3), mask(5, 3, layout=strided)),
    "transposed-mask": MaskedElements((5, 3), mask(5, 3, layout=transposed)),
    "inner": MaskedElements((3, 4, 2), mask(4, 1, period=2)),
    "rank-5": MaskedElements((2, 1, 3, 2, 2), mask(2, 1, 3, 2, 2)),
    "long": MaskedElements((1031,), mask(1031)),
    "irregular": MaskedElements((4099,), literal(np.arange(4099) ** 2 % 101 < 40, Dtype.bool)),
}
"""Sizes by label in which the mask is broadcast to the shape of the input."""

BROADCAST_INPUTS: Mapping[str, MaskedElements] = {
    "input-row": MaskedElements((3,), mask(4, 3, period=2)),
    "input-column": MaskedElements((4, 1), mask(4, 3, period=2)),
    "input-number": MaskedElements((), mask(2, 3, period=2)),
    "outer": MaskedElements((4, 1), mask(1, 5, period=2)),
    "to-no-rows": MaskedElements((3,), mask(0, 3, fill=True)),
}
"""Sizes by label in which the input is broadcast to the shape of the mask, or both are."""

CONSTANT_MASK_REASONS = {"(of-)?number-false|false": ALL_FALSE_REASON, "(of-)?number|true": ALL_TRUE_REASON}
"""The reasons why cases with constant masks are non-discriminating, by a regular expression for labels."""

MATRIX_AND_MASK = MaskedElements((4, 6), mask(4, 6))
"""Sizes of a matrix and a mask of the same shape."""

ALTERNATING_MASK = mask(4, 5, period=2)
"""A mask of the shape 4 × 5 that is true for every second element."""

MASK_TEMPLATES = (
    CaseTemplate("plain", MATRIX_AND_MASK, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "cube",
        MaskedElements((3, 4, 2), mask(3, 4, 2, period=2, layout=strided)),
        layout=transposed,
        result_layout=strided,
        dtypes=DtypeSelection.all,
    ),
    *CaseTemplate.cycle_layouts(
        [
            *sized_templates(BROADCAST_MASKS, DtypeSelection.one_per_size),
            *(t.replace(inplace=False) for t in sized_templates(BROADCAST_INPUTS)),
        ],
        *DIFFERENT_LAYOUTS,
    ),
)
"""The small templates that functions with a mask share."""

PLANE = MaskedElements((263, 257), mask(263, 257))
"""Sizes of a large matrix and a mask of the same shape."""

LARGE_PLANE = CaseTemplate("plane", PLANE, large=True)
"""A template of a large matrix with a mask."""

LARGE_MASK_TEMPLATES = (LARGE_PLANE, CaseTemplate("half-far-apart", PLANE, **FAR_APART_FIELDS))
"""The large templates that functions with a mask share."""


def derive_masked(domain: Domain = any_value) -> Derive[MaskedElements]:
    """Return a function that derives the arguments of functions with a mask from a template.

    Args:
        domain: The domain of the input.

    Returns:
        The function, for `expand`.
    """

    def arguments(template: CaseTemplate[MaskedElements], dtype: Dtype) -> Mapping[str, Any]:
        sizes = template.sizes
        return {
            "grad_output": tensor(sizes.count, layout=template.layout),
            "input": tensor(*sizes.shape, domain=domain, layout=template.layout),
            "mask": sizes.mask,
            "source": tensor(
                *((sizes.count + 2,) if sizes.source is None else sizes.source),
                domain=any_value,
                layout=template.layout,
            ),
        }

    return arguments


@cases_for("diopiMaskedFill", non_discriminating=CONSTANT_MASK_REASONS)
def masked_fill_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of filling elements where a mask is true, including values that the function must convert."""
    templates = [
        *MASK_TEMPLATES,
        *conversion_templates(prototype, MaskedElements((4, 5), ALTERNATING_MASK)),
        *LARGE_MASK_TEMPLATES,
    ]
    return expand(prototype, templates, derive_with_value(prototype, derive_masked()))


MASKED_SCATTER = (
    *MASK_TEMPLATES,
    CaseTemplate("just-enough", replace(MATRIX_AND_MASK, source=(8,)), dtypes=ONE_DTYPE_PER_KIND),
    CaseTemplate(
        "from-transposed-matrix", replace(MATRIX_AND_MASK, source=(4, 3)), layout=transposed, dtypes=ONE_DTYPE_PER_KIND
    ),
    CaseTemplate("from-strided-cube", replace(MATRIX_AND_MASK, source=(2, 3, 2)), layout=strided),
    CaseTemplate("from-number", MaskedElements((2, 3), literal([[0, 0, 0], [0, 1, 0]], Dtype.bool), ())),
    CaseTemplate("rows-of-16", MaskedElements((3, 16), mask(3, 16))),
    CaseTemplate("from-nothing", MaskedElements((2, 3), mask(2, 3, fill=False), (0,))),
    LARGE_PLANE,
    LARGE_MASK_TEMPLATES[1].replace(arguments={"source": tensor(PLANE.count + 2, domain=any_value)}),
)
"""The templates of `diopiMaskedScatter`, which replaces the selected elements by those of `source`, in order."""

register(
    "diopiMaskedScatter", templates=MASKED_SCATTER, derive=derive_masked(), non_discriminating=CONSTANT_MASK_REASONS
)
register(
    "diopiMaskedSelect",
    # The function allocates its result itself, and so determines the layout.
    templates=[template.replace(result_layout=contiguous) for template in (*MASK_TEMPLATES, *LARGE_MASK_TEMPLATES)],
    derive=derive_masked(),
    non_discriminating={"input-number": "all result elements are the only element of the input"},
)

SUM_REASONS = {
    **CONSTANT_MASK_REASONS,
    "input-number": "all selected elements are added to one sum",
    "outer": "every row has the same sum, wherever the mask is true",
}
"""The reasons why cases of sums are non-discriminating, by a regular expression for labels."""


def _uneven_mask(rows: int) -> TensorSpec:
    """Return a mask of the shape (`rows`, 3): columns are true in every row, in 3 of 4 rows and in 1 of 4 rows."""
    return literal(np.arange(rows)[:, np.newaxis] % 4 < [4, 3, 1], Dtype.bool)


MASKED_SELECT_BACKWARD = (
    *MASK_TEMPLATES,
    *(
        CaseTemplate(f"{label}-all", BROADCAST_INPUTS[label], dtypes=DtypeSelection.all)
        for label in ("input-row", "outer")
    ),
    *sum_templates(
        "grad_output",
        MaskedElements((3, 1, 5), mask(3, 67, 5, period=2)),
        MaskedElements((3,), _uneven_mask(1100)),
    ),
    CaseTemplate("equal-sum", MaskedElements((3,), _uneven_mask(4000)), domains={"grad_output": choice([0.1, 0.3])}),
    LARGE_PLANE,
    CaseTemplate("half", PLANE, **LARGE_FLOAT16_FIELDS),
)
"""The templates of `diopiMaskedSelectBackward`, which adds up gradients if the input is broadcast."""

register(
    "diopiMaskedSelectBackward",
    templates=MASKED_SELECT_BACKWARD,
    derive=derive_masked(normal()),
    non_discriminating=SUM_REASONS,
)

DTYPE_PAIRS = (
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
"""Pairs of different element types of the two tensors from which `diopiWhere` chooses."""


@dataclass(frozen=True)
class ChoiceSizes:
    """The sizes of a template of `diopiWhere`, which chooses elements from two tensors.

    Attributes:
        condition: The mask that decides. The shapes of all three tensors are broadcast to one shape.
        input: The shape of the tensor that is chosen where the condition is true.
        alternative: The shape of the tensor that is chosen where the condition is false.
    """

    condition: TensorSpec
    input: Shape
    alternative: Shape


MATRIX_CHOICE = ChoiceSizes(ALTERNATING_MASK, (4, 5), (4, 5))
"""Sizes of a choice between two matrices of the shape 4 × 5."""

UINT8_MASK = mask(4, 5, period=2, dtype=Dtype.uint8)
"""A mask like `ALTERNATING_MASK` in uint8 instead of bool."""

EVEN_MASK = literal(np.where(np.arange(20).reshape(4, 5) % 2 == 0, [2, 4, 128, 254, 0], 0), Dtype.uint8)
"""A mask in uint8 whose numbers other than 0 are even: a function that reads only the lowest bit finds no true one."""

LARGE_CHOICE = ChoiceSizes(PLANE.mask, PLANE.shape, PLANE.shape)
"""Sizes of a choice between two large matrices."""

WHERE_TEMPLATES = (
    CaseTemplate("matrix", MATRIX_CHOICE, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "three-ways",
        ChoiceSizes(mask(3, 1, period=2), (4, 1, 1), (2,)),
        layout=transposed,
        result_layout=strided,
        dtypes=DtypeSelection.all,
    ),
    CaseTemplate("uint8", ChoiceSizes(UINT8_MASK, (4, 5), (4, 5)), dtypes=ONE_DTYPE_PER_KIND),
    CaseTemplate("uint8-even", ChoiceSizes(EVEN_MASK, (4, 5), (4, 5)), dtypes=ONE_DTYPE_PER_KIND),
    CaseTemplate(
        "uint8-strided",
        ChoiceSizes(replace(UINT8_MASK, layout=strided), (4, 5), (4, 5)),
        layout=strided,
        result_layout=transposed,
    ),
    CaseTemplate("condition-row", ChoiceSizes(mask(5, period=2), (4, 5), (4, 5)), layout=strided),
    CaseTemplate("number-input", ChoiceSizes(ALTERNATING_MASK, (), (4, 5))),
    CaseTemplate("number-other", ChoiceSizes(ALTERNATING_MASK, (4, 5), ())),
    CaseTemplate("number-condition", ChoiceSizes(mask(fill=True), (3, 4), (3, 4))),
    CaseTemplate("number-condition-false", ChoiceSizes(mask(fill=False), (3, 4), (3, 4))),
    CaseTemplate("all-numbers", ChoiceSizes(mask(fill=False), (), ())),
    CaseTemplate("all-true", ChoiceSizes(mask(3, 4, fill=True), (3, 4), (4,))),
    CaseTemplate("empty", ChoiceSizes(mask(0, 3, fill=True), (0, 3), (3,))),
    CaseTemplate("transposed", ChoiceSizes(mask(6, 4, layout=transposed), (6, 4), (6, 4)), **same_layout(transposed)),
    CaseTemplate("expanded", MATRIX_CHOICE, layout=expanded),
    CaseTemplate("rank-5", ChoiceSizes(mask(2, 1, 3, 1, 2, period=2), (2, 1, 1, 2, 2), (3, 2, 2))),
    CaseTemplate("long", ChoiceSizes(mask(1031, period=2), (1031,), (1031,)), dtypes=DtypeSelection.one_per_size),
    *(
        CaseTemplate(
            f"and-{second.name}",
            MATRIX_CHOICE,
            {"input": tensor(4, 5), "other": tensor(4, 5, dtype=second)},
            dtypes=(first,),
        )
        for first, second in DTYPE_PAIRS
    ),
    CaseTemplate("plane", LARGE_CHOICE, large=True),
    CaseTemplate(
        "half-far-apart",
        LARGE_CHOICE,
        {"other": tensor(263, 257, domain=any_value, layout=strides(0, 1))},
        **FAR_APART_FIELDS,
    ),
)
"""The templates of `diopiWhere`."""


def where_arguments(template: CaseTemplate[ChoiceSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiWhere` for the sizes of a template."""
    sizes = template.sizes
    return {
        "condition": sizes.condition,
        "input": tensor(*sizes.input, domain=any_value, layout=template.layout),
        "other": tensor(*sizes.alternative, domain=any_value, layout=template.layout),
    }


register(
    "diopiWhere",
    templates=WHERE_TEMPLATES,
    derive=where_arguments,
    non_discriminating={"number-condition-false": ALL_FALSE_REASON, "number-condition|all-true": ALL_TRUE_REASON},
)

NONZERO_TEMPLATES = (
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
    CaseTemplate("plane", (263, 257), large=True),
    CaseTemplate("half-rank5", (7, 11, 13, 5, 17), **LARGE_FLOAT16_FIELDS),
    CaseTemplate("rows", (70_001, 2), dtypes=(Dtype.int64,), large=True),
)
"""The templates of `diopiNonzero`, which returns the positions of elements that are not zero."""

register("diopiNonzero", templates=NONZERO_TEMPLATES, derive=derive_single_tensor(half_zeros))
