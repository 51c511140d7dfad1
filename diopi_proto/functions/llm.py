"""Kernels for serving large language models: token caches, decoding and prefill attention, penalties, fused all-reduce.

Attention means the formula of the family `attention`: the softmax of scaled scores, then the weighted sum of the
values. Query head h uses key and value head h // (query heads / key heads). The scale is always 1/√D, where D is the
head size.

A token cache stores k or v in a tensor of shape [slots, H, D], with one token per slot:

- `b_seq_len` [B] contains the lengths of the sequences, 1 ≤ len_b ≤ max_input_len ≤ N.
- The table `b_loc` [B, N] lists the slots of each sequence, right-aligned at `max_input_len`. Token t of sequence b, 0
  ≤ t < len_b, is in slot(b, t) = b_loc[b, max_input_len − len_b + t].
- `b_start_loc` [B] contains the index at which each sequence begins in packed data.

Slots and positions are int32 or int64. The caller must ensure that they are inside their tensors; the call does not
check them.

Half-precision input is accumulated in float32. Calls with empty tensors succeed. Calls whose shapes do not match are
rejected.

Sources: LightLLM, token attention; Kwon et al., "PagedAttention" (2023).
"""

from typing import Annotated, Literal

from diopi_proto.callers import CallForm
from diopi_proto.declaration import prototype
from diopi_proto.dtypes import boolean as truth_values
from diopi_proto.dtypes import floating, index, narrow, real
from diopi_proto.facts import HoldsTruth, SizesFollow
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Context,
    Extents,
    In,
    InOut,
    Out,
    PositiveExtent,
    PositiveExtents,
    Sized,
    Text,
    c_int,
    i64,
)
from diopi_proto.types import Dtype

int32 = (Dtype.int32,)
"""The element type of tables of blocks and of token counts."""

SizedMask = Annotated[In, HoldsTruth(), SizesFollow()]
"""A mask whose shape follows from the preceding arguments."""

IGNORES_MAX_LENGTH = Ignored(("max_input_len",), "the lengths determine it", read=Read.value)
"""No result depends on `max_input_len`."""

IGNORES_OTHER_KV_INDEX = Ignored(("other_kv_index",), "it has no effect on the result", read=Read.value)
"""No result depends on `other_kv_index`."""

IGNORES_MAX_IDS = Ignored(("p_max_len_in_batch",), "`p_cumsum_seq_len` determines it", read=Read.value)
"""No result depends on `p_max_len_in_batch`."""

IGNORES_HINTS = Ignored(("comm_turn", "stream_mode"), "they are hints for the implementation", read=Read.value)
"""No result depends on `comm_turn` and `stream_mode`."""

IGNORES_GROUP_OF_ONE = Ignored(
    ("group",), "the group has one rank, so the sum is the product of this rank", read=Read.value
)
"""No result depends on `group`, which contains one rank in the suite."""

LMDEPLOY = "LMDeploy's DIPU backend (dlinfer)"
"""The caller whose argument shapes `CallForm` describes."""

CACHE_OF_ONE_BLOCK = dict.fromkeys(("k", "v"), (1, "slots", "num_kv_heads·dim"))
"""The shapes of `k` and `v` if a caller passes the cache as one block."""

PAGED_BY_CALLERS = (
    CallForm(name="lmdeploy", caller=LMDEPLOY, shapes={"q": ("B", 1, "num_heads·dim"), **CACHE_OF_ONE_BLOCK}),
    CallForm(
        name="lmdeploy-without-table",
        caller=LMDEPLOY,
        condition="For a single sequence",
        shapes={"q": (1, 1, "num_heads·dim"), **CACHE_OF_ONE_BLOCK},
        missing=("block_table",),
    ),
)
"""The shapes that LMDeploy passes to `diopiPagedAttention`."""

PROMPTS_BY_CALLERS = (
    CallForm(
        name="lmdeploy",
        caller=LMDEPLOY,
        shapes={
            "query": ("B", "max_input_len", "num_heads·dim"),
            **dict.fromkeys(("key", "value"), ("B", "max_input_len", "num_kv_heads·dim")),
        },
        missing=("actual_seq_lengths",),
    ),
)
"""The shapes that LMDeploy passes to `diopiPromptFlashAttention`."""

TOKEN_TABLE_DTYPES = {"b_loc": index, "b_start_loc": index, "b_seq_len": index}
"""The element types of the tables that locate tokens."""


@prototype(dtypes=real, argument_dtypes={"dest_loc": index}, guarantee="exact", moves_numbers=True)
def diopiDestIndexCopyKV(ctx: Context, out: InOut, k: Sized, dest_loc: Sized):
    """Copy tokens into their slots: out[dest_loc[t], …] = k[t, …]. The other slots of out keep their contents.

    out: [slots, H, D]. k: [T, H, D], in the dtype of out. dest_loc: [T], int32 or int64. If entries of dest_loc are
    equal, the slot receives the token of any one of them.

    Source: LightLLM, destindex_copy_kv.
    """


@prototype(dtypes=floating, argument_dtypes=TOKEN_TABLE_DTYPES, multiplies_matrices=True)
def diopiTokenAttentionInference(
    ctx: Context,
    token_attention_out: InOut,
    q: In,
    k: Sized,
    b_loc: In,
    b_start_loc: Sized,
    b_seq_len: Sized,
    max_input_len: c_int,
):
    """Compute the scores of one new query per sequence with the cached keys, without mask and normalization.

    token_attention_out[h, b_start_loc[b] + t] = Σ_d q[b, h, d] · k[slot(b, t), h, d] / √D for t < len_b. Here
    slot(b, t) is the slot of token t of sequence b.

    - q: [B, H, D], the new query of each sequence.
    - k: a token cache, [slots, H, D].
    - token_attention_out: [H, L] in the dtype of q, where L is at least the sum of the lengths. Columns outside all
      sequences keep their contents.
    - b_loc, b_start_loc, b_seq_len, max_input_len: the tables of the token cache, as the family `llm` defines them.

    Source: LightLLM, token attention.
    """


@prototype(
    dtypes=floating, argument_dtypes=TOKEN_TABLE_DTYPES, ignored=[IGNORES_OTHER_KV_INDEX], multiplies_matrices=True
)
def diopiTokenSoftmaxReduceVInference(
    ctx: Context,
    out: Out,
    logics: In,
    v: Sized,
    b_loc: In,
    b_start_loc: Sized,
    b_seq_len: Sized,
    max_input_len: c_int,
    other_kv_index: c_int,
):
    """Compute the softmax of the scores of each sequence, and the sum of its cached values with these weights.

    out[b, h, d] = Σ_t p[t] · v[slot(b, t), h, d]. Here p is the softmax of logics[h, b_start_loc[b] + t] over t <
    len_b, and slot(b, t) is the slot of token t of sequence b.

    - logics: [H, L], the result of `diopiTokenAttentionInference`.
    - v: a token cache, [slots, H, D].
    - out: [B, H, D].
    - b_loc, b_start_loc, b_seq_len, max_input_len: as in `diopiTokenAttentionInference`.
    - other_kv_index: a slot that an implementation may read where a sequence has no token. It does not change the
      result.

    All floating tensors have one dtype.

    Source: LightLLM, token softmax and reduce.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"b_start_loc": index, "b_seq_len": index},
    ignored=[IGNORES_MAX_LENGTH],
    multiplies_matrices=True,
)
def diopiContextAttentionInference(
    ctx: Context,
    context_attention_out: InOut,
    q: Sized,
    k: Sized,
    v: Sized,
    b_start_loc: In,
    b_seq_len: Sized,
    max_input_len: c_int,
):
    """Compute causal attention for packed sequences: in each sequence, row i attends to the rows j ≤ i.

    context_attention_out, q, k, v: [T, H, D]. Sequence b has the rows b_start_loc[b] to b_start_loc[b] + len_b − 1.
    Rows outside all sequences keep their contents. `max_input_len` is the largest length and does not change the
    result.

    Source: LightLLM, context attention.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"attenMask": truth_values, "block_table": int32},
    call_forms=PAGED_BY_CALLERS,
    multiplies_matrices=True,
)
def diopiPagedAttention(
    ctx: Context,
    out: Out,
    q: In,
    k: Sized,
    v: Sized,
    attenMask: SizedMask | None,
    actual_seq_lengths: PositiveExtents,
    num_heads: PositiveExtent,
    num_kv_heads: PositiveExtent,
    dim: PositiveExtent,
    block_table: In | None,
    block_size: PositiveExtent,
):
    """Compute the attention of one query per sequence to the tokens of the sequence in a cache of blocks (decoding).

    Token t of sequence b, t < actual_seq_lengths[b], is in slot block_table[b, t // block_size] · block_size + t mod
    block_size.

    - q, out: [B, num_heads · dim] or [B, 1, num_heads · dim], where `dim` is the head size.
    - k, v: slots of num_kv_heads · dim numbers each. Their shape is [slots, ·], [blocks, block_size, ·] or
      [1, slots, ·]. The order in memory is the same in all three.
    - actual_seq_lengths: B integers ≥ 1 in host memory, the lengths of the sequences.
    - block_table: int32 [B, max_blocks]. Entries after the last block of a sequence are not read. NULL means that token
      t is in slot t.
    - attenMask: bool [1, L] or [B, L], where L is the largest length. TRUE means that the query does NOT see the token.
      NULL hides no token.

    A query that sees no token gives 0. The call is rejected if num_heads is not a multiple of num_kv_heads.

    Source: Kwon et al., "PagedAttention" (2023).
    """


@prototype(
    dtypes=narrow, argument_dtypes={"atten_mask": truth_values}, call_forms=PROMPTS_BY_CALLERS, multiplies_matrices=True
)
def diopiPromptFlashAttention(
    ctx: Context,
    out: Out,
    query: In,
    key: Sized,
    value: Sized,
    atten_mask: SizedMask | None,
    actual_seq_lengths: Extents,
    max_input_len: PositiveExtent,
    num_heads: PositiveExtent,
    num_kv_heads: PositiveExtent,
    dim: PositiveExtent,
):
    """Compute causal attention for sequences that are padded to `max_input_len` rows each (prefill).

    Position i of sequence b is row b · max_input_len + i. It sees position j if j ≤ i, j < actual_seq_lengths[b] and
    atten_mask does not hide it. Positions i ≥ actual_seq_lengths[b] are padding. The call writes 0 there, but a caller
    must not rely on that.

    - query, out: [B · max_input_len, num_heads · dim] or [B, max_input_len, num_heads · dim], where `dim` is the head
      size.
    - key, value: likewise with num_kv_heads · dim.
    - actual_seq_lengths: B integers in host memory. An empty list means that every sequence has max_input_len tokens.
    - atten_mask: bool [B, L, L], [B, 1, L, L] or [L, L] with L = max_input_len, normally the causal triangle. TRUE
      means that the query does NOT see the key. NULL hides no other keys.

    A query that sees no key gives 0. The call is rejected if num_heads is not a multiple of num_kv_heads.

    Source: Vaswani et al., "Attention Is All You Need" (2017).
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"p_token_ids": int32, "p_token_counts": int32, "p_cumsum_seq_len": int32},
    ignored=[IGNORES_MAX_IDS],
)
def diopiApplyPenalty(
    ctx: Context,
    logits: InOut,
    presence_penalty: Sized,
    frequency_penalty: Sized,
    p_token_ids: In,
    p_token_counts: Sized,
    p_cumsum_seq_len: Sized,
    p_max_len_in_batch: c_int,
):
    """Subtract presence and frequency penalties, in place, from the logits of tokens that were generated before.

    logits[b, p_token_ids[e]] −= p_token_counts[e] · frequency_penalty[b] + presence_penalty[b] for every e with
    p_cumsum_seq_len[b] ≤ e < p_cumsum_seq_len[b + 1]. All other logits stay the same bit for bit.

    - logits: [B, V].
    - presence_penalty, frequency_penalty: [B], in the dtype of logits.
    - p_token_ids, p_token_counts: int32 [E]. The ids of a sequence are distinct; if some are equal, any one of their
      updates takes effect.
    - p_cumsum_seq_len: int32 [B + 1], which do not decrease and go from 0 to E.
    - p_max_len_in_batch: the largest number of ids of a sequence. It does not change the result.

    Source: LightLLM, apply_penalty.
    """


@prototype(dtypes=floating, argument_dtypes={"p_token_ids": index, "p_token_counts": index})
def diopiApplyPenaltyV2(
    ctx: Context,
    logits: InOut,
    presence_penalty: In,
    frequency_penalty: Sized,
    repetition_penalty: Sized,
    p_token_ids: Sized,
    p_token_counts: Sized,
):
    """Apply repetition, frequency and presence penalties to logits in place; each token has its own penalties.

    logits is [B, V]. Each entry p_token_ids[e] is a flat position b · V + token in it. Let x be the logit at this
    position:

    1. y = x / repetition_penalty[e] if x > 0, else x · repetition_penalty[e].
    2. The logit becomes y − p_token_counts[e] · frequency_penalty[e] − presence_penalty[e].

    All other logits stay the same bit for bit.

    The five vectors have the same length. The penalties have the dtype of logits; ids and counts are int32 or int64.
    The ids are distinct; if some are equal, any one of their updates takes effect.

    Source: LightLLM, apply_penalty; Keskar et al., "CTRL" (2019).
    """


@prototype(dtypes=floating, ignored=[IGNORES_HINTS, IGNORES_GROUP_OF_ONE], multiplies_matrices=True)
def diopiMatmulAllReduce(
    ctx: Context,
    out: Out,
    x1: In,
    x2: Sized,
    bias: Sized | None,
    group: Text,
    reduce_op: Literal["sum"],
    comm_turn: i64,
    stream_mode: i64,
):
    """Multiply matrices and sum over processes: out = Σ of (x1 @ x2 + bias) over the ranks of `group`.

    - x1: [M, K] or [B, M, K]. x2: [K, N].
    - bias: [N]. Each rank adds the bias that it passes; NULL adds none.
    - out: the shape of x1 with N instead of K. All tensors have one dtype.
    - group: the name of a communicator. A group of one rank gives x1 @ x2 + bias.
    - reduce_op: "sum"; any other text is an error.
    - comm_turn (usually 0), stream_mode (usually 1): hints that do not change the result.

    A library without communication returns diopiNoImplement.

    Source: torch.matmul, torch.distributed.all_reduce.
    """
