"""MMCV's operators on boxes, quadrilaterals and polygons in the plane: overlaps, suppression, enclosing shapes.

Boxes are (x1, y1, x2, y2), rotated boxes (cx, cy, w, h, θ in radians), quadrilaterals the four corners (x1, y1 … x4,
y4) in order, convex; a point set [·, 18] is nine points (x, y). The corners of a rotated box are (cx, cy) plus (±w/2,
±h/2) turned by [[cos θ, −sin θ], [sin θ, cos θ]]. I, A, A' are the areas of an intersection and of its two shapes,
exact areas of convex polygons. All floating tensors of a call have one dtype. Empty inputs: success, nothing written,
unless a docstring says otherwise. Shapes that touch within rounding may count as separate or as overlapping.

Rejected: a tensor of another rank, with another number of columns or rows than stated, a mode other than those listed.
Source: the MMCV 1.x operator of the same name, unless another one is given.
"""

from typing import Annotated

from diopi_proto.dtypes import floating, index, index32, index64, position, position32, single, wide
from diopi_proto.facts import HoldsTruth, OneOf, SizesFollow
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, NewOut, Out, Sized, boolean, f32, f64, i64
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype

Mode = Annotated[i64, OneOf((0, 1))]


@prototype(dtypes=floating)
def diopiBboxOverlapsMmcv(
    ctx: Context, ious: Out, bboxes1: In, bboxes2: Sized, mode: Mode, offset: i64, aligned: boolean
):
    """Intersection over union (mode 0) or over the first box's area (mode 1, "foreground") of boxes.

    bboxes1: [m, 4]; bboxes2: [n, 4]; ious: [m, n], or, `aligned` and m = n, row by row with m elements, [m] or [m, 1].
    With o = offset, 0 or 1, sides are x2 − x1 + o and y2 − y1 + o, those of the intersection at least 0;
    ious = I / max(A + A' − I, o) or I / max(A, o). 0/0, possible for o = 0, is NaN.
    """


@prototype(dtypes=wide)
def diopiBoxIouRotatedMmcv(ctx: Context, ious: Out, bboxes1: In, bboxes2: Sized, mode: Mode, aligned: boolean):
    """Intersection over union (mode 0) or over the first box's area (mode 1) of rotated boxes.

    bboxes1: [N, 5]; bboxes2: [M, 5]; ious: [N, M], or [N] row by row if `aligned`, N = M. ious = I / (A + A' − I) or
    I / A, 0 if either area is below 1e−14.
    """


@prototype(dtypes=wide)
def diopiBoxIouQuadriMmcv(ctx: Context, ious: Out, bboxes1: In, bboxes2: Sized, mode: Mode, aligned: boolean):
    """As `diopiBoxIouRotatedMmcv`, of convex quadrilaterals: bboxes1 [N, 8], bboxes2 [M, 8]."""


@prototype(dtypes=wide, result=position)
def diopiNmsMmcv(ctx: Context, out: NewOut, dets: In, scores: Sized, iou_threshold: f64, offset: i64):
    """Non-maximum suppression of boxes: the indices kept, by falling score.

    dets: [N, 4]; scores: [N]; out: int64 [K], empty for N = 0. Boxes are taken by falling score; one is dropped if a
    box kept before it has I > iou_threshold·(A + A' − I), areas with offset 0 or 1 as in `diopiBboxOverlapsMmcv`. Equal
    scores: any order.
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
    """Non-maximum suppression of rotated boxes: the indices kept, by falling score.

    dets: [N, 5], or [N, 6] with a label in column 5 if `multi_label`; scores: [N]; order: int64 [N], the indices that
    sort scores falling; dets_sorted: dets[order]; labels: [N] or no elements; out: int64 [K], empty for N = 0. A row of
    dets_sorted is dropped if a kept row before it overlaps it by more than iou_threshold (`diopiBoxIouRotatedMmcv`,
    mode 0); out = order[kept]. Labels don't count: boxes of different labels drop each other. Callers keep them apart
    by other means.
    """


@prototype(dtypes=wide, guarantee="exact")
def diopiPointsInPolygonsMmcv(ctx: Context, output: Out, points: In, polygons: Sized):
    """Which quadrilaterals contain each point: 1 inside, 0 outside, in points' dtype.

    points: [B, 2]; polygons: [M, 8]; output: [B, M]. A point is inside if a ray from it towards +x crosses an odd
    number of edges; an edge from s to t counts if one end has y < py and the other y ≥ py and they meet at an x > px.
    Points on an edge or corner: unspecified.
    """


@prototype(dtypes=wide, guarantee="any_of")
def diopiMinAreaPolygonsMmcv(ctx: Context, polygons: Out, pointsets: In):
    """The rectangle of least area around each set of nine points.

    pointsets: [N, 18]; polygons: [N, 8]. One side lies along an edge of the convex hull: for each hull edge with
    direction φ = atan2(dy, dx) folded into [0, π/2), the points are turned by −φ and bounded; the smallest area wins,
    the first of equals. Its corners in the turned frame, (xmax, ymin), (xmin, ymin), (xmin, ymax), (xmax, ymax), are
    turned back by φ. A cyclic shift of them is accepted, and any rectangle of least area.
    """


@prototype(dtypes=wide)
def diopiConvexIouMmcv(ctx: Context, ious: Out, pointsets: In, polygons: Sized):
    """Intersection over union of the convex hulls of point sets with quadrilaterals, every pair.

    pointsets: [N, 18]; polygons: [K, 8], convex, clockwise or not; ious: [N, K] = I / (A + A' − I).
    """


@prototype(dtypes=wide)
def diopiConvexGiouMmcv(ctx: Context, output: Out, pointsets: In, polygons: Sized):
    """Generalised intersection over union of point sets' hulls with quadrilaterals, row by row, and its gradient.

    pointsets: [N, 18]; polygons: [N, 8], convex; output: [N, 19]. Column 18 is I/U − (C − U)/C, U = A + A' − I the
    union and C the area of the convex hull of all 13 points; columns 0 … 17 are its derivatives by the coordinates of
    the nine points, 0 for points that aren't corners of their hull. Where the derivative jumps (parallel edges, corners
    on edges) it is unspecified.
    Source: H. Rezatofighi et al., "Generalized Intersection over Union", CVPR 2019; MMCV 1.x convex_giou.
    """


@prototype(dtypes=single, argument_dtypes={"mask": (Dtype.bool,), "num_valid": index32}, result=position32)
def diopiDiffIouRotatedSortVerticesMmcv(
    ctx: Context, out: NewOut, vertices: In, mask: Annotated[In, HoldsTruth(), SizesFollow()], num_valid: Sized
):
    """The corners of an intersection polygon in counter-clockwise order, for the area by the shoelace formula.

    vertices: float32 [B, N, 24, 2], relative to the polygon's centre, entries 0 … 7 the corners of two boxes, 8 … 23
    the intersections of their edges; mask: bool [B, N, 24], which entries are corners of the polygon; num_valid: int32
    [B, N], their number v; out: int32 [B, N, 9]. The valid entries come by angle, which counts from the positive x axis
    in [0, 2π), then the first again, then padding: the first entry from 8 on that isn't valid. v < 3: padding only. v =
    8 and each of the first four indices again among the next four, which two equal boxes give: the first four, the
    first again, padding. Points within 1e−8 of each other count once; with such points, or y = 0, the order is
    unspecified.
    Source: D. Zhou et al., "IoU Loss for 2D/3D Object Detection", 3DV 2019; MMCV 1.x diff_iou_rotated.
    """
