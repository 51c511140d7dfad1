"""Cases of LMDeploy's fused attention: prefill of whole sequences, and decoding of one token per sequence.

Both functions project tokens to queries, keys and values, rotate queries and keys, and extend a cache of keys and
values. A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite. Large cases belong to a level with the sizes of real models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, integer_values, normal
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.lmdeploy.arguments import (
    BF16,
    F16,
    F32,
    I32,
    NO_WORKSPACE,
    integer_table,
    random_integers,
    workspace_calls,
)
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import (
    literal,
    mask,
)


@dataclass(frozen=True, kw_only=True)
class AttentionSizes:
    """The sizes of a call of fused attention, from which the arguments are derived.

    Attributes:
        batch: The number of sequences.
        heads: The number of query heads.
        key_heads: The number of key heads, which is also the number of value heads. It divides `heads`.
        head_size: The number of elements of a head.
        layers: The number of layers of the caches.
        slots: The number of tokens per sequence for which a cache has room.
        new_tokens: The number of tokens per sequence that a prefill adds. Decoding always adds one token.
        cached_tokens: The number of tokens per sequence in the cache before a prefill.
    """

    batch: int = 2
    heads: int = 4
    key_heads: int = 2
    head_size: int = 6
    layers: int = 2
    slots: int = 8
    new_tokens: int = 3
    cached_tokens: int = 2

    @property
    def width(self) -> int:
        """Return the number of elements of a token, which is the number of elements of all query heads together."""
        return self.heads * self.head_size

    @property
    def projected_width(self) -> int:
        """Return the number of columns of `qkv_weight`: the elements of a token's query, key and value together."""
        return (self.heads + 2 * self.key_heads) * self.head_size


def _shared_arguments(template: CaseTemplate[AttentionSizes], rows: int) -> dict[str, Any]:
    """Return the arguments that prefill and decoding share.

    Args:
        template: The template.
        rows: The number of tokens in `inoutput`.

    Returns:
        The arguments by name. The call uses the last layer of the caches and rotates all columns of a head, or all but
        one if their number is odd.
    """
    sizes, layout = template.sizes, template.layout
    cache = tensor(sizes.layers, sizes.batch, sizes.key_heads, sizes.slots, sizes.head_size, layout=layout)
    return {
        "inoutput": tensor(rows, sizes.width, layout=layout),
        "qkv_weight": tensor(sizes.width, sizes.projected_width, domain=normal(sizes.width**-0.5), layout=layout),
        "qkv_bias": tensor(1, sizes.projected_width, domain=normal(0.5)),
        **NO_WORKSPACE,
        "key_cache": cache,
        "value_cache": cache,
        "layer_id": sizes.layers - 1,
        "local_head_num": sizes.heads,
        "local_kv_head_num": sizes.key_heads,
        "size_per_head": sizes.head_size,
        "max_seq_len": sizes.slots,
        "rotary_embedding": sizes.head_size // 2 * 2,
        "rope_theta": 10000.0,
    }


def attention_template(
    label: str, arguments: Mapping[str, Any] | None = None, /, **fields: Any
) -> CaseTemplate[AttentionSizes]:
    """Return a template of a call of fused attention.

    Args:
        label: The label of the cases without the element type.
        arguments: Arguments that replace derived arguments.
        **fields: Fields of `AttentionSizes`, and fields of the template.

    Returns:
        The template.
    """
    sizes = {name: fields.pop(name) for name in fields.keys() & vars(AttentionSizes()).keys()}
    return CaseTemplate(label, AttentionSizes(**sizes), arguments or {}, **fields)


FLAT_SOFTMAX, SHARP_SOFTMAX = normal(0.05), normal(3)
"""Domains of tokens with small and with large numbers.

With small numbers, the attention weights of all keys are nearly equal. With large numbers, a few keys have most of the
weight.
"""

SHARED_TEMPLATES = (
    attention_template("one-head", heads=1, key_heads=1, dtypes=DtypeSelection.all),
    attention_template("all-keys", heads=3, key_heads=3, dtypes=DtypeSelection.all),
    attention_template("one-key", heads=4, key_heads=1),
    attention_template("no-bias", {"qkv_bias": None}, dtypes=DtypeSelection.all),
    attention_template("one-layer", layers=1, dtypes=(F32, F16)),
    attention_template("first-layer", {"layer_id": 0}),
    attention_template("middle-layer", {"layer_id": 1}, layers=3),
    attention_template("partly-rotated", {"rotary_embedding": 4}, dtypes=DtypeSelection.all),
    attention_template(
        "not-rotated",
        {"rotary_embedding": 0},
        non_discriminating="without rotation, positions do not affect the result",
    ),
    attention_template("odd-size", {"rotary_embedding": 4}, head_size=5),
    attention_template("theta", {"rope_theta": 500.0}, dtypes=(F32, BF16)),
    attention_template("theta-1e6", {"rope_theta": 1e6}),
    attention_template("one-sequence", batch=1),
    attention_template("many-sequences", batch=7, heads=2, key_heads=1, head_size=4),
    attention_template("flat", domains={"inoutput": FLAT_SOFTMAX}),
    attention_template("sharp", domains={"inoutput": SHARP_SOFTMAX}, dtypes=(F32, F16)),
    attention_template("strided", layout=strided, dtypes=DtypeSelection.all),
    attention_template("transposed", layout=transposed),
    attention_template("large-heads", heads=2, key_heads=1, head_size=64, dtypes=half),
)
"""The templates that prefill and decoding have. Decoding uses three sequences instead of two."""


LARGE_HEADS: Mapping[str, Any] = {"heads": 8, "domains": {"qkv_weight": normal(0.04)}, "large": True}
"""Fields of large templates with 8 query heads. The domain of the weights keeps the scores at a moderate magnitude."""

CACHED_TOKENS = 64
"""The number of slots and of equal scores in exact cases.

The function adds 1e-6 to the sum of the exponentials, here 64. The results are exact because no type under test
represents this change of the sum.
"""


def exact_template(arguments: Mapping[str, Any] | None = None, /, **fields: Any) -> CaseTemplate[AttentionSizes]:
    """Return a template whose queries are 0, so that its results are means of `CACHED_TOKENS` small integers.

    Each element of a new key or value is an element of the token, or its negative, plus a bias of −1, 0 or 1.

    Args:
        arguments: Arguments that replace the default ones.
        **fields: Fields of `AttentionSizes`.

    Returns:
        The template.
    """
    sizes = AttentionSizes(slots=CACHED_TOKENS, **fields)
    columns = np.arange(sizes.projected_width - sizes.width)
    weight = np.zeros((sizes.width, sizes.projected_width))
    weight[5 * columns % sizes.width, sizes.width + columns] = 1 - 2.0 * (columns % 2)
    bias = np.concatenate([np.zeros(sizes.width), columns % 3 - 1.0])[np.newaxis]
    tensors = {
        "qkv_weight": tensor(*weight.shape, compute=lambda values: weight),
        "qkv_bias": tensor(*bias.shape, compute=lambda values: bias),
        "rotary_embedding": 0,
        **(arguments or {}),
    }
    cache_domains = dict.fromkeys(("key_cache", "value_cache"), integer_values(1, 2))
    domains = {"inoutput": integer_values(-1, 1), **cache_domains}
    return attention_template("exact", tensors, **vars(sizes), domains=domains, exact=True, dtypes=DtypeSelection.all)


# Prefill


def _context_arguments(template: CaseTemplate[AttentionSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of a prefill (`diopiFusedContextAttentionInp`) for the sizes of a template.

    Args:
        template: The template. Its layout applies to tokens, weights and caches.
        dtype: Not used; the tensors have the type under test.

    Returns:
        The arguments by name, without a workspace.
    """
    sizes = template.sizes
    return {
        **_shared_arguments(template, sizes.batch * sizes.new_tokens),
        **{"pre_work": None, "pre_work_size": 0, "is_prepared": False},
        "max_q_len": sizes.new_tokens,
        "max_kv_len": sizes.cached_tokens + sizes.new_tokens,
    }


PREFILL_SMOKE = attention_template("plain", **SMOKE_IN_ALL_DTYPES)
"""The prefill with the default sizes: a template of smoke cases in every element type."""


def _nan_from_slot(length: int) -> Domain:
    """Return a domain of a cache with 8 slots of 6 elements, in which the last slots contain only NaN.

    A function that reads a slot beyond the sequence returns NaN.

    Args:
        length: The number of the first slot with NaN.

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Return normally distributed numbers, with NaN in the last slots."""
        values = normal()(rng, count, dtype).reshape(-1, 8, 6)
        values[:, length:] = nan
        return values.reshape(-1)

    return draw


register(
    "diopiFusedContextAttentionInp",
    templates=(
        PREFILL_SMOKE,
        *SHARED_TEMPLATES,
        attention_template("no-history", cached_tokens=0, dtypes=DtypeSelection.all, smoke=(F32,)),
        attention_template("one-token", new_tokens=1, cached_tokens=4),
        attention_template("first-token", new_tokens=1, cached_tokens=0),
        attention_template("full-cache", new_tokens=5, cached_tokens=3),
        attention_template("long-history", new_tokens=2, cached_tokens=60, slots=64, dtypes=(F32, F16)),
        attention_template(
            "long",
            batch=1,
            heads=2,
            key_heads=1,
            head_size=4,
            new_tokens=70,
            cached_tokens=3,
            slots=80,
            dtypes=(F32, BF16),
        ),
        attention_template(
            "nothing-beyond",
            domains={"key_cache": _nan_from_slot(2), "value_cache": _nan_from_slot(2)},
            dtypes=DtypeSelection.all,
        ),
        exact_template(batch=3, new_tokens=1, cached_tokens=CACHED_TOKENS - 1),
        *workspace_calls(PREFILL_SMOKE),
        PREFILL_SMOKE.replace("pre-work-size-asked", {"pre_work_size": -1}, dtypes=(F32,)),
        PREFILL_SMOKE.replace(
            "both-sizes-asked",
            {
                "pre_work_size": -3,
                "is_prepared": True,
                "workspace_size": -7,
                "pre_work": tensor(5),
                "workspace": tensor(7),
            },
            dtypes=(F16,),
            smoke=False,
        ),
        PREFILL_SMOKE.replace(
            "pre-work", {"pre_work": tensor(512, dtype=F32), "pre_work_size": 2048}, dtypes=(F32, F16), smoke=False
        ),
        attention_template("long", head_size=80, slots=211, new_tokens=131, cached_tokens=70, **LARGE_HEADS),
    ),
    derive=_context_arguments,
)

# Decoding


def _decoder_arguments(template: CaseTemplate[AttentionSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of decoding (`diopiFusedDecoderAttentionInp`) for the sizes of a template.

    Args:
        template: The template. Its layout applies to tokens, weights and caches.
        dtype: Not used; floating-point tensors have the type under test.

    Returns:
        The arguments by name, without a workspace. Some sequences are finished, and lengths and padding are random.
    """
    batch, slots = template.sizes.batch, template.sizes.slots
    return {
        **_shared_arguments(template, batch),
        "finished": literal([b % 4 == 1 for b in range(batch)], Dtype.bool),
        "total_padding_tokens": random_integers(batch, low=0, high=2),
        "sequence_lengths": random_integers(batch, low=1, high=slots - 1),
        "step": slots,
    }


DECODE_SMOKE = attention_template("plain", batch=3, **SMOKE_IN_ALL_DTYPES)
"""The decoding of three sequences: a template of smoke cases in every element type."""

NONE_FINISHED = {"finished": None}
"""The argument that omits the flags of finished sequences, so that no sequence is finished."""


def _sequence_lengths(*lengths: int, **arguments: Any) -> Mapping[str, Any]:
    """Return the arguments of unfinished sequences.

    Args:
        *lengths: The number of tokens of each sequence before the call.
        **arguments: Further arguments.

    Returns:
        The arguments by name.
    """
    return {"sequence_lengths": integer_table(lengths), **NONE_FINISHED, **arguments}


register(
    "diopiFusedDecoderAttentionInp",
    templates=(
        DECODE_SMOKE,
        *(
            template if template.label == "one-sequence" else template.with_sizes(batch=3)
            for template in SHARED_TEMPLATES
        ),
        attention_template("none-finished", NONE_FINISHED, batch=3, dtypes=DtypeSelection.all),
        attention_template(
            "all-finished", {"finished": mask(3, fill=True)}, batch=3, non_discriminating="no row is computed"
        ),
        attention_template("some-finished", {"finished": mask(5, period=2)}, batch=5),
        attention_template(
            "no-padding", {"total_padding_tokens": None, **NONE_FINISHED}, batch=3, dtypes=DtypeSelection.all
        ),
        attention_template("first-tokens", _sequence_lengths(0, 0, 0, step=1, total_padding_tokens=None), batch=3),
        attention_template("ragged", _sequence_lengths(0, 7, 3, 5, 1), batch=5, dtypes=DtypeSelection.all),
        attention_template("last-slot", _sequence_lengths(7, 7, 6), batch=3),
        attention_template("around", _sequence_lengths(8, 11, 23, step=24), batch=3, dtypes=DtypeSelection.all),
        attention_template("around-or-not", _sequence_lengths(16, 2, 9, step=17), batch=3),
        attention_template("step", {"step": 3, **NONE_FINISHED, "total_padding_tokens": None}, batch=3),
        attention_template("late", {"step": 30}, batch=3),
        attention_template("far", _sequence_lengths(5, 9, 2, step=1500), batch=3, dtypes=(F32, F16)),
        attention_template(
            "long",
            _sequence_lengths(500, 3, 511, step=600),
            batch=3,
            heads=2,
            key_heads=1,
            head_size=4,
            slots=512,
            layers=1,
        ),
        attention_template(
            "int32",
            {"sequence_lengths": integer_table([4, 2, 7], I32), "total_padding_tokens": integer_table([0, 2, 1], I32)},
            batch=3,
        ),
        attention_template(
            "inputs-strided",
            {
                "finished": literal([False, True, False], Dtype.bool, strided),
                "sequence_lengths": random_integers(3, low=1, high=7, layout=strided),
                "total_padding_tokens": random_integers(3, low=0, high=2, layout=strided),
            },
            batch=3,
        ),
        attention_template(
            "nothing-beyond",
            _sequence_lengths(3, 3, 3),
            batch=3,
            domains={"key_cache": _nan_from_slot(3), "value_cache": _nan_from_slot(3)},
            dtypes=DtypeSelection.all,
        ),
        exact_template(
            _sequence_lengths(CACHED_TOKENS - 1, CACHED_TOKENS, 200, step=600, total_padding_tokens=None), batch=3
        ),  # the sequence length exceeds the number of slots; the smoke case of long sequences is "long"
        *workspace_calls(DECODE_SMOKE),
        attention_template(
            "long",
            {
                "finished": mask(131, period=4),
                "total_padding_tokens": random_integers(131, low=0, high=30),
                "sequence_lengths": random_integers(131, low=1, high=150),
                "step": 151,
            },
            batch=131,
            head_size=64,
            layers=1,
            slots=67,
            **LARGE_HEADS,
        ),
    ),
    derive=_decoder_arguments,
)
