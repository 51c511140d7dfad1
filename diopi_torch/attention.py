"""Attention and encoder layers for evaluation, which PyTorch calls as single operators without gradients.

They are composed of operators that functions implement. Source: the slow paths of `torch.nn.MultiheadAttention` and
`torch.nn.TransformerEncoderLayer`, which compute the same (Vaswani et al. 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from diopi_torch.fallback import reject_nested_tensors

_KEY_PADDING_MASK = 1
"""The mask type for masks `[batch, keys]`; others broadcast to the scores `[batch, heads, queries, keys]`."""


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Return multi-head attention and, if requested, its weights.

    The parameters are those of `torch.ops.aten._native_multi_head_attention`. Keys for which the mask is nonzero have
    the weight 0.

    Returns:
        The attention `[batch, queries, embed_dim]`, and the weights. They are `[batch, heads, queries, keys]`, or their
        mean over the heads, `[batch, queries, keys]`, or None if they are not requested.
    """
    projections = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    queries, keys, values = (
        functional.linear(*projection).unflatten(2, (num_head, -1)).transpose(1, 2) for projection in projections
    )
    scores = queries / math.sqrt(embed_dim / num_head) @ keys.transpose(2, 3)
    if mask is not None:
        hidden = mask[:, None, None] if mask_type == _KEY_PADDING_MASK else mask
        scores = scores.masked_fill(hidden.bool(), -math.inf)
    weights = scores.softmax(3)
    attended = functional.linear((weights @ values).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return attended, None
    return attended, weights.mean(1) if average_attn_weights else weights


def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """Return the result of a transformer encoder layer, of the same shape as `src`: `[batch, length, embed_dim]`.

    The parameters are those of `torch.ops.aten._transformer_encoder_layer_fwd`.
    """

    def attention(x: Tensor) -> Tensor:
        """Return the self-attention of x, without the weights."""
        projections = qkv_weight, qkv_bias, proj_weight, proj_bias
        return multi_head_attention(
            x, x, x, embed_dim, num_heads, *projections, mask, need_weights=False, mask_type=mask_type
        )[0]

    def feed_forward(x: Tensor) -> Tensor:
        """Return the result of the two linear layers with an activation between them."""
        activation = functional.gelu if use_gelu else functional.relu
        return functional.linear(activation(functional.linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    norms = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    for part, norm in zip((attention, feed_forward), norms, strict=True):
        if norm_first:
            src = src + part(functional.layer_norm(src, (embed_dim,), *norm, eps))
        else:
            src = functional.layer_norm(src + part(src), (embed_dim,), *norm, eps)
    return src


def is_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Return False: the device has no nested tensors, so encoders pad their batches instead."""
    return False


FAST_PATHS: Mapping[str, Callable[..., Any]] = {
    "_native_multi_head_attention": multi_head_attention,
    "_transformer_encoder_layer_fwd": encoder_layer,
    "_nested_tensor_from_mask_left_aligned": is_left_aligned,
    "_nested_tensor_from_mask": partial(reject_nested_tensors, torch.ops.aten._nested_tensor_from_mask.default),
}
"""The implementations by operator name."""
