"""Attention with dropout: any weights may be dropped, but their number and the remaining weights are determined.

The cases have one sequence with exact scores. The values, or the gradient of the result, are rows of the identity
matrix, so that the validated result consists of the attention weights themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.oracle.budget import K
from diopi_test.oracle.validators import Array, CompletedCall, Problems, validates
from diopi_test.oracle.validators.properties import check_elements
from diopi_test.oracle.validators.statistics import check_coins, score_redraws
from lib_rt.formats import format_of, ulp

FORWARD = {
    "diopiFlashAttention": "attention_out",
    "diopiFlashAttentionVarLen": "attention_out",
    "diopiMultiHeadAttention": "out",
    "diopiMultiHeadAttentionVarLen": "out",
    "diopiCustomizedFlashAttention": "attention_out",
    "diopiCustomizedFlashAttentionVarLen": "attention_out",
}
"""The functions with dropout, and the name of the result of each that the validator checks."""


def _attention_weights(arguments: Mapping[str, Any], axes: str) -> Array:
    """Return the attention weights exp(scale · q · k) / Σ exp(scale · q · k) of each head, query and key.

    Args:
        arguments: The arguments of the call, with the tensors `q` and `k`, whose last two axes are head and element.
        axes: The order of the axes of the result: h is the head, i the query and j the key.
    """
    q, k = (arguments[name].reshape(-1, *arguments[name].shape[-2:]) for name in ("q", "k"))
    scale = arguments.get("softmax_scale", arguments.get("scale"))
    e = np.exp(scale * np.einsum("ihd,jhd->hij", q, k))
    return np.asarray(np.einsum(f"hij->{axes}", e / e.sum(-1, keepdims=True)))


def _check_dropout(name: str, axes: str, call: CompletedCall) -> Problems:
    """Check that each attention weight is 0 with probability P, and divided by 1 − P otherwise.

    Args:
        name: The name of the result that consists of the weights.
        axes: The order of its axes head h, query i and key j, such as "ihj".
        call: The call.

    Yields:
        A description of each problem.
    """
    keep_probability = 1 - next(
        call.arguments[parameter] for parameter in ("p_dropout", "dropout_p") if parameter in call.arguments
    )
    actual, dtype = call.results[name], call.dtypes[name]

    def is_kept(sampled: CompletedCall) -> Array:
        """Return 1 for each weight that a call does not drop, else 0."""
        return np.asarray(sampled.results[name] != 0, np.int64)

    expected = np.where(
        is_kept(call), _attention_weights(call.arguments, axes).reshape(actual.shape) / keep_probability, 0
    )
    # the exponential and the divisor of a weight are rounded in float32 or a more precise type
    finer = min(format_of(dtype).epsilon, format_of(Dtype.float32).epsilon)
    change = call.changes.get(name, np.zeros(actual.shape)) / keep_probability  # measured without dropout
    unit = ulp(expected, dtype) + 2 * finer * expected + change
    is_valid = np.abs(actual - expected) <= np.where(is_kept(call), K * unit, 0)
    problems = list(check_elements(name, is_valid, actual, _describe_weights(actual, expected, is_valid)))
    yield from problems or check_coins(
        f"weights in {name} that are not dropped",
        is_kept(call),
        np.asarray(keep_probability),
        score_redraws(call, is_kept),
    )


LARGEST_INACCURACY = 2.0**-6
"""The largest relative error that a message describes as inaccurate arithmetic. Larger errors have other causes."""


def _describe_weights(actual: Array, expected: Array, is_valid: Array) -> str:
    """Return the description of valid weights for a message.

    If the invalid weights are only inaccurate, the text contains the largest relative error.

    Args:
        actual: The weights in the result.
        expected: The correct weights, and 0 where the result drops a weight.
        is_valid: A mask of the valid weights.
    """
    weights = expected[~is_valid]
    error = float(np.max(np.abs(actual[~is_valid] - weights) / np.where(weights > 0, weights, np.nan), initial=0.0))
    if error <= LARGEST_INACCURACY:
        return f"accurate attention weights / (1 − P), with relative errors up to {error:.1e}"
    return "an attention weight / (1 − P), or 0"


for _forward, _result in FORWARD.items():
    validates(_forward)(partial(_check_dropout, _result, "ihj"))
    if not _forward.startswith("diopiCustomized"):
        validates(f"{_forward}Backward")(partial(_check_dropout, "grad_v", "jhi"))
