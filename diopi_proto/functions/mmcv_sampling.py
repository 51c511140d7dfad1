"""MMCV's resampling and rearranging of feature maps: CARAFE, correlation, FIR, PSA masks, im2col, TIN shift.

Feature maps are contiguous [N, C, H, W]. All floating tensors of a call have one dtype unless a docstring says
otherwise; half precision accumulates in float32. An in-out tensor is filled with zeros by the caller: the call adds to
it or fills a part of it, and overwriting all of it with the same values is as good. The order of additions in a
gradient is free. Workspaces may have any size, none included. Empty inputs: success, nothing written.

Rejected: a tensor of another rank than stated, shapes that contradict each other or the attributes, sizes, strides and
dilations below 1. Source: the MMCV 1.x operator of the same name, unless another one is given.
"""

from typing import Annotated

from diopi_proto.callers import CallForm
from diopi_proto.dtypes import floating, index32, index64, single
from diopi_proto.facts import HasShape, HoldsZeros, OneOf
from diopi_proto.parameters import Context, In, InOut, NewOut, Out, PositiveExtent, Workspace, i64
from diopi_proto.prototype import prototype


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
    """CARAFE: upsampling in which every output position has a reassembly kernel of its own.

    features: [N, C, H, W]; masks: [N, g·k², s·H, s·W] with k = kernel_size (odd), g = group_size, s = scale_factor;
    output: [N, C, s·H, s·W]. With r = (k − 1)/2, channel c in group q = ⌊c / (C/g)⌋ and features outside the map
    counting 0, output[n, c, y, x] is the sum over i, j < k of
    features[n, c, ⌊y/s⌋ + i − r, ⌊x/s⌋ + j − r]·masks[n, (q·k + i)·k + j, y, x].
    rfeatures: [N, H, W, C], the features with channels last, which `diopiCarafeBackwardMmcv` takes.
    Rejected: k even, C not divisible by g.
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
    """Gradients of `diopiCarafeMmcv`: those of `diopiCarafeNaiveBackwardMmcv`.

    bottom_grad: [N, C, H, W]; mask_grad: of masks' shape; both zeros on entry. top_grad: [N, C, s·H, s·W]. rfeatures:
    what the forward made, the features in the memory order N, H, W, C, whatever shape the tensor declares.
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
    """The result `output` of `diopiCarafeMmcv`, without the tensors that prepare its gradient."""


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
    """Gradients of `diopiCarafeNaiveMmcv` by features and masks.

    bottom_grad, mask_grad: of features' and masks' shape, zeros on entry. For each term of the forward's sum with g
    from top_grad [N, C, s·H, s·W]: bottom_grad takes g·mask at the feature's place, mask_grad takes g·feature, summed
    over the channels of the group; terms outside the map give nothing.
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
    """Correlation of two feature maps over a patch of displacements: sums of products, not averaged.

    input1, input2: [N, C, H, W]; output: [N, patchH, patchW, oH, oW],
    oH = ⌊(H + 2·padH − dilationH·(kH − 1) − 1) / dH⌋ + 1, oW likewise.
    output[n, p, q, h, w] = Σ over i < kH, j < kW and all c of input1[n, c, y1, x1]·input2[n, c, y2, x2], without the
    terms that have a coordinate outside, where y1 = h·dH − padH + i·dilationH and
    y2 = y1 + p·dilation_patchH − ⌊dilation_patchH·(patchH − 1) / 2⌋; x1, x2 likewise. Rejected: patch sizes that are
    even.
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
    """Gradients of `diopiCorrelationMmcv` by its inputs.

    grad_input1, grad_input2: [N, C, H, W], zeros on entry. Each term of the forward's sum, with g from grad_output
    [N, patchH, patchW, oH, oW], adds g·input2 to grad_input1 at (y1, x1) and g·input1 to grad_input2 at (y2, x2).
    """


PLANES_BY_CALLERS = (CallForm(name="mmcv", caller="MMCV's upfirdn2d", shapes={"input": ("N·C", "H", "W", 1)}),)


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
    """Upsampling by zeros, padding, FIR filter and downsampling of axes 1 and 2, on each plane by itself.

    input: [M, H, W, K]; kernel: float32 [kh, kw]; out: [M, oH, oW, K], oH as oW below.
    oW = ⌊(W·up_x + pad_x0 + pad_x1 − kw) / down_x⌋ + 1. up_x − 1 zeros follow every sample of a row; pad_x0 zeros are
    put before it and pad_x1 after it, negative numbers cut samples off instead; the convolution proper (kernel flipped)
    keeps the places where the kernel fits entirely; of those every down_x-th stays, from the first on. Columns likewise
    with up_y, pad_y0, pad_y1, down_y.
    Rejected: an empty result. Source: T. Karras et al., StyleGAN2, CVPR 2020; MMCV 1.x upfirdn2d.
    """


@prototype(dtypes=floating, guarantee="exact", backward="diopiPsamaskBackwardMmcv")
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
    """Point-wise spatial attention: attention masks centred at each position become masks over the whole map.

    input: [N, h_mask·w_mask, H, W], output: [N, H·W, H, W], zeros on entry; N = num_, H = h_feature, W = w_feature.
    Entry (i, j) of the mask at (h, w) points at y = h + i − half_h_mask, x = w + j − half_w_mask; where that is in the
    map, input[n, i·w_mask + j, h, w] is copied to
    output[n, y·W + x, h, w] (psa_type 0, collect) or output[n, h·W + w, y, x] (psa_type 1, distribute). Everything else
    stays 0. Rejected: another psa_type.
    Source: H. Zhao et al., "PSANet: Point-wise Spatial Attention Network for Scene Parsing", ECCV 2018; MMCV 1.x
    psa_mask.
    """


@prototype(dtypes=floating, guarantee="exact")
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
    """Gradient of `diopiPsamaskMmcv`: each input element's is the element of grad_output it was copied to.

    grad_input: [N, h_mask·w_mask, H, W], zeros on entry; grad_output: [N, H·W, H, W]. Entries whose
    target is outside the map stay 0.
    """


@prototype(dtypes=floating, argument_dtypes={"mask_h_idx": index64, "mask_w_idx": index64}, guarantee="exact")
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
    """The patches of an image at chosen positions, one a column; stride and dilation are 1.

    im: [1, C, H, W]; mask_h_idx, mask_w_idx: int64 [M], row and column of each position; col: [C·kernel_h·kernel_w, M].
    col[(c·kernel_h + i)·kernel_w + j, m] = im[0, c, mask_h_idx[m] − pad_h + i, mask_w_idx[m] − pad_w + j], 0 outside.
    Rejected: a batch size other than 1. Source: MMCV 1.x masked_conv2d.
    """


@prototype(dtypes=floating, argument_dtypes={"mask_h_idx": index64, "mask_w_idx": index64}, guarantee="exact")
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
    """Columns of values put at chosen positions of an image.

    im: [1, channels, height, width], zeros on entry; col: [channels, M]; mask_h_idx, mask_w_idx: int64 [M], inside the
    image. im[0, c, mask_h_idx[m], mask_w_idx[m]] = col[c, m]; the rest stays. A position that occurs twice gets either
    value.
    Source: MMCV 1.x masked_conv2d.
    """


@prototype(dtypes=floating, argument_dtypes={"shift": index32}, guarantee="exact", backward="diopiTinShiftBackwardMmcv")
def diopiTinShiftMmcv(
    ctx: Context,
    output: Annotated[InOut, HoldsZeros(), HasShape(("N", "T", "C", "S"))],
    input: Annotated[In, HasShape(("N", "T", "C", "S"))],
    shift: Annotated[In, HasShape(("N", "G"))],
):
    """Temporal shift of channel groups, each by its own number of frames.

    input, output: [N, T, C, S], output zeros on entry; shift: int32 [N, G], C divisible by G. Channel c is in group q =
    ⌊c / (C/G)⌋: output[n, t + shift[n, q], c, s] = input[n, t, c, s] where 0 ≤ t + shift[n, q] < T; all else stays 0.
    Source: H. Shao et al., "Temporal Interlacing Network", AAAI 2020; MMCV 1.x tin_shift.
    """


@prototype(dtypes=floating, argument_dtypes={"shift": index32}, guarantee="any_of")
def diopiTinShiftBackwardMmcv(
    ctx: Context,
    grad_input: Annotated[InOut, HoldsZeros(), HasShape(("N", "T", "C", "S"))],
    grad_output: Annotated[In, HasShape(("N", "T", "C", "S"))],
    shift: Annotated[In, HasShape(("N", "G"))],
):
    """What MMCV computes as gradient of `diopiTinShiftMmcv`: grad_output shifted once more, in the forward's direction.

    grad_input, grad_output: [N, T, C, S], grad_input zeros on entry; shift: int32 [N, G].
    grad_input[n, t + shift[n, q], c, s] = grad_output[n, t, c, s] where 0 ≤ t + shift[n, q] < T; all else stays 0. The
    gradient proper, grad_input[n, t] = grad_output[n, t + shift], is accepted as well.
    """
