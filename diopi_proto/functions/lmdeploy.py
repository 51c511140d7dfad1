"""Fused kernels of the LMDeploy engine: layers and attention, sampling, stop criteria and small helpers.

- B is `batch_size`. In one call, all activations and weights have one floating dtype, and all integer tensors have one
  integer type. Flags are bool; probabilities, penalties and temperatures are float32. Half-precision input is
  accumulated in float32.
- Tables of token ids are time-major, whatever their shape: the token of sequence b at time t is element t · B + b.
- Workspace query: if `*workspace_size` (or `*pre_work_size`, `*persistent_workspace_size`) is negative, the call writes
  the number of bytes that it needs there (0 if none) and does nothing else. The tensors may then be NULL. Otherwise the
  value is the size that the caller provides, and the call does not change it. A NULL pointer to the size is an error. A
  workspace may have any element type. Its contents are unspecified before and after the call.
- `fusion_level` ≥ 0 tells the implementation how much to fuse; 0 means nothing. The result does not depend on it.
- Errors: the call is rejected if shapes do not match. The caller must ensure that ids, positions and offsets are inside
  their tensors; the call does not check them.

Definition of attention in this module:
    x stands for the rows of `inoutput`, Nq for `local_head_num`, Nk for `local_kv_head_num` and D for `size_per_head`:

        qkv = x @ qkv_weight + qkv_bias      Nq query heads, then Nk key heads, then Nk value heads, of size D each
        s = q · k / √D + mask                q and k are rotated; query head h uses key head h // (Nq / Nk)
        p = exp(s − max s) / (Σ exp(s − max s) + 1e-6)
        x becomes Σ p · v                    there is no output projection

    - qkv_weight: [Nq · D, (Nq + 2 Nk) · D]. qkv_bias: [1, (Nq + 2 Nk) · D], or NULL for no bias.
    - Rotation: for even c < `rotary_embedding`, the pair (a, b) in columns c and c + 1 of a head becomes (a · cos θ −
      b · sin θ, a · sin θ + b · cos θ) with θ = pos / rope_theta^(c / rotary_embedding). Other columns do not change.
      `rotary_embedding` is even and at most D.
    - key_cache, value_cache: [layers, B, Nk, max_seq_len, D]. The call stores the new values and the new rotated keys
      in layer `layer_id`. All other elements keep their contents.

Sources: LMDeploy's TurboMind and FasterTransformer; Touvron et al., "LLaMA" (2023).
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import all_dtypes, constant, index, narrow, same, same_as_input, single, truth
from diopi_proto.dtypes import boolean as flags
from diopi_proto.facts import AtLeast, Below, CountsEntries, HoldsTruth, OneOf, SizeOf, SizesFollow
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
SizedFlags = Annotated[In, HoldsTruth(), SizesFollow()]
SizedFlagsInOut = Annotated[InOut, HoldsTruth(), SizesFollow()]


HINT = Ignored(("fusion_level",), "a hint", read=Read.value)


def sizes_of(*sizes: str, tensors: tuple[str, ...]) -> tuple[Ignored, ...]:
    """Return what a call with `fusion_level` ignores: its level, and these tensors if it queries one of the sizes."""
    reason = "the call only queries a size and changes nothing else"
    return HINT, *(Ignored(tensors, reason, {size: negative}) for size in sizes)


WORKSPACE = {"workspace": all_dtypes}
probability = constant(Dtype.float32)
top_arguments = {"top_ps": single}
CHOSEN = (
    Ignored(("top_ks",), "`top_k` is used", {"top_ks_size": (0, 1)}, Read.form),
    Ignored(("top_ps",), "`top_p` is used", {"top_ps_size": (0, 1)}, Read.form),
)
top_results = {"top_ks": same, "top_ps": probability, "skip_decode": truth}
sampling_arguments = {
    "output_ids": index,
    "end_ids": index,
    "finished": flags,
    "sequence_lengths": index,
    "runtime_top_p": single,
    "skip_decode": flags,
    "cum_log_probs": single,
    "output_log_probs": single,
}


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
    argument_dtypes=WORKSPACE,
    ignored=sizes_of("workspace_size", tensors=("inoutput", "weight1", "weight2", "weight3", "workspace")),
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
    weight2 the output projection, like w1, w3 and w2 of LLaMA. inoutput: [T, H]. weight1, weight3: [H, I]. weight2:
    [I, H].
    Source: Shazeer, "GLU Variants Improve Transformer" (2020).
    """


ATTENTION = ("inoutput", "qkv_weight", "qkv_bias", "workspace", "key_cache", "value_cache")


@prototype(
    dtypes=narrow,
    argument_dtypes={**WORKSPACE, "pre_work": all_dtypes},
    ignored=(
        *sizes_of("pre_work_size", "workspace_size", tensors=(*ATTENTION, "pre_work")),
        Ignored(("is_prepared",), "what is prepared follows from the sizes", read=Read.value),
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
    layer_id: Annotated[i64, Below("key_cache", 0)],
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

    The call has no argument for lengths, so all sequences have equal lengths. Each sequence has max_q_len new tokens
    and max_kv_len tokens in total; history = max_kv_len − max_q_len ≥ 0 of them are in the cache before the call. B =
    rows of inoutput / max_q_len. New token i of a sequence has pos = history + i. Its key and value are stored in cache
    slot pos, and it sees the slots up to pos. The mask adds −10000 to the scores of the other slots.

    inoutput: [B · max_q_len, Nq · D], one sequence after the other. `pre_work` stores data that depend only on the
    lengths, in a layout that is private to the implementation. The first call passes `is_prepared` false, and the
    implementation fills `pre_work`. Later calls with the same lengths may pass true. The result does not depend on it.
    Source: the definition of attention in this module.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={
        **WORKSPACE,
        "finished": flags,
        "total_padding_tokens": index,
        "sequence_lengths": index,
    },
    ignored=sizes_of("workspace_size", tensors=(*ATTENTION, "finished", "total_padding_tokens", "sequence_lengths")),
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
    layer_id: Annotated[i64, Below("key_cache", 0)],
    local_head_num: i64,
    local_kv_head_num: Annotated[i64, SizeOf("key_cache", 2)],
    size_per_head: Annotated[i64, SizeOf("key_cache", 4)],
    max_seq_len: Annotated[i64, SizeOf("key_cache", 3)],
    rotary_embedding: i64,
    rope_theta: f32,
):
    """Compute the attention of one new token per sequence to itself and to the cached tokens (decoding).

    Let L = sequence_lengths[b] be the number of tokens that were cached before. The new key and value are stored in
    slot L mod max_seq_len. The token attends to the times max(0, L + 1 − max_seq_len) to L, where time t is in slot t
    mod max_seq_len. There is no mask. The pos of the token is step − 1 − total_padding_tokens[b]; NULL means no
    padding. If finished[b] is true, the cache of the sequence does not change and its row of inoutput is unspecified
    after the call. A NULL `finished` is false everywhere.

    inoutput: [B, Nq · D]. finished, total_padding_tokens, sequence_lengths: [B].
    Source: the definition of attention in this module.
    """


@prototype(dtypes=index, argument_dtypes=top_arguments, result=top_results, ignored=CHOSEN)
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
    """Make the arguments of top-k sampling consistent for each sequence, in place.

    k = top_ks[b] if top_ks_size > 1, else top_k. p = top_ps[b] if top_ps_size > 1, else top_p. If k = p = 0, k becomes
    1. If k > 0 and p = 0, p becomes 1. Then top_ks[b] = min(k, 1024), top_ps[b] = p clipped to [0, 1] and
    skip_decode[b] = (k = 0). The sizes are 0, 1 or B: LMDeploy's TurboMind passes 1 if one value applies to all
    sequences, and the call reads the tensors only if there are more values. All three tensors have shape [B].
    Source: FasterTransformer, top-k sampling layer.
    """


@prototype(
    dtypes=index,
    argument_dtypes=top_arguments,
    ignored=CHOSEN,
    result={
        **top_results,
        "initial_top_p_buf": probability,
        "top_p_decay_buf": probability,
        "top_p_min_buf": probability,
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
    """Make the arguments of top-p sampling consistent for each sequence, in place.

    k and p are selected as in `diopiSetupTopkRuntimeArgsInp`. If k = p = 0, k becomes 1. Then the call writes:

    - top_ks[b] = k, without a limit; skip_decode[b] = (k > 0).
    - top_ps[b] = initial_top_p_buf[b] = p clipped to [0, 1].
    - top_p_decay_buf[b] = top_p_decay if that is in (0, 1], else 1.
    - top_p_min_buf[b] = top_p_min if that is in (0, 1], else 0.5.
    - top_p_reset_ids_buf[b] = top_p_reset_ids, where −1 means no reset.

    All tensors have shape [B].
    Source: FasterTransformer, top-p sampling layer.
    """


SAMPLING = (
    *("output_ids", "logits", "workspace", "end_ids", "finished", "sequence_lengths"),
    *("runtime_top_p", "skip_decode", "cum_log_probs", "output_log_probs"),
)
COUNTED = Ignored(("batch_size",), "the rows of logits determine it", read=Read.value)


@prototype(
    dtypes=narrow,
    argument_dtypes={**sampling_arguments, **WORKSPACE, "runtime_top_k": index},
    guarantee="random",
    ignored=(*sizes_of("workspace_size", tensors=(*SAMPLING, "runtime_top_k")), COUNTED),
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
    """Draw one token per sequence from the runtime_top_k[b] most probable ones, up to the share runtime_top_p[b].

    - If skip_decode[b] is true, nothing changes for b.
    - Otherwise, if finished[b] is true on entry, output_ids[step, b] = end_ids[b], and nothing else changes.
    - Otherwise, let w₀ ≥ w₁ ≥ … be the k largest weights and S their sum. generators[b] draws u from (0, 1]. The token
      is the first i with w₀ + … + w_i ≥ u · runtime_top_p[b] · S, or the last of the k if there is none. The weights
      are exp(l − max l) if both cum_log_probs and output_log_probs are NULL. Otherwise they are the probabilities
      exp(l − max l) / (Σ exp(l − max l) + 1e-6), where the sum is over the whole row. Then output_ids[step, b] = the id
      of the token, cum_log_probs[b] += ln w_i and output_log_probs[b] = ln w_i − ln S.
    - After a draw, if sequence_lengths and finished are both passed, sequence_lengths[b] += 1 and finished[b] = (id =
      end_ids[b]).

    output_ids: [times, B]. logits: [B, vocab_size_padded]; the call may overwrite it, and every column counts as a
    token. All other tensors: [B]. A NULL flag is false everywhere, and a NULL result is not computed. generators: B
    generators. A generator advances when it is used. u depends only on the generator's seed and offset, not on the
    position in the batch.
    Source: FasterTransformer, top-k sampling; Fan et al., "Hierarchical Neural Story Generation" (2018).
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={**sampling_arguments, **WORKSPACE, "persistent_workspace": all_dtypes},
    guarantee="random",
    ignored=(
        *sizes_of("persistent_workspace_size", "workspace_size", tensors=(*SAMPLING, "persistent_workspace")),
        COUNTED,
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
    """Draw one token per sequence from the smallest set of most probable tokens with the share P = runtime_top_p[b].

    - If skip_decode[b] is true, nothing changes for b.
    - If finished[b] is true on entry, end_ids[b] has probability 1. Otherwise the probability p of a token is exp(l −
      max l) / (Σ exp(l − max l) + 1e-6), where the sum is over the row.
    - If max p ≥ P, the token is the most probable one, with the lowest id among equals. Otherwise generators[b] draws u
      from (0, 1], and the token is the first one, in descending order of p, at which the cumulative sum reaches u · P.
    - Then output_ids[step, b] = the id of the token, cum_log_probs[b] += ln p and output_log_probs[b] = ln p. If
      sequence_lengths and finished are both passed, sequence_lengths[b] += 1 unless finished[b] was true, and
      finished[b] = (id = end_ids[b]).

    runtime_top_p does not change, because the call does not receive the buffers for its decay. `persistent_workspace`
    is passed from step to step without change by the caller. Shapes and NULL arguments are as in `diopiTopKSampling`.
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

    The columns v ≥ vocab_size pad the vocabulary. They become the lowest finite number of logits' dtype. logits:
    [B, vocab_size_padd]. bias: [vocab_size_padd], or NULL for no bias. temperatures: [B].
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

    The tokens of b are output_ids at the times t < step, without the padding input_lengths[b] ≤ t < max_input_length. A
    NULL input_lengths means no padding. With π = penalties[b], the logit l becomes the following, by `penalty_type`: 0:
    l; 1: l − π; 2: l · π if l < 0, else l / π. Any other type is an error.

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

    bad_words: [B, 2, W], or [2, W] for all sequences if `share_words`, where W = bad_words_len. Row 0 contains the
    tokens of all words, one word after the other. Row 1 contains the increasing end offsets of the words, padded with
    −1. A word extends from the end of the previous word, initially 0, to its own end. A word of n tokens applies to
    sequence b if n = 1, or if step ≥ n − 1 and the n − 1 tokens output_ids[(step − (n − 1) + q) · B + id_offset + b],
    0 ≤ q < n − 1, are its first n − 1 tokens. Then logits[b, last token] = −inf if 0 < last token < vocab_size. Token 0
    is never banned. All other logits keep their values.

    logits: [B, vocab_size]. output_ids: time-major.
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

    finished[b] becomes true if, for a word of n ≤ step + 1 tokens, token q of the word equals
    output_ids[(step − (n − 1) + q) · B + id_offset + b] for all 0 ≤ q < n. It never becomes false.

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

    finished[b] becomes true if step ≥ sequence_limit_length[b]; it never becomes false. finished_sum: [1], the number
    of finished sequences afterwards. should_stop: bool [1], whether all B sequences are finished. finished,
    sequence_limit_length: [B].
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

    For t < max_gen_step and c = context_length[b]: output_ids[b, t] = ids[t, b] if t < c; nothing is written if c ≤ t <
    max_context_len; and output_ids[b, t − (max_context_len − c)] = ids[t, b] if t ≥ max_context_len. All other elements
    of output_ids keep their contents.

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


@prototype(dtypes=index, ignored=[Ignored(("total_padding_count",), "it is 0", read=Read.value)])
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


@prototype(dtypes=(*narrow, *index), guarantee="exact")
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
    its name, the function applies neither a position encoding nor a scale.
    Source: torch.nn.functional.embedding.
    """
