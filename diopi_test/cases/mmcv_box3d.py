"""MMCV's operators on boxes in space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, anything, between, choice, normal, whole
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.model import ResultOf, Values
from diopi_test.cases.template import BASIC, CaseTemplate, TensorTemplate, Types, register, tensor

Array = NDArray[Any]

F64, INT32 = Dtype.float64, Dtype.int32

NEAR_EDGE = 0.05
"""Corners are farther than this from edges in the bird's-eye view, where MMCV takes nearer ones as touching."""

NEAR_THRESHOLD = 1e-3
"""Overlaps are farther than this from a threshold."""

NEAR_FACE = 0.02
"""Points are farther than this from the faces of boxes and, in sizes of a voxel, from those of voxels."""


def boxes(places: Domain, sizes: Domain, angles: Domain) -> Domain:
    """x, y, z, dx, dy, dz, rz."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        n = count // 7
        parts = [domain(rng, k * n, F64).reshape(n, k) for domain, k in ((places, 3), (sizes, 3), (angles, 1))]
        return np.concatenate(parts, -1).reshape(-1)

    return draw


ANGLES = between(-3.5, 3.5)
USUAL = boxes(between(0, 6), between(2, 7), ANGLES)
CROWDED = boxes(between(0, 14), between(3, 9), ANGLES)


# Bird's-eye view


def _corners(boxes: Array) -> Array:
    """The corners seen from above, (n, 4, 2)."""
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2
    sides = signs * boxes[:, np.newaxis, 3:5]
    cosine, sine = np.cos(boxes[:, 6:]), np.sin(boxes[:, 6:])
    turned = np.stack(
        [sides[..., 0] * cosine - sides[..., 1] * sine, sides[..., 0] * sine + sides[..., 1] * cosine], -1
    )
    return boxes[:, np.newaxis, :2] + turned


def _closest(ones: Array, others: Array) -> Array:
    """The least distance of a corner of each box from the edges of each other one, both ways: (n, m)."""

    def distances(points: Array, ends: Array) -> Array:
        starts = np.roll(ends, 1, 1)
        ways = (ends - starts)[np.newaxis, :, np.newaxis]
        away = points[:, np.newaxis, :, np.newaxis] - starts[np.newaxis, :, np.newaxis]
        along = np.clip((away * ways).sum(-1) / np.square(ways).sum(-1), 0, 1)
        return np.asarray(np.linalg.norm(away - along[..., np.newaxis] * ways, axis=-1).min((2, 3)))

    one, other = _corners(ones), _corners(others)
    return np.asarray(np.minimum(distances(one, other), distances(other, one).T))


def _first(count: int, candidates: int, is_good: Callable[[int, list[int]], bool]) -> list[int]:
    """The first candidates that are good beside those chosen before; ValueError if there are too few."""
    chosen: list[int] = []
    for one in range(candidates):
        if len(chosen) < count and is_good(one, chosen):
            chosen.append(one)
    if len(chosen) < count:
        raise ValueError(f"only {len(chosen)} of {candidates} candidates can be used, not {count}")
    return chosen


def _others_apart(count: int) -> Callable[[Values], Array]:
    """Computes boxes whose edges keep away from the corners of boxes_a, and theirs from its edges."""

    def compute(values: Values) -> Array:
        distances = _closest(values["_boxes"], values["boxes_a"]).min(-1, initial=np.inf)
        chosen = _first(count, len(distances), lambda one, chosen: distances[one] > NEAR_EDGE)
        return np.asarray(values["_boxes"][chosen])

    return compute


def seen_from_above(
    label: str, m: int = 5, n: int = 6, domain: Domain = USUAL, layout: Layout = contiguous, **about: Any
) -> CaseTemplate:
    """Boxes with others, whose corners keep away from their edges."""
    arguments = {
        "boxes_a": tensor(m, 7, domain=domain, layout=layout),
        "_boxes": tensor(12 * n, 7, domain=domain, dtype=F64),
        "boxes_b": tensor(n, 7, layout=layout, compute=_others_apart(n)),
    }
    return CaseTemplate(label, arguments=arguments, result=layout, **about)


def _nested(shortest: float) -> Domain:
    """Nearly square, and nearly around one centre in one direction."""
    return boxes(between(-0.05, 0.05), between(shortest, shortest + 0.3), between(0.3, 0.32))


def _beside(values: Values) -> Array:
    """Each box moved along its side by the length of this."""
    moved = np.array(values["boxes_a"])
    length, angle = moved[:, 3], moved[:, 6]
    moved[:, 0] += length * np.cos(angle)
    moved[:, 1] += length * np.sin(angle)
    return moved


TOUCHING: Mapping[str, Any] = {
    "boxes_a": tensor(6, 7, domain=boxes(between(0, 60), between(30, 60), ANGLES)),
    "boxes_b": tensor(6, 7, compute=_beside),
}
"""Boxes that have an edge in common with another one, but for rounding: nothing, or next to nothing, of their area."""

OVERLAPS = (
    seen_from_above("plain", **BASIC),
    seen_from_above("quarter-turns", 4, 5, boxes(between(0, 6), between(2, 7), choice([0.0, np.pi / 2, np.pi]))),
    seen_from_above("not-turned", 4, 5, boxes(between(0, 6), between(2, 7), choice([0.0])), dtypes=Types.every),
    seen_from_above("several-turns", 4, 5, boxes(between(0, 6), between(2, 7), between(-40, 40)), dtypes=Types.every),
    seen_from_above("strided", 4, 3, layout=strided, dtypes=Types.every),
    seen_from_above("transposed", 3, 4, layout=transposed),
    seen_from_above("slender", 4, 5, boxes(between(0, 6), choice([12.0, 0.75, 9.5, 0.5]), ANGLES)),
    seen_from_above("far", 4, 5, boxes(between(200, 210), between(4, 12), ANGLES), dtypes=Types.every),
    seen_from_above("apart", 7, 6, boxes(between(0, 30), between(4, 12), ANGLES)),
    seen_from_above("one-each", 1, 1, boxes(between(0, 1), between(3, 5), ANGLES)),
    seen_from_above("one-and-many", 1, 30),
    # hardly larger than what they have in common, which leaves little to rounding
    seen_from_above("nested", 2, 25, _nested(5.3), domains={"_boxes": _nested(4.7)}, dtypes=Types.every),
    CaseTemplate("touching", arguments=TOUCHING, dtypes=Types.every),
    seen_from_above("no-boxes", 0, 4),
    seen_from_above("no-others", 4, 0),
    seen_from_above("many", 20, 18, boxes(between(0, 60), between(6, 16), ANGLES)),
)

register("diopiIou3dBoxesOverlapBevMmcv", templates=OVERLAPS)


def _headed(values: Values) -> Array:
    return np.asarray(values["_boxes"])


def _level(values: Values) -> Array:
    """The candidates without their headings."""
    return np.concatenate([values["_boxes"][:, :6], np.zeros((len(values["_boxes"]), 1))], -1)


def _suppressible(count: int, threshold: float) -> Callable[[Values], Array]:
    """Computes boxes whose corners and edges keep apart, and their overlaps from the threshold."""

    def compute(values: Values) -> Array:
        areas, common = values["_boxes"][:, 3] * values["_boxes"][:, 4], values["_common"]
        ratios = common / (areas[:, np.newaxis] + areas - common)
        distances = _closest(values["_seen"], values["_seen"])

        def is_good(one: int, chosen: list[int]) -> bool:
            is_clear = np.abs(ratios[one, chosen] - threshold) > NEAR_THRESHOLD
            return bool(np.all(is_clear & (distances[one, chosen] > NEAR_EDGE)))

        return np.asarray(values["_boxes"][_first(count, len(areas), is_good)])

    return compute


def suppression(
    seen: Callable[[Values], Array],
    label: str,
    n: int = 12,
    threshold: float = 0.25,
    domain: Domain = CROWDED,
    layout: Layout = contiguous,
    **about: Any,
) -> CaseTemplate:
    """Boxes as they are `seen`: with their headings or without."""
    count = 8 * n
    overlaps = ResultOf("diopiIou3dBoxesOverlapBevMmcv", "ans_overlap", {"boxes_a": "_seen", "boxes_b": "_seen"})
    arguments = {
        "_boxes": tensor(count, 7, domain=domain, dtype=F64),
        "_seen": tensor(count, 7, dtype=F64, compute=seen),
        "_common": tensor(count, count, dtype=F64, compute=overlaps),
        "boxes": tensor(n, 7, layout=layout, compute=_suppressible(n, threshold)),
        "nms_overlap_thresh": threshold,
    }
    return CaseTemplate(label, arguments=arguments, result=layout, **about)


def suppressions(seen: Callable[[Values], Array]) -> list[CaseTemplate]:
    """The cases of a function that sees boxes so."""
    crowded, wide = between(0, 9), between(0, 30)
    return [
        suppression(seen, "plain", **BASIC),
        suppression(seen, "crowded", 7, 0.4, boxes(crowded, between(4, 9), ANGLES), **BASIC),
        suppression(seen, "tenth", 10, 0.1, dtypes=Types.every),
        suppression(seen, "low", 8, 0.02, boxes(wide, between(6, 16), ANGLES), dtypes=Types.every),
        suppression(seen, "high", 6, 0.6, boxes(between(0, 2), between(5, 12), between(-0.6, 0.6))),
        suppression(seen, "strided", 9, 0.3, layout=strided, dtypes=Types.every),
        suppression(seen, "transposed", 9, 0.2, layout=transposed),
        suppression(seen, "several-turns", 10, 0.25, boxes(between(0, 14), between(3, 9), between(-40, 40))),
        suppression(seen, "apart", 8, 0.5, boxes(between(0, 90), between(4, 9), ANGLES), weak="few boxes overlap"),
        suppression(seen, "small", 10, 0.15, boxes(between(0, 5), between(0.5, 2), ANGLES)),
        suppression(seen, "single", 1, weak="one box is kept, wherever it is"),
        suppression(seen, "none", 0),
        suppression(seen, "many", 30, 0.2, boxes(between(0, 50), between(5, 18), ANGLES)),
    ]


register("diopiIou3dNms3dMmcv", templates=suppressions(_headed))
register("diopiIou3dNms3dNormalMmcv", templates=suppressions(_level))


# Points in boxes


def lattice(low: int, high: int) -> Domain:
    """Sixteenths, which every element type holds if they are below eight."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        return rng.integers(16 * low, 16 * high, count, endpoint=True) / 16.0

    return draw


LATTICE = lattice(-3, 3)
NORMAL = normal()
ZEROS = whole(0, 0)
OF_POINTS = boxes(between(-2, 0), between(3, 6), ANGLES)
MIXED = boxes(between(-2, 0), choice([0.25, 4.0, 5.0]), ANGLES)
"""Boxes with and without points."""


def _places(points: Array, boxes: Array) -> Array:
    """Where points are in the boxes' axes, as parts of their sizes: inside they are from 0 to 1. (n, t, 3)."""
    away = points[:, np.newaxis] - boxes[:, :3]
    cosine, sine = np.cos(boxes[:, 6]), np.sin(boxes[:, 6])
    along, across = away[..., 0] * cosine + away[..., 1] * sine, away[..., 1] * cosine - away[..., 0] * sine
    return np.asarray(np.stack([along, across, away[..., 2]], -1) / boxes[:, 3:6] + np.array([0.5, 0.5, 0]))


def _off_faces(points: Array, boxes: Array, grid: tuple[int, ...] = (1, 1, 1)) -> Array:
    """The points that keep away from the faces of boxes, in all of which each is in a `grid` of voxels."""
    places = _places(points, boxes) * grid
    to_faces = np.abs(places - np.round(places))
    between_faces = (places > -0.5) & (places < np.array(grid) + 0.5)
    is_near = np.any((to_faces < NEAR_FACE) & between_faces, (1, 2))
    return np.asarray(points[~is_near])


def points_off_faces(count: int, boxes: str, grid: tuple[int, ...] = (1, 1, 1)) -> Callable[[Values], Array]:
    """Computes points that keep away from the faces of the boxes of their batch, or of the only one."""

    def compute(values: Values) -> Array:
        candidates, given = values["_points"], values[boxes]
        if given.ndim == 2:
            return _off_faces(candidates, given, grid)[:count]
        batches = [_off_faces(one, its, grid)[:count] for one, its in zip(candidates, given, strict=True)]
        return np.reshape(batches, (len(given), count, 3))

    return compute


def containment(
    label: str,
    batches: int = 2,
    t: int = 3,
    m: int = 10,
    domain: Domain = OF_POINTS,
    points: Domain = LATTICE,
    layout: Layout = contiguous,
    *,
    each: bool = False,
    **about: Any,
) -> CaseTemplate:
    """Points and boxes; what is found before the call, which is −1, or 0 for `each` box."""
    shape = (batches, m, t) if each else (batches, m)
    arguments = {
        "boxes": tensor(batches, t, 7, domain=domain, layout=layout),
        "_points": tensor(batches, 5 * m, 3, domain=points, dtype=F64),
        "pts": tensor(batches, m, 3, layout=layout, compute=points_off_faces(m, "boxes")),
        "box_idx_of_points": tensor(*shape, domain=choice([0 if each else -1]), dtype=INT32, layout=layout),
    }
    return CaseTemplate(label, arguments=arguments, **about)


def containments(each: bool) -> list[CaseTemplate]:
    """The cases of the first box, or of `each`."""
    cases: dict[str, tuple[tuple[Any, ...], Mapping[str, Any]]] = {
        "plain": ((), BASIC),
        "crowded": ((2, 6, 9, boxes(between(-2, 0), between(3, 6), ANGLES)), BASIC),
        "not-turned": ((2, 4, 12, boxes(between(-3, 2), between(3, 6), choice([0.0]))), {"dtypes": Types.every}),
        "quarter-turns": ((2, 4, 12, boxes(between(-3, 2), between(3, 6), choice([np.pi / 2, np.pi]))), {}),
        "several-turns": ((1, 4, 14, boxes(between(-3, 2), between(3, 6), between(-40, 40))), {}),
        "strided": ((2, 3, 8, OF_POINTS, LATTICE, strided), {"dtypes": Types.every}),
        "transposed": ((3, 3, 7, OF_POINTS, LATTICE, transposed), {"dtypes": Types.every}),
        "slender": ((1, 5, 20, boxes(between(-3, 2), choice([9.0, 1.5, 2.0]), ANGLES)), {}),
        "one-box": ((3, 1, 16, boxes(between(-2, -1), between(4, 6), ANGLES)), {}),
        "one-point": ((9, 4, 1, boxes(between(-2, -1), between(4, 6), ANGLES)), {}),
        "one-batch": ((1, 7, 30), {}),
        "many": ((3, 12, 150), {"dtypes": Types.every}),
        "no-boxes": ((2, 0, 5), {}),
        "no-points": ((2, 3, 0), {}),
    }
    return [containment(label, *sizes, each=each, **about) for label, (sizes, about) in cases.items()]


register("diopiPointsInBoxesPartMmcv", templates=containments(each=False))
register("diopiPointsInBoxesAllMmcv", templates=containments(each=True))


# Pooling of points


def pooling(
    label: str,
    n: int = 2,
    points: int = 25,
    channels: int = 3,
    grid: tuple[int, int, int] = (2, 3, 2),
    slots: int = 6,
    method: int = 0,
    *,
    backward: bool,
    domain: Domain = OF_POINTS,
    features: Domain = NORMAL,
    layout: Layout = contiguous,
    **about: Any,
) -> CaseTemplate:
    """Points in the voxels of boxes; for the gradient, the lists and positions that the forward function gives."""
    of_points, of_lists = (n, *grid, channels), (n, *grid, slots)
    drawn = {
        "_rois": tensor(n, 7, domain=domain),
        "_points": tensor(6 * points, 3, domain=LATTICE, dtype=F64),
        "_pts": tensor(points, 3, compute=points_off_faces(points, "_rois", grid)),
        "_features": tensor(points, channels, domain=features),
        "_argmax": tensor(*of_points, domain=ZEROS, dtype=INT32),
        "_lists": tensor(*of_lists, domain=ZEROS, dtype=INT32),
        "_pooled": tensor(*of_points, domain=ZEROS),
        "pool_method": method,
    }
    given = backward_pooling if backward else forward_pooling
    if method == 1 and not backward:
        about["weak"] = "argmax is not written for the mean"
    return CaseTemplate(label, arguments={**drawn, **given(points, of_points, of_lists, layout)}, **about)


def forward_pooling(
    points: int, of_points: tuple[int, ...], of_lists: tuple[int, ...], layout: Layout
) -> dict[str, TensorTemplate]:
    """What was drawn, and zeros to fill."""
    return {
        "rois": tensor(of_points[0], 7, layout=layout, compute=lambda values: values["_rois"]),
        "pts": tensor(points, 3, layout=layout, compute=lambda values: values["_pts"]),
        "pts_feature": tensor(points, of_points[-1], layout=layout, compute=lambda values: values["_features"]),
        "argmax": tensor(*of_points, domain=ZEROS, dtype=INT32, layout=layout),
        "pts_idx_of_voxels": tensor(*of_lists, domain=ZEROS, dtype=INT32, layout=layout),
        "pooled_features": tensor(*of_points, domain=ZEROS, layout=layout),
    }


FORWARD = {
    "argmax": "_argmax",
    "pts_idx_of_voxels": "_lists",
    "pooled_features": "_pooled",
    "rois": "_rois",
    "pts": "_pts",
    "pts_feature": "_features",
}
"""The names of the forward function's arguments."""


def backward_pooling(
    points: int, of_points: tuple[int, ...], of_lists: tuple[int, ...], layout: Layout
) -> dict[str, TensorTemplate]:
    """What the forward function gives, and a gradient."""

    def saved(name: str, shape: tuple[int, ...]) -> TensorTemplate:
        return tensor(*shape, dtype=INT32, layout=layout, compute=ResultOf("diopiRoiawarePool3dMmcv", name, FORWARD))

    return {
        "grad_in": tensor(points, of_points[-1], domain=ZEROS, layout=layout),
        "pts_idx_of_voxels": saved("pts_idx_of_voxels", of_lists),
        "argmax": saved("argmax", of_points),
        "grad_out": tensor(*of_points, layout=layout),
    }


def poolings(backward: bool) -> list[CaseTemplate]:
    """The cases of the function or of its gradient."""
    mean, everywhere = 1, {"dtypes": Types.every}
    dense = boxes(between(-2, -1), between(4, 6), ANGLES)
    cases: dict[str, dict[str, Any]] = {
        "maximum": dict(domain=dense, **BASIC),
        "mean": dict(method=mean, domain=dense, **BASIC),
        "maximum-crowded": dict(points=60, grid=(2, 2, 1), slots=5, domain=dense, **everywhere),
        "mean-crowded": dict(points=60, grid=(2, 2, 1), slots=5, method=mean, domain=dense, **everywhere),
        "one-voxel": dict(n=5, channels=9, points=40, grid=(1, 1, 1), slots=30, domain=dense),
        "one-voxel-mean": dict(n=3, grid=(1, 1, 1), slots=30, method=mean, domain=dense),
        "long-grid": dict(grid=(5, 1, 2), domain=dense),
        "tall-grid": dict(grid=(1, 1, 5), method=mean, domain=dense),
        "strided": dict(n=2, points=15, channels=2, domain=dense, layout=strided, **everywhere),
        "transposed": dict(n=3, points=15, channels=2, method=mean, domain=dense, layout=transposed, **everywhere),
        "equal-features": dict(points=30, domain=dense, features=choice([1.5, 0.5])),
        "one-channel": dict(n=4, channels=1, method=mean, domain=dense),
        "overlapping-boxes": dict(n=6, points=30, domain=dense, method=mean),
        "many": dict(n=3, points=200, channels=5, grid=(3, 3, 3), slots=9, domain=dense),
        "whole": dict(method=mean, domain=dense, features=choice([4.0, -8.0, 12.0]), grid=(2, 2, 1)),
        "no-boxes": dict(n=0),
    }
    return [pooling(label, backward=backward, **about) for label, about in cases.items()]


WHOLE: Mapping[str, Any] = {"domains": {"grad_out": whole(1, 8)}, "exact": True, "dtypes": Types.every}
"""Gradients whose sums are exact."""

MEANS: Mapping[str, Any] = {"features": choice([12.0, -24.0, 36.0, 48.0]), "exact": True, "dtypes": Types.every}
"""Features whose means of one to four are exact."""

register(
    "diopiRoiawarePool3dMmcv",
    templates=(
        *poolings(backward=False),
        pooling("exact", 3, domain=OF_POINTS, method=1, slots=5, backward=False, **MEANS),
    ),
)
register(
    "diopiRoiawarePool3dBackwardMmcv",
    templates=(*poolings(backward=True), pooling("exact", 3, domain=OF_POINTS, backward=True, **WHOLE)),
)


def sampling(
    label: str,
    batches: int = 2,
    m: int = 3,
    points: int = 16,
    channels: int = 2,
    samples: int = 5,
    domain: Domain = OF_POINTS,
    features: Domain = anything,
    layout: Layout = contiguous,
    **about: Any,
) -> CaseTemplate:
    """Points in boxes, so many samples of each; features are only moved."""
    arguments = {
        "boxes3d": tensor(batches, m, 7, domain=domain, layout=layout),
        "_points": tensor(batches, 5 * points, 3, domain=LATTICE, dtype=F64),
        "xyz": tensor(batches, points, 3, layout=layout, compute=points_off_faces(points, "boxes3d")),
        "pts_feature": tensor(batches, points, channels, domain=features, layout=layout),
        "pooled_features": tensor(batches, m, samples, 3 + channels, domain=ZEROS, layout=layout),
        "pooled_empty_flag": tensor(batches, m, domain=ZEROS, dtype=INT32, layout=layout),
    }
    return CaseTemplate(label, arguments=arguments, **about)


SAMPLINGS = (
    sampling("plain", **BASIC),
    sampling("small-boxes", 2, 7, 12, domain=MIXED, **BASIC),
    sampling("more-samples", samples=24, dtypes=Types.every),
    sampling("fewer-samples", 1, 3, 40, samples=2, dtypes=Types.every),
    sampling("one-sample", 1, 5, 20, samples=1),
    sampling("strided", 2, 3, 9, layout=strided, dtypes=Types.every),
    sampling("transposed", 3, 2, 8, layout=transposed, dtypes=Types.every),
    sampling("one-channel", channels=1),
    sampling("no-channels", channels=0),
    sampling("one-box", 3, 1, 12),
    sampling("one-batch", 1, 6, 18),
    sampling("many", 2, 12, 90, 4, 16, MIXED, dtypes=Types.every),
    sampling("no-boxes", m=0),
    sampling("no-batches", batches=0),
)

register("diopiRoipointPool3dMmcv", templates=SAMPLINGS)
