"""Kernels of language model serving: token caches, decoding, prefill, penalties, the fused all-reduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, anything, between, choice, normal, special_but, whole
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.products import exact_numbers
from diopi_test.cases.template import BASIC, CaseTemplate, TensorTemplate, Types, register, tensor, throughout
from diopi_test.cases.tensors import literal, no_position_twice

Shape = tuple[int, ...]
F16, BF16, F32, F64 = floating
I32, I64 = Dtype.int32, Dtype.int64


# Tokens copied into slots


@dataclass(frozen=True)
class Copied:
    """How many tokens are copied into how many slots, and the shape of one."""

    tokens: int
    slots: int
    token: Shape = (2, 3)
    index: Dtype = I64


def copied(label: str, tokens: int, slots: int, *token: int, index: Dtype = I64, **about: Any) -> CaseTemplate:
    return CaseTemplate(label, Copied(tokens, slots, token or (2, 3), index), **about)


def of_copied(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, layout = template.sizes, template.layout
    return {
        "out": tensor(sizes.slots, *sizes.token, domain=anything, layout=layout),
        "k": tensor(sizes.tokens, *sizes.token, domain=anything, layout=layout),
        "dest_loc": no_position_twice(sizes.tokens, below=sizes.slots, dtype=sizes.index),
    }


register(
    "diopiDestIndexCopyKV",
    templates=(
        copied("", 4, 7, **BASIC),
        copied("int32", 4, 7, index=I32, dtypes=Types.widths),
        copied("one-token", 1, 9),
        copied("all-slots", 8, 8),
        copied("no-tokens", 0, 5),
        copied("many", 300, 517, 1, 3),
        copied("head-size-128", 3, 5, 2, 128, dtypes=half),
        copied("head-size-80", 3, 5, 4, 80),
        copied("one-number", 5, 9, 1, 1),
        copied("transposed", 4, 7, layout=transposed),
        copied("strided", 4, 7, layout=strided, dtypes=Types.widths),
        copied("in-order", 4, 7).but(arguments={"dest_loc": literal([2, 3, 4, 5])}),
        copied("backwards", 4, 7).but(arguments={"dest_loc": literal([6, 4, 2, 0])}),
    ),
    derive=of_copied,
    weak={"all-slots": "nothing is left as it was"},
)


# A table of token slots


@dataclass(frozen=True)
class Tokens:
    """Lengths of sequences whose tokens are in slots of a cache.

    Attributes:
        spare: columns of the table that no sequence uses, after them.
        gap: columns of packed data between sequences.
        index: element type of tables.
    """

    lengths: Sequence[int]
    heads: int = 2
    size: int = 4
    spare: int = 1
    gap: int = 1
    index: Dtype = I32

    @property
    def longest(self) -> int:
        """Length of the longest one."""
        return max(self.lengths, default=0)

    @property
    def slots(self) -> int:
        """How many a cache has: some more than are used."""
        return sum(self.lengths) + 3

    @property
    def starts(self) -> list[int]:
        """Where each sequence begins in packed data."""
        ends = accumulate(length + self.gap for length in self.lengths)
        return [end - length for end, length in zip(ends, self.lengths, strict=True)]

    @property
    def packed(self) -> int:
        """How many rows packed data have."""
        return sum(self.lengths) + self.gap * (len(self.lengths) + 1)


def tokens(label: str, *lengths: int, **about: Any) -> CaseTemplate:
    sizes = {name: about.pop(name) for name in list(about) if name in Tokens.__annotations__}
    return CaseTemplate(label, Tokens(lengths, **sizes), **about)


def _table(sizes: Tokens) -> NDArray[Any]:
    """Slots that are used once, in no order; what stands before a short sequence's is another's."""
    slots = np.random.default_rng(len(sizes.lengths)).permutation(sizes.slots)
    table = np.full((len(sizes.lengths), sizes.longest + sizes.spare), slots[-1])
    begins = accumulate((0, *sizes.lengths[:-1])) if sizes.lengths else []
    for row, begin, length in zip(table, begins, sizes.lengths, strict=True):
        row[sizes.longest - length : sizes.longest] = slots[begin : begin + length]
    return table


def of_tokens(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, layout = template.sizes, template.layout
    cache = tensor(sizes.slots, sizes.heads, sizes.size, layout=layout)
    each = tensor(len(sizes.lengths), sizes.heads, sizes.size, layout=layout)
    rows = tensor(sizes.packed, sizes.heads, sizes.size, layout=layout)
    scores = tensor(sizes.heads, sizes.packed, layout=layout)
    is_context = "context" in template.arguments
    return {
        "token_attention_out": scores,
        "logics": scores,
        "context_attention_out": rows,
        "q": rows if is_context else each,
        "k": rows if is_context else cache,
        "v": rows if is_context else cache,
        "b_loc": literal(_table(sizes), sizes.index),
        "b_start_loc": literal(np.array(sizes.starts, np.int64), sizes.index),
        "b_seq_len": literal(np.array(sizes.lengths, np.int64), sizes.index),
        "max_input_len": sizes.longest,
        "other_kv_index": 1,
    }


TOKENS = (
    tokens("", 3, 5, 2, **BASIC),
    tokens("int64", 3, 5, 2, index=I64, dtypes=Types.every),
    tokens("one-sequence", 7),
    tokens("equal-lengths", 4, 4, 4, spare=0, dtypes=Types.every),
    tokens("one-token-each", 1, 1, 1, 1, 1),
    tokens("without-gaps", 3, 5, 2, gap=0, dtypes=Types.every),
    tokens("long", 300, 17, heads=1, dtypes=Types.every),
    tokens("many-sequences", *(1, 2, 3) * 7, heads=1),
    tokens("many-heads", 4, 3, heads=9),
    tokens("head-size-64", 3, 5, size=64, dtypes=Types.every),
    tokens("head-size-80", 3, 5, size=80),
    tokens("head-size-128", 3, 5, size=128, heads=1, dtypes=half),
    tokens("transposed", 3, 5, 2, layout=transposed),
    tokens("strided", 3, 5, 2, layout=strided, dtypes=Types.every),
    tokens("wide-table", 3, 5, 2, spare=4),
)
POSITIVE = between(0.5, 1)
"""Sums of many such numbers show the width of the accumulator."""


def by_turns(width: int, *domains: Domain) -> Domain:
    """Rows of so many numbers, drawn from one domain after the other."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        rows = [domains[row % len(domains)](rng, width, dtype) for row in range(count // width)]
        return np.reshape(rows, count)

    return draw


HIGH, LOW = between(0.9, 1), between(0.5, 0.6)
"""Of values by turns, the mean shows how shares are divided between the one kind and the other."""

POWERS = 4, 8, 16
"""Lengths of sequences of which every other key has a share: these are powers of two, and means of small whole numbers
are exact."""

FAR = 64.0
"""How much a score is above others that have no share beside it."""


def in_pairs(places: Any, *row: int) -> TensorTemplate:
    """Keys of which every two neighbours have one score, so far above all before them that only these have a share.

    A query of ones sees, of keys up to its own, the last pair or the half of one.
    """
    scores = FAR * (np.asarray(places) // 2)
    rows = np.broadcast_to(scores.reshape(-1, *[1] * len(row)), (len(scores), *row))
    return tensor(*rows.shape, compute=lambda values: rows)


def _places(sizes: Tokens) -> NDArray[Any]:
    """Of each row of packed data the place in its sequence, 0 in none."""
    places = np.zeros(sizes.packed, int)
    for start, length in zip(sizes.starts, sizes.lengths, strict=True):
        places[start : start + length] = np.arange(length)
    return places


def _slots(sizes: Tokens) -> NDArray[Any]:
    """Of each row of packed data the slot of its token, 0 in none."""
    slots = np.zeros(sizes.packed, int)
    for start, length, row in zip(sizes.starts, sizes.lengths, _table(sizes), strict=True):
        slots[start : start + length] = row[sizes.longest - length : sizes.longest]
    return slots


def _with_scores(template: CaseTemplate, of_rows: NDArray[Any]) -> CaseTemplate:
    """With logits that are the same in all heads."""
    scores = np.broadcast_to(of_rows, (template.sizes.heads, template.sizes.packed))
    return template.but(arguments={"logics": tensor(*scores.shape, compute=lambda values: scores)})


ONES, SMALL = choice([1.0]), whole(1, 8)
"""Positive numbers: where means were 0, shares that are next to nothing would be all that is left."""

SINGLE = {
    "one-token-each": "one token has the whole share",
    "without-gaps": "no row is left as it was",
    "special": "few tokens have a share",
}

register(
    "diopiTokenAttentionInference",
    weak={"without-gaps": "no column is left as it was"},
    templates=(
        *TOKENS,
        tokens(
            "exact", 3, 5, size=16, domains=dict.fromkeys(("q", "k"), exact_numbers), dtypes=Types.every, exact=True
        ),
        tokens(
            "accumulated",
            3,
            2,
            size=2000,
            heads=1,
            domains={"q": POSITIVE, "k": by_turns(2000, HIGH, LOW)},
            dtypes=half,
        ),
        tokens("special", 3, 5, domains={"k": choice([1.0, inf, nan, *np.linspace(-2, 2, 41)])}),
    ),
    derive=of_tokens,
)
MANY_TOKENS = tokens("accumulated", 1500, 9, heads=1, domains={"v": by_turns(4, HIGH, LOW)}, dtypes=half)
EXACT_TOKENS = tokens("exact", *POWERS, domains={"v": SMALL}, dtypes=Types.every, exact=True)

register(
    "diopiTokenSoftmaxReduceVInference",
    templates=(
        *TOKENS,
        _with_scores(MANY_TOKENS, 2.0 * (_slots(MANY_TOKENS.sizes) % 2 == 0)),
        tokens("steep", 6, 5, domains={"logics": normal(6)}, dtypes=Types.every),
        _with_scores(EXACT_TOKENS, FAR * (_places(EXACT_TOKENS.sizes) % 2)),
        tokens("far", 6, 5, domains={"logics": choice([900.0, -900.0, 899.0, 3.0, 898.5])}),
        tokens("special", 6, 5, domains={"logics": choice([1.0, -inf, 2.0, 0.5, -1.0])}),
        tokens("other-slot", 3, 5, 2).but(arguments={"other_kv_index": 0}),
    ),
    derive=of_tokens,
    weak=SINGLE,
)
OF_OPPOSITES = {"q": POSITIVE, "k": by_turns(2, HIGH, between(-1, -0.9)), "v": by_turns(2, HIGH, LOW)}
PAIRS = tokens("exact", 7, 4, 5, domains={"q": ONES, "v": SMALL}, dtypes=Types.every, exact=True)

register(
    "diopiContextAttentionInference",
    templates=tuple(
        t.but(arguments={**t.arguments, "context": None})
        for t in (
            *TOKENS,
            PAIRS.but(arguments={"k": in_pairs(_places(PAIRS.sizes), 2, 4)}),
            tokens("accumulated", 700, heads=1, size=2, domains=OF_OPPOSITES, dtypes=half),
            tokens("steep", 6, 5, domains={"q": normal(6)}, dtypes=Types.every),
            tokens("nan", 6, 5, domains={"q": choice([1.0, nan, *np.linspace(-2, 2, 37)])}),
        )
    ),
    derive=of_tokens,
    weak=SINGLE,
)


# Blocks


@dataclass(frozen=True)
class Paged:
    """Lengths of sequences in a cache of blocks.

    Attributes:
        masked: rows of the mask: none, one for all, or one for each.
        is_3d: whether the cache is [blocks, block size, ·].
    """

    lengths: Sequence[int]
    block: int = 4
    heads: int = 4
    key_heads: int = 2
    size: int = 8
    masked: str = ""
    is_3d: bool = False


def paged(label: str, *lengths: int, **about: Any) -> CaseTemplate:
    sizes = {name: about.pop(name) for name in list(about) if name in Paged.__annotations__}
    return CaseTemplate(label, Paged(lengths, **sizes), **about)


def of_paged(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
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
        "block_table": literal(table, I32),
        "block_size": sizes.block,
    }


OF_EVERY_OTHER = {"q": ONES, "k": by_turns(16, choice([0.0]), choice([FAR])), "v": SMALL}

register(
    "diopiPagedAttention",
    templates=(
        paged("", 3, 9, 4, heads=2, key_heads=1, **BASIC),
        paged("mask", 3, 9, 4, masked="each", dtypes=Types.every),
        paged("row-mask", 7, 9, 5, masked="row", dtypes=Types.every),
        paged("blocks-3d", 3, 9, 4, is_3d=True, dtypes=Types.every),
        paged("one-sequence", 11),
        paged("one-head-each", 3, 9, key_heads=4, dtypes=Types.every),
        paged("one-key-head", 3, 9, key_heads=1),
        paged("block-of-1", 3, 5, block=1),
        paged("block-of-16", 3, 40, block=16),
        paged("block-of-128", 130, 3, block=128, heads=2, size=4),
        paged("full-blocks", 8, 4, 12),
        paged("long", 600, 17, block=16, heads=2, size=4, dtypes=Types.every),
        paged("many-sequences", *(2, 7, 5) * 6, heads=2, size=4),
        paged("head-size-64", 3, 9, size=64, dtypes=Types.every),
        paged("head-size-80", 3, 9, size=80),
        paged("head-size-128", 3, 9, size=128, dtypes=half),
        paged("steep", 6, 9, domains={"q": normal(6)}, dtypes=Types.every),
        paged("exact", *POWERS, domains=OF_EVERY_OTHER, dtypes=Types.every, exact=True),
        paged("transposed", 3, 9, **throughout(transposed)),
        paged("strided", 3, 9, **throughout(strided), dtypes=Types.every),
        paged("nan", 6, 9, domains={"q": choice([1.0, nan, *np.linspace(-2, 2, 61)])}),
    ),
    derive=of_paged,
)


# Padded sequences


@dataclass(frozen=True)
class Padded:
    """Lengths of sequences that are padded to one, and axes of the mask."""

    lengths: Sequence[int]
    longest: int
    heads: int = 4
    key_heads: int = 2
    size: int = 8
    masked: int = 0


def padded(label: str, longest: int, *lengths: int, **about: Any) -> CaseTemplate:
    sizes = {name: about.pop(name) for name in list(about) if name in Padded.__annotations__}
    return CaseTemplate(label, Padded(lengths, longest, **sizes), **about)


def of_padded(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, layout = template.sizes, template.layout
    batch, length = len(sizes.lengths), sizes.longest
    keys = tensor(batch * length, sizes.key_heads * sizes.size, layout=layout)
    shape: Shape = ((), (), (length, length), (batch, length, length), (batch, 1, length, length))[sizes.masked]
    behind = np.arange(length) > np.arange(length)[:, None]
    some = np.arange(int(np.prod(shape))).reshape(shape) % 5 == 1 if shape else behind
    return {
        "query": tensor(batch * length, sizes.heads * sizes.size, layout=layout),
        "key": keys,
        "value": keys,
        "atten_mask": literal(behind | some, Dtype.bool) if sizes.masked else None,
        "actual_seq_lengths": tuple(sizes.lengths),
        "max_input_len": length,
        "num_heads": sizes.heads,
        "num_kv_heads": sizes.key_heads,
        "dim": sizes.size,
    }


PROMPTS = padded("exact", 8, 8, 5, domains={"query": ONES, "value": SMALL}, dtypes=Types.every, exact=True)

register(
    "diopiPromptFlashAttention",
    templates=(
        PROMPTS.but(arguments={"key": in_pairs(np.tile(np.arange(8), 2), 16)}),
        padded("", 4, 4, 2, heads=2, key_heads=1, masked=3, **BASIC),
        padded("no-mask", 5, 5, 3, 4, dtypes=Types.every),
        padded("one-mask-for-all", 5, 3, 5, masked=2, dtypes=Types.every),
        padded("mask-of-rank-4", 5, 5, 2, masked=4, dtypes=Types.every),
        padded("equal-lengths", 6, 6, 6, masked=2),
        padded("one-sequence", 7, 7),
        padded("more-padding", 8, 3, 5),
        padded("one-head-each", 4, 4, 2, key_heads=4),
        padded("one-key-head", 4, 4, 2, key_heads=1, masked=2),
        padded("empty-sequence", 4, 3, 0, 4),
        padded("long", 300, 300, heads=1, key_heads=1, size=4, dtypes=Types.every),
        padded("head-size-64", 4, 4, 3, size=64, dtypes=Types.every),
        padded("head-size-80", 4, 4, 3, size=80),
        padded("head-size-128", 4, 4, 3, size=128, heads=2, dtypes=half),
        padded("steep", 6, 6, 5, domains={"query": normal(6)}, dtypes=Types.every),
        padded("transposed", 5, 5, 3, **throughout(transposed)),
        padded("strided", 5, 5, 3, **throughout(strided), masked=3, dtypes=Types.every),
        padded("nan", 6, 6, 5, domains={"query": choice([1.0, nan, *np.linspace(-2, 2, 61)])}),
    ),
    derive=of_padded,
)


# Penalties


@dataclass(frozen=True)
class Penalised:
    """How many tokens of each sequence are penalised, and the size of the vocabulary."""

    counts: Sequence[int]
    vocabulary: int = 11
    index: Dtype = I32


def penalised(label: str, *counts: int, **about: Any) -> CaseTemplate:
    sizes = {name: about.pop(name) for name in list(about) if name in Penalised.__annotations__}
    return CaseTemplate(label, Penalised(counts, **sizes), **about)


def _distinct(sizes: Penalised) -> list[np.ndarray[Any, Any]]:
    """Tokens of each sequence, none twice."""
    rng = np.random.default_rng(sizes.vocabulary)
    return [rng.permutation(sizes.vocabulary)[:count] for count in sizes.counts]


def of_penalised(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, layout = template.sizes, template.layout
    ids, batch = _distinct(sizes), len(sizes.counts)
    penalty = tensor(batch, domain=between(0.2, 1.5))
    return {
        "logits": tensor(batch, sizes.vocabulary, domain=normal(3), layout=layout),
        "presence_penalty": penalty,
        "frequency_penalty": penalty,
        "p_token_ids": literal(np.concatenate(ids) if ids else np.zeros(0, int), I32),
        "p_token_counts": tensor(sum(sizes.counts), domain=whole(1, 9), dtype=I32),
        "p_cumsum_seq_len": literal(np.array([0, *accumulate(sizes.counts)]), I32),
        "p_max_len_in_batch": max(sizes.counts, default=0),
    }


def of_penalised_each(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes = template.sizes
    flat = [number * sizes.vocabulary + ids for number, ids in enumerate(_distinct(sizes))]
    rng = np.random.default_rng(1)
    places = rng.permutation(np.concatenate(flat)) if flat else np.zeros(0, int)
    penalty = tensor(sum(sizes.counts), domain=between(0.2, 1.5))
    return {
        "logits": tensor(len(sizes.counts), sizes.vocabulary, domain=normal(3), layout=template.layout),
        "presence_penalty": penalty,
        "frequency_penalty": penalty,
        "repetition_penalty": tensor(sum(sizes.counts), domain=between(0.6, 1.8)),
        "p_token_ids": literal(places, sizes.index),
        "p_token_counts": tensor(sum(sizes.counts), domain=whole(1, 9), dtype=sizes.index),
    }


PENALTIES = (
    penalised("", 4, 2, 7, **BASIC),
    penalised("one-sequence", 5),
    penalised("without-tokens", 3, 0, 2, dtypes=Types.every),
    penalised("all-tokens", 9, 9, vocabulary=9),
    penalised("one-each", 1, 1, 1, 1),
    penalised("large-vocabulary", 40, 17, vocabulary=3001),
    penalised("many-sequences", *(1, 3, 2) * 9, dtypes=Types.every),
    penalised("no-tokens", 0, 0),
    penalised("rewarding", 4, 2, domains={"presence_penalty": between(-2, -0.5), "frequency_penalty": between(-1, 1)}),
    penalised("transposed", 4, 2, 7, layout=transposed),
    penalised("strided", 4, 2, 7, layout=strided, dtypes=Types.every),
    penalised("special", 9, 19, vocabulary=19, domains={"logits": special_but()}),
    penalised(
        "exact",
        4,
        2,
        7,
        domains={
            "logits": whole(-20, 20),
            "presence_penalty": whole(-3, 3),
            "frequency_penalty": whole(-3, 3),
            "repetition_penalty": choice([0.5, 1.0, 2.0]),
        },
        dtypes=Types.every,
        exact=True,
    ),
)
register("diopiApplyPenalty", templates=PENALTIES, derive=of_penalised)
register(
    "diopiApplyPenaltyV2",
    templates=(
        *PENALTIES,
        penalised("int64", 4, 2, 7, index=I64, dtypes=Types.every),
        penalised("zeros", 8, 9, domains={"logits": choice([0.0, -0.0, 1.5, -2.0])}),
    ),
    derive=of_penalised_each,
)


# The fused all-reduce


@dataclass(frozen=True)
class Product:
    """Shape of the first factor, columns of the second."""

    first: Shape
    columns: int


HINTS = {"group": "world", "reduce_op": "sum", "comm_turn": 0, "stream_mode": 1}


def product(label: str, *first: int, columns: int = 4, **about: Any) -> CaseTemplate:
    arguments = {**HINTS, **about.pop("arguments", {})}
    return CaseTemplate(label, Product(first, columns), arguments, **about)


def of_product(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, layout = template.sizes, template.layout
    return {
        "x1": tensor(*sizes.first, layout=layout),
        "x2": tensor(sizes.first[-1], sizes.columns, layout=layout),
        "bias": tensor(sizes.columns),
    }


NO_BIAS = {"bias": None}
_EXACT = dict.fromkeys(("x1", "x2", "bias"), exact_numbers)

register(
    "diopiMatmulAllReduce",
    templates=(
        product("", 3, 5, **BASIC),
        product("no-bias", 3, 5, arguments=NO_BIAS, dtypes=Types.every, smoke=True),
        product("batch", 2, 3, 5, dtypes=Types.every),
        product("batch-no-bias", 2, 3, 5, arguments=NO_BIAS),
        product("row", 1, 7),
        product("column", 6, 3, columns=1),
        product("outer", 4, 1),
        product("long", 3, 1031, dtypes=Types.every),
        product("accumulated", 2, 2000, columns=3, domains=dict.fromkeys(("x1", "x2"), POSITIVE), dtypes=half),
        product("wide", 2, 3, columns=517),
        product("no-rows", 0, 5),
        product("nothing-to-sum", 3, 0),
        product("hints", 3, 5, arguments={"comm_turn": 2, "stream_mode": 0, "group": "other"}),
        product("transposed", 4, 6, **throughout(transposed)),
        product("strided", 4, 6, **throughout(strided), dtypes=Types.every),
        product("special", 7, 5, domains={"x1": choice([1.0, nan, inf, *range(9)])}),
        product("exact", 5, 64, dtypes=Types.every, domains=_EXACT, exact=True),
    ),
    derive=of_product,
    weak={"accumulated": "beside a sum this large the bias is rounded away"},
)
