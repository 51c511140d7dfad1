"""The unspecified parts of the results of attention: random weights, and queries without visible keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, PartlySpecified, WithTerms, strip_remarks
from diopi_test.oracle.reference.attention.core import AttentionRule, Sequences

Array = NDArray[Any]


def specified_lse(lse: WithTerms, q: Array, sequences: Sequences, rule: AttentionRule) -> PartlySpecified:
    """Return the logarithms; they are unspecified without visible keys, after sequences, and for causal ALiBi."""
    rows = np.array([len(q[query_rows]) for query_rows, _ in sequences])
    within = np.arange(lse.value.shape[-1]) < rows[:, None, None]
    is_bias_complete = rule.slopes is None or not rule.causal
    return PartlySpecified(lse, np.isfinite(lse.value) & within & is_bias_complete)


def mark_random(rule: AttentionRule, result: Any) -> Any:
    """Return a result as `AnyOf`, one of several valid results, if dropout is random; else return it unchanged."""
    return AnyOf(strip_remarks(result)) if 0 < rule.dropout < 1 else result


def make_unspecified(value: Any) -> PartlySpecified:
    """Return a result without specified elements: only its shape and type are specified."""
    return PartlySpecified(value, np.zeros(np.shape(value), bool))


def mark_random_gradients(rule: AttentionRule, grads: tuple[WithTerms | PartlySpecified, ...]) -> Any:
    """Return the gradients; with random dropout, mark dv as random, and mark dq and dk as unspecified."""
    if not 0 < rule.dropout < 1:
        return grads
    q, k, v = map(strip_remarks, grads)
    return make_unspecified(q), make_unspecified(k), AnyOf(v)
