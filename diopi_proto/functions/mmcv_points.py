"""MMCV's operators on point sets: neighbors, sampling, gathering and grouping, interpolation, PAConv scores.

- Points [B, N, 3] are rows (x, y, z). In features [B, C, N], the points are the last axis.
- d² is the squared Euclidean distance of two points.
- A stacked tensor concatenates B sets of different sizes, [ΣN, …]. An int32 tensor [B] contains the sizes.
- Indices are int32 unless a docstring says otherwise. They must be inside the set that they refer to, unless a
  docstring says what happens otherwise.
- Attributes that are sizes repeat sizes of the tensors.

All floating tensors of a call have one dtype; half precision accumulates in float32. Unless a docstring says otherwise,
the caller fills in-out tensors with zeros. The call adds to them or writes to a part of them, or overwrites all of them
with the same values. Gradients may be summed in any order. A call without points succeeds and writes nothing.

A call is rejected if ranks, shapes and size attributes contradict each other.

Source: the MMCV 1.x operator of the same name; C. Qi et al., "PointNet++", NeurIPS 2017, unless a docstring names
another one.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, index32, index64, position32, same, single, wide
from diopi_proto.facts import HasShape, HoldsZeros
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, InOut, Out, PositiveExtent, Workspace, f32, i64

IGNORES_AGGREGATE = Ignored(("aggregate",), "it is always the sum", read=Read.value)
"""No result depends on `aggregate`."""


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
    """Find the first sample_num points in the shell around each center.

    - center_xyz: [B, npoint, 3]. xyz: [B, N, 3].
    - idx: int32 [B, npoint, sample_num], zeros on entry.

    Point k is in the shell if d² = 0 or min_radius² ≤ d² < max_radius². A row of idx contains the first such points in
    ascending order of k. If there are fewer than sample_num, the first one fills the remaining slots. If there are
    none, the row is not written.
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
    """Find the first sample_num points in the ball around each center, in stacked sets.

    - center_xyz: [ΣM, 3] with the sizes center_xyz_batch_cnt.
    - xyz: [ΣN, 3] with the sizes xyz_batch_cnt.
    - idx: int32 [ΣM, sample_num], zeros on entry.

    Point k is in the ball if d² < max_radius². Indices count from the first point of the set to which the center
    belongs. If a ball has no point, the call writes −1 to slot 0 of the row and does not write the other slots. The
    rest is as in `diopiBallQueryMmcv`.
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
    """Select num_points points: each is the point that is furthest from the points selected before.

    - points_xyz: [B, N, 3].
    - idx_tensor: int32 [B, num_points], indices of points. The first index is 0. Each following index is that of the
      point with the largest distance d² to the nearest selected point. If several points have this distance, any of
      them is valid.
    - temp_tensor: workspace [B, N] in the dtype of points_xyz. The caller fills it with 1e10, the initial distances.
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
    """Select points as in `diopiFurthestPointSamplingMmcv`, but with distances that the caller passes.

    points_dist: [B, N, N]; element [b, i, k] is the distance of point k from the selected point i. It is used without
    squaring. idx_tensor: int32 [B, num_points]. temp_tensor: workspace [B, N], which the caller fills with 1e10.
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
    """Find the nsample nearest points of each center, nearest first.

    xyz_tensor: [b, n, 3], the points. new_xyz_tensor: [b, m, 3], the centers. idx_tensor (int32) and dist2_tensor
    (float32, d²): [b, m, nsample]. Points with equal distances may be in any order. If n < nsample, the remaining slots
    have index 0 and d² = 1e10. A call with nsample outside 1 … 100 is rejected.

    Source: MMCV 1.x knn.
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
    """Find the three nearest known points of each unknown point, nearest first.

    - unknown: [b, n, 3]. known: [b, m, 3].
    - dist2: [b, n, 3], the squared distances.
    - idx: int32 [b, n, 3], the indices of the points in known.

    Points with equal distances are in ascending order of their indices. If m < 3, dist2 is inf and idx is 0 in the
    remaining columns.
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
    """Compute weighted sums of the features of three points.

    out[b, c, i] = Σ over k < 3 of weight[b, i, k]·points[b, c, idx[b, i, k]]. The weights are not normalized.

    - points: [b, c, m].
    - idx (int32), weight: [b, n, 3].
    - out: [b, c, n].
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
    """Compute the gradient of `diopiThreeInterpolateMmcv` with respect to points; idx and weight have no gradient.

    The call adds weight[b, i, k]·grad_out[b, c, i] to grad_points[b, c, idx[b, i, k]]. grad_points: [b, c, m], zeros on
    entry. grad_out: [b, c, n]. The parameter n precedes m, unlike in the forward call.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"idx": index32},
    guarantee="exact",
    moves_numbers=True,
    backward="diopiGatherPointsBackwardMmcv",
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
    """Gather the features of selected points: out[b, c, i] = points[b, c, idx[b, i]].

    points: [b, c, n]. idx: int32 [b, npoints]. out: [b, c, npoints].
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
    """Compute the gradient of `diopiGatherPointsMmcv` with respect to points.

    The call adds grad_out[b, c, i] to grad_points[b, c, idx[b, i]]. grad_points: [b, c, n], zeros on entry. grad_out:
    [b, c, npoints].
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"idx": index32},
    guarantee="exact",
    moves_numbers=True,
    backward="diopiGroupPointsBackwardMmcv",
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
    """Gather the features of groups of points: out[b, c, i, j] = points[b, c, idx[b, i, j]].

    points: [b, c, n]. idx: int32 [b, npoints, nsample]. out: [b, c, npoints, nsample].
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
    """Compute the gradient of `diopiGroupPointsMmcv` with respect to points.

    The call adds grad_out[b, c, i, j] to grad_points[b, c, idx[b, i, j]]. grad_points: [b, c, n], zeros on entry.
    grad_out: [b, c, npoints, nsample].
    """


@prototype(
    dtypes=floating,
    argument_dtypes=dict.fromkeys(("features_batch_cnt_tensor", "idx_tensor", "idx_batch_cnt_tensor"), index32),
    guarantee="exact",
    moves_numbers=True,
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
    """Gather the features of groups of points in stacked sets.

    - features_tensor: [ΣN, c] with the sizes features_batch_cnt_tensor.
    - idx_tensor: int32 [m, nsample]. idx_batch_cnt_tensor contains the number of its rows that belong to each set.
    - out_tensor: [m, c, nsample], zeros on entry.

    out_tensor[r, f, j] = features_tensor[start + idx_tensor[r, j], f], where start is the first row of the set to which
    row r belongs. If an index is outside that set, nothing is written.
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
    """Compute the gradient of `diopiStackGroupPointsMmcv` with respect to features.

    The call adds grad_out_tensor[r, f, j] to grad_features_tensor[start + idx_tensor[r, j], f], with start as in the
    forward function. grad_features_tensor: [n, c] with n = ΣN, zeros on entry. grad_out_tensor: [m, c, nsample].
    Indices outside their set are skipped. In the parameter list, idx_batch_cnt_tensor precedes
    features_batch_cnt_tensor; in the forward function, it follows.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"knn_idx": index64},
    ignored=[IGNORES_AGGREGATE],
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
    """Combine the features of neighbors relative to their center with M weight matrices, weighted by scores (PAConv).

    - points, centers: [B, N, M, O] with O = out_dim.
    - scores: [B, n, K, M] with n = npoint.
    - knn_idx: int64 [B, n, K].
    - output: [B, O, n, K], zeros on entry.

    Let k' = knn_idx[b, i, k] be the neighbor and c' = knn_idx[b, i, 0] the center. Then output[b, o, i, k] = Σ over m
    of scores[b, i, k, m]·(points[b, k', m, o] − centers[b, c', m, o]). c' must be in 0 … N − 1. Where k' is not in this
    range, nothing is written. `aggregate` is ignored: the result is always this sum.

    Source: M. Xu et al., "PAConv", CVPR 2021; MMCV 1.x assign_score_withk.
    """


@prototype(dtypes=floating, argument_dtypes={"knn_idx": index64}, ignored=[IGNORES_AGGREGATE])
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
    """Compute the gradients of `diopiAssignScoreWithkMmcv` with respect to points, centers and scores.

    Each gradient has the shape of its argument and contains zeros on entry. grad_out is [B, O, n, K]. k' and c' are as
    in the forward function. Let g = grad_out[b, o, i, k]:

    - The call adds scores[b, i, k, m]·g to grad_points[b, k', m, o], and subtracts it from grad_centers[b, c', m, o].
    - grad_scores[b, i, k, m] = Σ over o of (points[b, k', m, o] − centers[b, c', m, o])·g.

    Neighbors k' outside 0 … N − 1 are skipped.
    """
