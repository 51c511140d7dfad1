"""Cases of `diopiPagedAttention`: attention of one query per sequence to tokens in blocks of a cache.

A block is a group of consecutive slots of the cache; each slot contains one token. A block table lists the blocks of
each sequence. A template describes cases that differ only in their element type (`diopi_test.cases.template`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import nan
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
from diopi_test.cases.domains import alternating_rows, choice, normal
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.llm.numbers import F16, FAR, I32, ONES, POWERS, SMALL, Shape
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import literal


@dataclass(frozen=True, kw_only=True)
class Paged:
    """The sizes of a call of `diopiPagedAttention`, from which `paged_arguments` derives the arguments.

    Attributes:
        lengths: The number of tokens of each sequence.
        block: The number of tokens of a block.
        heads: The number of query heads.
        key_heads: The number of key heads, which is also the number of value heads. It divides `heads`.
        size: The number of elements of a head.
        masked: The rows of the mask: "" for no mask, "row" for one row for all sequences, "each" for one row per
            sequence.
        is_3d: Whether the cache has the shape [blocks, block size, ·] instead of [slots, ·].
        has_table: Whether the call has a block table. Without a table, token t is in slot t.
    """

    lengths: Sequence[int]
    block: int = 4
    heads: int = 4
    key_heads: int = 2
    size: int = 8
    masked: str = ""
    is_3d: bool = False
    has_table: bool = True


def paged_template(label: str, *lengths: int, **fields: Any) -> CaseTemplate[Paged]:
    """Return a template of attention over a paged cache.

    Args:
        label: The label of the cases without the element type.
        *lengths: The number of tokens of each sequence.
        **fields: Other fields of `Paged`, and fields of the template.

    Returns:
        The template.
    """
    sizes = {name: fields.pop(name) for name in list(fields) if name in Paged.__annotations__}
    return CaseTemplate(label, Paged(lengths=lengths, **sizes), **fields)


def paged_arguments(template: CaseTemplate[Paged], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiPagedAttention` for the sizes of a template.

    The blocks of the sequences are in random order in the cache, and two blocks are unused. Unused entries of the block
    table name an unused block. The mask hides every third of its elements, beginning with element 1.

    Args:
        template: The template. Its layout applies to the query and the cache.
        dtype: Not used; the tensors have the type under test unless the function fixes another type.

    Returns:
        The arguments by name.
    """
    sizes, layout = template.sizes, template.layout
    used = [-(-length // sizes.block) for length in sizes.lengths]
    blocks = np.random.default_rng(sizes.block).permutation(sum(used) + 2)
    table = np.full((len(used), max(used, default=0) + 1), blocks[-1])
    for row, end, count in zip(table, accumulate(used), used, strict=True):
        row[:count] = blocks[end - count : end]
    shape: Shape = (len(blocks), sizes.block) if sizes.is_3d else (len(blocks) * sizes.block,)
    cache = tensor(*shape, sizes.key_heads * sizes.size, layout=layout)
    longest = max(sizes.lengths, default=0)
    rows = {"": 0, "row": 1, "each": len(used)}[sizes.masked]
    hidden = (np.arange(rows * longest) % 3 == 1).reshape(rows, longest)
    return {
        "q": tensor(len(used), sizes.heads * sizes.size, layout=layout),
        "k": cache,
        "v": cache,
        "attenMask": literal(hidden, Dtype.bool) if sizes.masked else None,
        "actual_seq_lengths": tuple(sizes.lengths),
        "num_heads": sizes.heads,
        "num_kv_heads": sizes.key_heads,
        "dim": sizes.size,
        "block_table": literal(table, I32) if sizes.has_table else None,
        "block_size": sizes.block,
    }


EVERY_SECOND_KEY = {"q": ONES, "k": alternating_rows(16, choice([0.0]), choice([FAR])), "v": SMALL}
"""Domains by argument name, for which the attention weights are exact.

All odd slots contain keys with the same large score (`FAR` per element), so that the weights of keys in even slots are
0.
"""

register(
    "diopiPagedAttention",
    templates=(
        paged_template("", 3, 9, 4, heads=2, key_heads=1, **SMOKE_IN_ALL_DTYPES),
        paged_template("mask", 3, 9, 4, masked="each", dtypes=DtypeSelection.all),
        paged_template("row-mask", 7, 9, 5, masked="row", dtypes=DtypeSelection.all),
        paged_template("blocks-3d", 3, 9, 4, is_3d=True, dtypes=DtypeSelection.all),
        paged_template("one-sequence", 11, dtypes=DtypeSelection.all),
        paged_template("without-table", 3, 9, 4, has_table=False, masked="each", case_class=CaseClass.open),
        paged_template("one-head-each", 3, 9, key_heads=4, dtypes=DtypeSelection.all),
        paged_template("one-key-head", 3, 9, key_heads=1),
        paged_template("block-of-1", 3, 5, block=1),
        paged_template("block-of-16", 3, 40, block=16),
        paged_template("block-of-128", 130, 3, block=128, heads=2, size=4),
        paged_template("full-blocks", 8, 4, 12),
        paged_template("long", 600, 17, block=16, heads=2, size=4, dtypes=DtypeSelection.all),
        paged_template("many-sequences", *(2, 7, 5) * 6, heads=2, size=4),
        paged_template("head-size-64", 3, 9, size=64, dtypes=DtypeSelection.all),
        paged_template("head-size-80", 3, 9, size=80),
        paged_template("head-size-128", 3, 9, size=128, dtypes=half),
        paged_template("steep", 6, 9, domains={"q": normal(6)}, dtypes=DtypeSelection.all),
        paged_template("exact", *POWERS, domains=EVERY_SECOND_KEY, dtypes=DtypeSelection.all, exact=True),
        paged_template("transposed", 3, 9, **same_layout(transposed)),
        paged_template("strided", 3, 9, **same_layout(strided), dtypes=DtypeSelection.all),
        paged_template("nan", 6, 9, domains={"q": choice([1.0, nan, *np.linspace(-2, 2, 61)])}),
        paged_template("many", 2048, 1031, 3, block=16, heads=8, key_heads=2, size=64, dtypes=[F16], large=True),
        paged_template("masked", 517, 131, block=33, heads=4, key_heads=4, size=130, masked="each", large=True),
    ),
    derive=paged_arguments,
)
