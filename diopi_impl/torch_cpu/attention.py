"""Attention by PyTorch's scaled_dot_product_attention, one sequence at a time, and its gradients by autograd.

Half precision is widened: PyTorch's plain form would round the scores and their shares to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional

from diopi_impl.drawing import drawing
from diopi_impl.functional import ResultSpec
from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.adapter import on_tensors

Out = tuple[ResultSpec | None, ...]


def check_sizes(shape: Sequence[int], **tensors: Tensor | None) -> None:
    """ValueError unless all tensors given have this shape."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape != tuple(shape):
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, expected {tuple(shape)}")


# RMS norm


def _wide(*tensors: Tensor | None) -> list[Any]:
    """In float32 at least."""
    return [None if t is None else t.float() if t.dtype in (torch.float16, torch.bfloat16) else t for t in tensors]


@vendor.implements("diopiRMSNorm")
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Any:
    if not normalized_shape or input.shape[-len(normalized_shape) :] != tuple(normalized_shape):
        raise ValueError(f"input of shape {tuple(input.shape)} does not end in {tuple(normalized_shape)}")
    check_sizes(normalized_shape, weight=weight, bias=bias)
    x, w, b = _wide(input, weight, bias)
    axes = tuple(range(-len(normalized_shape), 0))
    result = functional.rms_norm(x, list(normalized_shape), w, eps)
    return (result if b is None else result + b).to(input.dtype), torch.rsqrt(x.square().mean(axes) + eps)


# The attention core


def attend(
    q: Tensor, k: Tensor, v: Tensor, scale: float, seen: Tensor, bias: Tensor | None = None, kept: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Result and logarithms of the sums of one sequence, [rows, heads, head size] and [heads, rows].

    Args:
        seen: which keys each query sees; `bias` is added to the scores of each head.
        kept: what shares are multiplied by.
    """
    group = q.shape[1] // k.shape[1]
    mine, keys, values = (x.movedim(0, 1) for x in _wide(q, k, v))
    mask = torch.zeros(seen.shape, dtype=mine.dtype).masked_fill(~seen, -torch.inf)
    mask = mask if bias is None else mask + bias.to(mine.dtype)
    is_blind = ~seen.any(-1)
    safe = mask.masked_fill(is_blind[:, None], 0)
    if kept is None:
        out = functional.scaled_dot_product_attention(mine, keys, values, safe, scale=scale, enable_gqa=True)
    keys, values = (x.repeat_interleave(group, 0) for x in (keys, values))
    scores = scale * mine @ keys.mT + safe
    if kept is not None:
        out = (torch.softmax(scores, -1) * kept.to(scores.dtype)) @ values
    lse = torch.logsumexp(scores, -1).masked_fill(is_blind, torch.inf)
    return out.masked_fill(is_blind[:, None], 0).movedim(0, 1).to(q.dtype), lse


@dataclass(frozen=True)
class Call:
    """What the sequences of a call have in common: scale, window, slopes of ALiBi, dropout.

    `hidden` are keys that a mask hides from queries; `top_left` says where the first query stands.
    """

    scale: float
    causal: bool = False
    left: int = -1
    right: int = -1
    slopes: Tensor | None = None
    dropped: float = 0.0
    gen: Tensor | None = None
    hidden: Tensor | None = None
    top_left: bool = False

    def one(self, number: int, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Result and logarithms of the sums of sequence `number`."""
        first = 0 if self.top_left else len(k) - len(q)
        distance = torch.arange(len(k)) - torch.arange(first, first + len(q))[:, None]
        right = 0 if self.causal else self.right
        seen = (distance >= -self.left if self.left >= 0 else True) & (
            distance <= right if right >= 0 else torch.ones_like(distance, dtype=torch.bool)
        )
        if self.hidden is not None:
            seen = seen & ~self.hidden[: len(q), : len(k)]
        bias = None
        if self.slopes is not None:
            slopes = self.slopes if self.slopes.ndim == 1 else self.slopes[number]
            bias = -slopes[:, None, None] * distance.abs()
        return attend(q, k, v, self.scale, seen, bias, self._kept(number, (q.shape[1], len(q), len(k))))

    def _kept(self, number: int, shape: tuple[int, ...]) -> Tensor | None:
        if not self.dropped:
            return None
        assert self.gen is not None
        words = np.random.SeedSequence((*self.gen.tolist(), number)).generate_state(1)
        source = Generator().manual_seed(int(words[0]))
        kept = torch.empty(shape, dtype=torch.float64).bernoulli_(1 - self.dropped, generator=source)
        return kept / (1 - self.dropped) if self.dropped < 1 else kept


Pieces = list[tuple[Any, Any]]
"""Rows of queries, and of keys, that make a sequence."""


def _of_one_length(q: Tensor) -> Pieces:
    return [(number, number) for number in range(len(q))]


def _packed(begins_q: Sequence[int], begins_k: Sequence[int]) -> Pieces:
    if len(begins_q) != len(begins_k):
        raise ValueError(f"there are {len(begins_q)} ends of queries and {len(begins_k)} of keys")
    both = [[slice(a, b) for a, b in pairwise(x)] for x in (begins_q, begins_k)]
    return list(zip(*both, strict=True))


def _check(q: Tensor, k: Tensor, v: Tensor, rank: int, slopes: Tensor | None = None) -> None:
    check_sizes(k.shape, v=v)
    fits = q.ndim == k.ndim == rank and q.shape[-1] == k.shape[-1] and (rank < 4 or len(q) == len(k))
    if not fits or q.shape[-2] % k.shape[-2]:
        raise ValueError(f"q has shape {tuple(q.shape)} and k {tuple(k.shape)}, which do not fit")
    if slopes is not None and slopes.shape[-1] != q.shape[-2]:
        raise ValueError(f"alibi_slopes has shape {tuple(slopes.shape)}, expected one for each of {q.shape[-2]} heads")


def _results(call: Call, q: Tensor, k: Tensor, v: Tensor, pieces: Pieces) -> Iterator[tuple[Any, Tensor, Tensor]]:
    """Of each sequence its rows, result and logarithms of the sums."""
    for number, (own, others) in enumerate(pieces):
        yield own, *call.one(number, q[own], k[others], v[others])


def _forward(call: Call, q: Tensor, k: Tensor, v: Tensor, pieces: Pieces, rows: int) -> tuple[Tensor, Tensor]:
    _check_probability(call.dropped)
    out = torch.zeros_like(q)
    lse = torch.zeros(len(pieces), q.shape[-2], rows, dtype=_wide(q)[0].dtype)
    for number, (own, one, sums) in enumerate(_results(call, q, k, v, pieces)):
        out[own], lse[number, :, : len(one)] = one, sums
    return out, lse


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"the probability of dropout is {p}, expected one from 0 to 1")


def _backward(call: Call, g: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, pieces: Pieces) -> Any:
    _check_probability(call.dropped)
    check_sizes(q.shape, grad_output=g, out=out)
    leaves = [x.detach().requires_grad_() for x in _wide(q, k, v)]
    with torch.enable_grad():
        parts = [(g[own], one) for own, one, _ in _results(call, leaves[0], leaves[1], leaves[2], pieces)]
    if not parts:
        return [torch.zeros_like(x) for x in (q, k, v)]
    grads = torch.autograd.grad(
        [one for _, one in parts], leaves, [part.to(one.dtype) for part, one in parts], materialize_grads=True
    )
    return [grad.to(q.dtype) for grad in grads]


# Forms

_draws = partial(vendor.implements, adapt=drawing(on_tensors, "gen", "p_dropout"))
_draws_wide = partial(vendor.implements, adapt=drawing(on_tensors, "gen", "dropout_p"))


@_draws("diopiFlashAttention")
def flash_attention(
    gen: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    alibi_slopes: Tensor | None,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    _check(q, k, v, 4, alibi_slopes)
    window = window_size_left, window_size_right
    call = Call(softmax_scale, is_causal, *window, alibi_slopes, p_dropout, gen)
    return _forward(call, q, k, v, _of_one_length(q), q.shape[1])


@_draws("diopiFlashAttentionBackward")
def flash_attention_backward(
    grad_output: Tensor,
    gen: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    alibi_slopes: Tensor | None,
    attention_out: Tensor,
    softmax_lse: Tensor,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    _check(q, k, v, 4, alibi_slopes)
    check_sizes((q.shape[0], q.shape[2], q.shape[1]), softmax_lse=softmax_lse)
    window = window_size_left, window_size_right
    call = Call(softmax_scale, is_causal, *window, alibi_slopes, p_dropout, gen)
    return _backward(call, grad_output, q, k, v, attention_out, _of_one_length(q))


@_draws("diopiFlashAttentionVarLen")
def flash_attention_var_len(
    gen: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cum_seq_q: Tensor,
    cum_seq_kv: Tensor,
    alibi_slopes: Tensor | None,
    max_seqlen_q: int,
    max_seqlen_kv: int,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    _check(q, k, v, 3, alibi_slopes)
    window = window_size_left, window_size_right
    call = Call(softmax_scale, is_causal, *window, alibi_slopes, p_dropout, gen)
    return _forward(call, q, k, v, _packed(cum_seq_q.tolist(), cum_seq_kv.tolist()), max_seqlen_q)


@_draws("diopiFlashAttentionVarLenBackward")
def flash_attention_var_len_backward(
    grad_output: Tensor,
    gen: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cum_seq_q: Tensor,
    cum_seq_kv: Tensor,
    alibi_slopes: Tensor | None,
    attention_out: Tensor,
    softmax_lse: Tensor,
    max_seqlen_q: int,
    max_seqlen_kv: int,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    _check(q, k, v, 3, alibi_slopes)
    check_sizes((len(cum_seq_q) - 1, q.shape[1], max_seqlen_q), softmax_lse=softmax_lse)
    window = window_size_left, window_size_right
    call = Call(softmax_scale, is_causal, *window, alibi_slopes, p_dropout, gen)
    return _backward(call, grad_output, q, k, v, attention_out, _packed(cum_seq_q.tolist(), cum_seq_kv.tolist()))


def _check_equal_heads(q: Tensor, k: Tensor) -> None:
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(f"q has shape {tuple(q.shape)} and k {tuple(k.shape)}, expected as many heads")


def _debug_mask(spec: ResultSpec | None) -> Tensor | None:
    """True where nothing fell, whatever did: what the mask holds is left open."""
    return None if spec is None else torch.ones(spec.shape, dtype=torch.bool)


@_draws_wide("diopiMultiHeadAttention")
def multi_head_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    scale: float,
    gen: Tensor,
    *,
    out: Out,
) -> Any:
    _check(q, k, v, 4)
    _check_equal_heads(q, k)
    call = Call(scale, is_causal, dropped=dropout_p, gen=gen)
    return *_forward(call, q, k, v, _of_one_length(q), q.shape[1]), _debug_mask(out[2])


@_draws_wide("diopiMultiHeadAttentionBackward")
def multi_head_attention_backward(
    grad_out: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    dropout_p: float,
    is_causal: bool,
    gen: Tensor,
    scale: float,
) -> Any:
    _check(q, k, v, 4)
    _check_equal_heads(q, k)
    check_sizes((q.shape[0], q.shape[2], q.shape[1]), softmax_lse=softmax_lse)
    call = Call(scale, is_causal, dropped=dropout_p, gen=gen)
    return _backward(call, grad_out, q, k, v, out, _of_one_length(q))


@_draws_wide("diopiMultiHeadAttentionVarLen")
def multi_head_attention_var_len(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cum_seq_q: Tensor,
    cum_seq_k: Tensor,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    scale: float,
    gen: Tensor,
    *,
    out: Out,
) -> Any:
    _check(q, k, v, 3)
    _check_equal_heads(q, k)
    call = Call(scale, is_causal, dropped=dropout_p, gen=gen)
    return *_forward(call, q, k, v, _packed(cum_seq_q.tolist(), cum_seq_k.tolist()), max_q), _debug_mask(out[2])


@_draws_wide("diopiMultiHeadAttentionVarLenBackward")
def multi_head_attention_var_len_backward(
    grad_out: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    cum_seq_q: Tensor,
    cum_seq_k: Tensor,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    gen: Tensor,
    scale: float,
) -> Any:
    _check(q, k, v, 3)
    _check_equal_heads(q, k)
    check_sizes((len(cum_seq_q) - 1, q.shape[1], max_q), softmax_lse=softmax_lse)
    call = Call(scale, is_causal, dropped=dropout_p, gen=gen)
    return _backward(call, grad_out, q, k, v, out, _packed(cum_seq_q.tolist(), cum_seq_k.tolist()))
