"""`scaled_dot_product_attention` and its gradient as single operators, if functions implement them.

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

ATTENTION_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
"""Element types of the attention operator, without float64: PyTorch expects its result `logsumexp` in float32."""


def choose_backend(
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
    """Return the number of the backend that computes attention.

    The parameters are those of `torch.nn.functional.scaled_dot_product_attention`.

    Returns:
        The value of `SDPBackend.OVERRIDEABLE` if functions of the vendor support these arguments and the program has
        not disabled this backend; otherwise the value of `SDPBackend.MATH`, which computes attention with matrix
        products and softmax.
    """
    lacks = find_unsupported_attention(query, key, value, attn_mask, dropout_p, is_causal)
    has = all(map(backend().vendor.has, RULE_FUNCTIONS["attention"])) and torch._C._get_overrideable_sdp_enabled()
    uses_function = lacks is None and has and query.dtype in ATTENTION_DTYPES
    return (SDPBackend.OVERRIDEABLE if uses_function else SDPBackend.MATH).value


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
    """Return the attention; the backend is chosen here, because PyTorch chooses it only for compiled devices.

    The parameters are those of `torch.nn.functional.scaled_dot_product_attention`.
    """
    tensors, flags = (query, key, value), (dropout_p, is_causal)
    if choose_backend(*tensors, attn_mask, *flags) == SDPBackend.OVERRIDEABLE.value:
        overload = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
        result: Tensor = overload(*tensors, None, *flags, scale=scale)[0]
        return result
    composed = torch.ops.aten.scaled_dot_product_attention.default.decompose
    result = composed(*tensors, attn_mask, *flags, scale=scale, enable_gqa=enable_gqa)
    return result


def attention(
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
    """Return the attention of query, key and value with the values that its gradient needs.

    The parameters are those of `torch.ops.aten._scaled_dot_product_fused_attention_overrideable`; query, key and value
    have the shape [B, H, S, D].

    Returns:
        The attention [B, H, S, D], the logarithms of the softmax denominators [B, H, S], and the remaining results of
        the operator: the numbers of queries and keys, and None in place of values that only dropout and nested tensors
        need.

    Raises:
        NotImplementedError: for dropout, because no two devices draw the same random numbers.
    """
    if dropout_p:
        raise NotImplementedError("attention as one operator has no dropout here")
    scores = _scores(query, key, attn_bias, is_causal, scale)
    result = (scores.softmax(3) @ value.to(scores.dtype)).to(value.dtype)
    no_values = None, None
    sizes = query.shape[2], key.shape[2]
    return result, scores.logsumexp(3), *no_values, *sizes, *no_values, None


def attention_backward(
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
    """Return the gradients of query, key, value and bias, computed from the results of `attention`.

    The parameters are those of `_scaled_dot_product_fused_attention_overrideable_backward` in `torch.ops.aten`. Each
    gradient has the shape and element type of its tensor. The last one is None if there is no bias.
    """
    shares = (_scores(query, key, attn_bias, is_causal, scale) - logsumexp[..., None]).exp()
    g, q, k, v, result = (tensor.to(shares.dtype) for tensor in (grad_out, query, key, value, out))
    of_scores = shares * (g @ v.mT - (g * result).sum(3, keepdim=True))
    scaled = of_scores * _scale_or_default(query, scale)
    gradients = scaled @ k, scaled.mT @ q, shares.mT @ g
    of_bias = None if attn_bias is None else of_scores.sum_to_size(attn_bias.shape).to(attn_bias.dtype)
    return *(gradient.to(query.dtype) for gradient in gradients), of_bias


def _scores(query: Tensor, key: Tensor, bias: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    """Return the scores [B, H, queries, keys] before the softmax, in float32 or a wider type.

    Args:
        query: the queries, [B, H, queries, D].
        key: the keys, [B, H, keys, D].
        bias: a summand of the scores; None for 0.
        is_causal: whether later keys are invisible: their scores are −∞.
        scale: the factor of the scores; None for 1 / √D.

    Returns:
        The scores.
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(dtype) * _scale_or_default(query, scale) @ key.to(dtype).mT
    if bias is not None:
        scores = scores + bias
    if is_causal:
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    return scores


def _scale_or_default(query: Tensor, scale: float | None) -> float:
    """Return the scale, by default 1 / √head_dim."""
    return query.shape[3] ** -0.5 if scale is None else scale


ON_CPU: Mapping[str, Callable[..., Any]] = {
    "_scaled_dot_product_fused_attention_overrideable": attention,
    "_scaled_dot_product_fused_attention_overrideable_backward": attention_backward,
}
"""Operators that the CPU lacks, by name; fallback and comparison call these implementations."""

ABOVE_AUTOGRAD: Mapping[str, Callable[..., Any]] = {"scaled_dot_product_attention": scaled_dot_product_attention}
"""Implementations that are registered above autograd, by operator name; they call operators that have gradients."""
