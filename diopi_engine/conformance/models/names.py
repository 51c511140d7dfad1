"""Which networks there are, and the cases made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NETWORKS = ("resnet", "transformer", "recommender", "other_recommender", "lstm", "detector")
"""Those of `zoo`; the two recommenders differ in their weights alone."""

GROUP = ("recommender", "other_recommender")
"""The engines that are linked."""

BY_OPERATORS: Mapping[str, str] = {f"{name}_by_operators": name for name in NETWORKS}
"""The networks of a vendor's cases."""

AS_ENGINES: Mapping[str, Sequence[str]] = {
    **{f"{name}_as_engine": (name,) for name in NETWORKS if name not in GROUP},
    "recommenders_as_group": GROUP,
}
"""The networks of a library's cases: each one's engines have contexts at the same time."""


def networks_of(case: str) -> Sequence[str]:
    """The networks that a case needs, none if it is another case."""
    return (BY_OPERATORS[case],) if case in BY_OPERATORS else AS_ENGINES.get(case, ())
