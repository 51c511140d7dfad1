"""Calls of attention as templates, whatever the form: sizes, numbers, domains.

Numbers have the names they have in `diopiFlashAttention`; a form that lacks one, or calls it otherwise, says so.
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

Shape = tuple[int, ...]
F16, BF16, F32, F64 = floating
OPEN: dict[str, Any] = {"case_class": CaseClass.open}


@dataclass(frozen=True, kw_only=True)
class Heads:
    """The sizes of a call.

    Attributes:
        batch: The number of sequences of one length.
        queries, keys: The numbers of queries and of keys; for packed sequences, the numbers of each sequence.
        heads, key_heads: The numbers of heads of queries, and of keys and values.
        size: The size of a head.
        slopes: The number of axes of the slopes of ALiBi, 1 or 2; 0 for a call without slopes.
        layout: The layout that the caller chooses, in forms that have several.
        mask: The keys that are hidden, in forms that have a mask.
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


NUMBERS: Mapping[str, Any] = {
    "p_dropout": 0.0,
    "softmax_scale": 0.5,
    "is_causal": False,
    "window_size_left": -1,
    "window_size_right": -1,
    "gen": None,
}
"""The usual numbers of a call."""

SEED = 20_240_229

LONG = 300
"""A number of keys that exceeds one block of most implementations."""


def attention(label: str, numbers: Mapping[str, Any] | None = None, **fields: Any) -> CaseTemplate[Heads]:
    """Return a template whose call has these unusual `numbers`; `fields` are sizes and fields of the template."""
    sizes = {field.name: fields.pop(field.name) for field in dataclasses.fields(Heads) if field.name in fields}
    laid = fields.pop("laid", {})
    return CaseTemplate(label, Heads(**sizes), numbers or {}, **laid, **fields)


def square(label: str, numbers: Mapping[str, Any] | None = None, **fields: Any) -> CaseTemplate[Heads]:
    """Return a template with as many queries as keys, so that both conventions of a causal mask agree."""
    return attention(label, numbers, **{"queries": 6, "keys": 6, **fields})


def ragged(label: str, numbers: Mapping[str, Any] | None = None, **fields: Any) -> CaseTemplate[Heads]:
    """Return a template of packed sequences of different lengths."""
    return attention(label, numbers, **{"queries": (5, 4), "keys": (6, 4), **fields})


CAUSAL = {"is_causal": True}
TRANSPOSED, STRIDED = {"laid": same_layout(transposed)}, {"laid": same_layout(strided)}


def window(preceding: int, following: int) -> Mapping[str, int]:
    """Return the attributes of a sliding window of so many preceding and following keys."""
    return {"window_size_left": preceding, "window_size_right": following}


FAR = {"q": normal(1, 15), "k": normal(1, 15)}
"""Queries and keys for which the exponential of a score overflows."""

STEEP = {"q": normal(6)}
NOT_NUMBERS = {"q": choice([1.0, nan, *np.linspace(-2, 2, 47)])}


def _in_one_direction(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw heads of 8 equal numbers each, with random signs and a few sizes."""
    return rng.choice([-64.0, -32.0, -16.0, 16.0, 32.0, 64.0], count // 8).repeat(8)


def _alternating_signs(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw rows of two heads of 8 equal numbers each, whose sign alternates from row to row."""
    return np.where(np.arange(count) // 16 % 2, -32.0, 32.0)


EXACT: dict[str, Any] = {
    "heads": 2,
    "key_heads": 2,
    "size": 8,
    "domains": {"q": _in_one_direction, "k": _alternating_signs, "v": integer_values(-8, 8)},
    "exact": ("attention_out", "out"),
    "dtypes": DtypeSelection.all,
}
"""Every other key has the same score, and the rest one so far below that their shares are 0, not merely small.

Where there are 4, 8 or 16 keys, the shares are powers of two, and all that is added is exact.
"""

ONE_LENGTH = (
    attention("", batch=1, **SMOKE_IN_ALL_DTYPES),
    square("causal", CAUSAL, batch=1, **SMOKE_IN_ALL_DTYPES),
    attention("as-many-key-heads", key_heads=4, dtypes=DtypeSelection.all),
    attention("scale-1", {"softmax_scale": 1.0}),
    attention("negative-scale", {"softmax_scale": -0.7}),
    attention("head-size-64", size=64, batch=1, dtypes=DtypeSelection.all),
    attention("head-size-80", size=80, batch=1, heads=2),
    attention("head-size-128", size=128, batch=1, heads=2, dtypes=half),
    attention("head-size-3", size=3, heads=2),
    attention("one-query", queries=1, keys=9),
    attention("long", queries=4, keys=LONG, batch=1, heads=2, dtypes=DtypeSelection.all),
    square("long-causal", CAUSAL, queries=LONG, keys=LONG, batch=1, heads=1, key_heads=1, size=4),
    attention("far", domains=FAR, dtypes=(F32, BF16)),
    attention("steep", domains=STEEP, dtypes=DtypeSelection.all),
    attention("transposed", **TRANSPOSED),
    attention("strided", **STRIDED, dtypes=DtypeSelection.all),
    attention("nan", domains=NOT_NUMBERS, batch=3, heads=2),
    attention("no-batch", batch=0),
    attention("no-queries", queries=0),
)
"""Templates of sequences of one length."""

GROUPED = (
    attention("groups-of-2", heads=6, key_heads=3),
    attention("one-key-head", key_heads=1, dtypes=DtypeSelection.all),
)

BOTTOM_RIGHT = (
    attention("causal-few-queries", CAUSAL, queries=3, keys=7, **OPEN),
    attention("causal-few-keys", CAUSAL, queries=7, keys=3, **OPEN),
)

FEATURES = (
    square("window", window(2, 1), dtypes=DtypeSelection.all),
    square("window-left", window(1, -1)),
    square("window-right", window(-1, 2)),
    square("window-of-one-place", window(0, 2)),
    square("causal-window", {**CAUSAL, **window(2, -1)}, dtypes=DtypeSelection.all),
    square("causal-window-both", {**CAUSAL, **window(1, 3)}),
    square("alibi", slopes=1, dtypes=DtypeSelection.all),
    square("alibi-of-each", slopes=2),
    square("alibi-window", window(3, 2), slopes=1),
)
"""Templates of windows and of biases by distance."""

FEW_QUERIES = (
    attention("window-few-queries", window(2, 1), queries=3, keys=7, **OPEN),
    attention("alibi-few-queries", slopes=1, queries=3, keys=7, **OPEN),
)

EXACT_SHARES = (attention("exact", keys=16, queries=5, **EXACT),)
RAGGED_EXACT_SHARES = (ragged("exact", queries=(3, 2), keys=(8, 4), **EXACT),)
"""Templates for forward functions only: gradients recompute the weights from a rounded logarithm."""

ALIBI_CAUSAL = (square("alibi-causal", CAUSAL, slopes=1, dtypes=DtypeSelection.all),)
"""Templates for forward functions only: the logarithms of the sums may lack a part that gradients would need."""

RAGGED = (
    ragged("", queries=(3, 1, 4), keys=(4, 2, 3), heads=2, size=4, **SMOKE_IN_ALL_DTYPES),
    ragged("causal", CAUSAL, queries=(3, 1, 4), keys=(3, 1, 4), heads=2, size=4, **SMOKE_IN_ALL_DTYPES),
    ragged("one-sequence", queries=(5,), keys=(6,), dtypes=DtypeSelection.all),
    ragged("without-rows", queries=(3, 0, 2), keys=(4, 2, 3)),
    ragged("without-keys", queries=(3, 2, 2), keys=(4, 0, 3)),
    ragged("many-sequences", queries=(1,) * 17, keys=(3, 5) * 8 + (2,), heads=2),
    ragged("head-size-64", size=64, dtypes=half),
    ragged("head-size-80", size=80, heads=2),
    ragged("head-size-128", size=128, heads=2),
    ragged("long", queries=(2, 3), keys=(LONG, 40), heads=2, size=4, dtypes=DtypeSelection.all),
    ragged("steep", domains=STEEP, dtypes=DtypeSelection.all),
    ragged("scale-1", {"softmax_scale": 1.0}),
    ragged("causal-same-lengths", CAUSAL, queries=(5, 2, 3), keys=(5, 2, 3), dtypes=DtypeSelection.all),
    ragged("transposed", **TRANSPOSED),
    ragged("strided", **STRIDED, dtypes=DtypeSelection.all),
    ragged("no-sequences", queries=(), keys=()),
    ragged("as-many-key-heads", key_heads=4),
)
"""Templates of packed sequences."""

RAGGED_BOTTOM_RIGHT = (
    ragged("causal-few-queries", CAUSAL, keys=(6, 7), dtypes=DtypeSelection.all),
    ragged("causal-few-keys", CAUSAL, keys=(3, 4)),
)

RAGGED_FEATURES = (
    ragged("window", window(2, 1), dtypes=DtypeSelection.all),
    ragged("window-left", window(1, -1)),
    ragged("window-right", window(-1, 0)),
    ragged("causal-window", {**CAUSAL, **window(2, -1)}, dtypes=DtypeSelection.all),
    ragged("alibi", slopes=1, dtypes=DtypeSelection.all),
    ragged("alibi-of-each", slopes=2),
)
RAGGED_ALIBI_CAUSAL = (ragged("alibi-causal", CAUSAL, slopes=1),)

# Sequences are long in calls with few heads, and there are many heads in calls with few rows: the work is per head.

LARGE_LONG = attention("long", CAUSAL, batch=1, queries=2048, keys=2048, heads=1, key_heads=1, size=64, large=True)
LARGE_HEADS = square(
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
LARGE_WINDOW = attention(
    "grouped", window(100, 30), batch=1, queries=517, keys=517, key_heads=1, size=80, dtypes=[F16], large=True
)
LARGE_PACKED_LONG = ragged(
    "long",
    CAUSAL,
    queries=(1031, 1, 517, 259, 240),
    keys=(1031, 5, 517, 259, 240),
    heads=1,
    key_heads=1,
    size=64,
    large=True,
)
LARGE_PACKED_HEADS = ragged(
    "many-heads",
    queries=(131, 67, 3),
    keys=(139, 71, 9),
    heads=32,
    key_heads=8,
    size=80,
    dtypes=[BF16],
    large=True,
)

NON_DISCRIMINATING = {
    "debug-mask": "nothing falls",
    "dropout-everything": "nothing is left, whatever there was",
    "far": "in half precision scores this large decide by their rounding",
}


# Dropout


def dropped(label: str, p: float = 0.3, *, rows: int = 32, seed: int = SEED, **fields: Any) -> CaseTemplate[Heads]:
    """Return a template with dropout whose scores are exact.

    The rows of the values, and of the gradient of the result, are those of the identity: they show what was dropped.

    Args:
        label: the label of the cases.
        p: the probability with which a weight is dropped.
        rows: the numbers of queries and keys.
        seed: the seed of the generator.
        **fields: further fields of the template.

    Returns:
        The template.
    """
    numbers = {"p_dropout": p, "softmax_scale": 0.125, "gen": seed}
    return CaseTemplate(
        label, Heads(batch=1, queries=rows, keys=rows, heads=4, key_heads=4, size=rows), numbers, **fields
    )


DROPOUT = (
    dropped("dropout", dtypes=DtypeSelection.all),
    dropped("dropout-most", 0.8),
    dropped("dropout-seed-0", seed=0),
    dropped("dropout-largest-seed", seed=2**63 - 1),
)
RAGGED_DROPOUT = tuple(t.with_sizes(queries=(t.sizes.queries,), keys=(t.sizes.keys,)) for t in DROPOUT)
EVERYTHING = (attention("dropout-everything", {"p_dropout": 1.0, "gen": SEED}),)
RAGGED_EVERYTHING = (ragged("dropout-everything", {"p_dropout": 1.0, "gen": SEED}),)
