"""Resampling of regular grids: resizing, and sampling at given points, with gradients.

input has shape (N, C, d…) with one to three spatial axes d. The sizes of the result's spatial axes are a parameter, and
also part of the shape of the tensor that the caller allocated. Results have the N, C and dtype of input. Coordinates
and weights are computed in the precision of that dtype, or in float32 if that dtype has a lower precision.

The following are errors:

- a size list whose length is not the number of spatial axes
- a size below 1
- an input without any spatial element
- a rank that the mode does not allow

In the gradient functions, in_size is the full shape (N, C, d…) of the forward input. out_size contains the spatial
sizes of the forward result. Every element of grad_output is distributed to the input elements from which the forward
function computed the result element. The weights are the weights of the forward function, and the contributions to an
input element are summed.
"""

from typing import Literal

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating
from diopi_proto.parameters import Context, Extents, In, Out, PositiveExtents, boolean
from diopi_proto.types import Dtype


@prototype(
    dtypes=(*floating, Dtype.uint8), guarantee="exact", moves_numbers=True, backward="diopiUpsampleNearestBackward"
)
def diopiUpsampleNearest(ctx: Context, out: Out, input: In, size: PositiveExtents):
    """Resize input: index i of the result copies the element at index ⌊i · s⌋, along each spatial axis.

    There are one to three spatial axes. For each of them, s = d / size is the ratio of the size of input to the size of
    the result. If i · s is an integer but s has no finite binary expansion, rounding may also select the element before
    it. Either element may then be copied, and the gradient of both is unspecified.

    Source: torch.nn.functional.interpolate with mode "nearest".
    """


@prototype(dtypes=floating)
def diopiUpsampleNearestBackward(ctx: Context, grad_input: Out, grad_output: In, out_size: Extents, in_size: Extents):
    """Compute the gradient of `diopiUpsampleNearest`: add grad_output to each element from which it was copied.

    out_size contains the spatial sizes of grad_output. in_size is the full shape (N, C, d…) of the forward input and of
    grad_input.

    Source: torch.ops.aten.upsample_nearest2d_backward and its 1d and 3d forms.
    """


@prototype(dtypes=floating, backward="diopiUpsampleLinearBackward")
def diopiUpsampleLinear(
    ctx: Context,
    out: Out,
    input: In,
    size: PositiveExtents,
    align_corners: boolean,
    mode: Literal["linear", "bilinear", "trilinear", "bicubic"],
):
    """Resize input by interpolation between neighboring elements along each spatial axis.

    `mode` is "linear" for one spatial axis, "bilinear" or "bicubic" for two, and "trilinear" for three. Any other text
    is an error. Let d be the size of an axis of input. Index i of the result lies at the coordinate x of input:

    - If align_corners is true, x = i·(d − 1)/(size − 1), or 0 if size is 1.
    - If it is false, x = (i + ½)·d/size − ½. The linear modes replace a negative x by 0.

    The linear modes weight the elements ⌊x⌋ and ⌊x⌋ + 1 by 1 − t and t, where t = x − ⌊x⌋. The mode "bicubic" weights
    the elements ⌊x⌋ − 1 to ⌊x⌋ + 2 by the cubic convolution kernel with a = −0.75. An index outside input is replaced
    by the nearest index inside. The weights of several axes are multiplied.

    Source: torch.nn.functional.interpolate; Keys, "Cubic convolution interpolation for digital image processing", 1981.
    """


@prototype(dtypes=floating)
def diopiUpsampleLinearBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    out_size: Extents,
    in_size: Extents,
    align_corners: boolean,
    mode: Literal["linear", "bilinear", "trilinear", "bicubic"],
):
    """Compute the gradient of `diopiUpsampleLinear`: distribute grad_output with the weights of the forward call.

    Each element of grad_output, times its weight, is added to every input element from which the result was
    interpolated. out_size contains the spatial sizes of grad_output. in_size is the full shape (N, C, d…) of the
    forward input and of grad_input. align_corners and mode have the values of the forward call.

    Source: torch.ops.aten.upsample_bilinear2d_backward and its linear1d, trilinear3d and bicubic2d forms.
    """


@prototype(dtypes=floating)
def diopiGridSample(ctx: Context, out: Out, input: In, grid: In, mode: Literal["bilinear", "nearest"]):
    """Sample input at the points of grid: out[n, c, …] is input[n, c] interpolated at the point grid[n, …].

    - input: (N, C, H, W) or (N, C, D, H, W).
    - grid: (N, H', W', 2) or (N, D', H', W', 3), in the dtype of input. The last axis contains x, y and, for five axes,
      z. x is the coordinate along W, y along H, and z along D.
    - out: (N, C, H', W') or (N, C, D', H', W').

    The coordinates −1 and 1 are the outer edges of the first and last element. Along an axis of size d, the coordinate
    g is the index ((g + 1)·d − 1)/2. `mode` selects how elements at these indices are combined:

    - "bilinear": linear interpolation between the 4 neighbors, or 8 if input has five axes.
    - "nearest": the nearest element. An index halfway between two elements is rounded to the even one.

    Any other text is an error. Elements outside input count as 0. The result for a NaN coordinate is unspecified.

    Source: torch.nn.functional.grid_sample with padding_mode "zeros" and align_corners false.
    """
