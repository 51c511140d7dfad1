"""Cases of both functions for rotary embedding, which rotates pairs of elements of queries and keys by an angle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.attention.calls import BF16, F16, F32, F64, OPEN_CLASS, Shape
from diopi_test.cases.domains import integer_values, special_except, uniform
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor

COSINES_AND_SINES = uniform(-1, 1)
"""The domain of `cos` and of `sin`. Both are drawn independently, because cos² + sin² need not be 1."""


@dataclass(frozen=True)
class Rotation:
    """The sizes of a template of `diopiRotaryEmbedding`.

    Attributes:
        shape: The shape of the tensor `x`, whose last axis is rotated.
        cos_shape: The shape of `cos` and of `sin`: the last axis has half the length, and other axes are broadcast.
    """

    shape: Shape
    cos_shape: Shape


def rotation_template(
    label: str, shape: Shape, *cos_shape: int, interleaved: bool = False, conj: bool = False, **fields: Any
) -> CaseTemplate[Rotation]:
    """Return a template of `diopiRotaryEmbedding`.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of `x`.
        *cos_shape: The shape of `cos` and of `sin`.
        interleaved: Whether a pair consists of neighboring elements instead of elements of both halves.
        conj: Whether the function rotates by the negative angle.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    return CaseTemplate(label, Rotation(shape, cos_shape), {"conj": conj, "interleaved": interleaved}, **fields)


def rotation_arguments(template: CaseTemplate[Rotation], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiRotaryEmbedding` for the sizes of a template."""
    angles = tensor(*template.sizes.cos_shape, domain=COSINES_AND_SINES, layout=template.layout)
    return {"x": tensor(*template.sizes.shape, layout=template.layout), "cos": angles, "sin": angles}


QUERY_SHAPE = (2, 5, 3, 8)
"""The usual shape of `x`: batch, sequence, heads and head size."""

register(
    "diopiRotaryEmbedding",
    templates=(
        rotation_template("", QUERY_SHAPE, 5, 1, 4, **SMOKE_IN_ALL_DTYPES),
        rotation_template("conj", QUERY_SHAPE, 5, 1, 4, conj=True, dtypes=DtypeSelection.all),
        rotation_template(
            "interleaved", QUERY_SHAPE, 5, 1, 4, interleaved=True, **OPEN_CLASS, dtypes=DtypeSelection.all
        ),
        rotation_template("interleaved-conj", QUERY_SHAPE, 5, 1, 4, interleaved=True, conj=True, **OPEN_CLASS),
        rotation_template("vector", (12,), 6),
        rotation_template("pair", (7, 2), 7, 1),
        rotation_template("matrix", (6, 10), 6, 5, dtypes=DtypeSelection.all),
        rotation_template("packed", (6, 3, 16), 6, 1, 8, dtypes=(F16, F32)),
        rotation_template("row-of-angles", (4, 3, 6), 3),
        rotation_template("angles-of-each", (2, 3, 4), 2, 3, 2),
        rotation_template("rank5", (2, 2, 3, 1, 4), 3, 1, 2),
        rotation_template("wide", (3, 1, 256), 3, 1, 128, dtypes=half),
        rotation_template("transposed", QUERY_SHAPE, 5, 1, 4, **same_layout(transposed)),
        rotation_template("strided", QUERY_SHAPE, 5, 1, 4, **same_layout(strided), dtypes=DtypeSelection.all),
        rotation_template("no-rows", (0, 3, 8), 1, 4),
        rotation_template("special", (19, 6), 1, 3, domains={"x": special_except()}),
        rotation_template("special-angles", (6, 38), 1, 19, domains={"cos": special_except()}),
        rotation_template(
            "exact", (3, 5, 8), 5, 4, domains=dict.fromkeys(("x", "cos", "sin"), integer_values(-8, 8)), exact=True
        ),
        *(
            rotation_template(f"angles-of-{angle_dtype.name}", QUERY_SHAPE, 5, 1, 4, dtypes=[dtype]).replace(
                arguments={
                    name: tensor(5, 1, 4, domain=COSINES_AND_SINES, dtype=angle_dtype) for name in ("cos", "sin")
                }
            )
            for dtype, angle_dtype in ((BF16, F32), (F16, F32), (F32, F16), (F64, F32))
        ),
        rotation_template("rows", (3, 517, 7, 66), 517, 1, 33, large=True),
        rotation_template("transposed", (2, 263, 5, 130), 263, 1, 65, layout=transposed, dtypes=[F16], large=True),
    ),
    derive=rotation_arguments,
)


@dataclass(frozen=True)
class QueryAndKey:
    """The sizes of a template of `diopiRotaryEmbeddingV2`.

    Attributes:
        query: The shape of the query: (tokens, heads · head size), or (…, tokens, heads, head size).
        key: The shape of the key, which may have another number of heads.
    """

    query: Shape
    key: Shape


def query_and_key_template(label: str, query: Shape, key: Shape, dim: int, **fields: Any) -> CaseTemplate[QueryAndKey]:
    """Return a template of `diopiRotaryEmbeddingV2`.

    Args:
        label: The label of the cases without the element type.
        query: The shape of the query.
        key: The shape of the key.
        dim: The head size.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    return CaseTemplate(label, QueryAndKey(query, key), {"dim": dim}, **fields)


def query_and_key_arguments(template: CaseTemplate[QueryAndKey], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiRotaryEmbeddingV2` for the sizes of a template."""
    sizes, dim = template.sizes, template.argument("dim")
    tokens = sizes.query[0] if len(sizes.query) == 2 else sizes.query[-3]
    angles = tensor(tokens, 1, dim, domain=COSINES_AND_SINES, layout=template.layout)
    query, key = (tensor(*shape, layout=template.layout) for shape in (sizes.query, sizes.key))
    return {"query": query, "key": key, "cos": angles, "sin": angles}


register(
    "diopiRotaryEmbeddingV2",
    templates=(
        query_and_key_template("", (5, 12), (5, 8), 4, **SMOKE_IN_ALL_DTYPES),
        query_and_key_template("heads", (5, 3, 8), (5, 2, 8), 8, dtypes=DtypeSelection.all),
        query_and_key_template("batch", (2, 5, 3, 6), (2, 5, 1, 6), 6, dtypes=(F16, F32)),
        query_and_key_template("one-head", (7, 10), (7, 10), 10),
        query_and_key_template("pairs", (7, 6), (7, 4), 2),
        query_and_key_template("one-token", (1, 24), (1, 8), 8),
        query_and_key_template("head-size-128", (3, 256), (3, 128), 128, dtypes=half),
        query_and_key_template("head-size-80", (3, 160), (3, 80), 80),
        query_and_key_template("transposed", (5, 12), (5, 8), 4, layout=transposed),
        query_and_key_template("strided", (5, 3, 8), (5, 2, 8), 8, layout=strided, dtypes=DtypeSelection.all),
        query_and_key_template("no-tokens", (0, 12), (0, 8), 4),
        query_and_key_template(
            "special", (19, 12), (19, 4), 4, domains={"query": special_except(), "key": special_except()}
        ),
        query_and_key_template("exact", (6, 8), (6, 16), 8, exact=True).replace(
            domains=dict.fromkeys(("query", "key", "cos", "sin"), integer_values(-8, 8))
        ),
        *(
            query_and_key_template(f"{label}-of-heads-of-{d}", (4, 12), (4, 24), d)
            for label, d in (("four", 4), ("six", 6), ("all", 12))
        ),
        query_and_key_template("tokens", (1031, 396), (1031, 132), 66, large=True),
    ),
    derive=query_and_key_arguments,
)
