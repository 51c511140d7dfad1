"""Cases of `diopiSpMM`, the product of a sparse matrix in the CSR format and a dense matrix.

The CSR format stores the column and the value of each stored entry, row after row. Row pointers tell where each row
begins. A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.domains import any_value, choice, normal
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.products import exact_numbers
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, register, same_layout, tensor
from diopi_test.cases.tensors import literal


@dataclass(frozen=True, kw_only=True)
class CsrSizes:
    """The sizes of a product of a sparse and a dense matrix.

    Attributes:
        entries_per_row: The number of stored entries of each row of the sparse matrix.
        inner_size: The number of columns of the sparse matrix, which is the number of rows of the dense matrix.
        columns: The number of columns of the dense matrix.
        order: The order of the entries of a row: "sorted" by column, "mixed", or "repeated" if columns may repeat.
        index_dtype: The element type of row pointers and columns.
        vector_layout: The layout of the three vectors of the sparse matrix: row pointers, columns and values.
    """

    entries_per_row: Sequence[int]
    inner_size: int = 7
    columns: int = 5
    order: str = "sorted"
    index_dtype: Dtype = Dtype.int32
    vector_layout: Layout = contiguous


def sparse_template(label: str, *entries_per_row: int, **fields: Any) -> CaseTemplate[CsrSizes]:
    """Return a template of a product with a sparse matrix.

    Args:
        label: The label of the cases.
        *entries_per_row: The number of stored entries of each row.
        **fields: Other fields of `CsrSizes` and fields of the template.

    Returns:
        The template.
    """
    sizes = {name: fields.pop(name) for name in list(fields) if name in CsrSizes.__annotations__}
    return CaseTemplate(label, CsrSizes(entries_per_row=entries_per_row, **sizes), **fields)


def _entry_columns(sizes: CsrSizes) -> Any:
    """Return a vector with the column of each stored entry, row after row."""
    rng = np.random.default_rng(sizes.inner_size)
    if sizes.order == "repeated":
        rows = [rng.integers(0, max(sizes.inner_size // 3, 1), count) for count in sizes.entries_per_row]
    else:
        rows = [rng.permutation(sizes.inner_size)[:count] for count in sizes.entries_per_row]
    rows = [np.sort(row) for row in rows] if sizes.order == "sorted" else rows
    return np.concatenate([np.zeros(0, np.int64), *rows])


def product_arguments(template: CaseTemplate[CsrSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiSpMM` for the sizes of a template.

    Args:
        template: The template. Its layout applies to the dense matrix. Its domain of `input` applies to the stored
            values.
        dtype: Not used; both matrices have the type under test.

    Returns:
        The arguments `input` (row pointers, columns and values) and `mat2`.
    """
    sizes, layout = template.sizes, template.sizes.vector_layout
    vectors = [
        literal(np.cumsum([0, *sizes.entries_per_row]), sizes.index_dtype, layout),
        literal(_entry_columns(sizes), sizes.index_dtype, layout),
        tensor(sum(sizes.entries_per_row), domain=template.domains.get("input", normal()), layout=layout),
    ]
    return {"input": vectors, "mat2": tensor(sizes.inner_size, sizes.columns, layout=template.layout)}


_INFINITE_NUMBERS = choice([1.0, inf, -2.0, nan, 0.5, 3.0])
"""A domain of numbers. Some of them are infinite or NaN."""

register(
    "diopiSpMM",
    templates=(
        sparse_template("", 2, 0, 3, 1, **SMOKE_IN_ALL_DTYPES),
        sparse_template("int64", 2, 0, 3, 1, index_dtype=Dtype.int64),
        sparse_template("columns-in-no-order", 4, 3, 5, order="mixed"),
        sparse_template("columns-repeated", 4, 3, 5, order="repeated"),
        sparse_template("one-row", 5),
        sparse_template("vector", 2, 3, 1, columns=1),
        sparse_template("last-rows-empty", 2, 3, 0, 0),
        sparse_template("first-rows-empty", 0, 0, 0, 4, 2, 3),
        sparse_template("full", 7, 7, 7),
        sparse_template("one-each", 1, 1, 1, 1, 1, 1),
        sparse_template("long", 900, 2, 517, inner_size=1031, columns=3),
        sparse_template("many-rows", *(1, 0, 3) * 100, inner_size=9, columns=2),
        sparse_template("wide", 2, 3, columns=300),
        sparse_template("no-entries", 0, 0, 0),
        sparse_template("no-columns", 2, 1, columns=0),
        sparse_template("no-rows"),
        sparse_template("transposed", 2, 3, 1, **same_layout(transposed)),
        sparse_template("strided", 2, 3, 1, **same_layout(strided)),
        sparse_template("strided-parts", 2, 3, 1, vector_layout=strided),
        sparse_template("special", 2, 0, 3, 1, domains={"mat2": _INFINITE_NUMBERS}),
        sparse_template("large-and-small", 3, 4, 2, domains={"mat2": any_value}),
        sparse_template("exact", 4, 6, 5, domains=dict.fromkeys(("input", "mat2"), exact_numbers), exact=True),
        sparse_template(
            "exact-repeated",
            6,
            5,
            domains=dict.fromkeys(("input", "mat2"), exact_numbers),
            exact=True,
            order="repeated",
        ),
        sparse_template("rows", *(3, 0, 7, 1) * 2053, inner_size=4099, columns=19, order="mixed", large=True),
        sparse_template("wide", *(17, 2) * 67, inner_size=131, columns=1031, large=True),
    ),
    derive=product_arguments,
    non_discriminating={"no-entries": "rows without entries are 0"},
)
