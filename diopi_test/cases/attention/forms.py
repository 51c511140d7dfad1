"""Flash attention and multi-head attention, of sequences of one length and packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import inf
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.attention.calls import (
    ALIBI_CAUSAL,
    BOTTOM_RIGHT,
    DROPOUT,
    EVERYTHING,
    EXACT_SHARES,
    F32,
    FEATURES,
    FEW_QUERIES,
    GROUPED,
    ONE_LENGTH,
    RAGGED,
    RAGGED_ALIBI_CAUSAL,
    RAGGED_BOTTOM_RIGHT,
    RAGGED_DROPOUT,
    RAGGED_EVERYTHING,
    RAGGED_EXACT_SHARES,
    RAGGED_FEATURES,
    WEAK,
    Heads,
    Shape,
    attention,
    core,
    lse_type,
    numbers,
    ragged,
)
from diopi_test.cases.domains import between
from diopi_test.cases.model import ResultOf, ResultOverride
from diopi_test.cases.template import CaseTemplate, Derive, Types, register, tensor
from diopi_test.cases.tensors import literal

WITHOUT_DROPOUT = {"p_dropout": 0.0, "dropout_p": 0.0, "gen": None, "return_debug_mask": False}


def _saved(forward: str, shapes: Mapping[str, Shape], dtype: Dtype, template: CaseTemplate) -> dict[str, Any]:
    """What a gradient takes of its forward function: result and logarithms of the sums, in this order.

    They are those of a call without dropout, unless everything falls: what falls otherwise is free.
    """
    result, lse = shapes
    everything = {"p_dropout": 1.0, "dropout_p": 1.0} if template.arguments.get("p_dropout") == 1 else {}
    of = ResultOf(forward, result, given={**WITHOUT_DROPOUT, **everything}, unspecified=inf)
    return {
        result: tensor(*shapes[result], compute=of, layout=template.layout),
        lse: tensor(*shapes[lse], dtype=lse_type(dtype), compute=replace(of, result=lse)),
    }


def slopes(sizes: Heads, sequences: int) -> Any:
    """Slopes of ALiBi, of all sequences or of each; None where there are none."""
    shape: Shape = ((), (sizes.heads,), (sequences, sizes.heads))[sizes.slopes]
    return tensor(*shape, domain=between(0.1, 1), dtype=F32) if sizes.slopes else None


def _shapes(sizes: Heads) -> tuple[Shape, Shape]:
    return (sizes.batch, sizes.queries, sizes.heads, sizes.size), (sizes.batch, sizes.keys, sizes.key_heads, sizes.size)


def packed_shapes(sizes: Heads) -> tuple[Shape, Shape]:
    """Of packed queries and of keys."""
    return (sum(sizes.queries), sizes.heads, sizes.size), (sum(sizes.keys), sizes.key_heads, sizes.size)


def _begins(lengths: Sequence[int], dtype: Dtype) -> Any:
    """Where each sequence begins, and the last ends."""
    return literal(np.array([0, *accumulate(lengths)]), dtype)


def of_flash(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, (q, k) = template.sizes, _shapes(template.sizes)
    given = core(template, q, k)
    lse = sizes.batch, sizes.heads, sizes.queries
    return {
        "grad_output": given.pop("g"),
        **given,
        "alibi_slopes": slopes(sizes, sizes.batch),
        **numbers(template),
        **_saved("diopiFlashAttention", {"attention_out": q, "softmax_lse": lse}, dtype, template),
    }


def longest(lengths: Sequence[int]) -> int:
    """More than the longest sequence has."""
    return max(lengths, default=0) + 1


def of_flash_var_len(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, (q, k) = template.sizes, packed_shapes(template.sizes)
    given = core(template, q, k)
    most = longest(sizes.queries), longest(sizes.keys)
    lse = len(sizes.queries), sizes.heads, most[0]
    return {
        "grad_output": given.pop("g"),
        **given,
        "cum_seq_q": _begins(sizes.queries, Dtype.int32),
        "cum_seq_kv": _begins(sizes.keys, Dtype.int32),
        "alibi_slopes": slopes(sizes, len(sizes.queries)),
        "max_seqlen_q": most[0],
        "max_seqlen_kv": most[1],
        **numbers(template),
        **_saved("diopiFlashAttentionVarLen", {"attention_out": q, "softmax_lse": lse}, dtype, template),
    }


NAMES = {"p_dropout": "dropout_p", "softmax_scale": "scale"}
LACKING = ("window_size_left", "window_size_right")


def of_multi_head(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, (q, k) = template.sizes, _shapes(template.sizes)
    given = core(template, q, k)
    lse = sizes.batch, sizes.heads, sizes.queries
    return {
        "grad_out": given.pop("g"),
        **given,
        "return_debug_mask": False,
        **numbers(template, NAMES, LACKING),
        **_saved("diopiMultiHeadAttention", {"out": q, "softmax_lse": lse}, dtype, template),
    }


def of_multi_head_var_len(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, (q, k) = template.sizes, packed_shapes(template.sizes)
    given = core(template, q, k)
    most = longest(sizes.queries), longest(sizes.keys)
    lse = len(sizes.queries), sizes.heads, most[0]
    of_index = Dtype.int64 if sizes.batch else Dtype.int32
    return {
        "grad_out": given.pop("g"),
        **given,
        "cum_seq_q": _begins(sizes.queries, of_index),
        "cum_seq_k": _begins(sizes.keys, of_index),
        "max_q": most[0],
        "max_k": most[1],
        "return_debug_mask": False,
        **numbers(template, NAMES, LACKING),
        **_saved("diopiMultiHeadAttentionVarLen", {"out": q, "softmax_lse": lse}, dtype, template),
    }


def _register(name: str, derive: Derive, both: Sequence[CaseTemplate], forward: Sequence[CaseTemplate]) -> None:
    """Cases of a form and of its gradient."""
    register(name, templates=(*both, *forward), derive=derive, weak=WEAK)
    register(f"{name}Backward", templates=both, derive=derive, weak=WEAK)


def _multi(templates: Sequence[CaseTemplate], **about: Any) -> list[CaseTemplate]:
    """The templates for as many key heads as query heads, most without a debug mask, and no name twice."""
    results = {"debug_attn_mask": None}
    return [
        t.but(arguments={}, key_heads=t.sizes.heads, results={**results, **t.results})
        for t in templates
        if t.label != "as-many-key-heads"
    ]


_register(
    "diopiFlashAttention",
    of_flash,
    (*ONE_LENGTH, *GROUPED, *BOTTOM_RIGHT, *FEATURES, *FEW_QUERIES, *DROPOUT, *EVERYTHING),
    (*ALIBI_CAUSAL, *EXACT_SHARES),
)
_register(
    "diopiFlashAttentionVarLen",
    of_flash_var_len,
    (*RAGGED, *RAGGED_BOTTOM_RIGHT, *RAGGED_FEATURES, *RAGGED_DROPOUT, *RAGGED_EVERYTHING),
    (*RAGGED_ALIBI_CAUSAL, *RAGGED_EXACT_SHARES),
)

WRITTEN = {"return_debug_mask": True}


def _debug(*shape: int) -> Mapping[str, ResultOverride]:
    return {"debug_attn_mask": ResultOverride(shape=shape)}


_register(
    "diopiMultiHeadAttention",
    of_multi_head,
    _multi((*ONE_LENGTH, *BOTTOM_RIGHT, *DROPOUT, *EVERYTHING)),
    [
        t.but(key_heads=4)
        for t in (
            attention("debug-mask", WRITTEN, results={"debug_attn_mask": ResultOverride()}),
            attention("debug-mask-not-wanted", results=_debug(0)),
        )
    ]
    + _multi(EXACT_SHARES),
)
_register(
    "diopiMultiHeadAttentionVarLen",
    of_multi_head_var_len,
    _multi(
        (
            *RAGGED,
            *RAGGED_BOTTOM_RIGHT,
            *RAGGED_DROPOUT,
            *RAGGED_EVERYTHING,
            ragged("int32", batch=0, dtypes=Types.every),
        )
    ),
    [
        t.but(key_heads=4)
        for t in (
            ragged("debug-mask", WRITTEN, results={"debug_attn_mask": ResultOverride()}),
            ragged("debug-mask-not-wanted", results=_debug(0)),
        )
    ]
    + _multi(RAGGED_EXACT_SHARES),
)
