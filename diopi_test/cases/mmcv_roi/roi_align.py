"""Cases of RoiAlign, which takes the mean or the maximum of the samples of each bin, and of its gradient.

A bin is a part of a region. A sample is a point of a bin at which the function interpolates the features. A template
describes cases that differ only in their element type (`diopi_test.cases.template`).

A template describes cases that differ only in their element type (`diopi_test.cases.template`). Smoke cases belong to
the shortest level of the suite. Large cases belong to a level with the sizes of real models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOf, ResultOverride
from diopi_test.cases.detection import EDGE_REGIONS
from diopi_test.cases.domains import distinct, half_nan
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_roi.regions import (
    EXACT_REGIONS,
    FLAT_REGIONS,
    MAXIMUM,
    MEAN,
    NONZERO_INTEGERS,
    PYRAMID,
    REGION_LEADING,
    REGION_SMOKE,
    Regions,
    shared_arguments,
)
from diopi_test.cases.template import CaseTemplate, TensorTemplate, register, same_layout, tensor


def _position_tensor(sizes: Regions, result: str) -> TensorTemplate:
    """Return the argument of the gradient with the positions of maxima.

    Args:
        sizes: The sizes of the call.
        result: The name of the positions: "argmax_y" or "argmax_x".

    Returns:
        For means, a tensor that the function ignores, which is empty unless `has_argmax_tensors` is true. For maxima, a
        tensor that the forward function computes.
    """
    if sizes.pool_mode == MEAN and not sizes.has_argmax_tensors:
        return tensor(0)
    if sizes.pool_mode == MEAN:
        return tensor(*sizes.result_shape)
    return tensor(*sizes.result_shape, compute=ResultOf("diopiRoiAlignMmcv", result, {"input": "_input"}))


def align_arguments(template: CaseTemplate[Regions], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiRoiAlignMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to the gradient.
        dtype: Not used; all tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    return {
        **shared_arguments(template),
        "aligned_height": sizes.bins[0],
        "aligned_width": sizes.bins[1],
        "sampling_ratio": sizes.ratio,
        "pool_mode": sizes.pool_mode,
        "aligned": sizes.aligned,
        "argmax_y": _position_tensor(sizes, "argmax_y"),
        "argmax_x": _position_tensor(sizes, "argmax_x"),
    }


MAXIMUM_SMOKE = REGION_SMOKE.with_sizes("maximum", pool_mode=MAXIMUM, features=distinct)
"""A template of maxima of the samples: smoke cases in every element type."""


def position_overrides(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return overrides of the positions of maxima as results, for calls that compute means.

    Args:
        shape: The shape of both results.

    Returns:
        The overrides by result name.
    """
    return dict.fromkeys(("argmax_y", "argmax_x"), ResultOverride(shape=shape))


MEAN_TEMPLATES = (
    REGION_LEADING.with_sizes("one-sample", bins=(3, 1), ratio=1),
    REGION_LEADING.with_sizes("one-element", shape=(1, 2, 1, 1), extent=(0.2, 0.6)),
    REGION_LEADING.with_sizes("no-regions", regions=0),
    REGION_LEADING.with_sizes("undefined", extent=(0.2, 0.8), starts=(0.1, 0.4), features=half_nan),
    REGION_LEADING.replace("channels-last", **same_layout(channels_last)),
    REGION_LEADING.with_sizes("places-not-wanted", has_argmax_tensors=True).replace(
        results=position_overrides((3, 2, 2, 3)), smoke=True
    ),
)
"""Templates of means of the samples, but not of maxima."""

BOTH_MODES_TEMPLATES = (
    REGION_LEADING.with_sizes("adaptive", shape=(2, 1, 5, 4), ratio=0),
    REGION_LEADING.with_sizes(
        "adaptive-unaligned", bins=(3, 2), scale=0.25, ratio=-1, aligned=False, extent=(0.5, 3.5)
    ),
    REGION_LEADING.with_sizes("adaptive-flat", fixed_regions=FLAT_REGIONS, ratio=0),
    REGION_LEADING.with_sizes("three-samples", bins=(1, 2), scale=2.0, ratio=3),
    REGION_LEADING.with_sizes("smaller-than-one", regions=5, aligned=False, extent=(0.05, 0.25)),
    REGION_LEADING.with_sizes("beyond-the-features", regions=6, extent=(2, 6)),
    REGION_LEADING.with_sizes("scaled-by-tenths", bins=(3, 2), scale=0.3),
    REGION_LEADING.with_sizes("many-channels", shape=(2, 9, 5, 4), regions=4),
    REGION_LEADING.with_sizes("transposed", shape=(3, 2, 5, 4), regions=4).replace(
        layout=transposed, result_layout=strided
    ),
)
"""Templates that means and maxima have."""

EXACT_EDGES = EXACT_REGIONS.with_sizes(
    "exact-edges", shape=(2, 3, 5, 4), bins=(2, 3), scale=1.0, ratio=1, fixed_regions=EDGE_REGIONS
)
"""A template of regions whose samples lie at the edges of the features, at positions with exact interpolation."""

LONG_TEMPLATE = REGION_LEADING.with_sizes("long", shape=(2, 8, 6, 7), bins=(3, 2), regions=9, ratio=0)
"""A template of many regions and channels."""

UNALIGNED_TEMPLATE = REGION_SMOKE.with_sizes("unaligned", shape=(2, 1, 4, 5), scale=0.5, aligned=False).replace(
    smoke=False, **same_layout(strided)
)
"""A template of regions that are not moved by half a cell (`aligned` is false)."""


def maximum_templates(templates: Sequence[CaseTemplate[Regions]]) -> list[CaseTemplate[Regions]]:
    """Return copies of templates that compute maxima of features that are all different.

    Args:
        templates: The templates.

    Returns:
        The copies, with "maximum-" before their labels.
    """
    return [
        template.with_sizes(f"maximum-{template.label}", pool_mode=MAXIMUM, features=distinct) for template in templates
    ]


ALL_BOTH_MODES_TEMPLATES = (
    EXACT_REGIONS.replace(domains=NONZERO_INTEGERS, exact=True),
    EXACT_EDGES.replace(domains=NONZERO_INTEGERS, exact=True),
    UNALIGNED_TEMPLATE,
    *BOTH_MODES_TEMPLATES,
    LONG_TEMPLATE,
)
"""All templates that means and maxima have, including the exact templates."""

LARGE_MAXIMUM = PYRAMID.with_sizes("maximum", pool_mode=MAXIMUM, features=distinct, regions=17)
"""A large template of maxima."""

ALIGN_TEMPLATES = (
    REGION_SMOKE,
    MAXIMUM_SMOKE,
    *MEAN_TEMPLATES,
    *ALL_BOTH_MODES_TEMPLATES,
    *maximum_templates(ALL_BOTH_MODES_TEMPLATES),
    PYRAMID,
    LARGE_MAXIMUM,
)
"""The templates of RoiAlign and of its gradient."""

register("diopiRoiAlignMmcv", "diopiRoiAlignBackwardMmcv", templates=ALIGN_TEMPLATES, derive=align_arguments)
