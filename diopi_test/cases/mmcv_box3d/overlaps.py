"""Cases of boxes in space that are seen from above: overlaps, and non-maximum suppression.

Seen from above, a box is a rotated rectangle. Corners of boxes are not near edges of other boxes, and overlaps are not
near the threshold of a suppression. Otherwise, rounding could change the results. A template describes cases that
differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). `TensorSpec.compute` computes a tensor from the
arguments before it. A case does not pass arguments whose names start with `_`; it computes other arguments from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.case import ResultOf, Values
from diopi_test.cases.domains import Domain, choice, uniform
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.mmcv_box.shapes import draw_nested_boxes
from diopi_test.cases.mmcv_box3d.shapes import ANGLES, F64, box_3d_domain
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
"""An array of boxes, corners or distances."""
NEAR_EDGE = 0.05
"""The minimum distance of corners from edges, seen from above. MMCV treats nearer corners as touching."""

NEAR_THRESHOLD = 1e-3
"""The minimum difference between an overlap and the threshold. Both are fractions of an area."""
DEFAULT_BOXES = box_3d_domain(uniform(0, 6), uniform(2, 7), ANGLES)
"""A domain of boxes, some of which overlap."""

SPREAD_BOXES = box_3d_domain(uniform(0, 14), uniform(3, 9), ANGLES)
"""A domain of boxes that are spread over a larger space, so that only some of them overlap."""


def _corners(boxes: Array) -> Array:
    """Return the corners of boxes seen from above.

    Args:
        boxes: The boxes, an array whose columns are x, y, z, dx, dy, dz and the angle.

    Returns:
        The corners (x, y) in order, an array (n, 4, 2).
    """
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2
    sides = signs * boxes[:, np.newaxis, 3:5]
    cosine, sine = np.cos(boxes[:, 6:]), np.sin(boxes[:, 6:])
    rotated_sides = np.stack(
        [sides[..., 0] * cosine - sides[..., 1] * sine, sides[..., 0] * sine + sides[..., 1] * cosine], -1
    )
    return boxes[:, np.newaxis, :2] + rotated_sides


def _least_distances(first_boxes: Array, second_boxes: Array) -> Array:
    """Return the least distance between corners of one box and edges of another box, for all pairs.

    Args:
        first_boxes: The n boxes of the first set.
        second_boxes: The m boxes of the second set.

    Returns:
        An array (n, m). Corners of either box count.
    """

    def distances(points: Array, ends: Array) -> Array:
        """Return the least distance of each set of points from the edges between consecutive corners in `ends`."""
        starts = np.roll(ends, 1, 1)
        edges = (ends - starts)[np.newaxis, :, np.newaxis]
        offsets = points[:, np.newaxis, :, np.newaxis] - starts[np.newaxis, :, np.newaxis]
        projections = np.clip((offsets * edges).sum(-1) / np.square(edges).sum(-1), 0, 1)
        return np.asarray(np.linalg.norm(offsets - projections[..., np.newaxis] * edges, axis=-1).min((2, 3)))

    first_corners, second_corners = _corners(first_boxes), _corners(second_boxes)
    return np.asarray(np.minimum(distances(first_corners, second_corners), distances(second_corners, first_corners).T))


def _select_first(count: int, candidates: int, is_acceptable: Callable[[int, list[int]], bool]) -> list[int]:
    """Select candidates one after another.

    Args:
        count: The number of candidates to select.
        candidates: The number of candidates.
        is_acceptable: Returns whether a candidate can be added to those selected before.

    Returns:
        The numbers of the first `count` acceptable candidates.

    Raises:
        ValueError: There are too few acceptable candidates.
    """
    chosen: list[int] = []
    for candidate in range(candidates):
        if len(chosen) < count and is_acceptable(candidate, chosen):
            chosen.append(candidate)
    if len(chosen) < count:
        raise ValueError(f"only {len(chosen)} of {candidates} candidates can be used, not {count}")
    return chosen


def _boxes_apart(count: int) -> Callable[[Values], Array]:
    """Return a value of `TensorSpec.compute`, which selects boxes of the argument `_boxes`.

    Args:
        count: The number of boxes.

    Returns:
        The function. The corners of the selected boxes are not near edges of `boxes_a`, and vice versa.
    """

    def compute(values: Values) -> Array:
        """Return the selected boxes."""
        distances = _least_distances(values["_boxes"], values["boxes_a"]).min(-1, initial=np.inf)
        chosen = _select_first(count, len(distances), lambda candidate, chosen: distances[candidate] > NEAR_EDGE)
        return np.asarray(values["_boxes"][chosen])

    return compute


def overlap_template(
    label: str,
    first_count: int = 5,
    second_count: int = 6,
    domain: Domain = DEFAULT_BOXES,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of the overlaps of two sets of boxes seen from above.

    Args:
        label: The label of the cases without the element type.
        first_count: The number of boxes in the first set.
        second_count: The number of boxes in the second set.
        domain: The domain of the boxes.
        **fields: Further fields of the template.

    Returns:
        The template. Corners of boxes in one set are not near edges of boxes in the other set.
    """
    layout = fields.get("layout", contiguous)
    arguments: Arguments = {
        "boxes_a": tensor(first_count, 7, domain=domain, layout=layout),
        "_boxes": tensor(12 * second_count, 7, domain=domain, dtype=F64),
        "boxes_b": tensor(second_count, 7, layout=layout, compute=_boxes_apart(second_count)),
    }
    return CaseTemplate(label, arguments=arguments, result_layout=layout).replace(**fields)


def _nested_boxes(shortest: float) -> Domain:
    """Return a domain of boxes with nearly the same center, angle and side lengths.

    Args:
        shortest: The least length of a side. The largest length is 0.3 more.

    Returns:
        The domain.
    """
    return box_3d_domain(uniform(-0.05, 0.05), uniform(shortest, shortest + 0.3), uniform(0.3, 0.32))


def _boxes_beside(values: Values) -> Array:
    """Return the boxes of `boxes_a`, each moved along its first side by the length of this side."""
    moved = np.array(values["boxes_a"])
    length, angle = moved[:, 3], moved[:, 6]
    moved[:, 0] += length * np.cos(angle)
    moved[:, 1] += length * np.sin(angle)
    return moved


TOUCHING_BOXES: Arguments = {
    "boxes_a": tensor(6, 7, domain=box_3d_domain(uniform(0, 60), uniform(30, 60), ANGLES)),
    "boxes_b": tensor(6, 7, compute=_boxes_beside),
}
"""Arguments with boxes that share an edge with another box, apart from rounding.

Their intersection has almost no area.
"""

OVERLAP_TEMPLATES = (
    overlap_template("plain", **SMOKE_IN_ALL_DTYPES),
    overlap_template(
        "quarter-turns", 4, 5, box_3d_domain(uniform(0, 6), uniform(2, 7), choice([0.0, np.pi / 2, np.pi]))
    ),
    overlap_template(
        "not-turned", 4, 5, box_3d_domain(uniform(0, 6), uniform(2, 7), choice([0.0])), dtypes=DtypeSelection.all
    ),
    overlap_template(
        "several-turns", 4, 5, box_3d_domain(uniform(0, 6), uniform(2, 7), uniform(-40, 40)), dtypes=DtypeSelection.all
    ),
    overlap_template("strided", 4, 3, layout=strided, dtypes=DtypeSelection.all),
    overlap_template("transposed", 3, 4, layout=transposed),
    overlap_template("slender", 4, 5, box_3d_domain(uniform(0, 6), choice([12.0, 0.75, 9.5, 0.5]), ANGLES)),
    overlap_template("far", 4, 5, box_3d_domain(uniform(200, 210), uniform(4, 12), ANGLES), dtypes=DtypeSelection.all),
    overlap_template("apart", 7, 6, box_3d_domain(uniform(0, 30), uniform(4, 12), ANGLES)),
    overlap_template("one-each", 1, 1, box_3d_domain(uniform(0, 1), uniform(3, 5), ANGLES)),
    overlap_template("one-and-many", 1, 30),
    # The boxes are only slightly larger than their intersection, so that rounding has little effect.
    overlap_template(
        "nested", 2, 25, _nested_boxes(5.3), domains={"_boxes": _nested_boxes(4.7)}, dtypes=DtypeSelection.all
    ),
    CaseTemplate("touching", arguments=TOUCHING_BOXES, dtypes=DtypeSelection.all),
    overlap_template("no-boxes", 0, 4),
    overlap_template("no-others", 4, 0),
    overlap_template("many", 20, 18, box_3d_domain(uniform(0, 60), uniform(6, 16), ANGLES)),
    overlap_template("many", 67, 61, box_3d_domain(uniform(0, 300), uniform(4, 16), ANGLES), large=True),
)
"""The templates of `diopiIou3dBoxesOverlapBevMmcv`."""

register("diopiIou3dBoxesOverlapBevMmcv", templates=OVERLAP_TEMPLATES)


def _with_angles(values: Values) -> Array:
    """Return the boxes of the argument `_boxes` unchanged: the view of a suppression that considers angles."""
    return np.asarray(values["_boxes"])


def _without_angles(values: Values) -> Array:
    """Return the boxes of the argument `_boxes` with the angle 0: the view of a suppression that ignores angles."""
    return np.concatenate([values["_boxes"][:, :6], np.zeros((len(values["_boxes"]), 1))], -1)


def _boxes_clear_of_threshold(count: int, threshold: float) -> Callable[[Values], Array]:
    """Return a value of `TensorSpec.compute`, which selects boxes of the argument `_boxes`.

    Args:
        count: The number of boxes.
        threshold: The threshold of the suppression.

    Returns:
        The function. No corner of a selected box is near an edge of another, and no overlap is near the threshold.
    """

    def compute(values: Values) -> Array:
        """Return the selected boxes."""
        areas, intersections = values["_boxes"][:, 3] * values["_boxes"][:, 4], values["_common"]
        ratios = intersections / (areas[:, np.newaxis] + areas - intersections)
        distances = _least_distances(values["_seen"], values["_seen"])

        def is_acceptable(candidate: int, chosen: list[int]) -> bool:
            """Return whether the candidate is not near any selected box or threshold."""
            is_clear = np.abs(ratios[candidate, chosen] - threshold) > NEAR_THRESHOLD
            return bool(np.all(is_clear & (distances[candidate, chosen] > NEAR_EDGE)))

        return np.asarray(values["_boxes"][_select_first(count, len(areas), is_acceptable)])

    return compute


def suppression_template(
    view: Callable[[Values], Array],
    label: str,
    box_count: int = 12,
    threshold: float = 0.25,
    domain: Domain = SPREAD_BOXES,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of a suppression of boxes seen from above.

    Args:
        view: Returns the boxes as the function considers them: `_with_angles` or `_without_angles`.
        label: The label of the cases without the element type.
        box_count: The number of boxes.
        threshold: The overlap above which a box is dropped.
        domain: The domain of the boxes.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    count, layout = 8 * box_count, fields.get("layout", contiguous)
    overlaps = ResultOf("diopiIou3dBoxesOverlapBevMmcv", "ans_overlap", {"boxes_a": "_seen", "boxes_b": "_seen"})
    arguments: Arguments = {
        "_boxes": tensor(count, 7, domain=domain, dtype=F64),
        "_seen": tensor(count, 7, dtype=F64, compute=view),
        "_common": tensor(count, count, dtype=F64, compute=overlaps),
        "boxes": tensor(box_count, 7, layout=layout, compute=_boxes_clear_of_threshold(box_count, threshold)),
        "nms_overlap_thresh": threshold,
    }
    return CaseTemplate(label, arguments=arguments, result_layout=layout).replace(**fields)


def _lift_to_space(values: Values) -> Array:
    """Return the boxes of `_seen`, which lie in the plane, with positions and heights along z from `_heights`."""
    (x, y, w, h, angle), z = values["_seen"].T, values["_heights"].T
    return np.stack([x, y, z[0], w, h, z[1], angle], -1)


NESTED_BOXES: Arguments = {
    "_seen": tensor(1023, 5, domain=draw_nested_boxes, dtype=F64),
    "_heights": tensor(1023, 2, domain=uniform(1, 3), dtype=F64),
    "boxes": tensor(1023, 7, compute=_lift_to_space),
    "nms_overlap_thresh": 0.6,
}
"""Arguments with groups of boxes that lie within each other, so that the order of suppression matters."""


def suppression_templates(view: Callable[[Values], Array]) -> list[CaseTemplate]:
    """Return the templates of a suppression.

    Args:
        view: Returns the boxes as the function considers them: `_with_angles` or `_without_angles`.

    Returns:
        The templates.
    """
    crowded_coordinates, wide_coordinates = uniform(0, 9), uniform(0, 30)
    return [
        suppression_template(view, "plain", **SMOKE_IN_ALL_DTYPES),
        suppression_template(
            view, "crowded", 7, 0.4, box_3d_domain(crowded_coordinates, uniform(4, 9), ANGLES), **SMOKE_IN_ALL_DTYPES
        ),
        suppression_template(view, "tenth", 10, 0.1, dtypes=DtypeSelection.all),
        suppression_template(
            view, "low", 8, 0.02, box_3d_domain(wide_coordinates, uniform(6, 16), ANGLES), dtypes=DtypeSelection.all
        ),
        suppression_template(view, "high", 6, 0.6, box_3d_domain(uniform(0, 2), uniform(5, 12), uniform(-0.6, 0.6))),
        suppression_template(view, "strided", 9, 0.3, layout=strided, dtypes=DtypeSelection.all),
        suppression_template(view, "transposed", 9, 0.2, layout=transposed),
        suppression_template(
            view, "several-turns", 10, 0.25, box_3d_domain(uniform(0, 14), uniform(3, 9), uniform(-40, 40))
        ),
        suppression_template(
            view,
            "apart",
            8,
            0.5,
            box_3d_domain(uniform(0, 90), uniform(4, 9), ANGLES),
            non_discriminating="only a few boxes overlap",
        ),
        suppression_template(view, "small", 10, 0.15, box_3d_domain(uniform(0, 5), uniform(0.5, 2), ANGLES)),
        suppression_template(view, "single", 1, non_discriminating="a single box is always kept"),
        suppression_template(view, "none", 0),
        suppression_template(view, "many", 30, 0.2, box_3d_domain(uniform(0, 50), uniform(5, 18), ANGLES)),
        CaseTemplate("many", arguments=NESTED_BOXES, large=True),
    ]


register("diopiIou3dNms3dMmcv", templates=suppression_templates(_with_angles))
register("diopiIou3dNms3dNormalMmcv", templates=suppression_templates(_without_angles))
