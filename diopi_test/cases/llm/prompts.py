"""Cases of `diopiPromptFlashAttention`: causal attention to sequences that are padded to one length (prefill).

A template describes cases that differ only in their element type (`diopi_test.cases.template`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import choice, normal
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.llm.numbers import BF16, ONES, SMALL_INTEGERS, Shape, paired_keys
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import literal


@dataclass(frozen=True, kw_only=True)
class PaddedSizes:
    """The sizes of a call of `diopiPromptFlashAttention`, from which `prompt_arguments` derives the arguments.

    Attributes:
        lengths: The number of tokens of each sequence.
        padded_length: The length to which all sequences are padded.
        heads: The number of query heads.
        key_heads: The number of key heads, which is also the number of value heads. It divides `heads`.
        head_size: The number of elements of a head.
        mask_rank: The number of axes of the mask, from 2 to 4; 0 for no mask.
    """

    lengths: Sequence[int]
    padded_length: int
    heads: int = 4
    key_heads: int = 2
    head_size: int = 8
    mask_rank: int = 0


def prompt_template(label: str, padded_length: int, *lengths: int, **fields: Any) -> CaseTemplate[PaddedSizes]:
    """Return a template of attention to padded prompts.

    Args:
        label: The label of the cases without the element type.
        padded_length: The length after padding.
        *lengths: The number of tokens of each prompt.
        **fields: Other fields of `PaddedSizes`, and fields of the template.

    Returns:
        The template.
    """
    sizes = {name: fields.pop(name) for name in list(fields) if name in PaddedSizes.__annotations__}
    return CaseTemplate(label, PaddedSizes(lengths=lengths, padded_length=padded_length, **sizes), **fields)


def prompt_arguments(template: CaseTemplate[PaddedSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiPromptFlashAttention` for the sizes of a template.

    The mask hides all keys after the query's own position, and every fifth element of the mask.

    Args:
        template: The template. Its layout applies to query, key and value.
        dtype: Not used; query, key and value have the type under test.

    Returns:
        The arguments by name.
    """
    sizes, layout = template.sizes, template.layout
    batch, length = len(sizes.lengths), sizes.padded_length
    keys = tensor(batch * length, sizes.key_heads * sizes.head_size, layout=layout)
    shape: Shape = ((), (), (length, length), (batch, length, length), (batch, 1, length, length))[sizes.mask_rank]
    is_later = np.arange(length) > np.arange(length)[:, None]
    every_fifth = np.arange(int(np.prod(shape))).reshape(shape) % 5 == 1 if shape else is_later
    return {
        "query": tensor(batch * length, sizes.heads * sizes.head_size, layout=layout),
        "key": keys,
        "value": keys,
        "atten_mask": literal(is_later | every_fifth, Dtype.bool) if sizes.mask_rank else None,
        "actual_seq_lengths": tuple(sizes.lengths),
        "max_input_len": length,
        "num_heads": sizes.heads,
        "num_kv_heads": sizes.key_heads,
        "dim": sizes.head_size,
    }


EXACT_PROMPTS = prompt_template(
    "exact", 8, 8, 5, domains={"query": ONES, "value": SMALL_INTEGERS}, dtypes=DtypeSelection.all, exact=True
)
"""A template whose attention weights and results are exact, if keys come in pairs of equal scores (`paired_keys`)."""

RANK_3_TENSORS = {"query": tensor(2, 5, 32), "key": tensor(2, 5, 16), "value": tensor(2, 5, 16)}
"""Query, key and value with one entry per sequence along the first axis: [sequences, padded length, ·].

In other cases, the first axis has one entry per token of all sequences.
"""

register(
    "diopiPromptFlashAttention",
    templates=(
        EXACT_PROMPTS.replace(arguments={"key": paired_keys(np.tile(np.arange(8), 2), 16)}),
        prompt_template("", 4, 4, 2, heads=2, key_heads=1, mask_rank=3, **SMOKE_IN_ALL_DTYPES),
        prompt_template("no-mask", 5, 5, 3, 4, dtypes=DtypeSelection.all),
        prompt_template("one-mask-for-all", 5, 3, 5, mask_rank=2, dtypes=DtypeSelection.all),
        prompt_template("mask-of-rank-4", 5, 5, 2, mask_rank=4, dtypes=DtypeSelection.all),
        prompt_template("equal-lengths", 6, 6, 6, mask_rank=2),
        prompt_template("one-sequence", 7, 7),
        prompt_template("more-padding", 8, 3, 5),
        prompt_template("one-head-each", 4, 4, 2, key_heads=4),
        prompt_template("one-key-head", 4, 4, 2, key_heads=1, mask_rank=2),
        prompt_template("empty-sequence", 4, 3, 0, 4),
        prompt_template("apart", 5, 5, 3, mask_rank=3).replace(arguments=RANK_3_TENSORS),
        prompt_template("no-lengths", 5, 5, 5, mask_rank=4).replace(arguments={"actual_seq_lengths": ()}),
        prompt_template("long", 300, 300, heads=1, key_heads=1, head_size=4, dtypes=DtypeSelection.all),
        prompt_template("head-size-64", 4, 4, 3, head_size=64, dtypes=DtypeSelection.all),
        prompt_template("head-size-80", 4, 4, 3, head_size=80),
        prompt_template("head-size-128", 4, 4, 3, head_size=128, heads=2, dtypes=half),
        prompt_template("steep", 6, 6, 5, domains={"query": normal(6)}, dtypes=DtypeSelection.all),
        prompt_template("transposed", 5, 5, 3, **same_layout(transposed)),
        prompt_template("strided", 5, 5, 3, **same_layout(strided), mask_rank=3, dtypes=DtypeSelection.all),
        prompt_template("nan", 6, 6, 5, domains={"query": choice([1.0, nan, *np.linspace(-2, 2, 61)])}),
        prompt_template("long", 1031, 1031, 517, heads=2, key_heads=1, head_size=66, mask_rank=3, large=True),
        prompt_template("heads", 67, 67, 33, heads=32, key_heads=8, head_size=128, dtypes=[BF16], large=True),
    ),
    derive=prompt_arguments,
)
