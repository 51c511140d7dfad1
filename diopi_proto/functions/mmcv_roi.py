"""MMCV's pooling of axis-aligned regions of interest (RoIs) on feature maps, forward and backward.

Feature maps are [N, C, H, W]. `rois` [R, 5] holds (batch index, x1, y1, x2, y2) a row in image coordinates,
in the features' dtype, the batch index included. spatial_scale s takes image to feature-map coordinates. Pooled results
are [R, C, ph, pw], where ph × pw are the bins of one RoI, row by row. All floating tensors of a call have one dtype;
half precision accumulates in float32. With R = 0 a call succeeds and writes nothing.

An in-out tensor is filled with zeros by the caller: the call adds to it or fills a part of it, and overwriting all of
it with the same values is as good. The order of additions in a gradient is free.

B(F, y, x) is bilinear sampling of an H × W plane F. It is 0 where y < −1, y > H, x < −1 or x > W. Otherwise negative
coordinates count as 0; y0 = ⌊y⌋ and y1 = y0 + 1, but y0 = y1 = y = H−1 once y0 ≥ H−1 (x likewise with W); with
ly = y − y0 and lx = x − x0 the value is
(1−ly)(1−lx)·F[y0,x0] + (1−ly)·lx·F[y0,x1] + ly·(1−lx)·F[y1,x0] + ly·lx·F[y1,x1].
B†(g, y, x) is its adjoint: it adds g times these four weights to the same cells, nothing outside.

Rejected: a tensor of another rank or with another number of columns than stated, pooled sizes below 1, results whose
shape does not fit the inputs. Source: the MMCV 1.x operator of the same name, unless another one is given.
"""

from typing import Annotated

from diopi_proto.dtypes import floating, index32, position32, same, single
from diopi_proto.facts import HasShape, HoldsZeros
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, InOut, Out, PositiveExtent, Sized, ZerosInOut, boolean, f32, i64
from diopi_proto.prototype import prototype


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
    """Mean (pool_mode 1) or maximum (pool_mode 0) of bilinear samples in each bin of each RoI; RoIs are not rounded.

    output: [R, C, aligned_height, aligned_width]. The scaled RoI is x1·s − o … y2·s − o with o = 0.5 if `aligned`, else
    0; its width rw = x2 − x1 and height rh = y2 − y1 are raised to at least 1 unless `aligned`. A bin, rh/ph high and
    rw/pw wide, is sampled on a grid of gh × gw points: sampling_ratio² of them if sampling_ratio > 0, else gh = ⌈rh/ph⌉
    and gw = ⌈rw/pw⌉. Sample (iy, ix) of bin (i, j) is B(input[n, c], y, x) at y = y1 + (i + (iy + ½)/gh)·rh/ph, x
    alike; the mean divides by max(gh·gw, 1).
    argmax_y, argmax_x: in maximum mode of output's shape, the coordinates of the first largest sample, row by row; a
    bin without samples gives −FLT_MAX in output and −1 here. In mean mode they may have no elements, and what they
    hold afterwards is open.
    Source: K. He et al., "Mask R-CNN", ICCV 2017; MMCV 1.x roi_align.
    """


@prototype(
    dtypes=floating,
    ignored=[
        Ignored(("argmax_y", "argmax_x"), "a mean has none", {"pool_mode": 1}),
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
    """Gradient of `diopiRoiAlignMmcv` by its input; the RoIs get none.

    grad_input: [N, C, H, W], zeros on entry, whose H and W are those of the forward's input. grad_output: [R, C, ph,
    pw]. Mean mode: B†(g / max(gh·gw, 1)) at every sample of the bin. Maximum mode: B†(g) at (argmax_y, argmax_x) as the
    forward gave them, nothing where argmax_y is −1.
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
    """Maximum of the cells in each bin of each RoI.

    output, argmax (int32): [R, C, pooled_height, pooled_width], zeros on entry. The RoI runs from (x1·s, y1·s) to
    ((x2 + 1)·s, (y2 + 1)·s), height rh and width rw. Row i of bins covers the rows ⌊y1·s + i·rh/ph⌋ up to but without
    ⌈y1·s + (i + 1)·rh/ph⌉, clipped to [0, H]; columns likewise. argmax is the position y·W + x of the first maximum,
    row by row. A bin without cells gives 0 and argmax −1; a RoI with rh ≤ 0 or rw ≤ 0 is not written: zeros remain.
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
    """Gradient of `diopiRoiPoolMmcv` by its input.

    grad_input: [N, C, H, W], zeros on entry: each element of grad_output [R, C, ph, pw] is added to the cell that its
    argmax (int32, same shape) names in plane (batch index of the RoI, c); none where argmax is −1.
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
    """Mean of bilinear samples in bins that are shifted each by an offset of its own.

    output: [R, C, pooled_height, pooled_width]. As `diopiRoiAlignMmcv` in mean mode with `aligned`: o = 0.5, and no
    lower limit on the RoI's size rw × rh. offset: [R, 2, ph, pw]; the samples of bin (i, j) move by
    gamma·rw·offset[r, 0, i, j] in x and by gamma·rh·offset[r, 1, i, j] in y. NULL or no elements: no shift.
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
    """Gradients of `diopiDeformRoiPoolMmcv` by input and offset.

    grad_input: [N, C, H, W]; grad_offset: of offset's shape, left out with it; both zeros on entry. grad_output: [R, C,
    ph, pw]. With g' = g / max(gh·gw, 1) at each sample: grad_input takes B†(g'), grad_offset[r, 0, i, j] the sum over
    channels and samples of gamma·rw·g'·∂B/∂x, grad_offset[r, 1, i, j] that of gamma·rh·g'·∂B/∂y. The derivatives of B
    are taken inside [0, H−1] × [0, W−1]; what offset gets from samples outside is unspecified.
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
    """Precise RoI pooling: the exact mean over each bin of the bilinearly interpolated feature map.

    output: [R, C, pooled_height, pooled_width]. The map is f(y, x) = Σ F[i, j]·max(0, 1 − |y − i|)·max(0, 1 − |x − j|),
    zero beyond the border cells. Bins start at (x1·s, y1·s) and are max(x2 − x1, 0)·s/pw wide, max(y2 − y1, 0)·s/ph
    high. output = ∬ f over the bin / area = Σ F[i, j]·G(i; ya, yb)·G(j; xa, xb) / area for the bin [ya, yb] × [xa, xb],
    with G(i; a, b) = ∫ₐᵇ max(0, 1 − |t − i|) dt; 0 where the area is 0.
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
    """Gradient of `diopiPrroiPoolMmcv` by its input.

    grad_input: [N, C, H, W], zeros on entry; cell (i, j) takes grad_output·G(i; ya, yb)·G(j; xa, xb) / area from every
    bin of non-zero area. grad_output: [R, C, ph, pw].
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
    """Gradient of `diopiPrroiPoolMmcv` by the coordinates of its RoIs.

    grad_rois: [R, 5], zeros on entry. output: the forward's result, like grad_output [R, C, ph, pw].
    For a bin [ya, yb] × [xa, xb] of non-zero area A whose result is p, a moving edge gives
    da = ((yb − ya)·p − ∫ f(y, xa) dy) / A and db = (∫ f(y, xb) dy − (yb − ya)·p) / A, integrals from ya to yb. With g
    the element of grad_output and j the bin's column, column 1 (x1) takes s·g·(da·(1 − j/pw) + db·(1 − (j + 1)/pw)) and
    column 3 (x2) s·g·(da·j/pw + db·(j + 1)/pw), summed over bins and channels. Columns 2 and 4 likewise by y, with the
    bin's row and ph. Column 0 stays 0.
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
    """Maximum of bilinear samples along each of the four borders of a box.

    input: [N, 4C, H, W], of which border e uses channels e·C … e·C + C − 1: 0 top, 1 left, 2 bottom, 3 right.
    boxes: [N, K, 4] as (x1, y1, x2, y2) in feature-map coordinates, K = H·W. output, argmax_idx (int32): [N, C, K, 4].
    With P = pool_size, width w and height h of the box, the P + 1 samples k = 0 … P lie at
    top (x1 + k·w/P, y1), left (x1, y1 + k·h/P), bottom (x2 − k·w/P, y2), right (x2, y2 − k·h/P). output[n, c, b, e] is
    the largest B(input[n, e·C + c]) among them, argmax_idx the first k that attains it. Rejected: pool_size < 1.
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
    """Gradient of `diopiBorderAlignMmcv` by its input; the boxes get none.

    grad_input: [N, 4C, H, W], zeros on entry: B† of each element of grad_output [N, C, K, 4] at the sample that
    argmax_idx (int32, same shape) names.
    """
