"""Attention, and what a transformer layer puts around it: rotary embedding, RMS norm, masked softmax.

Attention core
    The functions called attention share one formula. For one batch entry and one query head, with query rows i < Sq,
    key and value rows j < Sk, head size D and off = Sk − Sq:

        s[i, j] = scale · Σ_d q[i, d] · k[j, d] + bias[i, j]     where j is visible to i, else −inf
        p[i, ·] = softmax(s[i, ·])
        out[i]  = Σ_j p[i, j] · v[j]
        lse[i]  = ln Σ_j exp(s[i, j])

    - Grouped heads: Hq query heads share Hk key and value heads, Hq a multiple of Hk; query head h uses h // (Hq / Hk).
    - Causal: j is visible iff j ≤ i + off; the last query sees every key (bottom-right alignment).
    - Window (left, right): j is visible iff i + off − left ≤ j ≤ i + off + right; −1 leaves that side open. Causal
      calls have right = 0, whatever was given.
    - ALiBi: `alibi_slopes`, float32 [Hq] or [B, Hq], gives bias = −slope · |i + off − j|; NULL gives bias = 0. In a
      causal call `softmax_lse` may lack the part slope · (i + off), which is constant along a row and leaves the
      result alone.
    - A query that sees no key has out = 0, lse = +inf and gradients 0.
    - `scale` is taken as it is given; the usual 1/√D is the caller's business.
    - Dropout with probability P: p' = p · M / (1 − P) takes the place of p in `out`, M being 1 with probability 1 − P
      and else 0; P = 1 gives 0. lse knows nothing of it. `gen` may be NULL when P = 0, and is required otherwise. M is
      random: the implementation chooses which elements are dropped. The guarantee of the result holds for P = 0.
    - lse is natural, of the scaled and biased scores, never of half precision.

    Gradients, for dO = the gradient of out, with p rebuilt as exp(s − lse):

        dS = p ∘ (dO · vᵀ − rowsum(dO ∘ out));  grad_q = scale · dS · k;  grad_k = scale · dSᵀ · q;  grad_v = pᵀ · dO

    summed over the query heads that share a key head. With dropout the forward call's M applies again: `gen` has the
    state that call found, grad_v = p'ᵀ · dO, and dO · vᵀ is multiplied by M / (1 − P). No gradient for the slopes.

Every result is overwritten in full. Half-precision input is accumulated in float32. Empty
tensors succeed. Shapes that do not fit together, an Hq that is no multiple of Hk, and a probability outside [0, 1]
are errors. Sources: Vaswani et al., "Attention Is All You Need" (2017); Dao, "FlashAttention-2" (2023); Press et al.,
"Train Short, Test Long" (2022, ALiBi); torch.nn.functional.scaled_dot_product_attention.
"""

from typing import Annotated, Literal

from diopi_proto.callers import CallForm
from diopi_proto.dtypes import boolean as truth_values
from diopi_proto.dtypes import constant, floating, index, narrow, same, same_as_input, single, statistic, truth
from diopi_proto.facts import AtLeast, AtMostOne, HoldsTruth, MayAlias, NeededWhere, SizesFollow
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
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype

BroadcastMask = Annotated[In, HoldsTruth(), SizesFollow(broadcast=True)]
RotatedOut = Annotated[Out, MayAlias("x")]
SizedMutableIn = Annotated[MutableIn, SizesFollow()]
Probability = Annotated[f32, AtLeast(0), AtMostOne()]
WideProbability = Annotated[f64, AtLeast(0), AtMostOne()]
HeadCount = Annotated[i32, AtLeast(1)]
DropoutGenerator = Annotated[Generator, NeededWhere("p_dropout")]
WideDropoutGenerator = Annotated[Generator, NeededWhere("dropout_p")]
CausalMask = Annotated[In, HoldsTruth(), SizesFollow(), NeededWhere("is_causal")]
Layout = Literal["BSND", "BNSD", "BSH", "SBH"]

bits = (Dtype.uint8,)
int32 = (Dtype.int32,)
flash_results = {"attention_out": same, "softmax_lse": constant(Dtype.float32)}
multi_head_results = {"out": same, "softmax_lse": statistic, "debug_attn_mask": truth}
customized_results = {
    "attention_out": same,
    "dropout_mask": constant(Dtype.uint8),
    "softmax_max": constant(Dtype.float32),
    "softmax_sum": constant(Dtype.float32),
    "softmax_out": constant(Dtype.float32),
}
customized_arguments = {
    "alibi_slopes": single,
    "attention_mask": truth_values,
    "dropout_mask": bits,
    "softmax_max": single,
    "softmax_sum": single,
    "softmax_out": single,
}

NO_BIAS = Ignored(("bias",), "no gradient depends on it")
NO_EPS = Ignored(("eps",), "inv_rms already includes it")
BY_POSITION = Ignored(("mask",), "only positions determine the mask", {"fixed_triu_mask": True}, Read.form)
NOTHING_DRAWN = Ignored(("gen",), "nothing is drawn", {"p_dropout": 0})
NOTHING_DRAWN_WIDE = Ignored(("gen",), "nothing is drawn", {"dropout_p": 0})
NO_LATER_KEYS = Ignored(("window_size_right",), "a causal call sees no later keys", {"is_causal": True})
LONGEST = "the lengths determine what is read"
OWN_RECORDS = Ignored(
    ("softmax_max", "softmax_sum", "softmax_out"), "they follow from the rest of the call", read=Read.value
)
NOT_SHOWN = Ignored(("return_debug_mask",), "the contents of the debug mask are unspecified", read=Read.value)
BY_MASK = Ignored(("is_causal",), "the mask contains the triangle", {"is_causal": True}, Read.value)
LMDEPLOY = "LMDeploy's DIPU backend (dlinfer)"
ROTARY_BY_CALLERS = (
    CallForm(name="lmdeploy", caller=LMDEPLOY, shapes=dict.fromkeys(("cos", "sin"), (1, "T", 1, "dim"))),
    CallForm(
        name="lmdeploy-per-sequence",
        caller=LMDEPLOY,
        condition="For several sequences",
        shapes={"query": ("B", "S", "Hq", "dim"), **dict.fromkeys(("cos", "sin"), ("B", "S", 1, "dim"))},
    ),
)
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
FLASH = [NOTHING_DRAWN, NO_LATER_KEYS]
FLASH_VARLEN = [*FLASH, Ignored(("max_seqlen_kv",), LONGEST, read=Read.value)]
FLASH_VARLEN_BACKWARD = [*FLASH, Ignored(("max_seqlen_q", "max_seqlen_kv"), LONGEST, read=Read.value)]


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
    """Rotation of the pairs (a, b) in the last axis of x by the angles whose cosines and sines are given.

    out_a = a · cos[i] − b · sin[i] and out_b = a · sin[i] + b · cos[i], written where a and b came from, for i < D/2:
    `interleaved` false pairs x[i] with x[i + D/2], true pairs x[2i] with x[2i + 1]. `conj` negates sin: the opposite
    rotation, which is also the gradient.

    x, out: [..., D], D even. cos, sin: last axis D/2, the other axes broadcast against those of x ([S, 1, D/2] for x
    of shape [B, S, H, D], say), normally of x's dtype; others are converted to float32 first, float64 for float64 x.
    LMDeploy's DIPU backend (dlinfer) passes x for out. An odd D is an error. Source: Su et al., "RoFormer" (2021).
    """


@prototype(dtypes=floating, call_forms=ROTARY_BY_CALLERS)
def diopiRotaryEmbeddingV2(ctx: Context, query: InOut, key: SizedInOut, cos: Sized, sin: Sized, dim: PositiveExtent):
    """Rotation of query and key in place, head by head, with cosines and sines as wide as a head.

    For every head x of size `dim`: y[d] = x[d] · cos[d] − x[d + dim/2] · sin[d] for d < dim/2, and
    y[d] = x[d] · cos[d] + x[d − dim/2] · sin[d] from there on. The two halves of cos and sin need not be equal.

    query: [T, Hq · dim] or [..., T, Hq, dim]; key likewise with its own number of heads. cos, sin: [T, 1, dim], the
    same for all heads; they may have further axes in front, which are those in front of T, or of size 1. Where query is
    [T, Hq · dim], the axes in front of the last two hold T tokens in all. All of one dtype. An odd `dim`, or one that
    does not divide the last axis, is an error.
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
    """Root mean square norm: out = input · r · weight + bias with r = 1/√(mean(input²) + eps).

    The mean is over the last n ≥ 1 axes, whose sizes are `normalized_shape`; the mean of input is not subtracted.
    weight, bias: shape normalized_shape, of input's dtype, or float32 beside half-precision input; NULL stands for
    1 and 0. inv_rms: r, of the shape of the leading axes (0-d if there are none), float32 for half-precision input.
    A normalized_shape that is empty or does not end input's shape is an error.
    Source: Zhang & Sennrich, "Root Mean Square Layer Normalization" (2019); torch.nn.functional.rms_norm.
    """


@prototype(
    dtypes=floating,
    result={"grad_input": same, "grad_weight": same_as_input(2), "grad_bias": same_as_input(2)},
    ignored=[NO_BIAS, NO_EPS],
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
    """Gradients of `diopiRMSNorm`. With r = inv_rms, x̂ = input · r, g = grad_output · weight:

    grad_input = r · (g − x̂ · mean(g · x̂)), the mean over the normalized axes; grad_weight = Σ grad_output · x̂ and
    grad_bias = Σ grad_output, the sums over the leading axes, in the shape and dtype of weight.

    grad_output, grad_input: shape of input. inv_rms is the forward call's result, used as it is; eps has no effect.
    A NULL weight stands for 1 and goes with a NULL grad_weight, a NULL bias with a NULL grad_bias.
    Source: derivative of the formula.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"mask": (*narrow, *truth_values)},
    ignored=[BY_POSITION],
    backward="diopiScaledMaskedSoftmaxBackward",
)
def diopiScaledMaskedSoftmax(
    ctx: Context, output: Out, input: In, mask: BroadcastMask, scale: f64, fixed_triu_mask: boolean
):
    """Softmax along the last axis of t, which is scale · input, and −10000 (not −inf) where masked.

    Masked are the elements whose mask is true (or, of a floating mask, not zero); with `fixed_triu_mask` instead
    those right of the diagonal, column > row in the last two axes, and the contents of mask have no part.

    input, output: one shape, at least 2-d. mask: that shape or one that broadcasts to it, usually [B, 1, Sq, Sk]
    beside [B, H, Sq, Sk]. A row masked throughout is uniform. Source: Megatron-LM, fused scaled masked softmax.
    """


@prototype(dtypes=narrow, argument_dtypes={"mask": (*narrow, *truth_values)}, ignored=[BY_POSITION])
def diopiScaledMaskedSoftmaxBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    output: Sized,
    mask: BroadcastMask,
    scale: f64,
    fixed_triu_mask: boolean,
):
    """Gradient of `diopiScaledMaskedSoftmax` from its result: scale · output · (grad_output − Σ grad_output · output).

    The sum is along the last axis; masked elements have gradient 0. All tensors but mask have one shape and dtype.
    Source: derivative of the formula.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"alibi_slopes": single},
    result=flash_results,
    ignored=FLASH,
    backward="diopiFlashAttentionBackward",
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
    """Attention core on sequences of one length.

    q, attention_out: [B, Sq, Hq, D]. k, v: [B, Sk, Hk, D]. softmax_lse: float32 [B, Hq, Sq].
    Source: the attention core in the module's description.
    """


@prototype(dtypes=narrow, argument_dtypes={"alibi_slopes": single, "softmax_lse": single}, ignored=FLASH)
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
    """Gradients of `diopiFlashAttention`, shaped as q, k and v; grad_output as attention_out.

    attention_out and softmax_lse are the forward call's results, and the attributes are those of that call.
    Source: the attention core in the module's description.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"cum_seq_q": int32, "cum_seq_kv": int32, "alibi_slopes": single},
    result=flash_results,
    ignored=FLASH_VARLEN,
    backward="diopiFlashAttentionVarLenBackward",
)
def diopiFlashAttentionVarLen(
    ctx: Context,
    attention_out: Out,
    softmax_lse: Out,
    gen: DropoutGenerator | None,
    q: In,
    k: Sized,
    v: Sized,
    cum_seq_q: In,
    cum_seq_kv: Sized,
    alibi_slopes: Sized | None,
    max_seqlen_q: i32,
    max_seqlen_kv: i32,
    p_dropout: Probability,
    softmax_scale: f32,
    is_causal: boolean,
    window_size_left: i32,
    window_size_right: i32,
):
    """Attention core on packed sequences, each attended to by itself with its own Sq and Sk.

    q, attention_out: [Tq, Hq, D]. k, v: [Tk, Hk, D]. cum_seq_q, cum_seq_kv: int32 [B + 1], rising from 0 to Tq and Tk:
    sequence b owns the rows cum[b] to cum[b + 1] − 1. softmax_lse: float32 [B, Hq, max_seqlen_q]; what lies beyond
    a sequence's length carries no meaning. max_seqlen_q and max_seqlen_kv, at least the longest lengths, do not
    change the result. Source: the attention core in the module's description.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"cum_seq_q": int32, "cum_seq_kv": int32, "alibi_slopes": single, "softmax_lse": single},
    ignored=FLASH_VARLEN_BACKWARD,
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
    cum_seq_q: In,
    cum_seq_kv: Sized,
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
    """Gradients of `diopiFlashAttentionVarLen`, shaped as q, k and v; grad_output as attention_out.

    attention_out and softmax_lse are the forward call's results, and the attributes are those of that call.
    Source: the attention core in the module's description.
    """


@prototype(
    dtypes=floating,
    result=multi_head_results,
    ignored=[NOTHING_DRAWN_WIDE, NOT_SHOWN],
    backward="diopiMultiHeadAttentionBackward",
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
    """Attention core without ALiBi and window, on sequences of one length. Superseded by `diopiFlashAttention`.

    q, out: [B, Sq, H, D]. k, v: [B, Sk, H, D], as many heads as q. softmax_lse: [B, H, Sq], float32, float64 for
    float64 input. debug_attn_mask: bool [B, H, Sq, Sk], true where dropout kept the element; written only if
    `return_debug_mask` is set, otherwise it may be NULL or empty. The results come after the attributes. q, k and v
    are declared writable and stay as they are. Source: the attention core in the module's description.
    """


@prototype(dtypes=floating, ignored=[NOTHING_DRAWN_WIDE])
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
    """Gradients of `diopiMultiHeadAttention`, shaped as q, k and v; grad_out as out. The results come last.

    out and softmax_lse are the forward call's results, and the attributes are those of that call.
    Source: the attention core in the module's description.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"cum_seq_q": index, "cum_seq_k": index},
    result=multi_head_results,
    ignored=[NOTHING_DRAWN_WIDE, NOT_SHOWN, Ignored(("max_k",), LONGEST, read=Read.value)],
    backward="diopiMultiHeadAttentionVarLenBackward",
)
def diopiMultiHeadAttentionVarLen(
    ctx: Context,
    q: MutableIn,
    k: SizedMutableIn,
    v: SizedMutableIn,
    cum_seq_q: In,
    cum_seq_k: Sized,
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
    """Attention core without ALiBi and window, on packed sequences. Superseded by `diopiFlashAttentionVarLen`.

    q, out: [Tq, H, D]. k, v: [Tk, H, D]. cum_seq_q, cum_seq_k: [B + 1], max_q, max_k: as in
    `diopiFlashAttentionVarLen`. softmax_lse: [B, H, max_q], float32, float64 for float64 input, without meaning
    beyond a sequence's length. debug_attn_mask: bool [B, H, max_q, max_k], and everything else as in
    `diopiMultiHeadAttention`. Source: the attention core in the module's description.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"cum_seq_q": index, "cum_seq_k": index},
    ignored=[NOTHING_DRAWN_WIDE, Ignored(("max_q", "max_k"), LONGEST, read=Read.value)],
)
def diopiMultiHeadAttentionVarLenBackward(
    ctx: Context,
    grad_out: In,
    q: Sized,
    k: Sized,
    v: Sized,
    out: Sized,
    softmax_lse: Sized,
    cum_seq_q: In,
    cum_seq_k: Sized,
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
    """Gradients of `diopiMultiHeadAttentionVarLen`, shaped as q, k and v; grad_out as out. The results come last.

    out and softmax_lse are the forward call's results, and the attributes are those of that call.
    Source: the attention core in the module's description.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"alibi_slopes": single, "attention_mask": truth_values},
    result=customized_results,
    ignored=[*FLASH, BY_MASK],
    call_forms=MASKS_BY_CALLERS,
    backward="diopiCustomizedFlashAttentionBackward",
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
    """Attention core with an explicit mask, in a layout the caller names. Devices may leave it out.

    `input_layout` names the shape of q, k and v, and attention_out has that of q: "BSND" [B, S, N, D], "BNSD"
    [B, N, S, D], "BSH" [B, S, N · D], "SBH" [S, B, N · D], the columns of head n being n · D to n · D + D − 1; anything
    else is an error. `head_num` is the number N of query heads; k and v may have fewer.

    attention_mask: bool [Sq, Sk], [1, 1, Sq, Sk] or [B, 1, Sq, Sk], TRUE where the key is NOT visible; NULL hides
    nothing. `is_causal` requires a mask holding the causal triangle (true for j > i); when Sq and Sk both exceed 2048,
    a triangle of 2048 × 2048 stands for it. Visible is what the mask leaves and, if `is_causal`, j ≤ i (top-left:
    unlike the core's rule when Sq ≠ Sk). Slopes and windows may be refused: NULL, −1 and −1 are always served.

    softmax_max and softmax_sum (float32 [B, N, Sq, 8]: a row's maximum and its Σ exp(s − maximum), eight times over),
    softmax_out (float32, empty) and dropout_mask (uint8, one bit an element of [B, N, Sq, Sk],
    ceil(B · N · Sq · Sk / 128) · 16 bytes; left alone when p_dropout = 0) are made by the callee for its own
    backward function, and mean nothing to anyone else. Source: the attention core in the module's description.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes=customized_arguments,
    ignored=[NO_LATER_KEYS, OWN_RECORDS, BY_MASK],
    call_forms=MASKS_BY_CALLERS,
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
    """Gradients of `diopiCustomizedFlashAttention`, in the layout and shapes of q, k and v.

    attention_out, softmax_max, softmax_sum and softmax_out are results of the same library's forward call, and so is
    dropout_mask, which is NULL when p_dropout = 0; the attributes are those of that call.
    Source: the attention core in the module's description.
    """


@prototype(
    dtypes=narrow,
    argument_dtypes={"alibi_slopes": single, "attention_mask": truth_values},
    result=customized_results,
    ignored=[*FLASH_VARLEN_BACKWARD, BY_MASK],
    backward="diopiCustomizedFlashAttentionVarLenBackward",
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
    """Attention core with an explicit mask, on packed sequences. Devices may leave it out.

    q, attention_out: [Tq, N, D]. k, v: [Tk, Hk, D]. cum_seq_q, cum_seq_kv: B host integers, where each sequence ends;
    there is no leading 0: sequence b owns the rows cum[b − 1] to cum[b] − 1, cum[−1] standing for 0.
    attention_mask: bool [max_seqlen_q, max_seqlen_kv], TRUE where the key is NOT visible; its top-left corner of
    Sq × Sk serves each sequence. softmax_max, softmax_sum: float32 [Tq, N, 8]. Everything else, `is_causal` too, as in
    `diopiCustomizedFlashAttention`. Source: the attention core in the module's description.
    """


@prototype(
    dtypes=narrow, argument_dtypes=customized_arguments, ignored=[*FLASH_VARLEN_BACKWARD[1:], OWN_RECORDS, BY_MASK]
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
    """Gradients of `diopiCustomizedFlashAttentionVarLen`, shaped as q, k and v.

    Arguments as in `diopiCustomizedFlashAttentionBackward` and the forward call.
    Source: the attention core in the module's description.
    """
