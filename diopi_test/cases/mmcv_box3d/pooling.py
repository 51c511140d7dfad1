"""Pooling of points in boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from diopi_test.cases.case import ResultOf
from diopi_test.cases.domains import Domain, any_value, choice, integer_values, normal, uniform
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.mmcv_box3d.containment import LATTICE, OF_POINTS, points_off_faces
from diopi_test.cases.mmcv_box3d.shapes import ANGLES, F64, INT32, boxes
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

NORMAL = normal()
ZEROS = integer_values(0, 0)
MIXED = boxes(uniform(-2, 0), choice([0.25, 4.0, 5.0]), ANGLES)
"""Boxes with and without points."""


def pooling_template(
    label: str,
    n: int = 2,
    points: int = 25,
    channels: int = 3,
    grid: tuple[int, int, int] = (2, 3, 2),
    slots: int = 6,
    method: int = 0,
    *,
    backward: bool,
    domain: Domain = OF_POINTS,
    features: Domain = NORMAL,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of points in the voxels of boxes, for the function or for its gradient."""
    of_points, of_lists, layout = (n, *grid, channels), (n, *grid, slots), fields.get("layout", contiguous)
    inputs: Arguments = {
        "_rois": tensor(n, 7, domain=domain),
        "_points": tensor(6 * points, 3, domain=LATTICE, dtype=F64),
        "_pts": tensor(points, 3, compute=points_off_faces(points, "_rois", grid)),
        "_features": tensor(points, channels, domain=features),
        "_argmax": tensor(*of_points, domain=ZEROS, dtype=INT32),
        "_lists": tensor(*of_lists, domain=ZEROS, dtype=INT32),
        "_pooled": tensor(*of_points, domain=ZEROS),
        "pool_method": method,
    }
    other_arguments = backward_pooling if backward else forward_pooling
    if method == 1 and not backward:
        fields["non_discriminating"] = "argmax is not written for the mean"
    return CaseTemplate(label, arguments={**inputs, **other_arguments(points, of_points, of_lists, layout)}, **fields)


def forward_pooling(
    points: int, of_points: tuple[int, ...], of_lists: tuple[int, ...], layout: Layout
) -> dict[str, TensorTemplate]:
    """Return the tensors of the forward function: boxes, points, features, and zeros for the results."""
    return {
        "rois": tensor(of_points[0], 7, layout=layout, compute=lambda values: values["_rois"]),
        "pts": tensor(points, 3, layout=layout, compute=lambda values: values["_pts"]),
        "pts_feature": tensor(points, of_points[-1], layout=layout, compute=lambda values: values["_features"]),
        "argmax": tensor(*of_points, domain=ZEROS, dtype=INT32, layout=layout),
        "pts_idx_of_voxels": tensor(*of_lists, domain=ZEROS, dtype=INT32, layout=layout),
        "pooled_features": tensor(*of_points, domain=ZEROS, layout=layout),
    }


FORWARD = {
    "argmax": "_argmax",
    "pts_idx_of_voxels": "_lists",
    "pooled_features": "_pooled",
    "rois": "_rois",
    "pts": "_pts",
    "pts_feature": "_features",
}
"""The names of the forward function's arguments."""


def backward_pooling(
    points: int, of_points: tuple[int, ...], of_lists: tuple[int, ...], layout: Layout
) -> dict[str, TensorTemplate]:
    """Return the tensors of the gradient: the lists and positions that the forward function returns, and a gradient."""

    def saved(name: str, shape: tuple[int, ...]) -> TensorTemplate:
        return tensor(*shape, dtype=INT32, layout=layout, compute=ResultOf("diopiRoiawarePool3dMmcv", name, FORWARD))

    return {
        "grad_in": tensor(points, of_points[-1], domain=ZEROS, layout=layout),
        "pts_idx_of_voxels": saved("pts_idx_of_voxels", of_lists),
        "argmax": saved("argmax", of_points),
        "grad_out": tensor(*of_points, layout=layout),
    }


def pooling_templates(backward: bool) -> list[CaseTemplate]:
    """Return the templates of the function or of its gradient."""
    mean, all_dtypes = 1, {"dtypes": DtypeSelection.all}
    dense = boxes(uniform(-2, -1), uniform(4, 6), ANGLES)
    cases: dict[str, dict[str, Any]] = {
        "maximum": dict(domain=dense, **SMOKE_IN_ALL_DTYPES),
        "mean": dict(method=mean, domain=dense, **SMOKE_IN_ALL_DTYPES),
        "maximum-crowded": dict(points=60, grid=(2, 2, 1), slots=5, domain=dense, **all_dtypes),
        "mean-crowded": dict(points=60, grid=(2, 2, 1), slots=5, method=mean, domain=dense, **all_dtypes),
        "one-voxel": dict(n=5, channels=9, points=40, grid=(1, 1, 1), slots=30, domain=dense),
        "one-voxel-mean": dict(n=3, grid=(1, 1, 1), slots=30, method=mean, domain=dense),
        "long-grid": dict(grid=(5, 1, 2), domain=dense),
        "tall-grid": dict(grid=(1, 1, 5), method=mean, domain=dense),
        "strided": dict(n=2, points=15, channels=2, domain=dense, layout=strided, **all_dtypes),
        "transposed": dict(n=3, points=15, channels=2, method=mean, domain=dense, layout=transposed, **all_dtypes),
        "equal-features": dict(points=30, domain=dense, features=choice([1.5, 0.5])),
        "one-channel": dict(n=4, channels=1, method=mean, domain=dense),
        "overlapping-boxes": dict(n=6, points=30, domain=dense, method=mean),
        "many": dict(n=3, points=200, channels=5, grid=(3, 3, 3), slots=9, domain=dense),
        "whole": dict(method=mean, domain=dense, features=choice([4.0, -8.0, 12.0]), grid=(2, 2, 1)),
        "no-boxes": dict(n=0),
    }
    return [
        *(pooling_template(label, backward=backward, **fields) for label, fields in cases.items()),
        pooling_template("maximum", 5, 1201, 61, (6, 5, 4), 16, backward=backward, large=True),
        pooling_template("mean", 5, 1201, 61, (6, 5, 4), 16, mean, backward=backward, large=True),
    ]


WHOLE: Mapping[str, Any] = {"domains": {"grad_out": integer_values(1, 8)}, "exact": True, "dtypes": DtypeSelection.all}
"""Gradients with exact sums."""

MEANS: Mapping[str, Any] = {"features": choice([12.0, -24.0, 36.0, 48.0]), "exact": True, "dtypes": DtypeSelection.all}
"""Features whose means of one to four are exact."""

register(
    "diopiRoiawarePool3dMmcv",
    templates=(
        *pooling_templates(backward=False),
        pooling_template("exact", 3, domain=OF_POINTS, method=1, slots=5, backward=False, **MEANS),
    ),
)
register(
    "diopiRoiawarePool3dBackwardMmcv",
    templates=(
        *pooling_templates(backward=True),
        pooling_template("exact", 3, domain=OF_POINTS, backward=True, **WHOLE),
    ),
)


def sampling_template(
    label: str,
    batches: int = 2,
    m: int = 3,
    points: int = 16,
    channels: int = 2,
    samples: int = 5,
    domain: Domain = OF_POINTS,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template that takes this many samples of the points in each box; features are only moved."""
    layout = fields.get("layout", contiguous)
    arguments: Arguments = {
        "boxes3d": tensor(batches, m, 7, domain=domain, layout=layout),
        "_points": tensor(batches, 5 * points, 3, domain=LATTICE, dtype=F64),
        "xyz": tensor(batches, points, 3, layout=layout, compute=points_off_faces(points, "boxes3d")),
        "pts_feature": tensor(batches, points, channels, domain=any_value, layout=layout),
        "pooled_features": tensor(batches, m, samples, 3 + channels, domain=ZEROS, layout=layout),
        "pooled_empty_flag": tensor(batches, m, domain=ZEROS, dtype=INT32, layout=layout),
    }
    return CaseTemplate(label, arguments=arguments, **fields)


SAMPLINGS = (
    sampling_template("plain", **SMOKE_IN_ALL_DTYPES),
    sampling_template("small-boxes", 2, 7, 12, domain=MIXED, **SMOKE_IN_ALL_DTYPES),
    sampling_template("more-samples", samples=24, dtypes=DtypeSelection.all),
    sampling_template("fewer-samples", 1, 3, 40, samples=2, dtypes=DtypeSelection.all),
    sampling_template("one-sample", 1, 5, 20, samples=1),
    sampling_template("strided", 2, 3, 9, layout=strided, dtypes=DtypeSelection.all),
    sampling_template("transposed", 3, 2, 8, layout=transposed, dtypes=DtypeSelection.all),
    sampling_template("one-channel", channels=1),
    sampling_template("no-channels", channels=0),
    sampling_template("one-box", 3, 1, 12),
    sampling_template("one-batch", 1, 6, 18),
    sampling_template("many", 2, 12, 90, 4, 16, MIXED, dtypes=DtypeSelection.all),
    sampling_template("no-boxes", m=0),
    sampling_template("no-batches", batches=0),
    sampling_template("many", 3, 17, 601, 37, 64, MIXED, large=True),
)

register("diopiRoipointPool3dMmcv", templates=SAMPLINGS)
