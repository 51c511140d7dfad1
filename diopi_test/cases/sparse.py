"""Cases of products of a sparse matrix, in the CSR format, and a dense matrix."""

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
class Csr:
    """The sizes of a product of a sparse and a dense matrix.

    Attributes:
        counts: The number of stored entries of each row of the sparse matrix.
        inner: The number of columns of the sparse matrix.
        columns: The number of columns of the dense matrix.
        order: The order of the entries of a row: "sorted" by column, "mixed", or "repeated" if columns may repeat.
        index: The element type of row pointers and columns.
        parts: The layout of the three vectors of the sparse matrix: row pointers, columns and values.
    """

    counts: Sequence[int]
    inner: int = 7
    columns: int = 5
    order: str = "sorted"
    index: Dtype = Dtype.int32
    parts: Layout = contiguous


def sparse_template(label: str, *counts: int, **fields: Any) -> CaseTemplate[Csr]:
    """Return a template of a product with a sparse matrix.

    Args:
        label: The label of the cases.
        *counts: The number of stored entries of each row.
        **fields: Other fields of `Csr` and fields of the template.

    Returns:
        The template.
    """
    sizes = {name: fields.pop(name) for name in list(fields) if name in Csr.__annotations__}
    return CaseTemplate(label, Csr(counts=counts, **sizes), **fields)


def _columns(sizes: Csr) -> Any:
    """Return a vector with the column of each stored entry, row after row."""
    rng = np.random.default_rng(sizes.inner)
    if sizes.order == "repeated":
        rows = [rng.integers(0, max(sizes.inner // 3, 1), count) for count in sizes.counts]
    else:
        rows = [rng.permutation(sizes.inner)[:count] for count in sizes.counts]
    rows = [np.sort(row) for row in rows] if sizes.order == "sorted" else rows
    return np.concatenate([np.zeros(0, np.int64), *rows])


def product_arguments(template: CaseTemplate[Csr], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments `input` (row pointers, columns and values) and `mat2` of `diopiSpMM` for a template."""
    sizes, layout = template.sizes, template.sizes.parts
    parts = [
        literal(np.cumsum([0, *sizes.counts]), sizes.index, layout),
        literal(_columns(sizes), sizes.index, layout),
        tensor(sum(sizes.counts), domain=template.domains.get("input", normal()), layout=layout),
    ]
    return {"input": parts, "mat2": tensor(sizes.inner, sizes.columns, layout=template.layout)}


_INFINITE = choice([1.0, inf, -2.0, nan, 0.5, 3.0])
"""Numbers of which some are infinite or NaN."""

register(
    "diopiSpMM",
    templates=(
        sparse_template("", 2, 0, 3, 1, **SMOKE_IN_ALL_DTYPES),
        sparse_template("int64", 2, 0, 3, 1, index=Dtype.int64),
        sparse_template("columns-in-no-order", 4, 3, 5, order="mixed"),
        sparse_template("columns-repeated", 4, 3, 5, order="repeated"),
        sparse_template("one-row", 5),
        sparse_template("vector", 2, 3, 1, columns=1),
        sparse_template("last-rows-empty", 2, 3, 0, 0),
        sparse_template("first-rows-empty", 0, 0, 0, 4, 2, 3),
        sparse_template("full", 7, 7, 7),
        sparse_template("one-each", 1, 1, 1, 1, 1, 1),
        sparse_template("long", 900, 2, 517, inner=1031, columns=3),
        sparse_template("many-rows", *(1, 0, 3) * 100, inner=9, columns=2),
        sparse_template("wide", 2, 3, columns=300),
        sparse_template("no-entries", 0, 0, 0),
        sparse_template("no-columns", 2, 1, columns=0),
        sparse_template("no-rows"),
        sparse_template("transposed", 2, 3, 1, **same_layout(transposed)),
        sparse_template("strided", 2, 3, 1, **same_layout(strided)),
        sparse_template("strided-parts", 2, 3, 1, parts=strided),
        sparse_template("special", 2, 0, 3, 1, domains={"mat2": _INFINITE}),
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
        sparse_template("rows", *(3, 0, 7, 1) * 2053, inner=4099, columns=19, order="mixed", large=True),
        sparse_template("wide", *(17, 2) * 67, inner=131, columns=1031, large=True),
    ),
    derive=product_arguments,
    non_discriminating={"no-entries": "rows without entries are 0"},
)
