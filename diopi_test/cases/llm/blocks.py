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
from diopi_test.cases.llm.numbers import F16, I32, ONES, POWER_OF_TWO_LENGTHS, SCORE_GAP, SMALL_INTEGERS, Shape
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import literal


@dataclass(frozen=True, kw_only=True)
class PagedSizes:
    """The sizes of a call of `diopiPagedAttention`, from which `paged_arguments` derives the arguments.

    Attributes:
        lengths: The number of tokens of each sequence.
        block_size: The number of tokens of a block.
        heads: The number of query heads.
        key_heads: The number of key heads, which is also the number of value heads. It divides `heads`.
        head_size: The number of elements of a head.
        mask_rows: The rows of the mask: "" for no mask, "row" for one row for all sequences, "each" for one row per
            sequence.
        is_3d: Whether the cache has the shape [blocks, block size, ·] instead of [slots, ·].
        has_table: Whether the call has a block table. Without a table, token t is in slot t.
    """

    lengths: Sequence[int]
    block_size: int = 4
    heads: int = 4
    key_heads: int = 2
    head_size: int = 8
    mask_rows: str = ""
    is_3d: bool = False
    has_table: bool = True


def paged_template(label: str, *lengths: int, **fields: Any) -> CaseTemplate[PagedSizes]:
    """Return a template of attention over a paged cache.

    Args:
        label: The label of the cases without the element type.
        *lengths: The number of tokens of each sequence.
        **fields: Other fields of `PagedSizes`, and fields of the template.

    Returns:
        The template.
    """
    sizes = {name: fields.pop(name) for name in list(fields) if name in PagedSizes.__annotations__}
    return CaseTemplate(label, PagedSizes(lengths=lengths, **sizes), **fields)


def paged_arguments(template: CaseTemplate[PagedSizes], dtype: Dtype) -> Mapping[str, Any]:
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
    block_counts = [-(-length // sizes.block_size) for length in sizes.lengths]
    blocks = np.random.default_rng(sizes.block_size).permutation(sum(block_counts) + 2)
    table = np.full((len(block_counts), max(block_counts, default=0) + 1), blocks[-1])
    for row, end, count in zip(table, accumulate(block_counts), block_counts, strict=True):
        row[:count] = blocks[end - count : end]
    shape: Shape = (len(blocks), sizes.block_size) if sizes.is_3d else (len(blocks) * sizes.block_size,)
    cache = tensor(*shape, sizes.key_heads * sizes.head_size, layout=layout)
    longest_length = max(sizes.lengths, default=0)
    rows = {"": 0, "row": 1, "each": len(block_counts)}[sizes.mask_rows]
    is_hidden = (np.arange(rows * longest_length) % 3 == 1).reshape(rows, longest_length)
    return {
        "q": tensor(len(block_counts), sizes.heads * sizes.head_size, layout=layout),
        "k": cache,
        "v": cache,
        "attenMask": literal(is_hidden, Dtype.bool) if sizes.mask_rows else None,
        "actual_seq_lengths": tuple(sizes.lengths),
        "num_heads": sizes.heads,
        "num_kv_heads": sizes.key_heads,
        "dim": sizes.head_size,
        "block_table": literal(table, I32) if sizes.has_table else None,
        "block_size": sizes.block_size,
    }


EVERY_SECOND_KEY = {"q": ONES, "k": alternating_rows(16, choice([0.0]), choice([SCORE_GAP])), "v": SMALL_INTEGERS}
"""Domains by argument name, for which the attention weights are exact.

All odd slots contain keys with the same large score (`SCORE_GAP` per element). The weights of keys in even slots are 0.
"""

register(
    "diopiPagedAttention",
    templates=(
        paged_template("", 3, 9, 4, heads=2, key_heads=1, **SMOKE_IN_ALL_DTYPES),
        paged_template("mask", 3, 9, 4, mask_rows="each", dtypes=DtypeSelection.all),
        paged_template("row-mask", 7, 9, 5, mask_rows="row", dtypes=DtypeSelection.all),
        paged_template("blocks-3d", 3, 9, 4, is_3d=True, dtypes=DtypeSelection.all),
        paged_template("one-sequence", 11, dtypes=DtypeSelection.all),
        paged_template("without-table", 3, 9, 4, has_table=False, mask_rows="each", case_class=CaseClass.open),
        paged_template("one-head-each", 3, 9, key_heads=4, dtypes=DtypeSelection.all),
        paged_template("one-key-head", 3, 9, key_heads=1),
        paged_template("block-of-1", 3, 5, block_size=1),
        paged_template("block-of-16", 3, 40, block_size=16),
        paged_template("block-of-128", 130, 3, block_size=128, heads=2, head_size=4),
        paged_template("full-blocks", 8, 4, 12),
        paged_template("long", 600, 17, block_size=16, heads=2, head_size=4, dtypes=DtypeSelection.all),
        paged_template("many-sequences", *(2, 7, 5) * 6, heads=2, head_size=4),
        paged_template("head-size-64", 3, 9, head_size=64, dtypes=DtypeSelection.all),
        paged_template("head-size-80", 3, 9, head_size=80),
        paged_template("head-size-128", 3, 9, head_size=128, dtypes=half),
        paged_template("steep", 6, 9, domains={"q": normal(6)}, dtypes=DtypeSelection.all),
        paged_template("exact", *POWER_OF_TWO_LENGTHS, domains=EVERY_SECOND_KEY, dtypes=DtypeSelection.all, exact=True),
        paged_template("transposed", 3, 9, **same_layout(transposed)),
        paged_template("strided", 3, 9, **same_layout(strided), dtypes=DtypeSelection.all),
        paged_template("nan", 6, 9, domains={"q": choice([1.0, nan, *np.linspace(-2, 2, 61)])}),
        paged_template(
            "many", 2048, 1031, 3, block_size=16, heads=8, key_heads=2, head_size=64, dtypes=[F16], large=True
        ),
        paged_template(
            "masked", 517, 131, block_size=33, heads=4, key_heads=4, head_size=130, mask_rows="each", large=True
        ),
    ),
    derive=paged_arguments,
)
