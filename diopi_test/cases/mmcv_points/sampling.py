"""Cases of furthest point sampling, which selects points that are far from each other.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). A case does not pass arguments whose names start
with `_`; it computes other arguments from them. Smoke cases belong to the shortest level of the suite. The leading
element type is float32, or the first type of a function without float32. Large cases belong to a level with the sizes
of real models. `Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, integer_values, log_uniform, normal
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.mmcv_points.sets import CLOUD_COORDINATES, LATTICE_COORDINATES, attribute_arguments
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor


@dataclass(frozen=True, kw_only=True)
class SamplingSizes:
    """The sizes of a furthest point sampling; B, N and num_points have the names of the parameters.

    Attributes:
        B: The number of sets.
        N: The number of points of a set.
        num_points: The number of points that the function selects per set.
        domain: The domain of the coordinates.
    """

    B: int = 2
    N: int = 24
    num_points: int = 8
    domain: Domain = CLOUD_COORDINATES


MAX_POINTS_WITH_DISTANCES = 1000
"""The largest size of sets for which a case has the distances of all pairs; larger sets would need too much memory."""


def _distances(values: Mapping[str, Any]) -> Any:
    """Return the argument `points_dist`: squared distances of all pairs, multiplied by the factors `_factors`.

    The factors differ between both directions of a pair, so that a function that exchanges the points of a pair fails.
    """
    points = values["_points"]
    return np.square(points[:, :, np.newaxis] - points[:, np.newaxis]).sum(-1) * values["_factors"]


def sampling_arguments(template: CaseTemplate[SamplingSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of both furthest point samplings for the sizes of a template.

    Args:
        template: The template. Its layout applies to coordinates and distances.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments by name, for both functions. Sets with more than `MAX_POINTS_WITH_DISTANCES` points have no
        distances.
    """
    sizes = template.sizes
    points = tensor(sizes.B, sizes.N, 3, domain=sizes.domain, layout=template.layout)
    pairs = {
        "_points": points,
        "_factors": tensor(sizes.B, sizes.N, sizes.N, domain=integer_values(1, 3)),
        "points_dist": tensor(sizes.B, sizes.N, sizes.N, layout=template.layout, compute=_distances),
    }
    return {
        "temp_tensor": tensor(sizes.B, sizes.N, compute=lambda _: 1e10),
        "points_xyz": points,
        **(pairs if sizes.N <= MAX_POINTS_WITH_DISTANCES else {}),
        **attribute_arguments(sizes, "B", "N", "num_points"),
    }


SAMPLE_SMOKE = CaseTemplate("points", SamplingSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

SAMPLE_LEADING = SAMPLE_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

SAMPLE_TEMPLATES = (
    SAMPLE_SMOKE,
    SAMPLE_SMOKE.with_sizes("on-a-lattice", domain=LATTICE_COORDINATES, N=30, num_points=12).replace(smoke=False),
    SAMPLE_LEADING.with_sizes("one-set", B=1, N=40, num_points=12),
    SAMPLE_LEADING.with_sizes("four-sets", B=4, N=9, num_points=5),
    SAMPLE_LEADING.with_sizes("all-points", N=11, num_points=11),
    SAMPLE_LEADING.with_sizes("two", B=9, num_points=2),
    SAMPLE_LEADING.with_sizes("one", num_points=1, B=3),
    SAMPLE_LEADING.with_sizes("of-one-point", N=1, num_points=1),
    SAMPLE_LEADING.with_sizes("far-away", domain=normal(mean=50.0)),
    SAMPLE_LEADING.with_sizes("of-all-sizes", domain=log_uniform(-12, 12), N=30),
    SAMPLE_LEADING.replace("strided", layout=strided, result_layout=strided),
    SAMPLE_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    SAMPLE_LEADING.replace("transposed-result", layout=strided, result_layout=transposed),
    SAMPLE_LEADING.with_sizes("long", B=1, N=600, num_points=70),
    SAMPLE_LEADING.with_sizes("no-sets", B=0),
)
"""The templates that both functions have."""

FIRST_POINT_REASONS = {"one|of-one-point": "the first chosen point is always point 0"}
"""Why wrong results can pass a case (`Case.non_discriminating`), by a regular expression for labels."""

LARGE_SETS = {
    "diopiFurthestPointSamplingMmcv": SAMPLE_LEADING.with_sizes("many-points", B=1, N=22_003, num_points=67),
    "diopiFurthestPointSamplingWithDistMmcv": SAMPLE_LEADING.with_sizes("many-distances", B=1, N=263, num_points=131),
}
"""By function name, the template that becomes the large template of this function."""

for function_name, template in LARGE_SETS.items():
    templates = (*SAMPLE_TEMPLATES, template.replace(large=True))
    register(function_name, templates=templates, derive=sampling_arguments, non_discriminating=FIRST_POINT_REASONS)
