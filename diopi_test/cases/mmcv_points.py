"""MMCV's operators on point sets: neighbours, sampling, gathering and grouping, interpolation, PAConv scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, between, choice, half_nan, magnitudes, normal, whole
from diopi_test.cases.layouts import Layout, strided, transposed
from diopi_test.cases.model import TensorSpec
from diopi_test.cases.template import BASIC, CaseTemplate, Types, by_turns, register, tensor, throughout
from diopi_test.cases.tensors import arbitrary, literal, positions, zeros

I32, I64 = Dtype.int32, Dtype.int64

CLOUD = normal()
"""Coordinates as usual."""


def some_undefined(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Coordinates of which every seventh is NaN."""
    values = CLOUD(rng, count, dtype)
    values[::7] = np.nan
    return values


LATTICE = whole(-2, 2)
"""Coordinates of which many distances are equal, some of them 0, and all exact."""

LAYOUTS = (strided, transposed), (transposed, strided)


def attributes(sizes: Any, *names: str) -> dict[str, Any]:
    """The fields of some sizes that are arguments of the same names; of all if none is named."""
    return {field.name: getattr(sizes, field.name) for field in fields(sizes) if not names or field.name in names}


# Neighbours within a radius


@dataclass(frozen=True)
class Ball:
    """A query of balls, or of shells.

    Attributes:
        B, N, npoint, sample_num, min_radius, max_radius: as the function has them.
        points, centers: where the coordinates are drawn from.
        own: whether the centres are the first of the points.
    """

    B: int = 2
    N: int = 24
    npoint: int = 5
    sample_num: int = 4
    min_radius: float = 0.0
    max_radius: float = 1.25
    points: Domain = CLOUD
    centers: Domain = CLOUD
    own: bool = False


def _own_points(values: Mapping[str, Any]) -> Any:
    return values["xyz"][:, : values["_centers"].shape[1]]


def ball(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Ball = template.sizes
    centers = tensor(sizes.B, sizes.npoint, 3, domain=sizes.centers, layout=template.layout)
    own = tensor(sizes.B, sizes.npoint, 3, layout=template.layout, compute=_own_points)
    return {
        "idx": zeros(sizes.B, sizes.npoint, sizes.sample_num, dtype=I32, layout=template.result),
        "xyz": tensor(sizes.B, sizes.N, 3, domain=sizes.points, layout=template.layout),
        "_centers": centers,
        "center_xyz": own if sizes.own else centers,
        **attributes(sizes, "B", "N", "npoint", "sample_num", "min_radius", "max_radius"),
    }


BALL = CaseTemplate("ball", Ball(), **BASIC)
SHELL = BALL.but("shell", min_radius=0.75, max_radius=1.75, smoke=False)

BALLS = (
    BALL,
    SHELL,
    SHELL.but("around-own-points", own=True),
    SHELL.but("on-a-lattice", min_radius=2.0, max_radius=3.0, points=LATTICE, centers=LATTICE),
    BALL.but("on-a-lattice-wide", max_radius=3.0, N=40, sample_num=9, points=LATTICE, centers=LATTICE, smoke=False),
    BALL.but("few-hits", max_radius=0.5, npoint=20, dtypes=Types.leading, smoke=False),
    BALL.but("no-hits", max_radius=0.0625, npoint=3, dtypes=Types.leading, smoke=False),
    BALL.but("one-sample", sample_num=1, B=1, N=40, npoint=12, dtypes=Types.leading, smoke=False),
    BALL.but("more-samples-than-points", sample_num=30, N=9, dtypes=Types.leading, smoke=False),
    BALL.but("one-point", N=1, npoint=16, dtypes=Types.leading, smoke=False),
    BALL.but("undefined-points", points=some_undefined, dtypes=Types.leading, smoke=False),
    BALL.but("undefined-centres", centers=some_undefined, dtypes=Types.leading, smoke=False),
    BALL.but("far-away", points=normal(mean=50.0), centers=normal(mean=50.0), dtypes=Types.leading, smoke=False),
    BALL.but("strided", dtypes=Types.leading, smoke=False, **throughout(strided)),
    SHELL.but("transposed", dtypes=Types.leading, layout=transposed, result=strided),
    BALL.but("three-sets", B=3, N=11, npoint=7, dtypes=Types.leading, layout=strided, result=transposed, smoke=False),
    BALL.but("long", N=1100, npoint=9, sample_num=33, max_radius=0.5, dtypes=Types.leading, smoke=False),
    BALL.but("no-centres", npoint=0, dtypes=Types.leading, smoke=False),
    BALL.but("no-points", N=0, dtypes=Types.leading, smoke=False),
    BALL.but("no-sets", B=0, dtypes=Types.leading, smoke=False),
)

register(
    "diopiBallQueryMmcv",
    templates=BALLS,
    derive=ball,
    weak={"no-hits|no-points": "a row without a hit is not written", "one-point": "the one point has index 0"},
)


@dataclass(frozen=True)
class Stack:
    """Stacked sets: how many centres, or rows, and how many points each has."""

    centers: tuple[int, ...] = (3, 4)
    points: tuple[int, ...] = (17, 11)
    sample_num: int = 4
    max_radius: float = 1.25
    domain: Domain = CLOUD
    channels: int = 3
    outside: bool = False


def stacked_ball(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Stack = template.sizes
    rows = sum(sizes.centers)
    return {
        "idx": zeros(rows, sizes.sample_num, dtype=I32, layout=template.result),
        "center_xyz": tensor(rows, 3, domain=sizes.domain, layout=template.layout),
        "center_xyz_batch_cnt": literal(sizes.centers, I32),
        "xyz": tensor(sum(sizes.points), 3, domain=sizes.domain, layout=template.layout),
        "xyz_batch_cnt": literal(sizes.points, I32),
        **attributes(sizes, "sample_num", "max_radius"),
    }


STACKED = CaseTemplate("two-sets", Stack(), **BASIC)
STACK = STACKED.but(dtypes=Types.leading, smoke=False)

OTHER_SIZES = "sets of other sizes do not make up the rows"

STACKED_BALLS = (
    STACKED,
    STACKED.but("on-a-lattice", max_radius=2.0, points=(30, 25), domain=LATTICE, smoke=False),
    STACK.but("other-sizes", centers=(4, 3), points=(11, 17)),
    STACK.but("other-radius", max_radius=0.875),
    STACK.but("one-set", centers=(7,), points=(28,)),
    STACK.but("four-sets", centers=(2, 1, 5, 3), points=(9, 14, 3, 8), sample_num=5),
    STACK.but("a-set-without-points", centers=(3, 4, 2), points=(12, 0, 15)),
    STACK.but("a-set-without-centres", centers=(3, 0, 4), points=(12, 8, 15)),
    STACK.but("few-hits", max_radius=0.5, centers=(12, 8)),
    STACK.but("no-hits", max_radius=0.0625, sample_num=1),
    STACK.but("one-sample", sample_num=1, centers=(9, 8)),
    STACK.but("more-samples-than-points", sample_num=30),
    STACK.but("undefined", domain=some_undefined),
    STACK.but("far-away", domain=normal(mean=50.0)),
    STACK.but("strided", **throughout(strided)),
    STACK.but("transposed", layout=transposed, result=strided),
    STACK.but("long", centers=(5, 6), points=(1100, 700), sample_num=33, max_radius=0.5),
    STACK.but("no-centres", centers=(0, 0)),
    STACK.but("no-points", points=(0, 0)),
)

register(
    "diopiStackBallQueryMmcv",
    templates=STACKED_BALLS,
    derive=stacked_ball,
    weak={"no-hits": "a row without a hit has -1 in its first slot", "two-sets|other-radius|one-set": OTHER_SIZES},
)

# Points far from each other


@dataclass(frozen=True)
class Sampling:
    """Sizes of the points, and how many are chosen."""

    B: int = 2
    N: int = 24
    num_points: int = 8
    domain: Domain = CLOUD


def _far(shape: tuple[int, ...]) -> Any:
    return tensor(*shape, compute=lambda _: 1e10)


def _distances(values: Mapping[str, Any]) -> Any:
    """Distances of two sorts: there and back they are different."""
    points = values["_points"]
    return np.square(points[:, :, np.newaxis] - points[:, np.newaxis]).sum(-1) * values["_factors"]


def sampling(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Sampling = template.sizes
    points = tensor(sizes.B, sizes.N, 3, domain=sizes.domain, layout=template.layout)
    return {
        "temp_tensor": _far((sizes.B, sizes.N)),
        "points_xyz": points,
        "_points": points,
        "_factors": tensor(sizes.B, sizes.N, sizes.N, domain=whole(1, 3)),
        "points_dist": tensor(sizes.B, sizes.N, sizes.N, layout=template.layout, compute=_distances),
        **attributes(sizes, "B", "N", "num_points"),
    }


SAMPLED = CaseTemplate("points", Sampling(), **BASIC)
SAMPLE = SAMPLED.but(dtypes=Types.leading, smoke=False)

SAMPLINGS = (
    SAMPLED,
    SAMPLED.but("on-a-lattice", domain=LATTICE, N=30, num_points=12, smoke=False),
    SAMPLE.but("one-set", B=1, N=40, num_points=12),
    SAMPLE.but("four-sets", B=4, N=9, num_points=5),
    SAMPLE.but("all-points", N=11, num_points=11),
    SAMPLE.but("two", B=9, num_points=2),
    SAMPLE.but("one", num_points=1, B=3),
    SAMPLE.but("of-one-point", N=1, num_points=1),
    SAMPLE.but("far-away", domain=normal(mean=50.0)),
    SAMPLE.but("of-all-sizes", domain=magnitudes(-12, 12), N=30),
    SAMPLE.but("strided", layout=strided, result=strided),
    SAMPLE.but("transposed", layout=transposed, result=strided),
    SAMPLE.but("transposed-result", layout=strided, result=transposed),
    SAMPLE.but("long", B=1, N=600, num_points=70),
    SAMPLE.but("no-sets", B=0),
)

FIRST = {"one|of-one-point": "point 0 comes first, wherever it is"}

register(
    "diopiFurthestPointSamplingMmcv",
    "diopiFurthestPointSamplingWithDistMmcv",
    templates=SAMPLINGS,
    derive=sampling,
    weak=FIRST,
)

# Nearest points


@dataclass(frozen=True)
class Nearest:
    """Sizes of the points, of the centres, and how many neighbours each gets; the fourth is not for three."""

    b: int = 2
    points: int = 17
    centers: int = 6
    nsample: int = 4
    domain: Domain = CLOUD


def nearest(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Nearest = template.sizes
    return {
        "xyz_tensor": tensor(sizes.b, sizes.points, 3, domain=sizes.domain, layout=template.layout),
        "new_xyz_tensor": tensor(sizes.b, sizes.centers, 3, domain=sizes.domain, layout=template.layout),
        "b": sizes.b,
        "n": sizes.points,
        "m": sizes.centers,
        "nsample": sizes.nsample,
    }


def three_nearest(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Nearest = template.sizes
    return {
        "unknown": tensor(sizes.b, sizes.centers, 3, domain=sizes.domain, layout=template.layout),
        "known": tensor(sizes.b, sizes.points, 3, domain=sizes.domain, layout=template.layout),
        "b": sizes.b,
        "n": sizes.centers,
        "m": sizes.points,
    }


NEAREST = CaseTemplate("points", Nearest(), **BASIC)
NEAR = NEAREST.but(dtypes=Types.leading, smoke=False)

NEIGHBOURS = (
    NEAREST,
    NEAREST.but("on-a-lattice", points=40, centers=8, nsample=7, domain=LATTICE, exact=True, smoke=False),
    NEAR.but("one-set", b=1, points=30, centers=9, nsample=6),
    NEAR.but("four-sets", b=4, points=7, centers=5, nsample=5),
    NEAR.but("one-neighbour", nsample=1, centers=12),
    NEAR.but("all-points", points=9, nsample=9),
    NEAR.but("one-point", points=1, nsample=3, centers=10),
    NEAR.but("two-points", points=2, nsample=3, centers=10),
    NEAR.but("one-centre", centers=1, points=40, nsample=9),
    NEAR.but("far-away", domain=normal(mean=50.0)),
    NEAR.but("of-all-sizes", domain=magnitudes(-12, 12)),
    NEAR.but("strided", **throughout(strided)),
    NEAR.but("transposed", layout=transposed, result=strided),
    NEAR.but("transposed-results", layout=strided, result=transposed),
    NEAR.but("long", b=1, points=700, centers=11, nsample=33),
    NEAR.but("no-centres", centers=0),
    NEAR.but("no-points", points=0, nsample=3),
    NEAR.but("no-sets", b=0),
)

ALL_NEIGHBOURS = (*NEIGHBOURS, NEAR.but("hundred", b=1, points=130, centers=3, nsample=100))

FEW = {"one-point": "all centres have the one neighbour"}

register("diopiKnnMmcv", templates=ALL_NEIGHBOURS, derive=nearest, weak=FEW)
register("diopiThreeNnMmcv", templates=NEIGHBOURS, derive=three_nearest, weak=FEW)

# Features of chosen points


@dataclass(frozen=True)
class Chosen:
    """Features of points, and which are chosen.

    Attributes:
        b, c, points: sets, channels, points a set.
        shape: of the indices of a set.
        low, high: the least index, and the first that does not occur, if not the number of points.
    """

    b: int = 2
    c: int = 3
    points: int = 9
    shape: tuple[int, ...] = (7,)
    low: int = 0
    high: int = 0

    def indices(self, layout: Layout) -> TensorSpec:
        """The indices, some of them equal."""
        below = max(self.high or self.points, 1)
        return positions(self.b, *self.shape, low=self.low, below=below, dtype=I32, layout=layout)


def _features(template: CaseTemplate) -> dict[str, Any]:
    """What reading and adding to chosen points have in common."""
    sizes: Chosen = template.sizes
    features, layout = (sizes.b, sizes.c, sizes.points), template.layout
    return {
        "points": arbitrary(*features, layout=layout),
        "grad_points": zeros(*features, layout=template.result),
        "grad_out": tensor(sizes.b, sizes.c, *sizes.shape, layout=layout),
        "idx": sizes.indices(layout),
        "b": sizes.b,
        "c": sizes.c,
        "n": sizes.points,
    }


def gathered(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Chosen = template.sizes
    return {**_features(template), "npoints": sizes.shape[0], "nsample": sizes.shape[-1]}


def interpolated(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    """n and m change places in the gradient's list, not in their meaning."""
    sizes: Chosen = template.sizes
    three = template.but(shape=(*sizes.shape, 3))
    return {
        **_features(three),
        "points": tensor(sizes.b, sizes.c, sizes.points, layout=template.layout),
        "grad_out": tensor(sizes.b, sizes.c, *sizes.shape, layout=template.layout),
        "weight": tensor(sizes.b, *sizes.shape, 3, domain=between(-1, 1), layout=template.layout),
        "m": sizes.points,
        "n": sizes.shape[0],
    }


CHOSEN = CaseTemplate("points", Chosen(), **BASIC)
CHOICE = CHOSEN.but(dtypes=Types.leading, smoke=False)
SUMMANDS = dict.fromkeys(("grad_out", "weight", "points"), whole(-3, 3))


def choices(*shape: int) -> tuple[CaseTemplate, ...]:
    """Calls in which this many points are chosen of each set, most of them several times."""
    return (
        CHOSEN.but(shape=shape),
        CHOSEN.but("exact", shape=shape, points=4, domains=SUMMANDS, exact=True, smoke=False),
        *by_turns(
            (
                CHOSEN.but("few-of-many", shape=shape, points=40, smoke=False),
                CHOICE.but("one-set", b=1, c=5, shape=shape),
                CHOICE.but("four-sets", b=4, c=2, points=6, shape=shape),
                CHOICE.but("one-channel", c=1, shape=shape),
                CHOICE.but("many-channels", c=33, shape=shape),
            ),
            *LAYOUTS,
        ),
        CHOICE.but("one-point", points=1, shape=shape),
        CHOICE.but("always-the-same", low=3, high=4, shape=shape),
        CHOICE.but("never-the-first-nor-the-last", points=12, low=1, high=11, shape=shape),
        CHOICE.but("long", c=2, points=1100, shape=(515, *shape[1:])),
        CHOICE.but("long-sum", b=1, c=2, points=2, shape=(300, *shape[1:]), dtypes=half),
        CHOICE.but("none-chosen", shape=(0, *shape[1:])),
        CHOICE.but("no-channels", c=0, shape=shape),
        CHOICE.but("no-sets", b=0, shape=shape),
    )


GATHERED, GROUPED, THREE = choices(7), choices(4, 3), choices(5)
WHICH = {"one-point|always-the-same": "one point is chosen, wherever it lies"}

register("diopiGatherPointsMmcv", "diopiGatherPointsBackwardMmcv", templates=GATHERED, derive=gathered, weak=WHICH)
register("diopiGroupPointsMmcv", "diopiGroupPointsBackwardMmcv", templates=GROUPED, derive=gathered, weak=WHICH)
register(
    "diopiThreeInterpolateMmcv", "diopiThreeInterpolateBackwardMmcv", templates=THREE, derive=interpolated, weak=WHICH
)

# Groups of stacked sets


def _any_index(sizes: Stack) -> Domain:
    """Indices that every set has, or in part none has."""
    below = max(min((count for count in sizes.points if count), default=1), 1)
    return whole(-2, max(*sizes.points, 1) + 1) if sizes.outside else whole(0, below - 1)


def stacked_groups(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Stack = template.sizes
    rows, points, layout = sum(sizes.centers), sum(sizes.points), template.layout
    groups = (rows, sizes.channels, sizes.sample_num)
    return {
        "out_tensor": zeros(*groups, layout=template.result),
        "grad_features_tensor": zeros(points, sizes.channels, layout=template.result),
        "features_tensor": arbitrary(points, sizes.channels, layout=layout),
        "grad_out_tensor": tensor(*groups, layout=layout),
        "features_batch_cnt_tensor": literal(sizes.points, I32),
        "idx_tensor": tensor(rows, sizes.sample_num, domain=_any_index(sizes), dtype=I32, layout=layout),
        "idx_batch_cnt_tensor": literal(sizes.centers, I32),
        "b": len(sizes.points),
        "c": sizes.channels,
        "m": rows,
        "n": points,
        "nsample": sizes.sample_num,
    }


SUMS = {"grad_out_tensor": whole(-3, 3)}

STACKED_GROUPS = (
    STACKED.but(points=(7, 5)),
    STACKED.but("some-outside", points=(7, 5), outside=True, smoke=False),
    STACKED.but("exact", points=(3, 4), domains=SUMS, exact=True, smoke=False),
    STACK.but("other-sizes", centers=(4, 3), points=(5, 7)),
    STACK.but("one-set", centers=(7,), points=(12,)),
    STACK.but("four-sets", centers=(2, 1, 5, 3), points=(6, 9, 3, 8), sample_num=5, outside=True),
    STACK.but("a-set-without-points", centers=(3, 4, 2), points=(6, 0, 5), outside=True),
    STACK.but("a-set-without-rows", centers=(3, 0, 4), points=(6, 4, 5)),
    STACK.but("one-sample", sample_num=1, points=(6, 5)),
    STACK.but("one-channel", channels=1, points=(6, 5)),
    STACK.but("many-channels", channels=33, points=(6, 5)),
    STACK.but("strided", points=(6, 5), layout=strided, result=transposed),
    STACK.but("transposed", points=(6, 5), layout=transposed, result=strided),
    STACK.but("long", centers=(300, 280), points=(600, 515), outside=True),
    STACK.but("long-sum", centers=(100, 90), points=(2, 1), dtypes=half),
    STACK.but("no-rows", centers=(0, 0), points=(6, 5)),
    STACK.but("no-samples", sample_num=0, points=(6, 5)),
)

register(
    "diopiStackGroupPointsMmcv",
    "diopiStackGroupPointsBackwardMmcv",
    templates=STACKED_GROUPS,
    derive=stacked_groups,
    weak={"one-set|some-outside": OTHER_SIZES},
)

# PAConv


@dataclass(frozen=True)
class Scores:
    """Sizes as the function has them; `outside` is how far indices go beyond the points on both sides."""

    B: int = 2
    N: int = 5
    npoint: int = 3
    M: int = 2
    K: int = 4
    out_dim: int = 3
    aggregate: int = 0
    outside: int = 0

    def neighbours(self, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Random neighbours; the first of each group, which is the centre, is inside."""
        shape = (self.B, self.npoint, self.K)
        drawn = rng.integers(-self.outside, self.N + self.outside, shape)
        drawn[..., :1] = rng.integers(0, self.N, (*shape[:2], min(self.K, 1)))
        return drawn.reshape(-1)


def scored(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Scores = template.sizes
    features, result = (sizes.B, sizes.N, sizes.M, sizes.out_dim), (sizes.B, sizes.out_dim, sizes.npoint, sizes.K)
    scores, layout = (sizes.B, sizes.npoint, sizes.K, sizes.M), template.layout
    return {
        "output": zeros(*result, layout=template.result),
        "grad_points": zeros(*features, layout=template.result),
        "grad_centers": zeros(*features, layout=template.result),
        "grad_scores": zeros(*scores, layout=template.result),
        "grad_out": tensor(*result, layout=layout),
        "points": tensor(*features, layout=layout),
        "centers": tensor(*features, layout=layout),
        "scores": tensor(*scores, layout=layout),
        "knn_idx": tensor(*scores[:3], domain=sizes.neighbours, dtype=I64, layout=layout),
        **attributes(sizes, "B", "N", "npoint", "M", "K", "out_dim", "aggregate"),
    }


SCORED = CaseTemplate("scores", Scores(), **BASIC)
SCORE = SCORED.but(dtypes=Types.leading, smoke=False)
WHOLE = dict.fromkeys(("points", "centers", "scores", "grad_out"), whole(-3, 3))

GROWING = {"points": between(0.7, 0.74), "centers": choice([0.0]), "scores": choice([1.0])}
"""Sums that grow until half precision rounds what is added, always the same way."""

ASSIGNED = (
    SCORED,
    SCORED.but("some-outside", K=6, outside=2, smoke=False),
    SCORED.but("exact", domains=WHOLE, exact=True, smoke=False),
    SCORE.but("one-set", B=1, aggregate=1, N=7),
    SCORE.but("four-sets", B=4, N=3, out_dim=2, aggregate=2),
    SCORE.but("one-matrix", M=1, npoint=5),
    SCORE.but("many-matrices", M=17, npoint=2, K=2),
    SCORE.but("one-neighbour", K=1, npoint=5),
    SCORE.but("one-channel", out_dim=1),
    SCORE.but("one-group", npoint=1, K=7),
    SCORE.but("strided", layout=strided, result=transposed),
    SCORE.but("transposed", layout=transposed, result=strided),
    SCORE.but("undefined-scores", domains={"scores": half_nan}),
    SCORE.but("long", B=1, N=70, npoint=66, M=8, K=5, out_dim=17),
    SCORE.but("long-sum", B=1, N=2, npoint=60, M=33, K=9, out_dim=2, dtypes=half),
    SCORE.but("long-sum-of-matrices", B=1, N=2, npoint=3, M=300, K=2, out_dim=2, domains=GROWING, dtypes=half),
    SCORE.but("no-groups", npoint=0),
    SCORE.but("no-neighbours", K=0),
)

register(
    "diopiAssignScoreWithkMmcv",
    "diopiAssignScoreWithkBackwardMmcv",
    templates=ASSIGNED,
    derive=scored,
    weak={"long-sum-of-matrices": "all scores and centers are alike, so that the sum grows"},
)
