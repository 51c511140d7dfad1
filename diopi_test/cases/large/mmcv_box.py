"""Large cases of boxes and polygons in the plane. Most pairs do not overlap, as in images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import distinct, integer_values, uniform
from diopi_test.cases.mmcv_box.overlaps import quadri, rotated, upright
from diopi_test.cases.mmcv_box.polygons import around, containment
from diopi_test.cases.mmcv_box.shapes import ANGLES, boxes, convex, turned
from diopi_test.cases.mmcv_box.suppression import suppression
from diopi_test.cases.mmcv_box.vertices import sorting
from diopi_test.cases.model import LARGE, Values
from diopi_test.cases.template import CaseTemplate, register, tensor

SPREAD = uniform(0, 120)

register(
    "diopiBboxOverlapsMmcv",
    templates=(
        upright("many", 311, 227, boxes(uniform(0, 60), uniform(1, 40)), offset=1),
        upright("aligned", 70_001, aligned=True),
    ),
    level=LARGE,
)
register(
    "diopiBoxIouRotatedMmcv",
    templates=(
        rotated("many", 211, 227, turned(SPREAD, uniform(2, 16), ANGLES)),
        rotated("aligned", 13_109, aligned=True),
    ),
    level=LARGE,
)
register(
    "diopiBoxIouQuadriMmcv",
    templates=(quadri("many", 211, 227, convex(SPREAD, uniform(2, 12))), quadri("aligned", 8209, aligned=True)),
    level=LARGE,
)
register(
    "diopiNmsMmcv",
    templates=(
        suppression("many", 4099, 0.37, boxes(integer_values(-90, 90), integer_values(1, 7)), exact_boxes=True),
        suppression(
            "offset", 2053, 0.41, boxes(integer_values(-60, 60), integer_values(1, 6)), offset=1, exact_boxes=True
        ),
    ),
    level=LARGE,
)


def nested(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw triples of concentric rotated boxes whose sides are in the ratio 1 : 0.9 : 0.5; triples do not overlap."""
    n = -(-count // 15)
    width = int(np.ceil(np.sqrt(n)))
    middles = 12.0 * np.stack(np.divmod(np.arange(n), width), -1) + rng.uniform(-1, 1, (n, 2))
    sides, angles = rng.uniform(3, 6, (n, 2)), rng.uniform(-3, 3, (n, 1))
    threes = [np.concatenate([middles, scale * sides, angles], 1) for scale in (1.0, 0.9, 0.5)]
    rows = np.concatenate(threes)[rng.permutation(3 * n)]
    return rows.reshape(-1)[:count]


def _order(values: Values) -> Any:
    return np.argsort(-values["scores"])


ROTATED = CaseTemplate(
    "many",
    arguments={
        "dets": tensor(1023, 5, domain=nested),
        "scores": tensor(1023, domain=distinct),
        "order": tensor(1023, dtype=Dtype.int64, compute=_order),
        "dets_sorted": tensor(1023, 5, compute=lambda values: values["dets"][values["order"]]),
        "labels": tensor(0, dtype=Dtype.int64),
        "iou_threshold": 0.6,
        "multi_label": False,
    },
)

register("diopiNmsRotatedMmcv", templates=(ROTATED,), level=LARGE)
register(
    "diopiPointsInPolygonsMmcv",
    templates=(containment("many", 1009, 67, uniform(0, 30), convex(uniform(0, 30), uniform(2, 12))),),
    level=LARGE,
)
register("diopiMinAreaPolygonsMmcv", templates=(around("many", 3643),), level=LARGE)
register("diopiConvexIouMmcv", templates=(around("many", 97, 61),), level=LARGE)
register("diopiConvexGiouMmcv", templates=(around("many", 3643, rows=True),), level=LARGE)
register(
    "diopiDiffIouRotatedSortVerticesMmcv",
    templates=(sorting("many", 7, 311, [4, 6, 3, 8, 5, 7, 2, 0]),),
    level=LARGE,
)
