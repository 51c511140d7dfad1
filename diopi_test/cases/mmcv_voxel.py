"""Cases of MMCV's voxels: voxelization of points, reduction by voxel, and sparse convolution and pooling.

A voxel is a cell of a grid in space that contains points. A template describes cases that differ only in their element
type (`diopi_test.cases.template`).

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

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOf
from diopi_test.cases.domains import Domain, any_value, choice, half_nan, integer_values, uniform
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import literal, zeros

I32, F16, F32 = Dtype.int32, Dtype.float16, Dtype.float32
"""Short names for element types."""

LEADING: Mapping[str, Any] = {"dtypes": DtypeSelection.leading, "smoke": False}
"""The fields of templates in the leading element type and without smoke cases."""

# Voxels


@dataclass(frozen=True, kw_only=True)
class VoxelGrid:
    """The sizes of a call that assigns points in and around a grid to voxels.

    Attributes:
        points: The number of points.
        features: The number of columns of a point: x, y, z and further features.
        start: The coordinates (x, y, z) at which the grid starts.
        cell_size: The size of a cell along x, y and z.
        cells: The number of cells along x, y and z.
        margin: The number of cells beyond the grid, on either side, in which points may lie.
        cell_fractions: The positions of points within a cell, as fractions of its size. They are not near the faces of
            the cell, unless rounding cannot move a point to another cell.
        max_points: The maximum number of points per voxel.
        max_voxels: The maximum number of voxels.
        deterministic: The argument of this name; false allows any order of points.
    """

    points: int = 50
    features: int = 4
    start: tuple[float, float, float] = (-1.0, -2.0, 0.5)
    cell_size: tuple[float, float, float] = (0.5, 0.25, 2.0)
    cells: tuple[int, int, int] = (4, 3, 2)
    margin: int = 1
    cell_fractions: tuple[float, ...] = (0.125, 0.25, 0.5, 0.75, 0.875)
    max_points: int = 2
    max_voxels: int = 14
    deterministic: bool = True

    def cells_along(self, axis: int) -> Domain:
        """Return a domain of cell numbers along an axis.

        Args:
            axis: The axis: 0, 1 or 2 for x, y or z.

        Returns:
            The domain. Cells of the grid occur three times as often as cells in the margin.
        """
        count = self.cells[axis]
        has_outside_points = (*range(-self.margin, 0), *range(count, count + self.margin))
        return choice((*range(count),) * 3 + has_outside_points)


def _points_in_cells(values: Mapping[str, Any]) -> Any:
    """Return points (x, y, z, features) in the cells with the numbers `_x`, `_y` and `_z`.

    Args:
        values: The values of earlier arguments. `_fractions` contains the positions within the cells.

    Returns:
        An array with a row per point.
    """
    cells = np.hstack([values[axis] for axis in ("_x", "_y", "_z")])
    positions = (cells + values["_fractions"]) * values["voxel_size"] + values["coors_range"][:3]
    return np.hstack([positions, values["_features"]])


def voxel_arguments(template: CaseTemplate[VoxelGrid], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiHardVoxelizeMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to results.
        dtype: Not used; points and voxels have the type under test.

    Returns:
        The arguments by name.
    """
    grid = template.sizes
    start, cell_size, layout, result = (
        np.array(grid.start),
        np.array(grid.cell_size),
        template.layout,
        template.result_layout,
    )
    return {
        **{name: tensor(grid.points, 1, domain=grid.cells_along(axis)) for axis, name in enumerate(("_x", "_y", "_z"))},
        "_fractions": tensor(grid.points, 3, domain=choice(grid.cell_fractions)),
        "_features": tensor(grid.points, grid.features - 3, domain=any_value),
        "voxel_size": literal(cell_size, F32, layout),
        "coors_range": literal(np.concatenate([start, start + cell_size * grid.cells]), F32, layout),
        "points": tensor(grid.points, grid.features, layout=layout, compute=_points_in_cells),
        "voxels": zeros(grid.max_voxels, grid.max_points, grid.features, layout=result),
        "coors": zeros(grid.max_voxels, 3, dtype=I32, layout=result),
        "num_points_per_voxel": zeros(grid.max_voxels, dtype=I32, layout=result),
        "max_points": grid.max_points,
        "max_voxels": grid.max_voxels,
        "NDim": 3,
        "deterministic": grid.deterministic,
    }


def cell_arguments(template: CaseTemplate[VoxelGrid], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiDynamicVoxelizeMmcv`, which computes the cell of each point.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to the result.
        dtype: Not used; points have the type under test.

    Returns:
        The arguments by name, with those that only `diopiHardVoxelizeMmcv` has.
    """
    grid = template.sizes
    coordinates = zeros(grid.points, 3, dtype=I32, layout=template.result_layout)
    return {**voxel_arguments(template, dtype), "coors": coordinates}


VOXELS_SMOKE = CaseTemplate("points", VoxelGrid(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

VOXELS_LEADING = VOXELS_SMOKE.replace(**LEADING)
"""A template with the default sizes, in the leading element type and without smoke cases."""

VOXEL_TEMPLATES = (
    VOXELS_SMOKE,
    VOXELS_SMOKE.with_sizes("on-faces", cell_fractions=(0.0, 0.5)).replace(smoke=False),
    VOXELS_LEADING.replace("strided", **same_layout(strided)),
    VOXELS_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    VOXELS_LEADING.replace("transposed-results", layout=strided, result_layout=transposed),
    VOXELS_LEADING.with_sizes("coordinates-alone", features=3),
    VOXELS_LEADING.with_sizes("many-features", features=17),
    VOXELS_LEADING.with_sizes("one-cell", cells=(1, 1, 1), points=20, max_points=5),
    VOXELS_LEADING.with_sizes("flat", cells=(5, 4, 1), start=(-40.0, -30.0, -3.0), cell_size=(16.0, 15.0, 4.0)),
    VOXELS_LEADING.with_sizes("tall", cells=(1, 2, 9), cell_size=(4.0, 0.5, 0.125)),
    VOXELS_LEADING.with_sizes("uneven-cells", start=(-0.7, 0.3, -1.9), cell_size=(0.3, 0.7, 1.1)),
    VOXELS_LEADING.with_sizes("far-away", start=(100.0, -300.0, 50.0)),
    VOXELS_LEADING.with_sizes("all-inside", margin=0),
    VOXELS_LEADING.with_sizes("far-outside", margin=5, points=200),
    VOXELS_LEADING.with_sizes("one-point", points=1, max_voxels=3, margin=0),
    VOXELS_LEADING.with_sizes("long", points=1100, cells=(9, 7, 5), max_voxels=250),
    VOXELS_LEADING.with_sizes("none-inside", start=(9000.0, 0.0, 0.0), points=9).replace(
        arguments={"points": tensor(9, 4)}
    ),
    VOXELS_LEADING.with_sizes("no-points", points=0),
)
"""The templates that both voxelizations have, except for the large ones."""

LIMIT_TEMPLATES = (
    VOXELS_LEADING.with_sizes("all-voxels", max_voxels=30),
    VOXELS_LEADING.with_sizes("few-voxels", max_voxels=5),
    VOXELS_LEADING.with_sizes("one-voxel", max_voxels=1, max_points=4),
    VOXELS_LEADING.with_sizes("one-point-a-voxel", max_points=1),
    VOXELS_LEADING.with_sizes("room-for-all", max_points=50, max_voxels=30),
    VOXELS_LEADING.with_sizes("few-cells", cells=(2, 1, 1), points=60, max_points=7),
    VOXELS_LEADING.with_sizes("no-voxels", max_voxels=0),
)
"""Templates of `diopiHardVoxelizeMmcv` with other limits of voxels and of points per voxel."""


def with_any_order(template: CaseTemplate[VoxelGrid]) -> CaseTemplate[VoxelGrid]:
    """Return the template with `deterministic` false, so that a function may use the points in any order."""
    label = "in-any-order" if template.label == "points" else f"in-any-order-{template.label}"
    return template.with_sizes(label, deterministic=False)


NONE_INSIDE_REASONS = {"none-inside": "no point is in the grid"}
"""Why wrong results can pass the case with this label (`Case.non_discriminating`)."""

FEW_POINTS_REASONS = {
    "one-cell|in-any-order-one-cell": "the only cell is (0, 0, 0)",
    "one-point|in-any-order-one-point": "a single point gives one voxel with one point",
    "one-point-a-voxel|in-any-order-one-point-a-voxel": "every voxel has one point",
    "few-cells|in-any-order-few-cells": "two of three coordinates of each cell are 0",
    "no-voxels": "no voxel is created",
}
"""Why wrong results of `diopiHardVoxelizeMmcv` can pass a case, by a regular expression for labels."""

MANY_POINTS = VOXELS_LEADING.with_sizes(
    "many-points", points=100_003, cells=(41, 37, 13), max_points=7, max_voxels=12_007
).replace(large=True)
"""A large template with many points."""

LARGE_POINTS = (
    MANY_POINTS,
    MANY_POINTS.with_sizes(
        "half-many-features", points=4099, features=67, cells=(7, 5, 3), max_points=53, max_voxels=101
    ).replace(dtypes=(F16,)),
)
"""The large templates of both voxelizations."""

ANY_ORDER_TEMPLATES = (
    *VOXEL_TEMPLATES[:5],
    *VOXEL_TEMPLATES[6:16],
    *LIMIT_TEMPLATES[:-1],
    MANY_POINTS.with_sizes(points=20_011).replace(layout=strided),
)
"""The templates that also have a copy with `deterministic` false."""

register(
    "diopiHardVoxelizeMmcv",
    templates=(*VOXEL_TEMPLATES, *LIMIT_TEMPLATES, *LARGE_POINTS, *map(with_any_order, ANY_ORDER_TEMPLATES)),
    derive=voxel_arguments,
    non_discriminating={**NONE_INSIDE_REASONS, **FEW_POINTS_REASONS},
)
DYNAMIC_TEMPLATES = (*VOXEL_TEMPLATES, *LARGE_POINTS)
"""The templates of `diopiDynamicVoxelizeMmcv`."""

register(
    "diopiDynamicVoxelizeMmcv",
    templates=DYNAMIC_TEMPLATES,
    derive=cell_arguments,
    non_discriminating=NONE_INSIDE_REASONS,
)

# Reduction by voxel

SUM, MEAN, MAXIMUM = range(3)
"""The values of the argument reduce_type."""


@dataclass(frozen=True, kw_only=True)
class VoxelReduction:
    """The sizes of a call that reduces the features of points by voxel.

    Attributes:
        points: The number of points.
        channels: The number of features of a point.
        grid: The sizes of the grid of voxels.
        has_outside_points: Whether some points have negative coordinates, which means that they are in no voxel.
        reduce_type: The argument reduce_type: `SUM`, `MEAN` or `MAXIMUM`.
    """

    points: int = 30
    channels: int = 3
    grid: tuple[int, ...] = (2, 3, 2)
    has_outside_points: bool = True
    reduce_type: int = SUM

    def coordinates(self) -> Any:
        """Return the voxel of each point, an array with a row of coordinates per point.

        Some points share a voxel. If `has_outside_points` is true, some points have a negative coordinate.
        """
        rng = np.random.default_rng(self.points + len(self.grid))
        rows = rng.integers(0, self.grid, (self.points, len(self.grid)))
        if self.has_outside_points:
            rows[2::5] -= rng.permuted(np.eye(1, len(self.grid), dtype=int).repeat(len(rows[2::5]), 0), axis=1) * 2
            rows[4::11] = -1
        return rows

    def voxel_count(self) -> int:
        """Return the number of different voxels that contain points."""
        return len({tuple(row) for row in self.coordinates().tolist() if min(row) >= 0})


def reduce_arguments(template: CaseTemplate[VoxelReduction], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiDynamicPointToVoxelMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to all tensors.
        dtype: Not used; features have the type under test.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    return {
        "feats": tensor(sizes.points, sizes.channels, layout=template.layout),
        "coors": literal(sizes.coordinates(), I32, template.layout),
        "reduce_type": sizes.reduce_type,
    }


def reduce_backward_arguments(template: CaseTemplate[VoxelReduction], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiDynamicPointToVoxelBackwardMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to all tensors.
        dtype: The element type under test.

    Returns:
        The arguments by name. The forward function computes the results that the gradient receives.
    """
    sizes = template.sizes
    inputs, rows, layout = reduce_arguments(template, dtype), sizes.voxel_count(), template.layout

    def forward(result: str) -> ResultOf:
        """Return the result of the forward function with this name."""
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


SMALL_INTEGERS = {"feats": integer_values(-9, 9), "grad_reduced_feats": integer_values(-9, 9)}
"""Domains by argument name: small integers, whose sums are exact."""

SUM_SMOKE = CaseTemplate("sum", VoxelReduction(), **SMOKE_IN_ALL_DTYPES)
"""A template of sums by voxel: smoke cases in every element type."""

MEAN_SMOKE = SUM_SMOKE.with_sizes("mean", reduce_type=MEAN)
"""A template of means by voxel: smoke cases in every element type."""

MAXIMUM_SMOKE = SUM_SMOKE.with_sizes("maximum", reduce_type=MAXIMUM).replace(domains=SMALL_INTEGERS, exact=True)
"""A template of maxima by voxel: exact smoke cases in every element type.

Because the features are small integers, several points of a voxel attain the maximum.
"""


def varied_templates(template: CaseTemplate[VoxelReduction]) -> list[CaseTemplate[VoxelReduction]]:
    """Return the template, and copies with other layouts, sizes and numbers of points in the leading element type."""
    label, leading = template.label, template.replace(**LEADING)
    return [
        template,
        leading.with_sizes(f"{label}-all-inside", has_outside_points=False),
        leading.replace(f"{label}-strided", **same_layout(strided)),
        leading.replace(f"{label}-transposed", layout=transposed),
        leading.with_sizes(f"{label}-one-axis", grid=(9,)),
        leading.with_sizes(f"{label}-one-channel", channels=1),
        leading.with_sizes(f"{label}-many-channels", channels=33),
        leading.with_sizes(f"{label}-one-point", points=1),
        leading.with_sizes(f"{label}-no-points", points=0),
    ]


REDUCTION_TEMPLATES = (
    *varied_templates(SUM_SMOKE),
    *varied_templates(MEAN_SMOKE),
    *varied_templates(MAXIMUM_SMOKE),
    SUM_SMOKE.replace("exact", domains=SMALL_INTEGERS, exact=True, smoke=False),
    SUM_SMOKE.with_sizes("long", points=1100, grid=(7, 5, 4)).replace(**LEADING),
    MEAN_SMOKE.with_sizes("one-row", grid=(1, 1), has_outside_points=False).replace(**LEADING),
    MEAN_SMOKE.replace("undefined", domains={"feats": half_nan}, **LEADING),
    MAXIMUM_SMOKE.with_sizes("four-axes", grid=(2, 2, 3, 2), points=60).replace(**LEADING),
    SUM_SMOKE.with_sizes("sum", points=70_001, channels=5, grid=(13, 29, 31)).replace(**LEADING, large=True),
    MEAN_SMOKE.with_sizes("half-mean", points=20_011, channels=67, grid=(5, 7, 11)).replace(
        dtypes=(F16,), smoke=False, layout=strided, large=True
    ),
    MAXIMUM_SMOKE.with_sizes("maximum", points=70_001, channels=5, grid=(13, 29, 31)).replace(**LEADING, large=True),
)
"""The templates of the reduction and of its gradient."""

NO_POINT_INSIDE = SUM_SMOKE.with_sizes("none-kept", points=5).replace(
    arguments={"coors": literal(np.full((5, 3), -1), I32)}, smoke=False
)
"""A template of points that are all outside of the grid."""

LOW_MAXIMUM = MAXIMUM_SMOKE.replace(
    "maximum-near-lowest", domains={"feats": uniform(-60_000, -30_000)}, dtypes=(F32, F16), smoke=False
)
"""Features so low that a maximum that starts from a finite number is wrong."""

register(
    "diopiDynamicPointToVoxelMmcv",
    templates=(*REDUCTION_TEMPLATES, NO_POINT_INSIDE, LOW_MAXIMUM),
    derive=reduce_arguments,
    non_discriminating={"none-kept": "every point is outside of the grid"},
)
register(
    "diopiDynamicPointToVoxelBackwardMmcv",
    templates=REDUCTION_TEMPLATES,
    derive=reduce_backward_arguments,
    non_discriminating={"(sum|mean|maximum)-one-point|one-row": "there is only one row"},
)

# Sparse convolution


@dataclass(frozen=True, kw_only=True)
class SparseSizes:
    """The sizes of a sparse convolution or pooling.

    A sparse function has a list of pairs (input row, result row) for each position of the kernel. It applies the
    weights of the position to these pairs.

    Attributes:
        rows: The number of rows of the features.
        output_rows: The number of rows of the result.
        input_channels: The number of columns of the features.
        output_channels: The number of columns of the result.
        kernel: The sizes of the kernel.
        max_pairs: The maximum number of pairs per position of the kernel.
        inverse, submanifold: The arguments `_inverse` and `_subM`.
    """

    rows: int = 7
    output_rows: int = 5
    input_channels: int = 3
    output_channels: int = 2
    kernel: tuple[int, ...] = (3, 2)
    max_pairs: int = 6
    inverse: int = 0
    submanifold: int = 0

    def index_pairs(self) -> tuple[Any, Any]:
        """Return random pairs of rows, and the number of pairs of each position of the kernel.

        Returns:
            An array (positions, 2, max_pairs), in which −1 stands for no row, and a vector of counts. No row occurs
            twice at a position.
        """
        positions = int(np.prod(self.kernel))
        rng = np.random.default_rng(positions + self.rows + self.output_rows)
        ends = (self.output_rows, self.rows) if self.inverse else (self.rows, self.output_rows)
        max_points = min(self.max_pairs, *ends)
        counts = rng.integers(0, max_points + 1, positions)
        if positions:
            counts[positions // 2] = max_points
        indices = np.full((positions, 2, self.max_pairs), -1)
        for position, count in enumerate(counts):
            for side, end in enumerate(ends):
                indices[position, side, :count] = rng.permutation(end)[:count]
        return indices, counts


def conv_arguments(template: CaseTemplate[SparseSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of both sparse convolutions for the sizes of a template.

    Args:
        template: The template. Its layout applies to all tensors.
        dtype: Not used; floating-point tensors have the type under test.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    (pairs, counts), layout = sizes.index_pairs(), template.layout
    return {
        "features": tensor(sizes.rows, sizes.input_channels, layout=layout),
        "filters": tensor(*sizes.kernel, sizes.input_channels, sizes.output_channels, layout=layout),
        "bias": tensor(sizes.output_channels, layout=layout),
        "indicePairs": literal(pairs, I32, layout),
        "indiceNum": literal(counts, I32, layout),
        "numActOut": sizes.output_rows,
        "_inverse": sizes.inverse,
        "_subM": sizes.submanifold,
    }


CONVOLUTION_SMOKE = CaseTemplate("plain", SparseSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

CONVOLUTION_LEADING = CONVOLUTION_SMOKE.replace(**LEADING)
"""A template with the default sizes, in the leading element type and without smoke cases."""

LARGE_CUBE = CONVOLUTION_LEADING.with_sizes(kernel=(3, 3, 3)).replace(large=True)
"""A large template with a kernel of 3 × 3 × 3, without the numbers of rows."""

EXACT_OPERANDS = dict.fromkeys(("features", "filters", "bias", "outGrad"), integer_values(-3, 3))
"""Domains by argument name: small integers, whose sums of products are exact."""

CONVOLUTION_TEMPLATES = (
    CONVOLUTION_SMOKE,
    CONVOLUTION_SMOKE.with_sizes("exact", rows=6, output_rows=7).replace(
        domains=EXACT_OPERANDS, exact=True, smoke=False
    ),
    CONVOLUTION_SMOKE.with_sizes("submanifold", output_rows=7, submanifold=1).replace(layout=strided, smoke=False),
    CONVOLUTION_LEADING.with_sizes("inverse", inverse=1),
    CONVOLUTION_LEADING.with_sizes("square", output_rows=7, max_pairs=7),
    CONVOLUTION_LEADING.with_sizes("square-inverse", output_rows=7, max_pairs=7, inverse=1),
    CONVOLUTION_LEADING.with_sizes("square-submanifold", output_rows=7, max_pairs=7, submanifold=1),
    CONVOLUTION_LEADING.with_sizes("square-submanifold-inverse", output_rows=7, max_pairs=7, submanifold=1, inverse=1),
    CONVOLUTION_LEADING.with_sizes("cube", kernel=(3, 3, 3), rows=20, output_rows=17, max_pairs=11),
    CONVOLUTION_LEADING.with_sizes(
        "cube-submanifold", kernel=(3, 3, 3), rows=20, output_rows=20, max_pairs=11, submanifold=1
    ),
    CONVOLUTION_LEADING.with_sizes("line", kernel=(5,)),
    CONVOLUTION_LEADING.with_sizes("one-position", kernel=(1, 1)),
    CONVOLUTION_LEADING.with_sizes("one-channel", input_channels=1, output_channels=1),
    CONVOLUTION_LEADING.with_sizes("many-channels", input_channels=33, output_channels=17),
    CONVOLUTION_LEADING.with_sizes("more-results", output_rows=23),
    CONVOLUTION_LEADING.with_sizes("one-row", rows=1, output_rows=4, max_pairs=2),
    CONVOLUTION_LEADING.with_sizes("one-result", rows=9, output_rows=1, max_pairs=2, kernel=(3, 3)),
    CONVOLUTION_LEADING.with_sizes("undefined", rows=12, output_rows=15, max_pairs=5, kernel=(1, 2)).replace(
        domains={"features": half_nan}
    ),
    CONVOLUTION_LEADING.replace("transposed", layout=transposed),
    CONVOLUTION_LEADING.with_sizes(
        "long", rows=300, output_rows=250, max_pairs=200, input_channels=8, output_channels=5
    ),
    CONVOLUTION_LEADING.with_sizes(
        "long-sum", rows=9, output_rows=3, max_pairs=3, input_channels=130, kernel=(5, 5)
    ).replace(domains={"bias": integer_values(-900, 900)}, dtypes=half),
    CONVOLUTION_LEADING.with_sizes("no-pairs", max_pairs=0),
    CONVOLUTION_LEADING.with_sizes("no-rows", rows=0),
    CONVOLUTION_LEADING.with_sizes("no-results", output_rows=0),
    LARGE_CUBE.with_sizes("cube", rows=4099, output_rows=3001, max_pairs=2011, input_channels=17, output_channels=13),
    LARGE_CUBE.with_sizes(
        "half-submanifold",
        rows=1031,
        output_rows=1031,
        max_pairs=1031,
        input_channels=67,
        output_channels=31,
        submanifold=1,
    ).replace(dtypes=(F16,), layout=strided),
)
"""The templates of sparse convolutions and of their gradients."""


def conv_backward_arguments(template: CaseTemplate[SparseSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiIndiceConvBackwardMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to all tensors.
        dtype: The element type under test.

    Returns:
        The arguments of the forward function, and `outGrad`.
    """
    sizes = template.sizes
    return {
        **conv_arguments(template, dtype),
        "outGrad": tensor(sizes.output_rows, sizes.output_channels, layout=template.layout),
    }


register(
    "diopiIndiceConvMmcv", "diopiFusedIndiceConvBatchnormMmcv", templates=CONVOLUTION_TEMPLATES, derive=conv_arguments
)
register("diopiIndiceConvBackwardMmcv", templates=CONVOLUTION_TEMPLATES, derive=conv_backward_arguments)

# Pooling


def pool_arguments(template: CaseTemplate[SparseSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiIndiceMaxpoolMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to all tensors.
        dtype: Not used; features have the type under test.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    (pairs, counts), layout = sizes.index_pairs(), template.layout
    return {
        "features": tensor(sizes.rows, sizes.input_channels, layout=layout),
        "indicePairs": literal(pairs, I32, layout),
        "indiceNum": literal(counts, I32, layout),
        "numAct": sizes.output_rows,
    }


def pool_backward_arguments(template: CaseTemplate[SparseSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiIndiceMaxpoolBackwardMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to all tensors.
        dtype: The element type under test.

    Returns:
        The arguments by name. The forward function computes `outFeatures`.
    """
    sizes = template.sizes
    rows, layout = (sizes.output_rows, sizes.input_channels), template.layout
    forward = ResultOf("diopiIndiceMaxpoolMmcv", extra_arguments={"numAct": sizes.output_rows})
    return {
        **pool_arguments(template, dtype),
        "outFeatures": tensor(*rows, layout=layout, compute=forward),
        "outGrad": tensor(*rows, layout=layout),
    }


def with_integers(template: CaseTemplate[SparseSizes]) -> CaseTemplate[SparseSizes]:
    """Return the template with integers, so that rounding does not change which elements attain the maximum."""
    return template.replace(
        domains={"features": integer_values(-9, 25), "outGrad": integer_values(-9, 9), **template.domains}, exact=True
    )


POOL_SMOKE = CONVOLUTION_SMOKE.with_sizes("plain", kernel=(3, 3))
"""A template of maximum pooling with the default sizes: smoke cases in every element type."""

POOL_LEADING = POOL_SMOKE.replace(**LEADING)
"""A template of maximum pooling, in the leading element type and without smoke cases."""

POOL_TEMPLATES = (
    POOL_SMOKE,
    POOL_SMOKE.with_sizes("exact", rows=6, output_rows=7).replace(
        domains=EXACT_OPERANDS, exact=True, smoke=False, layout=strided
    ),
    POOL_LEADING.with_sizes("cube", kernel=(2, 2, 2), rows=20, output_rows=9, max_pairs=9),
    POOL_LEADING.with_sizes("cube-transposed", kernel=(2, 2, 2), rows=20, output_rows=9, max_pairs=9).replace(
        layout=transposed
    ),
    POOL_LEADING.with_sizes("line", kernel=(5,)),
    POOL_LEADING.with_sizes("one-position", kernel=(1,), max_pairs=5),
    POOL_LEADING.with_sizes("one-channel", input_channels=1, rows=15, output_rows=9, max_pairs=9),
    POOL_LEADING.with_sizes("many-channels", input_channels=33),
    POOL_LEADING.with_sizes("features-of-16", input_channels=16),
    POOL_LEADING.with_sizes("more-results", output_rows=13, max_pairs=7),
    POOL_LEADING.with_sizes("one-row", rows=1, output_rows=4, max_pairs=2, input_channels=9),
    POOL_LEADING.with_sizes("one-result", rows=3, output_rows=1, max_pairs=2, input_channels=9),
    POOL_LEADING.with_sizes("many-equal", rows=9).replace(domains={"features": integer_values(-1, 1)}),
    POOL_LEADING.with_sizes("long", rows=300, output_rows=250, max_pairs=200, input_channels=8),
    POOL_LEADING.with_sizes("no-pairs", max_pairs=0),
    POOL_LEADING.with_sizes("no-rows", rows=0),
    POOL_LEADING.with_sizes("no-results", output_rows=0),
    LARGE_CUBE.with_sizes("cube", rows=5003, output_rows=3001, max_pairs=2011, input_channels=17),
    LARGE_CUBE.with_sizes("half-wide", rows=1031, output_rows=523, max_pairs=401, input_channels=131).replace(
        dtypes=(F16,), layout=strided
    ),
)
"""The templates of maximum pooling."""

register("diopiIndiceMaxpoolMmcv", templates=POOL_TEMPLATES, derive=pool_arguments)
POOL_GRADIENT_TEMPLATES = [with_integers(pool) for pool in POOL_TEMPLATES]
"""The templates of the gradient of maximum pooling."""

register("diopiIndiceMaxpoolBackwardMmcv", templates=POOL_GRADIENT_TEMPLATES, derive=pool_backward_arguments)

CaseFacts(finds_extremes=True).declare("diopiDynamicPointToVoxelMmcv", "diopiIndiceMaxpoolMmcv")
