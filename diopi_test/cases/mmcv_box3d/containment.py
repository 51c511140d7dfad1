"""Cases of the functions that compute which three-dimensional boxes contain each point.

Points are not near the faces of boxes, because rounding could move them to the other side. A template describes cases
that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). `TensorSpec.compute` computes a tensor from the
arguments before it. A case does not pass arguments whose names start with `_`; it computes other arguments from them.
"""

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
from diopi_test.cases.mmcv_box3d.shapes import ANGLES, F64, INT32, box_3d_domain
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
"""An array of points or boxes."""
NEAR_FACE = 0.02
"""The minimum distance of points from the faces of boxes or voxels, as a fraction of the size of the box or voxel."""


def lattice_domain(low: int, high: int) -> Domain:
    """Return the domain of multiples of 1/16 in [low, high].

    Args:
        low: The least number, an integer.
        high: The largest number, an integer.

    Returns:
        The domain. Every floating-point type represents multiples of 1/16 below 8.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> Array:
        """Return random multiples of 1/16."""
        return rng.integers(16 * low, 16 * high, count, endpoint=True) / 16.0

    return draw


LATTICE = lattice_domain(-3, 3)
"""The domain of coordinates of the points from which a case selects its points."""

BOXES_AROUND_ORIGIN = box_3d_domain(uniform(-2, 0), uniform(3, 6), ANGLES)
"""A domain of boxes around the origin, which contain many of the points."""


def _relative_positions(points: Array, boxes: Array) -> Array:
    """Return the positions of points relative to boxes.

    Args:
        points: The points (x, y, z), an array (n, 3).
        boxes: The boxes (x, y, z, dx, dy, dz, angle), an array (t, 7). The coordinate z is that of the bottom.

    Returns:
        An array (n, t, 3). A point is inside a box if all three coordinates are between 0 and 1.
    """
    offsets = points[:, np.newaxis] - boxes[:, :3]
    cosine, sine = np.cos(boxes[:, 6]), np.sin(boxes[:, 6])
    along_length, along_width = (
        offsets[..., 0] * cosine + offsets[..., 1] * sine,
        offsets[..., 1] * cosine - offsets[..., 0] * sine,
    )
    return np.asarray(
        np.stack([along_length, along_width, offsets[..., 2]], -1) / boxes[:, 3:6] + np.array([0.5, 0.5, 0])
    )


def _select_off_faces(points: Array, boxes: Array, grid: tuple[int, ...] = (1, 1, 1)) -> Array:
    """Return the points that are not near the faces of any box or voxel.

    Args:
        points: The points, an array (n, 3).
        boxes: The boxes, an array (t, 7).
        grid: The numbers of voxels into which each box is divided along its sides.

    Returns:
        The points in order, an array with three columns.
    """
    relative = _relative_positions(points, boxes) * grid
    distances_from_faces = np.abs(relative - np.round(relative))
    is_close_to_box = (relative > -0.5) & (relative < np.array(grid) + 0.5)
    is_near = np.any((distances_from_faces < NEAR_FACE) & is_close_to_box, (1, 2))
    return np.asarray(points[~is_near])


def points_off_faces(count: int, boxes: str, grid: tuple[int, ...] = (1, 1, 1)) -> Callable[[Values], Array]:
    """Return a value of `TensorSpec.compute`, which selects points that are not near the faces of boxes.

    Args:
        count: The number of points per batch.
        boxes: The name of the argument with the boxes.
        grid: The numbers of voxels into which each box is divided; faces of voxels count as faces.

    Returns:
        The function. It selects from the points in the argument `_points`.
    """

    def compute(values: Values) -> Array:
        """Return the selected points, an array with one row per point, and one matrix per batch of boxes."""
        candidates, box_values = values["_points"], values[boxes]
        if box_values.ndim == 2:
            return _select_off_faces(candidates, box_values, grid)[:count]
        batches = [
            _select_off_faces(points, batch_boxes, grid)[:count]
            for points, batch_boxes in zip(candidates, box_values, strict=True)
        ]
        return np.reshape(batches, (len(box_values), count, 3))

    return compute


def box_containment_template(
    label: str,
    batches: int = 2,
    box_count: int = 3,
    point_count: int = 10,
    domain: Domain = BOXES_AROUND_ORIGIN,
    *,
    per_box: bool = False,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of points and boxes.

    Args:
        label: The label of the cases without the element type.
        batches: The number of batches.
        box_count: The number of boxes per batch.
        point_count: The number of points per batch.
        domain: The domain of the boxes.
        per_box: Whether the result has an entry for each point and box, which is 0 before the call. Otherwise it has
            one entry for each point: the first box that contains the point, and −1 before the call.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    shape = (batches, point_count, box_count) if per_box else (batches, point_count)
    layout = fields.get("layout", contiguous)
    arguments: Arguments = {
        "boxes": tensor(batches, box_count, 7, domain=domain, layout=layout),
        "_points": tensor(batches, 5 * point_count, 3, domain=LATTICE, dtype=F64),
        "pts": tensor(batches, point_count, 3, layout=layout, compute=points_off_faces(point_count, "boxes")),
        "box_idx_of_points": tensor(*shape, domain=choice([0 if per_box else -1]), dtype=INT32, layout=layout),
    }
    return CaseTemplate(label, arguments=arguments, **fields)


def box_containment_templates(per_box: bool) -> list[CaseTemplate]:
    """Return the templates of a function that computes which boxes contain points.

    Args:
        per_box: Whether the result has an entry per point and box instead of one per point.

    Returns:
        The templates.
    """
    cases: dict[str, tuple[tuple[Any, ...], Mapping[str, Any]]] = {
        "plain": ((), SMOKE_IN_ALL_DTYPES),
        "crowded": ((2, 6, 9, box_3d_domain(uniform(-2, 0), uniform(3, 6), ANGLES)), SMOKE_IN_ALL_DTYPES),
        "not-turned": (
            (2, 4, 12, box_3d_domain(uniform(-3, 2), uniform(3, 6), choice([0.0]))),
            {"dtypes": DtypeSelection.all},
        ),
        "quarter-turns": ((2, 4, 12, box_3d_domain(uniform(-3, 2), uniform(3, 6), choice([np.pi / 2, np.pi]))), {}),
        "several-turns": ((1, 4, 14, box_3d_domain(uniform(-3, 2), uniform(3, 6), uniform(-40, 40))), {}),
        "strided": ((2, 3, 8), {"layout": strided, "dtypes": DtypeSelection.all}),
        "transposed": ((3, 3, 7), {"layout": transposed, "dtypes": DtypeSelection.all}),
        "slender": ((1, 5, 20, box_3d_domain(uniform(-3, 2), choice([9.0, 1.5, 2.0]), ANGLES)), {}),
        "one-box": ((3, 1, 16, box_3d_domain(uniform(-2, -1), uniform(4, 6), ANGLES)), {}),
        "one-point": ((9, 4, 1, box_3d_domain(uniform(-2, -1), uniform(4, 6), ANGLES)), {}),
        "one-batch": ((1, 7, 30), {}),
        "many": ((3, 12, 150), {"dtypes": DtypeSelection.all}),
        "no-boxes": ((2, 0, 5), {}),
        "no-points": ((2, 3, 0), {}),
    }
    return [
        *(
            box_containment_template(label, *sizes, per_box=per_box, **fields)
            for label, (sizes, fields) in cases.items()
        ),
        box_containment_template("many", 2, 9, 3701 if per_box else 11_003, per_box=per_box, large=True),
    ]


register("diopiPointsInBoxesPartMmcv", templates=box_containment_templates(per_box=False))
register("diopiPointsInBoxesAllMmcv", templates=box_containment_templates(per_box=True))
