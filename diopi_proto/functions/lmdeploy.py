"""The fused kernels of the LMDeploy engine: layer and attention kernels, sampling, criteria, small helpers.

- B is `batch_size`. One floating dtype a call for activations and weights, one integer width a call; flags are bool,
  probabilities, penalties and temperatures float32. Half-precision input is accumulated in float32.
- Tables of token ids are time-major, whatever their shape: the token of sequence b at time t is element t · B + b.
- Workspace query: a call whose `*workspace_size` (or `*pre_work_size`, `*persistent_workspace_size`) is negative writes
  the number of bytes it needs there, 0 if none, and does nothing else; its tensors may then be NULL. Otherwise the
  value is the size that the caller provides, and the call computes without changing it; a NULL pointer is an error. A
  workspace is of any element type and has no defined contents before or after.
- `fusion_level` ≥ 0 is the degree to which an implementation may fuse, 0 for none; the result is the same at every
  level.
- Errors: shapes that do not fit together. Ids, positions and offsets lie inside their tensors; that is the caller's
  duty and not checked.

Definition of attention in this module:
    With x the rows of `inoutput`, Nq = `local_head_num`, Nk = `local_kv_head_num` and D = `size_per_head`:

        qkv = x @ qkv_weight + qkv_bias      Nq query heads, then Nk key heads, then Nk value heads, each D wide
        s = q · k / √D + mask                query head h with key head h // (Nq / Nk), q and k rotated
        p = exp(s − max s) / (Σ exp(s − max s) + 1e-6)
        x becomes Σ p · v                    there is no output projection

    - qkv_weight: [Nq · D, (Nq + 2 Nk) · D]. qkv_bias: [1, (Nq + 2 Nk) · D], NULL for none.
    - Rotation: for even c < `rotary_embedding` the pair (a, b) in columns c and c + 1 of a head becomes
      (a · cos θ − b · sin θ, a · sin θ + b · cos θ) at θ = pos / rope_theta^(c / rotary_embedding); further columns
      stay. `rotary_embedding` is even and at most D.
    - key_cache, value_cache: [layers, B, Nk, max_seq_len, D]. The new values, and the new keys once rotated, are put
      into layer `layer_id`; everything else stays.

Sources: LMDeploy's TurboMind and FasterTransformer; Touvron et al., "LLaMA" (2023).
"""

from typing import Annotated

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
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype

SizedMutableIn = Annotated[MutableIn, SizesFollow()]
SizedFlags = Annotated[In, HoldsTruth(), SizesFollow()]
SizedFlagsInOut = Annotated[InOut, HoldsTruth(), SizesFollow()]


HINT = Ignored(("fusion_level",), "a hint", read=Read.value)


def sizes_of(*sizes: str, tensors: tuple[str, ...]) -> tuple[Ignored, ...]:
    """What is not read of a call with `fusion_level` that asks for one of these sizes."""
    reason = "the call only asks for a size and changes nothing else"
    return HINT, *(Ignored(tensors, reason, {size: negative}) for size in sizes)


WORKSPACE = {"workspace": all_dtypes}
probability = constant(Dtype.float32)
top_arguments = {"top_ps": single}
CHOSEN = (
    Ignored(("top_ks",), "`top_k` is taken", {"top_ks_size": (0, 1)}, Read.form),
    Ignored(("top_ps",), "`top_p` is taken", {"top_ps_size": (0, 1)}, Read.form),
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
    """Root mean square norm of each row, in place: x · scale / √(mean(x²) + eps).

    inoutput: [T, H]. scale: [H]. Source: Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019).
    """


@prototype(dtypes=narrow)
def diopiFusedAddRootMeanSquareNormInp(
    ctx: Context, inoutput: InOut, residual: SizedInOut, bias: Sized | None, scale: Sized, eps: f32
):
    """Residual addition and root mean square norm of its rows, in place.

    With r = residual + inoutput + bias: residual becomes r, inoutput becomes r · scale / √(mean(r²) + eps), where r
    may be rounded to residual's dtype first.

    inoutput, residual: [T, H]. bias (NULL: none), scale: [H]. Source: Zhang & Sennrich, "Root Mean Square Layer
    Normalization" (2019).
    """


@prototype(
    dtypes=narrow,
    argument_dtypes=WORKSPACE,
    ignored=sizes_of("workspace_size", tensors=("inoutput", "weight1", "weight2", "weight3", "workspace")),
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
    """Gated feed-forward layer, in place: x becomes (silu(x @ weight1) · (x @ weight3)) @ weight2, silu(a) = a · σ(a).

    weight1 is the gate projection, weight3 the up projection, and weight2 the output projection, as LLaMA's w1, w3 and
    w2. inoutput: [T, H]. weight1, weight3: [H, I]. weight2: [I, H].
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
    """Prefill: attention of the new tokens of sequences of one length to themselves and to what is cached.

    The call has no lengths to pass, so all sequences are alike: each brings max_q_len new tokens and then has
    max_kv_len tokens, history = max_kv_len − max_q_len ≥ 0 of them cached before; B = rows of inoutput / max_q_len.
    New token i of a sequence has pos = history + i, its key and value go to cache slot pos, and it sees the slots
    up to pos; a slot it does not see has −10000 added to its score.

    inoutput: [B · max_q_len, Nq · D], sequence after sequence. `pre_work` keeps what depends on lengths alone, of a
    layout private to the implementation: the first call has `is_prepared` false and fills it, later calls with the same
    lengths may say true. The result does not depend on it. Source: the attention in the module's description.
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
    """Decoding: attention of one new token a sequence to itself and to the sequence's cache.

    With L = sequence_lengths[b], the tokens cached before: the new key and value go to slot L mod max_seq_len, and the
    token attends to the times max(0, L + 1 − max_seq_len) to L, time t in slot t mod max_seq_len; no mask. Its pos is
    step − 1 − total_padding_tokens[b] (NULL: no padding). Where finished[b] is true (NULL: nowhere) the cache stays and
    the row of inoutput carries no meaning afterwards.

    inoutput: [B, Nq · D]. finished, total_padding_tokens, sequence_lengths: [B].
    Source: the attention in the module's description.
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
    """Arguments of top-k sampling made consistent, sequence by sequence, in place.

    k = top_ks[b] if top_ks_size > 1, else top_k; p = top_ps[b] if top_ps_size > 1, else top_p. k = p = 0 means k = 1,
    k > 0 with p = 0 means p = 1. Then top_ks[b] = min(k, 1024), top_ps[b] = p clipped to [0, 1],
    skip_decode[b] = (k = 0). The sizes are 0, 1 or B: LMDeploy's TurboMind passes 1 where one value serves all
    sequences, and reads the tensors only if there are more values. All three tensors have shape [B].
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
    """Arguments of top-p sampling made consistent, sequence by sequence, in place.

    k and p are chosen as in `diopiSetupTopkRuntimeArgsInp`; k = p = 0 means k = 1. Then top_ks[b] = k (not limited),
    top_ps[b] = initial_top_p_buf[b] = p clipped to [0, 1], skip_decode[b] = (k > 0), top_p_decay_buf[b] = top_p_decay
    if that is in (0, 1], else 1, top_p_min_buf[b] = top_p_min if that is in (0, 1], else 0.5, and
    top_p_reset_ids_buf[b] = top_p_reset_ids, −1 standing for no reset. All tensors have shape [B].
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
    """One token a sequence drawn from the runtime_top_k[b] most probable ones, cut at the share runtime_top_p[b].

    - Where skip_decode[b] is true nothing changes for b.
    - Else where finished[b] is true on entry, output_ids[step, b] = end_ids[b], and nothing more.
    - Else, with w₀ ≥ w₁ ≥ … the k largest weights, S their sum, and u drawn from (0, 1] by generators[b], the token is
      the first i at which w₀ + … + w_i ≥ u · runtime_top_p[b] · S, the last of the k if there is none. The weights are
      exp(l − max l) if neither cum_log_probs nor output_log_probs is given, otherwise the probabilities
      exp(l − max l) / (Σ exp(l − max l) + 1e-6), the sum over the whole row. Then output_ids[step, b] = its id,
      cum_log_probs[b] += ln w_i and output_log_probs[b] = ln w_i − ln S.
    - After a draw, if both tensors are given, sequence_lengths[b] += 1 and finished[b] = (id = end_ids[b]).

    output_ids: [times, B]. logits: [B, vocab_size_padded], scratch afterwards; every column counts as a token. All
    other tensors: [B]; a NULL flag is false everywhere, a NULL result is not computed. generators: B of them, each of
    which advances when it is drawn from; u depends on its seed and offset alone, not on its place in the batch.
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
    """One token a sequence drawn from the smallest set of most probable ones that holds the share P = runtime_top_p[b].

    - Where skip_decode[b] is true nothing changes for b.
    - Where finished[b] is true on entry, end_ids[b] has all the probability; elsewhere p of a token is
      exp(l − max l) / (Σ exp(l − max l) + 1e-6), the sum over the row.
    - If max p ≥ P the token is the most probable one, the lowest id among equals. Else, with u drawn from (0, 1] by
      generators[b], it is the first in falling order of p at which the running sum reaches u · P.
    - Then output_ids[step, b] = its id, cum_log_probs[b] += ln p, output_log_probs[b] = ln p and, if both tensors are
      given, sequence_lengths[b] += 1 unless finished[b] was true, and finished[b] = (id = end_ids[b]).

    runtime_top_p stays as it is: the buffers a decay would need are not passed. `persistent_workspace` is handed back
    unchanged from step to step. Shapes and NULL as in `diopiTopKSampling`.
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
    """Logits divided by a temperature, in place: (logits[b, v] + bias[v]) / (temperatures[b] + 1e-6).

    Columns v ≥ vocab_size, which pad the vocabulary, become the lowest finite number of logits' dtype.
    logits: [B, vocab_size_padd]. bias: [vocab_size_padd], NULL: none. temperatures: [B].
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
    """Penalty on the logits of the tokens a sequence already holds, in place, once for each distinct token.

    The tokens of b are output_ids at the times t < step, without the padding input_lengths[b] ≤ t < max_input_length
    (NULL: no padding). With π = penalties[b] the logit l becomes, by `penalty_type`: 0: l; 1: l − π; 2: l · π if l < 0,
    else l / π. Any other type is an error.

    logits: [B, vocab_size]. penalties, input_lengths: [B]. output_ids: [times, B], ids below vocab_size.
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
    """Logit −inf for every token that would complete a banned word, in place.

    bad_words: [B, 2, W], or [2, W] for all sequences if `share_words`, W = bad_words_len. Row 0 holds the tokens of all
    words end to end, row 1 the rising end offsets of the words, padded with −1: a word reaches from the previous end,
    at first 0, to its own. A word of n tokens is due in sequence b if n = 1, or if step ≥ n − 1 and the n − 1 tokens
    output_ids[(step − (n − 1) + q) · B + id_offset + b], 0 ≤ q < n − 1, are its first n − 1. Then logits[b, last token]
    = −inf, provided 0 < last token < vocab_size: token 0 is never banned. All other logits stay.

    logits: [B, vocab_size]. output_ids: time-major. Source: FasterTransformer, ban bad words.
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
    """Sequences marked as finished whose last tokens are a stop word.

    finished[b] becomes true if a word of n ≤ step + 1 tokens equals, for 0 ≤ q < n,
    output_ids[(step − (n − 1) + q) · B + id_offset + b]; it never becomes false.

    stop_words: [B, 2, W], W = stop_words_len, laid out as in `diopiBanBadWordsInp`. finished: [B]. output_ids:
    time-major. Source: FasterTransformer, stop words criterion.
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
    """Sequences marked as finished that have reached their limit: finished[b] becomes true if step ≥ its limit.

    finished_sum: [1], how many are finished then. should_stop: bool [1], whether all B are. finished,
    sequence_limit_length: [B]; finished never becomes false. Source: FasterTransformer, length criterion.
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
    """Time-major tokens gathered sequence by sequence, the padding between prompt and answer left out.

    For t < max_gen_step, with c = context_length[b]: output_ids[b, t] = ids[t, b] if t < c, nothing if
    c ≤ t < max_context_len, and output_ids[b, t − (max_context_len − c)] = ids[t, b] after that. The other elements of
    output_ids keep their contents.

    output_ids: [B, max_output_len]; all places written lie inside. ids: [times, B]. context_length: [B].
    Source: LMDeploy, gather output.
    """


@prototype(
    dtypes=index,
    ignored=(
        Ignored(("val",), "nothing is added to", {"size": 0}, Read.value),
        Ignored(("size",), "0 is added", {"val": 0}, Read.value),
    ),
)
def diopiPlusScalarInp(ctx: Context, inoutput: InOut, val: const_i64, size: Annotated[const_i64, AtLeast(0)]):
    """The first `size` elements of inoutput plus `val`, in place; the others stay.

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
    """Padding of each sequence: total_padding_count[b], 0 on entry, becomes max_input_length − input_lengths[b].

    Both tensors: [B]. The caller hands in zeros; an implementation may assign or add. Source: LMDeploy, padding count.
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
    """The first two axes swapped: output[j, i, k] = input[i, j, k].

    input: [dim0, dim1, dim2]. output: [dim1, dim0, dim2], contiguous. Source: torch.transpose.
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
    """Embeddings of the tokens of one time: from_tensor[b] = embedding_table[all_ids[step · B + b]].

    from_tensor: [B, hidden_units]. embedding_table: [V, hidden_units]. all_ids: time-major. Neither a position encoding
    nor a scaling is applied, despite the name. Source: torch.nn.functional.embedding.
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
    """Embeddings of the tokens of a prompt: from_tensor[i] = embedding_table[input_ids[i]].

    from_tensor: [input_lengths, hidden_units]. input_ids: [input_lengths]. embedding_table: [V, hidden_units]. Neither
    a position encoding nor a scaling is applied, despite the name. Source: torch.nn.functional.embedding.
    """
