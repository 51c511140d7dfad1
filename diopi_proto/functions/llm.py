"""Kernels of large language model serving: token caches, decoding and prefill attention, penalties, fused all-reduce.

Attention is that of the attention family: softmax of scaled scores, then the weighted sum of the values; query head h
uses key and value head h // (query heads / key heads). The scale is always 1/√D, D being the head size.

Token cache: k or v of shape [slots, H, D], a token a slot. The table `b_loc` [B, N] is right-aligned at
`max_input_len`: token t of sequence b, 0 ≤ t < len_b, lies in slot b_loc[b, max_input_len − len_b + t]. `b_seq_len` [B]
holds the lengths, 1 ≤ len_b ≤ max_input_len ≤ N, `b_start_loc` [B] where each sequence begins in packed data. Slots and
positions are int32 or int64, inside their tensors; that is the caller's duty and not checked.

Half-precision input is accumulated in float32. Empty tensors succeed. Shapes that do not fit
together are errors. Sources: LightLLM, token attention; Kwon et al., "PagedAttention" (2023).
"""

from typing import Annotated, Literal

from diopi_proto.callers import CallForm
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
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype

int32 = (Dtype.int32,)
SizedMask = Annotated[In, HoldsTruth(), SizesFollow()]
LONGEST = Ignored(("max_input_len",), "the lengths determine it", read=Read.value)
SAFE_SLOT = Ignored(("other_kv_index",), "it is read in place of nothing", read=Read.value)
MOST_IDS = Ignored(("p_max_len_in_batch",), "the positions determine it", read=Read.value)
HINTS = Ignored(("comm_turn", "stream_mode"), "they are hints for the implementation", read=Read.value)
ONE_RANK = Ignored(("group",), "a group of one adds nothing", read=Read.value)
LMDEPLOY = "LMDeploy's DIPU backend (dlinfer)"
CACHE_OF_ONE_BLOCK = dict.fromkeys(("k", "v"), (1, "slots", "num_kv_heads·dim"))
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
token_tables = {"b_loc": index, "b_start_loc": index, "b_seq_len": index}


@prototype(dtypes=real, argument_dtypes={"dest_loc": index}, guarantee="exact")
def diopiDestIndexCopyKV(ctx: Context, out: InOut, k: Sized, dest_loc: Sized):
    """Tokens copied into their slots: out[dest_loc[t], …] = k[t, …]; the other slots of out keep their contents.

    out: [slots, H, D]. k: [T, H, D], out's dtype. dest_loc: [T]; of equal entries any one wins.
    Source: LightLLM, destindex_copy_kv.
    """


@prototype(dtypes=floating, argument_dtypes=token_tables)
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
    """Scores of one new query a sequence against its cached keys, neither masked nor normalised.

    token_attention_out[h, b_start_loc[b] + t] = Σ_d q[b, h, d] · k[slot(b, t), h, d] / √D for t < len_b.

    q: [B, H, D]. k: token cache [slots, H, D]. token_attention_out: [H, L], L at least the sum of the lengths, in q's
    dtype; columns outside all sequences keep their contents. Source: LightLLM, token attention.
    """


@prototype(dtypes=floating, argument_dtypes=token_tables, ignored=[SAFE_SLOT])
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
    """Softmax of a sequence's scores, and the sum of its cached values weighted by it.

    out[b, h, d] = Σ_t p[t] · v[slot(b, t), h, d] with p = softmax over t < len_b of logics[h, b_start_loc[b] + t].

    logics: [H, L], as `diopiTokenAttentionInference` makes it. v: token cache [slots, H, D]. out: [B, H, D]. All of one
    dtype. `other_kv_index` is a slot that may safely be read in place of none; it never changes the result.
    Source: LightLLM, token softmax and reduce.
    """


@prototype(dtypes=floating, argument_dtypes={"b_start_loc": index, "b_seq_len": index}, ignored=[LONGEST])
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
    """Causal attention of packed sequences to themselves: the row at place i of a sequence sees its places j ≤ i.

    context_attention_out, q, k, v: [T, H, D], sequence b in the rows b_start_loc[b] to b_start_loc[b] + len_b − 1; rows
    outside all sequences keep their contents. `max_input_len`, the longest length, does not change the result.
    Source: LightLLM, context attention.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"attenMask": truth_values, "block_table": int32},
    call_forms=PAGED_BY_CALLERS,
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
    """Decoding: attention of one query a sequence to its tokens in a cache of blocks.

    Token t of sequence b, t < actual_seq_lengths[b], lies in slot
    block_table[b, t // block_size] · block_size + t mod block_size.

    q, out: [B, num_heads · dim] or [B, 1, num_heads · dim], `dim` being the head size. k, v: slots of num_kv_heads ·
    dim numbers, as [slots, ·] or with the slots in two axes, [blocks, block_size, ·] or [1, slots, ·]: the memory is
    the same. actual_seq_lengths: B host integers ≥ 1. block_table: int32 [B, max_blocks]; entries past the last
    block of a sequence are not read; NULL says that token t lies in slot t. attenMask: bool [1, L] or [B, L], L the
    largest length, TRUE where the token is NOT visible; NULL hides none. A query that sees no token gives 0.
    A num_heads that is no multiple of num_kv_heads is an error. Source: Kwon et al., "PagedAttention" (2023).
    """


@prototype(dtypes=narrow, argument_dtypes={"atten_mask": truth_values}, call_forms=PROMPTS_BY_CALLERS)
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
    """Prefill: causal attention of sequences to themselves, each padded to `max_input_len` rows.

    Place i of sequence b is row b · max_input_len + i. It sees j ≤ i with j < actual_seq_lengths[b] that
    atten_mask does not hide; places i ≥ actual_seq_lengths[b] are padding: 0 is written there, for nobody to rely on.

    query, out: [B · max_input_len, num_heads · dim] or [B, max_input_len, num_heads · dim], `dim` being the head size.
    key, value: likewise with num_kv_heads · dim. actual_seq_lengths: B host integers; an empty list says that every
    sequence has max_input_len tokens. atten_mask: bool [B, L, L], [B, 1, L, L] or [L, L] with L = max_input_len, TRUE
    where the key is NOT visible, normally the causal triangle; NULL hides nothing more.
    A query that sees no key gives 0. A num_heads that is no multiple of num_kv_heads is an error.
    Source: Vaswani et al., "Attention Is All You Need" (2017).
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"p_token_ids": int32, "p_token_counts": int32, "p_cumsum_seq_len": int32},
    ignored=[MOST_IDS],
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
    """Presence and frequency penalties, subtracted in place from the logits of tokens already produced.

    logits[b, p_token_ids[e]] −= p_token_counts[e] · frequency_penalty[b] + presence_penalty[b] for every e with
    p_cumsum_seq_len[b] ≤ e < p_cumsum_seq_len[b + 1]. All other logits stay bit for bit.

    logits: [B, V]. presence_penalty, frequency_penalty: [B], logits' dtype. p_token_ids, p_token_counts: int32 [E], the
    ids of one sequence distinct (of equal ones any one update wins). p_cumsum_seq_len: int32 [B + 1], rising from 0 to
    E. `p_max_len_in_batch`, the largest number of ids of a sequence, does not change the result.
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
    """Repetition, then frequency and presence penalties, in place, every token with penalties of its own.

    For each e, x being the logit at the flat position p_token_ids[e] (b · V + token) of logits [B, V]:
    y = x / repetition_penalty[e] if x > 0, else x · repetition_penalty[e]; the logit becomes
    y − p_token_counts[e] · frequency_penalty[e] − presence_penalty[e]. All other logits stay bit for bit.

    The five vectors have one length E; penalties in logits' dtype, ids and counts int32 or int64. The ids are distinct
    (of equal ones any one update wins). Source: LightLLM, apply_penalty; Keskar et al., "CTRL" (2019).
    """


@prototype(dtypes=floating, ignored=[HINTS, ONE_RANK])
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
    """Matrix product summed over processes: out = Σ over the ranks of `group` of (x1 @ x2 + bias).

    x1: [M, K] or [B, M, K]. x2: [K, N]. bias: [N], added on each rank that passes it; NULL adds none. out: as x1 with
    N for K. All of one dtype. `group` names a communicator; a group of one leaves x1 @ x2 + bias. `reduce_op` is "sum",
    anything else is an error. `comm_turn` (usually 0) and `stream_mode` (usually 1) are hints without effect on the
    result. A library without communication answers diopiNoImplement. Source: torch.matmul,
    torch.distributed.all_reduce.
    """
