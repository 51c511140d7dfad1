"""RoiAlign, of the mean and of the maximum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOf, ResultOverride
from diopi_test.cases.detection import EDGES
from diopi_test.cases.domains import distinct, half_nan
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_roi.regions import (
    EXACT,
    FLAT,
    MAXIMUM,
    MEAN,
    PYRAMID,
    REGION,
    REGIONS,
    WHOLE,
    Regions,
    common_tensors,
)
from diopi_test.cases.template import CaseTemplate, TensorTemplate, register, same_layout, tensor


def _position_tensor(sizes: Regions, result: str) -> TensorTemplate:
    """Return the tensor of the positions of maxima; it is empty, unrelated or computed by the forward function."""
    if sizes.mode == MEAN and not sizes.argmax_given:
        return tensor(0)
    if sizes.mode == MEAN:
        return tensor(*sizes.pooled)
    return tensor(*sizes.pooled, compute=ResultOf("diopiRoiAlignMmcv", result, {"input": "_input"}))


def align_arguments(template: CaseTemplate[Regions], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiRoiAlignMmcv` and its gradient from the sizes of a template."""
    sizes = template.sizes
    return {
        **common_tensors(template),
        "aligned_height": sizes.bins[0],
        "aligned_width": sizes.bins[1],
        "sampling_ratio": sizes.ratio,
        "pool_mode": sizes.mode,
        "aligned": sizes.aligned,
        "argmax_y": _position_tensor(sizes, "argmax_y"),
        "argmax_x": _position_tensor(sizes, "argmax_x"),
    }


LARGEST = REGION.with_sizes("maximum", mode=MAXIMUM, features=distinct)
"""The template that takes the maximum of the samples."""


def position_overrides(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return overrides for the shapes of the positions of maxima where there are no maxima."""
    return dict.fromkeys(("argmax_y", "argmax_x"), ResultOverride(shape=shape))


MEANS = (
    REGIONS.with_sizes("one-sample", bins=(3, 1), ratio=1),
    REGIONS.with_sizes("one-element", shape=(1, 2, 1, 1), extent=(0.2, 0.6)),
    REGIONS.with_sizes("no-regions", regions=0),
    REGIONS.with_sizes("undefined", extent=(0.2, 0.8), starts=(0.1, 0.4), features=half_nan),
    REGIONS.replace("channels-last", **same_layout(channels_last)),
    REGIONS.with_sizes("places-not-wanted", argmax_given=True).replace(
        results=position_overrides((3, 2, 2, 3)), smoke=True
    ),
)
"""Templates that take the mean of the samples."""

BOTH_MODES = (
    REGIONS.with_sizes("adaptive", shape=(2, 1, 5, 4), ratio=0),
    REGIONS.with_sizes("adaptive-unaligned", bins=(3, 2), scale=0.25, ratio=-1, aligned=False, extent=(0.5, 3.5)),
    REGIONS.with_sizes("adaptive-flat", fixed=FLAT, ratio=0),
    REGIONS.with_sizes("three-samples", bins=(1, 2), scale=2.0, ratio=3),
    REGIONS.with_sizes("smaller-than-one", regions=5, aligned=False, extent=(0.05, 0.25)),
    REGIONS.with_sizes("beyond-the-features", regions=6, extent=(2, 6)),
    REGIONS.with_sizes("scaled-by-tenths", bins=(3, 2), scale=0.3),
    REGIONS.with_sizes("many-channels", shape=(2, 9, 5, 4), regions=4),
    REGIONS.with_sizes("transposed", shape=(3, 2, 5, 4), regions=4).replace(layout=transposed, result_layout=strided),
)
"""Templates for the mean and the maximum."""

EXACT_EDGES = EXACT.with_sizes("exact-edges", shape=(2, 3, 5, 4), bins=(2, 3), scale=1.0, ratio=1, fixed=EDGES)
LONG = REGIONS.with_sizes("long", shape=(2, 8, 6, 7), bins=(3, 2), regions=9, ratio=0)
UNALIGNED = REGION.with_sizes("unaligned", shape=(2, 1, 4, 5), scale=0.5, aligned=False).replace(
    smoke=False, **same_layout(strided)
)


def maximum_templates(templates: Sequence[CaseTemplate[Regions]]) -> list[CaseTemplate[Regions]]:
    """Return the same templates for the maximum, with clearly different numbers."""
    return [template.with_sizes(f"maximum-{template.label}", mode=MAXIMUM, features=distinct) for template in templates]


TWICE = (
    EXACT.replace(domains=WHOLE, exact=True),
    EXACT_EDGES.replace(domains=WHOLE, exact=True),
    UNALIGNED,
    *BOTH_MODES,
    LONG,
)
"""Templates that are used both for the mean and for the maximum."""

LARGE_MAXIMUM = PYRAMID.with_sizes("maximum", mode=MAXIMUM, features=distinct, regions=17)
ALIGNED = (REGION, LARGEST, *MEANS, *TWICE, *maximum_templates(TWICE), PYRAMID, LARGE_MAXIMUM)

register("diopiRoiAlignMmcv", "diopiRoiAlignBackwardMmcv", templates=ALIGNED, derive=align_arguments)
