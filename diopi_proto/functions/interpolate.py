"""Resampling of regular grids: resizing, and sampling at given points, with gradients.

input: (N, C, d…) with one to three spatial axes d; the sizes of the result's spatial axes are a parameter, and also in
the shape of the tensor the caller made. N, C and results have input's dtype; coordinates and weights are computed in
that precision, in float32 where it is lower. A size list of another length than there are spatial axes, a size below
1, an input without any spatial element and another rank than a mode allows are errors. In the gradients in_size is the
whole shape (N, C, d…) of the forward input, out_size the spatial sizes of its result; every element of grad_output is
shared out to the elements it was made from with the weights of the forward function, and what comes together is summed.
"""

from typing import Literal

from diopi_proto.dtypes import floating
from diopi_proto.parameters import Context, Extents, In, Out, PositiveExtents, boolean
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype


@prototype(dtypes=(*floating, Dtype.uint8), guarantee="exact", backward="diopiUpsampleNearestBackward")
def diopiUpsampleNearest(ctx: Context, out: Out, input: In, size: PositiveExtents):
    """Every result element copies the input element at index ⌊i · s⌋ along each of one to three spatial axes.

    i is the result's index, s = d / size the ratio of the input's size to the result's. Where s has no finite binary
    expansion but i · s is a whole number, rounding decides between that element and the one before it: either may be
    copied, and the gradient of both is unspecified. Source: torch.nn.functional.interpolate, mode "nearest".
    """


@prototype(dtypes=floating)
def diopiUpsampleNearestBackward(ctx: Context, grad_input: Out, grad_output: In, out_size: Extents, in_size: Extents):
    """Gradient of `diopiUpsampleNearest`: every input element gets the sum of grad_output over its copies.

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
    """Interpolates between neighbouring elements, one spatial axis after the other.

    mode: "linear" for one spatial axis, "bilinear" or "bicubic" for two, "trilinear" for three; anything else is an
    error. Index i of the result lies at x = i·(d − 1)/(size − 1) with align_corners (0 for size 1), else at
    x = (i + ½)·d/size − ½, in the linear modes raised to 0 if negative; d is the input's size.
    Linear modes weigh elements ⌊x⌋ and ⌊x⌋ + 1 with 1 − t and t, t = x − ⌊x⌋. "bicubic" weighs ⌊x⌋ − 1 … ⌊x⌋ + 2 with
    the cubic convolution kernel of a = −0.75. Indices outside the input stand for the element at the border.
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
    """Gradient of `diopiUpsampleLinear`; align_corners and mode as there.

    Source: torch.ops.aten.upsample_bilinear2d_backward and its linear1d, trilinear3d and bicubic2d forms.
    """


@prototype(dtypes=floating)
def diopiGridSample(ctx: Context, out: Out, input: In, grid: In, mode: Literal["bilinear", "nearest"]):
    """Samples input at the points of grid: out[n, c, …] is input[n, c] at the point grid[n, …].

    input: (N, C, H, W) or (N, C, D, H, W); grid: (N, H', W', 2) or (N, D', H', W', 3), of input's dtype, the last axis
    x, y[, z] with x along W; out: (N, C, H', W') or (N, C, D', H', W'). −1 and 1 are the outer edges of the first and
    last element: along an axis of size d coordinate g lies at index ((g + 1)·d − 1)/2.
    mode: "bilinear" weighs the 4 (with D: 8) neighbours linearly, "nearest" takes the nearest, an index halfway going
    to the even one; any other text is an error. Elements outside input count as 0. A NaN coordinate gives an
    unspecified value. Source: torch.nn.functional.grid_sample with padding_mode "zeros", align_corners False.
    """
