"""What of the results of attention is specified: not what falls by chance, nor what no query sees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, PartlySpecified, WithTerms, strip_remarks
from diopi_test.oracle.reference.attention.core import AttentionRule, Sequences

Array = NDArray[Any]


def specified_lse(lse: WithTerms, q: Array, sequences: Sequences, rule: AttentionRule) -> PartlySpecified:
    """Open for queries that see nothing, beyond the ends of sequences, and where the bias may lack a part."""
    rows = np.array([len(q[query_rows]) for query_rows, _ in sequences])
    within = np.arange(lse.value.shape[-1]) < rows[:, None, None]
    whole = rule.slopes is None or not rule.causal
    return PartlySpecified(lse, np.isfinite(lse.value) & within & whole)


def mark_random(rule: AttentionRule, result: Any) -> Any:
    """A result that is left to chance, if it is."""
    return AnyOf(strip_remarks(result)) if 0 < rule.dropout < 1 else result


def leave_unspecified(value: Any) -> PartlySpecified:
    """A result of which the form alone is specified."""
    return PartlySpecified(value, np.zeros(np.shape(value), bool))


def mark_random_gradients(rule: AttentionRule, grads: tuple[WithTerms | PartlySpecified, ...]) -> Any:
    """With dropout those of q and k follow from a forward result that nobody but the implementation can give."""
    if not 0 < rule.dropout < 1:
        return grads
    q, k, v = map(strip_remarks, grads)
    return leave_unspecified(q), leave_unspecified(k), AnyOf(v)
