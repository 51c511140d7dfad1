"""Kernels for serving language models: token caches, decoding, prefill, and an all-reduce of one process.

Attention calls `attend`, and thus PyTorch's kernel, once per sequence.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.attention import attend, check_shapes


@vendor.implements("diopiDestIndexCopyKV")
def dest_index_copy_kv(out, k, dest_loc):
    """Return a copy of the cache `out` with row k[t] in row dest_loc[t]."""
    return out.index_copy(0, dest_loc.long(), k)


def _token_slots(b_loc: Tensor, b_start_loc: Tensor, b_seq_len: Tensor, max_input_len: int) -> Any:
    """Yield the columns of each sequence in packed data, and the rows of the cache that contain its tokens.

    In packed data, the tokens of all sequences are in one axis; sequence b occupies b_seq_len[b] columns, from
    b_start_loc[b] on. In the first `max_input_len` columns of `b_loc`, row b is right-aligned: it ends with the slots
    (rows of the cache) of sequence b.
    """
    check_shapes(b_loc.shape[:1], b_start_loc=b_start_loc, b_seq_len=b_seq_len)
    for slots, start, length in zip(b_loc, b_start_loc.tolist(), b_seq_len.tolist(), strict=True):
        yield slice(start, start + length), slots[max_input_len - length : max_input_len].long()


@vendor.implements("diopiTokenAttentionInference")
def token_attention_inference(token_attention_out, q, k, b_loc, b_start_loc, b_seq_len, max_input_len):
    """Return a copy of `token_attention_out` [heads, packed tokens] with the scores q · k / √d of each sequence.

    The query of a sequence is that of its new token, and the keys are those of all its cached tokens. Columns outside
    all sequences are unchanged. Softmax is not applied.
    """
    check_shapes((k.shape[0], *q.shape[1:]), k=k)
    scores = token_attention_out.clone()
    for query, (columns, slots) in zip(q, _token_slots(b_loc, b_start_loc, b_seq_len, max_input_len), strict=True):
        sum_dtype = torch.float64 if q.dtype is torch.float64 else torch.float32
        products = torch.einsum("hd,thd->ht", query.to(sum_dtype), k[slots].to(sum_dtype))
        scores[:, columns] = (products / math.sqrt(q.shape[-1])).to(q.dtype)
    return scores


@vendor.implements("diopiTokenSoftmaxReduceVInference")
def token_softmax_reduce_v_inference(logics, v, b_loc, b_start_loc, b_seq_len, max_input_len):
    """Return the sum of a sequence's cached values, weighted by softmax(logics): [sequences, heads, head size]."""
    check_shapes((v.shape[0], logics.shape[0], v.shape[2]), v=v)
    sum_dtype = torch.float64 if logics.dtype is torch.float64 else torch.float32
    sums = [
        torch.einsum("ht,thd->hd", torch.softmax(logics[:, columns].to(sum_dtype), -1), v[slots].to(sum_dtype))
        for columns, slots in _token_slots(b_loc, b_start_loc, b_seq_len, max_input_len)
    ]
    return torch.stack(sums).to(logics.dtype)


@vendor.implements("diopiContextAttentionInference")
def context_attention_inference(context_attention_out, q, k, v, b_start_loc, b_seq_len):
    """Return a copy of `context_attention_out` with the causal attention in the rows of each sequence.

    Sequence b occupies b_seq_len[b] rows of `q`, `k`, `v` and the result, from row b_start_loc[b] on.
    """
    check_shapes(context_attention_out.shape, q=q, k=k, v=v)
    check_shapes(b_start_loc.shape, b_seq_len=b_seq_len)
    out = context_attention_out.clone()
    for start, length in zip(b_start_loc.tolist(), b_seq_len.tolist(), strict=True):
        rows = slice(start, start + length)
        is_visible = torch.ones(length, length, dtype=torch.bool).tril()
        out[rows] = attend(q[rows], k[rows], v[rows], 1 / math.sqrt(q.shape[-1]), is_visible)[0]
    return out


@vendor.implements("diopiPagedAttention")
def paged_attention(q, k, v, attenMask, actual_seq_lengths, num_heads, num_kv_heads, dim, block_table, block_size):
    """Return attention of one query per sequence to the tokens in a cache of blocks.

    Without `block_table`, token t of each sequence is in slot t. `attenMask` is TRUE for tokens that a query does not
    see.
    """
    check_shapes((*k.shape[:-1], num_kv_heads * dim), k=k, v=v)
    if min(block_size, num_heads, num_kv_heads, *actual_seq_lengths) < 1 or num_heads % num_kv_heads:
        raise ValueError(
            f"block_size is {block_size}, actual_seq_lengths are {actual_seq_lengths}, num_heads is {num_heads} and "
            f"num_kv_heads is {num_kv_heads}; expected positive numbers, and num_heads to be a multiple of num_kv_heads"
        )
    if attenMask is not None and attenMask.shape[-1] != max(actual_seq_lengths):
        raise ValueError(f"attenMask has shape {tuple(attenMask.shape)}, expected {max(actual_seq_lengths)} columns")
    hidden = torch.zeros(1, max(actual_seq_lengths), dtype=torch.bool) if attenMask is None else attenMask
    queries = q.view(len(actual_seq_lengths), 1, num_heads, dim)
    keys, values = (x.reshape(-1, num_kv_heads, dim) for x in (k, v))
    out = torch.empty_like(queries)
    for number, length in enumerate(actual_seq_lengths):
        place = torch.arange(length)
        slots = place
        if block_table is not None:
            slots = block_table[number, place // block_size].long() * block_size + place % block_size
        is_visible = ~hidden[number % len(hidden), :length][None]
        out[number] = attend(queries[number], keys[slots], values[slots], 1 / math.sqrt(dim), is_visible)[0]
    return out.view(q.shape)


@vendor.implements("diopiPromptFlashAttention")
def prompt_flash_attention(
    query, key, value, atten_mask, actual_seq_lengths, max_input_len, num_heads, num_kv_heads, dim
):
    """Return causal attention of prompts that are padded to `max_input_len` rows; padding rows are 0.

    Without `actual_seq_lengths`, no prompt has padding. `atten_mask` is TRUE for keys that a query does not see; it
    hides them in addition to the later keys. The tensors have separate axes for prompts and rows, or one for both.
    """
    length = max_input_len
    are_lengths_valid = length >= 1 and all(0 <= seq_length <= length for seq_length in actual_seq_lengths)
    if not are_lengths_valid or min(num_heads, num_kv_heads) < 1 or num_heads % num_kv_heads:
        raise ValueError(
            f"actual_seq_lengths are {actual_seq_lengths}, max_input_len is {length}, num_heads is {num_heads} and "
            f"num_kv_heads is {num_kv_heads}; expected lengths from 0 to max_input_len, and num_heads to be a multiple "
            "of num_kv_heads"
        )
    lengths = actual_seq_lengths or [length] * (query.numel() // (length * num_heads * dim))
    batch = len(lengths)
    rows = (batch, length) if query.ndim == 3 else (batch * length,)
    check_shapes((*rows, num_heads * dim), query=query)
    check_shapes((*rows, num_kv_heads * dim), key=key, value=value)
    q, k, v = (
        x.reshape(batch, length, heads, dim)
        for x, heads in ((query, num_heads), (key, num_kv_heads), (value, num_kv_heads))
    )
    if atten_mask is not None and atten_mask.shape[-2:] != (length, length):
        raise ValueError(f"atten_mask has shape {tuple(atten_mask.shape)}, expected {length} rows and columns")
    masks = (
        torch.zeros(1, length, length, dtype=torch.bool)
        if atten_mask is None
        else atten_mask.reshape(-1, length, length)
    )
    out = torch.zeros_like(q)
    for number, seq_length in enumerate(lengths):
        is_visible = ~masks[number % len(masks), :seq_length, :seq_length].clone().logical_or(
            torch.ones(seq_length, seq_length, dtype=torch.bool).triu(1)
        )
        sequence = number, slice(seq_length)
        out[sequence] = attend(q[sequence], k[sequence], v[sequence], 1 / math.sqrt(dim), is_visible)[0]
    return out.view(query.shape)


@vendor.implements("diopiMatmulAllReduce")
def matmul_all_reduce(x1, x2, bias, reduce_op):
    """Return x1 @ x2 + bias: in a group of one rank, nothing is added to the product of this rank."""
    if reduce_op != "sum":
        raise ValueError(f"reduce_op is {reduce_op!r}, expected 'sum'")
    if bias is None:
        return torch.matmul(x1, x2)
    check_shapes(x2.shape[1:], bias=bias)
    return torch.nn.functional.linear(x1, x2.T, bias)
