"""Points far from each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, integer_values, log_uniform, normal
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.mmcv_points.sets import CLOUD, LATTICE, attributes
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The numbers of sets, of points and of chosen points, and the domain of the coordinates."""

    B: int = 2
    N: int = 24
    num_points: int = 8
    domain: Domain = CLOUD


MOST_PAIRED_POINTS = 1000
"""The largest size of sets whose distances are computed for all pairs; larger sets would need too much memory."""


def _distances(values: Mapping[str, Any]) -> Any:
    """Compute distances of all pairs that differ by direction."""
    points = values["_points"]
    return np.square(points[:, :, np.newaxis] - points[:, np.newaxis]).sum(-1) * values["_factors"]


def sampling_arguments(template: CaseTemplate[Sampling], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of the furthest point samplings from the sizes of a template."""
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
        **(pairs if sizes.N <= MOST_PAIRED_POINTS else {}),
        **attributes(sizes, "B", "N", "num_points"),
    }


SAMPLED = CaseTemplate("points", Sampling(), **SMOKE_IN_ALL_DTYPES)
SAMPLE = SAMPLED.replace(dtypes=DtypeSelection.leading, smoke=False)
"""The template in the leading element type only, without smoke cases."""

SAMPLINGS = (
    SAMPLED,
    SAMPLED.with_sizes("on-a-lattice", domain=LATTICE, N=30, num_points=12).replace(smoke=False),
    SAMPLE.with_sizes("one-set", B=1, N=40, num_points=12),
    SAMPLE.with_sizes("four-sets", B=4, N=9, num_points=5),
    SAMPLE.with_sizes("all-points", N=11, num_points=11),
    SAMPLE.with_sizes("two", B=9, num_points=2),
    SAMPLE.with_sizes("one", num_points=1, B=3),
    SAMPLE.with_sizes("of-one-point", N=1, num_points=1),
    SAMPLE.with_sizes("far-away", domain=normal(mean=50.0)),
    SAMPLE.with_sizes("of-all-sizes", domain=log_uniform(-12, 12), N=30),
    SAMPLE.replace("strided", layout=strided, result_layout=strided),
    SAMPLE.replace("transposed", layout=transposed, result_layout=strided),
    SAMPLE.replace("transposed-result", layout=strided, result_layout=transposed),
    SAMPLE.with_sizes("long", B=1, N=600, num_points=70),
    SAMPLE.with_sizes("no-sets", B=0),
)

FIRST_POINT_REASONS = {"one|of-one-point": "the first chosen point is always point 0"}

LARGE_SETS = {
    "diopiFurthestPointSamplingMmcv": SAMPLE.with_sizes("many-points", B=1, N=22_003, num_points=67),
    "diopiFurthestPointSamplingWithDistMmcv": SAMPLE.with_sizes("many-distances", B=1, N=263, num_points=131),
}
for function, template in LARGE_SETS.items():
    templates = (*SAMPLINGS, template.replace(large=True))
    register(function, templates=templates, derive=sampling_arguments, non_discriminating=FIRST_POINT_REASONS)
