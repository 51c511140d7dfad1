"""The remarks on results of attention: random results because of dropout, and unspecified elements.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, PartlySpecified, WithTerms, strip_remarks
from diopi_test.oracle.reference.attention.core import AttentionRule, Sequences

Array = NDArray[Any]


def specified_lse(lse: WithTerms, q: Array, sequences: Sequences, rule: AttentionRule) -> PartlySpecified:
    """Return the logarithms of the softmax divisors, marked as partly specified.

    An element is unspecified if its query sees no key, or if its row is after the end of its sequence. All elements are
    unspecified if the bias of a causal call has slopes.

    Args:
        lse: the logarithms, [sequences, heads, rows].
        q: the queries.
        sequences: the rows of each sequence.
        rule: the visible keys and the bias.
    """
    rows = np.array([len(q[query_rows]) for query_rows, _ in sequences])
    is_row = np.arange(lse.value.shape[-1]) < rows[:, None, None]
    is_bias_complete = rule.slopes is None or not rule.causal
    return PartlySpecified(lse, np.isfinite(lse.value) & is_row & is_bias_complete)


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
