"""Cases of pooling of the points in boxes: per voxel of a box (`diopiRoiawarePool3dMmcv`), and samples of points.

A voxel is a cell of the grid that divides a box. Points are not near the faces of boxes and voxels, because rounding
could move them to the other side. A template describes cases that differ only in their element type
(`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from diopi_test.cases.case import ResultOf
from diopi_test.cases.domains import Domain, any_value, choice, integer_values, normal, uniform
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.mmcv_box3d.containment import BOXES_AROUND_ORIGIN, LATTICE, points_off_faces
from diopi_test.cases.mmcv_box3d.shapes import ANGLES, F64, INT32, box_3d_domain
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    TensorTemplate,
    register,
    tensor,
)

NORMAL_FEATURES = normal()
"""The domain of features: the standard normal distribution."""

ZERO = integer_values(0, 0)
"""The domain that contains only 0, for results before a call."""

SMALL_AND_LARGE_BOXES = box_3d_domain(uniform(-2, 0), choice([0.25, 4.0, 5.0]), ANGLES)
"""A domain of boxes with and without points."""


def pooling_template(
    label: str,
    box_count: int = 2,
    points: int = 25,
    channels: int = 3,
    grid: tuple[int, int, int] = (2, 3, 2),
    slots: int = 6,
    method: int = 0,
    *,
    backward: bool,
    domain: Domain = BOXES_AROUND_ORIGIN,
    features: Domain = NORMAL_FEATURES,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of `diopiRoiawarePool3dMmcv`, or of its gradient.

    Args:
        label: The label of the cases without the element type.
        box_count: The number of boxes.
        points: The number of points.
        channels: The number of features of a point.
        grid: The numbers of voxels of a box along its sides.
        slots: The number of entries for points per voxel; the first entry contains the number of points.
        method: The argument `pool_method`: 0 for the maximum, 1 for the mean.
        backward: Whether the template is for the gradient.
        domain: The domain of the boxes.
        features: The domain of the features.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    pooled_shape, lists_shape, layout = (
        (box_count, *grid, channels),
        (box_count, *grid, slots),
        fields.get("layout", contiguous),
    )
    inputs: Arguments = {
        "_rois": tensor(box_count, 7, domain=domain),
        "_points": tensor(6 * points, 3, domain=LATTICE, dtype=F64),
        "_pts": tensor(points, 3, compute=points_off_faces(points, "_rois", grid)),
        "_features": tensor(points, channels, domain=features),
        "_argmax": tensor(*pooled_shape, domain=ZERO, dtype=INT32),
        "_lists": tensor(*lists_shape, domain=ZERO, dtype=INT32),
        "_pooled": tensor(*pooled_shape, domain=ZERO),
        "pool_method": method,
    }
    other_arguments = backward_pooling if backward else forward_pooling
    if method == 1 and not backward:
        fields["non_discriminating"] = "argmax is not written for the mean"
    return CaseTemplate(
        label, arguments={**inputs, **other_arguments(points, pooled_shape, lists_shape, layout)}, **fields
    )


def forward_pooling(
    points: int, pooled_shape: tuple[int, ...], lists_shape: tuple[int, ...], layout: Layout
) -> dict[str, TensorTemplate]:
    """Return the tensor arguments of `diopiRoiawarePool3dMmcv`: boxes, points, features, and results of zeros.

    Args:
        points: The number of points.
        pooled_shape: The shape of the pooled features.
        lists_shape: The shape of the lists of points per voxel.
        layout: The layout of all tensors.

    Returns:
        The arguments by name.
    """
    return {
        "rois": tensor(pooled_shape[0], 7, layout=layout, compute=lambda values: values["_rois"]),
        "pts": tensor(points, 3, layout=layout, compute=lambda values: values["_pts"]),
        "pts_feature": tensor(points, pooled_shape[-1], layout=layout, compute=lambda values: values["_features"]),
        "argmax": tensor(*pooled_shape, domain=ZERO, dtype=INT32, layout=layout),
        "pts_idx_of_voxels": tensor(*lists_shape, domain=ZERO, dtype=INT32, layout=layout),
        "pooled_features": tensor(*pooled_shape, domain=ZERO, layout=layout),
    }


FORWARD_ARGUMENTS = {
    "argmax": "_argmax",
    "pts_idx_of_voxels": "_lists",
    "pooled_features": "_pooled",
    "rois": "_rois",
    "pts": "_pts",
    "pts_feature": "_features",
}
"""By parameter of the forward function, the name of the tensor that a gradient case passes for it."""


def backward_pooling(
    points: int, pooled_shape: tuple[int, ...], lists_shape: tuple[int, ...], layout: Layout
) -> dict[str, TensorTemplate]:
    """Return the tensor arguments of the gradient: results of the forward function, and a gradient.

    Args:
        points: The number of points.
        pooled_shape: The shape of the pooled features.
        lists_shape: The shape of the lists of points per voxel.
        layout: The layout of all tensors.

    Returns:
        The arguments by name.
    """

    def forward_result(name: str, shape: tuple[int, ...]) -> TensorTemplate:
        """Return an argument that the reference computes with the forward function.

        Args:
            name: The name of the result of `diopiRoiawarePool3dMmcv`.
            shape: The shape of the result.

        Returns:
            The tensor.
        """
        return tensor(
            *shape, dtype=INT32, layout=layout, compute=ResultOf("diopiRoiawarePool3dMmcv", name, FORWARD_ARGUMENTS)
        )

    return {
        "grad_in": tensor(points, pooled_shape[-1], domain=ZERO, layout=layout),
        "pts_idx_of_voxels": forward_result("pts_idx_of_voxels", lists_shape),
        "argmax": forward_result("argmax", pooled_shape),
        "grad_out": tensor(*pooled_shape, layout=layout),
    }


def pooling_templates(backward: bool) -> list[CaseTemplate]:
    """Return the templates of `diopiRoiawarePool3dMmcv` or of its gradient.

    Args:
        backward: Whether the templates are for the gradient.

    Returns:
        The templates.
    """
    mean_method, all_dtypes = 1, {"dtypes": DtypeSelection.all}
    dense = box_3d_domain(uniform(-2, -1), uniform(4, 6), ANGLES)
    cases: dict[str, dict[str, Any]] = {
        "maximum": dict(domain=dense, **SMOKE_IN_ALL_DTYPES),
        "mean": dict(method=mean_method, domain=dense, **SMOKE_IN_ALL_DTYPES),
        "maximum-crowded": dict(points=60, grid=(2, 2, 1), slots=5, domain=dense, **all_dtypes),
        "mean-crowded": dict(points=60, grid=(2, 2, 1), slots=5, method=mean_method, domain=dense, **all_dtypes),
        "one-voxel": dict(box_count=5, channels=9, points=40, grid=(1, 1, 1), slots=30, domain=dense),
        "one-voxel-mean": dict(box_count=3, grid=(1, 1, 1), slots=30, method=mean_method, domain=dense),
        "long-grid": dict(grid=(5, 1, 2), domain=dense),
        "tall-grid": dict(grid=(1, 1, 5), method=mean_method, domain=dense),
        "strided": dict(box_count=2, points=15, channels=2, domain=dense, layout=strided, **all_dtypes),
        "transposed": dict(
            box_count=3, points=15, channels=2, method=mean_method, domain=dense, layout=transposed, **all_dtypes
        ),
        "equal-features": dict(points=30, domain=dense, features=choice([1.5, 0.5])),
        "features-of-16": dict(box_count=2, points=15, channels=16, domain=dense),
        "one-channel": dict(box_count=4, channels=1, method=mean_method, domain=dense),
        "overlapping-boxes": dict(box_count=6, points=30, domain=dense, method=mean_method),
        "many": dict(box_count=3, points=200, channels=5, grid=(3, 3, 3), slots=9, domain=dense),
        "whole": dict(method=mean_method, domain=dense, features=choice([4.0, -8.0, 12.0]), grid=(2, 2, 1)),
        "no-boxes": dict(box_count=0),
    }
    return [
        *(pooling_template(label, backward=backward, **fields) for label, fields in cases.items()),
        pooling_template("maximum", 5, 1201, 61, (6, 5, 4), 16, backward=backward, large=True),
        pooling_template("mean", 5, 1201, 61, (6, 5, 4), 16, mean_method, backward=backward, large=True),
    ]


EXACT_GRADIENTS: Mapping[str, Any] = {
    "domains": {"grad_out": integer_values(1, 8)},
    "exact": True,
    "dtypes": DtypeSelection.all,
}
"""Fields of templates whose gradients are integers with exact sums."""

EXACT_MEANS: Mapping[str, Any] = {
    "features": choice([12.0, -24.0, 36.0, 48.0]),
    "exact": True,
    "dtypes": DtypeSelection.all,
}
"""Fields of templates whose features have exact means of one to four numbers: all features are multiples of 12."""

register(
    "diopiRoiawarePool3dMmcv",
    templates=(
        *pooling_templates(backward=False),
        pooling_template("exact", 3, domain=BOXES_AROUND_ORIGIN, method=1, slots=5, backward=False, **EXACT_MEANS),
    ),
)
register(
    "diopiRoiawarePool3dBackwardMmcv",
    templates=(
        *pooling_templates(backward=True),
        pooling_template("exact", 3, domain=BOXES_AROUND_ORIGIN, backward=True, **EXACT_GRADIENTS),
    ),
)


def sampling_template(
    label: str,
    batches: int = 2,
    box_count: int = 3,
    points: int = 16,
    channels: int = 2,
    samples: int = 5,
    domain: Domain = BOXES_AROUND_ORIGIN,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of `diopiRoipointPool3dMmcv`, which copies samples of the points in each box.

    Args:
        label: The label of the cases without the element type.
        batches: The number of batches.
        box_count: The number of boxes per batch.
        points: The number of points per batch.
        channels: The number of features of a point.
        samples: The number of points that are copied per box.
        domain: The domain of the boxes.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    layout = fields.get("layout", contiguous)
    arguments: Arguments = {
        "boxes3d": tensor(batches, box_count, 7, domain=domain, layout=layout),
        "_points": tensor(batches, 5 * points, 3, domain=LATTICE, dtype=F64),
        "xyz": tensor(batches, points, 3, layout=layout, compute=points_off_faces(points, "boxes3d")),
        "pts_feature": tensor(batches, points, channels, domain=any_value, layout=layout),
        "pooled_features": tensor(batches, box_count, samples, 3 + channels, domain=ZERO, layout=layout),
        "pooled_empty_flag": tensor(batches, box_count, domain=ZERO, dtype=INT32, layout=layout),
    }
    return CaseTemplate(label, arguments=arguments, **fields)


SAMPLE_TEMPLATES = (
    sampling_template("plain", **SMOKE_IN_ALL_DTYPES),
    sampling_template("small-boxes", 2, 7, 12, domain=SMALL_AND_LARGE_BOXES, **SMOKE_IN_ALL_DTYPES),
    sampling_template("more-samples", samples=24, dtypes=DtypeSelection.all),
    sampling_template("fewer-samples", 1, 3, 40, samples=2, dtypes=DtypeSelection.all),
    sampling_template("one-sample", 1, 5, 20, samples=1),
    sampling_template("strided", 2, 3, 9, layout=strided, dtypes=DtypeSelection.all),
    sampling_template("transposed", 3, 2, 8, layout=transposed, dtypes=DtypeSelection.all),
    sampling_template("one-channel", channels=1),
    sampling_template("no-channels", channels=0),
    sampling_template("one-box", 3, 1, 12),
    sampling_template("one-batch", 1, 6, 18),
    sampling_template("many", 2, 12, 90, 4, 16, SMALL_AND_LARGE_BOXES, dtypes=DtypeSelection.all),
    sampling_template("no-boxes", box_count=0),
    sampling_template("no-batches", batches=0),
    sampling_template("many", 3, 17, 601, 37, 64, SMALL_AND_LARGE_BOXES, large=True),
)
"""The templates of `diopiRoipointPool3dMmcv`."""

register("diopiRoipointPool3dMmcv", templates=SAMPLE_TEMPLATES)
