"""Large cases of pooling regions: feature maps of a pyramid's levels, some dozens of regions."""

from collections.abc import Mapping
from typing import Any

from diopi_test.cases.domains import distinct
from diopi_test.cases.mmcv_roi.border_align import BORDERED, border
from diopi_test.cases.mmcv_roi.deform_roi_pool import GRIDS, deform
from diopi_test.cases.mmcv_roi.prroi_pool import precise
from diopi_test.cases.mmcv_roi.regions import MAXIMUM, REGIONS
from diopi_test.cases.mmcv_roi.roi_align import align
from diopi_test.cases.mmcv_roi.roi_pool import CELL, pool, pool_backward
from diopi_test.cases.model import LARGE
from diopi_test.cases.template import register

PYRAMID: Mapping[str, Any] = {"shape": (2, 37, 29, 31), "bins": (7, 7), "regions": 67}
MEAN = REGIONS.with_sizes("pyramid", **PYRAMID)
SHIFTED = GRIDS.with_sizes("pyramid", shape=(2, 37, 31, 33), bins=(5, 7), regions=41, gamma=0.0078125)
CELLS = CELL.with_sizes("pyramid", extent=(1, 3), **PYRAMID)

register(
    "diopiRoiAlignMmcv",
    "diopiRoiAlignBackwardMmcv",
    templates=(MEAN, MEAN.with_sizes("maximum", mode=MAXIMUM, features=distinct, regions=17)),
    derive=align,
    level=LARGE,
)
register("diopiRoiPoolMmcv", templates=(CELLS,), derive=pool, level=LARGE)
register("diopiRoiPoolBackwardMmcv", templates=(CELLS,), derive=pool_backward, level=LARGE)
register("diopiDeformRoiPoolMmcv", "diopiDeformRoiPoolBackwardMmcv", templates=(SHIFTED,), derive=deform, level=LARGE)
register(
    "diopiPrroiPoolMmcv",
    "diopiPrroiPoolbackwardMmcv",
    "diopiPrroiPoolCoorBackwardMmcv",
    templates=(MEAN,),
    derive=precise,
    level=LARGE,
)
register(
    "diopiBorderAlignMmcv",
    "diopiBorderAlignBackwardMmcv",
    templates=(BORDERED.with_sizes("every-place", shape=(1, 17, 31, 33), pool_size=5, starts=(-0.5, 28)),),
    derive=border,
    level=LARGE,
)
