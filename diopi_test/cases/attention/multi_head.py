"""Cases of multi-head attention and its gradient, for batches and for packed sequences.

Most templates are those of `diopi_test.cases.attention.calls`. This module derives the arguments from their sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.attention.arguments import (
    length_bound,
    numeric_arguments,
    packed_shapes_of,
    queries_keys_values,
    register_with_gradient,
    saved_results,
    shapes_of,
    start_positions,
)
from diopi_test.cases.attention.calls import (
    ALL_DROPPED,
    BATCHES,
    BOTTOM_RIGHT,
    DROPOUT,
    EXACT_WEIGHTS,
    LARGE_HEADS,
    LARGE_LONG,
    LARGE_PACKED_HEADS,
    LARGE_PACKED_LONG,
    PACKED,
    PACKED_ALL_DROPPED,
    PACKED_BOTTOM_RIGHT,
    PACKED_DROPOUT,
    PACKED_EXACT_WEIGHTS,
    Heads,
    attention_template,
    packed_template,
)
from diopi_test.cases.case import ResultOverride
from diopi_test.cases.template import CaseTemplate, DtypeSelection

ARGUMENT_NAMES = {"p_dropout": "dropout_p", "softmax_scale": "scale"}
"""The names of arguments of multi-head attention that differ from those in the shared templates, by the latter."""

MISSING_ARGUMENTS = ("window_size_left", "window_size_right")
"""The arguments of the shared templates that multi-head attention does not have."""


def multi_head_arguments(template: CaseTemplate[Heads], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiMultiHeadAttention` and its gradient for the sizes of a template."""
    sizes, (q, k) = template.sizes, shapes_of(template.sizes)
    tensors = queries_keys_values(template, q, k)
    lse = sizes.batch, sizes.heads, sizes.queries
    return {
        "grad_out": tensors.pop("g"),
        **tensors,
        "return_debug_mask": False,
        **numeric_arguments(template, ARGUMENT_NAMES, MISSING_ARGUMENTS),
        **saved_results("diopiMultiHeadAttention", {"out": q, "softmax_lse": lse}, dtype, template),
    }


def multi_head_var_len_arguments(template: CaseTemplate[Heads], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiMultiHeadAttentionVarLen` and its gradient for the sizes of a template.

    The start positions of the sequences are int64, or int32 if the template has a batch size of 0.
    """
    sizes, (q, k) = template.sizes, packed_shapes_of(template.sizes)
    tensors = queries_keys_values(template, q, k)
    max_lengths = length_bound(sizes.queries), length_bound(sizes.keys)
    lse = len(sizes.queries), sizes.heads, max_lengths[0]
    index_dtype = Dtype.int64 if sizes.batch else Dtype.int32
    return {
        "grad_out": tensors.pop("g"),
        **tensors,
        "cum_seq_q": start_positions(sizes.queries, index_dtype),
        "cum_seq_k": start_positions(sizes.keys, index_dtype),
        "max_q": max_lengths[0],
        "max_k": max_lengths[1],
        "return_debug_mask": False,
        **numeric_arguments(template, ARGUMENT_NAMES, MISSING_ARGUMENTS),
        **saved_results("diopiMultiHeadAttentionVarLen", {"out": q, "softmax_lse": lse}, dtype, template),
    }


def _multi_head_templates(templates: Sequence[CaseTemplate[Heads]]) -> list[CaseTemplate[Heads]]:
    """Return shared templates adapted to multi-head attention, which has one key head per query head.

    The result `debug_attn_mask` is omitted unless a template has an override for it. The template "as-many-key-heads"
    is left out, because it would be a duplicate.
    """
    results = {"debug_attn_mask": None}
    return [
        t.with_sizes(key_heads=t.sizes.heads).replace(arguments={}, results={**results, **t.results})
        for t in templates
        if t.label != "as-many-key-heads"
    ]


WITH_DEBUG_MASK = {"return_debug_mask": True}
"""The argument that requests the result `debug_attn_mask`, which shows the dropped weights."""


def _debug_mask(*shape: int) -> Mapping[str, ResultOverride]:
    """Return the result overrides with which the caller allocates a `debug_attn_mask` of the shape `shape`."""
    return {"debug_attn_mask": ResultOverride(shape=shape)}


register_with_gradient(
    "diopiMultiHeadAttention",
    multi_head_arguments,
    _multi_head_templates((*BATCHES, *BOTTOM_RIGHT, *DROPOUT, *ALL_DROPPED, LARGE_LONG, LARGE_HEADS)),
    [
        t.with_sizes(key_heads=4)
        for t in (
            attention_template("debug-mask", WITH_DEBUG_MASK, results={"debug_attn_mask": ResultOverride()}),
            attention_template("debug-mask-not-wanted", results=_debug_mask(0)),
        )
    ]
    + _multi_head_templates(EXACT_WEIGHTS),
)
register_with_gradient(
    "diopiMultiHeadAttentionVarLen",
    multi_head_var_len_arguments,
    _multi_head_templates(
        (
            *PACKED,
            *PACKED_BOTTOM_RIGHT,
            *PACKED_DROPOUT,
            *PACKED_ALL_DROPPED,
            packed_template("int32", batch=0, dtypes=DtypeSelection.all),
            LARGE_PACKED_LONG,
            LARGE_PACKED_HEADS,
        )
    ),
    [
        t.with_sizes(key_heads=4)
        for t in (
            packed_template("debug-mask", WITH_DEBUG_MASK, results={"debug_attn_mask": ResultOverride()}),
            packed_template("debug-mask-not-wanted", results=_debug_mask(0)),
        )
    ]
    + _multi_head_templates(PACKED_EXACT_WEIGHTS),
)
