"""MMCV's voxels and sparse convolution: points to voxels, reduction by voxel, convolution and pooling over index pairs.

Voxels: points [N, F] with F ≥ 3, the first three columns x, y, z, which are finite. voxel_size [3] and coors_range [6]
(minima, then maxima, in the order x, y, z) are float32 tensors in host memory. A point is in cell ⌊(p − minimum)/size⌋
of the grid round((maximum − minimum)/size), an axis each, computed in float32 or finer; cells outside the grid don't
exist. Cell coordinates are int32 rows (z, y, x). NDim is 3.

What lies in host memory is read and written by the time the call returns, whatever its stream still has to do.

Sparse convolution: a layer has K kernel positions; indicePairs int32 [K, 2, n] lists for position k in [k, 0] the input
rows and in [k, 1] the output rows that it joins, of which the first indiceNum[k] (int32 [K]) count. filters [kernel
sizes …, Ci, Co] are seen as [K, Ci, Co]. _inverse ≠ 0 exchanges the two rows of indicePairs. _subM ≠ 0, a submanifold
convolution: outputs are the input rows, and the position with the largest indiceNum (the first of equals), the kernel's
centre, joins each row to itself whatever its pairs say.

All floating tensors of a call have one dtype unless said otherwise; half precision accumulates in float32. An in-out
tensor is filled with zeros by the caller: the call fills a part of it or adds to it, and overwriting all of it with the
same values is as good. The order of additions is unspecified.

Rejected: ranks and shapes that contradict these, other values of NDim and reduce_type.
Source: Y. Zhou, O. Tuzel, "VoxelNet", CVPR 2018; Y. Yan et al., "SECOND: Sparsely Embedded Convolutional Detection",
Sensors 2018; B. Graham et al., "3D Semantic Segmentation with Submanifold Sparse Convolutional Networks", CVPR 2018;
the MMCV 1.x operators.
"""

from typing import Annotated

from diopi_proto.dtypes import floating, index32, position, position32, same, single
from diopi_proto.facts import HasShape, HoldsZeros, OneOf, SizeOf
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
from diopi_proto.prototype import prototype

PAIRS = {"indicePairs": index32, "indiceNum": index32}
GRID = {"voxel_size": single, "coors_range": single}
SUM, MEAN, MAXIMUM = range(3)
BY_PLACE = Ignored(
    ("feats", "reduced_feats"), "only of a maximum they say whose it is", {"reduce_type": (SUM, MEAN)}, Read.form
)
ANY_ORDER = Ignored(
    ("deterministic",), "the order it asks for is as right without it", {"deterministic": False}, Read.value
)
UNDIVIDED = Ignored(("reduce_count",), "only a mean is divided by it", {"reduce_type": (SUM, MAXIMUM)}, Read.form)


@prototype(
    dtypes=floating,
    argument_dtypes={"coors": index32, "num_points_per_voxel": index32, **GRID},
    result={"voxels": same, "coors": position32, "num_points_per_voxel": position32, "voxel_num": position},
    guarantee="any_of",
    ignored=[ANY_ORDER],
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
    """Points collected by voxel, with a limit on voxels and on points a voxel.

    voxels: [max_voxels, max_points, F]; coors: int32 [max_voxels, 3]; num_points_per_voxel: int32 [max_voxels]; all
    zeros on entry. voxel_num: int64, one element, in host memory: how many voxels were made. Voxels are numbered as
    points, in their order, first fall into them; coors has the cell, voxels the points in their order,
    num_points_per_voxel their number. A voxel beyond max_voxels is dropped with all its points, and so are points
    beyond max_points of a voxel and points outside. Without `deterministic` voxels and points come in any order, and
    which of them are dropped is free; how many of each there are is not.
    Source: VoxelNet, section 2.1.1; MMCV 1.x hard_voxelize, whose `deterministic` false is the quicker kernel.
    """


@prototype(dtypes=floating, argument_dtypes={"coors": index32, **GRID}, result=position32, guarantee="exact")
def diopiDynamicVoxelizeMmcv(
    ctx: Context,
    coors: Annotated[InOut, HoldsZeros(), HasShape(("N", 3))],
    points: Annotated[In, HasShape(("N", "F"))],
    voxel_size: Annotated[HostIn, HasShape((3,))],
    coors_range: Annotated[HostIn, HasShape((6,))],
    NDim: Annotated[const_i64, SizeOf("voxel_size", 0)],
):
    """The cell of every point.

    coors: int32 [N, 3], zeros on entry, rows (z, y, x). A point outside the grid has −1 in column 0, what the other
    columns then hold is unspecified.
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
    """Sum (reduce_type 0), mean (1) or maximum (2) of the features of all points with equal coordinates.

    feats: [N, C]; coors: int32 [N, d], rows with a negative entry are left out. outlist receives four tensors:
    reduced_feats [M, C]; out_coors int32 [M, d], the M distinct rows in rising lexicographic order; coors_map int32
    [N], the row each point went to, −1 for those left out; reduce_count int32 [M], how many points each row has.
    N = 0: copies of feats and coors, and two empty int32 tensors.
    Source: MMCV 1.x DynamicScatter.
    """


@prototype(
    dtypes=floating, argument_dtypes={"coors_idx": index32, "reduce_count": index32}, ignored=[BY_PLACE, UNDIVIDED]
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
    """Gradient of `diopiDynamicPointToVoxelMmcv` by feats.

    grad_feats, feats: [N, C]; grad_reduced_feats, reduced_feats: [M, C]; coors_idx: int32 [N], the forward's coors_map;
    reduce_count: int32 [M]. With row v = coors_idx[i]: sum gives grad_reduced_feats[v], mean that divided by
    reduce_count[v], maximum gives it, per channel, to the first point of the row whose feature equals reduced_feats.
    Everything else is 0, and so is what belongs to points that were left out, whose coors_idx is −1.
    Source: MMCV 1.x DynamicScatter.
    """


@prototype(dtypes=floating, argument_dtypes=PAIRS, backward="diopiIndiceConvBackwardMmcv")
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
    """Sparse convolution: out[o] = Σ over k and the pairs (i, o) of position k of features[i] · filters[k].

    features: [N, Ci]; filters: [K, Ci, Co]; out: [numActOut, Co], rows that no pair names 0. With _subM numActOut is N.
    """


@prototype(dtypes=floating, argument_dtypes=PAIRS, result={"inputGrad": same, "filtersGrad": same})
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
    """Gradients of `diopiIndiceConvMmcv` by features and filters.

    outGrad: [numActOut, Co]. outlist receives two tensors, sums over the pairs (i, o): inputGrad, of features' shape,
    with inputGrad[i] = Σ outGrad[o] · filters[k]ᵀ, and filtersGrad, of filters' shape, with
    filtersGrad[k] = Σ features[i]ᵀ · outGrad[o]. With _subM numActOut is N.
    """


@prototype(dtypes=floating, argument_dtypes=PAIRS)
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
    """`diopiIndiceConvMmcv` plus bias [Co] on every row, those that no pair names included.

    The bias counts with _subM too; MMCV's own kernel loses it there.
    """


@prototype(dtypes=floating, argument_dtypes=PAIRS, guarantee="exact", backward="diopiIndiceMaxpoolBackwardMmcv")
def diopiIndiceMaxpoolMmcv(
    ctx: Context,
    out: NewOut,
    features: Annotated[In, HasShape(("N", "C"))],
    indicePairs: Annotated[In, HasShape(("K", 2, "n"))],
    indiceNum: Annotated[In, HasShape(("K",))],
    numAct: Extent,
):
    """Sparse maximum pooling: out[o] = max(0, features[i] over all pairs (i, o) of all positions), per channel.

    features: [N, C]; out: [numAct, C]. The maximum starts from 0: no result is negative.
    """


@prototype(dtypes=floating, argument_dtypes=PAIRS)
def diopiIndiceMaxpoolBackwardMmcv(
    ctx: Context,
    out: NewOut,
    features: Annotated[In, HasShape(("N", "C"))],
    outFeatures: Annotated[In, HasShape(("numAct", "C"))],
    outGrad: Annotated[In, HasShape(("numAct", "C"))],
    indicePairs: Annotated[In, HasShape(("K", 2, "n"))],
    indiceNum: Annotated[In, HasShape(("K",))],
):
    """Gradient of `diopiIndiceMaxpoolMmcv` by features.

    outFeatures, outGrad: [numAct, C], the forward's result and its gradient; out: of features' shape. For every pair
    (i, o) and channel c with features[i, c] = outFeatures[o, c], out[i, c] takes outGrad[o, c]: every element that
    attains the maximum gets all of it.
    """
