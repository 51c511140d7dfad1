"""Attention and its gradient in general form, which the references of all attention functions call.

Attention computes softmax(scale · q kᵀ + bias) v for each sequence and head. The products of queries and keys are
called *scores*, and the softmax of the scores *weights*. Tensors have the shape [rows, heads, head size]; a row is a
token. The functions of the standard differ in the rows that belong to a sequence (`Sequences`) and in the keys that a
query sees (`AttentionRule`).

Sources: T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023, for the
gradient; O. Press et al., "Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation",
2021, for the bias (ALiBi).

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms
from diopi_test.oracle.reference.products import sum_products
from diopi_test.oracle.reference.sums import relative_terms, sum_terms

float32 = np.finfo(np.float32)
"""The properties of float32, the narrowest format in which attention weights are computed."""

Array = NDArray[Any]
Rows = int | slice
"""The rows of a sequence: a slice of a tensor of packed sequences, or the index of a sequence in a batch."""

Sequences = list[tuple[Rows, Rows]]
"""For each sequence, the rows of the query tensor, and the rows of the key and value tensors."""


@dataclass(frozen=True, kw_only=True)
class AttentionRule:
    """The keys that a query sees, and the bias of its scores.

    Attributes:
        scale: the factor of scores.
        causal: whether keys after the position of a query are invisible to the query.
        window: how many keys a query sees before and after its own position; a negative number stands for all keys.
        slopes: the slopes of the bias (ALiBi), [heads] or [sequences, heads]; None for no bias.
        hidden: a mask of the keys that are not visible, [rows of queries, rows of keys], or such a mask per sequence.
        top_left: whether the first query has the position of the first key. If false, the last query has the position
            of the last key.
        dropout: the probability that a weight is dropped, that is, replaced by 0.
        seed: the seed of dropout; needed unless `dropout` is 0 or 1.
    """

    scale: float
    causal: bool = False
    window: tuple[int, int] = (-1, -1)
    slopes: Array | None = None
    hidden: Array | None = None
    top_left: bool = False
    dropout: float = 0.0
    seed: int | None = None

    def distances(self, queries: int, keys: int) -> Array:
        """Return the position of each key minus the position of each query, [queries, keys]."""
        first = 0 if self.top_left else keys - queries
        return np.arange(keys) - (np.arange(queries)[:, None] + first)

    def visible_keys(self, number: int, queries: int, keys: int) -> Array:
        """Return a mask of the keys of sequence `number` that each query sees, [queries, keys]."""
        before, after = self.window
        after = 0 if self.causal else after
        distance = self.distances(queries, keys)
        visible = np.ones((queries, keys), bool)
        if before >= 0:
            visible &= distance >= -before
        if after >= 0:
            visible &= distance <= after
        if self.hidden is not None:
            hidden = self.hidden if self.hidden.ndim == 2 else self.hidden[number]
            visible &= ~hidden[:queries, :keys]
        return visible

    def bias(self, number: int, head: int, queries: int, keys: int) -> Array:
        """Return the bias of the scores of a head, −slope · |distance|, [queries, keys]; zeros without slopes."""
        if self.slopes is None:
            return np.zeros((queries, keys))
        slope = self.slopes[head] if self.slopes.ndim == 1 else self.slopes[number, head]
        return np.asanyarray(-slope * np.abs(self.distances(queries, keys)))

    def dropout_factors(self, number: int, heads: int, queries: int, keys: int) -> Array:
        """Return the factor of each weight of sequence `number`, (heads, queries, keys): 0 or 1 / (1 − p)."""
        if self.dropout in (0, 1):
            return np.full((heads, queries, keys), 1 - self.dropout)
        assert self.seed is not None
        rng = np.random.default_rng((self.seed, number))
        return (rng.random((heads, queries, keys)) >= self.dropout) / (1 - self.dropout)


@dataclass(frozen=True, kw_only=True)
class AttentionWeights:
    """The attention weights of a head.

    Attributes:
        p: the weights, [queries, keys]; all 0 for a query that sees no key.
        top: the largest score of each query.
        lse: log Σ exp(score) for each query (log-sum-exp); ∞ for a query that sees no key.
        score_terms: the terms of the scores, [queries, keys].
        divisor_terms: the terms of the divisor Σ exp(score − top), divided by the divisor.
    """

    p: Array
    top: Array
    lse: Array
    score_terms: Array
    divisor_terms: Array


def _scores(q: Array, k: Array, rule: AttentionRule, bias: Array, visible: Array) -> tuple[Array, Array]:
    """Return the scores of a head, −inf for invisible keys, and their terms, [queries, keys] each."""
    products = sum_products(lambda a, b: a @ b.T, q, k)
    scores = np.where(visible, rule.scale * products.value + bias, -np.inf)
    # a score is rounded again when it is scaled and biased, and the bias is rounded before
    terms = np.abs(rule.scale) * products.terms + np.abs(bias) + np.abs(rule.scale * products.value)
    return scores, np.where(visible, terms, 0)


def _attention_weights(q: Array, k: Array, rule: AttentionRule, bias: Array, visible: Array) -> AttentionWeights:
    """Return the softmax of the scores of a head, with its statistics and terms.

    Args:
        q: the queries of the head, [queries, head size].
        k: the keys of the head, [keys, head size].
        rule: the rule with the scale of the scores.
        bias: the bias of the scores, [queries, keys].
        visible: a mask of the visible keys, [queries, keys].
    """
    scores, score_terms = _scores(q, k, rule, bias, visible)
    top = np.max(scores, 1, keepdims=True, initial=-np.inf)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = e.sum(1, keepdims=True)
    lse = np.where(total == 0, np.inf, top + np.log(total))
    p = np.where(total == 0, 0, e / total)
    return AttentionWeights(
        p=p,
        top=top[:, 0],
        lse=lse[:, 0],
        score_terms=score_terms,
        divisor_terms=np.where(total == 0, 0, relative_terms(e, 1)),
    )


def _weight_values(head_weights: AttentionWeights, factors: Array, v: Array) -> WithTerms:
    """Return the weighted sums of values Σ p · v, with terms that include the errors of the weights p.

    If an error of a score increases its weight, it decreases all other weights of the query.

    Args:
        head_weights: the weights of the head.
        factors: the dropout factor of each weight, [queries, keys].
        v: the values of the head, [keys, head size].
    """
    p = head_weights.p * factors
    sums = sum_products(lambda weights, values: weights @ values, p, v)
    moved, out = (p * head_weights.score_terms) ** 2, sums.value
    squares = moved @ v**2 - 2 * out * (moved @ v) + out**2 * moved.sum(1, keepdims=True)
    return WithTerms(out, sums.terms + np.sqrt(np.maximum(squares, 0)) + np.abs(out) * head_weights.divisor_terms)


@dataclass(frozen=True)
class AttentionResult:
    """The results of attention, with the statistics that the gradient needs.

    Attributes:
        out: the weighted values, in the shape of q.
        lse: log Σ exp(score) for each query, [sequences, heads, rows].
        top: the largest scores, [sequences, heads, rows].
    """

    out: WithTerms
    lse: WithTerms
    top: Array


def _group_size(q: Array, k: Array) -> int:
    """Return the number of query heads that share a key head; raise ValueError if the numbers are not divisible."""
    if not k.shape[-2] or q.shape[-2] % k.shape[-2]:
        raise ValueError(f"there are {q.shape[-2]} heads of queries, expected a multiple of the {k.shape[-2]} of keys")
    return q.shape[-2] // k.shape[-2]


def attend(q: Array, k: Array, v: Array, sequences: Sequences, rule: AttentionRule, rows: int) -> AttentionResult:
    """Return the results of attention.

    Args:
        q: the queries, [rows, heads, head size], or a batch of them.
        k: the keys, with a number of heads that divides the number of heads of q.
        v: the values, with the heads of k.
        sequences: the rows of each sequence.
        rule: the visible keys and the bias.
        rows: the size of the last axis of the statistics: at least the number of queries of each sequence.

    Returns:
        The weighted values and the statistics of the softmax.
    """
    heads, group = q.shape[-2], _group_size(q, k)
    shapes = q.shape, (len(sequences), heads, rows)
    out, lse = (WithTerms(np.zeros_like(q, shape=shape), np.zeros(shape)) for shape in shapes)
    top = np.zeros_like(lse.value)
    for number, (query_rows, key_rows) in enumerate(sequences):
        lengths = len(q[query_rows]), len(k[key_rows])
        visible, factors = rule.visible_keys(number, *lengths), rule.dropout_factors(number, heads, *lengths)
        for head in range(heads):
            bias = rule.bias(number, head, *lengths)
            head_weights = _attention_weights(
                q[query_rows][:, head], k[key_rows][:, head // group], rule, bias, visible
            )
            head_result = _weight_values(head_weights, factors[head], v[key_rows][:, head // group])
            out.value[query_rows][:, head], out.terms[query_rows][:, head] = head_result.value, head_result.terms
            spread = np.sqrt(((head_weights.p * head_weights.score_terms) ** 2).sum(1))
            lse.value[number, head, : lengths[0]], top[number, head, : lengths[0]] = head_weights.lse, head_weights.top
            lse.terms[number, head, : lengths[0]] = spread + head_weights.divisor_terms[:, 0]
    return AttentionResult(out, lse, top)


def _keys_hidden_from_nonfinite(rows: Array, lse: Array, visible: NDArray[np.bool]) -> NDArray[np.bool]:
    """Return a mask of the keys that are hidden from a nonfinite query and that no nonfinite query sees.

    A query is nonfinite if its gradient depends on an infinity or NaN. The gradients of such keys may be NaN or not,
    because implementations may multiply the infinity or NaN by a weight of 0.

    Args:
        rows: for each query a row of the numbers that its gradient depends on.
        lse: log Σ exp(score) for each query.
        visible: a mask of the keys that each query sees, [queries, keys].

    Returns:
        A mask of the keys.
    """
    is_nonfinite = ~(np.isfinite(rows).all(1) & ~np.isnan(lse))[:, np.newaxis]
    return np.asarray((~visible & is_nonfinite).any(0) & ~(visible & is_nonfinite).any(0))


def attention_gradients(
    g: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, sequences: Sequences, rule: AttentionRule
) -> tuple[WithTerms | PartlySpecified, ...]:
    """Return the gradients of q, k and v.

    If a nonfinite query does not see a key, the weight of the key is 0, and the standard does not specify whether the
    key gets a NaN.

    Args:
        g: the gradient of the core's result.
        q: the queries.
        k: the keys.
        v: the values.
        out: the core's result.
        lse: log Σ exp(score) for each query, [sequences, heads, rows].
        sequences: the rows of each sequence.
        rule: the visible keys and the bias.

    Returns:
        The gradients of q, k and v.
    """
    hidden = [np.zeros(x.shape, bool) for x in (k, v)]
    grads = tuple(WithTerms(np.zeros_like(x), np.zeros(x.shape)) for x in (q, k, v))
    heads, group = q.shape[-2], _group_size(q, k)
    for number, (query_rows, key_rows) in enumerate(sequences):
        lengths = len(q[query_rows]), len(k[key_rows])
        visible, factors = rule.visible_keys(number, *lengths), rule.dropout_factors(number, heads, *lengths)
        for head in range(heads):
            places = (query_rows, head), (key_rows, head // group), (key_rows, head // group)
            head_q, head_k, head_v = (x[rows][:, column] for x, (rows, column) in zip((q, k, v), places, strict=True))
            head_out, head_lse = out[query_rows][:, head], lse[number, head, : lengths[0]]
            bias = rule.bias(number, head, *lengths)
            is_hidden = _keys_hidden_from_nonfinite(
                np.concatenate([head_q, head_out, g[query_rows][:, head]], 1), head_lse, visible
            )
            for mask in hidden:
                mask[key_rows][:, head // group] |= is_hidden[:, np.newaxis]
            head_gradients = _head_gradients(
                head_q, head_k, head_v, g[query_rows][:, head], head_out, head_lse, factors[head], rule, bias, visible
            )
            for grad, gradient, (rows, column) in zip(grads, head_gradients, places, strict=True):
                grad.value[rows][:, column] += gradient.value
                grad.terms[rows][:, column] += gradient.terms
    return grads[0], *(
        _leave_hidden_unspecified(gradient, mask) for gradient, mask in zip(grads[1:], hidden, strict=True)
    )


def _leave_hidden_unspecified(grad: WithTerms, hidden: Array) -> WithTerms | PartlySpecified:
    """Return the gradient, unspecified where `hidden` is true."""
    return PartlySpecified(grad, ~hidden) if hidden.any() else grad


def _head_gradients(
    q: Array,
    k: Array,
    v: Array,
    g: Array,
    out: Array,
    lse: Array,
    factors: Array,
    rule: AttentionRule,
    bias: Array,
    visible: Array,
) -> tuple[WithTerms, WithTerms, WithTerms]:
    """Return the gradients of q, k and v of a head, by recomputing the weights from `lse`.

    Args:
        q: the queries, [queries, head size].
        k: the keys, [keys, head size].
        v: the values, [keys, head size].
        g: the gradient of the result, [queries, head size].
        out: the result of attention, [queries, head size].
        lse: log Σ exp(score) for each query.
        factors: the dropout factor of each weight, [queries, keys].
        rule: the rule with the scale of the scores.
        bias: the bias of the scores, [queries, keys].
        visible: a mask of the visible keys, [queries, keys].
    """
    scores, error = _scores(q, k, rule, bias, visible)
    p = np.where(visible, np.exp(scores - lse[:, None]), 0)
    # the logarithm is rounded, too
    error = np.where(visible & np.isfinite(lse[:, None]), error + np.abs(lse[:, None]), 0)
    error = np.where(p < float32.smallest_normal, 1 / float32.eps, error)  # subnormal weights may be flushed to 0
    slopes = sum_products(lambda a, b: a @ b.T, g, v)
    level, level_terms = (g * out).sum(1, keepdims=True), sum_terms(g * out, 1, keepdims=True)
    ds = p * (slopes.value * factors - level)
    ds_error = p * (slopes.terms * factors + level_terms) + np.abs(ds) * error
    return (
        _product_with_errors(rule.scale, ds, ds_error, k),
        _product_with_errors(rule.scale, ds.T, ds_error.T, q),
        _product_with_errors(1.0, (p * factors).T, (p * factors * error).T, g),
    )


def _product_with_errors(scale: float, a: Array, error: Array, b: Array) -> WithTerms:
    """Return scale · a @ b with its terms; `error` are the terms of `a`, and `b` and the scale are exact."""
    product = sum_products(lambda left, factor: left @ factor, a, b)
    return WithTerms(scale * product.value, np.abs(scale) * (product.terms + np.sqrt(error**2 @ b**2)))
