"""MMCV's pooling of axis-aligned regions of interest (RoIs) on feature maps, forward and backward.

- Feature maps are [N, C, H, W].
- Each row of `rois` [R, 5] is (batch index, x1, y1, x2, y2) in image coordinates. All columns, including the batch
  index, have the dtype of the feature maps.
- s = spatial_scale converts image coordinates to feature-map coordinates.
- Pooled results are [R, C, ph, pw], where ph × pw is the number of bins of one RoI.
- All floating tensors of a call have one dtype; half precision accumulates in float32. With R = 0, a call succeeds and
  writes nothing.

The caller fills in-out tensors with zeros. The call adds to them or writes to a part of them, or overwrites all of them
with the same values. Gradients may be summed in any order.

B(F, y, x) samples an H × W plane F bilinearly at row y and column x:

- B is 0 if y < −1, y > H, x < −1 or x > W. Otherwise, negative coordinates count as 0.
- Let y0 = ⌊y⌋ and y1 = y0 + 1. If y0 ≥ H−1, then y0 = y1 = y = H−1 instead. The same holds for x and W.
- With ly = y − y0 and lx = x − x0, B is (1−ly)(1−lx)·F[y0,x0] + (1−ly)·lx·F[y0,x1] + ly·(1−lx)·F[y1,x0] +
  ly·lx·F[y1,x1].

B†(g, y, x), the adjoint of B, adds g times these four weights to the same cells. It adds nothing if the position is
outside.

A call is rejected if a tensor has another rank or number of columns than stated. It is also rejected if a pooled size
is below 1, or if the shape of a result does not match the inputs.

Source: the MMCV 1.x operator of the same name, unless a docstring names another one.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, index32, position32, same, single
from diopi_proto.facts import HasShape, HoldsZeros
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, InOut, Out, PositiveExtent, Sized, ZerosInOut, boolean, f32, i64


@prototype(dtypes=floating, backward="diopiRoiAlignBackwardMmcv")
def diopiRoiAlignMmcv(
    ctx: Context,
    output: Out,
    argmax_y: Out,
    argmax_x: Out,
    input: Annotated[In, HasShape(("N", "C", "H", "W"))],
    rois: Annotated[In, HasShape(("R", 5))],
    aligned_height: PositiveExtent,
    aligned_width: PositiveExtent,
    sampling_ratio: i64,
    pool_mode: i64,
    spatial_scale: f32,
    aligned: boolean,
):
    """Compute the mean (pool_mode 1) or maximum (pool_mode 0) of bilinear samples in each bin of each unrounded RoI.

    output is [R, C, ph, pw] with ph = aligned_height and pw = aligned_width. Let o = 0.5 if `aligned` is true, else 0.

    1. The scaled RoI has the corners (x1·s − o, y1·s − o) and (x2·s − o, y2·s − o). Let rw be its width and rh its
       height. If `aligned` is false, both are raised to at least 1.
    2. A bin has height rh/ph and width rw/pw, and a grid of gh × gw samples. If sampling_ratio is positive, gh = gw =
       sampling_ratio. Otherwise, gh = ⌈rh/ph⌉ and gw = ⌈rw/pw⌉.
    3. Sample (iy, ix) of bin (i, j) is B(input[n, c], y, x) at y = y1 + (i + (iy + ½)/gh)·rh/ph, where y1 is scaled. x
       is computed likewise.
    4. The mean divides the sum of the samples by max(gh·gw, 1).

    argmax_y, argmax_x: in maximum mode, the coordinates of the first largest sample in row-major order, in output's
    shape. A bin without samples gives −FLT_MAX in output and −1 in both. In mean mode, they may have no elements, and
    their contents are unspecified.

    Source: K. He et al., "Mask R-CNN", ICCV 2017; MMCV 1.x roi_align.
    """


@prototype(
    dtypes=floating,
    ignored=[
        Ignored(("argmax_y", "argmax_x"), "mean pooling has no maxima", {"pool_mode": 1}),
        Ignored(
            ("sampling_ratio", "spatial_scale", "aligned"),
            "argmax determines the result",
            {"pool_mode": 0},
            read=Read.value,
        ),
    ],
)
def diopiRoiAlignBackwardMmcv(
    ctx: Context,
    grad_input: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    grad_output: Annotated[In, HasShape(("R", "C", "aligned_height", "aligned_width"))],
    rois: Annotated[In, HasShape(("R", 5))],
    argmax_y: Annotated[In, HasShape(("R", "C", "aligned_height", "aligned_width"))],
    argmax_x: Annotated[In, HasShape(("R", "C", "aligned_height", "aligned_width"))],
    aligned_height: i64,
    aligned_width: i64,
    sampling_ratio: i64,
    pool_mode: i64,
    spatial_scale: f32,
    aligned: boolean,
):
    """Compute the gradient of `diopiRoiAlignMmcv` with respect to its input; the RoIs have no gradient.

    grad_input: [N, C, H, W], zeros on entry, in the shape of the forward input. grad_output: [R, C, ph, pw]; let g be
    an element.

    - In mean mode (pool_mode 1), the call applies B†(g / max(gh·gw, 1)) at every sample of the bin.
    - In maximum mode (pool_mode 0), it applies B†(g) at (argmax_y, argmax_x), which are results of the forward call. It
      skips bins whose argmax_y is −1.
    """


@prototype(
    dtypes=floating,
    result={"output": same, "argmax": position32},
    guarantee="exact",
    backward="diopiRoiPoolBackwardMmcv",
    argument_dtypes={"argmax": index32},
)
def diopiRoiPoolMmcv(
    ctx: Context,
    output: Annotated[InOut, HoldsZeros(), HasShape(("R", "C", "pooled_height", "pooled_width"))],
    argmax: Annotated[InOut, HoldsZeros(), HasShape(("R", "C", "pooled_height", "pooled_width"))],
    input: Annotated[In, HasShape(("N", "C", "H", "W"))],
    rois: Annotated[In, HasShape(("R", 5))],
    pooled_height: PositiveExtent,
    pooled_width: PositiveExtent,
    spatial_scale: f32,
):
    """Compute the maximum of the cells in each bin of each RoI.

    output and argmax (int32) are [R, C, ph, pw] with ph = pooled_height and pw = pooled_width. Both contain zeros on
    entry.

    - The RoI extends from (x1·s, y1·s) to ((x2 + 1)·s, (y2 + 1)·s). rh is its height and rw its width.
    - Row i of the bins covers the cells in rows ⌊y1·s + i·rh/ph⌋ (inclusive) to ⌈y1·s + (i + 1)·rh/ph⌉ (exclusive),
      clipped to [0, H]. Columns are computed likewise.
    - argmax is the position y·W + x of the first maximum in row-major order.

    A bin without cells gives 0 and argmax −1. The results of a RoI with rh ≤ 0 or rw ≤ 0 are not written, so their
    zeros remain.

    Source: R. Girshick, "Fast R-CNN", ICCV 2015; MMCV 1.x roi_pool.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"argmax": index32},
    ignored=[Ignored(("spatial_scale",), "argmax determines the result", read=Read.value)],
)
def diopiRoiPoolBackwardMmcv(
    ctx: Context,
    grad_input: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    grad_output: Annotated[In, HasShape(("R", "C", "pooled_height", "pooled_width"))],
    rois: Annotated[In, HasShape(("R", 5))],
    argmax: Annotated[In, HasShape(("R", "C", "pooled_height", "pooled_width"))],
    pooled_height: i64,
    pooled_width: i64,
    spatial_scale: f32,
):
    """Compute the gradient of `diopiRoiPoolMmcv` with respect to its input.

    - grad_input: [N, C, H, W], zeros on entry.
    - grad_output, argmax (int32): [R, C, ph, pw].

    Each element of grad_output for a RoI of sample n and channel c is added to grad_input[n, c], at the cell that
    argmax names. Elements whose argmax is −1 are skipped.
    """


@prototype(dtypes=floating, backward="diopiDeformRoiPoolBackwardMmcv")
def diopiDeformRoiPoolMmcv(
    ctx: Context,
    output: Out,
    input: Annotated[In, HasShape(("N", "C", "H", "W"))],
    rois: Annotated[In, HasShape(("R", 5))],
    offset: Sized | None,
    pooled_height: PositiveExtent,
    pooled_width: PositiveExtent,
    sampling_ratio: i64,
    spatial_scale: f32,
    gamma: f32,
):
    """Compute the mean of bilinear samples in bins, where each bin is shifted by its own offset.

    - output: [R, C, ph, pw] with ph = pooled_height and pw = pooled_width.
    - offset: [R, 2, ph, pw]. If it is NULL or has no elements, there is no shift.

    Without a shift, the result is that of `diopiRoiAlignMmcv` in mean mode with `aligned` true. Therefore o = 0.5, and
    the size rw × rh of a RoI has no lower limit. The samples of bin (i, j) are shifted by gamma·rw·offset[r, 0, i, j]
    in x and by gamma·rh·offset[r, 1, i, j] in y.

    Source: J. Dai et al., "Deformable Convolutional Networks", ICCV 2017; MMCV 1.x deform_roi_pool.
    """


@prototype(dtypes=floating)
def diopiDeformRoiPoolBackwardMmcv(
    ctx: Context,
    grad_input: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    grad_offset: ZerosInOut | None,
    grad_output: Annotated[In, HasShape(("R", "C", "pooled_height", "pooled_width"))],
    input: Annotated[In, HasShape(("N", "C", "H", "W"))],
    rois: Annotated[In, HasShape(("R", 5))],
    offset: Sized | None,
    pooled_height: i64,
    pooled_width: i64,
    sampling_ratio: i64,
    spatial_scale: f32,
    gamma: f32,
):
    """Compute the gradients of `diopiDeformRoiPoolMmcv` with respect to input and offset.

    - grad_input: [N, C, H, W], zeros on entry.
    - grad_offset: the shape of offset, zeros on entry. It is NULL if offset is NULL.
    - grad_output: [R, C, ph, pw]. Let g be an element and g' = g / max(gh·gw, 1).

    At each sample, the call applies B†(g') to grad_input. It adds the sum of gamma·rw·g'·∂B/∂x over channels and
    samples to grad_offset[r, 0, i, j], and the sum of gamma·rh·g'·∂B/∂y to grad_offset[r, 1, i, j]. The derivatives of
    B apply inside [0, H−1] × [0, W−1]. The contributions of samples outside to grad_offset are unspecified.
    """


@prototype(dtypes=floating, backward="diopiPrroiPoolbackwardMmcv")
def diopiPrroiPoolMmcv(
    ctx: Context,
    output: Out,
    input: Annotated[In, HasShape(("N", "C", "H", "W"))],
    rois: Annotated[In, HasShape(("R", 5))],
    pooled_height: PositiveExtent,
    pooled_width: PositiveExtent,
    spatial_scale: f32,
):
    """Compute the exact mean of the bilinearly interpolated feature map over each bin (precise RoI pooling).

    output is [R, C, ph, pw] with ph = pooled_height and pw = pooled_width.

    - The map is f(y, x) = Σ F[i, j]·max(0, 1 − |y − i|)·max(0, 1 − |x − j|), with zeros beyond the border cells.
    - The bins begin at (x1·s, y1·s). Their width is max(x2 − x1, 0)·s/pw and their height max(y2 − y1, 0)·s/ph.
    - For the bin [ya, yb] × [xa, xb], output is the integral of f over the bin, divided by the area of the bin. It is 0
      if the area is 0.

    The integral is Σ F[i, j]·G(i; ya, yb)·G(j; xa, xb) with G(i; a, b) = ∫ₐᵇ max(0, 1 − |t − i|) dt.

    Source: B. Jiang et al., "Acquisition of Localization Confidence for Accurate Object Detection", ECCV 2018.
    """


@prototype(dtypes=floating)
def diopiPrroiPoolbackwardMmcv(
    ctx: Context,
    grad_input: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    grad_output: Annotated[In, HasShape(("R", "C", "pooled_height", "pooled_width"))],
    rois: Annotated[In, HasShape(("R", 5))],
    pooled_height: i64,
    pooled_width: i64,
    spatial_scale: f32,
):
    """Compute the gradient of `diopiPrroiPoolMmcv` with respect to its input.

    grad_input: [N, C, H, W], zeros on entry. Every bin of non-zero area adds grad_output·G(i; ya, yb)·G(j; xa, xb) /
    area to cell (i, j). grad_output: [R, C, ph, pw].
    """


@prototype(dtypes=single)
def diopiPrroiPoolCoorBackwardMmcv(
    ctx: Context,
    grad_rois: Annotated[InOut, HoldsZeros(), HasShape(("R", 5))],
    output: Annotated[In, HasShape(("R", "C", "pooled_height", "pooled_width"))],
    grad_output: Annotated[In, HasShape(("R", "C", "pooled_height", "pooled_width"))],
    input: Annotated[In, HasShape(("N", "C", "H", "W"))],
    rois: Annotated[In, HasShape(("R", 5))],
    pooled_height: i64,
    pooled_width: i64,
    spatial_scale: f32,
):
    """Compute the gradient of `diopiPrroiPoolMmcv` with respect to the coordinates of its RoIs.

    - grad_rois: [R, 5], zeros on entry.
    - output: [R, C, ph, pw], the result of the forward call. grad_output: [R, C, ph, pw].

    Let p be the result of a bin [ya, yb] × [xa, xb] of non-zero area A. Its derivatives with respect to xa and xb are
    as follows, with integrals from ya to yb:

    - da = ((yb − ya)·p − ∫ f(y, xa) dy) / A.
    - db = (∫ f(y, xb) dy − (yb − ya)·p) / A.

    Let g be the element of grad_output and j the column of the bin. For all bins and channels, the call adds:

    - s·g·(da·(1 − j/pw) + db·(1 − (j + 1)/pw)) to column 1 (x1).
    - s·g·(da·j/pw + db·(j + 1)/pw) to column 3 (x2).

    Columns 2 and 4 are computed likewise from y, the row of the bin and ph. Column 0 remains 0.
    """


@prototype(dtypes=floating, result={"output": same, "argmax_idx": position32}, backward="diopiBorderAlignBackwardMmcv")
def diopiBorderAlignMmcv(
    ctx: Context,
    output: Out,
    argmax_idx: Out,
    input: Annotated[In, HasShape(("N", "4C", "H", "W"))],
    boxes: Annotated[In, HasShape(("N", "K", 4))],
    pool_size: PositiveExtent,
):
    """Compute the maximum of bilinear samples along each of the four borders of a box.

    - input: [N, 4C, H, W]. Border e uses the channels e·C to e·C + C − 1.
    - boxes: [N, K, 4], rows (x1, y1, x2, y2) in feature-map coordinates, with K = H·W.
    - output, argmax_idx (int32): [N, C, K, 4].

    Let P = pool_size, and let w and h be the width and height of the box. Each border e has the samples k = 0 … P:

    - e = 0, the top border: (x1 + k·w/P, y1)
    - e = 1, the left border: (x1, y1 + k·h/P)
    - e = 2, the bottom border: (x2 − k·w/P, y2)
    - e = 3, the right border: (x2, y2 − k·h/P)

    output[n, c, b, e] is the largest B(input[n, e·C + c]) among the samples, and argmax_idx is the first k with this
    value. A call with pool_size < 1 is rejected.

    Source: H. Qiu et al., "BorderDet: Border Feature for Dense Object Detection", ECCV 2020; MMCV 1.x border_align.
    """


@prototype(dtypes=floating, argument_dtypes={"argmax_idx": index32})
def diopiBorderAlignBackwardMmcv(
    ctx: Context,
    grad_input: Annotated[InOut, HoldsZeros(), HasShape(("N", "4C", "H", "W"))],
    grad_output: Annotated[In, HasShape(("N", "C", "K", 4))],
    boxes: Annotated[In, HasShape(("N", "K", 4))],
    argmax_idx: Annotated[In, HasShape(("N", "C", "K", 4))],
    pool_size: PositiveExtent,
):
    """Compute the gradient of `diopiBorderAlignMmcv` with respect to its input; the boxes have no gradient.

    grad_input: [N, 4C, H, W], zeros on entry. For each element g of grad_output [N, C, K, 4], the call applies B†(g) at
    the sample that argmax_idx (int32, same shape) names.
    """
