"""Cases of attention to tokens in slots of a cache, which a table names: decoding in two steps, and prefill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import alternating_rows, choice, normal, uniform
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.llm.numbers import F16, FAR, HIGH, I32, I64, LOW, ONES, POSITIVE, POWERS, SMALL, in_pairs
from diopi_test.cases.products import exact_numbers
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import literal


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Lengths of sequences whose tokens are in slots of a cache.

    Attributes:
        lengths: The number of tokens of each sequence.
        heads, size: The number of heads, and the size of a head.
        spare: The number of columns at the end of the table that no sequence uses.
        gap: The number of rows of packed data between two sequences.
        index: The element type of tables.
        is_context: Whether each token of the sequences attends to the tokens before it, instead of only the last token.
    """

    lengths: Sequence[int]
    heads: int = 2
    size: int = 4
    spare: int = 1
    gap: int = 1
    index: Dtype = I32
    is_context: bool = False

    @property
    def longest(self) -> int:
        """Return the length of the longest sequence."""
        return max(self.lengths, default=0)

    @property
    def slots(self) -> int:
        """Return the number of slots of the cache, of which a few are unused."""
        return sum(self.lengths) + 3

    @property
    def starts(self) -> list[int]:
        """Return the row at which each sequence begins in packed data."""
        ends = accumulate(length + self.gap for length in self.lengths)
        return [end - length for end, length in zip(ends, self.lengths, strict=True)]

    @property
    def packed(self) -> int:
        """Return the number of rows of packed data."""
        return sum(self.lengths) + self.gap * (len(self.lengths) + 1)


def token_template(label: str, *lengths: int, **fields: Any) -> CaseTemplate[Tokens]:
    """Return a template of attention to sequences of these lengths."""
    sizes = {name: fields.pop(name) for name in list(fields) if name in Tokens.__annotations__}
    return CaseTemplate(label, Tokens(lengths=lengths, **sizes), **fields)


def _table(sizes: Tokens) -> NDArray[Any]:
    """Return each sequence's slots in random order, right-aligned in its row; other entries name an unused slot."""
    slots = np.random.default_rng(len(sizes.lengths)).permutation(sizes.slots)
    table = np.full((len(sizes.lengths), sizes.longest + sizes.spare), slots[-1])
    begins = accumulate((0, *sizes.lengths[:-1])) if sizes.lengths else []
    for row, begin, length in zip(table, begins, sizes.lengths, strict=True):
        row[sizes.longest - length : sizes.longest] = slots[begin : begin + length]
    return table


def token_arguments(template: CaseTemplate[Tokens], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of the attention functions of language model servers for the sizes of a template."""
    sizes, layout = template.sizes, template.layout
    cache = tensor(sizes.slots, sizes.heads, sizes.size, layout=layout)
    one_per_sequence = tensor(len(sizes.lengths), sizes.heads, sizes.size, layout=layout)
    rows = tensor(sizes.packed, sizes.heads, sizes.size, layout=layout)
    scores = tensor(sizes.heads, sizes.packed, layout=layout)
    is_context = sizes.is_context
    return {
        "token_attention_out": scores,
        "logics": scores,
        "context_attention_out": rows,
        "q": rows if is_context else one_per_sequence,
        "k": rows if is_context else cache,
        "v": rows if is_context else cache,
        "b_loc": literal(_table(sizes), sizes.index),
        "b_start_loc": literal(np.array(sizes.starts, np.int64), sizes.index),
        "b_seq_len": literal(np.array(sizes.lengths, np.int64), sizes.index),
        "max_input_len": sizes.longest,
        "other_kv_index": 1,
    }


TOKENS = (
    token_template("", 3, 5, 2, **SMOKE_IN_ALL_DTYPES),
    token_template("int64", 3, 5, 2, index=I64, dtypes=DtypeSelection.all),
    token_template("one-sequence", 7),
    token_template("equal-lengths", 4, 4, 4, spare=0, dtypes=DtypeSelection.all),
    token_template("one-token-each", 1, 1, 1, 1, 1),
    token_template("without-gaps", 3, 5, 2, gap=0, dtypes=DtypeSelection.all),
    token_template("long", 300, 17, heads=1, dtypes=DtypeSelection.all),
    token_template("many-sequences", *(1, 2, 3) * 7, heads=1),
    token_template("many-heads", 4, 3, heads=9),
    token_template("head-size-64", 3, 5, size=64, dtypes=DtypeSelection.all),
    token_template("head-size-80", 3, 5, size=80),
    token_template("head-size-128", 3, 5, size=128, heads=1, dtypes=half),
    token_template("transposed", 3, 5, 2, layout=transposed),
    token_template("strided", 3, 5, 2, layout=strided, dtypes=DtypeSelection.all),
    token_template("wide-table", 3, 5, 2, spare=4),
    token_template("many", 1031, 3, 517, heads=3, size=66, large=True),
    token_template("heads", 131, 67, heads=32, size=128, dtypes=[F16], large=True),
)
"""The templates of all functions here."""


def _positions(sizes: Tokens) -> NDArray[Any]:
    """Return the position of each row of packed data in its sequence; 0 between sequences."""
    positions = np.zeros(sizes.packed, int)
    for start, length in zip(sizes.starts, sizes.lengths, strict=True):
        positions[start : start + length] = np.arange(length)
    return positions


def _slots(sizes: Tokens) -> NDArray[Any]:
    """Return the slot of each row of packed data; 0 between sequences."""
    slots = np.zeros(sizes.packed, int)
    for start, length, row in zip(sizes.starts, sizes.lengths, _table(sizes), strict=True):
        slots[start : start + length] = row[sizes.longest - length : sizes.longest]
    return slots


def _with_scores(template: CaseTemplate[Tokens], row_scores: NDArray[Any]) -> CaseTemplate[Tokens]:
    """Return the template with the score `row_scores` of each row, the same in all heads."""
    scores = np.broadcast_to(row_scores, (template.sizes.heads, template.sizes.packed))
    return template.replace(arguments={"logics": tensor(*scores.shape, compute=lambda values: scores)})


SINGLE_REASONS = {
    "one-token-each": "a single token has the probability 1",
    "without-gaps": "every row is overwritten",
    "special": "only a few tokens have a nonzero probability",
}
"""Reasons why many wrong results can pass a case (`non_discriminating`), by label."""

register(
    "diopiTokenAttentionInference",
    non_discriminating={"without-gaps": "every column is overwritten"},
    templates=(
        *TOKENS,
        token_template(
            "exact",
            3,
            5,
            size=16,
            domains=dict.fromkeys(("q", "k"), exact_numbers),
            dtypes=DtypeSelection.all,
            exact=True,
        ),
        token_template(
            "accumulated",
            3,
            2,
            size=2000,
            heads=1,
            domains={"q": POSITIVE, "k": alternating_rows(2000, HIGH, LOW)},
            dtypes=half,
        ),
        token_template("special", 3, 5, domains={"k": choice([1.0, inf, nan, *np.linspace(-2, 2, 41)])}),
    ),
    derive=token_arguments,
)
MANY_TOKENS = token_template(
    "accumulated", 1500, 9, heads=1, domains={"v": alternating_rows(4, HIGH, LOW)}, dtypes=half
)
"""A long sequence, whose sum of values shows the width of the accumulator."""

EXACT_TOKENS = token_template("exact", *POWERS, domains={"v": SMALL}, dtypes=DtypeSelection.all, exact=True)
"""The template with exact weights."""

register(
    "diopiTokenSoftmaxReduceVInference",
    templates=(
        *TOKENS,
        _with_scores(MANY_TOKENS, 2.0 * (_slots(MANY_TOKENS.sizes) % 2 == 0)),
        token_template("steep", 6, 5, domains={"logics": normal(6)}, dtypes=DtypeSelection.all),
        _with_scores(EXACT_TOKENS, FAR * (_positions(EXACT_TOKENS.sizes) % 2)),
        token_template("far", 6, 5, domains={"logics": choice([900.0, -900.0, 899.0, 3.0, 898.5])}),
        token_template("special", 6, 5, domains={"logics": choice([1.0, -inf, 2.0, 0.5, -1.0])}),
        token_template("other-slot", 3, 5, 2).replace(arguments={"other_kv_index": 0}),
    ),
    derive=token_arguments,
    non_discriminating=SINGLE_REASONS,
)
OF_OPPOSITES = {"q": POSITIVE, "k": alternating_rows(2, HIGH, uniform(-1, -0.9)), "v": alternating_rows(2, HIGH, LOW)}
"""Keys that alternately point in the direction of the queries and in the opposite direction."""

PAIRS = token_template("exact", 7, 4, 5, domains={"q": ONES, "v": SMALL}, dtypes=DtypeSelection.all, exact=True)
"""The template with exact weights."""

register(
    "diopiContextAttentionInference",
    templates=tuple(
        t.with_sizes(is_context=True)
        for t in (
            *TOKENS,
            PAIRS.replace(arguments={"k": in_pairs(_positions(PAIRS.sizes), 2, 4)}),
            token_template("accumulated", 700, heads=1, size=2, domains=OF_OPPOSITES, dtypes=half),
            token_template("steep", 6, 5, domains={"q": normal(6)}, dtypes=DtypeSelection.all),
            token_template("nan", 6, 5, domains={"q": choice([1.0, nan, *np.linspace(-2, 2, 37)])}),
        )
    ),
    derive=token_arguments,
    non_discriminating=SINGLE_REASONS,
)
