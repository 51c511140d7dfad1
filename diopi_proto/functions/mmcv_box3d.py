"""MMCV's operators on boxes in space: bird's-eye overlap and suppression, points in boxes, pooling of points.

Boxes of points in space are (x, y, z, dx, dy, dz, rz), z the bottom and rz the angle about the z axis in radians. Point
p lies in such a box if |pz − (z + dz/2)| ≤ dz/2 and −dx/2 < lx < dx/2 and −dy/2 < ly < dy/2, where the place of p in
the box's axes is lx = (px − x)·cos rz + (py − y)·sin rz, ly = (py − y)·cos rz − (px − x)·sin rz. Boxes, points and
features of a call have one dtype; half precision computes in float32.

In the bird's-eye view a box is the rectangle dx × dy around (x, y), turned by its heading; z and dz don't count.

An in-out tensor is filled with zeros by the caller unless said otherwise: the call fills a part of it, and overwriting
all of it with the same values is as good. No boxes or no points: success, nothing written. What happens to points
within rounding of a face is unspecified. Rejected: a tensor of another rank or with another number of columns than
stated.
Source: the MMCV 1.x operator of the same name, unless another one is given.
"""

from collections.abc import Sequence
from typing import Annotated

from diopi_proto.dtypes import floating, index32, is_floating, position, position32, wide
from diopi_proto.facts import OneOf
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, InOut, Out, Sized, SizedInOut, f32, i64
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype

ZEROS = "zeros on entry"

PoolMethod = Annotated[i64, OneOf((0, 1))]


def _of_features(inputs: Sequence[Dtype]) -> Dtype:
    """The one floating type among the inputs."""
    return next(filter(is_floating, inputs))


@prototype(dtypes=wide)
def diopiIou3dBoxesOverlapBevMmcv(ctx: Context, ans_overlap: Out, boxes_a: In, boxes_b: Sized):
    """Area of intersection of each pair of boxes in the bird's-eye view.

    boxes_a: [M, 7]; boxes_b: [N, 7]; ans_overlap: [M, N]. Corners are (x, y) plus (±dx/2, ±dy/2) turned
    counter-clockwise by the heading. The area is accurate for rectangles whose corners keep 0.05 away from the other's
    edges; closer ones may be taken as touching, which changes it by up to 0.02 times the perimeter.
    """


@prototype(dtypes=wide, result=position, guarantee="any_of")
def diopiIou3dNms3dMmcv(ctx: Context, keep: Out, keep_num: Out, boxes: In, nms_overlap_thresh: f32):
    """Non-maximum suppression of rotated boxes in the bird's-eye view.

    boxes: [N, 7] in falling order of their scores. From the first on, a kept box drops every later one with I / max(A +
    A' − I, 1e−8) > nms_overlap_thresh, I the area of `diopiIou3dBoxesOverlapBevMmcv`, A = dx·dy. keep: int64 [N], whose
    first entries are the rows kept, rising; the rest is unspecified. keep_num: int64, one element, their number.
    """


@prototype(dtypes=wide, result=position, guarantee="any_of")
def diopiIou3dNms3dNormalMmcv(ctx: Context, keep: Out, keep_num: Out, boxes: In, nms_overlap_thresh: f32):
    """`diopiIou3dNms3dMmcv` with the headings ignored: rectangles x ± dx/2, y ± dy/2."""


@prototype(
    dtypes=floating,
    argument_dtypes={"box_idx_of_points": index32},
    result=position32,
    ignored=[Ignored(("box_idx_of_points",), "it is −1 throughout on entry", read=Read.value)],
)
def diopiPointsInBoxesPartMmcv(ctx: Context, box_idx_of_points: SizedInOut, boxes: In, pts: Sized):
    """The first box that contains each point.

    boxes: [B, T, 7]; pts: [B, M, 3]; box_idx_of_points: int32 [B, M], −1 on entry, which remains for points in no box.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"box_idx_of_points": index32},
    result=position32,
    ignored=[Ignored(("box_idx_of_points",), ZEROS, read=Read.value)],
)
def diopiPointsInBoxesAllMmcv(ctx: Context, box_idx_of_points: SizedInOut, boxes: In, pts: Sized):
    """Which boxes contain each point.

    boxes: [B, T, 7]; pts: [B, M, 3]; box_idx_of_points: int32 [B, M, T], zeros on entry, 1 where box t contains point
    m.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"argmax": index32, "pts_idx_of_voxels": index32},
    result={"argmax": position32, "pts_idx_of_voxels": position32, "pooled_features": _of_features},
    ignored=[Ignored(("argmax", "pts_idx_of_voxels", "pooled_features"), ZEROS, read=Read.value)],
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
    """Maximum (pool_method 0) or mean (1) of the features of the points in each voxel of each box.

    rois: [N, 7]; pts: [P, 3]; pts_feature: [P, C]; pooled_features, argmax (int32): [N, X, Y, Z, C]; pts_idx_of_voxels:
    int32 [N, X, Y, Z, V]; the results' shapes give the voxel grid. A point of the box is in voxel ⌊(lx + dx/2)/(dx/X)⌋,
    ⌊(ly + dy/2)/(dy/Y)⌋, ⌊(pz − z)/(dz/Z)⌋, each clamped to the grid. Slot 0 of a voxel's pts_idx_of_voxels counts its
    points, the slots after it hold their indices, rising; points beyond V − 1 are dropped.
    Maximum: argmax is the first point attaining it, per channel; an empty voxel has 0 and argmax −1. Mean: argmax is
    not written, an empty voxel has 0. Rejected: other values of pool_method.
    Source: S. Shi et al., "From Points to Parts", TPAMI 2020; MMCV 1.x roiaware_pool3d.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"pts_idx_of_voxels": index32, "argmax": index32},
    result=_of_features,
    ignored=[
        Ignored(("grad_in",), ZEROS, read=Read.value),
        Ignored(("pts_idx_of_voxels",), "argmax determines where the gradient goes", {"pool_method": 0}, Read.value),
        Ignored(("argmax",), "the gradient goes to all points of a voxel", {"pool_method": 1}, Read.value),
    ],
)
def diopiRoiawarePool3dBackwardMmcv(
    ctx: Context, grad_in: SizedInOut, pts_idx_of_voxels: In, argmax: Sized, grad_out: Sized, pool_method: PoolMethod
):
    """Gradient of `diopiRoiawarePool3dMmcv` by pts_feature.

    grad_in: [P, C], zeros on entry, added to in any order; grad_out: [N, X, Y, Z, C]; the others as the forward made
    them. Maximum: each element goes to channel c of its argmax point, none where that is −1. Mean: every point listed
    in the voxel takes grad_out / max(count, 1).
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"pooled_empty_flag": index32},
    result={"pooled_features": _of_features, "pooled_empty_flag": position32},
    ignored=[Ignored(("pooled_features", "pooled_empty_flag"), ZEROS, read=Read.value)],
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
    """Coordinates and features of the first S points in each box.

    xyz: [B, N, 3]; boxes3d: [B, M, 7]; pts_feature: [B, N, C]; pooled_features: [B, M, S, 3 + C], whose shape gives S;
    pooled_empty_flag: int32 [B, M]. A slot holds (x, y, z, features) of a point; the points of the box come in rising
    order, and with fewer than S of them they repeat from the first on. A box without points has flag 1 and its features
    are not written. Source: S. Shi et al., "PointRCNN", CVPR 2019; MMCV 1.x roipoint_pool3d.
    """
