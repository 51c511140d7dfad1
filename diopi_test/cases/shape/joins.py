"""Cases of functions that join several tensors, combine vectors into a grid, or split a tensor.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

Large cases belong to a level with the sizes of real models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Unpack

from diopi_proto.dtypes import DtypeSet
from diopi_proto.types import Dtype
from diopi_test.cases.axes import untested_axes
from diopi_test.cases.domains import Domain, any_value, normal, special
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import Layout, channels_last, contiguous, expanded, strided, strides, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    register,
    same_layout,
    tensor,
)
from diopi_test.cases.tensors import derive_single_tensor

Shape = tuple[int, ...]
"""The sizes of a tensor."""

HALF: DtypeSet = (Dtype.float16,)
"""The element type of large half-precision cases."""

PLANE = (263, 257)
"""The shape of large matrices; both sizes are prime numbers, so that no block size divides them."""

SPECIAL: Mapping[str, Domain] = dict.fromkeys(("input", "inputs", "tensors"), special)
"""Domains by argument name: `special` (NaN, infinities, subnormal numbers) for the tensors of all functions here."""


def join_template(
    label: str,
    shapes: Sequence[Shape],
    arguments: Arguments | None = None,
    layouts: Sequence[Layout] = (contiguous,),
    element_types: Sequence[Dtype | None] = (None,),
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of a call with a list of tensors.

    Args:
        label: The label of the cases without the element type.
        shapes: The shapes of the tensors.
        arguments: Further arguments, such as `dim`.
        layouts: The layouts of the tensors. All remaining tensors have the last layout.
        element_types: The element types of the tensors; None for the type under test. All remaining tensors have the
            last type.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    rows = zip(
        shapes, chain(layouts, repeat(layouts[-1])), chain(element_types, repeat(element_types[-1])), strict=False
    )
    tensors = [
        tensor(*shape, domain=any_value, layout=layout, dtype=element_type) for shape, layout, element_type in rows
    ]
    return CaseTemplate(label, (), {"tensors": tensors, "inputs": tensors, **(arguments or {})}, **fields)


def mixed_template(label: str, shapes: Sequence[Shape], dim: int, *element_types: Dtype) -> CaseTemplate:
    """Return a template that joins tensors of several element types, so that they are promoted to a common type.

    Args:
        label: The end of the label.
        shapes: The shapes of the tensors.
        dim: The axis.
        *element_types: The element types of the tensors. The first is the type under test.

    Returns:
        The template.
    """
    return join_template(f"mixed-{label}", shapes, {"dim": dim}, element_types=element_types, dtypes=element_types[:1])


MIXED_DTYPES = {
    "float-int": (Dtype.float32, Dtype.int64),
    "halves": (Dtype.float16, Dtype.bfloat16),
    "half-float-double": (Dtype.bfloat16, Dtype.float32, Dtype.float64),
    "signs": (Dtype.int8, Dtype.uint8),
    "widths": (Dtype.int16, Dtype.int64, Dtype.uint8),
    "bool-int": (Dtype.bool, Dtype.int32),
    "bool-half": (Dtype.bool, Dtype.float16),
    "complex-double": (Dtype.complex64, Dtype.float64),
    "int-complex": (Dtype.int32, Dtype.complex64),
}
"""By label, the element types of the tensors that a mixed call joins."""

CAT = (
    join_template("rows", [(2, 3), (1, 3), (2, 3)], {"dim": 0}, **SMOKE_IN_ALL_DTYPES),
    join_template(
        "columns",
        [(2, 1), (2, 3)],
        {"dim": -1},
        layouts=(strided, transposed),
        result_layout=strided,
        **SMOKE_IN_ALL_DTYPES,
    ),
    join_template(
        "middle",
        [(2, 3, 4), (2, 1, 4), (2, 2, 4)],
        {"dim": 1},
        layouts=(transposed, contiguous),
        result_layout=transposed,
    ),
    join_template(
        "first-of-4",
        [(1, 2, 3, 2), (3, 2, 3, 2)],
        {"dim": -4},
        layouts=(channels_last, strided),
        result_layout=channels_last,
    ),
    join_template("one", [(3, 4)], {"dim": 1}),
    join_template("vectors", [(3,), (1,), (4,)], {"dim": 0}, layouts=(strided,)),
    join_template("with-none", [(2, 3), (0, 3), (1, 3)], {"dim": 0}),
    join_template("skipped", [(0,), (2, 3), (0,), (2, 2)], {"dim": 1}),
    join_template("all-none", [(0,), (0,)], {"dim": 0}),
    join_template("empty", [(0, 2), (0, 3)], {"dim": 1}),
    join_template("expanded", [(3, 2), (3, 4)], {"dim": 1}, layouts=(expanded,)),
    join_template("special", [(19, 1), (19, 2)], {"dim": 1}, domains=SPECIAL),
    join_template("many", [(i % 4 + 1, 5) for i in range(13)], {"dim": 0}),
    join_template("very-many", [(1, 3)] * 131, {"dim": 0}),
    join_template("cube", [(3, 3, 3)] * 2, {"dim": 1}),
    join_template("cube-first", [(3, 3, 3)] * 2, {"dim": -3}),
    join_template("rank-5", [(2, 1, 3, 2, 2), (2, 1, 3, 1, 2)], {"dim": 3}),
    join_template("rank-8", [(2, 1, 1, 2, 1, 3, 2, 2), (2, 1, 1, 2, 1, 1, 2, 2)], {"dim": 5}),
    join_template("long", [(3, 170), (3, 173)], {"dim": -1}, dtypes=DtypeSelection.one_per_size),
    *(
        mixed_template(label, [(2, 2), (1, 2), (3, 2)][: len(element_types)], 0, *element_types)
        for label, element_types in MIXED_DTYPES.items()
    ),
    mixed_template("skipped", [(2, 2), (0,)], 0, Dtype.int32, Dtype.float64),
)
"""The templates of `diopiCat`, which joins tensors along an existing axis, except for the large ones."""

STACK = (
    join_template("front", [(2, 3), (2, 3)], {"dim": 0}, **SMOKE_IN_ALL_DTYPES),
    join_template(
        "back", [(2, 2)] * 3, {"dim": -1}, layouts=(strided, transposed), result_layout=strided, **SMOKE_IN_ALL_DTYPES
    ),
    join_template("middle", [(2, 3, 4)] * 3, {"dim": 1}, layouts=(transposed, contiguous), result_layout=transposed),
    join_template("last-but-one", [(2, 3)] * 4, {"dim": -2}),
    join_template("front-negative", [(2, 3)] * 3, {"dim": -3}),
    join_template("rank-4", [(2, 3, 2)] * 2, {"dim": 3}, layouts=(strided,), result_layout=channels_last),
    join_template("one", [(3, 4)], {"dim": 2}),
    join_template("scalars", [()] * 5, {"dim": 0}),
    join_template("vectors", [(3,)] * 4, {"dim": 1}, layouts=(strided,)),
    join_template("empty", [(0, 2)] * 3, {"dim": 1}),
    join_template("expanded", [(3, 2)] * 2, {"dim": 1}, layouts=(expanded, contiguous)),
    join_template("special", [(19,)] * 2, {"dim": 1}, domains=SPECIAL),
    join_template("many", [(2, 5)] * 13, {"dim": 1}),
    join_template("very-many", [(3,)] * 131, {"dim": 0}),
    join_template("cube", [(3, 3)] * 3, {"dim": 1}),
    join_template("rank-5", [(2, 3, 1, 2)] * 2, {"dim": -3}),
    join_template("long", [(5, 103)] * 2, {"dim": -1}, dtypes=DtypeSelection.one_per_size),
    *(
        mixed_template(label, [(3,)] * len(element_types), 1, *element_types)
        for label, element_types in MIXED_DTYPES.items()
    ),
)
"""The templates of `diopiStack`, which joins tensors along a new axis, except for the large ones."""

MESH_GRID = (
    join_template("two", [(3,), (4,)], **SMOKE_IN_ALL_DTYPES),
    join_template("three", [(2,), (1,), (3,)], layouts=(strided,), result_layout=strided, **SMOKE_IN_ALL_DTYPES),
    join_template("one", [(5,)], result_layout=strided),
    join_template("scalar", [(3,), (), (2,)]),
    join_template("scalars", [(), ()], domains={"inputs": normal()}),
    join_template("five", [(2,), (3,), (1,), (4,), (2,)]),
    join_template("four", [(2,), (3,), (1,), (4,)], layouts=(strided, contiguous), result_layout=transposed),
    join_template("empty", [(2,), (0,), (3,)]),
    join_template("special", [(19,), (2,)], domains=SPECIAL),
    join_template("long", [(41,), (29,)], dtypes=DtypeSelection.one_per_size),
)
"""The templates of `diopiMeshGrid`, which combines vectors into a grid, except for the large ones."""


def ranks_and_axes(templates: Iterable[CaseTemplate], added_axes: int = 0) -> set[tuple[int, int]]:
    """Return the pairs of rank and axis of templates that join tensors.

    Args:
        templates: The templates.
        added_axes: The number of axes that the result has in addition to those of the tensors: 1 for `diopiStack`.

    Returns:
        The pairs of the rank of the result and the axis `dim`.
    """
    return {
        (len(template.argument("tensors")[0].shape) + added_axes, template.argument("dim")) for template in templates
    }


def with_axis(shape: Shape, dim: int, length: int | None) -> Shape:
    """Return a shape with another length of an axis.

    Args:
        shape: The shape.
        dim: The axis, which may count from the last axis.
        length: The new length; None to remove the axis.

    Returns:
        The new shape.
    """
    axis = dim % len(shape)
    return (*shape[:axis], *([] if length is None else [length]), *shape[axis + 1 :])


CAT_ALONG_OTHER_AXES = tuple(
    join_template(label, [shape, with_axis(shape, dim, 1)], {"dim": dim})
    for label, shape, dim in untested_axes(ranks_and_axes(CAT))
)
"""Templates of `diopiCat` for each axis of ranks 1 to 4 along which no template of `CAT` joins."""

STACK_ALONG_OTHER_AXES = tuple(
    join_template(label, [with_axis(shape, dim, None)] * 3, {"dim": dim})
    for label, shape, dim in untested_axes(ranks_and_axes(STACK, 1))
)
"""Templates of `diopiStack` for each axis of results of ranks 1 to 4 along which no template of `STACK` joins."""

LARGE_CAT = (
    join_template(
        "rows",
        [(32_003, 3), (1, 3), (4097, 3)],
        {"dim": 0},
        layouts=(contiguous, contiguous, strides(7, 2)),
        large=True,
    ),
    join_template("half-many", [(131, length) for length in range(1, 40)], {"dim": 1}, dtypes=HALF, large=True),
)
"""The large templates of `diopiCat`."""

LARGE_STACK = (
    join_template("planes", [PLANE, PLANE], {"dim": 0}, layouts=(contiguous, strides(1031, 2)), large=True),
    join_template("half-many", [(131, 17)] * 37, {"dim": 2}, dtypes=HALF, large=True),
)
"""The large templates of `diopiStack`."""

LARGE_MESH_GRID = (
    join_template("plane", [(263,), (257,)], large=True),
    join_template("half-space", [(41,), (37,), (43,)], dtypes=HALF, large=True),
)
"""The large templates of `diopiMeshGrid`."""

register("diopiCat", templates=(*CAT, *CAT_ALONG_OTHER_AXES, *LARGE_CAT))
register("diopiStack", templates=(*STACK, *STACK_ALONG_OTHER_AXES, *LARGE_STACK))
register("diopiMeshGrid", templates=(*MESH_GRID, *LARGE_MESH_GRID))


def split_arguments(sizes: Shape, dim: int) -> dict[str, Any]:
    """Return the arguments of `diopiSplitWithSizes`.

    Args:
        sizes: The lengths of the parts.
        dim: The axis that is split.

    Returns:
        The arguments by name.
    """
    return {"splitSizes": sizes, "dim": dim}


SPLIT = (
    CaseTemplate("rows", (5, 3), split_arguments((2, 3), 0), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("strided", (2, 6), split_arguments((1, 3, 2), -1), **same_layout(strided), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("middle", (2, 7, 3), split_arguments((4, 1, 2), 1), **same_layout(transposed)),
    CaseTemplate("rank-4", (2, 5, 3, 2), split_arguments((3, 2), -3), **same_layout(channels_last)),
    CaseTemplate("with-nothing", (4, 3), split_arguments((0, 1, 0, 3, 0), 0)),
    CaseTemplate("whole", (3, 4), split_arguments((4,), 1)),
    CaseTemplate("ones", (6,), split_arguments((1,) * 6, 0), layout=strided),
    CaseTemplate("very-many", (131, 3), split_arguments((1,) * 131, 0)),
    CaseTemplate("of-nothing", (0, 3), split_arguments((0, 0), 0)),
    CaseTemplate("empty", (0, 5), split_arguments((2, 3), 1)),
    CaseTemplate("expanded", (4, 3), split_arguments((1, 3), 0), layout=expanded),
    CaseTemplate("special", (19, 2), split_arguments((7, 12), 0), domains=SPECIAL),
    CaseTemplate("long", (3, 343), split_arguments((100, 43, 200), 1), dtypes=DtypeSelection.one_per_size),
)
"""The templates of `diopiSplitWithSizes`, except for the large ones."""

SPLIT_ALONG_OTHER_AXES = tuple(
    CaseTemplate(label, shape, split_arguments((1, shape[dim] - 1), dim))
    for label, shape, dim in untested_axes({(len(template.sizes), template.argument("dim")) for template in SPLIT})
)
"""Templates of `diopiSplitWithSizes` for each axis of ranks 1 to 4 along which no template of `SPLIT` splits.

The parts are one element and the remainder.
"""

LARGE_SPLIT = (
    CaseTemplate("rows", (70_001, 3), split_arguments((65_537, 1, 4463), 0), large=True),
    CaseTemplate(
        "half-columns", PLANE, split_arguments((67, 1, 189), 1), layout=strides(1031, 2), dtypes=HALF, large=True
    ),
)
"""The large templates of `diopiSplitWithSizes`."""

register(
    "diopiSplitWithSizes", templates=(*SPLIT, *SPLIT_ALONG_OTHER_AXES, *LARGE_SPLIT), derive=derive_single_tensor()
)

CaseFacts(attribute_changes={"float32-front": [{"dim": 1}]}).declare("diopiStack")
