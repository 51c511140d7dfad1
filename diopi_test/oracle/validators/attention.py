"""Attention with dropout: which shares fall is free, how many and what becomes of the others is not.

The cases have one sequence, whose scores are exact, and rows of the identity for values, or for the gradient of the
result: what is judged holds the shares themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.formats import format_of, ulp
from diopi_test.oracle.budget import K
from diopi_test.oracle.validators import Answer, Array, Problems, validates
from diopi_test.oracle.validators.chance import coins, of_others
from diopi_test.oracle.validators.kinds import all_where

FORWARD = {
    "diopiFlashAttention": "attention_out",
    "diopiFlashAttentionVarLen": "attention_out",
    "diopiMultiHeadAttention": "out",
    "diopiMultiHeadAttentionVarLen": "out",
    "diopiCustomizedFlashAttention": "attention_out",
    "diopiCustomizedFlashAttentionVarLen": "attention_out",
}
"""Functions with dropout, and their results."""


def _shares(arguments: Mapping[str, Any], axes: str) -> Array:
    """The shares of each head h, query i and key j, with these axes."""
    q, k = (arguments[name].reshape(-1, *arguments[name].shape[-2:]) for name in ("q", "k"))
    scale = arguments.get("softmax_scale", arguments.get("scale"))
    e = np.exp(scale * np.einsum("ihd,jhd->hij", q, k))
    return np.asarray(np.einsum(f"hij->{axes}", e / e.sum(-1, keepdims=True)))


def _dropout(name: str, axes: str, answer: Answer) -> Problems:
    """Each share is 0 with probability P, or divided by 1 − P."""
    left = 1 - next(answer.arguments[one] for one in ("p_dropout", "dropout_p") if one in answer.arguments)
    given, dtype = answer.results[name], answer.dtypes[name]

    def kept(of: Answer) -> Array:
        return np.asarray(of.results[name] != 0, np.int64)

    wanted = np.where(kept(answer), _shares(answer.arguments, axes).reshape(given.shape) / left, 0)
    # an exponential and the sum that it is divided by are rounded, in float32 at least
    finer = min(format_of(dtype).epsilon, format_of(Dtype.float32).epsilon)
    right = np.abs(given - wanted) <= np.where(kept(answer), K * (ulp(wanted, dtype) + 2 * finer * wanted), 0)
    problems = list(all_where(name, right, given, "a share / (1 − P), or 0"))
    yield from problems or coins(
        f"what {name} shows to be kept", kept(answer), np.asarray(left), of_others(answer, kept)
    )


for _forward, _result in FORWARD.items():
    validates(_forward)(partial(_dropout, _result, "ihj"))
    if not _forward.startswith("diopiCustomized"):
        validates(f"{_forward}Backward")(partial(_dropout, "grad_v", "jhi"))
