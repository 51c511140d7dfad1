"""MMCV's resampling and rearranging of feature maps: CARAFE, correlation, FIR, PSA masks, im2col, TIN shift.

Feature maps are contiguous [N, C, H, W]. Unless a docstring says otherwise, all floating tensors of a call have one
dtype; half precision accumulates in float32. The caller fills in-out tensors with zeros. The call adds to them or
writes to a part of them, or overwrites all of them with the same values. Gradients may be summed in any order.
Workspaces may have any size, including 0. A call with empty inputs succeeds and writes nothing.

A call is rejected if a tensor has another rank than stated, or if shapes contradict each other or the attributes. It is
also rejected if a size, stride or dilation is below 1.

Source: the MMCV 1.x operator of the same name, unless a docstring names another one.
"""

from typing import Annotated

from diopi_proto.callers import CallForm
from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, index32, index64, single
from diopi_proto.facts import HasShape, HoldsZeros, OneOf
from diopi_proto.parameters import Context, In, InOut, NewOut, Out, PositiveExtent, Workspace, i64


@prototype(dtypes=floating, backward="diopiCarafeBackwardMmcv")
def diopiCarafeMmcv(
    ctx: Context,
    rfeatures: Out,
    routput: Workspace,
    rmasks: Workspace,
    output: Out,
    features: Annotated[In, HasShape(("N", "C", "H", "W"))],
    masks: Annotated[In, HasShape(("N", "g·k²", "s·H", "s·W"))],
    kernel_size: PositiveExtent,
    group_size: PositiveExtent,
    scale_factor: PositiveExtent,
):
    """Upsample features, with a separate reassembly kernel for every output position (CARAFE).

    - features: [N, C, H, W].
    - masks: [N, g·k², s·H, s·W], the kernels, with k = kernel_size, g = group_size and s = scale_factor. k is odd.
    - output: [N, C, s·H, s·W].
    - rfeatures: [N, H, W, C], a second result: the features with channels last, which is an input of
      `diopiCarafeBackwardMmcv`.

    Let r = (k − 1)/2, let q = ⌊c / (C/g)⌋ be the group of channel c, and let features outside the map be 0. Then
    output[n, c, y, x] is the sum over i, j < k of features[n, c, ⌊y/s⌋ + i − r, ⌊x/s⌋ + j − r]·masks[n, (q·k + i)·k +
    j, y, x]. A call is rejected if k is even or C is not divisible by g.

    Source: J. Wang et al., "CARAFE: Content-Aware ReAssembly of FEatures", ICCV 2019; MMCV 1.x carafe.
    """


@prototype(dtypes=floating)
def diopiCarafeBackwardMmcv(
    ctx: Context,
    rtop_grad: Workspace,
    rbottom_grad_hs: Workspace,
    rbottom_grad: Workspace,
    rmask_grad: Workspace,
    bottom_grad: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    mask_grad: Annotated[InOut, HoldsZeros(), HasShape(("N", "g·k²", "s·H", "s·W"))],
    top_grad: Annotated[In, HasShape(("N", "C", "s·H", "s·W"))],
    rfeatures: In,
    masks: Annotated[In, HasShape(("N", "g·k²", "s·H", "s·W"))],
    kernel_size: PositiveExtent,
    group_size: PositiveExtent,
    scale_factor: PositiveExtent,
):
    """Compute the gradients of `diopiCarafeMmcv`, which equal those of `diopiCarafeNaiveBackwardMmcv`.

    bottom_grad: [N, C, H, W]. mask_grad: the shape of masks. Both contain zeros on entry. top_grad: [N, C, s·H, s·W].
    rfeatures: a result of the forward call, the features in the memory order N, H, W, C, whatever shape the tensor
    declares.
    """


@prototype(dtypes=floating, backward="diopiCarafeNaiveBackwardMmcv")
def diopiCarafeNaiveMmcv(
    ctx: Context,
    output: Out,
    features: Annotated[In, HasShape(("N", "C", "H", "W"))],
    masks: Annotated[In, HasShape(("N", "g·k²", "s·H", "s·W"))],
    kernel_size: PositiveExtent,
    group_size: PositiveExtent,
    scale_factor: PositiveExtent,
):
    """Compute the result `output` of `diopiCarafeMmcv`, without the tensors for its gradient."""


@prototype(dtypes=floating)
def diopiCarafeNaiveBackwardMmcv(
    ctx: Context,
    bottom_grad: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    mask_grad: Annotated[InOut, HoldsZeros(), HasShape(("N", "g·k²", "s·H", "s·W"))],
    top_grad: Annotated[In, HasShape(("N", "C", "s·H", "s·W"))],
    features: Annotated[In, HasShape(("N", "C", "H", "W"))],
    masks: Annotated[In, HasShape(("N", "g·k²", "s·H", "s·W"))],
    kernel_size: PositiveExtent,
    group_size: PositiveExtent,
    scale_factor: PositiveExtent,
):
    """Compute the gradients of `diopiCarafeNaiveMmcv` with respect to features and masks.

    bottom_grad, mask_grad: the shapes of features and masks, zeros on entry. For each term of the forward sum, let g be
    the element of top_grad [N, C, s·H, s·W]. The call adds g·mask to bottom_grad at the position of the feature, and
    g·feature to mask_grad, summed over the channels of the group. Terms outside the map add nothing.
    """


@prototype(dtypes=floating, backward="diopiCorrelationBackwardMmcv")
def diopiCorrelationMmcv(
    ctx: Context,
    output: Out,
    input1: Annotated[In, HasShape(("N", "C", "H", "W"))],
    input2: Annotated[In, HasShape(("N", "C", "H", "W"))],
    kH: PositiveExtent,
    kW: PositiveExtent,
    patchH: PositiveExtent,
    patchW: PositiveExtent,
    padH: i64,
    padW: i64,
    dilationH: PositiveExtent,
    dilationW: PositiveExtent,
    dilation_patchH: PositiveExtent,
    dilation_patchW: PositiveExtent,
    dH: PositiveExtent,
    dW: PositiveExtent,
):
    """Correlate two feature maps over a patch of displacements: sum the products of their elements.

    - input1, input2: [N, C, H, W].
    - output: [N, patchH, patchW, oH, oW], where oH = ⌊(H + 2·padH − dilationH·(kH − 1) − 1) / dH⌋ + 1. oW is computed
      likewise.

    output[n, p, q, h, w] = Σ over i < kH, j < kW and all c of input1[n, c, y1, x1]·input2[n, c, y2, x2]. Here y1 = h·dH
    − padH + i·dilationH and y2 = y1 + p·dilation_patchH − ⌊dilation_patchH·(patchH − 1) / 2⌋; likewise for x1 and x2.
    Terms with a coordinate outside the map are omitted. The sum is not divided by the number of terms. A call with an
    even patch size is rejected.

    Source: A. Dosovitskiy et al., "FlowNet", ICCV 2015; MMCV 1.x correlation.
    """


@prototype(dtypes=floating)
def diopiCorrelationBackwardMmcv(
    ctx: Context,
    grad_input1: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    grad_input2: Annotated[InOut, HoldsZeros(), HasShape(("N", "C", "H", "W"))],
    grad_output: Annotated[In, HasShape(("N", "patchH", "patchW", "oH", "oW"))],
    input1: Annotated[In, HasShape(("N", "C", "H", "W"))],
    input2: Annotated[In, HasShape(("N", "C", "H", "W"))],
    kH: PositiveExtent,
    kW: PositiveExtent,
    patchH: i64,
    patchW: i64,
    padH: i64,
    padW: i64,
    dilationH: PositiveExtent,
    dilationW: PositiveExtent,
    dilation_patchH: PositiveExtent,
    dilation_patchW: PositiveExtent,
    dH: PositiveExtent,
    dW: PositiveExtent,
):
    """Compute the gradients of `diopiCorrelationMmcv` with respect to its inputs.

    grad_input1, grad_input2: [N, C, H, W], zeros on entry. For each term of the forward sum, let g be the element of
    grad_output [N, patchH, patchW, oH, oW]. The call adds g·input2 to grad_input1 at (y1, x1) and g·input1 to
    grad_input2 at (y2, x2).
    """


PLANES_BY_CALLERS = (CallForm(name="mmcv", caller="MMCV's upfirdn2d", shapes={"input": ("N·C", "H", "W", 1)}),)
"""The form of the calls that MMCV makes: every plane of a batch is a separate entry of the first axis."""


@prototype(dtypes=floating, argument_dtypes={"kernel": single}, call_forms=PLANES_BY_CALLERS)
def diopiUpfirdn2dOpMmcv(
    ctx: Context,
    out: NewOut,
    input: Annotated[In, HasShape(("M", "H", "W", "K"))],
    kernel: Annotated[In, HasShape(("kh", "kw"))],
    up_x: PositiveExtent,
    up_y: PositiveExtent,
    down_x: PositiveExtent,
    down_y: PositiveExtent,
    pad_x0: i64,
    pad_x1: i64,
    pad_y0: i64,
    pad_y1: i64,
):
    """Upsample planes, pad them, apply a filter (FIR) and downsample them. A plane consists of axes 1 and 2 of input.

    - input: [M, H, W, K]. The call processes each of the M·K planes separately.
    - kernel: float32 [kh, kw], the factors of the filter.
    - out: [M, oH, oW, K], where oW = ⌊(W·up_x + pad_x0 + pad_x1 − kw) / down_x⌋ + 1. oH follows likewise from H, up_y,
      pad_y0, pad_y1, kh and down_y.

    The call processes a plane in four steps:

    - Insert up_x − 1 zeros after every element of a row, and up_y − 1 rows of zeros after every row.
    - Add pad_x0 columns of zeros before the first column, and pad_x1 after the last one. Add pad_y0 rows of zeros
      before the first row, and pad_y1 after the last one. Negative numbers remove columns and rows instead.
    - Multiply each window of kh × kw elements by the kernel, flipped along both axes, and add the products.
    - Keep every down_x-th column and every down_y-th row of these sums, starting with the first.

    A call with an empty result is rejected.

    Source: T. Karras et al., StyleGAN2, CVPR 2020; MMCV 1.x upfirdn2d.
    """


@prototype(dtypes=floating, guarantee="exact", moves_numbers=True, backward="diopiPsamaskBackwardMmcv")
def diopiPsamaskMmcv(
    ctx: Context,
    output: Annotated[InOut, HoldsZeros(), HasShape(("num_", "H·W", "h_feature", "w_feature"))],
    input: Annotated[In, HasShape(("num_", "h_mask·w_mask", "h_feature", "w_feature"))],
    psa_type: Annotated[i64, OneOf((0, 1))],
    num_: i64,
    h_feature: i64,
    w_feature: i64,
    h_mask: PositiveExtent,
    w_mask: PositiveExtent,
    half_h_mask: i64,
    half_w_mask: i64,
):
    """Convert attention masks centered at each position to masks over the whole map (point-wise spatial attention).

    - input: [N, h_mask·w_mask, H, W]. output: [N, H·W, H, W], zeros on entry.
    - N = num_, H = h_feature and W = w_feature.

    Entry (i, j) of the mask at (h, w) refers to the position y = h + i − half_h_mask and x = w + j − half_w_mask. If
    that position is in the map, the call copies input[n, i·w_mask + j, h, w]:

    - for psa_type 0 (collect), to output[n, y·W + x, h, w]
    - for psa_type 1 (distribute), to output[n, h·W + w, y, x]

    All other elements remain 0. Other values of psa_type are rejected.

    Source: H. Zhao et al., "PSANet: Point-wise Spatial Attention Network for Scene Parsing", ECCV 2018; MMCV 1.x
    psa_mask.
    """


@prototype(dtypes=floating, guarantee="exact", moves_numbers=True)
def diopiPsamaskBackwardMmcv(
    ctx: Context,
    grad_input: Annotated[InOut, HoldsZeros(), HasShape(("num_", "h_mask·w_mask", "h_feature", "w_feature"))],
    grad_output: Annotated[In, HasShape(("num_", "H·W", "h_feature", "w_feature"))],
    psa_type: Annotated[i64, OneOf((0, 1))],
    num_: i64,
    h_feature: i64,
    w_feature: i64,
    h_mask: PositiveExtent,
    w_mask: PositiveExtent,
    half_h_mask: i64,
    half_w_mask: i64,
):
    """Compute the gradient of `diopiPsamaskMmcv`.

    The gradient of each input element is the element of grad_output to which the forward call copied it. grad_input:
    [N, h_mask·w_mask, H, W], zeros on entry. grad_output: [N, H·W, H, W]. The gradient is 0 for input elements that
    were not copied because their position is outside the map.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"mask_h_idx": index64, "mask_w_idx": index64},
    guarantee="exact",
    moves_numbers=True,
)
def diopiMaskedIm2colMmcv(
    ctx: Context,
    col: Out,
    im: Annotated[In, HasShape((1, "C", "H", "W"))],
    mask_h_idx: Annotated[In, HasShape(("M",))],
    mask_w_idx: Annotated[In, HasShape(("M",))],
    kernel_h: PositiveExtent,
    kernel_w: PositiveExtent,
    pad_h: i64,
    pad_w: i64,
):
    """Copy the patches of an image at selected positions to columns, one patch per column. Stride and dilation are 1.

    - im: [1, C, H, W].
    - mask_h_idx, mask_w_idx: int64 [M], the row and column of each position.
    - col: [C·kernel_h·kernel_w, M].

    col[(c·kernel_h + i)·kernel_w + j, m] = im[0, c, mask_h_idx[m] − pad_h + i, mask_w_idx[m] − pad_w + j], or 0 outside
    the image. A call with a batch size other than 1 is rejected.

    Source: MMCV 1.x masked_conv2d.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"mask_h_idx": index64, "mask_w_idx": index64},
    guarantee="exact",
    moves_numbers=True,
)
def diopiMaskedCol2imMmcv(
    ctx: Context,
    im: Annotated[InOut, HoldsZeros(), HasShape((1, "channels", "height", "width"))],
    col: Annotated[In, HasShape(("channels", "M"))],
    mask_h_idx: Annotated[In, HasShape(("M",))],
    mask_w_idx: Annotated[In, HasShape(("M",))],
    height: i64,
    width: i64,
    channels: i64,
):
    """Copy columns of values to selected positions of an image.

    im: [1, channels, height, width], zeros on entry. col: [channels, M]. mask_h_idx, mask_w_idx: int64 [M], inside the
    image. im[0, c, mask_h_idx[m], mask_w_idx[m]] = col[c, m]. The other elements are not written. If a position occurs
    twice, it receives either value.

    Source: MMCV 1.x masked_conv2d.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"shift": index32},
    guarantee="exact",
    moves_numbers=True,
    backward="diopiTinShiftBackwardMmcv",
)
def diopiTinShiftMmcv(
    ctx: Context,
    output: Annotated[InOut, HoldsZeros(), HasShape(("N", "T", "C", "S"))],
    input: Annotated[In, HasShape(("N", "T", "C", "S"))],
    shift: Annotated[In, HasShape(("N", "G"))],
):
    """Shift groups of channels in time, each group by its own number of frames.

    input, output: [N, T, C, S], where output contains zeros on entry. shift: int32 [N, G], where C is divisible by G.
    q = ⌊c / (C/G)⌋ is the group of channel c. output[n, t + shift[n, q], c, s] = input[n, t, c, s] if 0 ≤ t +
    shift[n, q] < T. All other elements remain 0.

    Source: H. Shao et al., "Temporal Interlacing Network", AAAI 2020; MMCV 1.x tin_shift.
    """


@prototype(dtypes=floating, argument_dtypes={"shift": index32}, guarantee="any_of")
def diopiTinShiftBackwardMmcv(
    ctx: Context,
    grad_input: Annotated[InOut, HoldsZeros(), HasShape(("N", "T", "C", "S"))],
    grad_output: Annotated[In, HasShape(("N", "T", "C", "S"))],
    shift: Annotated[In, HasShape(("N", "G"))],
):
    """Shift grad_output in the direction of the forward call; MMCV uses this as the gradient of `diopiTinShiftMmcv`.

    grad_input, grad_output: [N, T, C, S], where grad_input contains zeros on entry. shift: int32 [N, G]. grad_input[n,
    t + shift[n, q], c, s] = grad_output[n, t, c, s] if 0 ≤ t + shift[n, q] < T. All other elements remain 0. The
    mathematical gradient, grad_input[n, t] = grad_output[n, t + shift], is accepted too.
    """
