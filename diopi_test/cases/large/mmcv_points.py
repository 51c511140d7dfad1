"""Large cases of point sets: 20,000 points and more, and features of some thousand."""

from collections.abc import Mapping
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.layouts import strided
from diopi_test.cases.mmcv_points.assign_score import SCORE, scored
from diopi_test.cases.mmcv_points.grouping import CHOICE, gathered, interpolated, stacked_groups
from diopi_test.cases.mmcv_points.neighbours import BALL, NEAR, ball, nearest, stacked_ball, three_nearest
from diopi_test.cases.mmcv_points.sampling import SAMPLE, sampling
from diopi_test.cases.mmcv_points.sets import STACK
from diopi_test.cases.model import LARGE
from diopi_test.cases.template import CaseTemplate, DtypeSelection, register

F16 = (Dtype.float16,)


def derive_farthest_points(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of farthest point sampling without the distances of all pairs."""
    arguments = sampling(template, dtype)
    return {name: arguments[name] for name in ("temp_tensor", "points_xyz", "B", "N", "num_points")}


LEADING_ONLY: Mapping[str, Any] = {"dtypes": DtypeSelection.leading, "smoke": False}
QUERY = BALL.with_sizes("many-points", B=1, N=20_011, npoint=67, sample_num=33, max_radius=0.25).replace(**LEADING_ONLY)

register(
    "diopiBallQueryMmcv",
    templates=(QUERY, QUERY.with_sizes("half", B=3, N=7919, npoint=41).replace(dtypes=F16, layout=strided)),
    derive=ball,
    level=LARGE,
)
register(
    "diopiStackBallQueryMmcv",
    templates=(
        STACK.with_sizes("many-points", centers=(67, 41), points=(20_011, 3001), sample_num=33, max_radius=0.25),
    ),
    derive=stacked_ball,
    level=LARGE,
)
register(
    "diopiFurthestPointSamplingMmcv",
    templates=(SAMPLE.with_sizes("many-points", B=1, N=22_003, num_points=67),),
    derive=derive_farthest_points,
    level=LARGE,
)
register(
    "diopiFurthestPointSamplingWithDistMmcv",
    templates=(SAMPLE.with_sizes("many-distances", B=1, N=263, num_points=131),),
    derive=sampling,
    level=LARGE,
)
register(
    "diopiKnnMmcv",
    templates=(NEAR.with_sizes("many-points", b=1, points=22_003, centers=67, nsample=33),),
    derive=nearest,
    level=LARGE,
)
register(
    "diopiThreeNnMmcv",
    templates=(NEAR.with_sizes("many-points", b=1, points=22_003, centers=131),),
    derive=three_nearest,
    level=LARGE,
)

FEATURES = CHOICE.with_sizes("many-features", b=1, c=37, points=2053, shape=(1031,))

register(
    "diopiGatherPointsMmcv",
    "diopiGatherPointsBackwardMmcv",
    templates=(FEATURES, FEATURES.with_sizes("half", b=3).replace(dtypes=F16, layout=strided)),
    derive=gathered,
    level=LARGE,
)
register(
    "diopiGroupPointsMmcv",
    "diopiGroupPointsBackwardMmcv",
    templates=(FEATURES.with_sizes(shape=(131, 17)),),
    derive=gathered,
    level=LARGE,
)
register(
    "diopiThreeInterpolateMmcv",
    "diopiThreeInterpolateBackwardMmcv",
    templates=(FEATURES, FEATURES.with_sizes("half", b=3).replace(dtypes=F16, layout=strided)),
    derive=interpolated,
    level=LARGE,
)
register(
    "diopiStackGroupPointsMmcv",
    "diopiStackGroupPointsBackwardMmcv",
    templates=(STACK.with_sizes("many-features", centers=(67, 41), points=(1031, 517), channels=67, outside=True),),
    derive=stacked_groups,
    level=LARGE,
)
register(
    "diopiAssignScoreWithkMmcv",
    "diopiAssignScoreWithkBackwardMmcv",
    templates=(SCORE.with_sizes("many-features", B=1, N=263, npoint=131, M=8, K=7, out_dim=33, outside=3),),
    derive=scored,
    level=LARGE,
)
