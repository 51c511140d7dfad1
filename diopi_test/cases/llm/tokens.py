"""Cases of attention to tokens in a cache whose slots a table lists: decoding in two steps, and prefill.

A slot of the cache contains one token. The table lists the slots of each sequence. Packed data contain the tokens of
all sequences, one sequence after another, in the rows of one tensor.
"""

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
    """The sizes of attention to cached or packed sequences, from which `token_arguments` derives the arguments.

    Attributes:
        lengths: The number of tokens of each sequence.
        heads: The number of heads of queries, keys and values.
        size: The number of elements of a head.
        spare: The number of columns at the end of the table that no sequence uses.
        gap: The number of rows of packed data before the first sequence, between two sequences, and after the last.
        index: The element type of the tables of slots, start rows and lengths.
        is_context: Whether queries and keys are packed data and each token attends to itself and earlier tokens
            (prefill). Otherwise there is one query per sequence, and keys and values are in the cache (decoding).
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
        """Return the length of the longest sequence, or 0 if there is no sequence."""
        return max(self.lengths, default=0)

    @property
    def slots(self) -> int:
        """Return the number of slots of the cache: one per token, and three that no sequence uses."""
        return sum(self.lengths) + 3

    @property
    def starts(self) -> list[int]:
        """Return the row of packed data at which each sequence begins."""
        ends = accumulate(length + self.gap for length in self.lengths)
        return [end - length for end, length in zip(ends, self.lengths, strict=True)]

    @property
    def packed(self) -> int:
        """Return the number of rows of packed data, including the gaps."""
        return sum(self.lengths) + self.gap * (len(self.lengths) + 1)


def token_template(label: str, *lengths: int, **fields: Any) -> CaseTemplate[Tokens]:
    """Return a template of attention to sequences of these lengths.

    Args:
        label: The label of the cases without the element type.
        *lengths: The number of tokens of each sequence.
        **fields: Other fields of `Tokens`, and fields of the template.

    Returns:
        The template.
    """
    sizes = {name: fields.pop(name) for name in list(fields) if name in Tokens.__annotations__}
    return CaseTemplate(label, Tokens(lengths=lengths, **sizes), **fields)


def _table(sizes: Tokens) -> NDArray[Any]:
    """Return the slot table: a row per sequence, which lists its slots in random order.

    The slots of a sequence end at the column `sizes.longest`. All other entries name a slot that no sequence uses.
    """
    slots = np.random.default_rng(len(sizes.lengths)).permutation(sizes.slots)
    table = np.full((len(sizes.lengths), sizes.longest + sizes.spare), slots[-1])
    begins = accumulate((0, *sizes.lengths[:-1])) if sizes.lengths else []
    for row, begin, length in zip(table, begins, sizes.lengths, strict=True):
        row[sizes.longest - length : sizes.longest] = slots[begin : begin + length]
    return table


def token_arguments(template: CaseTemplate[Tokens], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of the three attention functions of this module for the sizes of a template.

    Args:
        template: The template. Its layout applies to all floating-point tensors.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments of all three functions by name. `expand` leaves out the arguments that a function does not have.
    """
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
"""The templates that all three functions have."""


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
    """Return the template with fixed scores as the argument `logics`.

    Args:
        template: The template.
        row_scores: The score of each row of packed data. All heads have the same scores.

    Returns:
        The new template.
    """
    scores = np.broadcast_to(row_scores, (template.sizes.heads, template.sizes.packed))
    return template.replace(arguments={"logics": tensor(*scores.shape, compute=lambda values: scores)})


SINGLE_REASONS = {
    "one-token-each": "a single token has the probability 1",
    "without-gaps": "every row is overwritten",
    "special": "only a few tokens have a nonzero probability",
}
"""By label, the reason why many wrong results can pass a case (`Case.non_discriminating`)."""

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
"""A template with a sequence of 1,500 tokens, whose weighted sum of values shows the precision of the accumulator."""

EXACT_TOKENS = token_template("exact", *POWERS, domains={"v": SMALL}, dtypes=DtypeSelection.all, exact=True)
"""A template whose attention weights are powers of two and whose values are small integers, so that results are exact.
"""

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
"""Domains by argument name: keys alternately have the direction of the queries and the opposite direction.

The values of keys in the same direction are near 1, all others near 0.55. The result therefore shows the share of the
weights.
"""

PAIRS = token_template("exact", 7, 4, 5, domains={"q": ONES, "v": SMALL}, dtypes=DtypeSelection.all, exact=True)
"""A template with exact results, if the keys come in pairs of equal scores (`in_pairs`)."""

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
