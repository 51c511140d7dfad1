"""MMCV's pooling and filters with orientation: rotated and rotation-invariant RoIs, feature alignment, filters.

- Feature maps are [N, C, H, W].
- Each row of the rotated RoIs [R, 6] is (batch index, cx, cy, w, h, θ) in image coordinates, with θ in radians. All
  columns have the dtype of the feature maps.
- s = spatial_scale converts image coordinates to feature-map coordinates.
- B(F, y, x) is the bilinear sampling that the family `mmcv_roi` defines, and B† is its adjoint.
- All floating tensors of a call have one dtype; half precision accumulates in float32. A call without RoIs succeeds and
  writes nothing.

The caller fills in-out tensors with zeros. The call adds to them or writes to a part of them, or overwrites all of them
with the same values. Gradients may be summed in any order.

A RoI of size w × h around (cx, cy) at angle θ is divided into ph × pw bins. Each bin (i, j) has a grid of gh × gw
samples:

- If the number n of samples is positive, gh = gw = n. Otherwise, gh = ⌈h/ph⌉ and gw = ⌈w/pw⌉.
- Along the axes of the RoI, sample (iy, ix) has the coordinates v = −h/2 + (i + (iy + ½)/gh)·h/ph and u = −w/2 + (j +
  (ix + ½)/gw)·w/pw.
- On the map, the sample is at y = v·cos θ − u·sin θ + cy and x = v·sin θ + u·cos θ + cx.

A call is rejected if a tensor has another rank or number of columns than stated. It is also rejected if a pooled size
is below 1, or if the shape of a result does not match the inputs.

Source: the MMCV 1.x operator of the same name, unless a docstring names another one.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, index32
from diopi_proto.facts import HasShape, HoldsZeros
from diopi_proto.parameters import Context, In, InOut, Out, PositiveExtent, boolean, f32, i64


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
    """Compute the mean of bilinear samples in each bin of each rotated RoI.

    output is [R, C, ph, pw] with ph = aligned_height and pw = aligned_width.

    - The RoI has the center (cx·s − o, cy·s − o), where o = 0.5 if `aligned` is true, else 0.
    - Its size is w·s × h·s. If `aligned` is false, both are raised to at least 1.
    - Its angle is −θ if `clockwise` is true, else θ.
    - The result of a bin is the sum of B(input[n, c]) over its samples, divided by max(gh·gw, 1). The number of samples
      is n = sampling_ratio.

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
    """Compute the gradient of `diopiRoiAlignRotatedMmcv` with respect to its input; the RoIs have no gradient.

    bottom_grad: [N, C, H, W], zeros on entry. For each element g of top_grad [R, C, ph, pw], the call applies B†(g /
    max(gh·gw, 1)) at every sample of the bin.
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
    """Pool rotated RoIs, with orientation channels shifted by the angle of the RoI (rotation-invariant RoI align).

    features is [N, C, H, W] with C = C'·O, where O = num_orientations. Channel c·O + o is orientation o of feature c.
    output is [R, C, ph, pw] with ph = pooled_height and pw = pooled_width.

    1. The RoI has the center (cx·s, cy·s) and the size max(w·s, 1) × max(h·s, 1). It is sampled as in
       `diopiRoiAlignRotatedMmcv`, at the angle −θ if `clockwise` is true, else θ, with n = num_samples.
    2. Let t = θ·O/2π for the original θ, k = ⌊t⌋ and l = t − k. Orientation o combines the orientations a = (o − k) mod
       O and b = (a + 1) mod O.
    3. output[r, c·O + o] is the sum over the samples of (1 − l)·B(plane c·O + a) + l·B(plane c·O + b), divided by
       max(gh·gw, 1).

    |θ| must be below 2π. A call is rejected if C is not divisible by O.

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
    """Compute the gradient of `diopiRiroiAlignRotatedMmcv` with respect to its features; the RoIs have no gradient.

    bottom_grad: [N, C, H, W], zeros on entry. Let g' = top_grad[r, c·O + o] / max(gh·gw, 1), with a, b and l as in the
    forward function. At every sample, the call applies B†((1 − l)·g') to plane c·O + a and B†(l·g') to plane c·O + b.
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
    """Add to the features of each position the samples at the center, and optionally at the corners, of its best box.

    - output, features: [N, C, H, W].
    - best_bboxes: [N, H, W, 5], one box (y, x, w, h, a) per position. The lengths y, x, w and h are multiplied by s,
      and the angle a is in radians.
    - points: 1 samples the center. 5 also samples the four corners. Other values are rejected.

    Let (wx, wy) = w/2·(cos a, sin a) and (hx, hy) = h/2·(−sin a, cos a). The corners are (x ± wx ± hx, y ± wy ± hy),
    for the four combinations of two signs. x and y have the same signs. output[n, c, i, j] = features[n, c, i, j] + Σ
    B(features[n, c]) over the samples, which is a sum and not a mean.

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
    """Compute the gradient of `diopiRotatedFeatureAlignMmcv` with respect to its features; the boxes have no gradient.

    bottom_grad, top_grad: [N, C, H, W]. bottom_grad contains zeros on entry. The call adds top_grad, and applies
    B†(top_grad[n, c, i, j]) at every point of the box at (i, j).
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"indices": index32},
    guarantee="exact",
    moves_numbers=True,
    backward="diopiActiveRotatedFilterBackwardMmcv",
)
def diopiActiveRotatedFilterMmcv(
    ctx: Context,
    output: Out,
    input: Annotated[In, HasShape(("P", "Q", "O", "kH", "kW"))],
    indices: Annotated[In, HasShape(("O", "kH", "kW", "R"))],
):
    """Compute R rotated copies of each filter, by permutations of its orientations and kernel positions.

    - input: [P, Q, O, kH, kW], where O is the number of orientations.
    - indices: int32 [O, kH, kW, R]. For each r, the entries are a permutation of 1 … E with E = O·kH·kW.
    - output: [P·R, Q·O, kH, kW].

    Let l number the E entries of one filter in row-major order, and view output as [P, R, Q, E] and indices as [E, R].
    Then output[p, r, q, indices[l, r] − 1] = input[p, q, l].

    Source: Y. Zhou et al., "Oriented Response Networks", CVPR 2017; MMCV 1.x active_rotated_filter.
    """


@prototype(dtypes=floating, argument_dtypes={"indices": index32})
def diopiActiveRotatedFilterBackwardMmcv(
    ctx: Context,
    grad_in: Out,
    grad_out: Annotated[In, HasShape(("P·R", "Q·O", "kH", "kW"))],
    indices: Annotated[In, HasShape(("O", "kH", "kW", "R"))],
):
    """Compute the gradient of `diopiActiveRotatedFilterMmcv` with respect to its input.

    grad_in: [P, Q, O, kH, kW]. grad_out: [P·R, Q·O, kH, kW], viewed as [P, R, Q, E]. grad_in[p, q, l] = Σ over r of
    grad_out[p, r, q, indices[l, r] − 1].
    """
