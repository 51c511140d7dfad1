"""Cases of non-maximum suppression of boxes, and of pooling in regions of interest (RoI align).

A template describes cases that differ only in their element type. A domain is a distribution or a set of values, from
which the elements of a tensor are drawn. A case is non-discriminating if an implementation with a coarse error passes
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.case import Values
from diopi_test.cases.domains import Domain, choice, distinct, half_nan, integer_values, uniform
from diopi_test.cases.layouts import Layout, channels_last, contiguous, strided, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    TensorTemplate,
    register,
    tensor,
)

F16, F32, F64 = Dtype.float16, Dtype.float32, Dtype.float64
"""The element types of some templates."""

# Boxes


def _boxes(values: Values) -> Any:
    """Return the boxes for the values of the arguments `_corners` and `_extents`.

    Args:
        values: The values of the arguments by name. `_corners` has rows (x1, y1), and `_extents` has rows (width,
            height).

    Returns:
        An array with rows (x1, y1, x2, y2).
    """
    return np.concatenate([values["_corners"], values["_corners"] + values["_extents"]], -1)


def boxes_template(
    label: str,
    count: int,
    threshold: float,
    extents: tuple[int, int] = (1, 7),
    confidence: Domain = distinct,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of non-maximum suppression of random boxes.

    Unless the template has other domains, the coordinates are small integers, so that every element type represents the
    areas exactly.

    Args:
        label: The label of the cases without the element type.
        count: The number of boxes.
        threshold: The overlap (intersection over union) above which a box is suppressed.
        extents: The minimum and maximum width and height.
        confidence: The domain of the confidences of the boxes.
        **fields: Further fields of the template. `layout` is the layout of the boxes.

    Returns:
        The template.
    """
    layout = fields.get("layout", contiguous)
    arguments: Arguments = {
        "_corners": tensor(count, 2, domain=integer_values(-2, 4), dtype=F64),
        "_extents": tensor(count, 2, domain=integer_values(*extents), dtype=F64),
        "boxes": tensor(count, 4, layout=layout, compute=_boxes),
        "confidence": tensor(count, domain=confidence, layout=contiguous if layout is contiguous else strided),
        "iou_threshold": threshold,
    }
    return CaseTemplate(label, arguments=arguments, **fields)


def half_box_template(label: str, threshold: float) -> CaseTemplate:
    """Return a template of non-maximum suppression of two boxes whose overlap (intersection over union) is exactly 0.5.

    Args:
        label: The label of the case without the element type.
        threshold: The overlap above which a box is suppressed.

    Returns:
        The template.
    """
    arguments: Arguments = {
        "boxes": tensor(2, 4, compute=lambda values: [[1, 1, 3, 2], [1, 1, 2, 2]]),
        "confidence": tensor(2, compute=lambda values: [0.25, 0.75]),
        "iou_threshold": threshold,
    }
    return CaseTemplate(label, arguments=arguments)


SCATTERED_CORNERS = {"_corners": integer_values(-60, 60)}
"""The domain of corners that are so far apart that few boxes overlap."""

SUPPRESSIONS = (
    boxes_template("half", 30, 0.5, dtypes=DtypeSelection.all, smoke=True),
    boxes_template("quarter", 15, 0.25, layout=strided, dtypes=DtypeSelection.all),
    boxes_template("equal-confidence", 14, 0.25, confidence=choice([0.25, 0.5]), dtypes=DtypeSelection.all),
    boxes_template("tenth", 16, 0.11, layout=transposed),
    boxes_template("high", 20, 0.7, (4, 6)),
    boxes_template("zero", 12, 0.0),
    boxes_template("one", 12, 1.0, (1, 2)),
    boxes_template("without-area", 40, 0.25, (0, 2)),
    boxes_template("single", 1, 0.5),
    boxes_template("none", 0, 0.5),
    boxes_template("long", 120, 0.37, dtypes=(F32, F64)),
    half_box_template("not-above", 0.5),
    half_box_template("just-above", 0.499),
    boxes_template("many", 2053, 0.37, domains=SCATTERED_CORNERS, large=True),
    boxes_template("half", 517, 0.25, layout=strided, domains=SCATTERED_CORNERS, dtypes=(F16,), large=True),
)
"""The templates of non-maximum suppression."""

ALL_KEPT_REASONS = {
    "one": "no overlap exceeds the threshold 1",
    "single": "a single box is always kept",
    "not-above": "both boxes are kept, as if they did not overlap",
}
"""The reasons why cases are non-discriminating, by label."""

register("diopiNms", templates=SUPPRESSIONS, non_discriminating=ALL_KEPT_REASONS)


# Regions


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """The sizes and attributes of a call that pools features in regions of interest.

    Attributes:
        shape: The shape of the features: samples, channels, height and width.
        bins: The numbers of bins into which a region is divided along the height and along the width. The function
            averages the features in each bin.
        regions: The number of regions.
        scale: The argument spatial_scale, by which the coordinates of regions are multiplied.
        ratio: The argument sampling_ratio: the number of points per bin and axis at which the function samples the
            features. If it is not positive, the number depends on the size of the region.
        aligned: The argument aligned: whether coordinates are shifted by half an element.
        extent: The minimum and maximum size of a random region, in elements per bin.
        starts: The minimum and maximum coordinate at which a random region starts, as a fraction of the size of the
            features.
    """

    shape: tuple[int, int, int, int] = (2, 2, 6, 5)
    bins: tuple[int, int] = (2, 3)
    regions: int = 3
    scale: float = 1.0
    ratio: int = 2
    aligned: bool = True
    extent: tuple[float, float] = (0.5, 2.5)
    starts: tuple[float, float] = (-0.2, 0.7)

    def random_regions(self, layout: Layout) -> Mapping[str, TensorTemplate]:
        """Return the argument `rois`, which contains random regions, and the tensors from which it is computed.

        Args:
            layout: The layout of `rois`.

        Returns:
            The tensor templates by name.
        """
        return {
            "_starts": tensor(self.regions, 2, domain=uniform(*self.starts), dtype=F64),
            "_sizes": tensor(self.regions, 2, domain=uniform(*self.extent), dtype=F64),
            "rois": tensor(self.regions, 5, layout=layout, compute=self._regions),
        }

    def _regions(self, values: Values) -> Any:
        """Return the regions, as rows (sample, x1, y1, x2, y2), for the values of the arguments `_starts` and `_sizes`.

        If `ratio` is 0 or negative, the number of sampled points depends on the size of a region. The sizes then keep
        away from integers per bin, at which this number changes.
        """
        sizes = values["_sizes"]
        if self.ratio <= 0:
            sizes = np.floor(sizes) + 0.3 + 0.4 * (sizes % 1)
        low = values["_starts"] * np.array(self.shape[:1:-1])
        corners = np.concatenate([low, low + sizes * np.array(self.bins[::-1])], -1) / self.scale
        samples = np.arange(self.regions)[::-1, np.newaxis] % self.shape[0]
        return np.concatenate([samples, corners], -1)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Return the arguments that are not tensors, for the function and its gradient."""
        sizes = dict(zip(("batch_size", "channels", "height", "width"), self.shape, strict=True))
        bins = {"pooled_height": self.bins[0], "pooled_width": self.bins[1]}
        return {"spatial_scale": self.scale, **bins, **sizes, "sampling_ratio": self.ratio, "aligned": self.aligned}


def pooling_template(
    label: str,
    sizes: Pooling,
    *,
    rois: Layout = contiguous,
    regions_of_interest: Sequence[Sequence[float]] | None = None,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of RoI align and of its gradient.

    Args:
        label: The label of the cases without the element type.
        sizes: The sizes and attributes of the call.
        rois: The layout of random regions.
        regions_of_interest: The regions, as rows (sample, x1, y1, x2, y2); None for random regions.
        **fields: Further fields of the template. `layout` is the layout of the other tensors.

    Returns:
        The template.
    """
    layout = fields.get("layout", contiguous)
    regions = (
        {"rois": tensor(sizes.regions, 5, compute=lambda values: regions_of_interest)}
        if regions_of_interest
        else sizes.random_regions(rois)
    )
    tensors = {
        "input": tensor(*sizes.shape, layout=layout),
        "grad": tensor(sizes.regions, sizes.shape[1], *sizes.bins, layout=layout),
    }
    arguments: Arguments = {**tensors, **regions, **sizes.attributes}
    return CaseTemplate(label, arguments=arguments, result_layout=layout).replace(**fields)


SMALL_INTEGERS = dict.fromkeys(("input", "grad"), integer_values(-4, 4))
"""Domains of features and gradients: small integers, whose averages are exact."""

EXACT_FIELDS: Mapping[str, Any] = {"domains": SMALL_INTEGERS, "dtypes": DtypeSelection.all, "exact": True}
"""Fields of templates without rounding errors."""

HALF_ELEMENT_REGIONS = [1, 0, 2, 8, 10], [0, 4, 2, 8, 6]
"""Two regions, as rows (sample, x1, y1, x2, y2), whose sampled points lie at multiples of half an element."""

EDGE_REGIONS = [1, -2.25, -4, 5.25, 8], [0, -2.25, -4, 5.25, 8]
"""Two regions whose sampled points lie at −1 and at the size of each axis, and between them.

Points further outside do not contribute to the result.
"""

POOLINGS = (
    pooling_template("aligned", Pooling(shape=(2, 2, 4, 5)), **SMOKE_IN_ALL_DTYPES),
    pooling_template(
        "unaligned",
        Pooling(shape=(2, 1, 4, 5), scale=0.5, aligned=False),
        layout=strided,
        rois=strided,
        **SMOKE_IN_ALL_DTYPES,
    ),
    pooling_template("adaptive", Pooling(shape=(2, 1, 5, 4), ratio=0), **SMOKE_IN_ALL_DTYPES),
    pooling_template(
        "adaptive-unaligned", Pooling(bins=(3, 2), scale=0.25, ratio=-1, aligned=False, extent=(0.5, 3.5))
    ),
    pooling_template("adaptive-small", Pooling(bins=(2, 1), regions=5, ratio=0, extent=(0.0, 1.0))),
    pooling_template("one-sample", Pooling(bins=(3, 1), ratio=1)),
    pooling_template("three-samples", Pooling(bins=(1, 2), scale=2.0, ratio=3)),
    pooling_template("one-bin", Pooling(bins=(1, 1), extent=(1, 4))),
    pooling_template("smaller-than-one", Pooling(regions=5, aligned=False, extent=(0.05, 0.25))),
    pooling_template("smaller-than-one-aligned", Pooling(regions=5, extent=(0.05, 0.25))),
    pooling_template("channels-last", Pooling(shape=(2, 3, 5, 7)), layout=channels_last, rois=transposed),
    pooling_template("transposed", Pooling(shape=(3, 2, 5, 4), regions=4), layout=transposed),
    pooling_template("beyond-the-features", Pooling(regions=6, extent=(2, 6))),
    pooling_template("one-element", Pooling(shape=(1, 2, 1, 1), extent=(0.2, 0.6))),
    pooling_template("no-regions", Pooling(regions=0)),
    pooling_template("scaled-by-tenths", Pooling(bins=(3, 2), scale=0.3)),
    pooling_template("long", Pooling(shape=(2, 8, 6, 7), bins=(3, 2), regions=9, ratio=0)),
    pooling_template(
        "exact",
        Pooling(shape=(2, 5, 5, 6), bins=(2, 1), regions=2, scale=0.5, aligned=False),
        regions_of_interest=HALF_ELEMENT_REGIONS,
        **EXACT_FIELDS,
    ),
    pooling_template(
        "exact-edges",
        Pooling(shape=(2, 3, 5, 4), regions=2, ratio=1, aligned=False),
        regions_of_interest=EDGE_REGIONS,
        **EXACT_FIELDS,
    ),
    pooling_template("pyramid", Pooling(shape=(2, 37, 29, 31), bins=(7, 7), regions=67), large=True),
    pooling_template(
        "half-unaligned",
        Pooling(shape=(3, 131, 13, 11), bins=(3, 5), regions=41, scale=0.25, aligned=False),
        dtypes=(F16,),
        large=True,
    ),
)
"""The templates of RoI align and of its gradient."""

NAN_SAMPLE = pooling_template("undefined", Pooling(extent=(0.2, 0.8), starts=(0.1, 0.4)), domains={"input": half_nan})
"""A template in which one of two samples contains only NaN, and all regions lie inside the samples."""

register("diopiRoiAlign", templates=(NAN_SAMPLE, *POOLINGS))
register("diopiRoiAlignBackward", templates=POOLINGS)
