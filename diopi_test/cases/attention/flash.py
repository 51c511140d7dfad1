"""Cases of flash attention and its gradient, for batches and for packed sequences.

The templates are those of `diopi_test.cases.attention.calls`. This module derives the arguments from their sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    slopes,
    start_positions,
)
from diopi_test.cases.attention.calls import (
    ALIBI_CAUSAL,
    ALL_DROPPED,
    BATCHES,
    BOTTOM_RIGHT,
    DROPOUT,
    EXACT_WEIGHTS,
    GROUPED,
    LARGE_HEADS,
    LARGE_LONG,
    LARGE_PACKED_HEADS,
    LARGE_PACKED_LONG,
    LARGE_WINDOW,
    OPEN_WINDOWS_AND_ALIBI,
    PACKED,
    PACKED_ALIBI_CAUSAL,
    PACKED_ALL_DROPPED,
    PACKED_BOTTOM_RIGHT,
    PACKED_DROPOUT,
    PACKED_EXACT_WEIGHTS,
    PACKED_WINDOWS_AND_ALIBI,
    WINDOWS_AND_ALIBI,
    Heads,
)
from diopi_test.cases.template import CaseTemplate


def flash_arguments(template: CaseTemplate[Heads], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiFlashAttention` and its gradient for the sizes of a template."""
    sizes, (q, k) = template.sizes, shapes_of(template.sizes)
    tensors = queries_keys_values(template, q, k)
    lse = sizes.batch, sizes.heads, sizes.queries
    return {
        "grad_output": tensors.pop("g"),
        **tensors,
        "alibi_slopes": slopes(sizes, sizes.batch),
        **numeric_arguments(template),
        **saved_results("diopiFlashAttention", {"attention_out": q, "softmax_lse": lse}, dtype, template),
    }


def flash_var_len_arguments(template: CaseTemplate[Heads], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiFlashAttentionVarLen` and its gradient for the sizes of a template."""
    sizes, (q, k) = template.sizes, packed_shapes_of(template.sizes)
    tensors = queries_keys_values(template, q, k)
    max_lengths = length_bound(sizes.queries), length_bound(sizes.keys)
    lse = len(sizes.queries), sizes.heads, max_lengths[0]
    return {
        "grad_output": tensors.pop("g"),
        **tensors,
        "cum_seq_q": start_positions(sizes.queries, Dtype.int32),
        "cum_seq_kv": start_positions(sizes.keys, Dtype.int32),
        "alibi_slopes": slopes(sizes, len(sizes.queries)),
        "max_seqlen_q": max_lengths[0],
        "max_seqlen_kv": max_lengths[1],
        **numeric_arguments(template),
        **saved_results("diopiFlashAttentionVarLen", {"attention_out": q, "softmax_lse": lse}, dtype, template),
    }


register_with_gradient(
    "diopiFlashAttention",
    flash_arguments,
    (
        *BATCHES,
        *GROUPED,
        *BOTTOM_RIGHT,
        *WINDOWS_AND_ALIBI,
        *OPEN_WINDOWS_AND_ALIBI,
        *DROPOUT,
        *ALL_DROPPED,
        LARGE_LONG,
        LARGE_HEADS,
        LARGE_WINDOW,
    ),
    (*ALIBI_CAUSAL, *EXACT_WEIGHTS),
)
register_with_gradient(
    "diopiFlashAttentionVarLen",
    flash_var_len_arguments,
    (
        *PACKED,
        *PACKED_BOTTOM_RIGHT,
        *PACKED_WINDOWS_AND_ALIBI,
        *PACKED_DROPOUT,
        *PACKED_ALL_DROPPED,
        LARGE_PACKED_LONG,
        LARGE_PACKED_HEADS,
    ),
    (*PACKED_ALIBI_CAUSAL, *PACKED_EXACT_WEIGHTS),
)
