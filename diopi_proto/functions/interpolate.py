"""Resampling of regular grids: resizing, and sampling at given points, with gradients.

input has shape (N, C, d…) with one to three spatial axes d. The sizes of the result's spatial axes are a parameter, and
also part of the shape of the tensor that the caller allocated. Results have the N, C and dtype of input. Coordinates
and weights are computed in the precision of that dtype, or in float32 if that dtype has a lower precision.
The following are errors: a size list whose length is not the number of spatial axes; a size below 1; an input without
any spatial element; and a rank that the mode does not allow.
In the gradient functions, in_size is the full shape (N, C, d…) of the forward input. out_size holds the spatial sizes
of the forward result. Every element of grad_output is distributed to the input elements from which the forward function
computed the result element. The weights are the weights of the forward function, and the contributions to an input
element are summed.
"""

from typing import Literal

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating
from diopi_proto.parameters import Context, Extents, In, Out, PositiveExtents, boolean
from diopi_proto.types import Dtype


@prototype(dtypes=(*floating, Dtype.uint8), guarantee="exact", backward="diopiUpsampleNearestBackward")
def diopiUpsampleNearest(ctx: Context, out: Out, input: In, size: PositiveExtents):
    """Every result element copies the input element at index ⌊i · s⌋ along each of one to three spatial axes.

    i is the index in the result, and s = d / size is the ratio of the input's size to the result's size. Rounding
    matters where s has no finite binary expansion but i · s is an integer. There either that element or the one before
    it may be copied, and the gradient of both is unspecified. Source: torch.nn.functional.interpolate, mode "nearest".
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
    error. d is the input's size. With align_corners, index i of the result lies at x = i·(d − 1)/(size − 1), or at 0
    for size 1. Without align_corners, it lies at x = (i + ½)·d/size − ½; the linear modes replace a negative x by 0.
    Linear modes weight elements ⌊x⌋ and ⌊x⌋ + 1 by 1 − t and t, where t = x − ⌊x⌋. "bicubic" weights elements ⌊x⌋ − 1 …
    ⌊x⌋ + 2 by the cubic convolution kernel with a = −0.75. An index outside the input stands for the element at the
    border.
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
    """Gradient of `diopiUpsampleLinear`; align_corners and mode have the same meaning as in the forward function.

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
