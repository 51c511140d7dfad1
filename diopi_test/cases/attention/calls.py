"""Templates of calls that all attention functions share: sizes, numeric arguments and domains.

A template describes cases that differ only in their element type. Numeric arguments have the names of the parameters of
`diopiFlashAttention`. The module of another attention function translates names that differ.

A call processes a batch of sequences of equal length, or packed sequences: sequences of different lengths, which are
concatenated in one tensor. Each query of a sequence attends to keys of the same sequence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, half
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
from diopi_test.cases.domains import choice, integer_values, normal
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, same_layout
from lib_rt.formats import format_of

Shape = tuple[int, ...]
"""The sizes of a tensor."""

F16, BF16, F32, F64 = floating
"""The four floating-point types: float16, bfloat16, float32 and float64."""

OPEN_CLASS: dict[str, Any] = {"case_class": CaseClass.open}
"""The field of templates whose calls PyTorch leaves undefined.

Their cases have the class `open`: a vendor that fails such a case still conforms.
"""


@dataclass(frozen=True, kw_only=True)
class Heads:
    """The sizes of a call of an attention function.

    Attributes:
        batch: The number of sequences of equal length. Most packed calls ignore it.
        queries, keys: The number of queries and the number of keys per sequence; for packed sequences, a tuple with one
            number per sequence.
        heads, key_heads: The number of heads of queries, and the number of heads of keys and values. If there are fewer
            heads of keys, several heads of queries share each of them.
        size: The number of elements of a query, a key or a value in one head.
        slopes: The number of axes of the slopes of ALiBi, 1 or 2; 0 for a call without slopes.
        layout: The order of the axes, such as "BSND" (batch, sequence, heads, head size), for functions in which the
            caller chooses the order.
        mask: The kind of mask, for functions with a mask argument; see `customized`.
    """

    batch: int = 2
    queries: Any = 3
    keys: Any = 5
    heads: int = 4
    key_heads: int = 2
    size: int = 8
    slopes: int = 0
    layout: str = "BSND"
    mask: str = ""


DEFAULT_NUMBERS: Mapping[str, Any] = {
    "p_dropout": 0.0,
    "softmax_scale": 0.5,
    "is_causal": False,
    "window_size_left": -1,
    "window_size_right": -1,
    "gen": None,
}
"""The numeric arguments of a call unless its template replaces them; a window of size −1 is unlimited."""

SEED = 20_240_229
"""The seed of the random generator of dropout; any number will do."""

LONG_KEYS = 300
"""A number of keys that exceeds the block of keys that most implementations process at once, usually 64 to 256."""


def attention_template(label: str, numbers: Mapping[str, Any] | None = None, **fields: Any) -> CaseTemplate[Heads]:
    """Return a template of a call with a batch of sequences of equal length.

    Args:
        label: The label of the cases without the element type.
        numbers: Numeric arguments that differ from `DEFAULT_NUMBERS`.
        **fields: Fields of `Heads`; fields of the template; and `layouts`, a mapping with the template's fields
            `layout` and `result_layout`, because `layout` is a field of `Heads`.

    Returns:
        The template.
    """
    sizes = {field.name: fields.pop(field.name) for field in dataclasses.fields(Heads) if field.name in fields}
    layouts = fields.pop("layouts", {})
    return CaseTemplate(label, Heads(**sizes), numbers or {}, **layouts, **fields)


def square_template(label: str, numbers: Mapping[str, Any] | None = None, **fields: Any) -> CaseTemplate[Heads]:
    """Return a template with as many queries as keys: 6, unless `fields` has other numbers.

    Then it does not matter whether an implementation aligns a causal mask with the first or with the last query. The
    parameters are those of `attention_template`.
    """
    return attention_template(label, numbers, **{"queries": 6, "keys": 6, **fields})


def packed_template(label: str, numbers: Mapping[str, Any] | None = None, **fields: Any) -> CaseTemplate[Heads]:
    """Return a template of packed sequences: by default, 5 queries and 6 keys, then 4 queries and 4 keys.

    The parameters are those of `attention_template`.
    """
    return attention_template(label, numbers, **{"queries": (5, 4), "keys": (6, 4), **fields})


CAUSAL = {"is_causal": True}
"""The argument of calls with a causal mask, in which a query does not attend to later keys."""

TRANSPOSED, STRIDED = {"layouts": same_layout(transposed)}, {"layouts": same_layout(strided)}
"""The arguments of `attention_template` that make the layout of all tensors transposed, or strided."""


def window_attributes(preceding: int, following: int) -> Mapping[str, int]:
    """Return the arguments of a sliding window by name.

    Args:
        preceding: The number of keys before the position of the query to which the query attends; −1 for all.
        following: The number of keys after the position of the query to which the query attends; −1 for all.

    Returns:
        The arguments.
    """
    return {"window_size_left": preceding, "window_size_right": following}


OVERFLOWING_SCORES = {"q": normal(1, 15), "k": normal(1, 15)}
"""Domains of queries and keys for which the exponential of a score overflows unless the maximum is subtracted first."""

LARGE_SCORES = {"q": normal(6)}
"""A domain of queries that give scores of large magnitude, so that few keys have weights that are not close to 0."""

NAN_QUERIES = {"q": choice([1.0, nan, *np.linspace(-2, 2, 47)])}
"""A domain of queries of which one element in 49 is NaN."""


def _draw_equal_heads(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return `count // 8` heads of size 8, each with 8 equal numbers: ±16, ±32 or ±64."""
    return rng.choice([-64.0, -32.0, -16.0, 16.0, 32.0, 64.0], count // 8).repeat(8)


def _draw_alternating_signs(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return rows of 16 equal numbers (two heads of 8): 32 in even rows and −32 in odd rows."""
    return np.where(np.arange(count) // 16 % 2, -32.0, 32.0)


def _draw_extreme_heads(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw heads of 8 equal numbers, whose sum with 8 factors of −1 is ±2^n, the largest power of two of the type."""
    largest = 2.0 ** (format_of(dtype).max_exponent - 3)
    return rng.choice([-largest, largest], count // 8).repeat(8)


def _draw_decreasing_factors(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return rows of 16 equal numbers (two heads of 8): −1, −17/16, −18/16 and so on up to −23/16, then −1 again."""
    return -1 - np.arange(count) // 16 % 8 / 16


EXACT_FIELDS: dict[str, Any] = {
    "heads": 2,
    "key_heads": 2,
    "size": 8,
    "domains": {"q": _draw_equal_heads, "k": _draw_alternating_signs, "v": integer_values(-8, 8)},
    "exact": ("attention_out", "out"),
    "dtypes": DtypeSelection.all,
}
"""Arguments of `attention_template` for calls whose results have no rounding error.

For each query, the keys of one sign have the same score. The scores of the other keys are so low that their weights are
exactly 0. With 4, 8 or 16 keys, the remaining weights are powers of two, and all sums are exact.
"""

BATCHES = (
    attention_template("", batch=1, **SMOKE_IN_ALL_DTYPES),
    square_template("causal", CAUSAL, batch=1, **SMOKE_IN_ALL_DTYPES),
    attention_template("as-many-key-heads", key_heads=4, dtypes=DtypeSelection.all),
    attention_template("scale-1", {"softmax_scale": 1.0}),
    attention_template("negative-scale", {"softmax_scale": -0.7}),
    attention_template("head-size-64", size=64, batch=1, dtypes=DtypeSelection.all),
    attention_template("head-size-80", size=80, batch=1, heads=2),
    attention_template("head-size-128", size=128, batch=1, heads=2, dtypes=half),
    attention_template("head-size-3", size=3, heads=2),
    attention_template("one-query", queries=1, keys=9),
    attention_template("long", queries=4, keys=LONG_KEYS, batch=1, heads=2, dtypes=DtypeSelection.all),
    square_template("long-causal", CAUSAL, queries=LONG_KEYS, keys=LONG_KEYS, batch=1, heads=1, key_heads=1, size=4),
    attention_template("far", domains=OVERFLOWING_SCORES, dtypes=(F32, BF16)),
    attention_template("steep", domains=LARGE_SCORES, dtypes=DtypeSelection.all),
    attention_template("transposed", **TRANSPOSED),
    attention_template("strided", **STRIDED, dtypes=DtypeSelection.all),
    attention_template("nan", domains=NAN_QUERIES, batch=3, heads=2),
    attention_template("no-batch", batch=0),
    attention_template("no-queries", queries=0),
)
"""Templates of batches of sequences of equal length."""

GROUPED = (
    attention_template("groups-of-2", heads=6, key_heads=3),
    attention_template("one-key-head", key_heads=1, dtypes=DtypeSelection.all),
)
"""Templates in which several heads of queries share a head of keys."""

BOTTOM_RIGHT = (
    attention_template("causal-few-queries", CAUSAL, queries=3, keys=7, **OPEN_CLASS),
    attention_template("causal-few-keys", CAUSAL, queries=7, keys=3, **OPEN_CLASS),
)
"""Templates of batches with a causal mask and different numbers of queries and keys.

The standard aligns the mask with the last query and the last key (the bottom right corner); PyTorch leaves this open.
"""

WINDOWS_AND_ALIBI = (
    square_template("window", window_attributes(2, 1), dtypes=DtypeSelection.all),
    square_template("window-left", window_attributes(1, -1)),
    square_template("window-right", window_attributes(-1, 2)),
    square_template("window-of-one-place", window_attributes(0, 2)),
    square_template("causal-window", {**CAUSAL, **window_attributes(2, -1)}, dtypes=DtypeSelection.all),
    square_template("causal-window-both", {**CAUSAL, **window_attributes(1, 3)}),
    square_template("alibi", slopes=1, dtypes=DtypeSelection.all),
    square_template("alibi-of-each", slopes=2),
    square_template("alibi-window", window_attributes(3, 2), slopes=1),
)
"""Templates of batches with a sliding window, or with a bias by the distance of query and key (ALiBi)."""

OPEN_WINDOWS_AND_ALIBI = (
    attention_template("window-few-queries", window_attributes(2, 1), queries=3, keys=7, **OPEN_CLASS),
    attention_template("alibi-few-queries", slopes=1, queries=3, keys=7, **OPEN_CLASS),
)
"""Templates of batches with a window or with ALiBi, and fewer queries than keys."""

EXTREME_FIELDS: dict[str, Any] = {
    **EXACT_FIELDS,
    "domains": {"q": _draw_extreme_heads, "k": _draw_decreasing_factors, "v": integer_values(-8, 8)},
}
"""Arguments of `attention_template` for scores near the ends of the range, with weights that are exactly 0 or 1.

With the default scale, the scores of a query with up to 8 keys are all different, and from −S to −1.5 S or from S to
1.5 S, where S is half the largest power of two of the type. Their exponentials are 0 or infinite unless the largest
score is subtracted first. All scores from −S to −1.5 S are lower than −10,000, a usual finite substitute for −∞.
"""

EXACT_WEIGHTS = (
    attention_template("exact", keys=16, queries=5, **EXACT_FIELDS),
    attention_template("extreme-scores", keys=8, queries=5, **EXTREME_FIELDS),
    square_template("extreme-scores-causal", CAUSAL, mask="triangle", **EXTREME_FIELDS),
)
"""The templates of batches with exact weights.

They are for the forward function only: the gradient computes the weights from a logarithm that is rounded.
"""

PACKED_EXACT_WEIGHTS = (
    packed_template("exact", queries=(3, 2), keys=(8, 4), **EXACT_FIELDS),
    packed_template("extreme-scores", queries=(3, 2), keys=(8, 4), **EXTREME_FIELDS),
    packed_template("extreme-scores-causal", CAUSAL, queries=(5, 4), keys=(5, 4), mask="triangle", **EXTREME_FIELDS),
)
"""The templates of packed sequences with exact weights, for the forward function only."""

ALIBI_CAUSAL = (square_template("alibi-causal", CAUSAL, slopes=1, dtypes=DtypeSelection.all),)
"""The template of a batch with ALiBi and a causal mask.

It is for the forward function only, because the gradient cannot be computed from the results that the forward function
saves.
"""

PACKED = (
    packed_template("", queries=(3, 1, 4), keys=(4, 2, 3), heads=2, size=4, **SMOKE_IN_ALL_DTYPES),
    packed_template("causal", CAUSAL, queries=(3, 1, 4), keys=(3, 1, 4), heads=2, size=4, **SMOKE_IN_ALL_DTYPES),
    packed_template("one-sequence", queries=(5,), keys=(6,), dtypes=DtypeSelection.all),
    packed_template("without-rows", queries=(3, 0, 2), keys=(4, 2, 3)),
    packed_template("without-keys", queries=(3, 2, 2), keys=(4, 0, 3)),
    packed_template("many-sequences", queries=(1,) * 17, keys=(3, 5) * 8 + (2,), heads=2),
    packed_template("head-size-64", size=64, dtypes=half),
    packed_template("head-size-80", size=80, heads=2),
    packed_template("head-size-128", size=128, heads=2),
    packed_template("long", queries=(2, 3), keys=(LONG_KEYS, 40), heads=2, size=4, dtypes=DtypeSelection.all),
    packed_template("steep", domains=LARGE_SCORES, dtypes=DtypeSelection.all),
    packed_template("scale-1", {"softmax_scale": 1.0}),
    packed_template("causal-same-lengths", CAUSAL, queries=(5, 2, 3), keys=(5, 2, 3), dtypes=DtypeSelection.all),
    packed_template("transposed", **TRANSPOSED),
    packed_template("strided", **STRIDED, dtypes=DtypeSelection.all),
    packed_template("no-sequences", queries=(), keys=()),
    packed_template("as-many-key-heads", key_heads=4),
)
"""Templates of packed sequences of different lengths."""

PACKED_BOTTOM_RIGHT = (
    packed_template("causal-few-queries", CAUSAL, keys=(6, 7), dtypes=DtypeSelection.all),
    packed_template("causal-few-keys", CAUSAL, keys=(3, 4)),
)
"""Templates of packed sequences with a causal mask and different numbers of queries and keys."""

PACKED_WINDOWS_AND_ALIBI = (
    packed_template("window", window_attributes(2, 1), dtypes=DtypeSelection.all),
    packed_template("window-left", window_attributes(1, -1)),
    packed_template("window-right", window_attributes(-1, 0)),
    packed_template("causal-window", {**CAUSAL, **window_attributes(2, -1)}, dtypes=DtypeSelection.all),
    packed_template("alibi", slopes=1, dtypes=DtypeSelection.all),
    packed_template("alibi-of-each", slopes=2),
)
"""Templates of packed sequences with a sliding window or with ALiBi."""

PACKED_ALIBI_CAUSAL = (packed_template("alibi-causal", CAUSAL, slopes=1),)
"""The template of packed sequences with ALiBi and a causal mask, for the forward function only."""

# Large calls have either long sequences or many heads. The time of the reference grows with the product of both.

LARGE_LONG = attention_template(
    "long", CAUSAL, batch=1, queries=2048, keys=2048, heads=1, key_heads=1, size=64, large=True
)
"""A large template with a causal mask: one head and a sequence of 2048 positions."""

LARGE_HEADS = square_template(
    "many-heads",
    CAUSAL,
    batch=1,
    queries=131,
    keys=131,
    heads=32,
    key_heads=8,
    size=128,
    dtypes=[BF16],
    large=True,
)
"""A large template with a causal mask in bfloat16: 32 heads of queries, which share 8 heads of keys."""

LARGE_WINDOW = attention_template(
    "grouped",
    window_attributes(100, 30),
    batch=1,
    queries=517,
    keys=517,
    key_heads=1,
    size=80,
    dtypes=[F16],
    large=True,
)
"""A large template with a sliding window in float16, in which four heads of queries share one head of keys."""

LARGE_PACKED_LONG = packed_template(
    "long",
    CAUSAL,
    queries=(1031, 1, 517, 259, 240),
    keys=(1031, 5, 517, 259, 240),
    heads=1,
    key_heads=1,
    size=64,
    large=True,
)
"""A large template with a causal mask: packed sequences of very different lengths."""

LARGE_PACKED_HEADS = packed_template(
    "many-heads",
    queries=(131, 67, 3),
    keys=(139, 71, 9),
    heads=32,
    key_heads=8,
    size=80,
    dtypes=[BF16],
    large=True,
)
"""A large template of packed sequences in bfloat16: 32 heads of queries, which share 8 heads of keys."""

NON_DISCRIMINATING = {
    "debug-mask": "nothing falls",
    "dropout-everything": "nothing is left, whatever there was",
    "far": "in half precision scores this large decide by their rounding",
}
"""The reasons why an implementation with a coarse error passes cases, by the start of their labels."""


# Dropout


def dropout_template(
    label: str, p: float = 0.3, *, rows: int = 32, seed: int = SEED, **fields: Any
) -> CaseTemplate[Heads]:
    """Return a template of a batch with dropout.

    The values and the gradient of the result are identity matrices (`queries_keys_values`). The result therefore
    consists of the weights, and shows which weights were dropped.

    Args:
        label: The label of the cases without the element type.
        p: The probability with which a weight is dropped.
        rows: The number of queries, of keys, and of elements of a head.
        seed: The seed of the random generator.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    numbers = {"p_dropout": p, "softmax_scale": 0.125, "gen": seed}
    return CaseTemplate(
        label, Heads(batch=1, queries=rows, keys=rows, heads=4, key_heads=4, size=rows), numbers, **fields
    )


DROPOUT = (
    dropout_template("dropout", dtypes=DtypeSelection.all),
    dropout_template("dropout-most", 0.8),
    dropout_template("dropout-seed-0", seed=0),
    dropout_template("dropout-largest-seed", seed=2**63 - 1),
)
"""Templates of batches with dropout."""

PACKED_DROPOUT = tuple(t.with_sizes(queries=(t.sizes.queries,), keys=(t.sizes.keys,)) for t in DROPOUT)
"""The templates `DROPOUT` with one packed sequence instead of a batch."""

ALL_DROPPED = (attention_template("dropout-everything", {"p_dropout": 1.0, "gen": SEED}),)
"""The template of a batch in which dropout drops every weight, so that all results are 0."""

PACKED_ALL_DROPPED = (packed_template("dropout-everything", {"p_dropout": 1.0, "gen": SEED}),)
"""The template of packed sequences in which dropout drops every weight, so that all results are 0."""
