"""Attention by PyTorch's scaled_dot_product_attention, one sequence at a time, and its gradients by autograd.

Half precision is widened to float32, because PyTorch's math backend would round the scores and probabilities.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and
element types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from diopi_impl.specs import ResultSpec
from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.generators import seeded_generator
from diopi_impl.torch_cpu.registration import implements_flash, implements_multi_head

Out = tuple[ResultSpec | None, ...]
"""The shapes and element types of all results; None for a result that the caller omits."""


def check_shapes(shape: Sequence[int], **tensors: Tensor | None) -> None:
    """Raise ValueError unless all tensors that are not None have this shape."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape != tuple(shape):
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, expected {tuple(shape)}")


# RMS norm


def _widen_half(*tensors: Tensor | None) -> list[Any]:
    """Return half-precision tensors as float32, and other tensors unchanged."""
    return [None if t is None else t.float() if t.dtype in (torch.float16, torch.bfloat16) else t for t in tensors]


@vendor.implements("diopiRMSNorm")
def rms_norm(input, normalized_shape, weight, bias, eps):
    """Return x / √(mean(x²) + eps) · weight + bias, and the inverse root mean square of each normalized part."""
    if not normalized_shape or input.shape[-len(normalized_shape) :] != tuple(normalized_shape):
        raise ValueError(f"input of shape {tuple(input.shape)} does not end in {tuple(normalized_shape)}")
    check_shapes(normalized_shape, weight=weight, bias=bias)
    x, w, b = _widen_half(input, weight, bias)
    axes = tuple(range(-len(normalized_shape), 0))
    result = functional.rms_norm(x, list(normalized_shape), w, eps)
    return (result if b is None else result + b).to(input.dtype), torch.rsqrt(x.square().mean(axes) + eps)


# The attention core


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    is_visible: Tensor,
    bias: Tensor | None = None,
    dropout_factors: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the attention of one sequence and the logsumexp of its scores.

    Args:
        q: the queries, [rows, heads, head size].
        k: the keys, in the same layout.
        v: the values, in the same layout.
        scale: the factor of the scores.
        is_visible: the keys visible to each query, [queries, keys].
        bias: a summand of the scores, [heads, queries, keys]; None for 0.
        dropout_factors: the factors of the probabilities, [heads, queries, keys]; None without dropout.

    Returns:
        The result, [rows, heads, head size], and the logsumexp, [heads, rows]. For a query that sees no key, the result
        is 0 and the logsumexp is ∞.
    """
    group = q.shape[1] // k.shape[1]
    queries, keys, values = (x.movedim(0, 1) for x in _widen_half(q, k, v))
    mask = torch.zeros(is_visible.shape, dtype=queries.dtype).masked_fill(~is_visible, -torch.inf)
    mask = mask if bias is None else mask + bias.to(queries.dtype)
    sees_no_key = ~is_visible.any(-1)
    safe = mask.masked_fill(sees_no_key[:, None], 0)
    if dropout_factors is None:
        out = functional.scaled_dot_product_attention(queries, keys, values, safe, scale=scale, enable_gqa=True)
    keys, values = (x.repeat_interleave(group, 0) for x in (keys, values))
    scores = scale * queries @ keys.mT + safe
    if dropout_factors is not None:
        out = (torch.softmax(scores, -1) * dropout_factors.to(scores.dtype)) @ values
    lse = torch.logsumexp(scores, -1).masked_fill(sees_no_key, torch.inf)
    return out.masked_fill(sees_no_key[:, None], 0).movedim(0, 1).to(q.dtype), lse


@dataclass(frozen=True, kw_only=True)
class AttentionSettings:
    """The settings that all sequences of a call share.

    Attributes:
        scale: the factor of the scores.
        causal: whether later keys are invisible.
        window_left, window_right: the numbers of visible keys before and after a query; −1 for all.
        slopes: the slopes of ALiBi, [heads] or [sequences, heads]; None without ALiBi.
        dropout_p: the probability of dropout.
        gen: the generator's state, seed and offset; None if `dropout_p` is 0.
        hidden: the pairs that a mask hides, [queries, keys]; None without a mask.
        top_left: whether queries align with the first keys instead of the last.
    """

    scale: float
    causal: bool = False
    window_left: int = -1
    window_right: int = -1
    slopes: Tensor | None = None
    dropout_p: float = 0.0
    gen: NDArray[np.uint64] | None = None
    hidden: Tensor | None = None
    top_left: bool = False

    def attend_sequence(self, number: int, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return the result and the logsumexp of sequence `number`."""
        first_position = 0 if self.top_left else len(k) - len(q)
        distance = torch.arange(len(k)) - torch.arange(first_position, first_position + len(q))[:, None]
        window_right = 0 if self.causal else self.window_right
        is_visible = (distance >= -self.window_left if self.window_left >= 0 else True) & (
            distance <= window_right if window_right >= 0 else torch.ones_like(distance, dtype=torch.bool)
        )
        if self.hidden is not None:
            is_visible = is_visible & ~self.hidden[: len(q), : len(k)]
        bias = None
        if self.slopes is not None:
            slopes = self.slopes if self.slopes.ndim == 1 else self.slopes[number]
            bias = -slopes[:, None, None] * distance.abs()
        return attend(
            q, k, v, self.scale, is_visible, bias, self._dropout_factors(number, (q.shape[1], len(q), len(k)))
        )

    def _dropout_factors(self, number: int, shape: tuple[int, ...]) -> Tensor | None:
        """Return the factor of each probability of sequence `number`, an array of `shape`; None without dropout."""
        if not self.dropout_p:
            return None
        assert self.gen is not None
        source = seeded_generator((*self.gen.tolist(), number))
        mask = torch.empty(shape, dtype=torch.float64).bernoulli_(1 - self.dropout_p, generator=source)
        return mask / (1 - self.dropout_p) if self.dropout_p < 1 else mask


SequenceRows = list[tuple[Any, Any]]
"""The rows of queries and of keys of each sequence."""


def _batched_sequences(q: Tensor) -> SequenceRows:
    """Return the rows of a batch [sequences, rows, heads, head size], in which each entry is a sequence."""
    return [(number, number) for number in range(len(q))]


def _packed_sequences(begins_q: Sequence[int], begins_k: Sequence[int]) -> SequenceRows:
    """Return the rows of packed sequences.

    Args:
        begins_q: The row at which each sequence of queries starts, and the number of all rows.
        begins_k: The same for keys and values.

    Raises:
        ValueError: the numbers of sequences differ
    """
    if len(begins_q) != len(begins_k):
        raise ValueError(f"there are {len(begins_q)} ends of queries and {len(begins_k)} of keys")
    slices = [[slice(a, b) for a, b in pairwise(x)] for x in (begins_q, begins_k)]
    return list(zip(*slices, strict=True))


def _check_inputs(q: Tensor, k: Tensor, v: Tensor, rank: int, slopes: Tensor | None = None) -> None:
    """Raise ValueError unless q, k and v have `rank` axes and fit together, and there is a slope for each head."""
    check_shapes(k.shape, v=v)
    fits = q.ndim == k.ndim == rank and q.shape[-1] == k.shape[-1] and (rank < 4 or len(q) == len(k))
    if not fits or q.shape[-2] % k.shape[-2]:
        raise ValueError(f"q has shape {tuple(q.shape)} and k {tuple(k.shape)}, which do not fit")
    if slopes is not None and slopes.shape[-1] != q.shape[-2]:
        raise ValueError(
            f"alibi_slopes has shape {tuple(slopes.shape)}, expected a slope for each of {q.shape[-2]} heads"
        )


def _attend_sequences(
    settings: AttentionSettings, q: Tensor, k: Tensor, v: Tensor, sequences: SequenceRows
) -> Iterator[tuple[Any, Tensor, Tensor]]:
    """Yield the query rows, result and logsumexp of each sequence."""
    for number, (query_rows, key_rows) in enumerate(sequences):
        yield query_rows, *settings.attend_sequence(number, q[query_rows], k[key_rows], v[key_rows])


def _attention_and_lse(
    settings: AttentionSettings, q: Tensor, k: Tensor, v: Tensor, sequences: SequenceRows, rows: int
) -> tuple[Tensor, Tensor]:
    """Return attention and the logsumexp of the scores, [sequences, heads, rows].

    Args:
        settings: the settings of the call.
        q: the queries of all sequences.
        k: the keys of all sequences.
        v: the values of all sequences.
        sequences: the rows of each sequence.
        rows: the number of rows of the longest sequence.

    Returns:
        The result, in the shape of `q`, and the logsumexp, with 0 in rows after the end of a sequence.
    """
    _check_probability(settings.dropout_p)
    out = torch.zeros_like(q)
    lse = torch.zeros(len(sequences), q.shape[-2], rows, dtype=_widen_half(q)[0].dtype)
    for number, (query_rows, result, sequence_lse) in enumerate(_attend_sequences(settings, q, k, v, sequences)):
        out[query_rows], lse[number, :, : len(result)] = result, sequence_lse
    return out, lse


def _check_probability(p: float) -> None:
    """Raise ValueError unless p is from 0 to 1."""
    if not 0 <= p <= 1:
        raise ValueError(f"the probability of dropout is {p}, expected a number from 0 to 1")


def _attention_gradients(
    settings: AttentionSettings, g: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, sequences: SequenceRows
) -> Any:
    """Return the gradients of q, k and v, computed by autograd.

    Args:
        settings: the settings of the call.
        g: the gradient of the result.
        q: the queries of all sequences.
        k: the keys of all sequences.
        v: the values of all sequences.
        out: the result of the forward function, whose shape is checked.
        sequences: the rows of each sequence.

    Returns:
        The gradients, in the element type of `q`.
    """
    _check_probability(settings.dropout_p)
    check_shapes(q.shape, grad_output=g, out=out)
    leaves = [x.detach().requires_grad_() for x in _widen_half(q, k, v)]
    with torch.enable_grad():
        parts = [
            (g[query_rows], result)
            for query_rows, result, _ in _attend_sequences(settings, leaves[0], leaves[1], leaves[2], sequences)
        ]
    if not parts:
        return [torch.zeros_like(x) for x in (q, k, v)]
    grads = torch.autograd.grad(
        [result for _, result in parts],
        leaves,
        [part.to(result.dtype) for part, result in parts],
        materialize_grads=True,
    )
    return [grad.to(q.dtype) for grad in grads]


# The forms of attention


@implements_flash("diopiFlashAttention")
def flash_attention(
    gen, q, k, v, alibi_slopes, p_dropout, softmax_scale, is_causal, window_size_left, window_size_right
):
    """Return attention for sequences of equal length, and the log-sum-exp of the scores."""
    _check_inputs(q, k, v, 4, alibi_slopes)
    settings = AttentionSettings(
        scale=softmax_scale,
        causal=is_causal,
        window_left=window_size_left,
        window_right=window_size_right,
        slopes=alibi_slopes,
        dropout_p=p_dropout,
        gen=gen,
    )
    return _attention_and_lse(settings, q, k, v, _batched_sequences(q), q.shape[1])


@implements_flash("diopiFlashAttentionBackward")
def flash_attention_backward(
    grad_output,
    gen,
    q,
    k,
    v,
    alibi_slopes,
    attention_out,
    softmax_lse,
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
):
    """Return the gradients of q, k and v for sequences of equal length."""
    _check_inputs(q, k, v, 4, alibi_slopes)
    check_shapes((q.shape[0], q.shape[2], q.shape[1]), softmax_lse=softmax_lse)
    settings = AttentionSettings(
        scale=softmax_scale,
        causal=is_causal,
        window_left=window_size_left,
        window_right=window_size_right,
        slopes=alibi_slopes,
        dropout_p=p_dropout,
        gen=gen,
    )
    return _attention_gradients(settings, grad_output, q, k, v, attention_out, _batched_sequences(q))


@implements_flash("diopiFlashAttentionVarLen")
def flash_attention_var_len(
    gen,
    q,
    k,
    v,
    cum_seq_q,
    cum_seq_kv,
    alibi_slopes,
    max_seqlen_q,
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
):
    """Return attention for packed sequences, and the log-sum-exp of the scores."""
    _check_inputs(q, k, v, 3, alibi_slopes)
    settings = AttentionSettings(
        scale=softmax_scale,
        causal=is_causal,
        window_left=window_size_left,
        window_right=window_size_right,
        slopes=alibi_slopes,
        dropout_p=p_dropout,
        gen=gen,
    )
    return _attention_and_lse(
        settings, q, k, v, _packed_sequences(cum_seq_q.tolist(), cum_seq_kv.tolist()), max_seqlen_q
    )


@implements_flash("diopiFlashAttentionVarLenBackward")
def flash_attention_var_len_backward(
    grad_output,
    gen,
    q,
    k,
    v,
    cum_seq_q,
    cum_seq_kv,
    alibi_slopes,
    attention_out,
    softmax_lse,
    max_seqlen_q,
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
):
    """Return the gradients of q, k and v for packed sequences."""
    _check_inputs(q, k, v, 3, alibi_slopes)
    check_shapes((len(cum_seq_q) - 1, q.shape[1], max_seqlen_q), softmax_lse=softmax_lse)
    settings = AttentionSettings(
        scale=softmax_scale,
        causal=is_causal,
        window_left=window_size_left,
        window_right=window_size_right,
        slopes=alibi_slopes,
        dropout_p=p_dropout,
        gen=gen,
    )
    return _attention_gradients(
        settings, grad_output, q, k, v, attention_out, _packed_sequences(cum_seq_q.tolist(), cum_seq_kv.tolist())
    )


def _check_equal_heads(q: Tensor, k: Tensor) -> None:
    """Raise ValueError unless q and k have the same number of heads."""
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(f"q has shape {tuple(q.shape)} and k {tuple(k.shape)}, expected equal numbers of heads")


def _debug_mask(spec: ResultSpec | None) -> Tensor | None:
    """Return the debug mask, or None if the caller omits it. The standard does not specify its values: all are true."""
    return None if spec is None else torch.ones(spec.shape, dtype=torch.bool)


@implements_multi_head("diopiMultiHeadAttention")
def multi_head_attention(q, k, v, dropout_p, is_causal, scale, gen, *, out):
    """Return attention, the log-sum-exp of the scores, and the debug mask (`_debug_mask`)."""
    _check_inputs(q, k, v, 4)
    _check_equal_heads(q, k)
    settings = AttentionSettings(scale=scale, causal=is_causal, dropout_p=dropout_p, gen=gen)
    return *_attention_and_lse(settings, q, k, v, _batched_sequences(q), q.shape[1]), _debug_mask(out[2])


@implements_multi_head("diopiMultiHeadAttentionBackward")
def multi_head_attention_backward(grad_out, q, k, v, out, softmax_lse, dropout_p, is_causal, gen, scale):
    """Return the gradients of q, k and v."""
    _check_inputs(q, k, v, 4)
    _check_equal_heads(q, k)
    check_shapes((q.shape[0], q.shape[2], q.shape[1]), softmax_lse=softmax_lse)
    settings = AttentionSettings(scale=scale, causal=is_causal, dropout_p=dropout_p, gen=gen)
    return _attention_gradients(settings, grad_out, q, k, v, out, _batched_sequences(q))


@implements_multi_head("diopiMultiHeadAttentionVarLen")
def multi_head_attention_var_len(q, k, v, cum_seq_q, cum_seq_k, max_q, dropout_p, is_causal, scale, gen, *, out):
    """Return attention for packed sequences, the log-sum-exp of the scores, and the debug mask (`_debug_mask`)."""
    _check_inputs(q, k, v, 3)
    _check_equal_heads(q, k)
    settings = AttentionSettings(scale=scale, causal=is_causal, dropout_p=dropout_p, gen=gen)
    return *_attention_and_lse(
        settings, q, k, v, _packed_sequences(cum_seq_q.tolist(), cum_seq_k.tolist()), max_q
    ), _debug_mask(out[2])


@implements_multi_head("diopiMultiHeadAttentionVarLenBackward")
def multi_head_attention_var_len_backward(
    grad_out, q, k, v, out, softmax_lse, cum_seq_q, cum_seq_k, max_q, dropout_p, is_causal, gen, scale
):
    """Return the gradients of q, k and v for packed sequences."""
    _check_inputs(q, k, v, 3)
    _check_equal_heads(q, k)
    check_shapes((len(cum_seq_q) - 1, q.shape[1], max_q), softmax_lse=softmax_lse)
    settings = AttentionSettings(scale=scale, causal=is_causal, dropout_p=dropout_p, gen=gen)
    return _attention_gradients(
        settings, grad_out, q, k, v, out, _packed_sequences(cum_seq_q.tolist(), cum_seq_k.tolist())
    )
