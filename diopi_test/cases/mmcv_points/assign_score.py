"""Cases of `diopiAssignScoreWithkMmcv` (PAConv), which weights features of points by scores, and of its gradient.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite. The leading element type is float32, or the first type of a function without float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import choice, half_nan, integer_values, uniform
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.mmcv_points.sets import I64, attribute_arguments
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True, kw_only=True)
class ScoreSizes:
    """The sizes of a call; the fields have the names of the parameters.

    Attributes:
        B: The number of point sets.
        N: The number of points of a set.
        npoint: The number of selected points, which have neighbors.
        M: The number of weight matrices, which is the number of scores of a neighbor.
        K: The number of neighbors of a selected point.
        out_dim: The number of features of a point per weight matrix.
        aggregate: The number of the aggregation; it does not affect the result.
        overshoot: The indices of neighbors reach from −overshoot to N + overshoot − 1. Only 0 to N − 1 are valid.
    """

    B: int = 2
    N: int = 5
    npoint: int = 3
    M: int = 2
    K: int = 4
    out_dim: int = 3
    aggregate: int = 0
    overshoot: int = 0

    def draw_neighbor_indices(self, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Return random indices of the K neighbors of each selected point, a domain.

        The first index of each point, which is the center, is always valid.

        Args:
            rng: The random generator.
            count: Not used; the fields determine the number of indices.
            dtype: Not used.

        Returns:
            A vector of indices.
        """
        shape = (self.B, self.npoint, self.K)
        indices = rng.integers(-self.overshoot, self.N + self.overshoot, shape)
        indices[..., :1] = rng.integers(0, self.N, (*shape[:2], min(self.K, 1)))
        return indices.reshape(-1)


def score_arguments(template: CaseTemplate[ScoreSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiAssignScoreWithkMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to results.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    features, result = (sizes.B, sizes.N, sizes.M, sizes.out_dim), (sizes.B, sizes.out_dim, sizes.npoint, sizes.K)
    scores, layout = (sizes.B, sizes.npoint, sizes.K, sizes.M), template.layout
    return {
        "output": zeros(*result, layout=template.result_layout),
        "grad_points": zeros(*features, layout=template.result_layout),
        "grad_centers": zeros(*features, layout=template.result_layout),
        "grad_scores": zeros(*scores, layout=template.result_layout),
        "grad_out": tensor(*result, layout=layout),
        "points": tensor(*features, layout=layout),
        "centers": tensor(*features, layout=layout),
        "scores": tensor(*scores, layout=layout),
        "knn_idx": tensor(*scores[:3], domain=sizes.draw_neighbor_indices, dtype=I64, layout=layout),
        **attribute_arguments(sizes, "B", "N", "npoint", "M", "K", "out_dim", "aggregate"),
    }


SCORES_SMOKE = CaseTemplate("scores", ScoreSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

SCORES_LEADING = SCORES_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

SMALL_INTEGERS = dict.fromkeys(("points", "centers", "scores", "grad_out"), integer_values(-3, 3))
"""Domains by argument name: small integers, whose sums of products are exact."""

GROWING_SUM_DOMAINS = {"points": uniform(0.7, 0.74), "centers": choice([0.0]), "scores": choice([1.0])}
"""Domains by argument name: numbers whose running sum grows until half precision rounds each term in one direction."""

SCORE_TEMPLATES = (
    SCORES_SMOKE,
    SCORES_SMOKE.with_sizes("some-outside", K=6, overshoot=2).replace(smoke=False),
    SCORES_SMOKE.replace("exact", domains=SMALL_INTEGERS, exact=True, smoke=False),
    SCORES_LEADING.with_sizes("one-set", B=1, aggregate=1, N=7),
    SCORES_LEADING.with_sizes("four-sets", B=4, N=3, out_dim=2, aggregate=2),
    SCORES_LEADING.with_sizes("one-matrix", M=1, npoint=5),
    SCORES_LEADING.with_sizes("many-matrices", M=17, npoint=2, K=2),
    SCORES_LEADING.with_sizes("one-neighbor", K=1, npoint=5),
    SCORES_LEADING.with_sizes("one-channel", out_dim=1),
    SCORES_LEADING.with_sizes("one-group", npoint=1, K=7),
    SCORES_LEADING.replace("strided", layout=strided, result_layout=transposed),
    SCORES_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    SCORES_LEADING.replace("undefined-scores", domains={"scores": half_nan}),
    SCORES_LEADING.with_sizes("long", B=1, N=70, npoint=66, M=8, K=5, out_dim=17),
    SCORES_LEADING.with_sizes("long-sum", B=1, N=2, npoint=60, M=33, K=9, out_dim=2).replace(dtypes=half),
    SCORES_LEADING.with_sizes("long-sum-of-matrices", B=1, N=2, npoint=3, M=300, K=2, out_dim=2).replace(
        domains=GROWING_SUM_DOMAINS, dtypes=half
    ),
    SCORES_LEADING.with_sizes("no-groups", npoint=0),
    SCORES_LEADING.with_sizes("no-neighbors", K=0),
    SCORES_LEADING.with_sizes("many-features", B=1, N=263, npoint=131, M=8, K=7, out_dim=33, overshoot=3).replace(
        large=True
    ),
)
"""The templates of `diopiAssignScoreWithkMmcv` and of its gradient."""

register(
    "diopiAssignScoreWithkMmcv",
    "diopiAssignScoreWithkBackwardMmcv",
    templates=SCORE_TEMPLATES,
    derive=score_arguments,
    non_discriminating={"long-sum-of-matrices": "all scores and centers are equal, so that the sum becomes large"},
)
