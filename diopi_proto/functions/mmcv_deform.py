"""MMCV's deformable convolutions and multi-scale deformable attention, forward and backward.

Z(F, y, x) is bilinear sampling of an H × W plane F that continues with zeros: 0 where y ≤ −1, y ≥ H, x ≤ −1 or x ≥ W;
otherwise, with y0 = ⌊y⌋, x0 = ⌊x⌋, ly = y − y0, lx = x − x0 and cells outside the plane counting 0,
(1−ly)(1−lx)·F[y0,x0] + (1−ly)·lx·F[y0,x0+1] + ly·(1−lx)·F[y0+1,x0] + ly·lx·F[y0+1,x0+1].
Z†(g, y, x), its adjoint, adds g times these weights to the same cells. ∂Z/∂y and ∂Z/∂x are the derivatives of that
formula, 0 where Z is 0 for being outside.

All floating tensors of a call have one dtype; half precision accumulates in float32. An in-out tensor is filled with
zeros by the caller: the call adds to it, and overwriting it with the same values is as good. The order of additions is
free. Workspaces (`columns`, `ones`) may have any size, none included; the backward functions, which get them as plain
inputs, don't rely on what they hold.

The convolutions: input [B, Ci, H, W]; weight [Co, Ci/groups, kH, kW]; output [B, Co, Ho, Wo] with Ho = ⌊(H + 2·padH −
dilationH·(kH − 1) − 1) / strideH⌋ + 1, Wo likewise. K = kH·kW kernel positions, G deformable groups; input channel c is
in deformable group g = ⌊c / (Ci/G)⌋. offset [B, 2·G·K, Ho, Wo]: channel 2·(g·K + i·kW + j) is the shift Δy of kernel
position (i, j), the next one its Δx. The sample of channel c at kernel position (i, j) and output position (h, w) is S
= Z(input[b, c], h·strideH − padH + i·dilationH + Δy, w·strideW − padW + j·dilationW + Δx).

Rejected: shapes that contradict these, Ci or Co not divisible by groups, Ci not divisible by the deformable groups,
kernel, stride or dilation below 1, an empty output. Source: J. Dai et al., "Deformable Convolutional Networks", ICCV
2017; X. Zhu et al., "Deformable ConvNets v2", CVPR 2019; X. Zhu et al., "Deformable DETR", ICLR 2021; the MMCV 1.x
operators.
"""

from typing import Annotated

from diopi_proto.dtypes import floating, index64
from diopi_proto.facts import AtLeast, HasShape, HoldsZeros
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Context,
    In,
    InOut,
    MutableIn,
    NewOut,
    Out,
    PositiveExtent,
    Workspace,
    ZerosInOut,
    const_boolean,
    const_i64,
    f32,
    i64,
)
from diopi_proto.prototype import prototype

ConstPositive = Annotated[const_i64, AtLeast(1)]

STEP = Ignored(("im2col_step",), "it is the number of samples processed at a time", read=Read.value)
COLUMNS = Ignored(("columns",), "it is room to work in", read=Read.form)
COLUMNS_AND_ONES = Ignored(("columns", "ones"), "they are room to work in", read=Read.form)
NO_BIAS = Ignored(("bias",), "nothing is added", {"with_bias": False})
BIAS = Ignored(("bias",), "it is added, which no gradient depends on")


@prototype(dtypes=floating, ignored=[STEP], backward="diopiDeformConvBackwardInputMmcv")
def diopiDeformConvMmcv(
    ctx: Context,
    output: Out,
    columns: Workspace,
    ones: Workspace,
    input: Annotated[In, HasShape(("B", "Ci", "H", "W"))],
    weight: Annotated[In, HasShape(("Co", "Ci/groups", "kH", "kW"))],
    offset: Annotated[In, HasShape(("B", "2·G·K", "Ho", "Wo"))],
    kW: i64,
    kH: i64,
    dW: PositiveExtent,
    dH: PositiveExtent,
    padW: i64,
    padH: i64,
    dilationW: PositiveExtent,
    dilationH: PositiveExtent,
    groups: PositiveExtent,
    deform_groups: PositiveExtent,
    im2col_step: PositiveExtent,
):
    """Deformable convolution, no bias: output[b, o, h, w] = Σ over c, i, j of weight[o, c, i, j]·S.

    c runs over the input channels of o's group. dW, dH are the strides; mind that widths come before heights.
    im2col_step, the number of samples an implementation may work on at a time, changes no result. Rejected: B not a
    multiple of min(B, im2col_step).
    The gradient by weight is `diopiDeformConvBackwardParametersMmcv`.
    """


@prototype(dtypes=floating, ignored=[STEP, COLUMNS])
def diopiDeformConvBackwardInputMmcv(
    ctx: Context,
    gradInput: Annotated[InOut, HoldsZeros(), HasShape(("B", "Ci", "H", "W"))],
    gradOffset: Annotated[InOut, HoldsZeros(), HasShape(("B", "2·G·K", "Ho", "Wo"))],
    input: Annotated[In, HasShape(("B", "Ci", "H", "W"))],
    offset: Annotated[In, HasShape(("B", "2·G·K", "Ho", "Wo"))],
    gradOutput: Annotated[In, HasShape(("B", "Co", "Ho", "Wo"))],
    weight: Annotated[In, HasShape(("Co", "Ci/groups", "kH", "kW"))],
    columns: In,
    kW: i64,
    kH: i64,
    dW: PositiveExtent,
    dH: PositiveExtent,
    padW: i64,
    padH: i64,
    dilationW: PositiveExtent,
    dilationH: PositiveExtent,
    groups: PositiveExtent,
    deform_groups: PositiveExtent,
    im2col_step: PositiveExtent,
):
    """Gradients of `diopiDeformConvMmcv` by input and offset.

    gradInput, gradOffset: of input's and offset's shape, zeros on entry. gradOutput: [B, Co, Ho, Wo]. For every sample
    S let v = Σ over the o of its group of weight[o, c, i, j]·gradOutput[b, o, h, w]. gradInput[b, c] takes Z†(v) at the
    place of S; gradOffset takes for Δy the sum of v·∂Z/∂y over the channels c of deformable group g, for Δx that of
    v·∂Z/∂x.
    """


@prototype(dtypes=floating, ignored=[STEP, COLUMNS_AND_ONES])
def diopiDeformConvBackwardParametersMmcv(
    ctx: Context,
    gradOutput: Annotated[MutableIn, HasShape(("B", "Co", "Ho", "Wo"))],
    gradWeight: Annotated[InOut, HoldsZeros(), HasShape(("Co", "Ci/groups", "kH", "kW"))],
    input: Annotated[In, HasShape(("B", "Ci", "H", "W"))],
    offset: Annotated[In, HasShape(("B", "2·G·K", "Ho", "Wo"))],
    columns: In,
    ones: In,
    kW: i64,
    kH: i64,
    dW: PositiveExtent,
    dH: PositiveExtent,
    padW: i64,
    padH: i64,
    dilationW: PositiveExtent,
    dilationH: PositiveExtent,
    groups: PositiveExtent,
    deform_groups: PositiveExtent,
    im2col_step: PositiveExtent,
    scale: f32,
):
    """Gradient of `diopiDeformConvMmcv` by weight, times `scale`.

    gradWeight: of weight's shape, zeros on entry; [o, c, i, j] takes scale·Σ over b, h, w of gradOutput[b, o, h, w]·S.
    gradOutput: [B, Co, Ho, Wo], only read.
    """


@prototype(dtypes=floating, ignored=[NO_BIAS], backward="diopiModulatedDeformConvBackwardMmcv")
def diopiModulatedDeformConvMmcv(
    ctx: Context,
    output: Out,
    columns: Workspace,
    ones: Workspace,
    input: Annotated[In, HasShape(("B", "Ci", "H", "W"))],
    weight: Annotated[In, HasShape(("Co", "Ci/groups", "kernel_h", "kernel_w"))],
    bias: Annotated[In, HasShape(("Co",))],
    offset: Annotated[In, HasShape(("B", "2·G·K", "Ho", "Wo"))],
    mask: Annotated[In, HasShape(("B", "G·K", "Ho", "Wo"))],
    kernel_h: i64,
    kernel_w: i64,
    stride_h: ConstPositive,
    stride_w: ConstPositive,
    pad_h: const_i64,
    pad_w: const_i64,
    dilation_h: ConstPositive,
    dilation_w: ConstPositive,
    group: ConstPositive,
    deformable_group: ConstPositive,
    with_bias: const_boolean,
):
    """Modulated deformable convolution: every sample is multiplied by a mask of its own.

    output[b, o, h, w] = Σ over c, i, j of weight[o, c, i, j]·m·S, plus bias[o] if `with_bias`. mask: [B, G·K, Ho, Wo],
    of which m is channel g·K + i·kW + j at (h, w). bias: [Co]. Mind that heights come before widths, unlike in
    `diopiDeformConvMmcv`.
    """


@prototype(dtypes=floating, ignored=[BIAS, COLUMNS_AND_ONES])
def diopiModulatedDeformConvBackwardMmcv(
    ctx: Context,
    grad_input: Annotated[InOut, HoldsZeros(), HasShape(("B", "Ci", "H", "W"))],
    grad_weight: Annotated[InOut, HoldsZeros(), HasShape(("Co", "Ci/groups", "kernel_h", "kernel_w"))],
    grad_bias: ZerosInOut,
    grad_offset: Annotated[InOut, HoldsZeros(), HasShape(("B", "2·G·K", "Ho", "Wo"))],
    grad_mask: Annotated[InOut, HoldsZeros(), HasShape(("B", "G·K", "Ho", "Wo"))],
    input: Annotated[In, HasShape(("B", "Ci", "H", "W"))],
    weight: Annotated[In, HasShape(("Co", "Ci/groups", "kernel_h", "kernel_w"))],
    bias: In,
    ones: In,
    offset: Annotated[In, HasShape(("B", "2·G·K", "Ho", "Wo"))],
    mask: Annotated[In, HasShape(("B", "G·K", "Ho", "Wo"))],
    columns: In,
    grad_output: Annotated[In, HasShape(("B", "Co", "Ho", "Wo"))],
    kernel_h: i64,
    kernel_w: i64,
    stride_h: PositiveExtent,
    stride_w: PositiveExtent,
    pad_h: i64,
    pad_w: i64,
    dilation_h: PositiveExtent,
    dilation_w: PositiveExtent,
    group: PositiveExtent,
    deformable_group: PositiveExtent,
    with_bias: const_boolean,
):
    """Gradients of `diopiModulatedDeformConvMmcv` by input, weight, bias, offset and mask.

    Each gradient has the shape of what it belongs to and zeros on entry. grad_output: [B, Co, Ho, Wo]. For every sample
    S with mask m let v = Σ over the o of its group of weight[o, c, i, j]·grad_output[b, o, h, w]. grad_input[b, c]
    takes Z†(v·m); grad_offset Σ v·m·∂Z/∂y for Δy and Σ v·m·∂Z/∂x for Δx, grad_mask Σ v·S, sums over the channels c of
    deformable group g; grad_weight[o, c, i, j] takes Σ over b, h, w of grad_output·m·S, and grad_bias[o] the sum of
    grad_output over b, h, w. Without `with_bias` grad_bias is not written; bias and grad_bias may then have no
    elements.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"spatial_shapes": index64, "level_start_index": index64},
    ignored=[STEP],
    backward="diopiMsDeformAttnBackwardMmcv",
)
def diopiMsDeformAttnMmcv(
    ctx: Context,
    out: NewOut,
    value: Annotated[In, HasShape(("B", "S", "M", "D"))],
    spatial_shapes: Annotated[In, HasShape(("L", 2))],
    level_start_index: Annotated[In, HasShape(("L",))],
    sampling_loc: Annotated[In, HasShape(("B", "Q", "M", "L", "P", 2))],
    attn_weight: Annotated[In, HasShape(("B", "Q", "M", "L", "P"))],
    im2col_step: PositiveExtent,
):
    """Multi-scale deformable attention: weighted samples from feature maps of several levels.

    value: [B, S, M, D], M heads of size D, the levels' maps flattened one after the other along S. spatial_shapes:
    int64 [L, 2], (height h, width w) of each level; level_start_index: int64 [L], where each level starts in S.
    sampling_loc: [B, Q, M, L, P, 2] as (x, y), the map being [0, 1] × [0, 1]; attn_weight: [B, Q, M, L, P], used as it
    is. out: [B, Q, M·D]; out[b, q, m·D + d] = Σ over l, p of attn_weight·Z(F, y·h − ½, x·w − ½), where
    F[i, j] = value[b, level_start_index[l] + i·w + j, m, d].
    im2col_step changes no result. Rejected: B not a multiple of min(B, im2col_step).
    """


@prototype(dtypes=floating, argument_dtypes={"spatial_shapes": index64, "level_start_index": index64}, ignored=[STEP])
def diopiMsDeformAttnBackwardMmcv(
    ctx: Context,
    grad_value: Annotated[InOut, HoldsZeros(), HasShape(("B", "S", "M", "D"))],
    grad_sampling_loc: Annotated[InOut, HoldsZeros(), HasShape(("B", "Q", "M", "L", "P", 2))],
    grad_attn_weight: Annotated[InOut, HoldsZeros(), HasShape(("B", "Q", "M", "L", "P"))],
    value: Annotated[In, HasShape(("B", "S", "M", "D"))],
    spatial_shapes: Annotated[In, HasShape(("L", 2))],
    level_start_index: Annotated[In, HasShape(("L",))],
    sampling_loc: Annotated[In, HasShape(("B", "Q", "M", "L", "P", 2))],
    attn_weight: Annotated[In, HasShape(("B", "Q", "M", "L", "P"))],
    grad_output: Annotated[In, HasShape(("B", "Q", "M·D"))],
    im2col_step: PositiveExtent,
):
    """Gradients of `diopiMsDeformAttnMmcv` by value, sampling_loc and attn_weight.

    Each gradient has the shape of what it belongs to and zeros on entry. grad_output: [B, Q, M·D]. With a the attention
    weight of a sample and g the element of grad_output for d: grad_value takes Z†(g·a); grad_attn_weight = Σ over d of
    g·Z; grad_sampling_loc = (w·Σ over d of g·a·∂Z/∂x, h·Σ over d of g·a·∂Z/∂y), 0 for samples outside.
    """
