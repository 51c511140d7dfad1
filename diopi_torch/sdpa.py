"""`scaled_dot_product_attention`: one operator, and its gradient another, where functions serve them.

Source: torch.nn.functional.scaled_dot_product_attention; the gradient is that of "FlashAttention-2" (Dao 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

from diopi_proto.aten.mapping import RULE_FUNCTIONS, find_unsupported_attention
from diopi_torch.backend import backend

ATTENDED = (torch.float32, torch.float16, torch.bfloat16)
"""Element types of attention as one operator: the logarithms that its gradient needs are float32 in PyTorch."""


def choice(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> int:
    """How attention is done: by a function if the standard and the vendor have one, else by products and a softmax."""
    lacks = find_unsupported_attention(query, key, value, attn_mask, dropout_p, is_causal)
    has = all(map(backend().vendor.has, RULE_FUNCTIONS["attention"])) and torch._C._get_overrideable_sdp_enabled()
    is_one = lacks is None and has and query.dtype in ATTENDED
    return (SDPBackend.OVERRIDEABLE if is_one else SDPBackend.MATH).value


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """PyTorch asks compiled code alone for its choice, and composes attention without that."""
    tensors, flags = (query, key, value), (dropout_p, is_causal)
    if choice(*tensors, attn_mask, *flags) == SDPBackend.OVERRIDEABLE.value:
        overload = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
        found: Tensor = overload(*tensors, None, *flags, scale=scale)[0]
        return found
    composed = torch.ops.aten.scaled_dot_product_attention.default.decompose
    found = composed(*tensors, attn_mask, *flags, scale=scale, enable_gqa=enable_gqa)
    return found


def attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    _return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Attention of [B, H, S, D] each, the logarithms of what its softmax divides by, and the numbers of rows.

    NotImplementedError for dropout, of which no two devices draw the same.
    """
    if dropout_p:
        raise NotImplementedError("attention as one operator has no dropout here")
    scores = _scores(query, key, attn_bias, is_causal, scale)
    result = (scores.softmax(3) @ value.to(scores.dtype)).to(value.dtype)
    nothing = None, None
    sizes = query.shape[2], key.shape[2]
    return result, scores.logsumexp(3), *nothing, *sizes, *nothing, None


def attended_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    _grad_input_mask: Sequence[bool],
    out: Tensor,
    logsumexp: Tensor,
    _cum_seq_q: None,
    _cum_seq_k: None,
    _max_q: int,
    _max_k: int,
    _dropout_p: float,
    is_causal: bool,
    _philox_seed: None,
    _philox_offset: None,
    *,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    """The gradients of query, key, value and bias, from what `attended` gave."""
    shares = (_scores(query, key, attn_bias, is_causal, scale) - logsumexp[..., None]).exp()
    g, q, k, v, result = (tensor.to(shares.dtype) for tensor in (grad_out, query, key, value, out))
    of_scores = shares * (g @ v.mT - (g * result).sum(3, keepdim=True))
    scaled = of_scores * _scale(query, scale)
    gradients = scaled @ k, scaled.mT @ q, shares.mT @ g
    of_bias = None if attn_bias is None else of_scores.sum_to_size(attn_bias.shape).to(attn_bias.dtype)
    return *(gradient.to(query.dtype) for gradient in gradients), of_bias


def _scores(query: Tensor, key: Tensor, bias: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    """In float32 at least."""
    dtype = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(dtype) * _scale(query, scale) @ key.to(dtype).mT
    if bias is not None:
        scores = scores + bias
    if is_causal:
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    return scores


def _scale(query: Tensor, scale: float | None) -> float:
    return query.shape[3] ** -0.5 if scale is None else scale


ON_CPU: Mapping[str, Callable[..., Any]] = {
    "_scaled_dot_product_fused_attention_overrideable": attended,
    "_scaled_dot_product_fused_attention_overrideable_backward": attended_backward,
}
"""Operators that PyTorch's CPU lacks, by name: what falls back or is compared is called there."""

ABOVE_AUTOGRAD: Mapping[str, Callable[..., Any]] = {"scaled_dot_product_attention": scaled_dot_product_attention}
"""What others with gradients are made of, by the operator's name."""
