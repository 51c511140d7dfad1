"""Cases of functions that find the neighbors of points within a radius, or the nearest neighbors.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A center is a point
whose neighbors the function finds.

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite. The leading element type is float32, or the first type of a function without float32. Large cases belong to a
level with the sizes of real models. `Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, log_uniform, normal
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.mmcv_points.sets import (
    CLOUD_COORDINATES,
    I32,
    LATTICE_COORDINATES,
    OTHER_SIZES_REASON,
    STACK_LEADING,
    STACK_SMOKE,
    StackedSets,
    attribute_arguments,
    draw_some_undefined,
)
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import literal, zeros


@dataclass(frozen=True, kw_only=True)
class BallSizes:
    """The sizes of a query for the points in balls, or in shells between two radii. A ball is around a center.

    Attributes:
        B: The number of sets.
        N: The number of points of a set.
        npoint: The number of centers of a set.
        sample_num: The number of points that the function finds per center.
        min_radius: The least distance of a point from the center.
        max_radius: The upper limit of the distance.
        points: The domain of the coordinates of points.
        centers: The domain of the coordinates of centers.
        has_points_as_centers: Whether the centers are the first points of the set.
    """

    B: int = 2
    N: int = 24
    npoint: int = 5
    sample_num: int = 4
    min_radius: float = 0.0
    max_radius: float = 1.25
    points: Domain = CLOUD_COORDINATES
    centers: Domain = CLOUD_COORDINATES
    has_points_as_centers: bool = False


def _first_points(values: Mapping[str, Any]) -> Any:
    """Return the first points of each set, as many as there are centers, for the argument `center_xyz`."""
    return values["xyz"][:, : values["_centers"].shape[1]]


def ball_arguments(template: CaseTemplate[BallSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiBallQueryMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to the result.
        dtype: Not used; coordinates have the type under test.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    centers = tensor(sizes.B, sizes.npoint, 3, domain=sizes.centers, layout=template.layout)
    point_centers = tensor(sizes.B, sizes.npoint, 3, layout=template.layout, compute=_first_points)
    return {
        "idx": zeros(sizes.B, sizes.npoint, sizes.sample_num, dtype=I32, layout=template.result_layout),
        "xyz": tensor(sizes.B, sizes.N, 3, domain=sizes.points, layout=template.layout),
        "_centers": centers,
        "center_xyz": point_centers if sizes.has_points_as_centers else centers,
        **attribute_arguments(sizes, "B", "N", "npoint", "sample_num", "min_radius", "max_radius"),
    }


BALL_SMOKE = CaseTemplate("ball", BallSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template of points within a radius: smoke cases in every element type."""

SHELL = BALL_SMOKE.with_sizes("shell", min_radius=0.75, max_radius=1.75).replace(smoke=False)
"""A template of points between two radii, in every element type."""

BALL_LEADING = BALL_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template of points within a radius, in the leading element type and without smoke cases."""

MANY_POINTS = BALL_LEADING.with_sizes("many-points", B=1, N=20_011, npoint=67, sample_num=33, max_radius=0.25).replace(
    large=True
)
"""A large template with many points."""

BALL_TEMPLATES = (
    BALL_SMOKE,
    SHELL,
    SHELL.with_sizes("around-own-points", has_points_as_centers=True),
    SHELL.with_sizes(
        "on-a-lattice", min_radius=2.0, max_radius=3.0, points=LATTICE_COORDINATES, centers=LATTICE_COORDINATES
    ),
    BALL_SMOKE.with_sizes(
        "on-a-lattice-wide", max_radius=3.0, N=40, sample_num=9, points=LATTICE_COORDINATES, centers=LATTICE_COORDINATES
    ).replace(smoke=False),
    BALL_LEADING.with_sizes("few-hits", max_radius=0.5, npoint=20),
    BALL_LEADING.with_sizes("no-hits", max_radius=0.0625, npoint=3),
    BALL_LEADING.with_sizes("one-sample", sample_num=1, B=1, N=40, npoint=12),
    BALL_LEADING.with_sizes("more-samples-than-points", sample_num=30, N=9),
    BALL_LEADING.with_sizes("one-point", N=1, npoint=16),
    BALL_LEADING.with_sizes("undefined-points", points=draw_some_undefined),
    BALL_LEADING.with_sizes("undefined-centers", centers=draw_some_undefined),
    BALL_LEADING.with_sizes("far-away", points=normal(mean=50.0), centers=normal(mean=50.0)),
    BALL_LEADING.replace("strided", **same_layout(strided)),
    SHELL.replace("transposed", dtypes=DtypeSelection.leading, layout=transposed, result_layout=strided),
    BALL_LEADING.with_sizes("three-sets", B=3, N=11, npoint=7).replace(layout=strided, result_layout=transposed),
    BALL_LEADING.with_sizes("long", N=1100, npoint=9, sample_num=33, max_radius=0.5),
    BALL_LEADING.with_sizes("no-centers", npoint=0),
    BALL_LEADING.with_sizes("no-points", N=0),
    BALL_LEADING.with_sizes("no-sets", B=0),
    MANY_POINTS,
    MANY_POINTS.with_sizes("half", B=3, N=7919, npoint=41).replace(dtypes=(Dtype.float16,), layout=strided),
)
"""The templates of `diopiBallQueryMmcv`."""

register(
    "diopiBallQueryMmcv",
    templates=BALL_TEMPLATES,
    derive=ball_arguments,
    non_discriminating={
        "no-hits|no-points": "a row without a point in range is not written",
        "one-point": "the only point has the index 0",
    },
)


def stacked_ball_arguments(template: CaseTemplate[StackedSets], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiStackBallQueryMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to the result.
        dtype: Not used; coordinates have the type under test.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    rows = sum(sizes.centers)
    return {
        "idx": zeros(rows, sizes.sample_num, dtype=I32, layout=template.result_layout),
        "center_xyz": tensor(rows, 3, domain=sizes.domain, layout=template.layout),
        "center_xyz_batch_cnt": literal(sizes.centers, I32),
        "xyz": tensor(sum(sizes.points), 3, domain=sizes.domain, layout=template.layout),
        "xyz_batch_cnt": literal(sizes.points, I32),
        **attribute_arguments(sizes, "sample_num", "max_radius"),
    }


STACKED_BALL_TEMPLATES = (
    STACK_SMOKE,
    STACK_SMOKE.with_sizes("on-a-lattice", max_radius=2.0, points=(30, 25), domain=LATTICE_COORDINATES).replace(
        smoke=False
    ),
    STACK_LEADING.with_sizes("other-sizes", centers=(4, 3), points=(11, 17)),
    STACK_LEADING.with_sizes("other-radius", max_radius=0.875),
    STACK_LEADING.with_sizes("one-set", centers=(7,), points=(28,)),
    STACK_LEADING.with_sizes("four-sets", centers=(2, 1, 5, 3), points=(9, 14, 3, 8), sample_num=5),
    STACK_LEADING.with_sizes("a-set-without-points", centers=(3, 4, 2), points=(12, 0, 15)),
    STACK_LEADING.with_sizes("a-set-without-centers", centers=(3, 0, 4), points=(12, 8, 15)),
    STACK_LEADING.with_sizes("few-hits", max_radius=0.5, centers=(12, 8)),
    STACK_LEADING.with_sizes("no-hits", max_radius=0.0625, sample_num=1),
    STACK_LEADING.with_sizes("one-sample", sample_num=1, centers=(9, 8)),
    STACK_LEADING.with_sizes("more-samples-than-points", sample_num=30),
    STACK_LEADING.with_sizes("undefined", domain=draw_some_undefined),
    STACK_LEADING.with_sizes("far-away", domain=normal(mean=50.0)),
    STACK_LEADING.replace("strided", **same_layout(strided)),
    STACK_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    STACK_LEADING.with_sizes("long", centers=(5, 6), points=(1100, 700), sample_num=33, max_radius=0.5),
    STACK_LEADING.with_sizes("no-centers", centers=(0, 0)),
    STACK_LEADING.with_sizes("no-points", points=(0, 0)),
    STACK_LEADING.with_sizes(
        "many-points", centers=(67, 41), points=(20_011, 3001), sample_num=33, max_radius=0.25
    ).replace(large=True),
)
"""The templates of `diopiStackBallQueryMmcv`."""

register(
    "diopiStackBallQueryMmcv",
    templates=STACKED_BALL_TEMPLATES,
    derive=stacked_ball_arguments,
    non_discriminating={
        "no-hits": "a row without a point in range begins with -1",
        "two-sets|other-radius|one-set": OTHER_SIZES_REASON,
    },
)

# Nearest points


@dataclass(frozen=True, kw_only=True)
class NearestSizes:
    """The sizes of a search for nearest points.

    Attributes:
        batch: The number of sets.
        points: The number of points of a set.
        centers: The number of centers of a set.
        nsample: The number of neighbors of a center; `diopiThreeNnMmcv` always finds three.
        domain: The domain of the coordinates.
    """

    batch: int = 2
    points: int = 17
    centers: int = 6
    nsample: int = 4
    domain: Domain = CLOUD_COORDINATES


def nearest_arguments(template: CaseTemplate[NearestSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiKnnMmcv` for the sizes of a template.

    The parameter `n` is the number of points here, and `m` the number of centers.

    Args:
        template: The template. Its layout applies to the coordinates.
        dtype: Not used; coordinates have the type under test.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    return {
        "xyz_tensor": tensor(sizes.batch, sizes.points, 3, domain=sizes.domain, layout=template.layout),
        "new_xyz_tensor": tensor(sizes.batch, sizes.centers, 3, domain=sizes.domain, layout=template.layout),
        "b": sizes.batch,
        "n": sizes.points,
        "m": sizes.centers,
        "nsample": sizes.nsample,
    }


def three_nearest_arguments(template: CaseTemplate[NearestSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiThreeNnMmcv` for the sizes of a template.

    The parameter `n` is the number of centers here, and `m` the number of points.

    Args:
        template: The template.
        dtype: Not used; coordinates have the type under test.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    return {
        "unknown": tensor(sizes.batch, sizes.centers, 3, domain=sizes.domain, layout=template.layout),
        "known": tensor(sizes.batch, sizes.points, 3, domain=sizes.domain, layout=template.layout),
        "b": sizes.batch,
        "n": sizes.centers,
        "m": sizes.points,
    }


NEAREST_SMOKE = CaseTemplate("points", NearestSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

NEAREST_LEADING = NEAREST_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

NEAREST_TEMPLATES = (
    NEAREST_SMOKE,
    NEAREST_SMOKE.with_sizes("on-a-lattice", points=40, centers=8, nsample=7, domain=LATTICE_COORDINATES).replace(
        exact=True, smoke=False
    ),
    NEAREST_LEADING.with_sizes("one-set", batch=1, points=30, centers=9, nsample=6),
    NEAREST_LEADING.with_sizes("four-sets", batch=4, points=7, centers=5, nsample=5),
    NEAREST_LEADING.with_sizes("one-neighbor", nsample=1, centers=12),
    NEAREST_LEADING.with_sizes("all-points", points=9, nsample=9),
    NEAREST_LEADING.with_sizes("one-point", points=1, nsample=3, centers=10),
    NEAREST_LEADING.with_sizes("two-points", points=2, nsample=3, centers=10),
    NEAREST_LEADING.with_sizes("one-center", centers=1, points=40, nsample=9),
    NEAREST_LEADING.with_sizes("far-away", domain=normal(mean=50.0)),
    NEAREST_LEADING.with_sizes("of-all-sizes", domain=log_uniform(-12, 12)),
    NEAREST_LEADING.replace("strided", **same_layout(strided)),
    NEAREST_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    NEAREST_LEADING.replace("transposed-results", layout=strided, result_layout=transposed),
    NEAREST_LEADING.with_sizes("long", batch=1, points=700, centers=11, nsample=33),
    NEAREST_LEADING.with_sizes("no-centers", centers=0),
    NEAREST_LEADING.with_sizes("no-points", points=0, nsample=3),
    NEAREST_LEADING.with_sizes("no-sets", batch=0),
)
"""The templates that `diopiThreeNnMmcv` and `diopiKnnMmcv` have, except for the large ones."""

LARGE_SET = NEAREST_LEADING.with_sizes("many-points", batch=1, points=22_003, centers=131).replace(large=True)
"""A large template with many points."""

KNN_TEMPLATES = (
    *NEAREST_TEMPLATES,
    NEAREST_LEADING.with_sizes("hundred", batch=1, points=130, centers=3, nsample=100),
    LARGE_SET.with_sizes(centers=67, nsample=33),
)
"""The templates of `diopiKnnMmcv`."""

ONE_NEIGHBOR_REASONS = {"one-point": "all centers have the same single neighbor"}
"""Why wrong results can pass the case with this label (`Case.non_discriminating`)."""

register("diopiKnnMmcv", templates=KNN_TEMPLATES, derive=nearest_arguments, non_discriminating=ONE_NEIGHBOR_REASONS)
register(
    "diopiThreeNnMmcv",
    templates=(*NEAREST_TEMPLATES, LARGE_SET),
    derive=three_nearest_arguments,
    non_discriminating=ONE_NEIGHBOR_REASONS,
)
