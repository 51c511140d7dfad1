"""Pooling over one, two and three spatial axes, and its gradients.

The input is (N, C, spatial…) or, without the batch axis, (C, spatial…). The result has the same leading axes; gradient
results have input's shape. N may be 0. Lists have one entry per spatial axis, in the order of the axes.

Sliding windows:

- Window o of an axis covers the positions o · stride + i · dilation − padding for 0 ≤ i < kernel_size.
- kernel_size, stride and dilation are at least 1. An empty `stride` list means kernel_size. 0 ≤ padding ≤ kernel_size /
  2, whatever the dilation.
- With the extent dilation · (kernel_size − 1) + 1, an axis has ⌊(size + 2·padding − extent) / stride⌋ + 1 windows.
- If `ceil_mode` is true, the quotient is rounded up. A last window that would start in or beyond the padding at the end
  is omitted.
- A result with a spatial size below 1 is an error.

Maximum pooling:

- Padding is never the maximum. If a window contains a NaN, the maximum is NaN.
- Positions are offsets into the row-major spatial axes of one channel, without padding. They are int64, or int32 if the
  caller passes an int32 tensor.
- Among several equal maxima, the position is that of the first one in row-major order. Among several NaNs, it is that
  of the last one.

Average pooling:

- The result is the sum over the window, divided by the number of its positions. Positions outside the input count as 0
  in the sum.
- If `count_include_pad` is true, the number counts the positions inside the padded input. Otherwise, it counts the
  positions inside the input. Positions that only `ceil_mode` adds never count.
- If a function has a `divisor_override` and it is not NULL, it is the divisor instead; 0 is an error.

Adaptive windows: `output_size` contains the number n ≥ 0 of windows of each axis. Window o on an axis of `size`
elements covers the elements ⌊o · size / n⌋ to ⌈(o + 1) · size / n⌉ − 1.

Gradients: `grad_output` has the shape of the forward result. Only the shape of `input` is read. The gradient of maximum
pooling adds each element of grad_output at the position of the maximum. The gradient of average pooling adds an equal
share to every input position of the window. Contributions of overlapping windows are added.

Half precision is accumulated in float32 and rounded once.
"""

from typing import Literal

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, index, index32, position, same
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, Extents, In, Out, PositiveExtents, Size, boolean, const_boolean, i64
from diopi_proto.ranks import prototype_per_rank

WINDOWS = ("stride", "padding", "dilation", "ceil_mode")
"""Attributes of sliding windows, in addition to their size."""

IGNORES_INPUT_ELEMENTS = Ignored(("input",), "it has the shape of the result", read=Read.form)
"""Only the shape and the element type of `input` are read."""

DETERMINED_BY_INDICES = "`indices` determine where each gradient is added"
"""The reason why the attributes of windows do not affect the gradient of maximum pooling."""

IGNORED_BY_POOL = (
    Ignored(("ksize", "exclusive", *WINDOWS), "the sizes of the result determine the windows", {"adaptive": True}),
    Ignored(("exclusive",), "only a mean depends on it", {"mode": "max"}),
)
"""The arguments that `diopiPool` and its gradient ignore for some values of `adaptive` and `mode`."""


@prototype_per_rank("diopiMaxPool1d", "diopiMaxPool2d", "diopiMaxPool3d", dtypes=floating, guarantee="exact")
def diopiMaxPool(
    ctx: Context,
    out: Out,
    input: In,
    kernel_size: PositiveExtents,
    stride: PositiveExtents,
    padding: Extents,
    dilation: PositiveExtents,
    ceil_mode: boolean,
):
    """Compute the maximum over each sliding window of input (N, C, {axes}).

    Source: torch.nn.functional.max_pool{rank}d.
    """


@prototype_per_rank(
    "diopiMaxPool1dWithIndices",
    "diopiMaxPool2dWithIndices",
    "diopiMaxPool3dWithIndices",
    dtypes=floating,
    result={"out": same, "indices": position},
    guarantee="exact",
    backward="diopiMaxPool{rank}dBackward",
)
def diopiMaxPoolWithIndices(
    ctx: Context,
    out: Out,
    indices: Out,
    input: In,
    kernel_size: PositiveExtents,
    stride: PositiveExtents,
    padding: Extents,
    dilation: PositiveExtents,
    ceil_mode: boolean,
):
    """Compute `diopiMaxPool{rank}d`, and write the positions of the maxima to `indices`, which has out's shape.

    A position is the row-major index of an element among the elements of its channel. If several elements of a window
    are equal maxima, the position is that of the first one. If a window contains NaNs, it is the position of the last
    NaN. `diopiMaxPool3dWithIndices` has one exception: if a window contains only −∞, its position is unspecified,
    because PyTorch's position depends on the memory format.

    Source: torch.nn.functional.max_pool{rank}d with return_indices.
    """


@prototype_per_rank(
    "diopiMaxPool1dBackward",
    "diopiMaxPool2dBackward",
    "diopiMaxPool3dBackward",
    dtypes=floating,
    argument_dtypes={"indices": index},
    beyond_pytorch={"indices": index32},
    ignored=[IGNORES_INPUT_ELEMENTS, Ignored(("kernel_size", *WINDOWS), DETERMINED_BY_INDICES, read=Read.value)],
)
def diopiMaxPoolBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: In,
    kernel_size: Size,
    stride: Size,
    padding: Size,
    dilation: Size,
    ceil_mode: boolean,
    indices: In,
):
    """Compute the gradient of `diopiMaxPool{rank}d`: add grad_output to zeros at the positions `indices`.

    `indices` is the result of `diopiMaxPool{rank}dWithIndices`, in the shape of grad_output. The other attributes have
    no effect, because the indices determine the positions.

    Source: the gradient of torch.nn.functional.max_pool{rank}d.
    """


@prototype(dtypes=floating, backward="diopiAvgPool1dBackward")
def diopiAvgPool1d(
    ctx: Context,
    out: Out,
    input: In,
    kernel_size: PositiveExtents,
    stride: PositiveExtents,
    padding: Extents,
    ceil_mode: boolean,
    count_include_pad: boolean,
):
    """Compute the mean over each sliding window of input (N, C, L). The dilation is 1.

    Source: torch.nn.functional.avg_pool1d.
    """


@prototype(dtypes=floating, ignored=[IGNORES_INPUT_ELEMENTS])
def diopiAvgPool1dBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: In,
    kernel_size: Size,
    stride: Size,
    padding: Size,
    ceil_mode: boolean,
    count_include_pad: boolean,
):
    """Compute the gradient of `diopiAvgPool1d`.

    Every element of grad_output is divided by the forward divisor and added to each position of its window.

    Source: the chain rule, as PyTorch's autograd of torch.nn.functional.avg_pool1d.
    """


@prototype_per_rank("diopiAvgPool2d", "diopiAvgPool3d", dtypes=floating, backward="diopiAvgPool{rank}dBackward")
def diopiAvgPool(
    ctx: Context,
    out: Out,
    input: In,
    kernel_size: PositiveExtents,
    stride: PositiveExtents,
    padding: Extents,
    ceil_mode: boolean,
    count_include_pad: boolean,
    divisor_override: i64 | None,
):
    """Compute the mean over each sliding window of input (N, C, {axes}). The dilation is 1.

    If divisor_override is not NULL, it replaces the number of positions as the divisor of the sum.

    Source: torch.nn.functional.avg_pool{rank}d.
    """


@prototype_per_rank(
    "diopiAvgPool2dBackward", "diopiAvgPool3dBackward", dtypes=floating, ignored=[IGNORES_INPUT_ELEMENTS]
)
def diopiAvgPoolBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: In,
    kernel_size: Size,
    stride: Size,
    padding: Size,
    ceil_mode: boolean,
    count_include_pad: boolean,
    divisor_override: i64 | None,
):
    """Compute the gradient of `diopiAvgPool{rank}d`.

    Every element of grad_output is divided by the forward divisor and added to each position of its window.

    Source: the chain rule, as PyTorch's autograd of torch.nn.functional.avg_pool{rank}d.
    """


@prototype_per_rank(
    "diopiAdaptiveAvgPool1d",
    "diopiAdaptiveAvgPool2d",
    "diopiAdaptiveAvgPool3d",
    dtypes=floating,
    backward="diopiAdaptiveAvgPool{rank}dBackward",
)
def diopiAdaptiveAvgPool(ctx: Context, out: Out, input: In, output_size: Extents):
    """Compute the mean over each adaptive window of input (N, C, {axes}).

    output_size contains the number of windows of each spatial axis.

    Source: torch.nn.functional.adaptive_avg_pool{rank}d.
    """


@prototype_per_rank(
    "diopiAdaptiveAvgPool1dBackward",
    "diopiAdaptiveAvgPool2dBackward",
    "diopiAdaptiveAvgPool3dBackward",
    dtypes=floating,
    ignored=[IGNORES_INPUT_ELEMENTS],
)
def diopiAdaptiveAvgPoolBackward(ctx: Context, grad_input: Out, grad_output: In, input: In):
    """Compute the gradient of `diopiAdaptiveAvgPool{rank}d`.

    Every element of grad_output is divided by the size of its window and added to each position of the window. The
    spatial sizes of grad_output are the output_size of the forward function.

    Source: the chain rule, as PyTorch's autograd of torch.nn.functional.adaptive_avg_pool{rank}d.
    """


@prototype_per_rank(
    "diopiAdaptiveMaxPool1d", "diopiAdaptiveMaxPool2d", "diopiAdaptiveMaxPool3d", dtypes=floating, guarantee="exact"
)
def diopiAdaptiveMaxPool(ctx: Context, out: Out, input: In, output_size: Extents):
    """Compute the maximum over each adaptive window of input (N, C, {axes}).

    output_size contains the number of windows of each spatial axis.

    Source: torch.nn.functional.adaptive_max_pool{rank}d.
    """


@prototype_per_rank(
    "diopiAdaptiveMaxPool1dWithIndices",
    "diopiAdaptiveMaxPool2dWithIndices",
    "diopiAdaptiveMaxPool3dWithIndices",
    dtypes=floating,
    result={"out": same, "indices": position},
    guarantee="exact",
    backward="diopiAdaptiveMaxPool{rank}dBackward",
)
def diopiAdaptiveMaxPoolWithIndices(ctx: Context, out: Out, indices: Out, input: In, output_size: Extents):
    """Compute `diopiAdaptiveMaxPool{rank}d`, and write the positions of the maxima to `indices`, which has out's shape.

    Among several equal maxima, the position is that of the first one. Among several NaNs, it is that of the last one.

    Source: torch.nn.functional.adaptive_max_pool{rank}d with return_indices.
    """


@prototype_per_rank(
    "diopiAdaptiveMaxPool1dBackward",
    "diopiAdaptiveMaxPool2dBackward",
    "diopiAdaptiveMaxPool3dBackward",
    dtypes=floating,
    argument_dtypes={"indices": index},
    beyond_pytorch={"indices": index32},
    ignored=[IGNORES_INPUT_ELEMENTS],
)
def diopiAdaptiveMaxPoolBackward(ctx: Context, grad_input: Out, grad_output: In, input: In, indices: In):
    """Compute the gradient of `diopiAdaptiveMaxPool{rank}d`: add grad_output to zeros at the positions `indices`.

    `indices` is the result of `diopiAdaptiveMaxPool{rank}dWithIndices`, in the shape of grad_output.

    Source: the gradient of torch.nn.functional.adaptive_max_pool{rank}d.
    """


@prototype_per_rank(
    "diopiPool1d",
    "diopiPool2d",
    "diopiPool3d",
    dtypes=floating,
    ignored=[
        *IGNORED_BY_POOL,
        Ignored(("dilation",), "only maximum pooling dilates windows", {"mode": "avg"}),
        Ignored(("output_size",), "the other attributes determine the windows", {"adaptive": False}),
    ],
    backward="diopiPool{rank}dBackward",
)
def diopiPool(
    ctx: Context,
    out: Out,
    input: In,
    mode: Literal["max", "avg"],
    ksize: PositiveExtents,
    stride: PositiveExtents,
    padding: Extents,
    dilation: PositiveExtents,
    ceil_mode: const_boolean,
    exclusive: const_boolean,
    adaptive: const_boolean,
    output_size: Extents,
):
    """Pool input (N, C, {axes}) as `mode` ("max" or "avg") and `adaptive` select.

    - If `adaptive` is false, the function is `diopiMaxPool{rank}d` or `diopiAvgPool{rank}d` with kernel_size = ksize.
      `exclusive` is the opposite of count_include_pad.
    - If `adaptive` is true, the function is `diopiAdaptiveMaxPool{rank}d` or `diopiAdaptiveAvgPool{rank}d` with
      `output_size`.

    Any other mode is an error.

    Source: the PyTorch functions of these names.
    """


@prototype_per_rank(
    "diopiPool1dBackward",
    "diopiPool2dBackward",
    "diopiPool3dBackward",
    dtypes=floating,
    argument_dtypes={"indices": index},
    beyond_pytorch={"indices": index32},
    ignored=[
        IGNORES_INPUT_ELEMENTS,
        *IGNORED_BY_POOL,
        Ignored(("dilation", "indices"), "only maximum pooling uses them", {"mode": "avg"}),
        Ignored(("ksize", *WINDOWS), DETERMINED_BY_INDICES, {"mode": "max"}, Read.value),
    ],
)
def diopiPoolBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: In,
    mode: Literal["max", "avg"],
    ksize: Size,
    stride: Size,
    padding: Size,
    dilation: Size,
    ceil_mode: const_boolean,
    exclusive: const_boolean,
    adaptive: const_boolean,
    indices: In | None,
):
    """Compute the gradient of `diopiPool{rank}d`, with the same attributes.

    The shape of grad_output determines the output_size of adaptive pooling. `indices` is the result `indices` of
    `diopiMaxPool{rank}dWithIndices` or `diopiAdaptiveMaxPool{rank}dWithIndices`. The mode "max" requires it; for "avg"
    it may be NULL. Any other mode is an error.

    Source: the chain rule, as PyTorch's autograd of the pooling functions.
    """
