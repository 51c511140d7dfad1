"""Cases of customized flash attention and its gradient, for batches and for packed sequences.

The caller chooses a mask and the layout, which is the order of the axes: B stands for the batch, S for the sequence, N
for the heads, D for the head size, and H for heads and head size in one axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.attention.arguments import (
    WITHOUT_DROPOUT,
    length_bound,
    numeric_arguments,
    packed_shapes_of,
    queries_keys_values,
    register_with_gradient,
    slopes,
)
from diopi_test.cases.attention.calls import (
    ALL_DROPPED,
    CAUSAL,
    DROPOUT,
    EXACT_WEIGHTS,
    F16,
    F32,
    LARGE_HEADS,
    LARGE_LONG,
    LARGE_PACKED_HEADS,
    LARGE_PACKED_LONG,
    LARGE_SCORES,
    NON_DISCRIMINATING,
    OPEN_CLASS,
    PACKED_ALL_DROPPED,
    PACKED_DROPOUT,
    PACKED_EXACT_WEIGHTS,
    STRIDED,
    TRANSPOSED,
    Heads,
    Shape,
    attention_template,
    packed_template,
    square_template,
    window_attributes,
)
from diopi_test.cases.case import ResultOf
from diopi_test.cases.domains import alternating_rows, uniform
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, tensor
from diopi_test.cases.tensors import literal

STATISTIC_COPIES = 8
"""The length of the last axis of the saved statistics, along which the functions repeat each number."""

SAVED_STATISTICS = ("softmax_max", "softmax_sum")
"""The results of the forward function that its gradient takes: the maximum and the sum of the exponentials."""


def _mask(kind: str, queries: int, keys: int) -> Any:
    """Return a mask of the shape (queries, keys), which is true for the keys to which a query does not attend.

    Args:
        kind: "triangle" masks the keys after the position of the query, "some" masks every third score, "both" masks
            what either of them masks, and "all-but-first" masks all keys except the first. "" stands for no mask.
        queries: The number of queries.
        keys: The number of keys.

    Returns:
        The tensor template, or None if there is no mask.
    """
    is_later = np.arange(keys) > np.arange(queries)[:, None]
    every_third = (np.arange(queries * keys) % 3 == 1).reshape(queries, keys)
    masks = {
        "triangle": is_later,
        "some": every_third,
        "both": is_later | every_third,
        "all-but-first": np.arange(keys) > 0 * is_later,
    }
    return literal(masks[kind], Dtype.bool) if kind else None


def _mask_per_sequence(batch: int, queries: int, keys: int) -> Any:
    """Return a mask of the shape (batch, 1, queries, keys), which masks every fifth score and differs per sequence."""
    return literal((np.arange(batch * queries * keys) % 5 == 1).reshape(batch, 1, queries, keys), Dtype.bool)


def _shape_in_layout(sizes: Heads, rows: int, heads: int) -> Shape:
    """Return the shape of queries or keys in the layout of the call.

    Args:
        sizes: The sizes of the call, with one of the layouts "BSND", "BNSD", "BSH" and "SBH".
        rows: The length of a sequence.
        heads: The number of heads.

    Returns:
        The shape.
    """
    match sizes.layout:
        case "BSND":
            return sizes.batch, rows, heads, sizes.size
        case "BNSD":
            return sizes.batch, heads, rows, sizes.size
        case "BSH":
            return sizes.batch, rows, heads * sizes.size
        case _:
            return rows, sizes.batch, heads * sizes.size


def _result_templates(forward: str, shape: Shape, result: Shape, template: CaseTemplate[Heads]) -> dict[str, Any]:
    """Return the results of the forward function that the gradient function takes as arguments.

    The cases of the gradient have no dropout. Therefore `softmax_out` is empty and `dropout_mask` is missing.

    Args:
        forward: The name of the forward function.
        shape: The shape of the statistics without the last axis.
        result: The shape of the attention result.
        template: The template of the gradient's cases.

    Returns:
        The tensor templates by name.
    """
    saved = {
        n: ResultOf(forward, n, extra_arguments=WITHOUT_DROPOUT, unspecified=None)
        for n in ("attention_out", *SAVED_STATISTICS)
    }
    return {
        "attention_out": tensor(*result, compute=saved["attention_out"], layout=template.layout),
        **{name: tensor(*shape, STATISTIC_COPIES, dtype=F32, compute=saved[name]) for name in SAVED_STATISTICS},
        "softmax_out": tensor(0, dtype=F32),
        "dropout_mask": None,
    }


def customized_arguments(template: CaseTemplate[Heads], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiCustomizedFlashAttention` and its gradient for the sizes of a template."""
    sizes = template.sizes
    q = _shape_in_layout(sizes, sizes.queries, sizes.heads)
    tensors = queries_keys_values(template, q, _shape_in_layout(sizes, sizes.keys, sizes.key_heads))
    statistics = sizes.batch, sizes.heads, sizes.queries
    return {
        "grad_output": tensors.pop("g"),
        **tensors,
        "alibi_slopes": slopes(sizes, sizes.batch),
        "attention_mask": _mask(sizes.mask, sizes.queries, sizes.keys),
        **numeric_arguments(template),
        "head_num": sizes.heads,
        "input_layout": sizes.layout,
        **_result_templates("diopiCustomizedFlashAttention", statistics, q, template),
    }


def customized_var_len_arguments(template: CaseTemplate[Heads], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiCustomizedFlashAttentionVarLen` and its gradient for the sizes of a template."""
    sizes, (q, k) = template.sizes, packed_shapes_of(template.sizes)
    tensors = queries_keys_values(template, q, k)
    max_lengths = length_bound(sizes.queries), length_bound(sizes.keys)
    return {
        "grad_output": tensors.pop("g"),
        **tensors,
        "cum_seq_q": tuple(accumulate(sizes.queries)),
        "cum_seq_kv": tuple(accumulate(sizes.keys)),
        "alibi_slopes": slopes(sizes, len(sizes.queries)),
        "attention_mask": _mask(sizes.mask, *max_lengths),
        "max_seqlen_q": max_lengths[0],
        "max_seqlen_kv": max_lengths[1],
        **numeric_arguments(template),
        **_result_templates("diopiCustomizedFlashAttentionVarLen", q[:2], q, template),
    }


CUSTOMIZED_BATCHES = (
    attention_template("", batch=2, heads=2, **SMOKE_IN_ALL_DTYPES),
    *(
        attention_template(layout.lower(), layout=layout, batch=3, heads=4, size=4, dtypes=DtypeSelection.all)
        for layout in ("BNSD", "BSH", "SBH")
    ),
    square_template("causal", CAUSAL, batch=1, mask="triangle", **SMOKE_IN_ALL_DTYPES),
    square_template("causal-sbh", CAUSAL, mask="triangle", layout="SBH"),
    square_template("causal-bnsd", CAUSAL, mask="triangle", layout="BNSD"),
    square_template(
        "causal-and-some-hidden",
        CAUSAL,
        queries=4,
        keys=4,
        heads=2,
        key_heads=1,
        size=4,
        mask="both",
        dtypes=DtypeSelection.all,
    ),
    attention_template("mask", mask="some", dtypes=DtypeSelection.all),
    attention_template("mask-bsh", mask="some", layout="BSH"),
    attention_template("mask-of-each", {"attention_mask": _mask_per_sequence(3, 3, 5)}, batch=3, size=4, dtypes=[F32]),
    attention_template("mask-all-but-first", mask="all-but-first", dtypes=[F32]),
    attention_template("as-many-key-heads", key_heads=4),
    attention_template("one-key-head-bsh", key_heads=1, layout="BSH"),
    attention_template("one-key-head-sbh", key_heads=1, layout="SBH"),
    attention_template("head-size-64", size=64, batch=1, heads=2, dtypes=[F16]),
    attention_template("head-size-80-bsh", size=80, batch=1, heads=2, layout="BSH"),
    attention_template("head-size-128", size=128, batch=1, heads=2, layout="SBH"),
    attention_template("long", queries=4, keys=300, batch=1, heads=2, dtypes=DtypeSelection.all),
    attention_template("steep", domains=LARGE_SCORES, mask="some", dtypes=DtypeSelection.all),
    attention_template("scale-1", {"softmax_scale": 1.0}),
    attention_template("transposed", **TRANSPOSED),
    attention_template("strided", **STRIDED, layout="BSH", dtypes=DtypeSelection.all),
    attention_template("no-batch", batch=0),
    LARGE_LONG.with_sizes(mask="triangle"),
    LARGE_HEADS.with_sizes(mask="triangle", layout="SBH"),
    square_template("window", window_attributes(2, 1), **OPEN_CLASS),
    square_template("causal-window", {**CAUSAL, **window_attributes(2, -1)}, mask="triangle", **OPEN_CLASS),
    square_template("alibi", slopes=1, **OPEN_CLASS),
    square_template("alibi-of-each", slopes=2, layout="BNSD", **OPEN_CLASS),
)
"""Templates of batches of sequences of equal length, with all layouts and masks."""

ACCUMULATION_DOMAINS = {
    "q": uniform(0.5, 1),
    "k": alternating_rows(8, uniform(0.9, 1), uniform(-1, -0.9)),
    "v": alternating_rows(4, uniform(0.9, 1), uniform(2, 2.2), uniform(0.5, 0.6), uniform(1.2, 1.3)),
}
"""Domains for two heads of size 4 whose results show the type in which an implementation accumulates.

Every second key is close to 1 in all elements, and the others are close to −1. The values are positive, from another
interval for each kind of key and each head. Their long sums lose digits in a 16-bit accumulator.
"""

CUSTOMIZED_PACKED = (
    packed_template("", queries=(3, 1, 4), keys=(4, 2, 3), heads=2, size=4, **SMOKE_IN_ALL_DTYPES),
    packed_template(
        "causal", CAUSAL, queries=(3, 1, 4), keys=(3, 1, 4), heads=2, size=4, mask="triangle", **SMOKE_IN_ALL_DTYPES
    ),
    packed_template("one-sequence", queries=(5,), keys=(6,), dtypes=DtypeSelection.all),
    packed_template("mask", mask="some", dtypes=DtypeSelection.all),
    packed_template("causal-and-some-hidden", CAUSAL, queries=(5, 4), keys=(5, 4), mask="both"),
    packed_template("many-sequences", queries=(1,) * 17, keys=(3, 5) * 8 + (2,), heads=2, mask="some"),
    packed_template("without-rows", queries=(3, 0, 2), keys=(4, 2, 3)),
    packed_template("as-many-key-heads", key_heads=4),
    packed_template("one-key-head", key_heads=1),
    packed_template("head-size-64", size=64, dtypes=[F16]),
    packed_template("head-size-80", size=80, heads=2),
    packed_template("head-size-128", size=128, heads=2),
    packed_template("long", queries=(2, 3), keys=(300, 40), heads=2, size=4, dtypes=DtypeSelection.all),
    packed_template(
        "accumulated", queries=(4, 3), keys=(300, 40), heads=2, size=4, domains=ACCUMULATION_DOMAINS, dtypes=half
    ),
    packed_template("steep", domains=LARGE_SCORES, dtypes=DtypeSelection.all),
    packed_template("scale-1", {"softmax_scale": 1.0}),
    packed_template("transposed", **TRANSPOSED),
    packed_template("strided", **STRIDED, dtypes=DtypeSelection.all),
    LARGE_PACKED_LONG.with_sizes(mask="triangle", keys=LARGE_PACKED_LONG.sizes.queries),
    LARGE_PACKED_HEADS.with_sizes(mask="some"),
    packed_template("window", window_attributes(2, 1), queries=(5, 4), keys=(5, 4), **OPEN_CLASS),
    packed_template("alibi", queries=(5, 4), keys=(5, 4), slopes=1, **OPEN_CLASS),
    packed_template("alibi-of-each", queries=(5, 4), keys=(5, 4), slopes=2, **OPEN_CLASS),
)
"""Templates of packed sequences: sequences of different lengths, concatenated in one tensor."""

CUSTOMIZED_REASONS = {**NON_DISCRIMINATING, "mask-all-but-first": "all queries see the first key alone"}
"""The reasons why an implementation with a coarse error passes cases, by the start of their labels."""

# Only forward functions are tested with dropout: their gradients need a mask that only the implementation knows.
register_with_gradient(
    "diopiCustomizedFlashAttention",
    customized_arguments,
    CUSTOMIZED_BATCHES,
    (*DROPOUT, *ALL_DROPPED, *EXACT_WEIGHTS),
    CUSTOMIZED_REASONS,
)
register_with_gradient(
    "diopiCustomizedFlashAttentionVarLen",
    customized_var_len_arguments,
    CUSTOMIZED_PACKED,
    (*PACKED_DROPOUT, *PACKED_ALL_DROPPED, *PACKED_EXACT_WEIGHTS),
    CUSTOMIZED_REASONS,
)
