"""Fused kernels of the LMDeploy engine: layers and attention, sampling, stop criteria and small helpers.

Letters:

    B  batch size, the number of sequences       Nq  query heads, `local_head_num`
    T  tokens                                    Nk  key heads and value heads, `local_kv_head_num`
    H  hidden units                              D   size of a head, `size_per_head`
    I  hidden units inside a feed-forward layer  V   size of the vocabulary

Conventions:

- In one call, all activations and weights have one floating dtype, and all integer tensors have one integer type.
  Flags are bool. Probabilities, penalties and temperatures are float32.
- Half-precision input is accumulated in float32.
- Tables of token ids are time-major: the token of sequence b at time t is element t · B + b in row-major order. This
  holds for every shape of the table, so [times, B] and 1-d tables are equivalent.
- The parameter `workspace_size` points to a size in bytes, and so do `pre_work_size` and `persistent_workspace_size`.
  If the size is negative, the call is a workspace query. It overwrites the size with the number of bytes that it needs
  (0 if none), and does nothing else. The tensors may then be NULL. If the size is not negative, it is the size that the
  caller provides, and the call does not change it. A NULL pointer to the size is an error.
- A workspace may have any element type. Its contents are unspecified before and after the call.
- `fusion_level` ≥ 0 tells the implementation how much to fuse; 0 means that nothing is fused. The result does not
  depend on it.
- The call is rejected if shapes do not match. The caller must ensure that ids, positions and offsets are inside their
  tensors; the call does not check them.

Definition of attention in this family, where x stands for the rows of `inoutput`:

    qkv = x @ qkv_weight + qkv_bias      Nq query heads, then Nk key heads, then Nk value heads, of size D each
    s = q · k / √D + mask                q and k are rotated; query head h uses key head h // (Nq / Nk)
    p = exp(s − max s) / (Σ exp(s − max s) + 1e-6)
    x becomes Σ p · v                    there is no output projection

- qkv_weight: [Nq · D, (Nq + 2 Nk) · D]. qkv_bias: [1, (Nq + 2 Nk) · D], or NULL for no bias.
- Rotation changes the columns below `rotary_embedding`, which is even and at most D. For each even column c, let a and
  b be the elements of a head in the columns c and c + 1. Let θ = pos / rope_theta^(c / rotary_embedding). Then a
  becomes a · cos θ − b · sin θ, and b becomes a · sin θ + b · cos θ. Each function defines `pos`.
- key_cache, value_cache: [layers, B, Nk, max_seq_len, D]. Axis 3 contains the slots, one token per slot. The call
  stores the new values and the new rotated keys in layer `layer_id`. All other elements keep their contents.

Sources: LMDeploy's TurboMind and FasterTransformer; Touvron et al., "LLaMA" (2023).
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import all_dtypes, constant, index, narrow, same, same_as_input, single, truth
from diopi_proto.dtypes import boolean as flags
from diopi_proto.facts import AtLeast, CountsEntries, HoldsTruth, LessThanSize, OneOf, SizeOf, SizesFollow
from diopi_proto.ignored import Ignored, Read, negative
from diopi_proto.parameters import (
    Context,
    Generators,
    In,
    InOut,
    InOutSize,
    MaskInOut,
    MutableIn,
    Out,
    Sized,
    SizedInOut,
    Workspace,
    boolean,
    const_i64,
    f32,
    i64,
)
from diopi_proto.types import Dtype

SizedMutableIn = Annotated[MutableIn, SizesFollow()]
"""An input that the C interface declares writable; its shape follows from the preceding arguments."""

SizedFlags = Annotated[In, HoldsTruth(), SizesFollow()]
"""An input of truth values; its shape follows from the preceding arguments."""

SizedFlagsInOut = Annotated[InOut, HoldsTruth(), SizesFollow()]
"""Truth values that the call reads and updates; their shape follows from the preceding arguments."""

IGNORES_FUSION_LEVEL = Ignored(("fusion_level",), "it is a hint for the implementation", read=Read.value)
"""No result depends on `fusion_level`."""


def ignored_with_queries(*size_arguments: str, tensors: tuple[str, ...]) -> tuple[Ignored, ...]:
    """Return the rules: `fusion_level` is always ignored; the tensors are ignored if a size argument is negative."""
    reason = "the call only queries a size and changes nothing else"
    return IGNORES_FUSION_LEVEL, *(Ignored(tensors, reason, {size: negative}) for size in size_arguments)


WORKSPACE_DTYPES = {"workspace": all_dtypes}
"""The element types of the workspace."""

float32_result = constant(Dtype.float32)
"""The rule that a result is always float32."""

TOP_ARGUMENT_DTYPES = {"top_ps": single}
"""The element types of the arguments of the top-k and top-p set-up functions, as far as they differ from `top_ks`."""

TOP_RESULT_DTYPES = {"top_ks": same, "top_ps": float32_result, "skip_decode": truth}
"""The rules for the element types of the results that both set-up functions have."""

UNUSED_PER_SEQUENCE_VALUES = (
    Ignored(("top_ks",), "`top_k` is used", {"top_ks_size": (0, 1)}, Read.form),
    Ignored(("top_ps",), "`top_p` is used", {"top_ps_size": (0, 1)}, Read.form),
)
"""The elements of `top_ks` are ignored if `top_ks_size` is 0 or 1; the same holds for `top_ps`."""

SAMPLING_ARGUMENT_DTYPES = {
    "output_ids": index,
    "end_ids": index,
    "finished": flags,
    "sequence_lengths": index,
    "runtime_top_p": single,
    "skip_decode": flags,
    "cum_log_probs": single,
    "output_log_probs": single,
}
"""The element types of the arguments that both sampling functions have."""


@prototype(dtypes=narrow)
def diopiRootMeanSquareNormInp(ctx: Context, inoutput: InOut, scale: Sized, eps: f32):
    """Normalize each row by its root mean square, in place: x becomes x · scale / √(mean(x²) + eps).

    inoutput: [T, H]. scale: [H].

    Source: Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019).
    """


@prototype(dtypes=narrow)
def diopiFusedAddRootMeanSquareNormInp(
    ctx: Context, inoutput: InOut, residual: SizedInOut, bias: Sized | None, scale: Sized, eps: f32
):
    """Add a residual, then normalize each row by its root mean square, in place.

    With r = residual + inoutput + bias, residual becomes r and inoutput becomes r · scale / √(mean(r²) + eps). An
    implementation may round r to residual's dtype before the normalization.

    inoutput, residual: [T, H]. bias: [H], or NULL for no bias. scale: [H].

    Source: Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019).
    """


@prototype(
    dtypes=narrow,
    argument_dtypes=WORKSPACE_DTYPES,
    ignored=ignored_with_queries("workspace_size", tensors=("inoutput", "weight1", "weight2", "weight3", "workspace")),
    multiplies_matrices=True,
)
def diopiFusedSiluFfnInp(
    ctx: Context,
    inoutput: InOut,
    weight1: In,
    weight2: Sized,
    weight3: Sized,
    workspace: Workspace | None,
    workspace_size: InOutSize,
    fusion_level: i64,
):
    """Apply a gated feed-forward layer in place: x becomes (silu(x @ weight1) · (x @ weight3)) @ weight2.

    silu(a) = a · σ(a), where σ is the logistic function. weight1 is the gate projection, weight3 the up projection and
    weight2 the output projection, like w1, w3 and w2 of LLaMA.

    inoutput: [T, H]. weight1, weight3: [H, I]. weight2: [I, H].

    Source: Shazeer, "GLU Variants Improve Transformer" (2020).
    """


ATTENTION_TENSORS = ("inoutput", "qkv_weight", "qkv_bias", "workspace", "key_cache", "value_cache")
"""The tensors of both attention functions that a workspace query ignores."""


@prototype(
    dtypes=narrow,
    argument_dtypes={**WORKSPACE_DTYPES, "pre_work": all_dtypes},
    ignored=(
        *ignored_with_queries("pre_work_size", "workspace_size", tensors=(*ATTENTION_TENSORS, "pre_work")),
        Ignored(("is_prepared",), "the prepared data depend only on the lengths", read=Read.value),
    ),
    multiplies_matrices=True,
)
def diopiFusedContextAttentionInp(
    ctx: Context,
    inoutput: InOut,
    qkv_weight: Sized,
    qkv_bias: Sized | None,
    pre_work: Workspace | None,
    pre_work_size: InOutSize,
    is_prepared: boolean,
    workspace: Workspace | None,
    workspace_size: InOutSize,
    fusion_level: i64,
    key_cache: InOut,
    value_cache: SizedInOut,
    layer_id: Annotated[i64, LessThanSize("key_cache", 0)],
    local_head_num: i64,
    local_kv_head_num: Annotated[i64, SizeOf("key_cache", 2)],
    size_per_head: Annotated[i64, SizeOf("key_cache", 4)],
    max_seq_len: Annotated[i64, SizeOf("key_cache", 3)],
    max_q_len: i64,
    max_kv_len: i64,
    rotary_embedding: i64,
    rope_theta: f32,
):
    """Compute the attention of new tokens to themselves and to the cached tokens (prefill), and extend the cache.

    All sequences have the same lengths, because the call has no argument for individual lengths.

    1. Each sequence has max_kv_len tokens. The last max_q_len of them are new. The first history = max_kv_len −
       max_q_len ≥ 0 are in the cache before the call. B is the number of rows of inoutput divided by max_q_len.
    2. New token i of a sequence, 0 ≤ i < max_q_len, has pos = history + i. Its key and value are stored in slot pos.
    3. The scores are computed for the slots 0 to max_kv_len − 1. The mask is 0 for the slots up to pos, and −10000 for
       the later ones.

    inoutput: [B · max_q_len, Nq · D], one sequence after the other. `pre_work` stores data that depend only on the
    lengths, in a layout that is private to the implementation. If `is_prepared` is false, the implementation fills
    `pre_work`. Later calls with the same lengths may pass the same `pre_work` with `is_prepared` true. The result does
    not depend on `is_prepared`.

    Source: the definition of attention in the family `lmdeploy`.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={
        **WORKSPACE_DTYPES,
        "finished": flags,
        "total_padding_tokens": index,
        "sequence_lengths": index,
    },
    ignored=ignored_with_queries(
        "workspace_size", tensors=(*ATTENTION_TENSORS, "finished", "total_padding_tokens", "sequence_lengths")
    ),
    multiplies_matrices=True,
)
def diopiFusedDecoderAttentionInp(
    ctx: Context,
    inoutput: InOut,
    qkv_weight: Sized,
    qkv_bias: Sized | None,
    workspace: Workspace | None,
    workspace_size: InOutSize,
    fusion_level: i64,
    key_cache: InOut,
    value_cache: SizedInOut,
    finished: SizedFlags | None,
    total_padding_tokens: Sized | None,
    sequence_lengths: Sized,
    step: i64,
    layer_id: Annotated[i64, LessThanSize("key_cache", 0)],
    local_head_num: i64,
    local_kv_head_num: Annotated[i64, SizeOf("key_cache", 2)],
    size_per_head: Annotated[i64, SizeOf("key_cache", 4)],
    max_seq_len: Annotated[i64, SizeOf("key_cache", 3)],
    rotary_embedding: i64,
    rope_theta: f32,
):
    """Compute the attention of one new token per sequence to itself and to the cached tokens (decoding).

    1. The cache of a sequence is a ring buffer of max_seq_len slots: the token at time t is in slot t mod max_seq_len.
    2. L = sequence_lengths[b] is the number of tokens of the sequence before the call. The new token has time L, and
       its key and value are stored in slot L mod max_seq_len.
    3. The new token attends to the times max(0, L + 1 − max_seq_len) to L. The mask is 0.
    4. The new token has pos = step − 1 − total_padding_tokens[b], which may differ from L. If total_padding_tokens is
       NULL, pos = step − 1.
    5. If finished[b] is true, the cache of the sequence does not change, and its row of inoutput is unspecified after
       the call. A NULL `finished` is false everywhere.

    inoutput: [B, Nq · D]. finished, total_padding_tokens, sequence_lengths: [B].

    Source: the definition of attention in the family `lmdeploy`.
    """


@prototype(
    dtypes=index, argument_dtypes=TOP_ARGUMENT_DTYPES, result=TOP_RESULT_DTYPES, ignored=UNUSED_PER_SEQUENCE_VALUES
)
def diopiSetupTopkRuntimeArgsInp(
    ctx: Context,
    top_ks: InOut,
    top_ps: SizedInOut,
    skip_decode: Out,
    batch_size: Annotated[i64, SizeOf("top_ks", 0)],
    top_k: i64,
    top_ks_size: i64,
    top_p: f32,
    top_ps_size: i64,
):
    """Determine k and p of top-k sampling for each sequence, and write them to top_ks and top_ps.

    k is the number of tokens to choose from, and p is their share of the probability.

    1. k is top_ks[b] if top_ks_size > 1, else top_k. p is top_ps[b] if top_ps_size > 1, else top_p.
    2. If k and p are both 0, k becomes 1.
    3. If k > 0 and p is 0, p becomes 1.
    4. The call writes min(k, 1024) to top_ks[b], p clipped to [0, 1] to top_ps[b], and whether k is 0 to
       skip_decode[b].

    top_ks_size and top_ps_size are 0, 1 or B. LMDeploy's TurboMind passes 1 if one value applies to all sequences.
    top_ks, top_ps, skip_decode: [B].

    Source: FasterTransformer, top-k sampling layer.
    """


@prototype(
    dtypes=index,
    argument_dtypes=TOP_ARGUMENT_DTYPES,
    ignored=UNUSED_PER_SEQUENCE_VALUES,
    result={
        **TOP_RESULT_DTYPES,
        "initial_top_p_buf": float32_result,
        "top_p_decay_buf": float32_result,
        "top_p_min_buf": float32_result,
        "top_p_reset_ids_buf": same,
    },
)
def diopiSetupToppRuntimeArgsInp(
    ctx: Context,
    top_ks: InOut,
    top_ps: SizedInOut,
    skip_decode: Out,
    batch_size: Annotated[i64, SizeOf("top_ks", 0)],
    top_k: i64,
    top_ks_size: i64,
    top_p: f32,
    top_ps_size: i64,
    initial_top_p_buf: Out,
    top_p_decay_buf: Out,
    top_p_decay: f32,
    top_p_min_buf: Out,
    top_p_min: f32,
    top_p_reset_ids_buf: Out,
    top_p_reset_ids: i64,
):
    """Determine k and p of top-p sampling for each sequence, and the buffers of the schedule that lowers p.

    k is top_ks[b] if top_ks_size > 1, else top_k. p is top_ps[b] if top_ps_size > 1, else top_p. If k and p are both 0,
    k becomes 1. Then the call writes:

    - top_ks[b]: k, without an upper limit.
    - skip_decode[b]: whether k > 0.
    - top_ps[b] and initial_top_p_buf[b]: p clipped to [0, 1].
    - top_p_decay_buf[b]: top_p_decay if it is in (0, 1], else 1.
    - top_p_min_buf[b]: top_p_min if it is in (0, 1], else 0.5.
    - top_p_reset_ids_buf[b]: top_p_reset_ids.

    Only the caller uses the buffers, for factual-nucleus sampling: after each token, it multiplies p by the decay, down
    to the minimum. After the token with the reset id, it restores the initial p instead; −1 means that no token does
    so. All tensors have shape [B].

    Source: FasterTransformer, top-p sampling layer.
    """


SAMPLING_TENSORS = (
    *("output_ids", "logits", "workspace", "end_ids", "finished", "sequence_lengths"),
    *("runtime_top_p", "skip_decode", "cum_log_probs", "output_log_probs"),
)
"""The tensors of both sampling functions that a workspace query ignores."""

IGNORES_BATCH_SIZE = Ignored(("batch_size",), "the rows of logits determine it", read=Read.value)
"""`batch_size` is the number of rows of `logits`, and also the number of generators."""


@prototype(
    dtypes=narrow,
    argument_dtypes={**SAMPLING_ARGUMENT_DTYPES, **WORKSPACE_DTYPES, "runtime_top_k": index},
    guarantee="random",
    ignored=(*ignored_with_queries("workspace_size", tensors=(*SAMPLING_TENSORS, "runtime_top_k")), IGNORES_BATCH_SIZE),
)
def diopiTopKSampling(
    ctx: Context,
    output_ids: InOut,
    logits: Workspace,
    workspace: Workspace | None,
    workspace_size: InOutSize,
    fusion_level: i64,
    end_ids: Sized,
    finished: SizedFlagsInOut | None,
    sequence_lengths: SizedInOut | None,
    step: i64,
    batch_size: Annotated[i64, CountsEntries("generators")],
    vocab_size_padded: Annotated[i64, SizeOf("logits", 1)],
    runtime_top_k: Sized,
    runtime_top_p: Sized,
    skip_decode: SizedFlags | None,
    cum_log_probs: SizedInOut | None,
    output_log_probs: SizedInOut | None,
    generators: Generators,
):
    """Draw one token per sequence from its k = runtime_top_k[b] most probable tokens.

    For each sequence b:

    1. If skip_decode[b] is true, nothing changes.
    2. Otherwise, if finished[b] is true on entry, output_ids[step, b] becomes end_ids[b], and nothing else changes.
    3. Otherwise each token has a weight. With the row l of logits and e = exp(l − max l), the weights are e if
       cum_log_probs and output_log_probs are both NULL. If one of them is passed, the weights are the probabilities
       e / (Σ e + 1e-6), where the sum is over the row. The choice affects only the value of cum_log_probs.
    4. Let w₀ ≥ w₁ ≥ … be the k largest weights and S their sum. generators[b] draws u from (0, 1]. The drawn token is
       the first i with w₀ + … + w_i ≥ u · runtime_top_p[b] · S, or token k − 1 if no i satisfies this.
    5. output_ids[step, b] becomes the id of the drawn token. cum_log_probs[b] increases by ln w_i, and
       output_log_probs[b] becomes ln w_i − ln S.
    6. If sequence_lengths and finished are both passed, sequence_lengths[b] increases by 1, and finished[b] becomes
       whether the id equals end_ids[b].

    - output_ids: [times, B].
    - logits: [B, vocab_size_padded]. The call may overwrite it, and every column counts as a token.
    - generators: B generators. A generator advances when it is used. u depends only on the seed and the offset of the
      generator, not on the position in the batch.
    - all other tensors: [B]. If skip_decode or finished is NULL, it is false everywhere. If cum_log_probs or
      output_log_probs is NULL, it is not computed.

    Source: FasterTransformer, top-k sampling; Fan et al., "Hierarchical Neural Story Generation" (2018).
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={**SAMPLING_ARGUMENT_DTYPES, **WORKSPACE_DTYPES, "persistent_workspace": all_dtypes},
    guarantee="random",
    ignored=(
        *ignored_with_queries(
            "persistent_workspace_size", "workspace_size", tensors=(*SAMPLING_TENSORS, "persistent_workspace")
        ),
        IGNORES_BATCH_SIZE,
    ),
)
def diopiTopPSampling(
    ctx: Context,
    output_ids: InOut,
    logits: Workspace,
    persistent_workspace: Workspace | None,
    persistent_workspace_size: InOutSize,
    workspace: Workspace | None,
    workspace_size: InOutSize,
    fusion_level: i64,
    end_ids: Sized,
    finished: SizedFlagsInOut | None,
    sequence_lengths: SizedInOut | None,
    step: i64,
    batch_size: Annotated[i64, CountsEntries("generators")],
    vocab_size_padded: Annotated[i64, SizeOf("logits", 1)],
    runtime_top_p: SizedMutableIn,
    skip_decode: SizedFlags | None,
    cum_log_probs: SizedInOut | None,
    output_log_probs: SizedInOut | None,
    generators: Generators,
):
    """Draw one token per sequence from the smallest set of most probable tokens that has a total probability of P.

    P is runtime_top_p[b]. For each sequence b:

    1. If skip_decode[b] is true, nothing changes.
    2. Otherwise each token has a probability p. If finished[b] is true on entry, p is 1 for the token end_ids[b]. If
       not, p = exp(l − max l) / (Σ exp(l − max l) + 1e-6) for the row l of logits, where the sum is over the row.
    3. If max p ≥ P, the token is the most probable one. If several tokens have the probability max p, it is the one
       with the lowest id.
    4. If max p < P, generators[b] draws u from (0, 1]. In descending order of p, the token is the first one at which
       the cumulative sum of p reaches u · P.
    5. output_ids[step, b] becomes the id of the token. cum_log_probs[b] increases by ln p of the token, and
       output_log_probs[b] becomes ln p.
    6. If sequence_lengths and finished are both passed, sequence_lengths[b] increases by 1 unless finished[b] was true,
       and finished[b] becomes whether the id equals end_ids[b].

    The C interface declares runtime_top_p writable, but the call does not change it. The caller passes
    `persistent_workspace` to every step and does not change its contents between the steps. Shapes and NULL arguments
    are as in `diopiTopKSampling`.

    Source: FasterTransformer, top-p sampling; Holtzman et al., "Neural Text Degeneration" (2020).
    """


@prototype(dtypes=narrow, argument_dtypes={"temperatures": single})
def diopiBatchApplyTemperaturePenaltyInp(
    ctx: Context,
    logits: InOut,
    bias: Sized | None,
    temperatures: Sized,
    batch_size: Annotated[const_i64, SizeOf("logits", 0)],
    vocab_size: const_i64,
    vocab_size_padd: Annotated[const_i64, SizeOf("logits", 1)],
):
    """Divide logits by a temperature, in place: (logits[b, v] + bias[v]) / (temperatures[b] + 1e-6).

    - logits: [B, vocab_size_padd], where vocab_size_padd is the size of the vocabulary with padding. The columns v ≥
      vocab_size are the padding, which the call sets to the lowest finite number of logits' dtype.
    - bias: [vocab_size_padd], or NULL for no bias.
    - temperatures: [B].

    Source: FasterTransformer, sampling penalties.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"penalties": single, "output_ids": index, "input_lengths": index},
    ignored=(
        Ignored(
            ("penalties", "output_ids", "input_lengths", "max_input_length", "step"),
            "there is no penalty",
            {"penalty_type": 0},
            Read.value,
        ),
        Ignored(("max_input_length",), "there is no padding", {"input_lengths": None}, Read.value),
    ),
)
def diopiBatchApplyRepetitionPenaltyInp(
    ctx: Context,
    logits: InOut,
    penalties: Sized,
    output_ids: In,
    batch_size: Annotated[const_i64, SizeOf("logits", 0)],
    vocab_size: Annotated[const_i64, SizeOf("logits", 1)],
    input_lengths: Sized | None,
    max_input_length: const_i64,
    step: const_i64,
    penalty_type: Annotated[const_i64, OneOf((0, 1, 2))],
):
    """Penalize, in place, the logits of the tokens that a sequence already contains, once for each distinct token.

    The tokens of sequence b are its output_ids at all times t < step, except the padding at the times
    input_lengths[b] ≤ t < max_input_length. If input_lengths is NULL, there is no padding. With π = penalties[b], the
    logit l of such a token becomes, by `penalty_type`:

    - 0: l, unchanged.
    - 1: l − π.
    - 2: l · π if l < 0, else l / π.

    Any other type is an error.

    logits: [B, vocab_size]. penalties, input_lengths: [B]. output_ids: [times, B], with ids below vocab_size.

    Source: FasterTransformer, sampling penalties; Keskar et al., "CTRL" (2019).
    """


@prototype(dtypes=narrow, argument_dtypes={"output_ids": index, "bad_words": index}, guarantee="exact")
def diopiBanBadWordsInp(
    ctx: Context,
    logits: InOut,
    output_ids: In,
    bad_words: In,
    id_offset: i64,
    bad_words_len: Annotated[i64, SizeOf("bad_words", -1)],
    share_words: boolean,
    batch_size: Annotated[i64, SizeOf("logits", 0)],
    vocab_size: Annotated[i64, SizeOf("logits", 1)],
    step: i64,
):
    """Set the logit of every token that would complete a banned word to −inf, in place.

    Let past(b, t) = output_ids[t · B + id_offset + b] be the token of sequence b at time t. A word of n tokens matches
    sequence b if n − 1 ≤ step and its first n − 1 tokens are the tokens before time `step`. As a formula, past(b, step
    − (n − 1) + q) equals token q of the word for all 0 ≤ q < n − 1. A word of one token always matches.

    If a word matches and its last token v is in 0 < v < vocab_size, logits[b, v] becomes −inf. Token 0 is never banned.
    All other logits keep their values.

    - bad_words: [B, 2, W] with W = bad_words_len, or [2, W] for all sequences if `share_words` is true. Row 0 contains
      the tokens of all words, one word after the other. Row 1 contains the increasing end offsets of the words, padded
      with −1. The first word starts at offset 0, every other word at the end of its predecessor. For example, the words
      (5, 6) and (7) are the rows [5, 6, 7] and [2, 3, −1].
    - logits: [B, vocab_size].
    - output_ids: time-major.

    Source: FasterTransformer, ban bad words.
    """


@prototype(
    dtypes=index,
    argument_dtypes={"finished": flags},
    result=truth,
)
def diopiStopWordsCriterion(
    ctx: Context,
    output_ids: In,
    stop_words: In,
    finished: SizedFlagsInOut,
    id_offset: i64,
    stop_words_len: Annotated[i64, SizeOf("stop_words", -1)],
    batch_size: Annotated[i64, SizeOf("stop_words", 0)],
    step: i64,
):
    """Mark the sequences whose last tokens are a stop word as finished.

    Let past(b, t) = output_ids[t · B + id_offset + b] be the token of sequence b at time t. finished[b] becomes true if
    the last tokens up to time `step` are a word of n ≤ step + 1 tokens. As a formula, past(b, step − (n − 1) + q)
    equals token q of the word for all 0 ≤ q < n. finished[b] never becomes false.

    stop_words: [B, 2, W] with W = stop_words_len, in the layout of `diopiBanBadWordsInp`. finished: [B]. output_ids:
    time-major.

    Source: FasterTransformer, stop words criterion.
    """


@prototype(
    dtypes=index,
    argument_dtypes={"finished": flags},
    result={"finished": truth, "should_stop": truth, "finished_sum": same_as_input(-1)},
)
def diopiLengthCriterion(
    ctx: Context,
    finished: MaskInOut,
    should_stop: Out,
    finished_sum: Out,
    sequence_limit_length: Sized,
    batch_size: Annotated[i64, SizeOf("finished", 0)],
    step: i64,
):
    """Mark the sequences that have reached their length limit as finished.

    - finished: [B]. finished[b] becomes true if step ≥ sequence_limit_length[b]. It never becomes false.
    - sequence_limit_length: [B].
    - finished_sum: [1], a result: the number of finished sequences afterwards.
    - should_stop: bool [1], a result: whether all B sequences are finished.

    Source: FasterTransformer, length criterion.
    """


@prototype(dtypes=index, guarantee="exact")
def diopiGatherOutput(
    ctx: Context,
    output_ids: InOut,
    ids: In,
    context_length: Sized,
    max_context_len: i64,
    max_gen_step: i64,
    max_output_len: Annotated[i64, SizeOf("output_ids", 1)],
    batch_size: Annotated[i64, SizeOf("output_ids", 0)],
):
    """Gather time-major tokens by sequence, without the padding between the prompt and the generated tokens.

    c = context_length[b] is the length of the prompt of sequence b. For each time t < max_gen_step:

    - If t < c, the token belongs to the prompt: output_ids[b, t] becomes ids[t, b].
    - If c ≤ t < max_context_len, the token is padding: nothing is written.
    - If t ≥ max_context_len, the token was generated: output_ids[b, t − (max_context_len − c)] becomes ids[t, b].

    All other elements of output_ids keep their contents.

    output_ids: [B, max_output_len]; all written positions are inside. ids: [times, B]. context_length: [B].

    Source: LMDeploy, gather output.
    """


@prototype(
    dtypes=index,
    ignored=(
        Ignored(("val",), "no element is changed", {"size": 0}, Read.value),
        Ignored(("size",), "0 is added", {"val": 0}, Read.value),
    ),
)
def diopiPlusScalarInp(ctx: Context, inoutput: InOut, val: const_i64, size: Annotated[const_i64, AtLeast(0)]):
    """Add `val` to the first `size` elements of inoutput, in place. The other elements keep their values.

    inoutput: 1-d with at least `size` elements; a negative or larger size is an error. Integers wrap around.

    Source: LMDeploy, plus scalar.
    """


@prototype(dtypes=index, ignored=[Ignored(("total_padding_count",), "it contains zeros", read=Read.value)])
def diopiUpdatePaddingCount(
    ctx: Context,
    total_padding_count: InOut,
    input_lengths: Sized,
    max_input_length: i64,
    batch_size: Annotated[i64, SizeOf("total_padding_count", 0)],
):
    """Compute the padding of each sequence: total_padding_count[b] becomes max_input_length − input_lengths[b].

    Both tensors: [B]. total_padding_count contains zeros on entry, so an implementation may assign or add.

    Source: LMDeploy, padding count.
    """


@prototype(dtypes=(*narrow, *index), guarantee="exact", moves_numbers=True)
def diopiTransposeAxis01(
    ctx: Context,
    output: Out,
    input: In,
    dim0: Annotated[const_i64, SizeOf("input", 0)],
    dim1: Annotated[const_i64, SizeOf("input", 1)],
    dim2: Annotated[const_i64, SizeOf("input", 2)],
):
    """Swap the first two axes: output[j, i, k] = input[i, j, k].

    input: [dim0, dim1, dim2]. output: [dim1, dim0, dim2], contiguous.

    Source: torch.transpose.
    """


@prototype(dtypes=narrow, argument_dtypes={"all_ids": index}, guarantee="exact")
def diopiEmbeddingLookupPosEncoding(
    ctx: Context,
    from_tensor: Out,
    embedding_table: In,
    all_ids: In,
    batch_size: Annotated[const_i64, SizeOf("from_tensor", 0)],
    hidden_units: Annotated[const_i64, SizeOf("embedding_table", 1)],
    step: const_i64,
):
    """Look up the embeddings of the tokens at one time: from_tensor[b] = embedding_table[all_ids[step · B + b]].

    from_tensor: [B, hidden_units]. embedding_table: [V, hidden_units]. all_ids: time-major. Despite its name, the
    function applies neither a position encoding nor a scale.

    Source: torch.nn.functional.embedding.
    """


@prototype(dtypes=narrow, argument_dtypes={"input_ids": index}, result=same_as_input(1), guarantee="exact")
def diopiInputIdsEmbeddingLookupPosEncoding(
    ctx: Context,
    from_tensor: Out,
    input_ids: In,
    embedding_table: In,
    input_lengths: Annotated[const_i64, SizeOf("input_ids", 0)],
    hidden_units: Annotated[const_i64, SizeOf("embedding_table", 1)],
):
    """Look up the embeddings of the tokens of a prompt: from_tensor[i] = embedding_table[input_ids[i]].

    from_tensor: [input_lengths, hidden_units]. input_ids: [input_lengths]. embedding_table: [V, hidden_units]. Despite
    its plural name, input_lengths is one number: the number of tokens. Despite its name, the function applies neither a
    position encoding nor a scale.

    Source: torch.nn.functional.embedding.
    """
