"""MMCV's voxels and sparse convolution: points to voxels, reduction by voxel, convolution and pooling over index pairs.

Voxels:

- Points are [N, F] with F ≥ 3. Their first three columns are finite x, y and z.
- voxel_size [3] and coors_range [6] (minima, then maxima, in the order x, y, z) are float32 tensors in host memory. The
  call reads and writes host memory before it returns, even if its stream still has work to do.
- Along each axis, a point is in cell ⌊(p − minimum)/size⌋ of a grid of round((maximum − minimum)/size) cells, computed
  in float32 or higher precision. Points outside the grid belong to no cell.
- The coordinates of a cell are an int32 row (z, y, x). NDim is 3.

Sparse convolution, with K kernel positions:

- indicePairs, int32 [K, 2, n], lists pairs of rows for each position k. [k, 0] contains input rows, and [k, 1] contains
  the output rows that they contribute to. Only the first indiceNum[k] pairs count. indiceNum is int32 [K].
- filters [kernel sizes …, Ci, Co] are viewed as [K, Ci, Co].
- If _inverse is not 0, the two rows of indicePairs are exchanged.
- If _subM is not 0, the convolution is a submanifold convolution: the output rows are the input rows. The center of the
  kernel is the position with the largest indiceNum, the first one among equals. It joins each row to itself, whatever
  its pairs contain.

Unless a docstring says otherwise, all floating tensors of a call have one dtype; half precision accumulates in float32.
The caller fills in-out tensors with zeros. The call adds to them or writes to a part of them, or overwrites all of them
with the same values. Sums may be computed in any order.

A call is rejected if ranks or shapes contradict these rules, or if NDim or reduce_type has another value.

Source: Y. Zhou, O. Tuzel, "VoxelNet", CVPR 2018; Y. Yan et al., "SECOND: Sparsely Embedded Convolutional Detection",
Sensors 2018; B. Graham et al., "3D Semantic Segmentation with Submanifold Sparse Convolutional Networks", CVPR 2018;
the MMCV 1.x operators.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, index32, position, position32, same, single
from diopi_proto.facts import ComparedForEquality, HasShape, HoldsZeros, OneOf, SizeOf
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Context,
    Extent,
    HostIn,
    HostOut,
    In,
    InOut,
    NewOut,
    NewOuts,
    Out,
    const_boolean,
    const_i64,
    i64,
)

PAIR_DTYPES = {"indicePairs": index32, "indiceNum": index32}
"""The element types of the tables of index pairs."""

GRID_DTYPES = {"voxel_size": single, "coors_range": single}
"""The element types of the size and the limits of the voxel grid."""

SUM, MEAN, MAXIMUM = range(3)
"""The values of `reduce_type`."""

IGNORES_FEATURE_ELEMENTS = Ignored(
    ("feats", "reduced_feats"), "only the gradient of a maximum compares them", {"reduce_type": (SUM, MEAN)}, Read.form
)
"""The elements of `feats` and `reduced_feats` are ignored in the gradients of a sum and a mean."""

IGNORES_DETERMINISTIC = Ignored(
    ("deterministic",), "the deterministic order is also valid if it is false", {"deterministic": False}, Read.value
)
"""The results for `deterministic` true are also valid if it is false."""

IGNORES_COUNT_ELEMENTS = Ignored(
    ("reduce_count",), "only a mean is divided by it", {"reduce_type": (SUM, MAXIMUM)}, Read.form
)
"""The elements of `reduce_count` are ignored in the gradients of a sum and a maximum."""


@prototype(
    dtypes=floating,
    argument_dtypes={"coors": index32, "num_points_per_voxel": index32, **GRID_DTYPES},
    result={"voxels": same, "coors": position32, "num_points_per_voxel": position32, "voxel_num": position},
    guarantee="any_of",
    ignored=[IGNORES_DETERMINISTIC],
)
def diopiHardVoxelizeMmcv(
    ctx: Context,
    voxels: Annotated[InOut, HoldsZeros(), HasShape(("max_voxels", "max_points", "F"))],
    coors: Annotated[InOut, HoldsZeros(), HasShape(("max_voxels", 3))],
    num_points_per_voxel: Annotated[InOut, HoldsZeros(), HasShape(("max_voxels",))],
    voxel_num: HostOut,
    points: Annotated[In, HasShape(("N", "F"))],
    voxel_size: Annotated[HostIn, HasShape((3,))],
    coors_range: Annotated[HostIn, HasShape((6,))],
    max_points: const_i64,
    max_voxels: const_i64,
    NDim: Annotated[const_i64, SizeOf("voxel_size", 0)],
    deterministic: const_boolean,
):
    """Collect points by voxel, with a maximum number of voxels and of points per voxel.

    - voxels: [max_voxels, max_points, F], zeros on entry: the points of each voxel, in their original order.
    - coors: int32 [max_voxels, 3], zeros on entry: the cell of each voxel.
    - num_points_per_voxel: int32 [max_voxels], zeros on entry: the number of points of each voxel.
    - voxel_num: int64, one element in host memory: the number of voxels.

    Voxels are numbered in the order in which points first fall into them. Voxels beyond max_voxels are dropped with all
    their points. Points beyond max_points of a voxel and points outside the grid are dropped too.

    If `deterministic` is false, voxels and points may be in any order. It is then unspecified which of them are
    dropped; only their numbers are specified.

    Source: VoxelNet, section 2.1.1; MMCV 1.x hard_voxelize, which has a faster kernel for `deterministic` false.
    """


@prototype(dtypes=floating, argument_dtypes={"coors": index32, **GRID_DTYPES}, result=position32, guarantee="exact")
def diopiDynamicVoxelizeMmcv(
    ctx: Context,
    coors: Annotated[InOut, HoldsZeros(), HasShape(("N", 3))],
    points: Annotated[In, HasShape(("N", "F"))],
    voxel_size: Annotated[HostIn, HasShape((3,))],
    coors_range: Annotated[HostIn, HasShape((6,))],
    NDim: Annotated[const_i64, SizeOf("voxel_size", 0)],
):
    """Compute the cell of every point.

    coors: int32 [N, 3], zeros on entry, rows (z, y, x). For a point outside the grid, column 0 is −1 and the other
    columns are unspecified.

    Source: Y. Zhou et al., "End-to-End Multi-View Fusion for 3D Object Detection in LiDAR Point Clouds", CoRL 2019;
    MMCV 1.x dynamic_voxelize.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"coors": index32},
    result={"reduced_feats": same, "out_coors": position32, "coors_map": position32, "reduce_count": position32},
    backward="diopiDynamicPointToVoxelBackwardMmcv",
)
def diopiDynamicPointToVoxelMmcv(
    ctx: Context,
    outlist: NewOuts,
    feats: Annotated[In, HasShape(("N", "C"))],
    coors: Annotated[In, HasShape(("N", "d"))],
    reduce_type: Annotated[i64, OneOf((SUM, MEAN, MAXIMUM))],
):
    """Compute the sum (reduce_type 0), mean (1) or maximum (2) of the features of all points with equal coordinates.

    feats: [N, C]. coors: int32 [N, d]; rows with a negative entry are skipped. outlist receives four tensors:

    - reduced_feats: [M, C].
    - out_coors: int32 [M, d], the M distinct rows in ascending lexicographic order.
    - coors_map: int32 [N], the row of out_coors for each point, −1 for skipped points.
    - reduce_count: int32 [M], the number of points of each row.

    N = 0 gives copies of feats and coors, and two empty int32 tensors.

    Source: MMCV 1.x DynamicScatter.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"coors_idx": index32, "reduce_count": index32},
    ignored=[IGNORES_FEATURE_ELEMENTS, IGNORES_COUNT_ELEMENTS],
)
def diopiDynamicPointToVoxelBackwardMmcv(
    ctx: Context,
    grad_feats: Out,
    grad_reduced_feats: Annotated[In, HasShape(("M", "C"))],
    feats: Annotated[In, HasShape(("N", "C"))],
    reduced_feats: Annotated[In, HasShape(("M", "C"))],
    coors_idx: Annotated[In, HasShape(("N",))],
    reduce_count: Annotated[In, HasShape(("M",))],
    reduce_type: Annotated[i64, OneOf((SUM, MEAN, MAXIMUM))],
):
    """Compute the gradient of `diopiDynamicPointToVoxelMmcv` with respect to feats.

    - grad_feats, feats: [N, C]. grad_reduced_feats, reduced_feats: [M, C].
    - coors_idx: int32 [N], the coors_map of the forward call. reduce_count: int32 [M].

    Let v = coors_idx[i] be the row of point i. The gradient of the point depends on reduce_type:

    - 0 (sum): grad_reduced_feats[v].
    - 1 (mean): grad_reduced_feats[v] / reduce_count[v].
    - 2 (maximum): for each channel, the first point of the row whose feature equals reduced_feats receives
      grad_reduced_feats[v].

    All other gradients are 0, including those of skipped points, whose coors_idx is −1.

    Source: MMCV 1.x DynamicScatter.
    """


@prototype(
    dtypes=floating, argument_dtypes=PAIR_DTYPES, backward="diopiIndiceConvBackwardMmcv", multiplies_matrices=True
)
def diopiIndiceConvMmcv(
    ctx: Context,
    out: NewOut,
    features: Annotated[In, HasShape(("N", "Ci"))],
    filters: In,
    indicePairs: Annotated[In, HasShape(("K", 2, "n"))],
    indiceNum: Annotated[In, HasShape(("K",))],
    numActOut: Extent,
    _inverse: i64,
    _subM: i64,
):
    """Compute a sparse convolution: out[o] = Σ over k and the pairs (i, o) of position k of features[i] · filters[k].

    features: [N, Ci]. filters: [K, Ci, Co]. out: [numActOut, Co]. Rows that occur in no pair are 0. If _subM is not 0,
    numActOut is N.
    """


@prototype(
    dtypes=floating,
    argument_dtypes=PAIR_DTYPES,
    result={"inputGrad": same, "filtersGrad": same},
    multiplies_matrices=True,
)
def diopiIndiceConvBackwardMmcv(
    ctx: Context,
    outlist: NewOuts,
    features: Annotated[In, HasShape(("N", "Ci"))],
    filters: In,
    outGrad: Annotated[In, HasShape(("numActOut", "Co"))],
    indicePairs: Annotated[In, HasShape(("K", 2, "n"))],
    indiceNum: Annotated[In, HasShape(("K",))],
    _inverse: i64,
    _subM: i64,
):
    """Compute the gradients of `diopiIndiceConvMmcv` with respect to features and filters.

    outGrad is [numActOut, Co]. outlist receives two tensors, which are sums over the pairs (i, o):

    - inputGrad, in the shape of features: inputGrad[i] = Σ outGrad[o] · filters[k]ᵀ.
    - filtersGrad, in the shape of filters: filtersGrad[k] = Σ features[i]ᵀ · outGrad[o].

    If _subM is not 0, numActOut is N.
    """


@prototype(dtypes=floating, argument_dtypes=PAIR_DTYPES, multiplies_matrices=True)
def diopiFusedIndiceConvBatchnormMmcv(
    ctx: Context,
    out: NewOut,
    features: Annotated[In, HasShape(("N", "Ci"))],
    filters: In,
    bias: Annotated[In, HasShape(("Co",))],
    indicePairs: Annotated[In, HasShape(("K", 2, "n"))],
    indiceNum: Annotated[In, HasShape(("K",))],
    numActOut: Extent,
    _inverse: i64,
    _subM: i64,
):
    """Compute `diopiIndiceConvMmcv`, and add bias [Co] to every row, including rows that occur in no pair.

    The bias is also added if _subM is not 0; MMCV's kernel omits it in this case.
    """


@prototype(dtypes=floating, argument_dtypes=PAIR_DTYPES, guarantee="exact", backward="diopiIndiceMaxpoolBackwardMmcv")
def diopiIndiceMaxpoolMmcv(
    ctx: Context,
    out: NewOut,
    features: Annotated[In, HasShape(("N", "C"))],
    indicePairs: Annotated[In, HasShape(("K", 2, "n"))],
    indiceNum: Annotated[In, HasShape(("K",))],
    numAct: Extent,
):
    """Compute sparse maximum pooling: out[o] = max(0, features[i] over all pairs (i, o) of all positions), per channel.

    features: [N, C]. out: [numAct, C]. The maximum starts at 0, so no result is negative.
    """


@prototype(dtypes=floating, argument_dtypes=PAIR_DTYPES)
def diopiIndiceMaxpoolBackwardMmcv(
    ctx: Context,
    out: NewOut,
    features: Annotated[In, HasShape(("N", "C")), ComparedForEquality()],
    outFeatures: Annotated[In, HasShape(("numAct", "C")), ComparedForEquality()],
    outGrad: Annotated[In, HasShape(("numAct", "C"))],
    indicePairs: Annotated[In, HasShape(("K", 2, "n"))],
    indiceNum: Annotated[In, HasShape(("K",))],
):
    """Compute the gradient of `diopiIndiceMaxpoolMmcv` with respect to features.

    outFeatures, outGrad: [numAct, C], the result of the forward call and its gradient. out: the shape of features. For
    every pair (i, o) and channel c with features[i, c] = outFeatures[o, c], the call adds outGrad[o, c] to out[i, c].
    If several elements have the maximum, each of them receives the full gradient.
    """
