"""Cases of precise RoI pooling, and of its gradients by the features and by the regions.

Precise pooling integrates the interpolated features over each bin of a region. A template describes cases that differ
only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOf
from diopi_test.cases.domains import alternating_rows, uniform
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_roi.regions import (
    EXACT_REGIONS,
    INVERTED_REGIONS,
    NONZERO_INTEGERS,
    PYRAMID,
    REGION_LEADING,
    REGION_SMOKE,
    Regions,
    shared_arguments,
)
from diopi_test.cases.template import CaseTemplate, register, same_layout, tensor
from diopi_test.cases.tensors import zeros


def prroi_pool_arguments(template: CaseTemplate[Regions], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiPrroiPoolMmcv` and its gradients for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to gradients.
        dtype: Not used; all tensors have the type under test.

    Returns:
        The arguments by name, for all three functions. The forward function computes `output` for the gradients.
    """
    sizes = template.sizes
    forward = ResultOf("diopiPrroiPoolMmcv", "output")
    return {
        **shared_arguments(template),
        "output": tensor(*sizes.result_shape, layout=template.layout, compute=forward),
        "grad_rois": zeros(sizes.region_count, 5, layout=template.result_layout),
    }


WHOLE_CELL_REGIONS = [1, 0, 0, 8, 4], [0, 2, -2, 6, 6]
"""Regions (image, x1, y1, x2, y2) whose bins consist of whole cells at the scale 0.5, so that results are exact."""

LONG_REGION, RISING_FEATURES = (
    ([0, 1.25, 0, 380, 1],),
    alternating_rows(800, uniform(0.5, 0.75), uniform(1, 1.5), uniform(2, 3)),
)
"""A region of 380 cells, and a domain of features that rise from channel group to channel group.

The long sum of the region reveals a vendor that accumulates in half precision.
"""

PRROI_TEMPLATES = (
    REGION_SMOKE,
    EXACT_REGIONS.with_sizes(
        "exact", shape=(2, 3, 5, 6), bins=(2, 2), scale=0.5, fixed_regions=WHOLE_CELL_REGIONS
    ).replace(domains=NONZERO_INTEGERS, exact=True),
    REGION_SMOKE.with_sizes("halved", scale=0.5, bins=(3, 2)).replace(
        smoke=False, layout=strided, result_layout=transposed
    ),
    REGION_LEADING.with_sizes("tenths", scale=0.3, bins=(3, 2)),
    REGION_LEADING.with_sizes("doubled", scale=2.0, bins=(1, 3)),
    REGION_LEADING.with_sizes("within-cells", extent=(0.1, 0.4), regions=5),
    REGION_LEADING.with_sizes("beyond-the-features", regions=6, extent=(2, 6)),
    REGION_LEADING.with_sizes("inverted", fixed_regions=INVERTED_REGIONS),
    REGION_LEADING.with_sizes("one-element", shape=(1, 2, 1, 1), extent=(0.2, 0.6)),
    REGION_LEADING.with_sizes("one-bin", bins=(1, 1), extent=(1, 4), regions=5),
    REGION_LEADING.with_sizes("many-channels", shape=(2, 9, 5, 4)),
    REGION_LEADING.with_sizes("width-of-16", shape=(2, 2, 4, 16)),
    REGION_LEADING.replace("channels-last", **same_layout(channels_last)),
    REGION_LEADING.with_sizes("transposed", shape=(3, 2, 5, 4)).replace(layout=transposed, result_layout=strided),
    REGION_LEADING.with_sizes("long", shape=(2, 8, 12, 13), bins=(3, 4), regions=9, extent=(1, 3)),
    REGION_LEADING.with_sizes(
        "long-sum", shape=(1, 24, 2, 400), bins=(1, 1), fixed_regions=LONG_REGION, features=RISING_FEATURES
    ).replace(dtypes=half),
    REGION_LEADING.with_sizes("no-regions", regions=0),
    PYRAMID,
)
"""The templates of precise pooling and of both gradients."""

register(
    "diopiPrroiPoolMmcv",
    "diopiPrroiPoolbackwardMmcv",
    "diopiPrroiPoolCoorBackwardMmcv",
    templates=PRROI_TEMPLATES,
    derive=prroi_pool_arguments,
)
