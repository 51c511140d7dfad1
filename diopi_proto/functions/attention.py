"""Attention and other parts of a transformer layer: rotary embedding, RMS norm and masked softmax.

The attention formula
    All attention functions of this family share one formula. For one batch entry and one query head, let i < Sq
    number the query rows and j < Sk the key and value rows. D is the head size, and off = Sk − Sq:

        s[i, j] = scale · Σ_d q[i, d] · k[j, d] + bias[i, j]     if query i sees key j, else −inf
        p[i, ·] = softmax(s[i, ·])
        out[i]  = Σ_j p[i, j] · v[j]
        lse[i]  = ln Σ_j exp(s[i, j])

    - Grouped heads: Hq query heads share Hk key and value heads. Hq is a multiple of Hk, and query head h uses key and
      value head h // (Hq / Hk).
    - Causal calls: query i sees key j if j ≤ i + off, so the last query sees every key (bottom-right alignment).
    - Window (left, right): query i sees key j if i + off − left ≤ j ≤ i + off + right. −1 removes the limit on that
      side. A causal call uses right = 0, whatever value is passed.
    - ALiBi: `alibi_slopes`, float32 of shape [Hq] or [B, Hq], gives bias = −slope · |i + off − j|. NULL gives bias 0.
      In a causal call, `softmax_lse` may omit the summand slope · (i + off). The summand is constant along a row, so
      `out` does not depend on it.
    - A query that sees no key has out = 0, lse = +inf and gradients 0.
    - `scale` is used as passed. The call does not multiply it by the usual 1/√D.
    - Dropout with probability P: `out` uses p' = p · M / (1 − P) instead of p. Each element of M is 1 with probability
      1 − P, else 0. P = 1 gives 0. lse does not depend on dropout. `gen` may be NULL if P = 0; otherwise it is
      required. The implementation decides which elements are dropped, so the guarantee of the result applies only to
      P = 0.
    - lse is the natural logarithm for the scores with scale and bias. Its type is never a half-precision type.

    The gradients, where dO is the gradient of out and p is computed again as exp(s − lse):

        dS = p ∘ (dO · vᵀ − rowsum(dO ∘ out));  grad_q = scale · dS · k;  grad_k = scale · dSᵀ · q;  grad_v = pᵀ · dO

    grad_k and grad_v are summed over the query heads that share a key head. With dropout, the gradients use the M of
    the forward call: the caller passes `gen` in the state that it had before that call. Then grad_v = p'ᵀ · dO, and dO
    · vᵀ is multiplied by M / (1 − P). The slopes have no gradient.

Every call overwrites its results completely. Half-precision input is accumulated in float32. Calls with empty tensors
succeed. The call is rejected if shapes do not match, if Hq is not a multiple of Hk, or if a probability is outside
[0, 1].

Sources: Vaswani et al., "Attention Is All You Need" (2017); Dao, "FlashAttention-2" (2023); Press et al., "Train Short,
Test Long" (2022, ALiBi); torch.nn.functional.scaled_dot_product_attention.
"""

from typing import Annotated, Literal

from diopi_proto.callers import CallForm
from diopi_proto.declaration import prototype
from diopi_proto.dtypes import boolean as truth_values
from diopi_proto.dtypes import constant, floating, index, narrow, same, same_as_input, single, statistic, truth
from diopi_proto.facts import AtLeast, AtMostOne, HoldsTruth, MayAlias, NeededWhere, SequenceStarts, SizesFollow
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Broadcast,
    Context,
    Extents,
    Generator,
    In,
    InOut,
    MutableIn,
    NewOut,
    Out,
    PositiveExtent,
    Size,
    Sized,
    SizedInOut,
    boolean,
    const_boolean,
    f32,
    f64,
    i32,
    i64,
)
from diopi_proto.types import Dtype

BroadcastMask = Annotated[In, HoldsTruth(), SizesFollow(broadcast=True)]
"""A mask that broadcasts to a shape which the preceding arguments determine."""

RotatedOut = Annotated[Out, MayAlias("x")]
"""A result that may be the tensor of the argument `x`."""

SizedMutableIn = Annotated[MutableIn, SizesFollow()]
"""An input that the C interface declares writable; its shape follows from the preceding arguments."""

Probability = Annotated[f32, AtLeast(0), AtMostOne()]
"""A probability in [0, 1], a `float`."""

WideProbability = Annotated[f64, AtLeast(0), AtMostOne()]
"""A probability in [0, 1], a `double`."""

HeadCount = Annotated[i32, AtLeast(1)]
"""A number of heads, at least 1."""

DropoutGenerator = Annotated[Generator, NeededWhere("p_dropout")]
"""The generator of dropout; required unless `p_dropout` is 0."""

WideDropoutGenerator = Annotated[Generator, NeededWhere("dropout_p")]
"""The generator of dropout; required unless `dropout_p` is 0."""

CausalMask = Annotated[In, HoldsTruth(), SizesFollow(), NeededWhere("is_causal")]
"""A mask that is required if `is_causal` is true; its shape follows from the preceding arguments."""

QueryStarts = Annotated[In, SequenceStarts("q")]
"""The rows of `q` at which packed sequences start, followed by the number of rows."""

KeyStarts = Annotated[Sized, SequenceStarts("k")]
"""The rows of `k` at which packed sequences start, followed by the number of rows."""

Layout = Literal["BSND", "BNSD", "BSH", "SBH"]
"""The order of the axes: B batch, S sequence, N heads, D head size, H = N · D."""

DROPOUT_MASK_DTYPES = (Dtype.uint8,)
"""The element type of stored dropout masks."""

int32 = (Dtype.int32,)
"""The element type of cumulative lengths."""

FLASH_RESULT_DTYPES = {"attention_out": same, "softmax_lse": constant(Dtype.float32)}
"""The rules for the element types of the results of flash attention."""

MULTI_HEAD_RESULT_DTYPES = {"out": same, "softmax_lse": statistic, "debug_attn_mask": truth}
"""The rules for the element types of the results of multi-head attention."""

CUSTOMIZED_RESULT_DTYPES = {
    "attention_out": same,
    "dropout_mask": constant(Dtype.uint8),
    "softmax_max": constant(Dtype.float32),
    "softmax_sum": constant(Dtype.float32),
    "softmax_out": constant(Dtype.float32),
}
"""The rules for the element types of the results of customized flash attention."""

CUSTOMIZED_ARGUMENT_DTYPES = {
    "alibi_slopes": single,
    "attention_mask": truth_values,
    "dropout_mask": DROPOUT_MASK_DTYPES,
    "softmax_max": single,
    "softmax_sum": single,
    "softmax_out": single,
}
"""The element types of the arguments of customized flash attention, as far as they differ from `q`."""

IGNORES_BIAS = Ignored(("bias",), "no gradient depends on it")
"""No gradient depends on `bias`."""

IGNORES_EPS = Ignored(("eps",), "inv_rms already includes it")
"""No gradient depends on `eps`."""

IGNORES_MASK_ELEMENTS = Ignored(("mask",), "only positions determine the mask", {"fixed_triu_mask": True}, Read.form)
"""The elements of `mask` are ignored if `fixed_triu_mask` is true."""

UNUSED_GENERATOR = Ignored(("gen",), "no random number is drawn", {"p_dropout": 0})
"""`gen` is ignored if `p_dropout` is 0."""

UNUSED_WIDE_GENERATOR = Ignored(("gen",), "no random number is drawn", {"dropout_p": 0})
"""`gen` is ignored if `dropout_p` is 0."""

IGNORES_RIGHT_WINDOW = Ignored(("window_size_right",), "a causal call sees no later keys", {"is_causal": True})
"""`window_size_right` is ignored in causal calls."""

DETERMINED_BY_LENGTHS = "the lengths of the sequences determine which elements are read"
"""The reason why the maximum lengths do not affect the results."""

IGNORES_SOFTMAX_RECORDS = Ignored(
    ("softmax_max", "softmax_sum", "softmax_out"), "the other arguments determine them", read=Read.value
)
"""The saved statistics of the softmax do not change the gradients, because they follow from the other arguments."""

IGNORES_DEBUG_FLAG = Ignored(("return_debug_mask",), "the contents of the debug mask are unspecified", read=Read.value)
"""No specified result depends on `return_debug_mask`."""

IGNORES_CAUSAL_FLAG = Ignored(("is_causal",), "the mask already hides the later keys", {"is_causal": True}, Read.value)
"""`is_causal` true does not affect the results, because the mask already hides the later keys."""

LMDEPLOY = "LMDeploy's DIPU backend (dlinfer)"
"""The caller whose argument shapes `CallForm` describes."""

ROTARY_BY_CALLERS = (
    CallForm(name="lmdeploy", caller=LMDEPLOY, shapes=dict.fromkeys(("cos", "sin"), (1, "T", 1, "dim"))),
    CallForm(
        name="lmdeploy-per-sequence",
        caller=LMDEPLOY,
        condition="For several sequences",
        shapes={"query": ("B", "S", "Hq", "dim"), **dict.fromkeys(("cos", "sin"), ("B", "S", 1, "dim"))},
    ),
)
"""The shapes that LMDeploy passes to `diopiRotaryEmbeddingV2`."""

MASKS_BY_CALLERS = (
    CallForm(
        name="lmdeploy",
        caller=LMDEPLOY,
        shapes={"q": ("B", "S", "N", "D"), "attention_mask": (1, 1, "S", "S")},
    ),
    CallForm(
        name="lmdeploy-mask-per-sequence",
        caller=LMDEPLOY,
        condition="For several sequences",
        shapes={"q": ("B", "S", "N", "D"), "attention_mask": ("B", 1, "S", "S")},
    ),
)
"""The shapes that LMDeploy passes to customized flash attention."""

FLASH_IGNORED = [UNUSED_GENERATOR, IGNORES_RIGHT_WINDOW]
"""The ignored arguments of flash attention for sequences of equal length."""

FLASH_VARLEN_IGNORED = [*FLASH_IGNORED, Ignored(("max_seqlen_kv",), DETERMINED_BY_LENGTHS, read=Read.value)]
"""The ignored arguments of flash attention for packed sequences."""

FLASH_VARLEN_BACKWARD_IGNORED = [
    *FLASH_IGNORED,
    Ignored(("max_seqlen_q", "max_seqlen_kv"), DETERMINED_BY_LENGTHS, read=Read.value),
]
"""The ignored arguments of the gradients of flash attention for packed sequences."""


@prototype(dtypes=floating)
def diopiRotaryEmbedding(
    ctx: Context,
    out: RotatedOut,
    x: In,
    cos: Broadcast,
    sin: Broadcast,
    conj: const_boolean,
    interleaved: const_boolean,
):
    """Rotate pairs of elements in the last axis of x by angles, which are passed as cosines and sines.

    For each i < D/2, the pair (a, b) becomes (a · cos[i] − b · sin[i], a · sin[i] + b · cos[i]). The new numbers are
    written to the positions of a and b.

    - x, out: [..., D] with an even D; an odd D is an error.
    - cos, sin: the last axis has size D/2, and the other axes broadcast against those of x. For example, they have
      shape [S, 1, D/2] for x of shape [B, S, H, D]. They normally have the dtype of x. Other dtypes are converted to
      float32 first, or to float64 if x is float64.
    - interleaved: if false, the pair is (x[i], x[i + D/2]). If true, it is (x[2i], x[2i + 1]).
    - conj: if true, sin is negated, which gives the opposite rotation. The opposite rotation is also the gradient.

    LMDeploy's DIPU backend (dlinfer) passes x as out.

    Source: Su et al., "RoFormer" (2021).
    """


@prototype(dtypes=floating, call_forms=ROTARY_BY_CALLERS)
def diopiRotaryEmbeddingV2(ctx: Context, query: InOut, key: SizedInOut, cos: Sized, sin: Sized, dim: PositiveExtent):
    """Rotate the heads of query and key in place; the cosines and sines have the size of a head.

    Every head x of size `dim` becomes y:

    - y[d] = x[d] · cos[d] − x[d + dim/2] · sin[d] for d < dim/2.
    - y[d] = x[d] · cos[d] + x[d − dim/2] · sin[d] for d ≥ dim/2.

    The two halves of cos may differ, and so may those of sin. The shapes are:

    - query: [T, Hq · dim] or [..., T, Hq, dim].
    - key: likewise, with a possibly different number of heads.
    - cos, sin: [T, 1, dim], the same for all heads. They may have more leading axes, which equal those of query before
      T or have size 1. If query is [T, Hq · dim], the axes of cos before the last two contain T tokens in total.

    All tensors have one dtype. The call is rejected if `dim` is odd or does not divide the size of the last axis.

    Source: Su et al., "RoFormer" (2021).
    """


@prototype(dtypes=floating, result={"out": same, "inv_rms": statistic}, backward="diopiRMSNormBackward")
def diopiRMSNorm(
    ctx: Context,
    out: Out,
    inv_rms: Out,
    input: In,
    normalized_shape: Extents,
    weight: Sized | None,
    bias: Sized | None,
    eps: f64,
):
    """Normalize by the root mean square: out = input · r · weight + bias with r = 1/√(mean(input²) + eps).

    The mean is over the last n ≥ 1 axes, whose sizes are `normalized_shape`. The mean of input is not subtracted.

    - weight, bias: the shape normalized_shape and the dtype of input, or float32 with half-precision input. A NULL
      weight stands for 1, a NULL bias for 0.
    - inv_rms: a result, r, with the shape of the leading axes (0-d if there are none). It is float32 for half-precision
      input.

    The call is rejected if normalized_shape is empty or differs from the last sizes of input.

    Source: Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019); torch.nn.functional.rms_norm.
    """


@prototype(
    dtypes=floating,
    result={"grad_input": same, "grad_weight": same_as_input(2), "grad_bias": same_as_input(2)},
    ignored=[IGNORES_BIAS, IGNORES_EPS],
)
def diopiRMSNormBackward(
    ctx: Context,
    grad_input: Out,
    grad_weight: Out | None,
    grad_bias: Out | None,
    grad_output: In,
    input: Sized,
    weight: Sized | None,
    bias: Sized | None,
    inv_rms: Sized,
    normalized_shape: Extents,
    eps: f64,
):
    """Compute the gradients of `diopiRMSNorm`.

    With r = inv_rms, x̂ = input · r and g = grad_output · weight:

        grad_input  = r · (g − x̂ · mean(g · x̂))      mean over the normalized axes
        grad_weight = Σ grad_output · x̂              sum over the leading axes, in the shape and dtype of weight
        grad_bias   = Σ grad_output                  likewise

    grad_output and grad_input have the shape of input. inv_rms is a result of the forward call and is used without
    change, so eps has no effect. A NULL weight stands for 1; then grad_weight is NULL too. If bias is NULL, grad_bias
    is NULL.

    Source: derivative of the formula.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"mask": (*narrow, *truth_values)},
    ignored=[IGNORES_MASK_ELEMENTS],
    backward="diopiScaledMaskedSoftmaxBackward",
)
def diopiScaledMaskedSoftmax(
    ctx: Context, output: Out, input: In, mask: BroadcastMask, scale: f64, fixed_triu_mask: boolean
):
    """Compute the softmax along the last axis of scale · input, with −10000 (not −inf) at masked elements.

    `fixed_triu_mask` determines which elements are masked:

    - false: the elements where mask is true, or not zero if mask is floating.
    - true: the elements to the right of the diagonal, column > row in the last two axes. The contents of mask are
      ignored.

    input and output have one shape with at least two axes. mask has the same shape or a shape that broadcasts to it,
    usually [B, 1, Sq, Sk] with input [B, H, Sq, Sk]. If all elements of a row are masked, all results of the row are
    equal.

    Source: Megatron-LM, fused scaled masked softmax.
    """


@prototype(dtypes=narrow, argument_dtypes={"mask": (*narrow, *truth_values)}, ignored=[IGNORES_MASK_ELEMENTS])
def diopiScaledMaskedSoftmaxBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    output: Sized,
    mask: BroadcastMask,
    scale: f64,
    fixed_triu_mask: boolean,
):
    """Compute the gradient of `diopiScaledMaskedSoftmax` from its result.

    grad_input = scale · output · (grad_output − Σ grad_output · output), with the sum along the last axis. Masked
    elements have gradient 0. All tensors except mask have the same shape and dtype.

    Source: derivative of the formula.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"alibi_slopes": single},
    result=FLASH_RESULT_DTYPES,
    ignored=FLASH_IGNORED,
    backward="diopiFlashAttentionBackward",
    multiplies_matrices=True,
)
def diopiFlashAttention(
    ctx: Context,
    attention_out: Out,
    softmax_lse: Out,
    gen: DropoutGenerator | None,
    q: In,
    k: Sized,
    v: Sized,
    alibi_slopes: Sized | None,
    p_dropout: Probability,
    softmax_scale: f32,
    is_causal: boolean,
    window_size_left: i32,
    window_size_right: i32,
):
    """Compute attention for sequences of equal length.

    The result out is named `attention_out`, and the result lse is named `softmax_lse`.

    - q, attention_out: [B, Sq, Hq, D].
    - k, v: [B, Sk, Hk, D].
    - softmax_lse: float32 [B, Hq, Sq].
    - p_dropout: the probability P of dropout. softmax_scale: the factor `scale`.
    - window_size_left, window_size_right: the window; −1 removes the limit on a side.

    Source: the attention formula of the family `attention`.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"alibi_slopes": single, "softmax_lse": single},
    ignored=FLASH_IGNORED,
    multiplies_matrices=True,
)
def diopiFlashAttentionBackward(
    ctx: Context,
    grad_q: Out,
    grad_k: Out,
    grad_v: Out,
    grad_output: In,
    gen: DropoutGenerator | None,
    q: Sized,
    k: Sized,
    v: Sized,
    alibi_slopes: Sized | None,
    attention_out: Sized,
    softmax_lse: Sized,
    p_dropout: Probability,
    softmax_scale: f32,
    is_causal: boolean,
    window_size_left: i32,
    window_size_right: i32,
):
    """Compute the gradients of `diopiFlashAttention` with respect to q, k and v.

    Each gradient has the shape of its argument. grad_output has the shape of attention_out. attention_out and
    softmax_lse are the results of the forward call, and the attributes are those of that call.

    Source: the attention formula of the family `attention`.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"cum_seq_q": int32, "cum_seq_kv": int32, "alibi_slopes": single},
    result=FLASH_RESULT_DTYPES,
    ignored=FLASH_VARLEN_IGNORED,
    backward="diopiFlashAttentionVarLenBackward",
    multiplies_matrices=True,
)
def diopiFlashAttentionVarLen(
    ctx: Context,
    attention_out: Out,
    softmax_lse: Out,
    gen: DropoutGenerator | None,
    q: In,
    k: Sized,
    v: Sized,
    cum_seq_q: QueryStarts,
    cum_seq_kv: KeyStarts,
    alibi_slopes: Sized | None,
    max_seqlen_q: i32,
    max_seqlen_kv: i32,
    p_dropout: Probability,
    softmax_scale: f32,
    is_causal: boolean,
    window_size_left: i32,
    window_size_right: i32,
):
    """Compute attention for packed sequences. Each sequence attends only to itself and has its own Sq and Sk.

    - q, attention_out: [Tq, Hq, D].
    - k, v: [Tk, Hk, D].
    - cum_seq_q, cum_seq_kv: int32 [B + 1], which do not decrease and go from 0 to Tq and Tk. Sequence b consists of the
      rows cum[b] to cum[b + 1] − 1.
    - softmax_lse: float32 [B, Hq, max_seqlen_q]. Elements beyond the length of a sequence are unspecified.
    - max_seqlen_q, max_seqlen_kv: at least the largest lengths. They do not change the elements of the results.

    The other arguments are as in `diopiFlashAttention`.

    Source: the attention formula of the family `attention`.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"cum_seq_q": int32, "cum_seq_kv": int32, "alibi_slopes": single, "softmax_lse": single},
    ignored=FLASH_VARLEN_BACKWARD_IGNORED,
    multiplies_matrices=True,
)
def diopiFlashAttentionVarLenBackward(
    ctx: Context,
    grad_q: Out,
    grad_k: Out,
    grad_v: Out,
    grad_output: In,
    gen: DropoutGenerator | None,
    q: Sized,
    k: Sized,
    v: Sized,
    cum_seq_q: QueryStarts,
    cum_seq_kv: KeyStarts,
    alibi_slopes: Sized | None,
    attention_out: Sized,
    softmax_lse: Sized,
    max_seqlen_q: i32,
    max_seqlen_kv: i32,
    p_dropout: Probability,
    softmax_scale: f32,
    is_causal: boolean,
    window_size_left: i32,
    window_size_right: i32,
):
    """Compute the gradients of `diopiFlashAttentionVarLen` with respect to q, k and v.

    Each gradient has the shape of its argument. grad_output has the shape of attention_out. attention_out and
    softmax_lse are the results of the forward call, and the attributes are those of that call.

    Source: the attention formula of the family `attention`.
    """


@prototype(
    dtypes=floating,
    result=MULTI_HEAD_RESULT_DTYPES,
    ignored=[UNUSED_WIDE_GENERATOR, IGNORES_DEBUG_FLAG],
    backward="diopiMultiHeadAttentionBackward",
    multiplies_matrices=True,
)
def diopiMultiHeadAttention(
    ctx: Context,
    q: MutableIn,
    k: SizedMutableIn,
    v: SizedMutableIn,
    dropout_p: WideProbability,
    is_causal: boolean,
    return_debug_mask: boolean,
    scale: f64,
    out: Out,
    softmax_lse: Out,
    gen: WideDropoutGenerator | None,
    debug_attn_mask: Out | None,
):
    """Compute attention without ALiBi and window for sequences of equal length. `diopiFlashAttention` supersedes it.

    - q, out: [B, Sq, H, D].
    - k, v: [B, Sk, H, D], with as many heads as q.
    - softmax_lse: [B, H, Sq], float32, or float64 for float64 input.
    - debug_attn_mask: bool [B, H, Sq, Sk], true where dropout retained the element. It is written only if
      `return_debug_mask` is true; otherwise it may be NULL or empty.

    In the parameter list, the results follow the attributes. q, k and v are declared writable, but the call does not
    write to them.

    Source: the attention formula of the family `attention`.
    """


@prototype(dtypes=floating, ignored=[UNUSED_WIDE_GENERATOR], multiplies_matrices=True)
def diopiMultiHeadAttentionBackward(
    ctx: Context,
    grad_out: In,
    q: Sized,
    k: Sized,
    v: Sized,
    out: Sized,
    softmax_lse: Sized,
    dropout_p: WideProbability,
    is_causal: boolean,
    gen: WideDropoutGenerator | None,
    scale: f64,
    grad_q: Out,
    grad_k: Out,
    grad_v: Out,
):
    """Compute the gradients of `diopiMultiHeadAttention` with respect to q, k and v.

    Each gradient has the shape of its argument. grad_out has the shape of out. out and softmax_lse are the results of
    the forward call, and the attributes are those of that call. In the parameter list, the results come last.

    Source: the attention formula of the family `attention`.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"cum_seq_q": index, "cum_seq_k": index},
    result=MULTI_HEAD_RESULT_DTYPES,
    ignored=[UNUSED_WIDE_GENERATOR, IGNORES_DEBUG_FLAG, Ignored(("max_k",), DETERMINED_BY_LENGTHS, read=Read.value)],
    backward="diopiMultiHeadAttentionVarLenBackward",
    multiplies_matrices=True,
)
def diopiMultiHeadAttentionVarLen(
    ctx: Context,
    q: MutableIn,
    k: SizedMutableIn,
    v: SizedMutableIn,
    cum_seq_q: QueryStarts,
    cum_seq_k: KeyStarts,
    max_q: i64,
    max_k: i64,
    dropout_p: WideProbability,
    is_causal: boolean,
    return_debug_mask: boolean,
    scale: f64,
    out: Out,
    softmax_lse: Out,
    gen: WideDropoutGenerator | None,
    debug_attn_mask: Out | None,
):
    """Compute attention without ALiBi and window for packed sequences. `diopiFlashAttentionVarLen` supersedes it.

    - q, out: [Tq, H, D].
    - k, v: [Tk, H, D].
    - cum_seq_q, cum_seq_k: int32 or int64 [B + 1]. They, max_q and max_k are as in `diopiFlashAttentionVarLen`.
    - softmax_lse: [B, H, max_q], float32, or float64 for float64 input. Elements beyond the length of a sequence are
      unspecified.
    - debug_attn_mask: bool [B, H, max_q, max_k].

    The rest is as in `diopiMultiHeadAttention`.

    Source: the attention formula of the family `attention`.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"cum_seq_q": index, "cum_seq_k": index},
    ignored=[UNUSED_WIDE_GENERATOR, Ignored(("max_q", "max_k"), DETERMINED_BY_LENGTHS, read=Read.value)],
    multiplies_matrices=True,
)
def diopiMultiHeadAttentionVarLenBackward(
    ctx: Context,
    grad_out: In,
    q: Sized,
    k: Sized,
    v: Sized,
    out: Sized,
    softmax_lse: Sized,
    cum_seq_q: QueryStarts,
    cum_seq_k: KeyStarts,
    max_q: i64,
    max_k: i64,
    dropout_p: WideProbability,
    is_causal: boolean,
    gen: WideDropoutGenerator | None,
    scale: f64,
    grad_q: Out,
    grad_k: Out,
    grad_v: Out,
):
    """Compute the gradients of `diopiMultiHeadAttentionVarLen` with respect to q, k and v.

    Each gradient has the shape of its argument. grad_out has the shape of out. out and softmax_lse are the results of
    the forward call, and the attributes are those of that call. In the parameter list, the results come last.

    Source: the attention formula of the family `attention`.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"alibi_slopes": single, "attention_mask": truth_values},
    result=CUSTOMIZED_RESULT_DTYPES,
    ignored=[*FLASH_IGNORED, IGNORES_CAUSAL_FLAG],
    call_forms=MASKS_BY_CALLERS,
    backward="diopiCustomizedFlashAttentionBackward",
    multiplies_matrices=True,
)
def diopiCustomizedFlashAttention(
    ctx: Context,
    attention_out: Out,
    dropout_mask: NewOut,
    softmax_max: NewOut,
    softmax_sum: NewOut,
    softmax_out: NewOut,
    gen: DropoutGenerator | None,
    q: In,
    k: Sized,
    v: Sized,
    alibi_slopes: Sized | None,
    attention_mask: CausalMask | None,
    p_dropout: Probability,
    softmax_scale: f32,
    is_causal: boolean,
    window_size_left: i32,
    window_size_right: i32,
    head_num: HeadCount,
    input_layout: Layout,
):
    """Compute attention with an explicit mask, in a layout that the caller selects. A device may omit this function.

    `input_layout` selects the shape of q, k and v. Any other text is an error.

    - "BSND": [B, S, N, D].
    - "BNSD": [B, N, S, D].
    - "BSH": [B, S, N · D]. Head n has the columns n · D to n · D + D − 1.
    - "SBH": [S, B, N · D], with heads as in "BSH".

    attention_out has the shape of q. `head_num` is the number N of query heads; k and v may have fewer heads.

    attention_mask: bool [Sq, Sk], [1, 1, Sq, Sk] or [B, 1, Sq, Sk]. TRUE means that the query does NOT see the key.
    NULL hides nothing.

    `is_causal` requires a mask that contains the causal triangle (true for j > i). If Sq and Sk both exceed 2048, the
    caller passes a triangle of 2048 × 2048 instead. If `is_causal` is true, query i sees key j if the mask is false and
    j ≤ i. This alignment is top-left; it differs from the causal rule of the formula if Sq ≠ Sk.

    A device may reject slopes and windows, but it must accept NULL slopes with the windows −1 and −1.

    The other results are records for the backward function of the same library. Their contents are unspecified.

    - softmax_max, softmax_sum: float32 [B, N, Sq, 8], the maximum of each row and its Σ exp(s − maximum), each repeated
      eight times.
    - softmax_out: float32, empty.
    - dropout_mask: uint8, one bit per element of [B, N, Sq, Sk], ceil(B · N · Sq · Sk / 128) · 16 bytes. It is not
      written if p_dropout = 0.

    Source: the attention formula of the family `attention`.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes=CUSTOMIZED_ARGUMENT_DTYPES,
    ignored=[IGNORES_RIGHT_WINDOW, IGNORES_SOFTMAX_RECORDS, IGNORES_CAUSAL_FLAG],
    call_forms=MASKS_BY_CALLERS,
    multiplies_matrices=True,
)
def diopiCustomizedFlashAttentionBackward(
    ctx: Context,
    grad_q: Out,
    grad_k: Out,
    grad_v: Out,
    grad_output: In,
    q: Sized,
    k: Sized,
    v: Sized,
    alibi_slopes: Sized | None,
    attention_out: Sized,
    attention_mask: CausalMask | None,
    dropout_mask: Sized | None,
    softmax_max: In,
    softmax_sum: In,
    softmax_out: In,
    p_dropout: Probability,
    softmax_scale: f32,
    is_causal: boolean,
    window_size_left: i32,
    window_size_right: i32,
    head_num: HeadCount,
    input_layout: Layout,
):
    """Compute the gradients of `diopiCustomizedFlashAttention`, in the layout and shapes of q, k and v.

    attention_out, softmax_max, softmax_sum, softmax_out and dropout_mask are results of the forward call of the same
    library. dropout_mask is NULL if p_dropout = 0. The attributes are those of the forward call.

    Source: the attention formula of the family `attention`.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"alibi_slopes": single, "attention_mask": truth_values},
    result=CUSTOMIZED_RESULT_DTYPES,
    ignored=[*FLASH_VARLEN_BACKWARD_IGNORED, IGNORES_CAUSAL_FLAG],
    backward="diopiCustomizedFlashAttentionVarLenBackward",
    multiplies_matrices=True,
)
def diopiCustomizedFlashAttentionVarLen(
    ctx: Context,
    attention_out: Out,
    dropout_mask: NewOut,
    softmax_max: NewOut,
    softmax_sum: NewOut,
    softmax_out: NewOut,
    gen: DropoutGenerator | None,
    q: In,
    k: Sized,
    v: Sized,
    cum_seq_q: Size,
    cum_seq_kv: Size,
    alibi_slopes: Sized | None,
    attention_mask: CausalMask | None,
    max_seqlen_q: i32,
    max_seqlen_kv: i32,
    p_dropout: Probability,
    softmax_scale: f32,
    is_causal: boolean,
    window_size_left: i32,
    window_size_right: i32,
):
    """Compute attention with an explicit mask for packed sequences. A device may omit this function.

    - q, attention_out: [Tq, N, D].
    - k, v: [Tk, Hk, D].
    - cum_seq_q, cum_seq_kv: B integers in host memory, the end of each sequence. There is no leading 0: sequence b
      consists of the rows cum[b − 1] to cum[b] − 1, where cum[−1] stands for 0.
    - attention_mask: bool [max_seqlen_q, max_seqlen_kv]. TRUE means that the query does NOT see the key. Each sequence
      uses the top-left corner of Sq × Sk elements.
    - softmax_max, softmax_sum: float32 [Tq, N, 8].

    The rest, including `is_causal`, is as in `diopiCustomizedFlashAttention`.

    Source: the attention formula of the family `attention`.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes=CUSTOMIZED_ARGUMENT_DTYPES,
    ignored=[*FLASH_VARLEN_BACKWARD_IGNORED[1:], IGNORES_SOFTMAX_RECORDS, IGNORES_CAUSAL_FLAG],
    multiplies_matrices=True,
)
def diopiCustomizedFlashAttentionVarLenBackward(
    ctx: Context,
    grad_q: Out,
    grad_k: Out,
    grad_v: Out,
    grad_output: In,
    q: Sized,
    k: Sized,
    v: Sized,
    cum_seq_q: Size,
    cum_seq_kv: Size,
    alibi_slopes: Sized | None,
    attention_out: Sized,
    attention_mask: CausalMask | None,
    dropout_mask: Sized | None,
    softmax_max: In,
    softmax_sum: In,
    softmax_out: In,
    max_seqlen_q: i32,
    max_seqlen_kv: i32,
    p_dropout: Probability,
    softmax_scale: f32,
    is_causal: boolean,
    window_size_left: i32,
    window_size_right: i32,
):
    """Compute the gradients of `diopiCustomizedFlashAttentionVarLen`, in the shapes of q, k and v.

    The arguments are as in `diopiCustomizedFlashAttentionBackward` and in the forward call.

    Source: the attention formula of the family `attention`.
    """
