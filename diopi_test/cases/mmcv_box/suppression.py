"""Cases of non-maximum suppression of upright boxes and of rotated boxes.

Non-maximum suppression selects boxes in descending order of their scores. It drops each box whose overlap with a
selected box exceeds a threshold. The overlaps in the cases are not near the threshold, because rounding could otherwise
change which boxes are selected.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A domain draws the
values of a tensor (`diopi_test.cases.domains`). `TensorSpec.compute` computes a tensor from the arguments before it. A
case does not pass arguments whose names start with `_`; it computes other arguments from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOf, Values
from diopi_test.cases.domains import Domain, choice, distinct, integer_values, uniform
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.mmcv_box.shapes import ANGLES, F64, box_domain, draw_nested_boxes, rotated_box_domain
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
"""An array of boxes, overlaps or positions."""
NEAR_THRESHOLD = 1e-3
"""The minimum difference between an overlap and the threshold. Both are fractions of an area."""
OVERLAPPING_BOXES = rotated_box_domain(uniform(0, 8), uniform(2, 6), ANGLES)
"""A domain of rotated boxes. Many of them overlap."""


def _select_clear_of_threshold(candidates: Array, overlaps: Array, count: int, threshold: float) -> Array:
    """Select boxes so that no two selected boxes have an overlap near the threshold.

    Args:
        candidates: The boxes to choose from, one per row.
        overlaps: The overlaps of all pairs of candidates.
        count: The number of boxes to select.
        threshold: The threshold.

    Returns:
        The first `count` such boxes in order.

    Raises:
        ValueError: There are too few such boxes.
    """
    selected_boxes: list[int] = []
    for candidate in range(len(candidates)):
        if len(selected_boxes) < count and not np.any(
            np.abs(overlaps[candidate, selected_boxes] - threshold) < NEAR_THRESHOLD
        ):
            selected_boxes.append(candidate)
    if len(selected_boxes) < count:
        raise ValueError(
            f"only {len(selected_boxes)} of {len(candidates)} candidates keep away from the threshold {threshold}"
        )
    return candidates[selected_boxes]


def boxes_clear_of_threshold(count: int, candidates: str, overlaps: str, threshold: float) -> Callable[[Values], Array]:
    """Return a value of `TensorSpec.compute`, which selects boxes whose overlaps are not near the threshold.

    Args:
        count: The number of boxes.
        candidates: The name of the argument with the boxes to choose from.
        overlaps: The name of the argument with the overlaps of all pairs of these boxes.
        threshold: The threshold.

    Returns:
        The function.
    """
    return lambda values: _select_clear_of_threshold(values[candidates], values[overlaps], count, threshold)


def suppression_template(
    label: str,
    box_count: int,
    threshold: float,
    domain: Domain | None = None,
    scores: Domain = distinct,
    *,
    offset: int = 0,
    exact_boxes: bool = False,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of `diopiNmsMmcv`, the suppression of upright boxes.

    Args:
        label: The label of the cases without the element type.
        box_count: The number of boxes.
        threshold: The overlap above which a box is dropped.
        domain: The domain of the boxes; None for boxes that often overlap.
        scores: The domain of the scores.
        offset: The argument `offset`, a length that is added to each side of a box.
        exact_boxes: Whether the overlaps of the boxes have no rounding errors. Otherwise the template selects boxes
            whose overlaps are not near the threshold.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    layout = fields.get("layout", contiguous)
    source = domain or box_domain(uniform(0, 8), uniform(2, 6))
    selected = {
        "_boxes": tensor(2 * box_count, 4, domain=source, dtype=F64),
        "_overlaps": tensor(
            2 * box_count,
            2 * box_count,
            dtype=F64,
            compute=ResultOf(
                "diopiBboxOverlapsMmcv",
                "ious",
                {"bboxes1": "_boxes", "bboxes2": "_boxes"},
                extra_arguments={"mode": 0, "offset": offset, "aligned": False},
            ),
        ),
        "dets": tensor(
            box_count, 4, layout=layout, compute=boxes_clear_of_threshold(box_count, "_boxes", "_overlaps", threshold)
        ),
    }
    arguments: Arguments = {
        **({"dets": tensor(box_count, 4, domain=source, layout=layout)} if exact_boxes else selected),
        "scores": tensor(box_count, domain=scores, layout=contiguous if layout is contiguous else strided),
        "iou_threshold": threshold,
        "offset": offset,
    }
    return CaseTemplate(label, arguments=arguments, **fields)


INTEGER_BOXES = box_domain(integer_values(-2, 4), integer_values(1, 7))
"""A domain of boxes with integer corners."""

SUPPRESSION_TEMPLATES = (
    suppression_template("half", 20, 0.5, **SMOKE_IN_ALL_DTYPES),
    suppression_template("offset", 20, 0.45, offset=1, **SMOKE_IN_ALL_DTYPES),
    suppression_template("whole", 25, 0.5, INTEGER_BOXES, exact_boxes=True, dtypes=DtypeSelection.all),
    suppression_template(
        "whole-offset", 25, 0.25, INTEGER_BOXES, offset=1, exact_boxes=True, dtypes=DtypeSelection.all
    ),
    suppression_template(
        "quarter", 15, 0.25, INTEGER_BOXES, exact_boxes=True, layout=strided, dtypes=DtypeSelection.all
    ),
    suppression_template(
        "equal-scores", 16, 0.25, INTEGER_BOXES, choice([0.25, 0.5]), exact_boxes=True, dtypes=DtypeSelection.all
    ),
    suppression_template("tenth", 16, 0.11, layout=transposed),
    suppression_template("high", 30, 0.72, box_domain(uniform(0, 2), uniform(4, 6))),
    suppression_template("zero", 12, 0.0, INTEGER_BOXES, exact_boxes=True),
    suppression_template(
        "one",
        12,
        1.0,
        box_domain(integer_values(0, 1), integer_values(1, 2)),
        exact_boxes=True,
        non_discriminating="no overlap exceeds the threshold 1",
    ),
    suppression_template(
        "apart", 15, 0.5, box_domain(uniform(0, 200), uniform(2, 6)), non_discriminating="only a few boxes overlap"
    ),
    suppression_template("single", 1, 0.5, exact_boxes=True, non_discriminating="a single box is always kept"),
    suppression_template("none", 0, 0.5, exact_boxes=True),
    suppression_template("long", 130, 0.4, box_domain(uniform(0, 40), uniform(2, 12)), dtypes=DtypeSelection.all),
    suppression_template(
        "many", 4099, 0.37, box_domain(integer_values(-90, 90), integer_values(1, 7)), exact_boxes=True, large=True
    ),
    suppression_template(
        "offset",
        2053,
        0.41,
        box_domain(integer_values(-60, 60), integer_values(1, 6)),
        offset=1,
        exact_boxes=True,
        large=True,
    ),
)
"""The templates of `diopiNmsMmcv`."""

register("diopiNmsMmcv", templates=SUPPRESSION_TEMPLATES)


def _order_by_score(values: Values) -> Array:
    """Return the positions of the boxes in descending order of their scores."""
    return np.argsort(-values["scores"], kind="stable")


def _sort_boxes(values: Values) -> Array:
    """Return the boxes in the order of the argument `order`, by descending score."""
    return np.asarray(values["dets"][values["order"]])


CANDIDATE_OVERLAPS = ResultOf(
    "diopiBoxIouRotatedMmcv",
    "ious",
    {"bboxes1": "_boxes", "bboxes2": "_boxes"},
    extra_arguments={"mode": 0, "aligned": False},
)
"""The overlaps of all pairs of boxes in the argument `_boxes`, from which a case selects its boxes."""


def rotated_suppression_template(
    label: str,
    box_count: int,
    threshold: float,
    domain: Domain = OVERLAPPING_BOXES,
    *,
    multi_label: bool = False,
    has_labels: bool = True,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of `diopiNmsRotatedMmcv`, the suppression of rotated boxes.

    Args:
        label: The label of the cases without the element type.
        box_count: The number of boxes.
        threshold: The overlap above which a box is dropped.
        domain: The domain of the boxes. The template selects boxes whose overlaps are not near the threshold.
        multi_label: Whether each row of boxes has a sixth column with a label.
        has_labels: Whether the argument `labels` has an element per box; otherwise it is empty.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    layout = fields.get("layout", contiguous)

    def compute_boxes(values: Values) -> Array:
        """Return the selected boxes. If `multi_label` is true, each row has the label 3."""
        selected_boxes = _select_clear_of_threshold(values["_boxes"], values["_overlaps"], box_count, threshold)
        return np.concatenate([selected_boxes, np.full((box_count, 1), 3)], -1) if multi_label else selected_boxes

    columns, count = 6 if multi_label else 5, 2 * box_count
    vector = contiguous if layout is contiguous else strided
    arguments: Arguments = {
        "_boxes": tensor(count, 5, domain=domain, dtype=F64),
        "_overlaps": tensor(count, count, dtype=F64, compute=CANDIDATE_OVERLAPS),
        "dets": tensor(box_count, columns, layout=layout, compute=compute_boxes),
        "scores": tensor(box_count, domain=distinct, layout=vector),
        "order": tensor(box_count, dtype=Dtype.int64, layout=vector, compute=_order_by_score),
        "dets_sorted": tensor(box_count, columns, layout=layout, compute=_sort_boxes),
        "labels": tensor(
            box_count if has_labels else 0,
            domain=choice([3]) if multi_label else integer_values(0, 4),
            dtype=Dtype.int64,
        ),
        "iou_threshold": threshold,
        "multi_label": multi_label,
    }
    return CaseTemplate(label, arguments=arguments, **fields)


NESTED_BOXES: Arguments = {
    "dets": tensor(1023, 5, domain=draw_nested_boxes),
    "scores": tensor(1023, domain=distinct),
    "order": tensor(1023, dtype=Dtype.int64, compute=_order_by_score),
    "dets_sorted": tensor(1023, 5, compute=_sort_boxes),
    "labels": tensor(0, dtype=Dtype.int64),
    "iou_threshold": 0.6,
    "multi_label": False,
}
"""Arguments with groups of boxes that lie within each other, so that the order of suppression matters."""

ROTATED_SUPPRESSION_TEMPLATES = (
    rotated_suppression_template(
        "half", 16, 0.5, rotated_box_domain(uniform(0, 4), uniform(2, 6), ANGLES), **SMOKE_IN_ALL_DTYPES
    ),
    rotated_suppression_template("labels", 14, 0.25, multi_label=True, **SMOKE_IN_ALL_DTYPES),
    rotated_suppression_template("no-labels", 14, 0.25, has_labels=False, dtypes=DtypeSelection.all),
    rotated_suppression_template("strided", 9, 0.3, layout=strided, dtypes=DtypeSelection.all),
    rotated_suppression_template("transposed", 11, 0.2, layout=transposed),
    rotated_suppression_template("tenth", 16, 0.11),
    rotated_suppression_template(
        "high", 20, 0.72, rotated_box_domain(uniform(0, 1), uniform(4, 6), uniform(-0.3, 0.3))
    ),
    rotated_suppression_template(
        "slender", 14, 0.15, rotated_box_domain(uniform(0, 4), choice([9.0, 1.5, 12.5]), ANGLES)
    ),
    rotated_suppression_template(
        "several-turns", 14, 0.25, rotated_box_domain(uniform(0, 8), uniform(2, 6), uniform(-40, 40))
    ),
    rotated_suppression_template(
        "apart",
        12,
        0.5,
        rotated_box_domain(uniform(0, 90), uniform(2, 6), ANGLES),
        non_discriminating="only a few boxes overlap",
    ),
    rotated_suppression_template("single", 1, 0.5, non_discriminating="a single box is always kept"),
    rotated_suppression_template("none", 0, 0.5),
    rotated_suppression_template(
        "long", 60, 0.3, rotated_box_domain(uniform(0, 30), uniform(2, 12), ANGLES), dtypes=DtypeSelection.all
    ),
    CaseTemplate("many", arguments=NESTED_BOXES, large=True),
)
"""The templates of `diopiNmsRotatedMmcv`."""

register("diopiNmsRotatedMmcv", templates=ROTATED_SUPPRESSION_TEMPLATES)
