"""MMCV's pooling and filters with orientation: rotated and rotation-invariant RoIs, feature alignment, filters.

Feature maps are [N, C, H, W]. Rotated RoIs [R, 6] hold (batch index, cx, cy, w, h, θ in radians) a row in
image coordinates, in the features' dtype. spatial_scale s takes image to feature-map coordinates. B(F, y, x) is the
bilinear sampling that the module `mmcv_roi` defines, B† its adjoint. All floating tensors of a call have one dtype;
half precision accumulates in float32. With no RoIs a call succeeds and writes nothing.

An in-out tensor is filled with zeros by the caller: the call adds to it or fills a part of it, and overwriting all of
it with the same values is as good. The order of additions in a gradient is unspecified.

The samples of a RoI of size w × h around (cx, cy) at angle θ: bin (i, j) of ph × pw has a grid of gh × gw points, with
n > 0 samples asked for gh = gw = n, else gh = ⌈h/ph⌉ and gw = ⌈w/pw⌉. Point (iy, ix) has, in the RoI's own axes,
v = −h/2 + (i + (iy + ½)/gh)·h/ph and u = −w/2 + (j + (ix + ½)/gw)·w/pw,
which is y = v·cos θ − u·sin θ + cy, x = v·sin θ + u·cos θ + cx on the map.

Rejected: a tensor of another rank or with another number of columns than stated, pooled sizes below 1, results whose
shape does not fit the inputs. Source: the MMCV 1.x operator of the same name, unless another one is given.
"""

from typing import Annotated

from diopi_proto.dtypes import floating, index32
from diopi_proto.facts import HasShape, HoldsZeros
from diopi_proto.parameters import Context, In, InOut, Out, PositiveExtent, boolean, f32, i64
from diopi_proto.prototype import prototype


@prototype(dtypes=floating, backward="diopiRoiAlignRotatedBackwardMmcv")
def diopiRoiAlignRotatedMmcv(
    ctx: Context,
    output: Out,
    input: Annotated[In, HasShape(("N", "C", "H", "W"))],
    rois: Annotated[In, HasShape(("R", 6))],
    aligned_height: PositiveExtent,
    aligned_width: PositiveExtent,
    sampling_ratio: i64,
    spatial_scale: f32,
    aligned: boolean,
    clockwise: boolean,
):
    """Mean of bilinear samples in each bin of each rotated RoI.

    output: [R, C, aligned_height, aligned_width]. The RoI has centre (cx·s − o, cy·s − o), o = 0.5 if `aligned`, else
    0, and size w·s × h·s, each raised to at least 1 unless `aligned`; its angle is −θ if `clockwise`, else θ. A bin is
    the sum of B(input[n, c]) over its samples (sampling_ratio asked for) divided by max(gh·gw, 1).
    Source: J. Ma et al., "Arbitrary-Oriented Scene Text Detection via Rotation Proposals", IEEE Trans. Multimedia 2018;
    MMCV 1.x roi_align_rotated.
    """


@prototype(dtypes=floating)
def diopiRoiAlignRotatedBackwardMmcv(
    ctx: Context,
    bottom_grad: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    top_grad: Annotated[In, HasShape(("R", "C", "aligned_height", "aligned_width"))],
    rois: Annotated[In, HasShape(("R", 6))],
    aligned_height: i64,
    aligned_width: i64,
    sampling_ratio: i64,
    spatial_scale: f32,
    aligned: boolean,
    clockwise: boolean,
):
    """Gradient of `diopiRoiAlignRotatedMmcv` by its input; the RoIs get none.

    bottom_grad: [N, C, H, W], zeros on entry: B†(g / max(gh·gw, 1)) at every sample, g from top_grad [R, C, ph, pw].
    """


@prototype(dtypes=floating, backward="diopiRiroiAlignRotatedBackwardMmcv")
def diopiRiroiAlignRotatedMmcv(
    ctx: Context,
    output: Out,
    features: Annotated[In, HasShape(("N", "C", "H", "W"))],
    rois: Annotated[In, HasShape(("R", 6))],
    pooled_height: PositiveExtent,
    pooled_width: PositiveExtent,
    num_samples: i64,
    num_orientations: PositiveExtent,
    spatial_scale: f32,
    clockwise: boolean,
):
    """Rotation-invariant RoI align: as `diopiRoiAlignRotatedMmcv`, orientation channels shifted by the RoI's angle.

    features: [N, C, H, W] with C = C'·O, O = num_orientations; channel c·O + o is orientation o of feature c. output:
    [R, C, pooled_height, pooled_width]. The RoI has centre (cx·s, cy·s) and size max(w·s, 1) × max(h·s, 1), and is
    sampled (num_samples asked for) at the angle −θ if `clockwise`, else θ. With t = θ·O/2π of the unchanged θ, k = ⌊t⌋
    and l = t − k, orientation o blends a = (o − k) mod O and b = (a + 1) mod O: output[r, c·O + o] is the sum over
    samples of (1 − l)·B(plane c·O + a) + l·B(plane c·O + b), divided by max(gh·gw, 1). |θ| must be below 2π.
    Rejected: C not divisible by O.
    Source: J. Han et al., "ReDet: A Rotation-equivariant Detector for Aerial Object Detection", CVPR 2021; MMCV 1.x
    riroi_align_rotated.
    """


@prototype(dtypes=floating)
def diopiRiroiAlignRotatedBackwardMmcv(
    ctx: Context,
    bottom_grad: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    top_grad: Annotated[In, HasShape(("R", "C", "pooled_height", "pooled_width"))],
    rois: Annotated[In, HasShape(("R", 6))],
    pooled_height: i64,
    pooled_width: i64,
    num_samples: i64,
    num_orientations: PositiveExtent,
    spatial_scale: f32,
    clockwise: boolean,
):
    """Gradient of `diopiRiroiAlignRotatedMmcv` by its features; the RoIs get none.

    bottom_grad: [N, C, H, W], zeros on entry. With g' = top_grad[r, c·O + o] / max(gh·gw, 1), every sample adds
    B†((1 − l)·g') to plane c·O + a and B†(l·g') to plane c·O + b.
    """


@prototype(dtypes=floating, backward="diopiRotatedFeatureAlignBackwardMmcv")
def diopiRotatedFeatureAlignMmcv(
    ctx: Context,
    output: Out,
    features: Annotated[In, HasShape(("N", "C", "H", "W"))],
    best_bboxes: Annotated[In, HasShape(("N", "H", "W", 5))],
    spatial_scale: f32,
    points: i64,
):
    """Each position's features plus those sampled at the centre, and at the corners too, of the box chosen for it.

    output, features: [N, C, H, W]. best_bboxes: [N, H, W, 5], read as (y, x, w, h, a) with the lengths times s and the
    angle a in radians. points 1 samples the centre; 5 also the corners (x ± wx ± hx, y ± wy ± hy) for the four choices
    of the two signs, the same for x and y, with (wx, wy) = w/2·(cos a, sin a) and (hx, hy) = h/2·(−sin a, cos a).
    output[n, c, i, j] = features[n, c, i, j] + Σ B(features[n, c]) over the points: a sum, not a mean.
    Rejected: points other than 1 and 5.
    Source: X. Yang et al., "R3Det: Refined Single-Stage Detector with Feature Refinement for Rotating Object", AAAI
    2021; MMCV 1.x rotated_feature_align.
    """


@prototype(dtypes=floating)
def diopiRotatedFeatureAlignBackwardMmcv(
    ctx: Context,
    bottom_grad: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    top_grad: Annotated[In, HasShape(("N", "C", "H", "W"))],
    best_bboxes: Annotated[In, HasShape(("N", "H", "W", 5))],
    spatial_scale: f32,
    points: i64,
):
    """Gradient of `diopiRotatedFeatureAlignMmcv` by its features; the boxes get none.

    bottom_grad, top_grad: [N, C, H, W], bottom_grad zeros on entry: top_grad itself, plus B†(top_grad[n, c, i, j]) at
    every point of the box at (i, j).
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"indices": index32},
    guarantee="exact",
    backward="diopiActiveRotatedFilterBackwardMmcv",
)
def diopiActiveRotatedFilterMmcv(
    ctx: Context,
    output: Out,
    input: Annotated[In, HasShape(("P", "Q", "O", "kH", "kW"))],
    indices: Annotated[In, HasShape(("O", "kH", "kW", "R"))],
):
    """R rotated copies of each filter, made by permuting its orientation and kernel positions.

    input: [P, Q, O, kH, kW], O orientations; indices: int32 [O, kH, kW, R], counting from 1;
    output: [P·R, Q·O, kH, kW]. With E = O·kH·kW, l running over the E entries of one filter and output seen as [P, R,
    Q, E]: output[p, r, q, indices[l, r] − 1] = input[p, q, l]. For each r, indices[:, r] is a permutation of 1 … E.
    Source: Y. Zhou et al., "Oriented Response Networks", CVPR 2017; MMCV 1.x active_rotated_filter.
    """


@prototype(dtypes=floating, argument_dtypes={"indices": index32})
def diopiActiveRotatedFilterBackwardMmcv(
    ctx: Context,
    grad_in: Out,
    grad_out: Annotated[In, HasShape(("P·R", "Q·O", "kH", "kW"))],
    indices: Annotated[In, HasShape(("O", "kH", "kW", "R"))],
):
    """Gradient of `diopiActiveRotatedFilterMmcv` by its input.

    grad_in: [P, Q, O, kH, kW]; grad_out: [P·R, Q·O, kH, kW], seen as [P, R, Q, E]:
    grad_in[p, q, l] = Σ over r of grad_out[p, r, q, indices[l, r] − 1].
    """
