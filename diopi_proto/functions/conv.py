"""Convolutions and transposed convolutions over two and three spatial axes, their gradients, and their unrolled form.

- N is the batch size, Cin and Cout are channel counts, and k… stands for the spatial sizes of the kernel.
- Every list has one entry per spatial axis, in the order of the axes.
- `stride` and `dilation` are ≥ 1. `padding` ≥ 0 surrounds the input with that many zeros on both sides of an axis.
- `groups` ≥ 1 splits the channels into groups that do not mix. It divides Cin and Cout.
- A batch may be empty. If the input has no batch axis, the result has none either.
- All tensors have the same dtype. Half precision is accumulated in float32 and rounded once.
- Sizes that do not fit are rejected. A result that would have a spatial size below 1 is rejected too.

A gradient function takes `grad_output`, the gradient of a loss with respect to the forward result. It writes the
gradients with respect to the forward inputs, each in the shape of the corresponding input. Gradient results that are
NULL are skipped, and the others are computed.
"""

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import complexes, floating
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, Extents, In, Out, PositiveExtent, PositiveExtents, Size, Sized, i64
from diopi_proto.ranks import prototype_per_rank

IGNORES_BIAS_SIZES = Ignored(
    ("bias_sizes",), "whether grad_bias is NULL determines whether it is computed", read=Read.value
)
"""No result depends on `bias_sizes`."""

IGNORES_OUTPUT_PADDING = Ignored(("output_padding",), "the sizes of grad_output determine it", read=Read.value)
"""No gradient depends on `output_padding`."""


@prototype_per_rank(
    "diopiConvolution2d",
    "diopiConvolution3d",
    dtypes=floating,
    backward="diopiConvolution{rank}dBackward",
    multiplies_matrices=True,
)
def diopiConvolution(
    ctx: Context,
    out: Out,
    input: In,
    weight: In,
    bias: Sized | None,
    stride: PositiveExtents,
    padding: Extents,
    dilation: PositiveExtents,
    groups: PositiveExtent,
):
    """Compute the cross-correlation of input with a kernel over {rank} spatial axes.

    - input: (N, Cin, {axes}).
    - weight: (Cout, Cin/groups, k…).
    - bias: (Cout), or NULL for no bias.

    out[n, c, o] = bias[c] + Σ weight[c, j, i] · input[n, j', o · stride + i · dilation − padding]. The sum runs over
    the kernel positions i and the channels j of the group to which c belongs. j' is the index of channel j of that
    group among all channels of input. Positions outside the bounds of input count as 0.

    A spatial axis of out has ⌊(size + 2·padding − dilation · (k − 1) − 1) / stride⌋ + 1 elements.

    Source: torch.nn.functional.conv{rank}d.
    """


@prototype_per_rank(
    "diopiConvolution2dBackward",
    "diopiConvolution3dBackward",
    dtypes=floating,
    ignored=[IGNORES_BIAS_SIZES],
    multiplies_matrices=True,
)
def diopiConvolutionBackward(
    ctx: Context,
    grad_input: Out | None,
    grad_weight: Out | None,
    grad_bias: Out | None,
    grad_output: In,
    input: In,
    weight: In,
    bias_sizes: Size | None,
    stride: Size,
    padding: Size,
    dilation: Size,
    groups: i64,
):
    """Compute the gradients of `diopiConvolution{rank}d` with respect to input, weight and bias.

    - grad_input is `diopiConvTranspose{rank}d` of grad_output with the same weight and attributes, in the shape of
      input.
    - grad_weight[c, j, i] = Σ grad_output[n, c, o] · input[n, j', o · stride + i · dilation − padding], summed over n
      and o. j' is as in the forward function.
    - grad_bias (Cout) is the sum of grad_output over all axes except the channel axis.

    `bias_sizes` is the shape of the bias, [Cout]. If the forward function had no bias, `bias_sizes` and grad_bias are
    NULL.

    Source: torch.ops.aten.convolution_backward.
    """


@prototype_per_rank(
    "diopiConvTranspose2d",
    "diopiConvTranspose3d",
    dtypes=floating,
    backward="diopiConvTranspose{rank}dBackward",
    multiplies_matrices=True,
)
def diopiConvTranspose(
    ctx: Context,
    out: Out,
    input: In,
    weight: In,
    bias: Sized | None,
    stride: PositiveExtents,
    padding: Extents,
    output_padding: Extents,
    groups: PositiveExtent,
    dilation: PositiveExtents,
):
    """Compute a transposed convolution over {rank} spatial axes.

    - input: (N, Cin, {axes}).
    - weight: (Cin, Cout/groups, k…).
    - bias: (Cout), or NULL for no bias.

    Every input element is multiplied by every kernel element. Each product is added to out at the position o = i ·
    stride + kernel position · dilation − padding, if out has that position. Finally, bias is added.

    A spatial axis of out has (size − 1) · stride − 2·padding + dilation · (k − 1) + output_padding + 1 elements.
    output_padding extends the axis at its end. It is at least 0, and smaller than the larger one of stride and
    dilation.

    Source: torch.nn.functional.conv_transpose{rank}d.
    """


@prototype_per_rank(
    "diopiConvTranspose2dBackward",
    "diopiConvTranspose3dBackward",
    dtypes=floating,
    ignored=[IGNORES_BIAS_SIZES, IGNORES_OUTPUT_PADDING],
    multiplies_matrices=True,
)
def diopiConvTransposeBackward(
    ctx: Context,
    grad_input: Out | None,
    grad_weight: Out | None,
    grad_bias: Out | None,
    grad_output: In,
    input: In,
    weight: In,
    bias_sizes: Size | None,
    stride: Size,
    padding: Size,
    dilation: Size,
    output_padding: Size,
    groups: i64,
):
    """Compute the gradients of `diopiConvTranspose{rank}d` with respect to input, weight and bias.

    The order of the attributes differs from that of the forward function.

    - grad_input is `diopiConvolution{rank}d` of grad_output with the same weight, stride, padding, dilation and groups.
    - grad_weight[j, c, i] = Σ input[n, j, o] · grad_output[n, c', o · stride + i · dilation − padding], summed over n
      and o. c' is the index of channel c of the group among all channels of grad_output.
    - grad_bias (Cout) is the sum of grad_output over all axes except the channel axis.

    `bias_sizes` is the shape of the bias, [Cout]. If the forward function had no bias, `bias_sizes` and grad_bias are
    NULL.

    Source: torch.ops.aten.convolution_backward.
    """


@prototype(dtypes=(*floating, *complexes), guarantee="exact", moves_numbers=True)
def diopiIm2Col(
    ctx: Context,
    out: Out,
    input: In,
    kernel_size: PositiveExtents,
    dilation: PositiveExtents,
    padding: Extents,
    stride: PositiveExtents,
):
    """Copy the patches of an image under a sliding kernel to columns.

    input is (N, C, H, W), and out is (N, C · kh · kw, L). Column l is the patch at the l-th of the L = lh · lw kernel
    positions, in row-major order. lh = ⌊(H + 2·padding − dilation · (kh − 1) − 1) / stride⌋ + 1, and lw is computed in
    the same way from W and kw. The rows of a column are ordered by channel, then kernel row, then kernel column.
    Positions in the padding give zeros.

    Source: torch.nn.functional.unfold.
    """


@prototype(dtypes=(*floating, *complexes))
def diopiCol2Im(
    ctx: Context,
    out: Out,
    input: In,
    output_size: Extents,
    kernel_size: PositiveExtents,
    dilation: PositiveExtents,
    padding: Extents,
    stride: PositiveExtents,
):
    """Add columns of patches to an image; the function is the adjoint of `diopiIm2Col`.

    input is (N, C · kh · kw, L), and out is (N, C, H, W) with [H, W] = `output_size`. Every element of input is added
    to the image at the position from which `diopiIm2Col` with the same attributes reads it. Elements for positions in
    the padding are dropped, and positions that no patch covers are 0. L must be the number of kernel positions in an
    image of size [H, W].

    Source: torch.nn.functional.fold.
    """
