"""MMCV's operators on boxes, quadrilaterals and polygons in the plane: overlaps, suppression, enclosing shapes.

- A box is (x1, y1, x2, y2). A rotated box is (cx, cy, w, h, θ), with θ in radians. Its corners are (cx, cy) plus (±w/2,
  ±h/2) rotated by [[cos θ, −sin θ], [sin θ, cos θ]].
- A quadrilateral lists its four corners (x1, y1 … x4, y4) in order and is convex. A point set [·, 18] has nine points
  (x, y).
- I is the area of the intersection of two shapes, and A and A' are the areas of the shapes. All areas are exact areas
  of convex polygons.

All floating tensors of a call have one dtype. Unless a docstring says otherwise, a call with empty inputs succeeds and
writes nothing. Shapes that touch within rounding may count as separate or as overlapping. A call is rejected if a
tensor has another rank, number of columns or number of rows than stated. It is also rejected if a mode is not one of
those listed.

Source: the MMCV 1.x operator of the same name, unless a docstring names another one.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, index, index32, index64, position, position32, single, wide
from diopi_proto.facts import AwayFromBoundary, HoldsTruth, OneOf, SizesFollow
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, NewOut, Out, Sized, boolean, f32, f64, i64
from diopi_proto.types import Dtype

OverlapMode = Annotated[i64, OneOf((0, 1))]
"""The divisor of an overlap: 0 is the union of the boxes, 1 is the area of the first box."""

Polygons = Annotated[In, SizesFollow(), AwayFromBoundary("points")]
"""Polygons whose corners are none of `points`, because rounding decides on which side a corner lies."""


@prototype(dtypes=floating)
def diopiBboxOverlapsMmcv(
    ctx: Context, ious: Out, bboxes1: In, bboxes2: Sized, mode: OverlapMode, offset: i64, aligned: boolean
):
    """Compute the overlap of boxes: intersection over union (mode 0) or over the area of the first box (mode 1).

    - bboxes1: [m, 4]. bboxes2: [n, 4]. A row is a box (x1, y1, x2, y2).
    - ious: [m, n], for all pairs of boxes.
    - If `aligned` is true, m = n, and row i of bboxes1 is compared only with row i of bboxes2. ious is then [m] or [m,
      1].

    The sides of a box are x2 − x1 + offset and y2 − y1 + offset, where offset is 0 or 1. The sides of an intersection
    are computed likewise, and are at least 0. Let I be the area of the intersection, and A and A' the areas of the
    boxes:

    - Mode 0 gives I / max(A + A' − I, offset).
    - Mode 1 gives I / max(A, offset).

    For offset 0, 0/0 is possible, which gives NaN.
    """


@prototype(dtypes=wide)
def diopiBoxIouRotatedMmcv(ctx: Context, ious: Out, bboxes1: In, bboxes2: Sized, mode: OverlapMode, aligned: boolean):
    """Compute the overlap of rotated boxes: intersection over union (mode 0) or over the area of the first (mode 1).

    - bboxes1: [N, 5]. bboxes2: [M, 5].
    - ious: [N, M], for all pairs of boxes. If `aligned` is true, N = M and ious is [N], for the pairs of rows with the
      same index.

    The result is I / (A + A' − I) in mode 0, and I / A in mode 1. It is 0 if A or A' is below 1e−14.
    """


@prototype(dtypes=wide)
def diopiBoxIouQuadriMmcv(ctx: Context, ious: Out, bboxes1: In, bboxes2: Sized, mode: OverlapMode, aligned: boolean):
    """Compute the overlap of convex quadrilaterals: intersection over union (mode 0) or over the first area (mode 1).

    bboxes1: [N, 8]. bboxes2: [M, 8]. ious, `aligned` and the formulas are as in `diopiBoxIouRotatedMmcv`.
    """


@prototype(dtypes=wide, result=position)
def diopiNmsMmcv(ctx: Context, out: NewOut, dets: In, scores: Sized, iou_threshold: f64, offset: i64):
    """Suppress non-maximum boxes and return the indices of the retained boxes, in descending order of score.

    - dets: [N, 4]. scores: [N].
    - out: int64 [K], the indices of the K retained boxes; empty for N = 0.
    - offset: 0 or 1, which is added to the sides of the boxes as in `diopiBboxOverlapsMmcv`.

    The boxes are visited in descending order of score. A box is dropped if I > iou_threshold·(A + A' − I) for a
    retained box before it. Boxes with equal scores may be visited in any order.
    """


@prototype(
    dtypes=wide,
    argument_dtypes={"order": index64, "labels": index},
    result=position,
    ignored=[
        Ignored(("dets", "scores"), "order and dets_sorted contain the same values", read=Read.value),
        Ignored(("labels",), "boxes of different labels drop each other", read=Read.value),
        Ignored(("multi_label",), "the number of columns determines it", read=Read.value),
    ],
)
def diopiNmsRotatedMmcv(
    ctx: Context,
    out: NewOut,
    dets: In,
    scores: Sized,
    order: Sized,
    dets_sorted: Sized,
    labels: In,
    iou_threshold: f32,
    multi_label: boolean,
):
    """Suppress non-maximum rotated boxes and return the indices of the retained boxes, in descending order of score.

    - dets: [N, 5], or [N, 6] with a label in column 5 if `multi_label` is true. scores: [N].
    - order: int64 [N], the indices that sort the scores in descending order.
    - dets_sorted: dets[order], the boxes in this order.
    - labels: [N] or no elements.
    - out: int64 [K], the elements of order at the K retained rows; empty for N = 0.

    A row of dets_sorted is dropped if a retained row before it overlaps it by more than iou_threshold. The overlap is
    that of `diopiBoxIouRotatedMmcv` in mode 0. Labels have no effect: boxes suppress each other even if their labels
    differ. Callers must separate labels by other means.
    """


@prototype(dtypes=wide, guarantee="exact")
def diopiPointsInPolygonsMmcv(ctx: Context, output: Out, points: In, polygons: Polygons):
    """Determine which quadrilaterals contain each point. The result is 1 inside and 0 outside, in the dtype of points.

    - points: [B, 2]. polygons: [M, 8], the four corners of each quadrilateral. output: [B, M].

    A point (px, py) is inside if a ray from it in the direction of +x crosses an odd number of edges. The ray crosses
    an edge under two conditions. One end of the edge has y < py and the other end has y ≥ py, and the edge has x > px
    at y = py. For points on an edge or a corner, the result is unspecified.
    """


@prototype(dtypes=wide, guarantee="any_of")
def diopiMinAreaPolygonsMmcv(ctx: Context, polygons: Out, pointsets: In):
    """Compute the rectangle with the smallest area around each set of nine points.

    pointsets: [N, 18]. polygons: [N, 8], the corners of the rectangles. One side of the rectangle lies along an edge of
    the convex hull:

    1. For each edge of the hull with direction φ = atan2(dy, dx), reduced to [0, π/2), the points are rotated by −φ and
       bounded by a rectangle.
    2. The rectangle with the smallest area is selected, the first among equals.
    3. Its corners (xmax, ymin), (xmin, ymin), (xmin, ymax), (xmax, ymax) are rotated back by φ.

    A cyclic shift of these corners is accepted, and so is any other rectangle with the smallest area.
    """


@prototype(dtypes=wide)
def diopiConvexIouMmcv(ctx: Context, ious: Out, pointsets: In, polygons: Sized):
    """Compute the intersection over union of the convex hulls of point sets with quadrilaterals, for every pair.

    pointsets: [N, 18]. polygons: [K, 8], convex, in either orientation. ious: [N, K], I / (A + A' − I).
    """


@prototype(dtypes=wide)
def diopiConvexGiouMmcv(ctx: Context, output: Out, pointsets: In, polygons: Sized):
    """Compute the generalized intersection over union of the hulls of point sets with quadrilaterals, and its gradient.

    pointsets: [N, 18]. polygons: [N, 8], convex. output: [N, 19]; row n compares row n of both tensors. Let U = A + A'
    − I be the area of the union, and C the area of the convex hull of all 13 points.

    - Column 18 is I/U − (C − U)/C.
    - Columns 0 to 17 are the derivatives of column 18 with respect to the coordinates of the nine points. They are 0
      for points that are not corners of their hull. They are unspecified where the derivative jumps (parallel edges,
      corners on edges).

    Source: H. Rezatofighi et al., "Generalized Intersection over Union", CVPR 2019; MMCV 1.x convex_giou.
    """


@prototype(dtypes=single, argument_dtypes={"mask": (Dtype.bool,), "num_valid": index32}, result=position32)
def diopiDiffIouRotatedSortVerticesMmcv(
    ctx: Context, out: NewOut, vertices: In, mask: Annotated[In, HoldsTruth(), SizesFollow()], num_valid: Sized
):
    """Sort the corners of intersection polygons counter-clockwise, so that the shoelace formula gives their areas.

    - vertices: float32 [B, N, 24, 2], relative to the center of the polygon. Entries 0 to 7 are the corners of two
      boxes, and entries 8 to 23 are the intersections of their edges.
    - mask: bool [B, N, 24], true for the valid entries: those that are corners of the polygon.
    - num_valid: int32 [B, N], the number v of valid entries.
    - out: int32 [B, N, 9], indices of entries.

    out lists the valid entries in ascending order of their angle from the positive x axis, in [0, 2π). Then it lists
    the first of them again, then padding. The padding is the first entry from 8 on that is not valid. If v < 3, out has
    only padding.

    Two equal boxes give v = 8 and each of the first four indices again among the next four. Then out has the first four
    indices, the first one again, and padding. Points within 1e−8 of each other count once. The order is unspecified if
    there are such points or if y = 0.

    Source: D. Zhou et al., "IoU Loss for 2D/3D Object Detection", 3DV 2019; MMCV 1.x diff_iou_rotated.
    """
