"""Large cases of boxes in space."""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.domains import uniform
from diopi_test.cases.large.mmcv_box import nested
from diopi_test.cases.mmcv_box3d.containment import containment
from diopi_test.cases.mmcv_box3d.overlaps import seen_from_above
from diopi_test.cases.mmcv_box3d.pooling import MIXED, pooling, sampling
from diopi_test.cases.mmcv_box3d.shapes import ANGLES, boxes
from diopi_test.cases.model import LARGE, Values
from diopi_test.cases.template import CaseTemplate, register, tensor


def _lift_to_space(values: Values) -> Any:
    """Return the boxes seen from above with arbitrary positions and sizes in z."""
    (x, y, w, h, angle), z = values["_seen"].T, values["_heights"].T
    return np.stack([x, y, z[0], w, h, z[1], angle], -1)


NESTED = CaseTemplate(
    "many",
    arguments={
        "_seen": tensor(1023, 5, domain=nested, dtype=Dtype.float64),
        "_heights": tensor(1023, 2, domain=uniform(1, 3), dtype=Dtype.float64),
        "boxes": tensor(1023, 7, compute=_lift_to_space),
        "nms_overlap_thresh": 0.6,
    },
)

register(
    "diopiIou3dBoxesOverlapBevMmcv",
    templates=(seen_from_above("many", 67, 61, boxes(uniform(0, 300), uniform(4, 16), ANGLES)),),
    level=LARGE,
)
register("diopiIou3dNms3dMmcv", "diopiIou3dNms3dNormalMmcv", templates=(NESTED,), level=LARGE)
register("diopiPointsInBoxesPartMmcv", templates=(containment("many", 2, 9, 11_003),), level=LARGE)
register("diopiPointsInBoxesAllMmcv", templates=(containment("many", 2, 9, 3701, per_box=True),), level=LARGE)
for backward, function in ((False, "diopiRoiawarePool3dMmcv"), (True, "diopiRoiawarePool3dBackwardMmcv")):
    register(
        function,
        templates=[
            pooling(label, 5, 1201, 61, (6, 5, 4), 16, method, backward=backward)
            for label, method in (("maximum", 0), ("mean", 1))
        ],
        level=LARGE,
    )
register("diopiRoipointPool3dMmcv", templates=(sampling("many", 3, 17, 601, 37, 64, MIXED),), level=LARGE)
