"""Single elements along one axis, each by an index of its own: gather, its gradient, scatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diopi_proto.dtypes import category, floating, half, integer
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice, full_range, normal
from diopi_test.cases.index.common import (
    INEXACT,
    LARGE,
    OFTEN,
    ONE_DTYPE_PER_KIND,
    ONE_PLACE,
    POSITIVE,
    SUMMANDS,
    UNLIKE,
    and_untried,
    sized,
    sums,
)
from diopi_test.cases.index.values import CONVERTED
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.model import TensorSpec
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, cycle_layouts, register, tensor
from diopi_test.cases.tensors import arbitrary, distinct_positions, literal, random_positions

Shape = tuple[int, ...]
I32 = Dtype.int32

GATHERS: Mapping[str, tuple[Shape, int, TensorSpec]] = {
    "rows": ((4, 3), 0, random_positions(4, 3, below=4)),
    "longer": ((3, 4), 1, random_positions(3, 9, below=4)),
    "shorter": ((3, 4), 1, random_positions(3, 2, below=4)),
    "smaller": ((4, 5, 3), 1, random_positions(2, 3, 2, below=5)),
    "first-axis": ((4, 3, 2), 0, random_positions(6, 2, 1, below=4, layout=transposed)),
    "last-of-4": ((2, 3, 2, 5), -1, random_positions(2, 2, 2, 3, below=5)),
    "first-of-4": ((5, 2, 3, 2), -4, random_positions(4, 2, 3, 2, below=5, layout=strided)),
    "rank-5": ((2, 1, 3, 2, 3), 2, random_positions(2, 1, 5, 2, 3, below=3)),
    "cube": ((4, 4, 4), 1, random_positions(4, 4, 4, below=4)),
    "cube-first": ((4, 4, 4), -3, random_positions(4, 4, 4, below=4)),
    "vector": ((6,), 0, random_positions(9, below=6)),
    "of-number": ((), 0, literal([0])),
    "number-of-number": ((), -1, literal(0)),
    "number-in-vector": ((1,), 0, literal(0)),
    "no-indices": ((4, 3), 1, random_positions(4, 0, below=3)),
    "no-indices-of-other-rank": ((4, 3), 1, random_positions(0, below=3)),
    "no-elements": ((0, 3), 1, random_positions(0, 2, below=3)),
    "int32": ((3, 4), -2, random_positions(5, 4, below=3, dtype=I32)),
    "wide": ((3, 1030), 0, random_positions(4, 1027, below=3)),
    "long": ((8, 130), 1, random_positions(8, 130, below=130)),
}
"""Shape of the input, axis, and the index."""

COMMON = (
    CaseTemplate("columns", ((4, 6), 1, random_positions(4, 5, below=6)), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "inner",
        ((3, 4, 5), -2, random_positions(3, 6, 4, below=4, dtype=I32, layout=transposed)),
        layout=transposed,
        result_layout=strided,
        dtypes=DtypeSelection.all,
    ),
)

GATHER = (*COMMON, *cycle_layouts(sized(GATHERS, DtypeSelection.one_per_size), *UNLIKE))

SEVERAL = ((3, 2), 1, random_positions(3, 70, below=2))

GATHER_BACKWARD = (
    *COMMON,
    *cycle_layouts(sized(GATHERS), *UNLIKE),
    *sums("grad_output", ((3, 6), 1, random_positions(3, 67, below=6)), ((3,), 0, OFTEN)),
    CaseTemplate("often", SEVERAL, dtypes=floating),
    CaseTemplate("wrap", SEVERAL, {}, {"grad_output": full_range}, dtypes=integer),
    CaseTemplate("neighbours", SEVERAL, {}, {"grad_output": LARGE}, dtypes=(Dtype.int64,)),
)


def gathering(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiGather` and `diopiGatherBackward` from the sizes of a template."""
    shape, dim, index = template.sizes
    return {
        "grad_output": tensor(*index.shape, layout=template.layout),
        "input": arbitrary(*shape, layout=template.layout),
        "dim": dim,
        "index": index,
    }


def gathered_along(shape: Shape, dim: int) -> tuple[Shape, int, TensorSpec]:
    """Return sizes that gather random positions along the axis, as many as the shape has elements."""
    return shape, dim, random_positions(*shape, below=shape[dim])


GATHERED_ALIKE = {"of-number|number-in-vector": ONE_PLACE}

register(
    "diopiGather", templates=and_untried(GATHER, gathered_along), derive=gathering, non_discriminating=GATHERED_ALIKE
)
register(
    "diopiGatherBackward",
    templates=and_untried(GATHER_BACKWARD, gathered_along),
    derive=gathering,
    non_discriminating=GATHERED_ALIKE,
)

SCATTERS: Mapping[str, tuple[Shape, int, TensorSpec, Shape]] = {
    "rows": ((5, 3), 0, distinct_positions(4, 3, below=5), (4, 3)),
    "larger-source": ((5, 4), 0, distinct_positions(2, 3, below=5), (4, 6)),
    "smaller": ((4, 5, 3), 1, distinct_positions(2, 3, 2, below=5, axis=1, layout=transposed), (2, 3, 2)),
    "last-of-4": ((2, 3, 2, 5), -1, distinct_positions(2, 2, 2, 3, below=5, axis=3), (2, 3, 2, 4)),
    "rank-5": ((2, 1, 5, 2, 3), 2, distinct_positions(2, 1, 3, 2, 3, below=5, axis=2), (2, 1, 3, 2, 3)),
    "cube": ((4, 4, 4), 1, distinct_positions(4, 4, 4, below=4, axis=1), (4, 4, 4)),
    "cube-first": ((4, 4, 4), 0, distinct_positions(3, 4, 4, below=4), (4, 4, 4)),
    "vector": ((6,), 0, distinct_positions(4, below=6, layout=strided), (4,)),
    "of-number": ((), 0, literal([0]), (1,)),
    "number-of-number": ((), -1, literal(0), ()),
    "number-of-vector": ((1,), 0, literal(0), ()),
    "no-indices": ((4, 3), 1, random_positions(4, 0, below=3), (4, 2)),
    "no-indices-of-other-rank": ((4, 3), 1, random_positions(0, below=3), (2, 3)),
    "no-elements": ((0, 3), 1, random_positions(0, 2, below=3), (0, 2)),
    "int32": ((3, 4), -2, distinct_positions(2, 4, below=3, dtype=I32), (2, 4)),
    "all": ((2, 7), 1, distinct_positions(2, 7, below=7, axis=1), (2, 7)),
    "long": ((4, 260), 1, distinct_positions(4, 200, below=260, axis=1), (4, 200)),
}
"""Shape of the input, axis, index, and shape of src; no place is named twice."""

ONCE = ((4, 6), 1, distinct_positions(4, 3, below=6, axis=1), (4, 5))
REPEATED = ((3, 9), 1, random_positions(3, 7, below=9), (3, 8))
SUMMED = ((3, 17), 1, random_positions(3, 67, below=17), (4, 70))
INNER = ((2, 3, 4), -2, random_positions(2, 5, 3, below=3, dtype=I32, layout=strided), (2, 6, 3))


def scatter_template(
    label: str, sizes: Any, reduce: str, domain: Domain | None = None, **fields: Any
) -> CaseTemplate[Any]:
    """Return a template that scatters with this reduction; input and source are drawn from `domain`."""
    domains = {"input": domain, "src": domain} if domain else {}
    return CaseTemplate(label, sizes, {"reduce": reduce}, domains, **fields)


SCATTER = (
    scatter_template("columns", ONCE, "", **SMOKE_IN_ALL_DTYPES),
    scatter_template("add", REPEATED, "add", normal(), **SMOKE_IN_ALL_DTYPES),
    scatter_template("multiply", REPEATED, "multiply", normal(), **SMOKE_IN_ALL_DTYPES),
    scatter_template("layouts", ONCE, "", layout=transposed, result_layout=strided, dtypes=ONE_DTYPE_PER_KIND),
    scatter_template("any-of-several", REPEATED, "", dtypes=(*ONE_DTYPE_PER_KIND, Dtype.bool, Dtype.float64)),
    scatter_template(
        "add-inner", INNER, "add", normal(), layout=strided, result_layout=transposed, dtypes=ONE_DTYPE_PER_KIND
    ),
    scatter_template("multiply-inner", INNER, "multiply", normal(), layout=transposed, dtypes=ONE_DTYPE_PER_KIND),
    scatter_template("add-exact", SUMMED, "add", SUMMANDS, dtypes=INEXACT, exact=True),
    scatter_template("multiply-exact", SUMMED, "multiply", choice([1, -1, 2, 0.5]), dtypes=INEXACT, exact=True),
    scatter_template("add-long-sum", ((3,), 0, OFTEN, (1100,)), "add", POSITIVE, dtypes=half),
    scatter_template("add-wrap", REPEATED, "add", full_range, dtypes=(Dtype.uint8, Dtype.int64)),
    scatter_template("multiply-wrap", REPEATED, "multiply", full_range, dtypes=(Dtype.int16, Dtype.int64)),
    *(
        template.replace(arguments={"reduce": ""})
        for template in cycle_layouts(sized(SCATTERS, DtypeSelection.one_per_size), *UNLIKE)
    ),
    scatter_template("of-number-reduced", SCATTERS["of-number"], "add", normal()),
    scatter_template("number-of-number-reduced", SCATTERS["number-of-number"], "multiply", normal()),
    scatter_template("no-indices-of-other-rank-reduced", SCATTERS["no-indices-of-other-rank"], "add", normal()),
    scatter_template("larger-source-reduced", SCATTERS["larger-source"], "multiply", normal()),
    scatter_template("long-reduced", SCATTERS["long"], "add", normal()),
)

SCATTER_SCALAR = (
    *SCATTER,
    *(
        scatter_template(label, ONCE, "", dtypes=(dtype,)).replace(arguments={"value": number})
        for label, (dtype, number, _) in CONVERTED.items()
    ),
)


def scattering(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiScatter` and `diopiScatterScalar` from the sizes of a template."""
    shape, dim, index, source = template.sizes
    number = -2.0 if template.exact else -1.375
    is_product = template.argument("reduce") == "multiply"
    return {
        "input": arbitrary(*shape, layout=template.layout),
        "dim": dim,
        "src": arbitrary(*source, layout=template.layout),
        "value": (not is_product, 3, number, number)[category(dtype)],
        "index": index,
    }


WRITTEN_ALL = {"of-number|number-of-vector": ONE_PLACE, "all|cube$": "every place is written"}


def one_in_each(shape: Shape, dim: int) -> tuple[Shape, int, TensorSpec, Shape]:
    """In each slice along the axis one place is named."""
    source = tuple(1 if axis == dim % len(shape) else length for axis, length in enumerate(shape))
    return shape, dim, random_positions(*source, below=shape[dim]), source


def scattered_along(templates: Sequence[CaseTemplate[Any]]) -> list[CaseTemplate[Any]]:
    """The templates, and those of the axes that none is along, which write or, where the axis is an odd one, add."""
    ways: Sequence[tuple[str, Domain | None]] = (("", None), ("add", normal()))
    untried = and_untried(templates, one_in_each)[len(templates) :]
    return [
        *templates,
        *(scatter_template(template.label, template.sizes, *ways[template.sizes[1] % 2]) for template in untried),
    ]


register("diopiScatter", templates=scattered_along(SCATTER), derive=scattering, non_discriminating=WRITTEN_ALL)
register(
    "diopiScatterScalar", templates=scattered_along(SCATTER_SCALAR), derive=scattering, non_discriminating=WRITTEN_ALL
)
