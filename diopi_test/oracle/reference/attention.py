"""Attention, head by head in the plain form, and what a transformer layer puts around it.

All forms of attention are one computation, `attended` and `pulled_back`, on sequences of [rows, heads, head size]; they
differ in which rows make a sequence (`Sequences`) and in what a query sees (`Rule`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import Judged, PartlySpecified, WithTerms, bare, reference
from diopi_test.oracle.reference.products import with_terms
from diopi_test.oracle.reference.sums import relative_terms, sum_terms

float32 = np.finfo(np.float32)
"""The narrowest format in which shares are computed."""

Array = NDArray[Any]
Overrides = Sequence[ResultOverride | None]
Rows = int | slice
Sequences = list[tuple[Rows, Rows]]
"""Of each sequence: which rows of the query tensor it owns, and which of those of keys and values."""


# Rotary embedding


def rotated(a: Array, b: Array, cos: Array, sin: Array, other_cos: Array, other_sin: Array) -> tuple[Any, Any]:
    """a · cos − b · sin and b · cos + a · sin, each with the size of the two terms that may cancel."""
    return (
        WithTerms(a * cos - b * sin, np.abs(a * cos) + np.abs(b * sin)),
        WithTerms(b * other_cos + a * other_sin, np.abs(b * other_cos) + np.abs(a * other_sin)),
    )


def _together(first: WithTerms, second: WithTerms, axis: int) -> WithTerms:
    """Two results, each half of one along the last axis (−1) or taking turns there (−2)."""
    shape = (*first.value.shape[:-1], 2 * first.value.shape[-1])
    parts = [(one, other) for one, other in ((first.value, second.value), (first.terms, second.terms))]
    joined = [np.stack(pair, -2 if axis == -1 else -1).reshape(shape) for pair in parts]
    return WithTerms(*joined)


@reference("diopiRotaryEmbedding")
def rotary_embedding(x: Array, cos: Array, sin: Array, conj: bool, interleaved: bool) -> WithTerms:
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    sin = -sin if conj else sin
    return _together(*rotated(a, b, cos, sin, cos, sin), axis=-2 if interleaved else -1)


@reference("diopiRotaryEmbeddingV2")
def rotary_embedding_v2(query: Array, key: Array, cos: Array, sin: Array, dim: int) -> tuple[Any, Any]:
    return _rotated_heads(query, cos, sin, dim), _rotated_heads(key, cos, sin, dim)


def _rotated_heads(x: Array, cos: Array, sin: Array, dim: int) -> WithTerms:
    """Each head of `dim` numbers rotated, with cosines and sines for both of its halves."""
    heads = x.reshape(len(x), x.shape[1] // dim, dim) if x.ndim == 2 else x
    half = dim // 2
    first = cos[..., :half], sin[..., :half]
    result = _together(
        *rotated(heads[..., :half], heads[..., half:], *first, cos[..., half:], sin[..., half:]), axis=-1
    )
    return WithTerms(result.value.reshape(x.shape), result.terms.reshape(x.shape))


# RMS norm


def _normalised(input: Array, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(range(input.ndim - len(normalized_shape), input.ndim))


def _or_one(weight: Array | None) -> Array:
    return np.ones(()) if weight is None else weight


@reference("diopiRMSNorm")
def rms_norm(
    input: Array, normalized_shape: Sequence[int], weight: Array | None, bias: Array | None, eps: float
) -> Any:
    axes = _normalised(input, normalized_shape)
    inv_rms = 1 / np.sqrt((input**2).mean(axes, keepdims=True) + eps)
    scaled = input * inv_rms * _or_one(weight)
    return scaled if bias is None else WithTerms(scaled + bias, np.abs(scaled)), inv_rms.squeeze(axes)


@reference("diopiRMSNormBackward")
def rms_norm_backward(
    grad_output: Array,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    inv_rms: Array,
    normalized_shape: Sequence[int],
    eps: float,
) -> Any:
    axes = _normalised(input, normalized_shape)
    leading = tuple(range(input.ndim - len(normalized_shape)))
    r = inv_rms.reshape(*input.shape[: len(leading)], *[1] * len(axes))
    x_hat, g = input * r, grad_output * _or_one(weight)
    slope = x_hat * (g * x_hat).mean(axes, keepdims=True)
    # the mean, with its own rounding, may cancel g
    count = np.maximum(np.prod(normalized_shape), 1)
    terms = np.abs(r) * (np.abs(slope) + np.abs(x_hat) * sum_terms(g * x_hat, axes, keepdims=True) / count)
    return (
        WithTerms(r * (g - slope), terms),
        WithTerms((grad_output * x_hat).sum(leading), sum_terms(grad_output * x_hat, leading)),
        WithTerms(grad_output.sum(leading), sum_terms(grad_output, leading)),
    )


# Scaled masked softmax

HIDDEN = -10000.0
"""What stands in the place of masked scores."""


def _is_masked(shape: tuple[int, ...], mask: Array, fixed_triu_mask: bool) -> Array:
    if fixed_triu_mask:
        return np.arange(shape[-1]) > np.arange(shape[-2])[:, None]
    return mask != 0


@reference("diopiScaledMaskedSoftmax")
def scaled_masked_softmax(input: Array, mask: Array, scale: float, fixed_triu_mask: bool) -> WithTerms:
    scores = np.where(_is_masked(input.shape, mask, fixed_triu_mask), HIDDEN, scale * input)
    e = np.exp(scores - np.max(scores, -1, keepdims=True, initial=-np.inf))
    shares = e / e.sum(-1, keepdims=True)
    # a score is rounded when it is scaled, and so is the sum that all are divided by
    largest = np.max(np.abs(np.where(e > 0, scores, 0)), -1, keepdims=True, initial=0)
    return WithTerms(shares, shares * (relative_terms(e, -1) + largest), signed=True)


@reference("diopiScaledMaskedSoftmaxBackward")
def scaled_masked_softmax_backward(
    grad_output: Array, output: Array, mask: Array, scale: float, fixed_triu_mask: bool
) -> WithTerms:
    weighted = grad_output * output
    slopes = scale * output * (grad_output - weighted.sum(-1, keepdims=True))
    terms = np.abs(scale * output) * sum_terms(weighted, -1, keepdims=True)
    return WithTerms(np.where(_is_masked(output.shape, mask, fixed_triu_mask), 0, slopes), terms)


# The attention core


@dataclass(frozen=True)
class Rule:
    """What of the keys a query sees, and what is added to its scores.

    Attributes:
        scale: of scores.
        causal: whether a query sees no key behind its own place.
        window: how many keys it sees before and behind its place, negative for all.
        slopes: of ALiBi, [heads] or [sequences, heads].
        hidden: where a key is not visible, [rows of queries, rows of keys], or that for each sequence.
        top_left: whether the first query stands at the first key, and not the last at the last.
        dropped: probability of a share to fall.
        seed: of what falls.
    """

    scale: float
    causal: bool = False
    window: tuple[int, int] = (-1, -1)
    slopes: Array | None = None
    hidden: Array | None = None
    top_left: bool = False
    dropped: float = 0.0
    seed: int | None = None

    def distances(self, queries: int, keys: int) -> Array:
        """How far behind the place of each query each key is."""
        first = 0 if self.top_left else keys - queries
        return np.arange(keys) - (np.arange(queries)[:, None] + first)

    def visible(self, number: int, queries: int, keys: int) -> Array:
        """Where keys of sequence `number` are visible to its queries."""
        left, right = self.window
        right = 0 if self.causal else right
        distance = self.distances(queries, keys)
        seen = np.ones((queries, keys), bool)
        if left >= 0:
            seen &= distance >= -left
        if right >= 0:
            seen &= distance <= right
        if self.hidden is not None:
            hidden = self.hidden if self.hidden.ndim == 2 else self.hidden[number]
            seen &= ~hidden[:queries, :keys]
        return seen

    def bias(self, number: int, head: int, queries: int, keys: int) -> Array:
        """What is added to the scores of a head."""
        if self.slopes is None:
            return np.zeros((queries, keys))
        slope = self.slopes[head] if self.slopes.ndim == 1 else self.slopes[number, head]
        return np.asarray(-slope * np.abs(self.distances(queries, keys)))

    def kept(self, number: int, heads: int, queries: int, keys: int) -> Array:
        """What the shares of each head of sequence `number` are multiplied by; one of the right answers."""
        if self.dropped in (0, 1):
            return np.full((heads, queries, keys), 1 - self.dropped)
        assert self.seed is not None
        rng = np.random.default_rng((self.seed, number))
        return (rng.random((heads, queries, keys)) >= self.dropped) / (1 - self.dropped)


@dataclass(frozen=True)
class Shares:
    """How one head divides its attention.

    Attributes:
        p: the shares, [queries, keys]; all 0 for a query that sees nothing.
        top: the largest score of each query.
        lse: logarithm of what they were divided by.
        error: of the logarithms of shares before they are divided, in roundings.
        total_error: of what they are divided by, relative to it.
    """

    p: Array
    top: Array
    lse: Array
    error: Array
    total_error: Array


def _scores(q: Array, k: Array, rule: Rule, bias: Array, seen: Array) -> tuple[Array, Array]:
    """Scores, −inf where nothing is seen, and the size of terms whose rounding they carry."""
    products = with_terms(lambda one, other: one @ other.T, q, k)
    scores = np.where(seen, rule.scale * products.value + bias, -np.inf)
    # a score is rounded once more when it is scaled and biased, and the bias before
    terms = np.abs(rule.scale) * products.terms + np.abs(bias) + np.abs(rule.scale * products.value)
    return scores, np.where(seen, terms, 0)


def _shares(q: Array, k: Array, rule: Rule, bias: Array, seen: Array) -> Shares:
    scores, error = _scores(q, k, rule, bias, seen)
    top = np.max(scores, 1, keepdims=True, initial=-np.inf)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = e.sum(1, keepdims=True)
    lse = np.where(total == 0, np.inf, top + np.log(total))
    p = np.where(total == 0, 0, e / total)
    return Shares(p, top[:, 0], lse[:, 0], error, np.where(total == 0, 0, relative_terms(e, 1)))


def _weighted(shares: Shares, kept: Array, v: Array) -> WithTerms:
    """Σ p · v with the errors of p: an error of a score moves its share, and all others the opposite way."""
    p = shares.p * kept
    sums = with_terms(lambda one, other: one @ other, p, v)
    moved, out = (p * shares.error) ** 2, sums.value
    squares = moved @ v**2 - 2 * out * (moved @ v) + out**2 * moved.sum(1, keepdims=True)
    return WithTerms(out, sums.terms + np.sqrt(np.maximum(squares, 0)) + np.abs(out) * shares.total_error)


@dataclass(frozen=True)
class Attended:
    """What the core gives: results as q, logarithms of the sums and largest scores as [sequences, heads, rows]."""

    out: WithTerms
    lse: WithTerms
    top: Array


def attended(q: Array, k: Array, v: Array, sequences: Sequences, rule: Rule, rows: int) -> Attended:
    """The attention core; `rows` is how many queries a sequence has at most."""
    heads, group = q.shape[-2], q.shape[-2] // k.shape[-2]
    out, lse = (WithTerms(np.zeros(s), np.zeros(s)) for s in (q.shape, (len(sequences), heads, rows)))
    top = np.zeros(lse.value.shape)
    for number, (own, others) in enumerate(sequences):
        lengths = len(q[own]), len(k[others])
        seen, kept = rule.visible(number, *lengths), rule.kept(number, heads, *lengths)
        for head in range(heads):
            bias = rule.bias(number, head, *lengths)
            shares = _shares(q[own][:, head], k[others][:, head // group], rule, bias, seen)
            one = _weighted(shares, kept[head], v[others][:, head // group])
            out.value[own][:, head], out.terms[own][:, head] = one.value, one.terms
            spread = np.sqrt(((shares.p * shares.error) ** 2).sum(1))
            lse.value[number, head, : lengths[0]], top[number, head, : lengths[0]] = shares.lse, shares.top
            lse.terms[number, head, : lengths[0]] = spread + shares.total_error[:, 0]
    return Attended(out, lse, top)


def pulled_back(
    g: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, sequences: Sequences, rule: Rule
) -> tuple[WithTerms, ...]:
    """The gradients of q, k and v, from g, that of the core's result."""
    grads = tuple(WithTerms(np.zeros(x.shape), np.zeros(x.shape)) for x in (q, k, v))
    heads, group = q.shape[-2], q.shape[-2] // k.shape[-2]
    for number, (own, others) in enumerate(sequences):
        lengths = len(q[own]), len(k[others])
        seen, kept = rule.visible(number, *lengths), rule.kept(number, heads, *lengths)
        for head in range(heads):
            places = (own, head), (others, head // group), (others, head // group)
            of_q, of_k, of_v = (x[rows][:, column] for x, (rows, column) in zip((q, k, v), places, strict=True))
            of_out, of_lse = out[own][:, head], lse[number, head, : lengths[0]]
            bias = rule.bias(number, head, *lengths)
            found = _pulled_back_head(of_q, of_k, of_v, g[own][:, head], of_out, of_lse, kept[head], rule, bias, seen)
            for grad, one, (rows, column) in zip(grads, found, places, strict=True):
                grad.value[rows][:, column] += one.value
                grad.terms[rows][:, column] += one.terms
    return grads


def _pulled_back_head(
    q: Array,
    k: Array,
    v: Array,
    g: Array,
    out: Array,
    lse: Array,
    kept: Array,
    rule: Rule,
    bias: Array,
    seen: Array,
) -> tuple[WithTerms, WithTerms, WithTerms]:
    scores, error = _scores(q, k, rule, bias, seen)
    p = np.where(seen, np.exp(scores - lse[:, None]), 0)
    error = np.where(seen & np.isfinite(lse[:, None]), error + np.abs(lse[:, None]), 0)  # rounded, too
    error = np.where(p < float32.smallest_normal, 1 / float32.eps, error)  # taken for 0, as a result may be
    slopes = with_terms(lambda one, other: one @ other.T, g, v)
    level, level_terms = (g * out).sum(1, keepdims=True), sum_terms(g * out, 1, keepdims=True)
    ds = p * (slopes.value * kept - level)
    ds_error = p * (slopes.terms * kept + level_terms) + np.abs(ds) * error
    return (
        _product(rule.scale, ds, ds_error, k),
        _product(rule.scale, ds.T, ds_error.T, q),
        _product(1.0, (p * kept).T, (p * kept * error).T, g),
    )


def _product(scale: float, a: Array, error: Array, b: Array) -> WithTerms:
    """scale · a @ b, where `a` has errors of its own."""
    product = with_terms(lambda one, other: one @ other, a, b)
    return WithTerms(scale * product.value, np.abs(scale) * (product.terms + np.sqrt(error**2 @ b**2)))


# Which rows make a sequence


def of_one_length(q: Array) -> Sequences:
    """[sequences, rows, heads, head size]: a sequence an entry."""
    return [(number, number) for number in range(len(q))]


def packed(ends_q: Sequence[int] | Array, ends_k: Sequence[int] | Array) -> Sequences:
    """One sequence behind the other, `ends` being where each begins and the last ends."""
    queries, keys = ([slice(int(a), int(b)) for a, b in pairwise(ends)] for ends in (ends_q, ends_k))
    return list(zip(queries, keys, strict=True))


def _all_packed(ends_q: Sequence[int] | Array, ends_k: Sequence[int] | Array, q: Array, k: Array) -> Sequences:
    """As `packed`, of all rows of q and k; ValueError if there are other ones."""
    for ends, rows in ((ends_q, q), (ends_k, k)):
        if ends[0] != 0 or ends[-1] != len(rows) or (np.diff(ends) < 0).any():
            raise ValueError(
                f"sequences begin and end at {list(ends)}, expected numbers that rise from 0 to {len(rows)}"
            )
    return packed(ends_q, ends_k)


def _specified_lse(lse: WithTerms, q: Array, sequences: Sequences, rule: Rule) -> PartlySpecified:
    """Open for queries that see nothing, beyond the ends of sequences, and where the bias may lack a part."""
    rows = np.array([len(q[own]) for own, _ in sequences])
    within = np.arange(lse.value.shape[-1]) < rows[:, None, None]
    whole = rule.slopes is None or not rule.causal
    return PartlySpecified(lse, np.isfinite(lse.value) & within & whole)


def drawn(rule: Rule, result: Any) -> Any:
    """A result that is left to chance, if it is."""
    return Judged(bare(result)) if 0 < rule.dropped < 1 else result


def _unspecified(value: Any) -> PartlySpecified:
    """A result of which the form alone is specified."""
    return PartlySpecified(value, np.zeros(np.shape(value), bool))


def drawn_gradients(rule: Rule, grads: tuple[WithTerms, ...]) -> Any:
    """With dropout those of q and k follow from a forward result that nobody but the implementation can give."""
    if not 0 < rule.dropped < 1:
        return grads
    return _unspecified(grads[0].value), _unspecified(grads[1].value), Judged(grads[2].value)


# Forms


@reference("diopiFlashAttention")
def flash_attention(
    gen: int | None,
    q: Array,
    k: Array,
    v: Array,
    alibi_slopes: Array | None,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    window = window_size_left, window_size_right
    rule = Rule(softmax_scale, is_causal, window, alibi_slopes, dropped=p_dropout, seed=gen)
    return _forward(q, k, v, of_one_length(q), rule, q.shape[1])


def _forward(q: Array, k: Array, v: Array, sequences: Sequences, rule: Rule, rows: int) -> tuple[Any, Any]:
    result = attended(q, k, v, sequences, rule, rows)
    return drawn(rule, result.out), _specified_lse(result.lse, q, sequences, rule)


@reference("diopiFlashAttentionBackward")
def flash_attention_backward(
    grad_output: Array,
    gen: int | None,
    q: Array,
    k: Array,
    v: Array,
    alibi_slopes: Array | None,
    attention_out: Array,
    softmax_lse: Array,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    window = window_size_left, window_size_right
    rule = Rule(softmax_scale, is_causal, window, alibi_slopes, dropped=p_dropout, seed=gen)
    grads = pulled_back(grad_output, q, k, v, attention_out, softmax_lse, of_one_length(q), rule)
    return drawn_gradients(rule, grads)


@reference("diopiFlashAttentionVarLen")
def flash_attention_var_len(
    gen: int | None,
    q: Array,
    k: Array,
    v: Array,
    cum_seq_q: Array,
    cum_seq_kv: Array,
    alibi_slopes: Array | None,
    max_seqlen_q: int,
    max_seqlen_kv: int,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    window = window_size_left, window_size_right
    rule = Rule(softmax_scale, is_causal, window, alibi_slopes, dropped=p_dropout, seed=gen)
    return _forward(q, k, v, _all_packed(cum_seq_q, cum_seq_kv, q, k), rule, max_seqlen_q)


@reference("diopiFlashAttentionVarLenBackward")
def flash_attention_var_len_backward(
    grad_output: Array,
    gen: int | None,
    q: Array,
    k: Array,
    v: Array,
    cum_seq_q: Array,
    cum_seq_kv: Array,
    alibi_slopes: Array | None,
    attention_out: Array,
    softmax_lse: Array,
    max_seqlen_q: int,
    max_seqlen_kv: int,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    window = window_size_left, window_size_right
    rule = Rule(softmax_scale, is_causal, window, alibi_slopes, dropped=p_dropout, seed=gen)
    sequences = _all_packed(cum_seq_q, cum_seq_kv, q, k)
    return drawn_gradients(rule, pulled_back(grad_output, q, k, v, attention_out, softmax_lse, sequences, rule))


def _debug_mask(is_written: bool, dropped: float, override: ResultOverride | None, *shape: int) -> Any:
    """Which shares were kept, open where that is left to chance; left alone, of any shape, if it is not asked for."""
    if is_written and not dropped:
        return np.ones(shape, bool)
    chosen = override.shape if override and override.shape is not None else None
    return _unspecified(np.ones(shape if is_written or chosen is None else chosen, bool))


@reference("diopiMultiHeadAttention")
def multi_head_attention(
    q: Array,
    k: Array,
    v: Array,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    scale: float,
    gen: int | None,
    *,
    out: Overrides,
) -> Any:
    rule = Rule(scale, is_causal, dropped=dropout_p, seed=gen)
    shape = q.shape[0], q.shape[2], q.shape[1], k.shape[1]
    return *_forward(q, k, v, of_one_length(q), rule, q.shape[1]), _debug_mask(
        return_debug_mask, dropout_p, out[2], *shape
    )


@reference("diopiMultiHeadAttentionBackward")
def multi_head_attention_backward(
    grad_out: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    softmax_lse: Array,
    dropout_p: float,
    is_causal: bool,
    gen: int | None,
    scale: float,
) -> Any:
    rule = Rule(scale, is_causal, dropped=dropout_p, seed=gen)
    return drawn_gradients(rule, pulled_back(grad_out, q, k, v, out, softmax_lse, of_one_length(q), rule))


@reference("diopiMultiHeadAttentionVarLen")
def multi_head_attention_var_len(
    q: Array,
    k: Array,
    v: Array,
    cum_seq_q: Array,
    cum_seq_k: Array,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    scale: float,
    gen: int | None,
    *,
    out: Overrides,
) -> Any:
    rule = Rule(scale, is_causal, dropped=dropout_p, seed=gen)
    sequences = _all_packed(cum_seq_q, cum_seq_k, q, k)
    mask = _debug_mask(return_debug_mask, dropout_p, out[2], len(sequences), q.shape[1], max_q, max_k)
    return *_forward(q, k, v, sequences, rule, max_q), mask


@reference("diopiMultiHeadAttentionVarLenBackward")
def multi_head_attention_var_len_backward(
    grad_out: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    softmax_lse: Array,
    cum_seq_q: Array,
    cum_seq_k: Array,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    gen: int | None,
    scale: float,
) -> Any:
    rule = Rule(scale, is_causal, dropped=dropout_p, seed=gen)
    sequences = _all_packed(cum_seq_q, cum_seq_k, q, k)
    return drawn_gradients(rule, pulled_back(grad_out, q, k, v, out, softmax_lse, sequences, rule))


# The form with a mask, in a layout of the caller's

COPIES = 8
"""How many times each saved statistic is there."""

TRIANGLE = 2048
"""Size of the causal triangle that stands for larger ones."""


def in_rows(x: Array, layout: str, heads: int) -> Array:
    """A view of x as [sequences, rows, heads, head size]."""
    match layout:
        case "BSND":
            return x
        case "BNSD":
            return x.swapaxes(1, 2)
        case "BSH":
            return x.reshape(*x.shape[:2], heads, x.shape[2] // heads)
        case _:
            return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(0, 1)


def _in_layout(result: WithTerms, layout: str, shape: tuple[int, ...]) -> WithTerms:
    """What `in_rows` is the view of."""

    def laid(x: Array) -> Array:
        x = x.swapaxes(1, 2) if layout == "BNSD" else x.swapaxes(0, 1) if layout == "SBH" else x
        return x.reshape(shape)

    return WithTerms(laid(result.value), laid(result.terms))


def _rows_of(q: Array, k: Array, v: Array, layout: str, heads: int) -> tuple[Array, Array, Array]:
    if len(layout) == 4 and q.shape[layout.index("N")] != heads:
        raise ValueError(f"head_num is {heads}, but q has shape {q.shape} in layout {layout}")
    size = q.shape[-1] // heads if len(layout) == 3 else q.shape[-1]
    key_heads = k.shape[-1] // size if len(layout) == 3 else 0
    return in_rows(q, layout, heads), in_rows(k, layout, key_heads), in_rows(v, layout, key_heads)


def _masked_rule(rule: Rule, mask: Array | None, queries: int, keys: int) -> Rule:
    """The rule with a mask; a small triangle stands for a large one, which `causal` gives already."""
    is_triangle = rule.causal and mask is not None and mask.shape == (TRIANGLE,) * 2 and min(queries, keys) > TRIANGLE
    return replace(rule, hidden=None if is_triangle else mask, top_left=True)


def _own_records(found: Attended, sequences: Sequences, q: Array, scores: int, rule: Rule) -> list[Any]:
    """What an implementation saves for its own gradient: dropout mask, maxima, sums, and nothing.

    The statistics of sequences of one length are [sequences, heads, rows], those of packed ones [rows, heads].
    """
    maxima, sums = found.top, np.where(np.isposinf(found.lse.value), 0, np.exp(found.lse.value - found.top))
    if q.ndim == 3:
        parts = [(number, len(q[own])) for number, (own, _) in enumerate(sequences)]
        maxima, sums = (np.concatenate([x[n, :, :rows].T for n, rows in parts]) for x in (maxima, sums))
    saved = [np.repeat(x[..., None], COPIES, -1) for x in (maxima, sums)]
    bits = -(-scores // 128) * 16 if rule.dropped else 0
    return [_unspecified(x) for x in (np.zeros(bits, np.int64), *saved, np.zeros(0))]


@reference("diopiCustomizedFlashAttention")
def customized_flash_attention(
    gen: int | None,
    q: Array,
    k: Array,
    v: Array,
    alibi_slopes: Array | None,
    attention_mask: Array | None,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
    head_num: int,
    input_layout: str,
) -> Any:
    rows = _rows_of(q, k, v, input_layout, head_num)
    batch, queries, heads, _ = rows[0].shape
    rule = Rule(
        softmax_scale, is_causal, (window_size_left, window_size_right), alibi_slopes, None, True, p_dropout, gen
    )
    rule = _masked_rule(rule, attention_mask, queries, rows[1].shape[1])
    sequences = of_one_length(rows[0])
    found = attended(*rows, sequences, rule, queries)
    saved = _own_records(found, sequences, rows[0], batch * heads * queries * rows[1].shape[1], rule)
    return drawn(rule, _in_layout(found.out, input_layout, q.shape)), *saved


@reference("diopiCustomizedFlashAttentionBackward")
def customized_flash_attention_backward(
    grad_output: Array,
    q: Array,
    k: Array,
    v: Array,
    alibi_slopes: Array | None,
    attention_out: Array,
    attention_mask: Array | None,
    dropout_mask: Array | None,
    softmax_max: Array,
    softmax_sum: Array,
    softmax_out: Array,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
    head_num: int,
    input_layout: str,
) -> Any:
    rows = _rows_of(q, k, v, input_layout, head_num)
    queries, keys = rows[0].shape[1], rows[1].shape[1]
    rule = Rule(softmax_scale, is_causal, (window_size_left, window_size_right), alibi_slopes)
    rule = _masked_rule(rule, attention_mask, queries, keys)
    sequences = of_one_length(rows[0])
    lse = attended(*rows, sequences, rule, queries).lse.value
    g, out = (in_rows(x, input_layout, head_num) for x in (grad_output, attention_out))
    grads = pulled_back(g, *rows, out, lse, sequences, rule)
    return tuple(_in_layout(grad, input_layout, x.shape) for grad, x in zip(grads, (q, k, v), strict=True))


@reference("diopiCustomizedFlashAttentionVarLen")
def customized_flash_attention_var_len(
    gen: int | None,
    q: Array,
    k: Array,
    v: Array,
    cum_seq_q: Sequence[int],
    cum_seq_kv: Sequence[int],
    alibi_slopes: Array | None,
    attention_mask: Array | None,
    max_seqlen_q: int,
    max_seqlen_kv: int,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    rule = Rule(
        softmax_scale, is_causal, (window_size_left, window_size_right), alibi_slopes, None, True, p_dropout, gen
    )
    rule = _masked_rule(rule, attention_mask, max_seqlen_q, max_seqlen_kv)
    sequences = _all_packed((0, *cum_seq_q), (0, *cum_seq_kv), q, k)
    found = attended(q, k, v, sequences, rule, len(q))
    scores = len(sequences) * q.shape[1] * max_seqlen_q * max_seqlen_kv
    return drawn(rule, found.out), *_own_records(found, sequences, q, scores, rule)


@reference("diopiCustomizedFlashAttentionVarLenBackward")
def customized_flash_attention_var_len_backward(
    grad_output: Array,
    q: Array,
    k: Array,
    v: Array,
    cum_seq_q: Sequence[int],
    cum_seq_kv: Sequence[int],
    alibi_slopes: Array | None,
    attention_out: Array,
    attention_mask: Array | None,
    dropout_mask: Array | None,
    softmax_max: Array,
    softmax_sum: Array,
    softmax_out: Array,
    max_seqlen_q: int,
    max_seqlen_kv: int,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    rule = Rule(softmax_scale, is_causal, (window_size_left, window_size_right), alibi_slopes)
    rule = _masked_rule(rule, attention_mask, max_seqlen_q, max_seqlen_kv)
    sequences = _all_packed((0, *cum_seq_q), (0, *cum_seq_kv), q, k)
    lse = attended(q, k, v, sequences, rule, len(q)).lse.value
    return pulled_back(grad_output, q, k, v, attention_out, lse, sequences, rule)
