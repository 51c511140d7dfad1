"""Cases of DeformRoiPool, which moves the samples of each bin by offsets, and of its gradient.

A bin is a part of a region. A sample is a point of a bin at which the function interpolates the features. A template
describes cases that differ only in their element type (`diopi_test.cases.template`).

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A case does not pass
arguments whose names start with `_`; it computes other arguments from them. Smoke cases belong to the shortest level of
the suite. The leading element type is float32, or the first type of a function without float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.case import Values
from diopi_test.cases.domains import half_nan, integer_values, uniform
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_roi.regions import FLAT_REGIONS, NONZERO_INTEGERS, REGION_LEADING, Regions, shared_arguments
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True)
class GridRegions(Regions):
    """Regions with bins of whole cells, whose samples are inside the features and between the cells.

    The derivatives of the samples jump at the positions of cells. The gradient of DeformRoiPool therefore uses these
    regions.
    """

    def _regions(self, values: Values) -> Any:
        """Return the regions as rows (image, x1, y1, x2, y2).

        Args:
            values: The values of earlier arguments: `_starts` contains the begin of each region as a fraction of the
                features, and `_sizes` the size of its bins in cells.

        Returns:
            An array of the shape (regions, 5).
        """
        low = np.floor(values["_starts"] * np.array(self.shape[:1:-1])) + 0.5
        high = low + np.floor(values["_sizes"]) * np.array(self.bins[::-1])
        samples = np.arange(self.region_count)[::-1, np.newaxis] % self.shape[0]
        return np.concatenate([samples, low / self.scale, high / self.scale], -1)


def deform_arguments(template: CaseTemplate[Regions], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiDeformRoiPoolMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to gradients.
        dtype: Not used; all tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    shape = (sizes.region_count, 2, *sizes.bins)
    offset = None if sizes.offset is None else tensor(*shape, domain=sizes.offset, layout=template.layout)
    return {
        **shared_arguments(template),
        "offset": offset,
        "grad_offset": None if offset is None else zeros(*shape, layout=template.result_layout),
        "sampling_ratio": sizes.ratio,
        "gamma": sizes.gamma,
    }


GRID_SMOKE = CaseTemplate(
    "shifted",
    GridRegions(shape=(2, 2, 7, 8), bins=(2, 2), extent=(1, 3), starts=(0, 0.25), gamma=0.03125, offset=uniform(-1, 1)),
    **SMOKE_IN_ALL_DTYPES,
)
"""A template of regions of whole cells: smoke cases in every element type."""

GRID_LEADING = GRID_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template of regions of whole cells, in the leading element type and without smoke cases."""

EMPTY_OFFSETS = {"offset": tensor(0), "grad_offset": zeros(0)}
"""Arguments with offsets that have no elements."""

THREE_CELLS: Mapping[str, Any] = {"shape": (2, 2, 8, 9), "extent": (3, 4), "starts": (0, 0.12), "gamma": 0.015625}
"""Sizes for which bins are three cells long, so that the mean depends on the number of samples."""

SHIFTED_TEMPLATES = (
    GRID_SMOKE,
    GRID_SMOKE.with_sizes("exact", scale=0.5, gamma=0.25, extent=(2, 3), offset=integer_values(-1, 1)).replace(
        domains=NONZERO_INTEGERS, exact=True, smoke=False
    ),
    GRID_SMOKE.with_sizes("without-offset", offset=None).replace(smoke=False, layout=strided, result_layout=transposed),
    GRID_LEADING.replace("offset-without-elements", arguments=EMPTY_OFFSETS),
    GRID_LEADING.with_sizes("one-sample", ratio=1, **THREE_CELLS),
    GRID_LEADING.with_sizes("three-samples", ratio=3, **THREE_CELLS),
    GRID_LEADING.with_sizes("adaptive", ratio=0, bins=(3, 2), shape=(2, 1, 9, 7), gamma=0.015625),
    GRID_LEADING.with_sizes("halved", scale=0.5, bins=(1, 3), shape=(2, 2, 6, 9)),
    GRID_LEADING.with_sizes("doubled", scale=2.0, bins=(3, 1), shape=(2, 2, 10, 6)),
    GRID_LEADING.with_sizes("other-way", gamma=-0.03125),
    GRID_LEADING.with_sizes("many-channels", shape=(2, 9, 7, 7)),
    GRID_LEADING.with_sizes("one-bin", bins=(1, 1), regions=6),
    GRID_LEADING.replace("channels-last", **same_layout(channels_last)),
    GRID_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    GRID_LEADING.with_sizes("long", shape=(2, 8, 12, 13), bins=(3, 4), regions=9, gamma=0.015625),
    GRID_LEADING.with_sizes("no-regions", regions=0),
    GRID_LEADING.with_sizes("pyramid", shape=(2, 37, 31, 33), bins=(5, 7), regions=41, gamma=0.0078125).replace(
        large=True
    ),
)
"""The templates of the function and of its gradient. All samples are inside the features and between the cells."""

ANYWHERE_TEMPLATE = REGION_LEADING.with_sizes("anywhere", extent=(0.5, 3), offset=uniform(-2, 2), gamma=0.25)
"""A template of regions whose shifted samples may lie outside the features."""

ANYWHERE_TEMPLATES = (
    ANYWHERE_TEMPLATE,
    ANYWHERE_TEMPLATE.with_sizes("anywhere-adaptive", ratio=-1, scale=0.3, bins=(3, 2)),
    ANYWHERE_TEMPLATE.with_sizes("anywhere-flat", fixed_regions=FLAT_REGIONS, ratio=0),
    ANYWHERE_TEMPLATE.with_sizes("undefined", extent=(0.2, 0.8), starts=(0.1, 0.4), features=half_nan),
)
"""Templates of the function, but not of its gradient: samples may lie anywhere, also outside the features."""

register("diopiDeformRoiPoolMmcv", templates=(*SHIFTED_TEMPLATES, *ANYWHERE_TEMPLATES), derive=deform_arguments)
register(
    "diopiDeformRoiPoolBackwardMmcv",
    templates=SHIFTED_TEMPLATES,
    derive=deform_arguments,
    non_discriminating={"without-offset|offset-without-elements": "the gradient by input does not depend on input"},
)
