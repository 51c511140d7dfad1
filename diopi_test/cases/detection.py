"""Boxes and regions of interest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec, Values, cases_for
from diopi_test.domains import Domain, between, choice, distinct, half_nan, normal, whole
from diopi_test.layouts import Layout, channels_last, contiguous, strided, transposed


def _boxes(values: Values) -> Any:
    return np.concatenate([values["_corners"], values["_corners"] + values["_extents"]], -1)


def _suppression(
    label: str,
    dtype: Dtype,
    n: int,
    threshold: float,
    extents: tuple[int, int] = (1, 7),
    confidence: Domain = distinct,
    layout: Layout = contiguous,
    smoke: bool = False,
) -> Case:
    """Boxes of whole numbers, whose areas all element types hold exactly."""
    arguments = {
        "_corners": TensorSpec((n, 2), Dtype.float64, whole(-2, 4)),
        "_extents": TensorSpec((n, 2), Dtype.float64, whole(*extents)),
        "boxes": TensorSpec((n, 4), dtype, layout=layout, compute=_boxes),
        "confidence": TensorSpec((n,), dtype, confidence, strided if layout is not contiguous else contiguous),
        "iou_threshold": threshold,
    }
    return Case(f"{dtype.name}-{label}", dtype, arguments, smoke=smoke)


ALL_KEPT = {
    "one": "no overlap is above the whole",
    "single": "one box is kept, wherever it is",
    "not-above": "both boxes are kept, as without an overlap",
}


@cases_for("diopiNms", weak=ALL_KEPT)
def nms(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        yield _suppression("half", dtype, 30, 0.5, smoke=True)
        yield _suppression("quarter", dtype, 15, 0.25, layout=strided)
        yield _suppression("equal-confidence", dtype, 14, 0.25, confidence=choice([0.25, 0.5]))
    yield _suppression("tenth", Dtype.float32, 16, 0.11, layout=transposed)
    yield _suppression("high", Dtype.float32, 20, 0.7, extents=(4, 6))
    yield _suppression("zero", Dtype.float32, 12, 0.0)
    yield _suppression("one", Dtype.float32, 12, 1.0, extents=(1, 2))
    yield _suppression("without-area", Dtype.float32, 40, 0.25, extents=(0, 2))
    yield _suppression("single", Dtype.float32, 1, 0.5)
    yield _suppression("none", Dtype.float32, 0, 0.5)
    yield _suppression("long", Dtype.float32, 120, 0.37)
    yield _suppression("long", Dtype.float64, 120, 0.37)
    yield _iou_of_one_half(Dtype.float32, "not-above", 0.5)
    yield _iou_of_one_half(Dtype.float32, "just-above", 0.499)


def _iou_of_one_half(dtype: Dtype, label: str, threshold: float) -> Case:
    """Two boxes of which one is half the other."""
    arguments = {
        "boxes": TensorSpec((2, 4), dtype, compute=lambda values: [[1, 1, 3, 2], [1, 1, 2, 2]]),
        "confidence": TensorSpec((2,), dtype, compute=lambda values: [0.25, 0.75]),
        "iou_threshold": threshold,
    }
    return Case(f"{dtype.name}-{label}", dtype, arguments)


@dataclass(frozen=True)
class Pooling:
    """One way of pooling regions.

    Attributes:
        label: the part of the case's label after the element type.
        shape: of the features.
        bins: along H and along W.
        regions: their number.
        scale, ratio, aligned: spatial_scale, sampling_ratio and aligned.
        extent: the least and the largest size of a region, in elements a bin.
        domain: of the features or pooled values.
        starts: the least and the largest coordinate where a region starts, in sizes of the features.
        layouts: of features or their gradient, regions, pooled values or their gradient.
        everywhere: whether all element types get it, in the smoke level too; else float32 alone does.
    """

    label: str
    shape: tuple[int, int, int, int] = (2, 2, 6, 5)
    bins: tuple[int, int] = (2, 3)
    regions: int = 3
    scale: float = 1.0
    ratio: int = 2
    aligned: bool = True
    extent: tuple[float, float] = (0.5, 2.5)
    domain: Domain = field(default_factory=normal)
    starts: tuple[float, float] = (-0.2, 0.7)
    layouts: tuple[Layout, Layout, Layout] = (contiguous, contiguous, contiguous)
    everywhere: bool = False

    @property
    def pooled(self) -> tuple[int, ...]:
        """Shape of the pooled values."""
        return (self.regions, self.shape[1], *self.bins)

    @property
    def attributes(self) -> dict[str, Any]:
        """The arguments that are no tensors, of forward and backward function."""
        n, c, h, w = self.shape
        sizes = {"batch_size": n, "channels": c, "height": h, "width": w}
        bins = {"pooled_height": self.bins[0], "pooled_width": self.bins[1]}
        rule = {"sampling_ratio": self.ratio, "aligned": self.aligned}
        return {"spatial_scale": self.scale, **bins, **sizes, **rule}

    def rois(self, dtype: Dtype) -> dict[str, TensorSpec]:
        """Regions in any sample; with ratio ≤ 0 their sizes are well away from where the number of samples jumps."""

        def regions(values: Values) -> Any:
            sizes = values["_sizes"]
            if self.ratio <= 0:
                sizes = np.floor(sizes) + 0.3 + 0.4 * (sizes % 1)
            low = values["_starts"] * np.array(self.shape[:1:-1])
            corners = np.concatenate([low, low + sizes * np.array(self.bins[::-1])], -1) / self.scale
            samples = np.arange(self.regions)[::-1, np.newaxis] % self.shape[0]
            return np.concatenate([samples, corners], -1)

        return {
            "_starts": TensorSpec((self.regions, 2), Dtype.float64, between(*self.starts)),
            "_sizes": TensorSpec((self.regions, 2), Dtype.float64, between(*self.extent)),
            "rois": TensorSpec((self.regions, 5), dtype, layout=self.layouts[1], compute=regions),
        }

    def case(self, prototype: Prototype, dtype: Dtype) -> Case:
        """The case in one element type."""
        features, _, pooled = self.layouts
        if prototype.name == "diopiRoiAlign":
            tensor = {"input": TensorSpec(self.shape, dtype, self.domain, features)}
            result = pooled
        else:
            tensor = {"grad": TensorSpec(self.pooled, dtype, self.domain, pooled)}
            result = features
        return _case(prototype, f"{dtype.name}-{self.label}", dtype, {**tensor, **self.rois(dtype)}, self, result)


def _case(
    prototype: Prototype,
    label: str,
    dtype: Dtype,
    tensors: Mapping[str, TensorSpec],
    pooling: Pooling,
    result: Layout = contiguous,
    exact: bool = False,
) -> Case:
    names = [p.name for p in prototype.arguments]
    attributes = {name: value for name, value in pooling.attributes.items() if name in names}
    out = {"out": ResultOverride(dtype, result)}
    return Case(label, dtype, {**tensors, **attributes}, out, smoke=pooling.everywhere, exact=exact)


POOLINGS = [
    Pooling("aligned", shape=(2, 2, 4, 5), everywhere=True),
    Pooling(
        "unaligned", shape=(2, 1, 4, 5), scale=0.5, aligned=False, layouts=(strided, strided, strided), everywhere=True
    ),
    Pooling("adaptive", ratio=0, shape=(2, 1, 5, 4), everywhere=True),
    Pooling("adaptive-unaligned", ratio=-1, scale=0.25, aligned=False, bins=(3, 2), extent=(0.5, 3.5)),
    Pooling("adaptive-small", ratio=0, extent=(0.0, 1.0), regions=5, bins=(2, 1)),
    Pooling("one-sample", ratio=1, bins=(3, 1)),
    Pooling("three-samples", ratio=3, bins=(1, 2), scale=2.0),
    Pooling("one-bin", bins=(1, 1), extent=(1, 4)),
    Pooling("smaller-than-one", aligned=False, extent=(0.05, 0.25), regions=5),
    Pooling("smaller-than-one-aligned", extent=(0.05, 0.25), regions=5),
    Pooling("channels-last", shape=(2, 3, 5, 7), layouts=(channels_last, transposed, channels_last)),
    Pooling("transposed", shape=(3, 2, 5, 4), regions=4, layouts=(transposed, contiguous, transposed)),
    Pooling("beyond-the-features", extent=(2, 6), regions=6),
    Pooling("one-element", shape=(1, 2, 1, 1), extent=(0.2, 0.6)),
    Pooling("no-regions", regions=0),
    Pooling("scaled-by-tenths", scale=0.3, bins=(3, 2)),
    Pooling("long", shape=(2, 8, 6, 7), regions=9, bins=(3, 2), ratio=0),
]


UNDEFINED = Pooling("undefined", domain=half_nan, starts=(0.1, 0.4), extent=(0.2, 0.8))
"""One sample of the batch all NaN, and regions inside."""


@cases_for("diopiRoiAlign", "diopiRoiAlignBackward")
def roi_align(prototype: Prototype) -> Iterator[Case]:
    if prototype.name == "diopiRoiAlign":
        yield UNDEFINED.case(prototype, Dtype.float32)
    for dtype in prototype.dtypes:
        for pooling in POOLINGS:
            if pooling.everywhere or dtype is Dtype.float32:
                yield pooling.case(prototype, dtype)
        yield _exact_case(prototype, dtype)
        yield _edges_case(prototype, dtype)


def _exact_case(prototype: Prototype, dtype: Dtype) -> Case:
    """Whole numbers, with samples at halves of an element."""
    pooling = Pooling("exact", shape=(2, 5, 5, 6), bins=(2, 1), regions=2, scale=0.5, aligned=False)
    return _given_regions(prototype, pooling, dtype, [[1, 0, 2, 8, 10], [0, 4, 2, 8, 6]])


def _edges_case(prototype: Prototype, dtype: Dtype) -> Case:
    """Samples at −1 and at the size of each axis, the last places that count, and in the middle."""
    pooling = Pooling("exact-edges", shape=(2, 3, 5, 4), bins=(2, 3), regions=2, ratio=1, aligned=False)
    return _given_regions(prototype, pooling, dtype, [[1, -2.25, -4, 5.25, 8], [0, -2.25, -4, 5.25, 8]])


def _given_regions(prototype: Prototype, pooling: Pooling, dtype: Dtype, regions: Sequence[Sequence[float]]) -> Case:
    rois = TensorSpec((pooling.regions, 5), dtype, compute=lambda values: regions)
    if prototype.name == "diopiRoiAlign":
        tensor = {"input": TensorSpec(pooling.shape, dtype, whole(-4, 4))}
    else:
        tensor = {"grad": TensorSpec(pooling.pooled, dtype, whole(-4, 4))}
    return _case(prototype, f"{dtype.name}-{pooling.label}", dtype, {**tensor, "rois": rois}, pooling, exact=True)
