"""Points in boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.case import Values
from diopi_test.cases.domains import Domain, choice, uniform
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.mmcv_box3d.shapes import ANGLES, F64, INT32, boxes
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    register,
    tensor,
)

Array = NDArray[Any]
NEAR_FACE = 0.02
"""The least distance of points from the faces of boxes, and from those of voxels in units of a voxel's size."""


def lattice(low: int, high: int) -> Domain:
    """Return a domain of sixteenths in [low, high], which every element type represents if they are below eight."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        return rng.integers(16 * low, 16 * high, count, endpoint=True) / 16.0

    return draw


LATTICE = lattice(-3, 3)
OF_POINTS = boxes(uniform(-2, 0), uniform(3, 6), ANGLES)


def _places(points: Array, boxes: Array) -> Array:
    """Return the coordinates of points along the axes of boxes, (n, t, 3); inside a box they are between 0 and 1."""
    away = points[:, np.newaxis] - boxes[:, :3]
    cosine, sine = np.cos(boxes[:, 6]), np.sin(boxes[:, 6])
    lengthwise, across = away[..., 0] * cosine + away[..., 1] * sine, away[..., 1] * cosine - away[..., 0] * sine
    return np.asarray(np.stack([lengthwise, across, away[..., 2]], -1) / boxes[:, 3:6] + np.array([0.5, 0.5, 0]))


def _select_off_faces(points: Array, boxes: Array, grid: tuple[int, ...] = (1, 1, 1)) -> Array:
    """Return the points that keep away from the faces of all boxes and of the voxels of each box's `grid`."""
    places = _places(points, boxes) * grid
    to_faces = np.abs(places - np.round(places))
    between_faces = (places > -0.5) & (places < np.array(grid) + 0.5)
    is_near = np.any((to_faces < NEAR_FACE) & between_faces, (1, 2))
    return np.asarray(points[~is_near])


def points_off_faces(count: int, boxes: str, grid: tuple[int, ...] = (1, 1, 1)) -> Callable[[Values], Array]:
    """Return a function that computes points that keep away from the faces of the boxes of their batch."""

    def compute(values: Values) -> Array:
        candidates, box_values = values["_points"], values[boxes]
        if box_values.ndim == 2:
            return _select_off_faces(candidates, box_values, grid)[:count]
        batches = [
            _select_off_faces(points, batch_boxes, grid)[:count]
            for points, batch_boxes in zip(candidates, box_values, strict=True)
        ]
        return np.reshape(batches, (len(box_values), count, 3))

    return compute


def containment_template(
    label: str,
    batches: int = 2,
    t: int = 3,
    m: int = 10,
    domain: Domain = OF_POINTS,
    *,
    per_box: bool = False,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of points and boxes; the result holds −1 before the call, or 0 with one entry `per_box`."""
    shape = (batches, m, t) if per_box else (batches, m)
    layout = fields.get("layout", contiguous)
    arguments: Arguments = {
        "boxes": tensor(batches, t, 7, domain=domain, layout=layout),
        "_points": tensor(batches, 5 * m, 3, domain=LATTICE, dtype=F64),
        "pts": tensor(batches, m, 3, layout=layout, compute=points_off_faces(m, "boxes")),
        "box_idx_of_points": tensor(*shape, domain=choice([0 if per_box else -1]), dtype=INT32, layout=layout),
    }
    return CaseTemplate(label, arguments=arguments, **fields)


def containment_templates(per_box: bool) -> list[CaseTemplate]:
    """Return the templates of the first box that contains a point, or of one entry `per_box`."""
    cases: dict[str, tuple[tuple[Any, ...], Mapping[str, Any]]] = {
        "plain": ((), SMOKE_IN_ALL_DTYPES),
        "crowded": ((2, 6, 9, boxes(uniform(-2, 0), uniform(3, 6), ANGLES)), SMOKE_IN_ALL_DTYPES),
        "not-turned": ((2, 4, 12, boxes(uniform(-3, 2), uniform(3, 6), choice([0.0]))), {"dtypes": DtypeSelection.all}),
        "quarter-turns": ((2, 4, 12, boxes(uniform(-3, 2), uniform(3, 6), choice([np.pi / 2, np.pi]))), {}),
        "several-turns": ((1, 4, 14, boxes(uniform(-3, 2), uniform(3, 6), uniform(-40, 40))), {}),
        "strided": ((2, 3, 8), {"layout": strided, "dtypes": DtypeSelection.all}),
        "transposed": ((3, 3, 7), {"layout": transposed, "dtypes": DtypeSelection.all}),
        "slender": ((1, 5, 20, boxes(uniform(-3, 2), choice([9.0, 1.5, 2.0]), ANGLES)), {}),
        "one-box": ((3, 1, 16, boxes(uniform(-2, -1), uniform(4, 6), ANGLES)), {}),
        "one-point": ((9, 4, 1, boxes(uniform(-2, -1), uniform(4, 6), ANGLES)), {}),
        "one-batch": ((1, 7, 30), {}),
        "many": ((3, 12, 150), {"dtypes": DtypeSelection.all}),
        "no-boxes": ((2, 0, 5), {}),
        "no-points": ((2, 3, 0), {}),
    }
    return [
        *(containment_template(label, *sizes, per_box=per_box, **fields) for label, (sizes, fields) in cases.items()),
        containment_template("many", 2, 9, 3701 if per_box else 11_003, per_box=per_box, large=True),
    ]


register("diopiPointsInBoxesPartMmcv", templates=containment_templates(per_box=False))
register("diopiPointsInBoxesAllMmcv", templates=containment_templates(per_box=True))
