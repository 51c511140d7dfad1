"""MMCV's operators on point sets: neighbours, sampling, gathering and grouping, interpolation, PAConv scores.

Points [B, N, 3] are (x, y, z) rows; features [B, C, N] have the points last; d² is the squared Euclidean distance. The
stacked forms put the B sets, of different sizes, one after the other: [ΣN, …], with the sizes in an int32 tensor [B].
Indices are int32 unless said otherwise, and must lie in the set they point into unless a docstring says what happens
otherwise. Size attributes repeat the shapes.

All floating tensors of a call have one dtype; half precision accumulates in float32. An in-out tensor is filled with
zeros by the caller unless said otherwise: the call adds to it or fills a part of it, and overwriting all of it with the
same values is as good. The order of additions in a gradient is unspecified. No points: success, nothing written.

Rejected: ranks, shapes and size attributes that contradict each other. Source: the MMCV 1.x operator of the same name;
C. Qi et al., "PointNet++", NeurIPS 2017, unless another one is given.
"""

from typing import Annotated

from diopi_proto.dtypes import floating, index32, index64, position32, same, single, wide
from diopi_proto.facts import HasShape, HoldsZeros
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, InOut, Out, PositiveExtent, Workspace, f32, i64
from diopi_proto.prototype import prototype

AGGREGATE = Ignored(("aggregate",), "it is always the sum", read=Read.value)


@prototype(dtypes=floating, argument_dtypes={"idx": index32}, result=position32)
def diopiBallQueryMmcv(
    ctx: Context,
    idx: Annotated[InOut, HoldsZeros(), HasShape(("B", "npoint", "sample_num"))],
    center_xyz: Annotated[In, HasShape(("B", "npoint", 3))],
    xyz: Annotated[In, HasShape(("B", "N", 3))],
    B: i64,
    N: i64,
    npoint: i64,
    sample_num: i64,
    min_radius: f32,
    max_radius: f32,
):
    """The first sample_num points in the shell around each centre.

    center_xyz: [B, npoint, 3]; xyz: [B, N, 3]; idx: int32 [B, npoint, sample_num], zeros on entry. Point k is a hit if
    d² = 0 or min_radius² ≤ d² < max_radius². A row holds the first hits in the order of k; with fewer than sample_num
    of them the other slots repeat the first one, without any hit the row is not written.
    """


@prototype(
    dtypes=floating,
    argument_dtypes=dict.fromkeys(("idx", "center_xyz_batch_cnt", "xyz_batch_cnt"), index32),
    result=position32,
)
def diopiStackBallQueryMmcv(
    ctx: Context,
    idx: Annotated[InOut, HoldsZeros(), HasShape(("ΣM", "sample_num"))],
    center_xyz: Annotated[In, HasShape(("ΣM", 3))],
    center_xyz_batch_cnt: Annotated[In, HasShape(("sets",))],
    xyz: Annotated[In, HasShape(("ΣN", 3))],
    xyz_batch_cnt: Annotated[In, HasShape(("sets",))],
    max_radius: f32,
    sample_num: i64,
):
    """The first sample_num points in the ball around each centre, in stacked sets.

    center_xyz: [ΣM, 3] of the sizes center_xyz_batch_cnt; xyz: [ΣN, 3] of the sizes xyz_batch_cnt; idx: int32 [ΣM,
    sample_num], zeros on entry. As `diopiBallQueryMmcv` with a hit where d² < max_radius²; indices count from the first
    point of the centre's own set. A row without any hit gets −1 in slot 0, its other slots are not written.
    """


@prototype(dtypes=wide, result=position32, guarantee="any_of")
def diopiFurthestPointSamplingMmcv(
    ctx: Context,
    temp_tensor: Workspace,
    idx_tensor: Out,
    points_xyz: Annotated[In, HasShape(("B", "N", 3))],
    B: i64,
    N: i64,
    num_points: i64,
):
    """num_points indices, each of the point furthest from all chosen before it.

    points_xyz: [B, N, 3]; idx_tensor: int32 [B, num_points]. The first index is 0; every next one is that of the
    largest distance d² to the nearest chosen point, any of them if several points attain it.
    temp_tensor: workspace [B, N] in points' dtype that the caller fills with 1e10, the initial distances.
    """


@prototype(dtypes=wide, result=position32, guarantee="any_of")
def diopiFurthestPointSamplingWithDistMmcv(
    ctx: Context,
    temp_tensor: Workspace,
    idx_tensor: Out,
    points_dist: Annotated[In, HasShape(("B", "N", "N"))],
    B: i64,
    N: i64,
    num_points: i64,
):
    """`diopiFurthestPointSamplingMmcv` from given distances.

    points_dist: [B, N, N], whose element [b, i, k] is the distance of point k from the chosen point i, used as it is;
    idx_tensor: int32 [B, num_points]; temp_tensor: workspace [B, N] that the caller fills with 1e10.
    """


@prototype(dtypes=single, result={"idx_tensor": position32, "dist2_tensor": same}, guarantee="any_of")
def diopiKnnMmcv(
    ctx: Context,
    idx_tensor: Out,
    dist2_tensor: Out,
    xyz_tensor: Annotated[In, HasShape(("b", "n", 3))],
    new_xyz_tensor: Annotated[In, HasShape(("b", "m", 3))],
    b: i64,
    n: i64,
    m: i64,
    nsample: PositiveExtent,
):
    """The nsample nearest points of each centre, nearest first.

    xyz_tensor: [b, n, 3], the points; new_xyz_tensor: [b, m, 3], the centres; idx_tensor (int32) and dist2_tensor
    (float32, d²): [b, m, nsample]. Equal distances come in any order. With n < nsample the missing slots have index 0
    and d² = 1e10.
    Rejected: nsample outside 1 … 100. Source: MMCV 1.x knn.
    """


@prototype(dtypes=floating, result={"dist2": same, "idx": position32})
def diopiThreeNnMmcv(
    ctx: Context,
    dist2: Out,
    idx: Out,
    unknown: Annotated[In, HasShape(("b", "n", 3))],
    known: Annotated[In, HasShape(("b", "m", 3))],
    b: i64,
    n: i64,
    m: i64,
):
    """The three nearest known points of each unknown one, nearest first; among equal distances the lower index first.

    unknown: [b, n, 3]; known: [b, m, 3]; dist2 (d², without a root) and idx (int32): [b, n, 3]. With m < 3 the missing
    slots have d² = inf and index 0.
    """


@prototype(dtypes=floating, argument_dtypes={"idx": index32}, backward="diopiThreeInterpolateBackwardMmcv")
def diopiThreeInterpolateMmcv(
    ctx: Context,
    out: Out,
    points: Annotated[In, HasShape(("b", "c", "m"))],
    idx: Annotated[In, HasShape(("b", "n", 3))],
    weight: Annotated[In, HasShape(("b", "n", 3))],
    b: i64,
    c: i64,
    m: i64,
    n: i64,
):
    """Weighted sum of the features of three points.

    out[b, c, i] = Σ over k < 3 of weight[b, i, k]·points[b, c, idx[b, i, k]].
    points: [b, c, m]; idx (int32), weight: [b, n, 3]; out: [b, c, n]. The weights are used as they are.
    """


@prototype(dtypes=floating, argument_dtypes={"idx": index32})
def diopiThreeInterpolateBackwardMmcv(
    ctx: Context,
    grad_points: Annotated[InOut, HoldsZeros(), HasShape(("b", "c", "m"))],
    grad_out: Annotated[In, HasShape(("b", "c", "n"))],
    idx: Annotated[In, HasShape(("b", "n", 3))],
    weight: Annotated[In, HasShape(("b", "n", 3))],
    b: i64,
    c: i64,
    n: i64,
    m: i64,
):
    """Gradient of `diopiThreeInterpolateMmcv` by points; idx and weight get none. n comes before m here.

    grad_points: [b, c, m], zeros on entry: element [b, c, idx[b, i, k]] takes weight[b, i, k]·grad_out[b, c, i].
    grad_out: [b, c, n].
    """


@prototype(
    dtypes=floating, argument_dtypes={"idx": index32}, guarantee="exact", backward="diopiGatherPointsBackwardMmcv"
)
def diopiGatherPointsMmcv(
    ctx: Context,
    out: Out,
    points: Annotated[In, HasShape(("b", "c", "n"))],
    idx: Annotated[In, HasShape(("b", "npoints"))],
    b: i64,
    c: i64,
    n: i64,
    npoints: i64,
):
    """Features of chosen points: out[b, c, i] = points[b, c, idx[b, i]].

    points: [b, c, n]; idx: int32 [b, npoints]; out: [b, c, npoints].
    """


@prototype(dtypes=floating, argument_dtypes={"idx": index32})
def diopiGatherPointsBackwardMmcv(
    ctx: Context,
    grad_points: Annotated[InOut, HoldsZeros(), HasShape(("b", "c", "n"))],
    grad_out: Annotated[In, HasShape(("b", "c", "npoints"))],
    idx: Annotated[In, HasShape(("b", "npoints"))],
    b: i64,
    c: i64,
    n: i64,
    npoints: i64,
):
    """Gradient of `diopiGatherPointsMmcv` by points: grad_points[b, c, idx[b, i]] takes grad_out[b, c, i].

    grad_points: [b, c, n], zeros on entry; grad_out: [b, c, npoints].
    """


@prototype(
    dtypes=floating, argument_dtypes={"idx": index32}, guarantee="exact", backward="diopiGroupPointsBackwardMmcv"
)
def diopiGroupPointsMmcv(
    ctx: Context,
    out: Out,
    points: Annotated[In, HasShape(("b", "c", "n"))],
    idx: Annotated[In, HasShape(("b", "npoints", "nsample"))],
    b: i64,
    c: i64,
    n: i64,
    npoints: i64,
    nsample: i64,
):
    """Features of groups of points: out[b, c, i, j] = points[b, c, idx[b, i, j]].

    points: [b, c, n]; idx: int32 [b, npoints, nsample]; out: [b, c, npoints, nsample].
    """


@prototype(dtypes=floating, argument_dtypes={"idx": index32})
def diopiGroupPointsBackwardMmcv(
    ctx: Context,
    grad_points: Annotated[InOut, HoldsZeros(), HasShape(("b", "c", "n"))],
    grad_out: Annotated[In, HasShape(("b", "c", "npoints", "nsample"))],
    idx: Annotated[In, HasShape(("b", "npoints", "nsample"))],
    b: i64,
    c: i64,
    n: i64,
    npoints: i64,
    nsample: i64,
):
    """Gradient of `diopiGroupPointsMmcv` by points: grad_points[b, c, idx[b, i, j]] takes grad_out[b, c, i, j].

    grad_points: [b, c, n], zeros on entry; grad_out: [b, c, npoints, nsample].
    """


@prototype(
    dtypes=floating,
    argument_dtypes=dict.fromkeys(("features_batch_cnt_tensor", "idx_tensor", "idx_batch_cnt_tensor"), index32),
    guarantee="exact",
    backward="diopiStackGroupPointsBackwardMmcv",
)
def diopiStackGroupPointsMmcv(
    ctx: Context,
    out_tensor: Annotated[InOut, HoldsZeros(), HasShape(("m", "c", "nsample"))],
    features_tensor: Annotated[In, HasShape(("ΣN", "c"))],
    features_batch_cnt_tensor: Annotated[In, HasShape(("b",))],
    idx_tensor: Annotated[In, HasShape(("m", "nsample"))],
    idx_batch_cnt_tensor: Annotated[In, HasShape(("b",))],
    b: i64,
    c: i64,
    m: i64,
    nsample: i64,
):
    """Features of groups of points in stacked sets.

    features_tensor: [ΣN, c] of the sizes features_batch_cnt_tensor; idx_tensor: int32 [m, nsample], of which the rows
    belong to the sets as idx_batch_cnt_tensor says; out_tensor: [m, c, nsample], zeros on entry.
    out[r, f, j] = features[start + idx[r, j], f], start being where row r's set begins. Where idx is outside that set,
    nothing is written.
    """


@prototype(
    dtypes=floating,
    argument_dtypes=dict.fromkeys(("idx_tensor", "idx_batch_cnt_tensor", "features_batch_cnt_tensor"), index32),
)
def diopiStackGroupPointsBackwardMmcv(
    ctx: Context,
    grad_features_tensor: Annotated[InOut, HoldsZeros(), HasShape(("n", "c"))],
    grad_out_tensor: Annotated[In, HasShape(("m", "c", "nsample"))],
    idx_tensor: Annotated[In, HasShape(("m", "nsample"))],
    idx_batch_cnt_tensor: Annotated[In, HasShape(("b",))],
    features_batch_cnt_tensor: Annotated[In, HasShape(("b",))],
    b: i64,
    c: i64,
    m: i64,
    n: i64,
    nsample: i64,
):
    """Gradient of `diopiStackGroupPointsMmcv` by features: grad_features[start + idx[r, j], f] takes grad_out[r, f, j].

    grad_features_tensor: [n, c] with n = ΣN, zeros on entry; grad_out_tensor: [m, c, nsample]. The two size tensors
    come in the other order than in the forward; indices outside their set are skipped.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"knn_idx": index64},
    ignored=[AGGREGATE],
    backward="diopiAssignScoreWithkBackwardMmcv",
)
def diopiAssignScoreWithkMmcv(
    ctx: Context,
    output: Annotated[InOut, HoldsZeros(), HasShape(("B", "out_dim", "npoint", "K"))],
    points: Annotated[In, HasShape(("B", "N", "M", "out_dim"))],
    centers: Annotated[In, HasShape(("B", "N", "M", "out_dim"))],
    scores: Annotated[In, HasShape(("B", "npoint", "K", "M"))],
    knn_idx: Annotated[In, HasShape(("B", "npoint", "K"))],
    B: i64,
    N: i64,
    npoint: i64,
    M: i64,
    K: i64,
    out_dim: i64,
    aggregate: i64,
):
    """PAConv: neighbours' features relative to their centre, mixed over M weight matrices by scores.

    points, centers: [B, N, M, O], O = out_dim; scores: [B, n, K, M], n = npoint; knn_idx: int64 [B, n, K]; output: [B,
    O, n, K], zeros on entry. With k' = knn_idx[b, i, k] and the centre c' = knn_idx[b, i, 0]:
    output[b, o, i, k] = Σ over m of scores[b, i, k, m]·(points[b, k', m, o] − centers[b, c', m, o]).
    c' must be inside 0 … N − 1; where k' is outside nothing is written. `aggregate` is ignored: it is always this sum.
    Source: M. Xu et al., "PAConv", CVPR 2021; MMCV 1.x assign_score_withk.
    """


@prototype(dtypes=floating, argument_dtypes={"knn_idx": index64}, ignored=[AGGREGATE])
def diopiAssignScoreWithkBackwardMmcv(
    ctx: Context,
    grad_points: Annotated[InOut, HoldsZeros(), HasShape(("B", "N", "M", "out_dim"))],
    grad_centers: Annotated[InOut, HoldsZeros(), HasShape(("B", "N", "M", "out_dim"))],
    grad_scores: Annotated[InOut, HoldsZeros(), HasShape(("B", "npoint", "K", "M"))],
    grad_out: Annotated[In, HasShape(("B", "out_dim", "npoint", "K"))],
    points: Annotated[In, HasShape(("B", "N", "M", "out_dim"))],
    centers: Annotated[In, HasShape(("B", "N", "M", "out_dim"))],
    scores: Annotated[In, HasShape(("B", "npoint", "K", "M"))],
    knn_idx: Annotated[In, HasShape(("B", "npoint", "K"))],
    B: i64,
    N: i64,
    npoint: i64,
    M: i64,
    K: i64,
    out_dim: i64,
    aggregate: i64,
):
    """Gradients of `diopiAssignScoreWithkMmcv` by points, centers and scores.

    Each has the shape of what it belongs to and zeros on entry; grad_out: [B, O, n, K]. With g = grad_out[b, o, i, k],
    grad_points[b, k', m, o] takes scores[b, i, k, m]·g, grad_centers[b, c', m, o] takes −scores[b, i, k, m]·g, and
    grad_scores[b, i, k, m] = Σ over o of (points[b, k', m, o] − centers[b, c', m, o])·g. Neighbours outside are
    skipped.
    """
