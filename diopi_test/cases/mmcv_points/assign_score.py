"""PAConv: features weighted by scores."""

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
from diopi_test.cases.mmcv_points.sets import I64, attributes
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The sizes of a call by parameter name; `outside` is how far indices go beyond the points on both sides."""

    B: int = 2
    N: int = 5
    npoint: int = 3
    M: int = 2
    K: int = 4
    out_dim: int = 3
    aggregate: int = 0
    outside: int = 0

    def neighbours(self, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Draw neighbours; the first of each group, which is the centre, is inside."""
        shape = (self.B, self.npoint, self.K)
        indices = rng.integers(-self.outside, self.N + self.outside, shape)
        indices[..., :1] = rng.integers(0, self.N, (*shape[:2], min(self.K, 1)))
        return indices.reshape(-1)


def score_arguments(template: CaseTemplate[Scores], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiAssignScoreWithkMmcv` and its gradient from the sizes of a template."""
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
        "knn_idx": tensor(*scores[:3], domain=sizes.neighbours, dtype=I64, layout=layout),
        **attributes(sizes, "B", "N", "npoint", "M", "K", "out_dim", "aggregate"),
    }


SCORED = CaseTemplate("scores", Scores(), **SMOKE_IN_ALL_DTYPES)
SCORE = SCORED.replace(dtypes=DtypeSelection.leading, smoke=False)
"""The template in the leading element type only, without smoke cases."""

WHOLE = dict.fromkeys(("points", "centers", "scores", "grad_out"), integer_values(-3, 3))
"""Small integers, whose sums of products are exact."""

GROWING = {"points": uniform(0.7, 0.74), "centers": choice([0.0]), "scores": choice([1.0])}
"""Numbers whose running sum grows until half precision rounds every summand in the same direction."""

ASSIGNED = (
    SCORED,
    SCORED.with_sizes("some-outside", K=6, outside=2).replace(smoke=False),
    SCORED.replace("exact", domains=WHOLE, exact=True, smoke=False),
    SCORE.with_sizes("one-set", B=1, aggregate=1, N=7),
    SCORE.with_sizes("four-sets", B=4, N=3, out_dim=2, aggregate=2),
    SCORE.with_sizes("one-matrix", M=1, npoint=5),
    SCORE.with_sizes("many-matrices", M=17, npoint=2, K=2),
    SCORE.with_sizes("one-neighbour", K=1, npoint=5),
    SCORE.with_sizes("one-channel", out_dim=1),
    SCORE.with_sizes("one-group", npoint=1, K=7),
    SCORE.replace("strided", layout=strided, result_layout=transposed),
    SCORE.replace("transposed", layout=transposed, result_layout=strided),
    SCORE.replace("undefined-scores", domains={"scores": half_nan}),
    SCORE.with_sizes("long", B=1, N=70, npoint=66, M=8, K=5, out_dim=17),
    SCORE.with_sizes("long-sum", B=1, N=2, npoint=60, M=33, K=9, out_dim=2).replace(dtypes=half),
    SCORE.with_sizes("long-sum-of-matrices", B=1, N=2, npoint=3, M=300, K=2, out_dim=2).replace(
        domains=GROWING, dtypes=half
    ),
    SCORE.with_sizes("no-groups", npoint=0),
    SCORE.with_sizes("no-neighbours", K=0),
    SCORE.with_sizes("many-features", B=1, N=263, npoint=131, M=8, K=7, out_dim=33, outside=3).replace(large=True),
)

register(
    "diopiAssignScoreWithkMmcv",
    "diopiAssignScoreWithkBackwardMmcv",
    templates=ASSIGNED,
    derive=score_arguments,
    non_discriminating={"long-sum-of-matrices": "all scores and centers are equal, so that the sum becomes large"},
)
