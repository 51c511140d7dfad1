"""Slices along one axis, by an index tensor, a number or a range: reading, gradients, writing and filling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice, integer_values, normal, uniform
from diopi_test.cases.index.common import ALIKE, OFTEN, ONE_PLACE, UNLIKE, and_untried, sized, sums
from diopi_test.cases.index.values import conversions, with_value
from diopi_test.cases.layouts import expanded, strided, transposed
from diopi_test.cases.model import Case, TensorSpec, cases_for
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    CaseTemplate,
    Derive,
    DtypeSelection,
    cycle_layouts,
    expand,
    register,
    tensor,
)
from diopi_test.cases.tensors import arbitrary, literal, random_positions

Shape = tuple[int, ...]

# By an index tensor

Selecting = tuple[Shape, int, TensorSpec]
"""Shape of the input, axis, and the index."""

SLICES: Mapping[str, Selecting] = {
    "rows": ((5, 3), 0, random_positions(4, below=5)),
    "first-of-4": ((7, 2, 3, 2), -4, random_positions(4, below=7)),
    "cube": ((4, 4, 4), 1, random_positions(4, below=4)),
    "cube-first": ((4, 4, 4), 0, random_positions(4, below=4)),
    "third-of-5": ((2, 1, 5, 2, 3), 2, random_positions(3, below=5)),
    "last-of-3": ((2, 3, 4), 2, random_positions(7, below=4, layout=strided)),
    "reversed": ((6, 2), 0, literal(range(5, -1, -1))),
    "all-the-same": ((4, 3), 1, literal([2, 2, 2])),
    "number": ((4, 3), 0, literal(2)),
    "number-of-columns": ((4, 3), -1, literal(1, Dtype.int32)),
    "of-number": ((), 0, literal([0])),
    "number-of-number": ((), -1, literal(0)),
    "no-indices": ((4, 3), 1, random_positions(0, below=3)),
    "no-rows": ((0, 3), 1, random_positions(2, below=3)),
    "vector": ((6,), 0, random_positions(4, below=6)),
    "length-one": ((3, 1, 2), 1, random_positions(3, below=1)),
    "wide": ((3, 1030), 0, random_positions(4, below=3)),
    "long": ((1031,), -1, random_positions(515, below=1031)),
}

COLUMNS = CaseTemplate("columns", ((4, 6), 1, random_positions(5, below=6)), **SMOKE_IN_ALL_DTYPES)
INNER = CaseTemplate(
    "inner", ((3, 4, 5), -2, random_positions(6, below=4, dtype=Dtype.int32)), layout=strided, dtypes=DtypeSelection.all
)

INDEX_SELECT = (
    COLUMNS,
    INNER.replace(result_layout=transposed),
    *cycle_layouts(sized(SLICES, DtypeSelection.one_per_size), *UNLIKE, (transposed, strided)),
    CaseTemplate("expanded", ((4, 3), 1, random_positions(5, below=3)), layout=expanded),
)

INDEX_SELECT_BACKWARD = (
    COLUMNS,
    INNER.replace(result_layout=strided),
    *cycle_layouts(sized(SLICES), *ALIKE),
    *sums("grad", ((4, 6, 5), 1, random_positions(67, below=6)), ((2, 3), 1, OFTEN)),
)

INDEX_FILL = (
    CaseTemplate("columns", ((4, 6), 1, literal([1, -1, 1])), **SMOKE_IN_ALL_DTYPES),
    replace(INNER, sizes=((3, 4, 5), -2, literal([0, -2], Dtype.int32)), result_layout=transposed),
    *cycle_layouts([t for t in sized(SLICES) if t.label not in ("long", "reversed")], *UNLIKE),
    CaseTemplate("negative", ((5, 2), 0, literal([-5, -2]))),
    CaseTemplate(
        "long", ((1031,), 0, random_positions(300, below=1031, low=-1031)), dtypes=DtypeSelection.one_per_size
    ),
)


def by_index(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiIndexSelect` and `diopiIndexSelectBackward` from the sizes of a template."""
    shape, dim, index = template.sizes
    slices = np.array(shape, int)
    slices[[dim] if shape else []] = np.prod(index.shape)
    return {
        "grad": tensor(*slices.tolist(), layout=template.layout),
        "input_sizes": shape,
        "input": arbitrary(*shape, layout=template.layout),
        "dim": dim,
        "index": index,
    }


def several(shape: Shape, dim: int) -> Selecting:
    """Return sizes that select three random positions along the axis."""
    return shape, dim, random_positions(3, below=shape[dim])


SINGLE_ELEMENT = {"of-number|length-one": ONE_PLACE}

register(
    "diopiIndexSelect", templates=and_untried(INDEX_SELECT, several), derive=by_index, non_discriminating=SINGLE_ELEMENT
)
register(
    "diopiIndexSelectBackward",
    templates=and_untried(INDEX_SELECT_BACKWARD, several),
    derive=by_index,
    non_discriminating=SINGLE_ELEMENT,
)


@cases_for("diopiIndexFill", non_discriminating={"of-number|length-one": "the only place is filled"})
def index_fill(prototype: Prototype) -> Iterator[Case]:
    templates = [*INDEX_FILL, *conversions(prototype, ((4, 5), 1, literal([0, 3])))]
    with_untried = and_untried(templates, lambda shape, dim: (shape, dim, literal([-1])))
    return expand(prototype, with_untried, with_value(prototype, by_index))


# By numbers

SINGLE: Mapping[str, tuple[Shape, int, int]] = {
    "first": ((4, 3), 0, 0),
    "last": ((4, 3), 0, 3),
    "minus-one": ((3, 5), 1, -1),
    "minus-all": ((3, 5), 1, -5),
    "middle": ((2, 4, 3), 1, 2),
    "first-of-4": ((3, 2, 4, 2), -4, -2),
    "last-of-5": ((2, 1, 3, 2, 4), -1, 1),
    "cube": ((4, 4, 4), 1, 2),
    "cube-first": ((4, 4, 4), 0, 2),
    "of-vector": ((6,), 0, 4),
    "length-one": ((3, 1, 2), 1, 0),
    "no-elements": ((0, 3), 1, 2),
    "long": ((2, 1031), 0, 1),
}
"""Shape of the input, axis, and the index of one slice."""

RANGES: Mapping[str, tuple[Shape, int, int, int, int]] = {
    "rows": ((5, 3), 0, 1, 4, 1),
    "every-second": ((7, 2), 0, 0, 7, 2),
    "every-third": ((3, 8), 1, 1, 8, 3),
    "from-the-end": ((3, 6), 1, -4, -1, 1),
    "from-the-end-every-second": ((8, 2), -2, -7, -1, 2),
    "clamped": ((4, 3), 0, -100, 100, 1),
    "end-beyond": ((4, 3), 1, 1, 2**63 - 1, 1),
    "start-beyond": ((4, 3), 1, 5, 9, 1),
    "end-before-start": ((4, 3), 0, 3, 1, 1),
    "wide-step": ((4, 3), 0, 1, 4, 9),
    "one": ((4, 3), 0, 2, 3, 1),
    "first-of-4": ((5, 2, 3, 2), -4, 1, 5, 2),
    "third-of-5": ((2, 1, 7, 2, 3), 2, 1, 6, 2),
    "vector": ((9,), 0, 2, 8, 2),
    "no-elements": ((0, 3), 1, 0, 2, 1),
    "of-nothing": ((3, 0), 1, 0, 5, 1),
    "long": ((1031,), 0, 3, 1030, 2),
}
"""Shape of the input, axis, start, end and step."""

SOURCES: Mapping[str, tuple[Dtype, Domain, tuple[Dtype, ...]]] = {
    "from-float64": (Dtype.float64, normal(), (Dtype.float32, Dtype.float16)),
    "from-float32": (Dtype.float32, uniform(-9, 9), (Dtype.int32, Dtype.int8)),
    "from-int64": (Dtype.int64, integer_values(-99, 99), (Dtype.float32, Dtype.complex64)),
    "from-float-to-bool": (Dtype.float32, choice([0.0, 0.25, -3.0]), (Dtype.bool,)),
}
"""Element type and domain of what is written, and the element types that it is converted to."""


def part(shape: Shape, dim: int, *numbers: int) -> Shape:
    """Shape of what an index, or start, end and step, selects."""
    axis = dim % len(shape)
    length = () if len(numbers) == 1 else (len(range(shape[axis])[slice(*numbers)]),)
    return (*shape[:axis], *length, *shape[axis + 1 :])


def parts(
    columns: Any, inner: Any, table: Mapping[str, Any], long: DtypeSelection = DtypeSelection.leading
) -> list[CaseTemplate[Any]]:
    """Templates of shapes and numbers that select a part; those of a table, its longest in several element types."""
    return [
        CaseTemplate("columns", columns, **SMOKE_IN_ALL_DTYPES),
        CaseTemplate("inner", inner, layout=transposed, result_layout=strided, dtypes=DtypeSelection.all),
        *cycle_layouts(sized(table, long), *UNLIKE),
    ]


def converted(sizes: tuple[Any, ...]) -> Iterator[CaseTemplate[Any]]:
    """Templates in which numbers of another element type are written to the part."""
    for label, (source, domain, dtypes) in SOURCES.items():
        yield CaseTemplate(label, sizes, {"src": tensor(*part(*sizes), domain=domain, dtype=source)}, dtypes=dtypes)


def by_numbers(*names: str) -> Derive[Any]:
    """Derives the arguments of functions that read, or write, a part of a tensor that these numbers select."""

    def arguments(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
        shape, *numbers = template.sizes
        small = arbitrary(*part(*template.sizes), layout=template.layout)
        common = {"input_sizes": shape, "input": arbitrary(*shape, layout=template.layout)}
        return {"grad_output": small, "src": small, **common, **dict(zip(names, numbers, strict=True))}

    return arguments


COLUMN, INNER_COLUMN = ((9, 3), 1, 1), ((3, 4, 5), -2, -3)
SELECT = parts(COLUMN, INNER_COLUMN, SINGLE)
ALL_OF_IT = {"length-one": "the slice is all there is"}
by_index_number = by_numbers("dim", "index")


def last_but_one(templates: Sequence[CaseTemplate[Any]]) -> list[CaseTemplate[Any]]:
    """Return the templates and calls along untested axes that select the last position but one."""
    return and_untried(templates, lambda shape, dim: (shape, dim, -2))


SELECTING = last_but_one(parts(COLUMN, INNER_COLUMN, SINGLE, DtypeSelection.one_per_size))

register("diopiSelect", templates=SELECTING, derive=by_index_number)
register("diopiSelectBackward", templates=last_but_one(SELECT), derive=by_index_number, non_discriminating=ALL_OF_IT)
register(
    "diopiSelectScatter",
    templates=last_but_one([*SELECT, *converted(COLUMN)]),
    derive=by_index_number,
    non_discriminating=ALL_OF_IT,
)

SOME_COLUMNS, INNER_RANGE = ((4, 7), 1, 1, 6, 2), ((3, 6, 2), -2, -5, 5, 2)
SLICE = parts(SOME_COLUMNS, INNER_RANGE, RANGES)
WHOLE_AXIS = {"clamped": "the range is the whole axis"}
by_range = by_numbers("dim", "start", "end", "step")


def all_but_first(templates: Sequence[CaseTemplate[Any]]) -> list[CaseTemplate[Any]]:
    """Return the templates and calls along untested axes that take all positions except the first."""
    return and_untried(templates, lambda shape, dim: (shape, dim, 1, shape[dim], 1))


SLICING = all_but_first(parts(SOME_COLUMNS, INNER_RANGE, RANGES, DtypeSelection.one_per_size))

register("diopiSlice", templates=SLICING, derive=by_range)
register("diopiSliceBackward", templates=all_but_first(SLICE), derive=by_range, non_discriminating=WHOLE_AXIS)
register(
    "diopiSliceScatter",
    templates=all_but_first([*SLICE, *converted(SOME_COLUMNS)]),
    derive=by_range,
    non_discriminating=WHOLE_AXIS,
)
