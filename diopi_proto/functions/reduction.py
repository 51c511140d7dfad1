"""Reductions along axes, and the running sum.

Axes: `Size dim` lists the axes to reduce, in any order, none twice; empty, all axes. `i64 dim` names one; where it may
be NULL, that means all axes. Negative axes count from the last; an axis outside [−rank, rank) or named twice is
rejected; 0-d input takes 0 and −1. Where there is no `keepdim`, it is read off `out`: reduced axes stay with size 1 if
`out` has the rank of the input, and are dropped otherwise. A reduction over all axes without kept ones is 0-d. With
`keepdim`, true keeps the axes.

Reducing no elements gives the neutral element where a docstring names one; extrema and positions have none, and an
axis of size 0 is rejected. Half precision is accumulated in float32 and rounded once. NaN anywhere in
a slice gives NaN. Where several elements are extremal the position is that of the first, and a NaN is more extremal
than any number. Positions are int64, or int32 if the caller made the result so.

Where `out` orders the dtype, as `dtype` does in PyTorch, the input is converted to the dtype of `out` first, as by
`diopiCastDtype`, and the function is of that. Source: the PyTorch function of the same name.
"""

from diopi_proto.dtypes import all_dtypes, complexes, component, floating, numeric, position, real, same, summed, truth
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Axes, Axis, Context, In, Out, Scalar, boolean
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype

KEEPDIM = Ignored(("keepdim",), "the shape of the result says it", read=Read.value)


@prototype(dtypes=(*floating, *complexes), selectable_dtypes=(*floating, *complexes))
def diopiMean(ctx: Context, out: Out, input: In, dim: Axes):
    """Mean along the axes `dim`; of no elements NaN. `out` is floating or complex, and orders the dtype.

    Source: torch.mean.
    """


@prototype(dtypes=all_dtypes, result=summed, selectable_dtypes=all_dtypes)
def diopiSum(ctx: Context, out: Out, input: In, dim: Axes):
    """Sum along the axes `dim`; of no elements 0. Integers and bool give int64, wrapping around.

    `out` orders the dtype; that of bool is whether any element is nonzero. Source: torch.sum.
    """


@prototype(dtypes=(*floating, *complexes), result=component)
def diopiStd(ctx: Context, out: Out, input: In, dim: Axes, correction: Scalar | None):
    """Standard deviation √(Σ |x − mean|² / max(n − correction, 0)) along the axes `dim`, n elements a slice.

    `correction` NULL is 1 (the sample deviation), 0 gives the population deviation; it need not be whole. A divisor of
    0 gives NaN for 0/0, inf otherwise. Complex input has a real result. Source: torch.std.
    """


@prototype(dtypes=real, result={"min": same, "min_indices": position}, guarantee="exact")
def diopiMin(ctx: Context, min: Out, min_indices: Out, input: In, dim: Axis):
    """Smallest element along axis `dim`, and its position there; both results have one shape.

    An axis of size 0 is rejected. Source: torch.min.
    """


@prototype(dtypes=real, guarantee="exact")
def diopiMinAll(ctx: Context, min: Out, input: In):
    """Smallest of all elements, 0-d; empty input is rejected. Source: torch.min."""


@prototype(dtypes=real, result={"max": same, "max_indices": position}, guarantee="exact")
def diopiMax(ctx: Context, max: Out, max_indices: Out, input: In, dim: Axis):
    """Largest element along axis `dim`, and its position there; both results have one shape.

    An axis of size 0 is rejected. Source: torch.max.
    """


@prototype(dtypes=real, guarantee="exact")
def diopiMaxAll(ctx: Context, max: Out, input: In):
    """Largest of all elements, 0-d; empty input is rejected. Source: torch.max."""


@prototype(dtypes=real, guarantee="exact")
def diopiAmax(ctx: Context, out: Out, self: In, dim: Axes, keepdim: boolean):
    """Largest element along the axes `dim`, without a position. Source: torch.amax."""


@prototype(dtypes=all_dtypes, result=truth)
def diopiAny(ctx: Context, out: Out, input: In, dim: Axis | None):
    """Whether any element along axis `dim`, or of all, is nonzero; NaN counts as nonzero, of no elements false.

    The result is bool for every input dtype. Source: torch.any.
    """


@prototype(dtypes=all_dtypes, result=truth)
def diopiAll(ctx: Context, out: Out, input: In, dim: Axis | None):
    """Whether every element along axis `dim`, or of all, is nonzero; NaN counts as nonzero, of no elements true.

    The result is bool for every input dtype. Source: torch.all.
    """


@prototype(dtypes=all_dtypes, result=summed, selectable_dtypes=all_dtypes)
def diopiProd(ctx: Context, out: Out, input: In, dim: Axis | None):
    """Product along axis `dim`, or of all elements; of no elements 1. Integers and bool give int64, wrapping around.

    `out` orders the dtype; that of bool is whether every element is nonzero. Source: torch.prod.
    """


@prototype(dtypes=real, result=position, beyond_pytorch={"input": (Dtype.bool,)}, ignored=[KEEPDIM])
def diopiArgmax(ctx: Context, out: Out, input: In, dim: Axis | None, keepdim: boolean):
    """Position of the largest element along axis `dim`; NULL: in the input flattened in row-major order.

    With NULL `out` has one element, 0-d or of shape (1,), or, with `keepdim`, input's rank with all sizes 1. Source:
    torch.argmax.
    """


@prototype(dtypes=real, result=position, beyond_pytorch={"input": (Dtype.bool,)}, ignored=[KEEPDIM])
def diopiArgmin(ctx: Context, out: Out, input: In, dim: Axis | None, keepdim: boolean):
    """Position of the smallest element along axis `dim`; NULL: in the input flattened in row-major order.

    With NULL `out` has one element, 0-d or of shape (1,), or, with `keepdim`, input's rank with all sizes 1. Source:
    torch.argmin.
    """


@prototype(dtypes=all_dtypes, result=summed, selectable_dtypes=(*numeric, *complexes), backward="diopiCumsumBackward")
def diopiCumsum(ctx: Context, out: Out, input: In, dim: Axis):
    """Running sum along axis `dim`: element i is the sum of the elements 0 … i. `out` has input's shape.

    Integers and bool give int64, wrapping around; 0-d input is copied; a NaN makes all following sums NaN. `out` is of
    any dtype but bool, and orders it. Source: torch.cumsum.
    """


@prototype(dtypes=(*floating, *complexes))
def diopiCumsumBackward(ctx: Context, grad_input: Out, grad_output: In, dim: Axis):
    """Gradient of `diopiCumsum`: the running sum of grad_output from the end of axis `dim`.

    Element i is the sum of the elements i … last; both tensors have one shape and dtype. Source: the chain rule, as
    PyTorch's autograd of torch.cumsum.
    """
