"""Cases of embedding (the lookup of rows in a table), its gradient, the limitation of norms, and one-hot vectors.

A template describes cases that differ only in their element type. A domain is a distribution or a set of values, from
which the elements of a tensor are drawn. A case is non-discriminating if an implementation with a coarse error passes
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, Unpack

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import Domain, any_value, choice, integer_values
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts
from diopi_test.cases.index.positions import (
    DIFFERENT_LAYOUTS,
    EXACT_SUMMANDS,
    FAR_APART_FIELDS,
    LARGE_FLOAT16_FIELDS,
    REPEATED_INDEX,
    IndexedTable,
    Shape,
    sized_templates,
    sum_templates,
)
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    ByDtype,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    register,
    same_layout,
    tensor,
)
from diopi_test.cases.tensors import derive_single_tensor, literal, positions

I32 = Dtype.int32
"""The element type of some indices."""


def row_indices(*shape: int, rows: int = 5, dtype: Dtype = Dtype.int64, layout: Layout = contiguous) -> TensorSpec:
    """Return a tensor of the numbers of rows, in which all rows occur about equally often.

    Args:
        *shape: The shape of the tensor.
        rows: The number of rows of the table.
        dtype: The element type.
        layout: The layout.

    Returns:
        The tensor.
    """
    return TensorSpec(shape, dtype, choice(list(range(rows))), layout=layout)


TABLES: Mapping[str, IndexedTable] = {
    "matrix-of-indices": IndexedTable((5, 3), row_indices(2, 4, layout=transposed)),
    "strided-indices": IndexedTable((5, 3), row_indices(2, 3, layout=strided)),
    "number": IndexedTable((5, 3), literal(4)),
    "no-indices": IndexedTable((5, 3), row_indices(0)),
    "narrow": IndexedTable((5, 1), row_indices(7)),
    "one-row": IndexedTable((1, 4), row_indices(3, rows=1)),
    "cube-of-indices": IndexedTable((6, 2), row_indices(2, 3, 2, rows=6, dtype=I32)),
    "no-columns": IndexedTable((5, 0), row_indices(3)),
    "wide": IndexedTable((5, 1030), row_indices(4)),
    "long": IndexedTable((40, 9), row_indices(115, rows=40)),
}
"""Sizes of templates of embedding and its gradient, by label."""

LOOKUP = IndexedTable((5, 4), row_indices(7))
"""Sizes of a table of five rows and a vector of seven indices."""

TABLE_WITH_UNUSED_ROWS = IndexedTable((9, 3), literal([2, 7, 2, 2, 4]))
"""Sizes of a table with rows that no index selects."""

POWER_OF_TWO_FREQUENCIES = IndexedTable((5, 6), literal([0, 1, 2, 1, 3, 3, 0, 3, 3]))
"""Sizes in which the frequency of every index is a power of two, so that divisions by it are exact.

The last row does not occur.
"""

VOCABULARY = IndexedTable((32_003, 13), positions(11, 509, end=32_003))
"""Sizes of a large table, as for the words of a language model."""

SCALED_BY_FREQUENCY: Mapping[str, Any] = {"scale_grad_byfreq": True}
"""The argument with which the gradient of a row is divided by the number of times that the row was looked up."""

SHARED_TEMPLATES = (
    CaseTemplate("vector", LOOKUP, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "int32",
        IndexedTable((5, 3), row_indices(2, 3, dtype=I32, layout=transposed)),
        {"padding_idx": 2},
        layout=transposed,
        result_layout=strided,
        dtypes=DtypeSelection.all,
    ),
    CaseTemplate("sparse", LOOKUP, {"padding_idx": 4, "sparse": True}),
)
"""Templates that embedding and its gradient share."""

EMBEDDING = (
    *SHARED_TEMPLATES,
    *CaseTemplate.cycle_layouts(sized_templates(TABLES, DtypeSelection.one_per_size), *DIFFERENT_LAYOUTS),
    CaseTemplate("padding", LOOKUP, {"padding_idx": 0}),
    CaseTemplate("scaled", LOOKUP, SCALED_BY_FREQUENCY),
    CaseTemplate("vocabulary", VOCABULARY, large=True),
    CaseTemplate("half-long", IndexedTable((4097, 67), positions(1031, end=4097)), **FAR_APART_FIELDS),
)
"""The templates of `diopiEmbedding`."""


def scaled_template(label: str, **fields: Unpack[TemplateFields]) -> CaseTemplate[IndexedTable]:
    """Return a template of the gradient with the sizes `TABLES[label]`.

    Its calls divide the gradient of each row by the number of lookups, and the first row has no gradient
    (`padding_idx`).
    """
    return CaseTemplate(f"{label}-scaled", TABLES[label], {"padding_idx": 0, **SCALED_BY_FREQUENCY}, **fields)


EMBEDDING_BACKWARD = (
    *SHARED_TEMPLATES,
    *CaseTemplate.cycle_layouts(sized_templates(TABLES), *DIFFERENT_LAYOUTS),
    CaseTemplate(
        "scaled", TABLE_WITH_UNUSED_ROWS, {"padding_idx": 4, **SCALED_BY_FREQUENCY}, dtypes=DtypeSelection.all
    ),
    scaled_template("matrix-of-indices"),
    scaled_template("no-indices", layout=transposed),
    scaled_template("long", layout=strided),
    CaseTemplate("often-scaled", IndexedTable((3, 5), row_indices(1031, rows=3)), SCALED_BY_FREQUENCY),
    CaseTemplate("rows-not-named", TABLE_WITH_UNUSED_ROWS),
    CaseTemplate("padding-first", LOOKUP, {"padding_idx": 0}),
    CaseTemplate("padding-last", LOOKUP, {"padding_idx": 4}),
    CaseTemplate("padding-not-named", TABLE_WITH_UNUSED_ROWS, {"padding_idx": 3}),
    CaseTemplate(
        "exact-scaled",
        POWER_OF_TWO_FREQUENCIES,
        SCALED_BY_FREQUENCY,
        domains={"grad": EXACT_SUMMANDS},
        dtypes=floating,
        exact=True,
    ),
    *sum_templates(
        "grad", IndexedTable((6, 5), row_indices(67, rows=6)), IndexedTable((3, 2), REPEATED_INDEX), floating
    ),
    CaseTemplate("vocabulary", VOCABULARY, large=True),
    CaseTemplate("crowded", IndexedTable((67, 67), positions(1031, end=67)), **LARGE_FLOAT16_FIELDS),
)
"""The templates of `diopiEmbeddingBackward`, which adds up the gradients of all lookups of a row."""


def lookup_arguments(template: CaseTemplate[IndexedTable], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiEmbedding` and `diopiEmbeddingBackward` for the sizes of a template."""
    (rows, columns), indices = template.sizes.shape, template.sizes.indices
    return {
        "weight": tensor(rows, columns, domain=any_value, layout=template.layout),
        "grad": tensor(*indices.shape, columns, layout=template.layout),
        "indices": indices,
        "num_weights": rows,
        "padding_idx": -1,
        "scale_grad_byfreq": False,
        "sparse": False,
    }


ONE_ROW_REASONS = {"one-row": "there is only one row"}
"""The reason why an implementation that ignores the indices passes a case, by label."""

register("diopiEmbedding", templates=EMBEDDING, derive=lookup_arguments, non_discriminating=ONE_ROW_REASONS)
register(
    "diopiEmbeddingBackward", templates=EMBEDDING_BACKWARD, derive=lookup_arguments, non_discriminating=ONE_ROW_REASONS
)


def renorm_template(
    label: str,
    rows: int,
    columns: int,
    indices: TensorSpec,
    max_norm: float,
    norm_type: float = 2.0,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[Shape]:
    """Return a template of `diopiEmbeddingRenorm_`, which scales rows of a table whose norm is too large.

    Args:
        label: The label of the cases without the element type.
        rows: The number of rows of the table.
        columns: The number of columns of the table.
        indices: The numbers of the rows to check.
        max_norm: The largest norm that a row may keep.
        norm_type: The order p of the norm (Σ |x|^p)^(1/p); infinity for the largest magnitude.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    return CaseTemplate(
        label, (rows, columns), {"indices": indices, "max_norm": max_norm, "norm_type": norm_type}, **fields
    )


TABLE_AND_INDICES = (6, 4, literal([5, 0, 2, 5, 5]))
"""The arguments `rows`, `columns` and `indices` of `renorm_template`."""

INDEX_MATRIX = [[4, 1], [3, 4]]
"""The elements of a matrix of indices."""

ROWS_OF_MAXIMUM_NORM = ByDtype(lambda dtype: literal(np.array([[3, -4, 0], [0, 0, -5], [0, 3, 3]]) / 256, dtype))
"""A table whose rows have Euclidean norms of 5/256 or slightly less, which every floating-point type represents."""

RENORM_TEMPLATES = (
    renorm_template("euclidean", *TABLE_AND_INDICES, 1.0, **SMOKE_IN_ALL_DTYPES),
    renorm_template("absolute", *TABLE_AND_INDICES, 1.5, 1.0, layout=transposed, dtypes=DtypeSelection.all),
    renorm_template("largest", *TABLE_AND_INDICES, 0.5, inf, layout=strided, dtypes=DtypeSelection.all),
    renorm_template("cubic", *TABLE_AND_INDICES, 1.0, 3.0),
    renorm_template("root", *TABLE_AND_INDICES, 20.0, 0.5),
    renorm_template("matrix-of-indices", 6, 3, literal(INDEX_MATRIX, I32, transposed), 1.0),
    renorm_template("strided-indices", 6, 3, literal(INDEX_MATRIX, layout=strided), 1.0, layout=transposed),
    renorm_template("number", 6, 3, literal(4), 1.0),
    renorm_template("to-nothing", *TABLE_AND_INDICES, 0.0),
    renorm_template("long", 60, 17, row_indices(115, rows=60), 3.0),
    renorm_template("rows-of-16", 6, 16, literal([5, 0, 3, 2]), 1.0),
    renorm_template("one-column", 6, 1, literal([5, 0, 2]), 1.0),
    # In the following templates, the norm of no selected row is too large. The table must not change in any bit.
    renorm_template("just-short-enough", 3, 3, literal([0, 1, 2]), 5 / 256, dtypes=floating, exact=True).replace(
        arguments={"inout": ROWS_OF_MAXIMUM_NORM}
    ),
    renorm_template("short-enough", *TABLE_AND_INDICES, 1e4, dtypes=DtypeSelection.all, exact=True),
    renorm_template("no-indices", 6, 4, row_indices(0), 1.0, exact=True),
    renorm_template("only-short-ones-named", 6, 4, literal([0, 2, 4]), 1.0, exact=True),
    *(
        renorm_template(f"order-{p}", *TABLE_AND_INDICES, 0.05 if p < 0 else 1.0, p)
        for p in (-0.5, 0.25, 1.5, 2.5, 4.0, 6.0)
    ),
    renorm_template("vocabulary", 32_003, 3, positions(4099, end=32_003), 1.0, large=True),
)
"""The templates of `diopiEmbeddingRenorm_`."""


def rows_with_different_norms(shape: Shape) -> Domain:
    """Return a domain of tables of the shape `shape` whose rows have small and large norms in alternation.

    Numbers in even rows have magnitudes from 0.005 to 0.01, and those in odd rows have magnitudes from 2 to 4.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        scales = np.where(np.arange(shape[0]) % 2, 4.0, 0.01)[:, np.newaxis]
        return np.asarray(scales * rng.uniform(0.5, 1, shape) * rng.choice([-1, 1], shape)).reshape(-1)

    return draw


def renorm_arguments(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiEmbeddingRenorm_` for the sizes of a template."""
    shape = template.sizes
    return {"inout": tensor(*shape, domain=rows_with_different_norms(shape), layout=template.layout)}


SHORT_ROWS_REASONS = {"(just-)?short-enough": "no row exceeds the maximum norm, whatever the indices are"}
"""The reason why an implementation that ignores the indices passes cases, by a regular expression for labels."""

register(
    "diopiEmbeddingRenorm_", templates=RENORM_TEMPLATES, derive=renorm_arguments, non_discriminating=SHORT_ROWS_REASONS
)

CLASSES_FROM_INPUT: Mapping[str, Any] = {"num_classes": -1}
"""The argument with which the number of classes is the largest index plus 1."""

ONE_HOT = (
    CaseTemplate("vector", (7,), {"num_classes": 5}, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("as-many-as-needed", (9,), CLASSES_FROM_INPUT, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("more", (3, 4), {"num_classes": 8}, **same_layout(transposed), dtypes=DtypeSelection.all),
    CaseTemplate("matrix-as-needed", (3, 4), CLASSES_FROM_INPUT, **same_layout(strided), dtypes=DtypeSelection.all),
    CaseTemplate("number", (), {"num_classes": 5}, dtypes=DtypeSelection.all),
    CaseTemplate("none", (0,), {"num_classes": 4}, dtypes=DtypeSelection.all),
    CaseTemplate("cube", (2, 3, 2), {"num_classes": 6}, dtypes=DtypeSelection.all),
    CaseTemplate("long", (131,), {"num_classes": 7}, dtypes=DtypeSelection.all),
    CaseTemplate("one-class", (), {"input": literal([0, 0, 0]), "num_classes": 1}, dtypes=(Dtype.int64,)),
    CaseTemplate("zeros-as-needed", (), {"input": literal([0, 0]), **CLASSES_FROM_INPUT}, dtypes=(Dtype.int64,)),
    CaseTemplate("classes", (), {"input": positions(67, end=1031), "num_classes": 1031}, large=True),
    CaseTemplate("many", (), {"input": positions(70_001, end=3), "num_classes": 3}, large=True),
)
"""The templates of `diopiOneHot`; their sizes are the shape of the indices."""

register("diopiOneHot", templates=ONE_HOT, derive=derive_single_tensor(integer_values(0, 4)))


def _requests_sparse_gradient(prototype: Prototype, case: Case) -> bool:
    """Return whether the case requests a sparse gradient."""
    return bool(case.arguments["sparse"])


CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(_requests_sparse_gradient, "with sparse, PyTorch's gradient is a sparse tensor")
    ],
    attribute_changes={"float32-vector": [{"num_weights": 7}]},
).declare("diopiEmbeddingBackward")
