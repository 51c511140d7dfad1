"""MMCV's operators on boxes in space: bird's-eye overlap and suppression, points in boxes, pooling of points.

A box is (x, y, z, dx, dy, dz, rz). z is the bottom, and rz is the angle about the z axis in radians. A point p has two
coordinates along the axes of the box:

- lx = (px − x)·cos rz + (py − y)·sin rz.
- ly = (py − y)·cos rz − (px − x)·sin rz.

The point is in the box if |pz − (z + dz/2)| ≤ dz/2, −dx/2 < lx < dx/2 and −dy/2 < ly < dy/2. It is unspecified whether
a point within rounding of a face is in the box.

In the bird's-eye view, a box is the rectangle dx × dy around (x, y), rotated by rz. z and dz have no effect.

Boxes, points and features of a call have one dtype. Half precision computes in float32. Unless a docstring says
otherwise, the caller fills in-out tensors with zeros. The call writes to a part of them, or overwrites all of them with
the same values. A call without boxes or points succeeds and writes nothing. A call is rejected if a tensor has another
rank or another number of columns than stated.

Source: the MMCV 1.x operator of the same name, unless a docstring names another one.
"""

from collections.abc import Sequence
from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, index32, is_floating, position, position32, wide
from diopi_proto.facts import OneOf
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, InOut, Out, Sized, SizedInOut, f32, i64
from diopi_proto.types import Dtype

ZEROS_ON_ENTRY = "zeros on entry"
"""The reason why the contents of a result before the call do not matter."""

PoolMethod = Annotated[i64, OneOf((0, 1))]
"""The kind of pooling, 0 or 1."""


def _of_features(inputs: Sequence[Dtype]) -> Dtype:
    """Return the only floating type among the inputs."""
    return next(filter(is_floating, inputs))


@prototype(dtypes=wide)
def diopiIou3dBoxesOverlapBevMmcv(ctx: Context, ans_overlap: Out, boxes_a: In, boxes_b: Sized):
    """Compute the area of intersection of each pair of boxes in the bird's-eye view.

    boxes_a: [M, 7]. boxes_b: [N, 7]. ans_overlap: [M, N]. The corners of a box are (x, y) plus (±dx/2, ±dy/2) rotated
    counter-clockwise by rz. The area is accurate if the corners of each rectangle are at least 0.05 away from the edges
    of the other. Closer corners and edges may be treated as touching, which changes the area by at most 0.02 times the
    perimeter.
    """


@prototype(dtypes=wide, result=position, guarantee="any_of")
def diopiIou3dNms3dMmcv(ctx: Context, keep: Out, keep_num: Out, boxes: In, nms_overlap_thresh: f32):
    """Suppress non-maximum rotated boxes in the bird's-eye view.

    - boxes: [N, 7] in descending order of their scores.
    - keep: int64 [N]. The first entries are the retained rows in ascending order, and the other entries are
      unspecified.
    - keep_num: int64, one element, the number of retained rows.

    Starting with the first box, each retained box drops every later box with I / max(A + A' − I, 1e−8) >
    nms_overlap_thresh. I is the area of `diopiIou3dBoxesOverlapBevMmcv`, and A and A' are the areas dx·dy of the two
    boxes.
    """


@prototype(dtypes=wide, result=position, guarantee="any_of")
def diopiIou3dNms3dNormalMmcv(ctx: Context, keep: Out, keep_num: Out, boxes: In, nms_overlap_thresh: f32):
    """Suppress non-maximum boxes as in `diopiIou3dNms3dMmcv`, but without rotation.

    Each box is replaced by the rectangle from x − dx/2 to x + dx/2 and from y − dy/2 to y + dy/2. rz is ignored. keep
    and keep_num are as in `diopiIou3dNms3dMmcv`.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"box_idx_of_points": index32},
    result=position32,
    ignored=[Ignored(("box_idx_of_points",), "it is −1 throughout on entry", read=Read.value)],
)
def diopiPointsInBoxesPartMmcv(ctx: Context, box_idx_of_points: SizedInOut, boxes: In, pts: Sized):
    """Find the first box that contains each point.

    boxes: [B, T, 7]. pts: [B, M, 3]. box_idx_of_points: int32 [B, M], −1 on entry. The call writes the smallest index t
    of a box that contains the point. The entry remains −1 for a point that is in no box.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"box_idx_of_points": index32},
    result=position32,
    ignored=[Ignored(("box_idx_of_points",), ZEROS_ON_ENTRY, read=Read.value)],
)
def diopiPointsInBoxesAllMmcv(ctx: Context, box_idx_of_points: SizedInOut, boxes: In, pts: Sized):
    """Find all boxes that contain each point.

    boxes: [B, T, 7]. pts: [B, M, 3]. box_idx_of_points: int32 [B, M, T], zeros on entry. The call writes 1 where box t
    contains point m.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"argmax": index32, "pts_idx_of_voxels": index32},
    result={"argmax": position32, "pts_idx_of_voxels": position32, "pooled_features": _of_features},
    ignored=[Ignored(("argmax", "pts_idx_of_voxels", "pooled_features"), ZEROS_ON_ENTRY, read=Read.value)],
    backward="diopiRoiawarePool3dBackwardMmcv",
)
def diopiRoiawarePool3dMmcv(
    ctx: Context,
    argmax: SizedInOut,
    pts_idx_of_voxels: InOut,
    pooled_features: SizedInOut,
    rois: In,
    pts: Sized,
    pts_feature: Sized,
    pool_method: PoolMethod,
):
    """Compute the maximum (pool_method 0) or mean (1) of the features of the points in each voxel of each box.

    - rois: [N, 7]. pts: [P, 3]. pts_feature: [P, C].
    - pooled_features, argmax (int32): [N, X, Y, Z, C].
    - pts_idx_of_voxels: int32 [N, X, Y, Z, V]. For each voxel, slot 0 is the number of its points, and the following
      slots are their indices in ascending order. Points beyond V − 1 are dropped.

    The shapes of the results determine the voxel grid. A point of the box is in voxel ⌊(lx + dx/2)/(dx/X)⌋,
    ⌊(ly + dy/2)/(dy/Y)⌋, ⌊(pz − z)/(dz/Z)⌋, where each index is clamped to the grid.

    - Maximum: argmax is the first point with the maximum, for each channel. An empty voxel gives 0 and argmax −1.
    - Mean: argmax is not written. An empty voxel gives 0.

    Other values of pool_method are rejected.

    Source: S. Shi et al., "From Points to Parts", TPAMI 2020; MMCV 1.x roiaware_pool3d.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"pts_idx_of_voxels": index32, "argmax": index32},
    result=_of_features,
    ignored=[
        Ignored(("grad_in",), ZEROS_ON_ENTRY, read=Read.value),
        Ignored(("pts_idx_of_voxels",), "argmax determines where the gradient goes", {"pool_method": 0}, Read.value),
        Ignored(("argmax",), "the gradient goes to all points of a voxel", {"pool_method": 1}, Read.value),
    ],
)
def diopiRoiawarePool3dBackwardMmcv(
    ctx: Context, grad_in: SizedInOut, pts_idx_of_voxels: In, argmax: Sized, grad_out: Sized, pool_method: PoolMethod
):
    """Compute the gradient of `diopiRoiawarePool3dMmcv` with respect to pts_feature.

    grad_in: [P, C], zeros on entry; the call adds to it in any order. grad_out: [N, X, Y, Z, C]. The other tensors are
    results of the forward call.

    - Maximum: each element of grad_out is added to channel c of its argmax point. It is not added if argmax is −1.
    - Mean: grad_out / max(count, 1) is added to every point that is listed in the voxel, where count is the number of
      its points.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"pooled_empty_flag": index32},
    result={"pooled_features": _of_features, "pooled_empty_flag": position32},
    ignored=[Ignored(("pooled_features", "pooled_empty_flag"), ZEROS_ON_ENTRY, read=Read.value)],
    guarantee="exact",
)
def diopiRoipointPool3dMmcv(
    ctx: Context,
    pooled_features: SizedInOut,
    pooled_empty_flag: SizedInOut,
    xyz: In,
    boxes3d: Sized,
    pts_feature: Sized,
):
    """Copy the coordinates and features of the first S points in each box.

    - xyz: [B, N, 3]. boxes3d: [B, M, 7]. pts_feature: [B, N, C].
    - pooled_features: [B, M, S, 3 + C], whose shape determines S. A slot contains (x, y, z, features) of a point. The
      points of the box are in ascending order of their index. If there are fewer than S, they are repeated from the
      first one on.
    - pooled_empty_flag: int32 [B, M].

    For a box without points, the call writes 1 to pooled_empty_flag and does not write the features.

    Source: S. Shi et al., "PointRCNN", CVPR 2019; MMCV 1.x roipoint_pool3d.
    """
