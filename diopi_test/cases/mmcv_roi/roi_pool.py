"""Cases of RoiPool, which takes the maximum of the cells of each bin, and of its gradient.

A bin is a part of a region. Unlike RoiAlign, RoiPool does not interpolate: a bin covers whole cells of the features. A
template describes cases that differ only in their element type (`diopi_test.cases.template`).

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
from diopi_test.cases.case import ResultOf, Values
from diopi_test.cases.domains import distinct, integer_values
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_roi.regions import I32, INVERTED_REGIONS, NONZERO_INTEGERS, Regions, shared_arguments
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True)
class CellRegions(Regions):
    """Regions whose bins have no edge near an edge of a cell.

    Near an edge of a cell, rounding could change which cells a bin covers.
    """

    def _regions(self, values: Values) -> Any:
        """Return the regions as rows (image, x1, y1, x2, y2).

        Args:
            values: The values of earlier arguments: `_starts` contains the begin of each region as a fraction of the
                features, and `_sizes` the size of its bins in cells.

        Returns:
            An array of the shape (regions, 5).
        """
        low = np.floor(values["_starts"] * np.array(self.shape[:1:-1])) + 0.2
        widths = np.floor(values["_sizes"]) + 0.25 * np.ceil(3 * (values["_sizes"] % 1))
        high = low + widths * np.array(self.bins[::-1])
        samples = np.arange(self.region_count)[::-1, np.newaxis] % self.shape[0]
        return np.concatenate([samples, low / self.scale, high / self.scale - 1], -1)


def pool_arguments(template: CaseTemplate[Regions], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiRoiPoolMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to results.
        dtype: Not used; floating-point tensors have the type under test.

    Returns:
        The arguments by name. The results contain zeros before the call.
    """
    sizes = template.sizes
    results = {
        name: zeros(*sizes.result_shape, dtype=dtype, layout=template.result_layout)
        for name, dtype in RESULT_DTYPES.items()
    }
    return {**shared_arguments(template), **results}


RESULT_DTYPES = {"output": None, "argmax": I32}
"""By result of the forward function, its element type; None stands for the type of the input."""


def pool_backward_arguments(template: CaseTemplate[Regions], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiRoiPoolBackwardMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to the gradient.
        dtype: Not used; floating-point tensors have the type under test.

    Returns:
        The arguments by name. The forward function computes `argmax`, the positions of the maxima.
    """
    sizes = template.sizes
    forward = ResultOf(
        "diopiRoiPoolMmcv",
        "argmax",
        {"input": "_input"},
        extra_arguments=dict.fromkeys(RESULT_DTYPES, np.zeros(sizes.result_shape)),
    )
    return {**shared_arguments(template), "argmax": tensor(*sizes.result_shape, dtype=I32, compute=forward)}


CELLS_SMOKE = CaseTemplate("cells", CellRegions(shape=(2, 2, 5, 6), features=distinct), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes and features that are all different: smoke cases in every element type."""

CELLS_LEADING = CELLS_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

CELL_EDGE_REGIONS = [1, 0, 0, 7, 3], [0, 2, 0, 5, 7], [1, -4, -4, 1, 9]
"""Regions (image, x1, y1, x2, y2) of whole cells.

The bins of the first two regions begin and end exactly at edges of cells. The last region is partly outside of the
features.
"""

POOL_TEMPLATES = (
    CELLS_SMOKE,
    CELLS_SMOKE.with_sizes("whole-cells", shape=(2, 2, 8, 8), bins=(4, 2), fixed_regions=CELL_EDGE_REGIONS).replace(
        smoke=False
    ),
    CELLS_SMOKE.with_sizes("equal-cells", features=integer_values(-1, 1), extent=(1, 3)).replace(
        smoke=False, layout=strided, result_layout=transposed
    ),
    CELLS_LEADING.with_sizes("halved", scale=0.5, extent=(1, 3.5)),
    CELLS_LEADING.with_sizes("quartered", scale=0.25, bins=(3, 2), regions=5),
    CELLS_LEADING.with_sizes("inverted", fixed_regions=INVERTED_REGIONS),
    CELLS_LEADING.with_sizes("one-bin", bins=(1, 1), extent=(2, 4), regions=6),
    CELLS_LEADING.with_sizes("more-bins-than-cells", bins=(5, 4), extent=(0.1, 0.6)),
    CELLS_LEADING.with_sizes("beyond-the-features", regions=6, starts=(-0.6, 0.9), extent=(1, 4)),
    CELLS_LEADING.with_sizes("one-cell", shape=(1, 3, 1, 1), extent=(0.3, 0.9), starts=(-0.4, 0.4)),
    CELLS_LEADING.with_sizes("many-channels", shape=(2, 9, 5, 4)),
    CELLS_LEADING.replace("channels-last", **same_layout(channels_last)),
    CELLS_LEADING.replace("strided", **same_layout(strided)),
    CELLS_LEADING.with_sizes("transposed", shape=(3, 2, 5, 4)).replace(layout=transposed, result_layout=strided),
    CELLS_LEADING.with_sizes("long", shape=(2, 8, 12, 13), bins=(3, 2), regions=9, extent=(1, 4)),
    CELLS_LEADING.with_sizes("no-regions", regions=0),
    CELLS_LEADING.with_sizes("pyramid", shape=(2, 37, 29, 31), bins=(7, 7), regions=67, extent=(1, 3)).replace(
        large=True
    ),
)
"""The templates of RoiPool and of its gradient."""

register("diopiRoiPoolMmcv", templates=POOL_TEMPLATES, derive=pool_arguments)
register(
    "diopiRoiPoolBackwardMmcv",
    templates=(
        *POOL_TEMPLATES,
        CELLS_SMOKE.with_sizes("exact", regions=6).replace(domains=NONZERO_INTEGERS, exact=True, smoke=False),
    ),
    derive=pool_backward_arguments,
    non_discriminating={
        "one-bin": "only a few cells contain a maximum",
        "one-cell": "there is a single map with a single cell",
    },
)

CaseFacts(finds_extremes=True).declare("diopiRoiPoolMmcv")
