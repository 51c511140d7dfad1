"""Reductions along axes, and the cumulative sum.

The axes to reduce:

- If `dim` is a list, it contains the axes in any order, without repetition. An empty list means all axes.
- If `dim` is a number, it names one axis. If the function accepts NULL, NULL means all axes.
- Negative axes count from the last axis. An axis outside [−rank, rank) or named twice is an error. For 0-d input, an
  axis is 0 or −1.

The shape of the result:

- If a function has the parameter `keepdim`, true keeps the reduced axes with size 1, and false removes them.
- If it does not, the shape of `out` determines the same. If `out` has the rank of the input, the reduced axes are kept
  with size 1; otherwise they are removed.
- A reduction over all axes that keeps none is 0-d.

The elements of the result:

- A reduction over no elements gives the number that the docstring names. Minima, maxima and their positions have no
  such number, so an axis of size 0 is an error.
- Half precision is accumulated in float32 and rounded once.
- A NaN anywhere in a slice gives NaN.
- If several elements are the minimum or maximum, the position is that of the first one. A NaN takes precedence over
  every number. Positions are int64, or int32 if the caller passes an int32 tensor.

If a docstring says that `out` determines the dtype, `out` has the role of `dtype` in PyTorch. The input is first
converted to the dtype of `out` as by `diopiCastDtype`, and the function is computed from the converted input.

Source: the PyTorch function of the same name.
"""

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import all_dtypes, complexes, component, floating, numeric, position, real, same, summed, truth
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Axes, Axis, Context, In, Out, Scalar, boolean
from diopi_proto.types import Dtype

IGNORES_KEEPDIM = Ignored(("keepdim",), "the shape of the result determines it", read=Read.value)
"""No element of the result depends on `keepdim`."""


@prototype(dtypes=(*floating, *complexes), selectable_dtypes=(*floating, *complexes))
def diopiMean(ctx: Context, out: Out, input: In, dim: Axes):
    """Return the mean along the axes `dim`. The mean of no elements is NaN.

    `out` is floating or complex, and determines the dtype.

    Source: torch.mean.
    """


@prototype(dtypes=all_dtypes, result=summed, selectable_dtypes=all_dtypes)
def diopiSum(ctx: Context, out: Out, input: In, dim: Axes):
    """Compute the sum along the axes `dim`.

    The sum of no elements is 0. `out` determines the dtype of the sum. If the caller follows PyTorch, out is int64 for
    integers and bool. Integer sums wrap around. A bool sum is true if any element is not 0.

    Source: torch.sum.
    """


@prototype(dtypes=(*floating, *complexes), result=component)
def diopiStd(ctx: Context, out: Out, input: In, dim: Axes, correction: Scalar | None):
    """Return the standard deviation √(Σ |x − mean|² / max(n − correction, 0)) along the axes `dim`.

    n is the number of elements of a slice. `correction` 1, or NULL, gives the sample standard deviation, and 0 the
    population standard deviation. It need not be an integer. If the divisor is 0, the result is NaN for 0/0, for
    example for a slice without elements, and ∞ otherwise. Complex input has a real result.

    Source: torch.std.
    """


@prototype(dtypes=real, result={"min": same, "min_indices": position}, guarantee="exact")
def diopiMin(ctx: Context, min: Out, min_indices: Out, input: In, dim: Axis):
    """Return the smallest element along axis `dim` and its position on that axis; both results have the same shape.

    An axis of size 0 is an error.

    Source: torch.min.
    """


@prototype(dtypes=real, guarantee="exact")
def diopiMinAll(ctx: Context, min: Out, input: In):
    """Return the smallest of all elements as a 0-d tensor. An empty input is an error.

    Source: torch.min.
    """


@prototype(dtypes=real, result={"max": same, "max_indices": position}, guarantee="exact")
def diopiMax(ctx: Context, max: Out, max_indices: Out, input: In, dim: Axis):
    """Return the largest element along axis `dim` and its position on that axis; both results have the same shape.

    An axis of size 0 is an error.

    Source: torch.max.
    """


@prototype(dtypes=real, guarantee="exact")
def diopiMaxAll(ctx: Context, max: Out, input: In):
    """Return the largest of all elements as a 0-d tensor. An empty input is an error.

    Source: torch.max.
    """


@prototype(dtypes=real, guarantee="exact")
def diopiAmax(ctx: Context, out: Out, self: In, dim: Axes, keepdim: boolean):
    """Return the largest element along the axes `dim`, without its position.

    Source: torch.amax.
    """


@prototype(dtypes=all_dtypes, result=truth)
def diopiAny(ctx: Context, out: Out, input: In, dim: Axis | None):
    """Return whether any element is nonzero, along axis `dim` or in the whole input.

    NaN counts as nonzero. The result for no elements is false. The result is bool for every input dtype; for uint8,
    torch.any returns uint8 instead.

    Source: torch.any.
    """


@prototype(dtypes=all_dtypes, result=truth)
def diopiAll(ctx: Context, out: Out, input: In, dim: Axis | None):
    """Return whether every element is nonzero, along axis `dim` or in the whole input.

    NaN counts as nonzero. The result for no elements is true. The result is bool for every input dtype; for uint8,
    torch.all returns uint8 instead.

    Source: torch.all.
    """


@prototype(dtypes=all_dtypes, result=summed, selectable_dtypes=all_dtypes)
def diopiProd(ctx: Context, out: Out, input: In, dim: Axis | None):
    """Return the product along axis `dim`, or of all elements if dim is NULL. The product of no elements is 1.

    `out` determines the dtype of the product. If the caller follows PyTorch, out is int64 for integers and bool.
    Integer products wrap around. A bool product is true if every element is nonzero.

    Source: torch.prod.
    """


@prototype(dtypes=real, result=position, beyond_pytorch={"input": (Dtype.bool,)}, ignored=[IGNORES_KEEPDIM])
def diopiArgmax(ctx: Context, out: Out, input: In, dim: Axis | None, keepdim: boolean):
    """Return the position of the largest element along axis `dim`.

    If `dim` is NULL, it is the position in the input flattened in row-major order. `out` then has one element, and its
    shape is (), (1), or, if `keepdim` is true, 1 along every axis of input.

    Source: torch.argmax.
    """


@prototype(dtypes=real, result=position, beyond_pytorch={"input": (Dtype.bool,)}, ignored=[IGNORES_KEEPDIM])
def diopiArgmin(ctx: Context, out: Out, input: In, dim: Axis | None, keepdim: boolean):
    """Return the position of the smallest element along axis `dim`.

    If `dim` is NULL, it is the position in the input flattened in row-major order. `out` then has one element, and its
    shape is (), (1), or, if `keepdim` is true, 1 along every axis of input.

    Source: torch.argmin.
    """


@prototype(dtypes=all_dtypes, result=summed, selectable_dtypes=(*numeric, *complexes), backward="diopiCumsumBackward")
def diopiCumsum(ctx: Context, out: Out, input: In, dim: Axis):
    """Return the cumulative sum along axis `dim`: element i is the sum of the elements 0 to i.

    `out` has the shape of input. It may have any dtype except bool, and determines the dtype. If the caller follows
    PyTorch, out is int64 for integers and bool. Integer sums wrap around. A 0-d input is copied. A NaN makes all
    following sums NaN.

    Source: torch.cumsum.
    """


@prototype(dtypes=(*floating, *complexes))
def diopiCumsumBackward(ctx: Context, grad_input: Out, grad_output: In, dim: Axis):
    """Compute the gradient of `diopiCumsum`: the cumulative sum of grad_output from the end of axis `dim`.

    Element i is the sum of the elements i … last; both tensors have the same shape and dtype.

    Source: the chain rule, as PyTorch's autograd of torch.cumsum.
    """
