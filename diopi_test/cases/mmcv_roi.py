"""MMCV's pooling of axis-aligned regions of interest (RoIs) on feature maps, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.detection import EDGES, HALVES, Pooling
from diopi_test.cases.domains import Domain, between, by_turns, choice, distinct, half_nan, normal, whole
from diopi_test.cases.layouts import Layout, channels_last, contiguous, strided, transposed
from diopi_test.cases.model import ResultOf, ResultOverride, Values
from diopi_test.cases.template import BASIC, CaseTemplate, TensorTemplate, Types, register, tensor, throughout
from diopi_test.cases.tensors import zeros

F64, I32 = Dtype.float64, Dtype.int32

MAXIMUM, MEAN = 0, 1

FEATURES = normal()
"""What feature maps hold as usual."""


@dataclass(frozen=True)
class Regions(Pooling):
    """One way of pooling regions.

    Attributes:
        mode: pool_mode.
        features: where the maps are drawn from.
        given: the regions themselves, if they are not drawn.
        argmax_given: whether the mean, too, gets tensors for the places of maxima.
        gamma: of DeformRoiPool.
        offset: where its offsets are drawn from; None where it has none.
    """

    mode: int = MEAN
    features: Domain = FEATURES
    given: Sequence[Sequence[float]] = ()
    argmax_given: bool = False
    gamma: float = 0.125
    offset: Domain | None = None

    @property
    def pooled(self) -> tuple[int, int, int, int]:
        """Shape of the result."""
        return self.number, self.shape[1], *self.bins

    @property
    def number(self) -> int:
        """Of regions."""
        return len(self.given) or self.regions

    def rois(self, layout: Layout) -> Mapping[str, TensorTemplate]:
        """The regions, drawn or given."""
        if self.given:
            return {"rois": tensor(self.number, 5, compute=lambda values: self.given)}
        return self.drawn_regions(layout)


def _tensors(template: CaseTemplate) -> dict[str, Any]:
    """What the functions of this family have in common."""
    sizes: Regions = template.sizes
    maps = tensor(*sizes.shape, domain=sizes.features, layout=template.layout)
    return {
        "input": maps,
        "_input": maps,
        "grad_output": tensor(*sizes.pooled, layout=template.layout),
        "grad_input": zeros(*sizes.shape, layout=template.result),
        **sizes.rois(contiguous if template.layout is contiguous else strided),
        "pooled_height": sizes.bins[0],
        "pooled_width": sizes.bins[1],
        "spatial_scale": sizes.scale,
    }


# RoiAlign


def _place(sizes: Regions, result: str) -> TensorTemplate:
    if sizes.mode == MEAN and not sizes.argmax_given:
        return tensor(0)
    if sizes.mode == MEAN:
        return tensor(*sizes.pooled)
    return tensor(*sizes.pooled, compute=ResultOf("diopiRoiAlignMmcv", result, {"input": "_input"}))


def align(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Regions = template.sizes
    return {
        **_tensors(template),
        "aligned_height": sizes.bins[0],
        "aligned_width": sizes.bins[1],
        "sampling_ratio": sizes.ratio,
        "pool_mode": sizes.mode,
        "aligned": sizes.aligned,
        "argmax_y": _place(sizes, "argmax_y"),
        "argmax_x": _place(sizes, "argmax_x"),
    }


REGION = CaseTemplate("mean", Regions((2, 2, 4, 5)), **BASIC)
REGIONS = REGION.but(dtypes=Types.leading, smoke=False)
LARGEST = REGION.but("maximum", mode=MAXIMUM, features=distinct)
NONZERO = choice([-4, -3, -2, -1, 1, 2, 3, 4])
"""Whole numbers whose sums with weights are zero where they cancel, or where nothing is sampled: never below zero."""

WHOLE = dict.fromkeys(("input", "_input", "grad_output"), NONZERO)
FLAT = [0, 1, 3, 3, 1.5], [1, 4, 1, 2, 3.25], [0, 0.5, 0.5, 4.125, 2.875]
"""Three regions, two of which end before they begin: no samples, where their number follows from the extent."""


def places(shape: tuple[int, ...]) -> dict[str, Any]:
    """Tensors for the places of maxima, of this shape, where there are no maxima."""
    return dict.fromkeys(("argmax_y", "argmax_x"), ResultOverride(shape=shape))


MEANS = (
    REGIONS.but("one-sample", bins=(3, 1), ratio=1),
    REGIONS.but("one-element", shape=(1, 2, 1, 1), extent=(0.2, 0.6)),
    REGIONS.but("no-regions", regions=0),
    REGIONS.but("undefined", extent=(0.2, 0.8), starts=(0.1, 0.4), features=half_nan),
    REGIONS.but("channels-last", **throughout(channels_last)),
    REGIONS.but("places-not-wanted", argmax_given=True, results=places((3, 2, 2, 3)), smoke=True),
)

BOTH = (
    REGIONS.but("adaptive", shape=(2, 1, 5, 4), ratio=0),
    REGIONS.but("adaptive-unaligned", bins=(3, 2), scale=0.25, ratio=-1, aligned=False, extent=(0.5, 3.5)),
    REGIONS.but("adaptive-flat", given=FLAT, ratio=0),
    REGIONS.but("three-samples", bins=(1, 2), scale=2.0, ratio=3),
    REGIONS.but("smaller-than-one", regions=5, aligned=False, extent=(0.05, 0.25)),
    REGIONS.but("beyond-the-features", regions=6, extent=(2, 6)),
    REGIONS.but("scaled-by-tenths", bins=(3, 2), scale=0.3),
    REGIONS.but("many-channels", shape=(2, 9, 5, 4), regions=4),
    REGIONS.but("transposed", shape=(3, 2, 5, 4), regions=4, layout=transposed, result=strided),
)

EXACT = REGION.but("exact", shape=(2, 3, 5, 6), bins=(2, 1), scale=0.5, aligned=False, given=HALVES, smoke=False)
EXACT_EDGES = EXACT.but("exact-edges", shape=(2, 3, 5, 4), bins=(2, 3), scale=1.0, ratio=1, given=EDGES)
LONG = REGIONS.but("long", shape=(2, 8, 6, 7), bins=(3, 2), regions=9, ratio=0)
UNALIGNED = REGION.but("unaligned", shape=(2, 1, 4, 5), scale=0.5, aligned=False, smoke=False, **throughout(strided))


def of_maxima(templates: Sequence[CaseTemplate]) -> list[CaseTemplate]:
    """The same calls with maxima of clearly different numbers."""
    return [one.but(f"maximum-{one.label}", mode=MAXIMUM, features=distinct) for one in templates]


TWICE = (EXACT.but(domains=WHOLE, exact=True), EXACT_EDGES.but(domains=WHOLE, exact=True), UNALIGNED, *BOTH, LONG)
"""Calls that are made for the mean and for the maximum."""

ALIGNED = (REGION, LARGEST, *MEANS, *TWICE, *of_maxima(TWICE))

register("diopiRoiAlignMmcv", "diopiRoiAlignBackwardMmcv", templates=ALIGNED, derive=align)

# RoiPool


@dataclass(frozen=True)
class CellRegions(Regions):
    """Regions the edges of whose bins are away from those of cells, where the cells they cover change."""

    def _regions(self, values: Values) -> Any:
        low = np.floor(values["_starts"] * np.array(self.shape[:1:-1])) + 0.2
        widths = np.floor(values["_sizes"]) + 0.25 * np.ceil(3 * (values["_sizes"] % 1))
        high = low + widths * np.array(self.bins[::-1])
        samples = np.arange(self.number)[::-1, np.newaxis] % self.shape[0]
        return np.concatenate([samples, low / self.scale, high / self.scale - 1], -1)


def pool(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Regions = template.sizes
    results = {name: zeros(*sizes.pooled, dtype=kind, layout=template.result) for name, kind in RESULTS.items()}
    return {**_tensors(template), **results}


RESULTS = {"output": None, "argmax": I32}


def pool_backward(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Regions = template.sizes
    forward = ResultOf(
        "diopiRoiPoolMmcv", "argmax", {"input": "_input"}, dict.fromkeys(RESULTS, np.zeros(sizes.pooled))
    )
    return {**_tensors(template), "argmax": tensor(*sizes.pooled, dtype=I32, compute=forward)}


CELLS = CaseTemplate("cells", CellRegions((2, 2, 5, 6), features=distinct), **BASIC)
CELL = CELLS.but(dtypes=Types.leading, smoke=False)
WIDE = [1, 0, 0, 7, 3], [0, 2, 0, 5, 7], [1, -4, -4, 1, 9]
"""Regions whose bins begin and end with cells; the last one is in part outside."""
INVERTED = [0, 1, 1.25, 3.75, 3.9375], [1, 4, 1, 1, 3], [0, 1.25, 4, 3.0625, 1], [1, 2, 2, 1, 1]
"""A region, and three that end before they begin, of which the last covers nothing."""

POOLS = (
    CELLS,
    CELLS.but("whole-cells", shape=(2, 2, 8, 8), bins=(4, 2), given=WIDE, smoke=False),
    CELLS.but("equal-cells", features=whole(-1, 1), extent=(1, 3), smoke=False, layout=strided, result=transposed),
    CELL.but("halved", scale=0.5, extent=(1, 3.5)),
    CELL.but("quartered", scale=0.25, bins=(3, 2), regions=5),
    CELL.but("inverted", given=INVERTED),
    CELL.but("one-bin", bins=(1, 1), extent=(2, 4), regions=6),
    CELL.but("more-bins-than-cells", bins=(5, 4), extent=(0.1, 0.6)),
    CELL.but("beyond-the-features", regions=6, starts=(-0.6, 0.9), extent=(1, 4)),
    CELL.but("one-cell", shape=(1, 3, 1, 1), extent=(0.3, 0.9), starts=(-0.4, 0.4)),
    CELL.but("many-channels", shape=(2, 9, 5, 4)),
    CELL.but("channels-last", **throughout(channels_last)),
    CELL.but("strided", **throughout(strided)),
    CELL.but("transposed", shape=(3, 2, 5, 4), layout=transposed, result=strided),
    CELL.but("long", shape=(2, 8, 12, 13), bins=(3, 2), regions=9, extent=(1, 4)),
    CELL.but("no-regions", regions=0),
)

register("diopiRoiPoolMmcv", templates=POOLS, derive=pool)
register(
    "diopiRoiPoolBackwardMmcv",
    templates=POOLS,
    derive=pool_backward,
    weak={"one-bin": "few cells are largest", "one-cell": "there is but one cell of one map"},
)

# DeformRoiPool


@dataclass(frozen=True)
class GridRegions(Regions):
    """Regions of whole cells, aligned with them, whose samples are inside the features and between the cells."""

    def _regions(self, values: Values) -> Any:
        low = np.floor(values["_starts"] * np.array(self.shape[:1:-1])) + 0.5
        high = low + np.floor(values["_sizes"]) * np.array(self.bins[::-1])
        samples = np.arange(self.number)[::-1, np.newaxis] % self.shape[0]
        return np.concatenate([samples, low / self.scale, high / self.scale], -1)


def deform(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Regions = template.sizes
    shape = (sizes.number, 2, *sizes.bins)
    offset = None if sizes.offset is None else tensor(*shape, domain=sizes.offset, layout=template.layout)
    return {
        **_tensors(template),
        "offset": offset,
        "grad_offset": None if offset is None else zeros(*shape, layout=template.result),
        "sampling_ratio": sizes.ratio,
        "gamma": sizes.gamma,
    }


GRID = CaseTemplate(
    "shifted",
    GridRegions((2, 2, 7, 8), bins=(2, 2), extent=(1, 3), starts=(0, 0.25), gamma=0.03125, offset=between(-1, 1)),
    **BASIC,
)
GRIDS = GRID.but(dtypes=Types.leading, smoke=False)
NOTHING = {"offset": tensor(0), "grad_offset": zeros(0)}

THREE_CELLS: Mapping[str, Any] = {"shape": (2, 2, 8, 9), "extent": (3, 4), "starts": (0, 0.12), "gamma": 0.015625}
"""Bins of so many cells that the mean depends on the number of samples."""

SHIFTED = (
    GRID,
    GRID.but(
        "exact", scale=0.5, gamma=0.25, extent=(2, 3), offset=whole(-1, 1), domains=WHOLE, exact=True, smoke=False
    ),
    GRID.but("without-offset", offset=None, smoke=False, layout=strided, result=transposed),
    GRIDS.but("offset-without-elements", arguments=NOTHING),
    GRIDS.but("one-sample", ratio=1, **THREE_CELLS),
    GRIDS.but("three-samples", ratio=3, **THREE_CELLS),
    GRIDS.but("adaptive", ratio=0, bins=(3, 2), shape=(2, 1, 9, 7), gamma=0.015625),
    GRIDS.but("halved", scale=0.5, bins=(1, 3), shape=(2, 2, 6, 9)),
    GRIDS.but("doubled", scale=2.0, bins=(3, 1), shape=(2, 2, 10, 6)),
    GRIDS.but("other-way", gamma=-0.03125),
    GRIDS.but("many-channels", shape=(2, 9, 7, 7)),
    GRIDS.but("one-bin", bins=(1, 1), regions=6),
    GRIDS.but("channels-last", **throughout(channels_last)),
    GRIDS.but("transposed", layout=transposed, result=strided),
    GRIDS.but("long", shape=(2, 8, 12, 13), bins=(3, 4), regions=9, gamma=0.015625),
    GRIDS.but("no-regions", regions=0),
)

ANYWHERE = REGIONS.but("anywhere", extent=(0.5, 3), offset=between(-2, 2), gamma=0.25)

FREE = (
    ANYWHERE,
    ANYWHERE.but("anywhere-adaptive", ratio=-1, scale=0.3, bins=(3, 2)),
    ANYWHERE.but("anywhere-flat", given=FLAT, ratio=0),
    ANYWHERE.but("undefined", extent=(0.2, 0.8), starts=(0.1, 0.4), features=half_nan),
)
"""Samples anywhere, between the features and outside."""

register("diopiDeformRoiPoolMmcv", templates=(*SHIFTED, *FREE), derive=deform)
register(
    "diopiDeformRoiPoolBackwardMmcv",
    templates=SHIFTED,
    derive=deform,
    weak={"without-offset|offset-without-elements": "the gradient by input does not depend on input"},
)

# Precise RoI pooling


def precise(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Regions = template.sizes
    forward = ResultOf("diopiPrroiPoolMmcv", "output")
    return {
        **_tensors(template),
        "output": tensor(*sizes.pooled, layout=template.layout, compute=forward),
        "grad_rois": zeros(sizes.number, 5, layout=template.result),
    }


WHOLE_CELLS = [1, 0, 0, 8, 4], [0, 2, -2, 6, 6]
"""Regions whose bins are made of halves of cells."""

LONG_REGION, CHANNELS = ([0, 1.25, 0, 380, 1],), by_turns(800, between(0.5, 0.75), between(1, 1.5), between(2, 3))

PRECISE = (
    REGION,
    EXACT.but("exact", shape=(2, 3, 5, 6), bins=(2, 2), scale=0.5, given=WHOLE_CELLS, domains=WHOLE, exact=True),
    REGION.but("halved", scale=0.5, bins=(3, 2), smoke=False, layout=strided, result=transposed),
    REGIONS.but("tenths", scale=0.3, bins=(3, 2)),
    REGIONS.but("doubled", scale=2.0, bins=(1, 3)),
    REGIONS.but("within-cells", extent=(0.1, 0.4), regions=5),
    REGIONS.but("beyond-the-features", regions=6, extent=(2, 6)),
    REGIONS.but("inverted", given=INVERTED),
    REGIONS.but("one-element", shape=(1, 2, 1, 1), extent=(0.2, 0.6)),
    REGIONS.but("one-bin", bins=(1, 1), extent=(1, 4), regions=5),
    REGIONS.but("many-channels", shape=(2, 9, 5, 4)),
    REGIONS.but("channels-last", **throughout(channels_last)),
    REGIONS.but("transposed", shape=(3, 2, 5, 4), layout=transposed, result=strided),
    REGIONS.but("long", shape=(2, 8, 12, 13), bins=(3, 4), regions=9, extent=(1, 3)),
    REGIONS.but("long-sum", shape=(1, 24, 2, 400), bins=(1, 1), given=LONG_REGION, features=CHANNELS, dtypes=half),
    REGIONS.but("no-regions", regions=0),
)

register(
    "diopiPrroiPoolMmcv",
    "diopiPrroiPoolbackwardMmcv",
    "diopiPrroiPoolCoorBackwardMmcv",
    templates=PRECISE,
    derive=precise,
)

# BorderAlign


@dataclass(frozen=True)
class Borders:
    """Features, (N, C, H, W) with C of one border, and their boxes.

    Attributes:
        extent: the least and the largest side of a box.
        starts: the least and the largest coordinate where a box starts.
        quarters: whether boxes are made of quarters of cells.
    """

    shape: tuple[int, int, int, int] = (2, 2, 3, 4)
    pool_size: int = 3
    extent: tuple[float, float] = (0.5, 3.0)
    starts: tuple[float, float] = (-0.5, 2.0)
    quarters: bool = False

    def boxes(self, values: Values) -> Any:
        """Boxes at places drawn."""
        corners = np.concatenate([values["_starts"], values["_starts"] + values["_sizes"]], -1)
        return np.rint(4 * corners) / 4 if self.quarters else corners


def border(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Borders = template.sizes
    n, c, h, w = sizes.shape
    maps = tensor(n, 4 * c, h, w, domain=distinct, layout=template.layout)
    forward = ResultOf("diopiBorderAlignMmcv", "argmax_idx", {"input": "_input"})
    return {
        "input": maps,
        "_input": maps,
        "grad_input": zeros(n, 4 * c, h, w, layout=template.result),
        "grad_output": tensor(n, c, h * w, 4, layout=template.layout),
        "_starts": tensor(n, h * w, 2, domain=between(*sizes.starts), dtype=F64),
        "_sizes": tensor(n, h * w, 2, domain=between(*sizes.extent), dtype=F64),
        "boxes": tensor(n, h * w, 4, layout=template.layout, compute=sizes.boxes),
        "pool_size": sizes.pool_size,
        "argmax_idx": tensor(n, c, h * w, 4, dtype=I32, compute=forward),
    }


BORDER = CaseTemplate("boxes", Borders(), **BASIC)
BORDERED = BORDER.but(dtypes=Types.leading, smoke=False)

BORDERS = (
    BORDER,
    BORDER.but("exact", quarters=True, pool_size=2, domains=WHOLE, exact=True, smoke=False),
    BORDER.but("exact-around", quarters=True, pool_size=4, starts=(-2, 4), domains=WHOLE, exact=True, smoke=False),
    BORDERED.but("two-points", pool_size=1),
    BORDERED.but("many-points", pool_size=10, shape=(1, 2, 3, 3)),
    BORDERED.but("small-boxes", extent=(0.05, 0.4)),
    BORDERED.but("large-boxes", starts=(-3, 0), extent=(3, 7)),
    BORDERED.but("without-extent", extent=(0, 0)),
    BORDERED.but("inverted", starts=(1, 3), extent=(-2, 1)),
    BORDERED.but("one-channel", shape=(3, 1, 2, 5)),
    BORDERED.but("many-channels", shape=(1, 9, 2, 3)),
    BORDERED.but("one-place", shape=(4, 2, 1, 1), starts=(-0.4, 0.2), extent=(0.1, 0.6)),
    BORDERED.but("strided", **throughout(strided)),
    BORDERED.but("transposed", layout=transposed, result=strided),
    BORDERED.but("long", shape=(1, 5, 11, 10), pool_size=5, starts=(-0.5, 8)),
    BORDERED.but("no-images", shape=(0, 2, 3, 4)),
    BORDERED.but("no-channels", shape=(2, 0, 3, 4)),
)

register(
    "diopiBorderAlignMmcv",
    "diopiBorderAlignBackwardMmcv",
    templates=BORDERS,
    derive=border,
    weak={"without-extent|one-place": "all points of a border have one value"},
)
