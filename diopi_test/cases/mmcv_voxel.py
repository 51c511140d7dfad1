"""MMCV's voxels, reduction by voxel, and sparse convolution and pooling over pairs of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOf
from diopi_test.cases.domains import Domain, any_value, choice, half_nan, integer_values
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import literal, zeros

I32, F16, F32 = Dtype.int32, Dtype.float16, Dtype.float32
LEADING: Mapping[str, Any] = {"dtypes": DtypeSelection.leading, "smoke": False}

# Voxels


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Points in and around a grid.

    Attributes:
        points, features: The number of points, and the number of columns: x, y, z and features.
        low, size, cells: The start of the grid, the size of a cell, and the number of cells, in the order x, y, z.
        margin: The number of cells beyond the grid, on either side, in which points may lie.
        inner: The positions of points within a cell; they keep away from its faces where arithmetic is not exact.
        room, voxels: The maximum number of points per voxel, and of voxels.
        deterministic: The argument of the function.
    """

    points: int = 50
    features: int = 4
    low: tuple[float, float, float] = (-1.0, -2.0, 0.5)
    size: tuple[float, float, float] = (0.5, 0.25, 2.0)
    cells: tuple[int, int, int] = (4, 3, 2)
    margin: int = 1
    inner: tuple[float, ...] = (0.125, 0.25, 0.5, 0.75, 0.875)
    room: int = 2
    voxels: int = 14
    deterministic: bool = True

    def cells_along(self, axis: int) -> Domain:
        """Return a domain of cells along an axis, in which cells of the grid occur three times as often as others."""
        count = self.cells[axis]
        outside = (*range(-self.margin, 0), *range(count, count + self.margin))
        return choice((*range(count),) * 3 + outside)


def _points_in_cells(values: Mapping[str, Any]) -> Any:
    """Compute points in given cells, with features after x, y, z."""
    cells = np.hstack([values[axis] for axis in ("_x", "_y", "_z")])
    places = (cells + values["_fractions"]) * values["voxel_size"] + values["coors_range"][:3]
    return np.hstack([places, values["_features"]])


def voxel_arguments(template: CaseTemplate[Grid], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiHardVoxelizeMmcv` from the sizes of a template."""
    grid = template.sizes
    low, size, layout, result = np.array(grid.low), np.array(grid.size), template.layout, template.result_layout
    return {
        **{name: tensor(grid.points, 1, domain=grid.cells_along(axis)) for axis, name in enumerate(("_x", "_y", "_z"))},
        "_fractions": tensor(grid.points, 3, domain=choice(grid.inner)),
        "_features": tensor(grid.points, grid.features - 3, domain=any_value),
        "voxel_size": literal(size, F32, layout),
        "coors_range": literal(np.concatenate([low, low + size * grid.cells]), F32, layout),
        "points": tensor(grid.points, grid.features, layout=layout, compute=_points_in_cells),
        "voxels": zeros(grid.voxels, grid.room, grid.features, layout=result),
        "coors": zeros(grid.voxels, 3, dtype=I32, layout=result),
        "num_points_per_voxel": zeros(grid.voxels, dtype=I32, layout=result),
        "max_points": grid.room,
        "max_voxels": grid.voxels,
        "NDim": 3,
        "deterministic": grid.deterministic,
    }


def cell_arguments(template: CaseTemplate[Grid], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiDynamicVoxelizeMmcv` from the sizes of a template."""
    grid = template.sizes
    coordinates = zeros(grid.points, 3, dtype=I32, layout=template.result_layout)
    return {**voxel_arguments(template, dtype), "coors": coordinates}


VOXELIZED = CaseTemplate("points", Grid(), **SMOKE_IN_ALL_DTYPES)
VOXELIZE = VOXELIZED.replace(**LEADING)

POINTS = (
    VOXELIZED,
    VOXELIZED.with_sizes("on-faces", inner=(0.0, 0.5)).replace(smoke=False),
    VOXELIZE.replace("strided", **same_layout(strided)),
    VOXELIZE.replace("transposed", layout=transposed, result_layout=strided),
    VOXELIZE.replace("transposed-results", layout=strided, result_layout=transposed),
    VOXELIZE.with_sizes("coordinates-alone", features=3),
    VOXELIZE.with_sizes("many-features", features=17),
    VOXELIZE.with_sizes("one-cell", cells=(1, 1, 1), points=20, room=5),
    VOXELIZE.with_sizes("flat", cells=(5, 4, 1), low=(-40.0, -30.0, -3.0), size=(16.0, 15.0, 4.0)),
    VOXELIZE.with_sizes("tall", cells=(1, 2, 9), size=(4.0, 0.5, 0.125)),
    VOXELIZE.with_sizes("uneven-cells", low=(-0.7, 0.3, -1.9), size=(0.3, 0.7, 1.1)),
    VOXELIZE.with_sizes("far-away", low=(100.0, -300.0, 50.0)),
    VOXELIZE.with_sizes("all-inside", margin=0),
    VOXELIZE.with_sizes("far-outside", margin=5, points=200),
    VOXELIZE.with_sizes("one-point", points=1, voxels=3, margin=0),
    VOXELIZE.with_sizes("long", points=1100, cells=(9, 7, 5), voxels=250),
    VOXELIZE.with_sizes("none-inside", low=(9000.0, 0.0, 0.0), points=9).replace(arguments={"points": tensor(9, 4)}),
    VOXELIZE.with_sizes("no-points", points=0),
)
LIMITS = (
    VOXELIZE.with_sizes("all-voxels", voxels=30),
    VOXELIZE.with_sizes("few-voxels", voxels=5),
    VOXELIZE.with_sizes("one-voxel", voxels=1, room=4),
    VOXELIZE.with_sizes("one-point-a-voxel", room=1),
    VOXELIZE.with_sizes("room-for-all", room=50, voxels=30),
    VOXELIZE.with_sizes("few-cells", cells=(2, 1, 1), points=60, room=7),
    VOXELIZE.with_sizes("no-voxels", voxels=0),
)


def with_any_order(template: CaseTemplate[Grid]) -> CaseTemplate[Grid]:
    """Return the template with `deterministic` false, so that points may be taken in any order."""
    label = "in-any-order" if template.label == "points" else f"in-any-order-{template.label}"
    return template.with_sizes(label, deterministic=False)


NONE_INSIDE_REASONS = {"none-inside": "no point is in the grid"}
FEW_POINTS_REASONS = {
    "one-cell|in-any-order-one-cell": "the only cell is (0, 0, 0)",
    "one-point|in-any-order-one-point": "a single point gives one voxel with one point",
    "one-point-a-voxel|in-any-order-one-point-a-voxel": "every voxel has one point",
    "few-cells|in-any-order-few-cells": "two of three coordinates of each cell are 0",
    "no-voxels": "no voxel is created",
}

MANY_POINTS = VOXELIZE.with_sizes("many-points", points=100_003, cells=(41, 37, 13), room=7, voxels=12_007).replace(
    large=True
)
LARGE_POINTS = (
    MANY_POINTS,
    MANY_POINTS.with_sizes(
        "half-many-features", points=4099, features=67, cells=(7, 5, 3), room=53, voxels=101
    ).replace(dtypes=(F16,)),
)
ANY_ORDER = (*POINTS[:5], *POINTS[6:16], *LIMITS[:-1], MANY_POINTS.with_sizes(points=20_011).replace(layout=strided))

register(
    "diopiHardVoxelizeMmcv",
    templates=(*POINTS, *LIMITS, *LARGE_POINTS, *map(with_any_order, ANY_ORDER)),
    derive=voxel_arguments,
    non_discriminating={**NONE_INSIDE_REASONS, **FEW_POINTS_REASONS},
)
CELLS = (*POINTS, *LARGE_POINTS)
register("diopiDynamicVoxelizeMmcv", templates=CELLS, derive=cell_arguments, non_discriminating=NONE_INSIDE_REASONS)

# Reduction by voxel

SUM, MEAN, MAXIMUM = range(3)


@dataclass(frozen=True, kw_only=True)
class VoxelReduction:
    """Points with coordinates of voxels and with features, which the function reduces by voxel.

    Attributes:
        points, channels: the sizes of the features.
        grid: the sizes of the grid of voxels.
        outside: whether some points have negative coordinates, which means that they are in no voxel.
        reduce_type: the number of the reduction.
    """

    points: int = 30
    channels: int = 3
    grid: tuple[int, ...] = (2, 3, 2)
    outside: bool = True
    reduce_type: int = SUM

    def coordinates(self) -> Any:
        """Return the coordinates of the points.

        Some points share a voxel, and some have negative coordinates if `outside`.
        """
        rng = np.random.default_rng(self.points + len(self.grid))
        rows = rng.integers(0, self.grid, (self.points, len(self.grid)))
        if self.outside:
            rows[2::5] -= rng.permuted(np.eye(1, len(self.grid), dtype=int).repeat(len(rows[2::5]), 0), axis=1) * 2
            rows[4::11] = -1
        return rows

    def rows(self) -> int:
        """Return the number of different voxels with points."""
        return len({tuple(row) for row in self.coordinates().tolist() if min(row) >= 0})


def reduce_arguments(template: CaseTemplate[VoxelReduction], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiDynamicPointToVoxelMmcv` from the sizes of a template."""
    sizes = template.sizes
    return {
        "feats": tensor(sizes.points, sizes.channels, layout=template.layout),
        "coors": literal(sizes.coordinates(), I32, template.layout),
        "reduce_type": sizes.reduce_type,
    }


def reduce_backward_arguments(template: CaseTemplate[VoxelReduction], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiDynamicPointToVoxelBackwardMmcv` from the sizes of a template."""
    sizes = template.sizes
    inputs, rows, layout = reduce_arguments(template, dtype), sizes.rows(), template.layout

    def forward(result: str) -> ResultOf:
        return ResultOf("diopiDynamicPointToVoxelMmcv", result, argument_names={"coors": "_coors"})

    return {
        "feats": inputs["feats"],
        "_coors": inputs["coors"],
        "reduce_type": sizes.reduce_type,
        "reduced_feats": tensor(rows, sizes.channels, layout=layout, compute=forward("reduced_feats")),
        "coors_idx": tensor(sizes.points, dtype=I32, layout=layout, compute=forward("coors_map")),
        "reduce_count": tensor(rows, dtype=I32, layout=layout, compute=forward("reduce_count")),
        "grad_reduced_feats": tensor(rows, sizes.channels, layout=layout),
    }


SUMMANDS = {"feats": integer_values(-9, 9), "grad_reduced_feats": integer_values(-9, 9)}
SUMMED = CaseTemplate("sum", VoxelReduction(), **SMOKE_IN_ALL_DTYPES)
MEANS = SUMMED.with_sizes("mean", reduce_type=MEAN)
LARGEST = SUMMED.with_sizes("maximum", reduce_type=MAXIMUM).replace(domains=SUMMANDS, exact=True)
"""A reduction to the maximum, which many points of a voxel attain exactly."""


def varied_templates(template: CaseTemplate[VoxelReduction]) -> list[CaseTemplate[VoxelReduction]]:
    """Return the template for several layouts, sizes and numbers of points."""
    label, leading = template.label, template.replace(**LEADING)
    return [
        template,
        leading.with_sizes(f"{label}-all-inside", outside=False),
        leading.replace(f"{label}-strided", **same_layout(strided)),
        leading.replace(f"{label}-transposed", layout=transposed),
        leading.with_sizes(f"{label}-one-axis", grid=(9,)),
        leading.with_sizes(f"{label}-one-channel", channels=1),
        leading.with_sizes(f"{label}-many-channels", channels=33),
        leading.with_sizes(f"{label}-one-point", points=1),
        leading.with_sizes(f"{label}-no-points", points=0),
    ]


REDUCTIONS = (
    *varied_templates(SUMMED),
    *varied_templates(MEANS),
    *varied_templates(LARGEST),
    SUMMED.replace("exact", domains=SUMMANDS, exact=True, smoke=False),
    SUMMED.with_sizes("long", points=1100, grid=(7, 5, 4)).replace(**LEADING),
    MEANS.with_sizes("one-row", grid=(1, 1), outside=False).replace(**LEADING),
    MEANS.replace("undefined", domains={"feats": half_nan}, **LEADING),
    LARGEST.with_sizes("four-axes", grid=(2, 2, 3, 2), points=60).replace(**LEADING),
    SUMMED.with_sizes("sum", points=70_001, channels=5, grid=(13, 29, 31)).replace(**LEADING, large=True),
    MEANS.with_sizes("half-mean", points=20_011, channels=67, grid=(5, 7, 11)).replace(
        dtypes=(F16,), smoke=False, layout=strided, large=True
    ),
    LARGEST.with_sizes("maximum", points=70_001, channels=5, grid=(13, 29, 31)).replace(**LEADING, large=True),
)
NONE_KEPT = SUMMED.with_sizes("none-kept", points=5).replace(
    arguments={"coors": literal(np.full((5, 3), -1), I32)}, smoke=False
)

register(
    "diopiDynamicPointToVoxelMmcv",
    templates=(*REDUCTIONS, NONE_KEPT),
    derive=reduce_arguments,
    non_discriminating={"none-kept": "every point is outside of the grid"},
)
register(
    "diopiDynamicPointToVoxelBackwardMmcv",
    templates=REDUCTIONS,
    derive=reduce_backward_arguments,
    non_discriminating={"(sum|mean|maximum)-one-point|one-row": "there is only one row"},
)

# Sparse convolution


@dataclass(frozen=True, kw_only=True)
class Sparse:
    """The sizes of a sparse convolution or pooling.

    Attributes:
        rows, outputs: The numbers of rows of the features and of the result.
        ci, co: The numbers of input and output channels.
        kernel: The sizes of the kernel.
        pairs: The number of pairs that fit at a position of the kernel.
        inverse, submanifold: The arguments of the function.
    """

    rows: int = 7
    outputs: int = 5
    ci: int = 3
    co: int = 2
    kernel: tuple[int, ...] = (3, 2)
    pairs: int = 6
    inverse: int = 0
    submanifold: int = 0

    def indices(self) -> tuple[Any, Any]:
        """Compute pairs and their numbers; rows and results occur at most once per position, and −1 stands for none."""
        positions = int(np.prod(self.kernel))
        rng = np.random.default_rng(positions + self.rows + self.outputs)
        ends = (self.outputs, self.rows) if self.inverse else (self.rows, self.outputs)
        room = min(self.pairs, *ends)
        counts = rng.integers(0, room + 1, positions)
        if positions:
            counts[positions // 2] = room
        indices = np.full((positions, 2, self.pairs), -1)
        for position, count in enumerate(counts):
            for side, end in enumerate(ends):
                indices[position, side, :count] = rng.permutation(end)[:count]
        return indices, counts


def conv_arguments(template: CaseTemplate[Sparse], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of the sparse convolutions from the sizes of a template."""
    sizes = template.sizes
    (pairs, counts), layout = sizes.indices(), template.layout
    return {
        "features": tensor(sizes.rows, sizes.ci, layout=layout),
        "filters": tensor(*sizes.kernel, sizes.ci, sizes.co, layout=layout),
        "bias": tensor(sizes.co, layout=layout),
        "indicePairs": literal(pairs, I32, layout),
        "indiceNum": literal(counts, I32, layout),
        "numActOut": sizes.outputs,
        "_inverse": sizes.inverse,
        "_subM": sizes.submanifold,
    }


CONVOLVED = CaseTemplate("plain", Sparse(), **SMOKE_IN_ALL_DTYPES)
CONVOLVE = CONVOLVED.replace(**LEADING)
CUBE = CONVOLVE.with_sizes(kernel=(3, 3, 3)).replace(large=True)
WHOLE = dict.fromkeys(("features", "filters", "bias", "outGrad"), integer_values(-3, 3))

CONVOLUTIONS = (
    CONVOLVED,
    CONVOLVED.with_sizes("exact", rows=6, outputs=7).replace(domains=WHOLE, exact=True, smoke=False),
    CONVOLVED.with_sizes("submanifold", outputs=7, submanifold=1).replace(layout=strided, smoke=False),
    CONVOLVE.with_sizes("inverse", inverse=1),
    CONVOLVE.with_sizes("square", outputs=7, pairs=7),
    CONVOLVE.with_sizes("square-inverse", outputs=7, pairs=7, inverse=1),
    CONVOLVE.with_sizes("square-submanifold", outputs=7, pairs=7, submanifold=1),
    CONVOLVE.with_sizes("square-submanifold-inverse", outputs=7, pairs=7, submanifold=1, inverse=1),
    CONVOLVE.with_sizes("cube", kernel=(3, 3, 3), rows=20, outputs=17, pairs=11),
    CONVOLVE.with_sizes("cube-submanifold", kernel=(3, 3, 3), rows=20, outputs=20, pairs=11, submanifold=1),
    CONVOLVE.with_sizes("line", kernel=(5,)),
    CONVOLVE.with_sizes("one-position", kernel=(1, 1)),
    CONVOLVE.with_sizes("one-channel", ci=1, co=1),
    CONVOLVE.with_sizes("many-channels", ci=33, co=17),
    CONVOLVE.with_sizes("more-results", outputs=23),
    CONVOLVE.with_sizes("one-row", rows=1, outputs=4, pairs=2),
    CONVOLVE.with_sizes("one-result", rows=9, outputs=1, pairs=2, kernel=(3, 3)),
    CONVOLVE.with_sizes("undefined", rows=12, outputs=15, pairs=5, kernel=(1, 2)).replace(
        domains={"features": half_nan}
    ),
    CONVOLVE.replace("transposed", layout=transposed),
    CONVOLVE.with_sizes("long", rows=300, outputs=250, pairs=200, ci=8, co=5),
    CONVOLVE.with_sizes("long-sum", rows=9, outputs=3, pairs=3, ci=130, kernel=(5, 5)).replace(
        domains={"bias": integer_values(-900, 900)}, dtypes=half
    ),
    CONVOLVE.with_sizes("no-pairs", pairs=0),
    CONVOLVE.with_sizes("no-rows", rows=0),
    CONVOLVE.with_sizes("no-results", outputs=0),
    CUBE.with_sizes("cube", rows=4099, outputs=3001, pairs=2011, ci=17, co=13),
    CUBE.with_sizes("half-submanifold", rows=1031, outputs=1031, pairs=1031, ci=67, co=31, submanifold=1).replace(
        dtypes=(F16,), layout=strided
    ),
)


def conv_backward_arguments(template: CaseTemplate[Sparse], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiIndiceConvBackwardMmcv` from the sizes of a template."""
    sizes = template.sizes
    return {**conv_arguments(template, dtype), "outGrad": tensor(sizes.outputs, sizes.co, layout=template.layout)}


register("diopiIndiceConvMmcv", "diopiFusedIndiceConvBatchnormMmcv", templates=CONVOLUTIONS, derive=conv_arguments)
register("diopiIndiceConvBackwardMmcv", templates=CONVOLUTIONS, derive=conv_backward_arguments)

# Pooling


def pool_arguments(template: CaseTemplate[Sparse], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiIndiceMaxpoolMmcv` from the sizes of a template."""
    sizes = template.sizes
    (pairs, counts), layout = sizes.indices(), template.layout
    return {
        "features": tensor(sizes.rows, sizes.ci, layout=layout),
        "indicePairs": literal(pairs, I32, layout),
        "indiceNum": literal(counts, I32, layout),
        "numAct": sizes.outputs,
    }


def pool_backward_arguments(template: CaseTemplate[Sparse], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiIndiceMaxpoolBackwardMmcv` from the sizes of a template."""
    sizes = template.sizes
    rows, layout = (sizes.outputs, sizes.ci), template.layout
    forward = ResultOf("diopiIndiceMaxpoolMmcv", extra_arguments={"numAct": sizes.outputs})
    return {
        **pool_arguments(template, dtype),
        "outFeatures": tensor(*rows, layout=layout, compute=forward),
        "outGrad": tensor(*rows, layout=layout),
    }


def with_integers(template: CaseTemplate[Sparse]) -> CaseTemplate[Sparse]:
    """Return the template with integers, so that rounding does not affect which elements attain the maximum."""
    return template.replace(
        domains={"features": integer_values(-9, 25), "outGrad": integer_values(-9, 9), **template.domains}, exact=True
    )


POOLED = CONVOLVED.with_sizes("plain", kernel=(3, 3))
POOL = POOLED.replace(**LEADING)

POOLS = (
    POOLED,
    POOLED.with_sizes("exact", rows=6, outputs=7).replace(domains=WHOLE, exact=True, smoke=False, layout=strided),
    POOL.with_sizes("cube", kernel=(2, 2, 2), rows=20, outputs=9, pairs=9),
    POOL.with_sizes("cube-transposed", kernel=(2, 2, 2), rows=20, outputs=9, pairs=9).replace(layout=transposed),
    POOL.with_sizes("line", kernel=(5,)),
    POOL.with_sizes("one-position", kernel=(1,), pairs=5),
    POOL.with_sizes("one-channel", ci=1, rows=15, outputs=9, pairs=9),
    POOL.with_sizes("many-channels", ci=33),
    POOL.with_sizes("more-results", outputs=13, pairs=7),
    POOL.with_sizes("one-row", rows=1, outputs=4, pairs=2, ci=9),
    POOL.with_sizes("one-result", rows=3, outputs=1, pairs=2, ci=9),
    POOL.with_sizes("many-equal", rows=9).replace(domains={"features": integer_values(-1, 1)}),
    POOL.with_sizes("long", rows=300, outputs=250, pairs=200, ci=8),
    POOL.with_sizes("no-pairs", pairs=0),
    POOL.with_sizes("no-rows", rows=0),
    POOL.with_sizes("no-results", outputs=0),
    CUBE.with_sizes("cube", rows=5003, outputs=3001, pairs=2011, ci=17),
    CUBE.with_sizes("half-wide", rows=1031, outputs=523, pairs=401, ci=131).replace(dtypes=(F16,), layout=strided),
)

register("diopiIndiceMaxpoolMmcv", templates=POOLS, derive=pool_arguments)
GRADIENT_POOLS = [with_integers(pool) for pool in POOLS]
register("diopiIndiceMaxpoolBackwardMmcv", templates=GRADIENT_POOLS, derive=pool_backward_arguments)
