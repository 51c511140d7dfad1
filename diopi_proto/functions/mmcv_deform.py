"""MMCV's deformable convolutions and multi-scale deformable attention, forward and backward.

Z(F, y, x) samples an H × W plane F bilinearly at row y and column x, as if zeros surrounded the plane:

- Z is 0 where y ≤ −1, y ≥ H, x ≤ −1 or x ≥ W.
- Otherwise, let y0 = ⌊y⌋, x0 = ⌊x⌋, ly = y − y0 and lx = x − x0. Z is (1−ly)(1−lx)·F[y0,x0] + (1−ly)·lx·F[y0,x0+1] +
  ly·(1−lx)·F[y0+1,x0] + ly·lx·F[y0+1,x0+1], with zeros outside the plane.

Z†(g, y, x), the adjoint of Z, adds g times these weights to the same cells. ∂Z/∂y and ∂Z/∂x are the derivatives of this
formula with y0 and x0 fixed. They are 0 wherever Z is 0 because of its position.

All floating tensors of a call have one dtype; half precision accumulates in float32. The caller fills in-out
tensors with zeros, so an implementation may add to them or overwrite them. Additions may happen in any order.
Workspaces (`columns`, `ones`) may have any size, including 0. The backward functions receive them as inputs and must
not use their contents.

The convolutions have K = kH·kW kernel positions and G deformable groups. Input channel c is in deformable group
g = ⌊c / (Ci/G)⌋. The shapes are:

- input: [B, Ci, H, W]
- weight: [Co, Ci/groups, kH, kW]
- output: [B, Co, Ho, Wo], where Ho = ⌊(H + 2·padH − dilationH·(kH − 1) − 1) / strideH⌋ + 1. Wo follows from W in the
  same way.
- offset: [B, 2·G·K, Ho, Wo]. Channel 2·(g·K + i·kW + j) is the shift Δy of kernel position (i, j), and the next channel
  is the shift Δx of this position.

S is the sample of channel c at kernel position (i, j) and output position (h, w). S = Z(input[b, c], h·strideH − padH +
i·dilationH + Δy, w·strideW − padW + j·dilationW + Δx).

A call is an error in each of these cases:

- The shapes differ from the shapes above.
- Ci or Co is not divisible by groups, or Ci is not divisible by G.
- A kernel size, a stride or a dilation is below 1.
- The output is empty.

Source: J. Dai et al., "Deformable Convolutional Networks", ICCV 2017; X. Zhu et al., "Deformable ConvNets v2", CVPR
2019; X. Zhu et al., "Deformable DETR", ICLR 2021; the MMCV 1.x operators.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
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

ConstPositive = Annotated[const_i64, AtLeast(1)]
"""A constant integer, at least 1."""

IGNORES_IM2COL_STEP = Ignored(("im2col_step",), "it is the number of samples processed at a time", read=Read.value)
"""No result depends on `im2col_step`."""

IGNORES_COLUMNS = Ignored(("columns",), "it is scratch memory", read=Read.form)
"""The elements of `columns` are not read."""

IGNORES_COLUMNS_AND_ONES = Ignored(("columns", "ones"), "they are scratch memory", read=Read.form)
"""The elements of `columns` and `ones` are not read."""

IGNORES_BIAS_WITHOUT_FLAG = Ignored(("bias",), "nothing is added", {"with_bias": False})
"""`bias` is ignored if `with_bias` is false."""

IGNORES_BIAS = Ignored(("bias",), "no gradient depends on the bias")
"""No gradient depends on `bias`."""


@prototype(
    dtypes=floating,
    ignored=[IGNORES_IM2COL_STEP],
    backward="diopiDeformConvBackwardInputMmcv",
    multiplies_matrices=True,
)
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
    """Compute a deformable convolution without bias: output[b, o, h, w] = Σ over c, i, j of weight[o, c, i, j]·S.

    - S is the sample of `input` at kernel position (i, j) of output position (h, w). The values in `offset` shift the
      position of the sample, which is interpolated bilinearly.
    - c runs over the input channels of the group of o.
    - dW and dH are the strides. In the parameters, widths come before heights.
    - im2col_step is the number of samples of the batch that an implementation may process at a time. The call is
      rejected if B is not a multiple of min(B, im2col_step). The step does not change the result.

    `diopiDeformConvBackwardParametersMmcv` computes the gradient with respect to weight.
    """


@prototype(dtypes=floating, ignored=[IGNORES_IM2COL_STEP, IGNORES_COLUMNS], multiplies_matrices=True)
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
    """Compute the gradients of `diopiDeformConvMmcv` with respect to input and offset.

    gradInput and gradOffset have the shapes of input and offset, and contain zeros on entry. gradOutput is
    [B, Co, Ho, Wo]. For every sample S, let v = Σ weight[o, c, i, j]·gradOutput[b, o, h, w]. The sum is over the output
    channels o of the group of c.

    - gradInput[b, c]: the call adds Z†(v) at the position of S.
    - gradOffset: the Δy channel receives Σ v·∂Z/∂y, and the Δx channel receives Σ v·∂Z/∂x, where the sums are over the
      channels c of deformable group g.
    """


@prototype(dtypes=floating, ignored=[IGNORES_IM2COL_STEP, IGNORES_COLUMNS_AND_ONES], multiplies_matrices=True)
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
    """Compute the gradient of `diopiDeformConvMmcv` with respect to weight, multiplied by `scale`.

    gradWeight has the shape of weight and contains zeros on entry. gradWeight[o, c, i, j] receives scale·Σ
    gradOutput[b, o, h, w]·S, where the sum is over b, h and w. gradOutput: [B, Co, Ho, Wo]; the call does not write to
    it.
    """


@prototype(
    dtypes=floating,
    ignored=[IGNORES_BIAS_WITHOUT_FLAG],
    backward="diopiModulatedDeformConvBackwardMmcv",
    multiplies_matrices=True,
)
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
    """Compute a deformable convolution in which each sample is also multiplied by an element of `mask`.

    output[b, o, h, w] = Σ over c, i, j of weight[o, c, i, j]·m·S, plus bias[o] if `with_bias` is true. c runs over the
    input channels of the group of o.

    - mask: [B, G·K, Ho, Wo]. m is the element of channel g·K + i·kW + j at output position (h, w).
    - bias: [Co]. It may have no elements if `with_bias` is false.
    - In the parameters, heights come before widths. In `diopiDeformConvMmcv`, widths come first.
    """


@prototype(dtypes=floating, ignored=[IGNORES_BIAS, IGNORES_COLUMNS_AND_ONES], multiplies_matrices=True)
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
    """Compute the gradients of `diopiModulatedDeformConvMmcv` with respect to input, weight, bias, offset and mask.

    Each gradient has the shape of its argument and contains zeros on entry. grad_output is [B, Co, Ho, Wo]. Let m be
    the mask element of a sample S. For every sample, let v = Σ weight[o, c, i, j]·grad_output[b, o, h, w]. The sum is
    over the output channels o of the group of c.

    - grad_input[b, c]: the call adds Z†(v·m) at the position of S.
    - grad_offset: the Δy channel receives Σ v·m·∂Z/∂y, and the Δx channel receives Σ v·m·∂Z/∂x, where the sums are over
      the channels c of deformable group g.
    - grad_mask receives Σ v·S over the same channels.
    - grad_weight[o, c, i, j] receives Σ grad_output[b, o, h, w]·m·S over b, h and w.
    - grad_bias[o] receives the sum of grad_output over b, h and w. If `with_bias` is false, grad_bias is not written,
      and bias and grad_bias may have no elements.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"spatial_shapes": index64, "level_start_index": index64},
    ignored=[IGNORES_IM2COL_STEP],
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
    """Compute multi-scale deformable attention: weighted sums of samples from feature maps of several levels.

    There are B samples, M heads of size D, Q queries, L levels and P points per level.

    - value: [B, S, M, D]. The maps of the levels are flattened one after the other along S.
    - spatial_shapes: int64 [L, 2], the height h and width w of each level.
    - level_start_index: int64 [L], the position in S at which each level starts.
    - sampling_loc: [B, Q, M, L, P, 2] as (x, y), where (0, 0) and (1, 1) are the outer corners of the map.
    - attn_weight: [B, Q, M, L, P]. The call does not normalize the weights.
    - out: [B, Q, M·D].

    Let h and w be the sizes of level l, and F[i, j] = value[b, level_start_index[l] + i·w + j, m, d] its map. Let
    (x, y) be the element of sampling_loc. Then out[b, q, m·D + d] = Σ over l and p of attn_weight[b, q, m, l, p]·Z(F,
    y·h − ½, x·w − ½).

    im2col_step is the number of samples of the batch that an implementation may process at a time. The call is rejected
    if B is not a multiple of min(B, im2col_step). The step does not change the result.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"spatial_shapes": index64, "level_start_index": index64},
    ignored=[IGNORES_IM2COL_STEP],
)
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
    """Compute the gradients of `diopiMsDeformAttnMmcv` with respect to value, sampling_loc and attn_weight.

    Each gradient has the shape of its argument and contains zeros on entry. grad_output is [B, Q, M·D]. For each
    sample, let a be its element of attn_weight, and g the element of grad_output for d. Let h and w be the sizes of its
    level.

    - grad_value: the call adds Z†(g·a) at the position of the sample.
    - grad_attn_weight = Σ over d of g·Z.
    - grad_sampling_loc = (w·Σ over d of g·a·∂Z/∂x, h·Σ over d of g·a·∂Z/∂y). It is 0 for samples outside the map.
    """
