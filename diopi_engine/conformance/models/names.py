"""The names of the networks and of the cases that run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NETWORKS = ("resnet", "transformer", "recommender", "other_recommender", "lstm", "detector")
"""The networks of `zoo`; the two recommenders differ only in their weights."""

GROUP = ("recommender", "other_recommender")
"""The engines that are linked."""

BY_OPERATORS: Mapping[str, str] = {f"{name}_by_operators": name for name in NETWORKS}
"""The network of each case of a vendor."""

AS_ENGINES: Mapping[str, Sequence[str]] = {
    **{f"{name}_as_engine": (name,) for name in NETWORKS if name not in GROUP},
    "recommenders_as_group": GROUP,
}
"""The networks of each case of a library; their engines have execution contexts at the same time."""


def find_networks(case: str) -> Sequence[str]:
    """Return the networks that a case needs; empty for cases without networks."""
    return (BY_OPERATORS[case],) if case in BY_OPERATORS else AS_ENGINES.get(case, ())
