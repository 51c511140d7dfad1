"""Cases of attention to tokens in a cache whose slots a table lists: decoding in two steps, and prefill.

A slot of the cache contains one token. The table lists the slots of each sequence. Packed data contain the tokens of
all sequences, one sequence after another, in the rows of one tensor.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).
`Case.non_discriminating` is the reason why a wrong result can pass a case.
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
from diopi_test.cases.llm.numbers import (
    F16,
    HIGH_VALUES,
    I32,
    I64,
    LOW_VALUES,
    ONES,
    POSITIVE,
    POWER_OF_TWO_LENGTHS,
    SCORE_GAP,
    SMALL_INTEGERS,
    paired_keys,
)
from diopi_test.cases.products import exact_numbers
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import literal


@dataclass(frozen=True, kw_only=True)
class TokenSizes:
    """The sizes of attention to cached or packed sequences, from which `token_arguments` derives the arguments.

    Attributes:
        lengths: The number of tokens of each sequence.
        heads: The number of heads of queries, keys and values.
        head_size: The number of elements of a head.
        spare_columns: The number of columns at the end of the table that no sequence uses.
        gap_rows: The number of rows of packed data before the first sequence, between sequences, and after the last.
        index_dtype: The element type of the tables of slots, start rows and lengths.
        is_context: Whether queries and keys are packed data and each token attends to itself and earlier tokens
            (prefill). Otherwise there is one query per sequence, and keys and values are in the cache (decoding).
    """

    lengths: Sequence[int]
    heads: int = 2
    head_size: int = 4
    spare_columns: int = 1
    gap_rows: int = 1
    index_dtype: Dtype = I32
    is_context: bool = False

    @property
    def longest_length(self) -> int:
        """Return the length of the longest sequence, or 0 if there is no sequence."""
        return max(self.lengths, default=0)

    @property
    def slot_count(self) -> int:
        """Return the number of slots of the cache: one per token, and three that no sequence uses."""
        return sum(self.lengths) + 3

    @property
    def start_rows(self) -> list[int]:
        """Return the row of packed data at which each sequence begins."""
        ends = accumulate(length + self.gap_rows for length in self.lengths)
        return [end - length for end, length in zip(ends, self.lengths, strict=True)]

    @property
    def packed_rows(self) -> int:
        """Return the number of rows of packed data, including the gaps."""
        return sum(self.lengths) + self.gap_rows * (len(self.lengths) + 1)


def token_template(label: str, *lengths: int, **fields: Any) -> CaseTemplate[TokenSizes]:
    """Return a template of attention to sequences of these lengths.

    Args:
        label: The label of the cases without the element type.
        *lengths: The number of tokens of each sequence.
        **fields: Other fields of `TokenSizes`, and fields of the template.

    Returns:
        The template.
    """
    sizes = {name: fields.pop(name) for name in list(fields) if name in TokenSizes.__annotations__}
    return CaseTemplate(label, TokenSizes(lengths=lengths, **sizes), **fields)


def _slot_table(sizes: TokenSizes) -> NDArray[Any]:
    """Return the slot table: a row per sequence, which lists its slots in random order.

    The slots of a sequence end before the column `sizes.longest_length`. All other entries name a slot that no sequence
    uses.
    """
    slots = np.random.default_rng(len(sizes.lengths)).permutation(sizes.slot_count)
    table = np.full((len(sizes.lengths), sizes.longest_length + sizes.spare_columns), slots[-1])
    begins = accumulate((0, *sizes.lengths[:-1])) if sizes.lengths else []
    for row, begin, length in zip(table, begins, sizes.lengths, strict=True):
        row[sizes.longest_length - length : sizes.longest_length] = slots[begin : begin + length]
    return table


def token_arguments(template: CaseTemplate[TokenSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of the three attention functions of this module for the sizes of a template.

    Args:
        template: The template. Its layout applies to all floating-point tensors.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments of all three functions by name. `diopi_test.cases.template.expand` leaves out the arguments that a
        function does not have.
    """
    sizes, layout = template.sizes, template.layout
    cache = tensor(sizes.slot_count, sizes.heads, sizes.head_size, layout=layout)
    one_per_sequence = tensor(len(sizes.lengths), sizes.heads, sizes.head_size, layout=layout)
    rows = tensor(sizes.packed_rows, sizes.heads, sizes.head_size, layout=layout)
    scores = tensor(sizes.heads, sizes.packed_rows, layout=layout)
    is_context = sizes.is_context
    return {
        "token_attention_out": scores,
        "logics": scores,
        "context_attention_out": rows,
        "q": rows if is_context else one_per_sequence,
        "k": rows if is_context else cache,
        "v": rows if is_context else cache,
        "b_loc": literal(_slot_table(sizes), sizes.index_dtype),
        "b_start_loc": literal(np.array(sizes.start_rows, np.int64), sizes.index_dtype),
        "b_seq_len": literal(np.array(sizes.lengths, np.int64), sizes.index_dtype),
        "max_input_len": sizes.longest_length,
        "other_kv_index": 1,
    }


TOKENS = (
    token_template("", 3, 5, 2, **SMOKE_IN_ALL_DTYPES),
    token_template("int64", 3, 5, 2, index_dtype=I64, dtypes=DtypeSelection.all),
    token_template("one-sequence", 7),
    token_template("equal-lengths", 4, 4, 4, spare_columns=0, dtypes=DtypeSelection.all),
    token_template("one-token-each", 1, 1, 1, 1, 1),
    token_template("without-gaps", 3, 5, 2, gap_rows=0, dtypes=DtypeSelection.all),
    token_template("long", 300, 17, heads=1, dtypes=DtypeSelection.all),
    token_template("many-sequences", *(1, 2, 3) * 7, heads=1),
    token_template("many-heads", 4, 3, heads=9),
    token_template("head-size-64", 3, 5, head_size=64, dtypes=DtypeSelection.all),
    token_template("head-size-80", 3, 5, head_size=80),
    token_template("head-size-128", 3, 5, head_size=128, heads=1, dtypes=half),
    token_template("transposed", 3, 5, 2, layout=transposed),
    token_template("strided", 3, 5, 2, layout=strided, dtypes=DtypeSelection.all),
    token_template("wide-table", 3, 5, 2, spare_columns=4),
    token_template("many", 1031, 3, 517, heads=3, head_size=66, large=True),
    token_template("heads", 131, 67, heads=32, head_size=128, dtypes=[F16], large=True),
)
"""The templates that all three functions have."""


def _position_of_each_row(sizes: TokenSizes) -> NDArray[Any]:
    """Return the position in its sequence of each row of packed data, a vector; 0 for rows between sequences."""
    positions = np.zeros(sizes.packed_rows, int)
    for start, length in zip(sizes.start_rows, sizes.lengths, strict=True):
        positions[start : start + length] = np.arange(length)
    return positions


def _slot_of_each_row(sizes: TokenSizes) -> NDArray[Any]:
    """Return the cache slot of the token in each row of packed data, a vector; 0 for rows between sequences."""
    slots = np.zeros(sizes.packed_rows, int)
    for start, length, row in zip(sizes.start_rows, sizes.lengths, _slot_table(sizes), strict=True):
        slots[start : start + length] = row[sizes.longest_length - length : sizes.longest_length]
    return slots


def _with_scores(template: CaseTemplate[TokenSizes], row_scores: NDArray[Any]) -> CaseTemplate[TokenSizes]:
    """Return the template with fixed scores as the argument `logics`.

    Args:
        template: The template.
        row_scores: The score of each row of packed data. All heads have the same scores.

    Returns:
        The new template.
    """
    scores = np.broadcast_to(row_scores, (template.sizes.heads, template.sizes.packed_rows))
    return template.replace(arguments={"logics": tensor(*scores.shape, compute=lambda values: scores)})


REASONS = {
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
            head_size=16,
            domains=dict.fromkeys(("q", "k"), exact_numbers),
            dtypes=DtypeSelection.all,
            exact=True,
        ),
        token_template(
            "accumulated",
            3,
            2,
            head_size=2000,
            heads=1,
            domains={"q": POSITIVE, "k": alternating_rows(2000, HIGH_VALUES, LOW_VALUES)},
            dtypes=half,
        ),
        token_template("special", 3, 5, domains={"k": choice([1.0, inf, nan, *np.linspace(-2, 2, 41)])}),
    ),
    derive=token_arguments,
)
MANY_TOKENS = token_template(
    "accumulated", 1500, 9, heads=1, domains={"v": alternating_rows(4, HIGH_VALUES, LOW_VALUES)}, dtypes=half
)
"""A template with a sequence of 1,500 tokens, whose weighted sum of values shows the precision of the accumulator."""

EXACT_TOKENS = token_template(
    "exact", *POWER_OF_TWO_LENGTHS, domains={"v": SMALL_INTEGERS}, dtypes=DtypeSelection.all, exact=True
)
"""A template whose attention weights are powers of two and whose values are small integers, so that results are exact.
"""

register(
    "diopiTokenSoftmaxReduceVInference",
    templates=(
        *TOKENS,
        _with_scores(MANY_TOKENS, 2.0 * (_slot_of_each_row(MANY_TOKENS.sizes) % 2 == 0)),
        token_template("steep", 6, 5, domains={"logics": normal(6)}, dtypes=DtypeSelection.all),
        _with_scores(EXACT_TOKENS, SCORE_GAP * (_position_of_each_row(EXACT_TOKENS.sizes) % 2)),
        token_template("far", 6, 5, domains={"logics": choice([900.0, -900.0, 899.0, 3.0, 898.5])}),
        token_template("special", 6, 5, domains={"logics": choice([1.0, -inf, 2.0, 0.5, -1.0])}),
        token_template("other-slot", 3, 5, 2).replace(arguments={"other_kv_index": 0}),
    ),
    derive=token_arguments,
    non_discriminating=REASONS,
)
OPPOSITE_KEYS = {
    "q": POSITIVE,
    "k": alternating_rows(2, HIGH_VALUES, uniform(-1, -0.9)),
    "v": alternating_rows(2, HIGH_VALUES, LOW_VALUES),
}
"""Domains by argument name: keys alternately have the direction of the queries and the opposite direction.

The values of keys in the same direction are near 1, all others near 0.55. The result therefore shows the share of the
weights.
"""

PAIRED_TEMPLATE = token_template(
    "exact", 7, 4, 5, domains={"q": ONES, "v": SMALL_INTEGERS}, dtypes=DtypeSelection.all, exact=True
)
"""A template with exact results, if the keys come in pairs of equal scores (`paired_keys`)."""

register(
    "diopiContextAttentionInference",
    templates=tuple(
        t.with_sizes(is_context=True)
        for t in (
            *TOKENS,
            PAIRED_TEMPLATE.replace(arguments={"k": paired_keys(_position_of_each_row(PAIRED_TEMPLATE.sizes), 2, 4)}),
            token_template("accumulated", 700, heads=1, head_size=2, domains=OPPOSITE_KEYS, dtypes=half),
            token_template("steep", 6, 5, domains={"q": normal(6)}, dtypes=DtypeSelection.all),
            token_template("nan", 6, 5, domains={"q": choice([1.0, nan, *np.linspace(-2, 2, 37)])}),
        )
    ),
    derive=token_arguments,
    non_discriminating=REASONS,
)
